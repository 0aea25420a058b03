//! `haft config`: whether a configuration is right, and what it comes to.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::{haft, told};

const FILE: &str = "[server]\nlisten = \"127.0.0.1:4242\"\nmax_runs = 3\n\n[loop]\nmax_rounds = 4\n\n\
                    [[model]]\nname = \"local\"\nadapter = \"openai-chat\"\nmodel = \"qwen3\"\n\
                    base_url = \"http://127.0.0.1:8080/v1?key=hunter2\"\napi_key_env = \"MY_KEY\"\n\
                    headers = { x-team = \"hunter2\" }\n";

#[test]
fn a_right_configuration_is_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("haft.toml"), FILE).unwrap();
    let mut command = haft(folder.path(), &["config", "check"]);
    command.env("MY_KEY", "hunter2");
    let (code, out, aside) = told(command, "");
    assert_eq!((code, aside.as_str()), (Some(0), ""));
    insta::assert_snapshot!("check", out);
    let (code, out, _) = told(
        {
            let mut command = haft(folder.path(), &["config", "check", "--json"]);
            command.env("MY_KEY", "hunter2");
            command
        },
        "",
    );
    assert_eq!(code, Some(0));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&told["ok"], &told["listen"]),
        (&true.into(), &"127.0.0.1:4242".into())
    );
}

#[test]
fn a_wrong_one_is_complained_about_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("haft.toml"), FILE).unwrap();
    let (code, _, aside) = told(haft(folder.path(), &["config", "show"]), "");
    assert_eq!(code, Some(0), "keys need not be there to be shown: {aside}");
    let (code, out, aside) = told(haft(folder.path(), &["config", "check"]), "");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(
        aside.starts_with("haft.toml:13:15: the environment variable `MY_KEY`"),
        "{aside}"
    );
    let (code, out, _) = told(haft(folder.path(), &["config", "check", "--json"]), "");
    assert_eq!(code, Some(2));
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&said["ok"], &said["file"], &said["line"]),
        (&false.into(), &"haft.toml".into(), &13.into())
    );
    for (key, words) in [("message", "`MY_KEY`"), ("help", "set it")] {
        assert!(said[key].as_str().unwrap().contains(words), "{said}");
    }
    std::fs::write(folder.path().join("slip.toml"), "[server]\nlisen = \"a\"\n").unwrap();
    for command in ["check", "show"] {
        let arguments = ["config", command, "--config", "slip.toml"];
        let (code, out, aside) = told(haft(folder.path(), &arguments), "");
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(
            aside.starts_with("slip.toml:2:1: unknown key `lisen`"),
            "{aside}"
        );
    }
    let arguments = ["config", "check", "--config", "gone.toml"];
    let (code, _, aside) = told(haft(folder.path(), &arguments), "");
    assert_eq!(code, Some(2));
    assert!(
        aside.starts_with("gone.toml: there is no such file"),
        "{aside}"
    );
}

#[test]
fn every_value_is_shown_with_where_it_comes_from_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("haft.toml"), FILE).unwrap();
    let show = |more: &[&str]| {
        let mut arguments = vec!["config", "show"];
        arguments.extend(more);
        let mut command = haft(folder.path(), &arguments);
        command.env("MY_KEY", "hunter2");
        command.env("HAFT_SERVER__MAX_RUNS", "9");
        let (code, out, aside) = told(command, "");
        assert_eq!((code, aside.as_str()), (Some(0), ""));
        assert!(!out.contains("hunter2"), "{out}");
        out
    };
    let out = show(&[]);
    let line = |key: &str| {
        let mut lines = out
            .lines()
            .filter(|line| line.starts_with(&format!("{key} = ")));
        let words: Vec<_> = lines.next().unwrap().split_whitespace().collect();
        words.join(" ")
    };
    assert_eq!(line("listen"), "listen = \"127.0.0.1:4242\" # haft.toml");
    assert_eq!(line("max_runs"), "max_runs = 9 # HAFT_SERVER__MAX_RUNS");
    assert_eq!(line("data_dir"), "data_dir = \"haft-data\" # default");
    assert_eq!(line("attempts"), "attempts = 5 # default");
    assert_eq!(line("headers"), "headers = { x-team = \"…\" }");
    assert!(
        !out.contains("deadline"),
        "what nobody set and has no default is left out: {out}"
    );
    let config: Value = serde_json::from_str(&show(&["--json"])).unwrap();
    assert_eq!(config["server"]["max_runs"]["value"], 9);
    assert_eq!(config["loop"]["retry"]["attempts"]["from"], "default");
    assert_eq!(config["model"][0]["name"], "local");
}

#[test]
fn sections_and_tables_without_keys_are_shown_and_mean_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[gateway]\n[loop]\ndefer = \"never\"\ndefer_above = 7\n[prompt]\nkey = \"k\"\n\
                [[prompt.section]]\nkey = \"a\"\ntitle = \"A\"\nbody = \"\"\"\nOne\nTwo\"\"\"\n\
                [[prompt.section.section]]\nkey = \"b\"\ntitle = \"B\"\n";
    std::fs::write(folder.path().join("haft.toml"), file).unwrap();
    let (_, out, _) = told(haft(folder.path(), &["config", "show"]), "");
    for words in [
        "[gateway]",
        "[[prompt.section]]\nkey = \"a\"\nbody = \"One\\nTwo\"\n",
        "section = [{ key = \"b\", title = \"B\" }]",
        "\ndefer = \"never\" ",
        "\ndefer_above = 7 ",
        "\nmax_result_bytes = 1048576 ",
    ] {
        assert!(out.contains(words), "{words} is not in {out}");
    }
    let check = |name: &str| {
        let arguments = ["config", "check", "--config", name, "--json"];
        let (_, out, aside) = told(haft(folder.path(), &arguments), "");
        let mut told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{aside}"));
        told["file"] = Value::Null;
        told
    };
    std::fs::write(folder.path().join("again.toml"), &out).unwrap();
    assert_eq!(check("again.toml"), check("haft.toml"));
    let (_, out, _) = told(haft(folder.path(), &["config", "show", "--json"]), "");
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["prompt"]["section"][0]["section"][0]["key"], "b");
    assert_eq!(shown["gateway"], serde_json::json!({}));
}

#[test]
fn a_word_that_is_wanted_is_told_with_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "[loop]\ndefer = true\n",
        "[mcp.a]\ncommand = \"a\"\ndefer = 1\n",
    ] {
        std::fs::write(folder.path().join("haft.toml"), file).unwrap();
        let (code, _, aside) = told(haft(folder.path(), &["config", "check"]), "");
        assert_eq!(code, Some(2));
        assert!(aside.contains("in quotes"), "{aside}");
        assert!(
            aside.contains("there is `auto`, `always` and `never`"),
            "{aside}"
        );
    }
}

#[test]
fn what_is_shown_is_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (_, out, _) = told(haft(folder.path(), &["config", "show"]), "");
    std::fs::write(folder.path().join("again.toml"), &out).unwrap();
    let arguments = ["config", "check", "--config", "again.toml"];
    let (code, _, aside) = told(haft(folder.path(), &arguments), "");
    assert_eq!(code, Some(0), "{aside}{out}");
}
