//! What a new user sees first, word for word.

use std::process::{Command, Stdio};

#[test]
fn the_demonstration_shows_what_happens_to_every_call() {
    let output = Command::new(env!("CARGO_BIN_EXE_haft"))
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn an_unknown_argument_is_an_error_that_says_what_to_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_haft"))
        .arg("--nonsense")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("--help"));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let mut haft = Command::new(env!("CARGO_BIN_EXE_haft"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(haft.stdout.take());
    let output = haft.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
