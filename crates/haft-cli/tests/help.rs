//! What `haft` says about itself, and what shells know of it.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::Command;

use support::{haft, told};

#[test]
fn help_reads_well() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &[][..],
        &["run"],
        &["check"],
        &["compile"],
        &["test"],
        &["fmt"],
        &["repl"],
        &["init"],
        &["backup"],
        &["restore"],
        &["chat"],
        &["tools"],
        &["tools", "list"],
        &["tools", "show"],
        &["tools", "call"],
        &["prompt"],
        &["prompt", "render"],
        &["responses"],
        &["responses", "list"],
        &["responses", "show"],
        &["responses", "wait"],
        &["responses", "delete"],
        &["trace"],
        &["mcp"],
        &["mcp", "import"],
        &["mcp", "add"],
        &["mcp", "remove"],
        &["mcp", "install"],
        &["mcp", "cost"],
        &["mcp", "list"],
        &["mcp", "test"],
        &["mcp", "tools"],
        &["mcp", "call"],
        &["mcp", "status"],
        &["mcp", "calls"],
        &["mcp", "accept"],
        &["mcp", "login"],
        &["mcp", "serve"],
        &["config"],
        &["config", "check"],
        &["config", "show"],
        &["config", "reference"],
        &["config", "schema"],
        &["completions"],
    ] {
        let mut all = arguments.to_vec();
        all.push("--help");
        let (code, out, aside) = told(haft(folder.path(), &all), "");
        assert_eq!((code, aside.as_str()), (Some(0), ""));
        let name = ["help"].iter().chain(arguments).copied();
        let name: Vec<&str> = name.collect();
        insta::assert_snapshot!(name.join("_"), out);
    }
}

#[test]
fn a_wrong_use_is_told_and_ends_with_two() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["dance"][..],
        &["chat", "--local", "--continue"],
        &["responses", "list", "--limit", "0"],
        &["responses", "list", "--limit", "3", "--all"],
        &["--color", "pink"],
        &["completions", "csh"],
    ] {
        let (code, out, aside) = told(haft(folder.path(), arguments), "");
        assert_eq!((code, out.as_str()), (Some(2), ""), "{aside}");
        assert!(aside.starts_with("error: "), "{aside}");
    }
}

#[test]
fn a_wrong_number_is_told_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (
            &["responses", "list", "--limit", "0"][..],
            "it must be at least 1",
        ),
        (
            &["keys", "add", "ci", "--requests-per-minute", "0"],
            "it must be at least 1",
        ),
        (
            &["responses", "wait", "resp_1", "--timeout", "5"],
            "write `5s`",
        ),
    ] {
        let (code, _, aside) = told(haft(folder.path(), arguments), "");
        assert_eq!(code, Some(2));
        assert!(aside.contains(words), "{aside}");
    }
}

#[test]
fn every_shell_gets_a_script() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, out, aside) = told(haft(folder.path(), &["completions", shell]), "");
        assert_eq!((code, aside.as_str()), (Some(0), ""));
        assert!(
            out.contains("responses") && out.contains("completions"),
            "{shell}"
        );
    }
}

/// What bash offers behind these words.
fn completed(folder: &std::path::Path, words: &[&str]) -> Vec<String> {
    let script = "source <($1 completions bash); shift; COMP_WORDS=(\"$@\"); \
                  COMP_CWORD=$(($# - 1)); COMP_LINE=\"$*\"; COMP_POINT=${#COMP_LINE}; \
                  _haft haft \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                  printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = Command::new("bash");
    command
        .args(["--norc", "--noprofile", "-eu", "-c", script, "bash"])
        .arg(env!("CARGO_BIN_EXE_haft"))
        .args(words)
        .current_dir(folder);
    let (code, out, aside) = told(command, "");
    assert_eq!((code, aside.as_str()), (Some(0), ""), "{words:?}");
    out.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(completed(folder.path(), &["haft", "resp"]), ["responses"]);
    let commands = completed(folder.path(), &["haft", "responses", "sh"]);
    assert_eq!(commands, ["show"]);
    assert_eq!(
        completed(folder.path(), &["haft", "comp"]),
        ["compile", "completions"]
    );
    let flags = completed(folder.path(), &["haft", "run", "--allow-f"]);
    assert_eq!(flags, ["--allow-fs"]);
    let flags = completed(folder.path(), &["haft", "chat", "--cont"]);
    assert_eq!(flags, ["--continue"]);
    let colors = completed(folder.path(), &["haft", "--color", ""]);
    assert_eq!(colors, ["auto", "always", "never"]);
}

#[test]
fn colours_are_only_where_somebody_sees_them() {
    let folder = tempfile::tempdir().unwrap();
    let escapes = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = haft(folder.path(), arguments);
        command.env_remove("NO_COLOR");
        command.envs(variables.iter().copied());
        let (_, out, _) = told(command, "");
        out.contains('\u{1b}')
    };
    assert!(!escapes(&["tools", "list"], &[]), "a pipe");
    assert!(escapes(&["tools", "list"], &[("CLICOLOR_FORCE", "1")]));
    assert!(escapes(&["tools", "list", "--color", "always"], &[]));
    assert!(!escapes(
        &["tools", "list", "--color=never"],
        &[("CLICOLOR_FORCE", "1")]
    ));
    assert!(escapes(&["--color", "always", "--help"], &[]));
    assert!(!escapes(&["--help"], &[]));
}

#[test]
fn whoever_has_seen_enough_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let line = format!(
        "{} completions bash | head -n 1",
        env!("CARGO_BIN_EXE_haft")
    );
    command.args(["-c", &line]).current_dir(folder.path());
    let (_, _, aside) = told(command, "");
    assert_eq!(aside, "");
}
