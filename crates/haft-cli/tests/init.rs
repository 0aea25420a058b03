//! `haft init`: what it writes, and what it leaves alone.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn init(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_haft"))
        .arg("init")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn a_configuration_is_written_and_the_next_step_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = init(folder.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
    let text = fs::read_to_string(folder.path().join("haft.toml")).unwrap();
    assert!(text.contains("#listen = \"127.0.0.1:4141\""), "{text}");
}

#[test]
fn a_file_that_is_there_stays_unless_it_is_forced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haft.toml");
    let mine = "# mine, and longer than nothing\n".repeat(1000);
    fs::write(&file, &mine).unwrap();
    // The folder means the file in it.
    for arguments in [&[][..], &["haft.toml"], &["."]] {
        let output = init(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains("is there already"), "{words}");
        assert!(words.contains("haft init --force"), "{words}");
        assert_eq!(fs::read_to_string(&file).unwrap(), mine);
    }
    let output = init(folder.path(), &["--force"]);
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("# mine"), "nothing of the old one is left");
}

#[test]
fn another_place_is_told_to_serve() {
    let folder = tempfile::tempdir().unwrap();
    let output = init(folder.path(), &["other.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("haft serve --config other.toml"), "{text}");
    assert!(folder.path().join("other.toml").exists());

    let output = init(folder.path(), &["no/such/other.toml"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("made the folder no/such\n"), "{text}");
    assert!(folder.path().join("no/such/other.toml").exists());

    let output = init(folder.path(), &["other.toml/haft.toml"]);
    assert_eq!(output.status.code(), Some(1), "a file is in the way");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("haft: cannot "), "{words}");
}
