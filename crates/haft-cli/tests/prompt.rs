//! `haft prompt`: what a model would see.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::{haft, told};

fn render(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["prompt", "render"];
    all.extend(arguments);
    told(haft(folder, &all), "")
}

fn render_json(folder: &Path, arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    let (code, out, aside) = render(folder, &all);
    assert_eq!(code, Some(0), "{aside}");
    serde_json::from_str(&out).unwrap()
}

/// A folder with these files; those of folders below it, too.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

const GOLDEN: &str = r#"
[[prompt.section]]
key = "task"
title = "Task"
body = "Answer questions."

[[prompt.section]]
key = "ref"
title = "Reference"
body = "All API notes."
summary = "API notes."
visibility = "summary"
tools = ["clock"]
[[prompt.section.section]]
key = "limits"
title = "Limits"
body = "10 rps."
[[prompt.section.section]]
key = "errors"
title = "Errors"
body = "All error codes."
summary = "Error codes."
visibility = "summary"
tools = ["calculate"]

[[prompt.section]]
key = "old"
title = "Old"
body = "Obsolete."
enabled = false

[[prompt.section]]
key = "style"
title = "Style"
body = "Be brief."
"#;

#[test]
fn the_text_is_what_a_model_would_see() {
    let folder = folder(&[("haft.toml", GOLDEN)]);
    let (code, out, aside) = render(folder.path(), &[]);
    assert_eq!(code, Some(0), "{aside}");
    assert_eq!(
        out,
        "## 1. Task (task)\n\nAnswer questions.\n\n## 2. Reference (ref)\n\nAPI notes.\n\n---\n\
         [This section is summarized. To view full content, call `read_section` with key \"ref\".]\n\n\
         ## 4. Style (style)\n\nBe brief.\n"
    );
    let costs = "haft/prompt: 56 tokens of text";
    let counted = if cfg!(feature = "tokens") {
        costs
    } else {
        "haft/prompt"
    };
    for words in [counted, "read_section", "ref.limits"] {
        assert!(aside.contains(words), "{words} is not in {aside}");
    }
    assert!(!folder.path().join("haft-data").exists(), "nothing is kept");
}

#[test]
fn what_was_read_before_and_what_is_to_be_seen_otherwise_is_said_by_flags() {
    let folder = folder(&[("haft.toml", GOLDEN)]);
    let offered = |arguments: &[&str]| {
        let rendered = render_json(folder.path(), arguments);
        let tools = rendered["tools"].as_array().unwrap().iter();
        let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(offered(&[]), ["read_section"]);
    assert_eq!(offered(&["--open", "ref"]), ["clock", "read_section"]);
    let full = [
        "--visibility",
        "ref=full",
        "--visibility",
        "ref.errors=full",
    ];
    assert_eq!(offered(&full), ["clock", "calculate"]);
    let inner = ["--open", "ref.errors"];
    assert_eq!(offered(&inner), ["calculate", "read_section"]);

    let rendered = render_json(folder.path(), &["--open", "ref.errors"]);
    let states = rendered["sections"].as_array().unwrap().iter();
    let states: Vec<_> = states.map(|it| (&it["path"], &it["state"])).collect();
    assert_eq!(
        json!(states),
        json!([
            ["task", "shown"],
            ["ref", "summarized"],
            ["ref.limits", "hidden"],
            ["ref.errors", "shown"],
            ["old", "disabled"],
            ["style", "shown"]
        ])
    );
}

#[test]
fn reading_a_section_is_shown_as_the_model_is_told_it() {
    let folder = folder(&[("haft.toml", GOLDEN)]);
    let (code, out, aside) = render(folder.path(), &["--section", "ref.errors"]);
    assert_eq!(code, Some(0));
    let begin =
        "Content of section 'ref.errors':\n\n### 2.2. Errors (ref.errors)\n\nAll error codes.";
    assert!(out.starts_with(begin), "{out}");
    assert!(aside.contains("from the next request on 1 tool"), "{aside}");
    let (code, out, _) = render(folder.path(), &["--section", "old"]);
    assert_eq!(
        (code, out.as_str()),
        (Some(1), "Unknown section key: 'old'\n")
    );
    let read = render_json(folder.path(), &["--section", "task"]);
    assert_eq!(read["already_expanded"], true);
    assert_eq!(read["stays_open"], false);
    let read = render_json(folder.path(), &["--section", "ref"]);
    assert_eq!(read["stays_open"], true);
    assert_eq!(read["tools"][0]["section"], "ref");
}

#[test]
fn costs_are_those_of_the_text_and_of_the_definitions() {
    let folder = folder(&[("haft.toml", GOLDEN)]);
    let rendered = render_json(folder.path(), &["--open", "ref"]);
    let tokens = |value: &Value| value.as_u64().unwrap();
    let of_tools: u64 = rendered["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tokens(&tool["tokens"]))
        .sum();
    let costs = &rendered["tokens"];
    assert_eq!(tokens(&costs["tools"]), of_tools);
    assert_eq!(tokens(&costs["total"]), of_tools + tokens(&costs["text"]));
    let method = if cfg!(feature = "tokens") {
        "o200k_base"
    } else {
        "estimated"
    };
    assert_eq!(costs["counted"], method);
    assert!(tokens(&costs["text"]) > 56);
}

const REF: &str = "+++\ntitle = \"Reference\"\nsummary = \"Notes on ${product}.\"\n\
                   visibility = \"summary\"\ntools = [\"haft:calculate\"]\norder = 2\n+++\n\nAll notes.\n";

#[test]
fn sections_come_from_markdown_files_and_the_folders_beside_them() {
    let folder = folder(&[
        (
            "haft.toml",
            "[prompt]\nfolder = \"prompts\"\nparams = { product = \"haft\" }\n\
             [[prompt.section]]\nkey = \"task\"\ntitle = \"Task\"\nbody = \"\"\"\n  Be good.\n    Now.\n\"\"\"\n",
        ),
        ("prompts/ref.md", REF),
        (
            "prompts/ref/b.md",
            "+++\ntitle = \"B\"\nkey = \"second\"\n+++\nbe\n",
        ),
        (
            "prompts/ref/a.md",
            "+++\r\ntitle = \"A\"\r\n+++\r\na\r\n\r\nb\r\n",
        ),
        (
            "prompts/style.md",
            "+++\ntitle = \"Style\"\norder = -1\n+++\n",
        ),
        ("prompts/.hidden.md", "not read"),
        ("prompts/notes.txt", "not read"),
    ]);
    let (code, out, aside) = render(folder.path(), &["--open", "ref", "--param", "product=x"]);
    assert_eq!(code, Some(0), "{aside}");
    let without_examples: Vec<_> = out
        .split("\n\n")
        .filter(|it| !it.starts_with("Tools:"))
        .collect();
    assert_eq!(
        without_examples.join("\n\n"),
        "## 1. Task (task)\n\nBe good.\n  Now.\n\n## 2. Style (style)\n\n## 3. Reference (ref)\n\n\
         All notes.\n\n### 3.1. A (ref.a)\n\na\n\nb\n\n### 3.2. B (ref.second)\n\nbe\n"
    );
    let (_, out, _) = render(folder.path(), &[]);
    assert!(out.contains("\n\nNotes on haft.\n\n---\n"), "{out}");
    let (_, out, _) = told(haft(folder.path(), &["config", "check"]), "");
    assert!(out.contains("haft/prompt, 5 sections"), "{out}");
}

/// What is told of a Markdown file and of a configuration beside it.
fn complaint(toml: &str, markdown: Option<&str>) -> String {
    let toml = match markdown {
        Some(_) => format!("[prompt]\nfolder = \"p\"\n{toml}"),
        None => toml.to_owned(),
    };
    let mut files = vec![("haft.toml", toml.as_str())];
    files.extend(markdown.map(|text| ("p/a.md", text)));
    let folder = folder(&files);
    let (code, out, aside) = render(folder.path(), &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{aside}");
    aside
}

/// A section of a configuration.
fn section(key: &str, more: &str) -> String {
    format!("[[prompt.section]]\nkey = \"{key}\"\ntitle = \"T\"\n{more}\n")
}

#[test]
fn what_is_wrong_in_the_configuration_is_told_with_its_line() {
    for (toml, begin, words) in [
        (
            section("a.b", ""),
            "haft.toml:2:7: ",
            "Invalid section key 'a.b': only [a-z0-9_-] is allowed",
        ),
        (
            section("a", "body = \"\"\"\nIt is\n  $5.\n\"\"\""),
            "haft.toml:6:3: ",
            "write `$$` for a dollar sign",
        ),
        (
            section("a", "visibility = \"summary\""),
            "haft.toml:1:1: ",
            "to be shown as a summary and has none",
        ),
        (
            section("a", "visibility = \"brief\""),
            "haft.toml:4:14: ",
            "there is `full` and `summary`",
        ),
        (
            section("a", "colour = 1"),
            "haft.toml:4:1: ",
            "unknown key `colour`",
        ),
        (
            section("a", "tools = [\"clock\", \"calculte\"]"),
            "haft.toml:4:19: ",
            "did you mean `calculate`?",
        ),
        (
            section("a", "server = \"files\""),
            "haft.toml:2:7: ",
            "a section that is a server has no `key` of its own",
        ),
        (
            String::from("[[prompt.section]]\nserver = \"files\"\n"),
            "haft.toml:2:10: ",
            "describe it in `[mcp.files]`",
        ),
        (
            String::from("[[prompt.section]]\nkey = \"a\"\n"),
            "haft.toml:1:1: ",
            "this section has no `title`",
        ),
        (
            String::from("[prompt]\nfolder = \"nowhere\"\n"),
            "haft.toml:2:10: ",
            "the folder `nowhere` cannot be read",
        ),
    ] {
        let told = complaint(&toml, None);
        assert!(told.starts_with(begin), "{begin} does not begin {told}");
        assert!(told.contains(words), "{words} is not in {told}");
    }
}

#[test]
fn what_is_wrong_in_a_markdown_file_is_told_with_its_line() {
    for (toml, markdown, begin, words) in [
        (
            section("a", ""),
            "+++\ntitle = \"T\"\n+++\n",
            "p/a.md:1:1: ",
            "there are two sections `a`",
        ),
        (
            section("b", "tools = [\"clock\"]"),
            "+++\ntitle = \"T\"\ntools = [\"clock\"]\n+++\n",
            "p/a.md:3:10: ",
            "is in section `b` and again in section `a`",
        ),
        (
            String::new(),
            "+++\ntitle = T\n+++\n",
            "p/a.md:2:9: ",
            "this is no TOML",
        ),
        (
            String::new(),
            "+++\ntitle = \"T\"\nsumary = \"x\"\n+++\n",
            "p/a.md:3:1: ",
            "did you mean `summary`?",
        ),
        (
            String::new(),
            "---\ntitle: T\n---\n",
            "p/a.md:1:1: ",
            "looks like YAML",
        ),
        (
            String::new(),
            "+++\ntitle = \"T\"\n",
            "p/a.md:1:1: ",
            "write another line `+++` behind the last",
        ),
        (
            String::new(),
            "+++\ntitle = \"T\"\n+++\n\nFor ${5}.\n",
            "p/a.md:5:5: ",
            "the body of section `a`, line 2: ",
        ),
        (String::new(), "Just words.\n", "p/a.md:1:1: ", "no `title`"),
    ] {
        let told = complaint(&toml, Some(markdown));
        assert!(told.starts_with(begin), "{begin} does not begin {told}");
        assert!(told.contains(words), "{words} is not in {told}");
    }
}

/// Both the check and the rendering tell what is wrong, in the same words.
fn told_by_both(folder: &Path) -> String {
    let (code, _, checked) = told(haft(folder, &["config", "check"]), "");
    assert_eq!(code, Some(2), "{checked}");
    let (code, _, rendered) = render(folder, &[]);
    assert_eq!(code, Some(2), "{rendered}");
    assert_eq!(
        checked.split("= help").next(),
        rendered.split("= help").next()
    );
    checked
}

#[test]
fn a_prompt_that_cannot_be_rendered_is_not_right() {
    for (file, text, begin, words) in [
        (
            "a.md",
            "+++\ntitle = \"T\"\n+++\n\nFor\n  ${who}.\n",
            "p/a.md:6:3: ",
            "there is no parameter `who`",
        ),
        (
            "a.md",
            "+++\ntitle = \"T\"\nsummary = \"On $what.\"\n+++\n",
            "p/a.md:3:15: ",
            "say it in `[prompt.params]` of the configuration: `what = \"…\"`",
        ),
        (
            "a.md",
            "+++\ntitle = \"T\"\ntools = [\"calculte\"]\n+++\n",
            "p/a.md:3:10: ",
            "did you mean `calculate`?",
        ),
        (
            "a.md",
            "+++\ntitle = \"T\"\norder = \"2\"\n+++\n",
            "p/a.md:3:9: expected a whole number, found text",
            "write it without quotes",
        ),
        (
            "README.md",
            "# About these files\n",
            "p/README.md:1:1: this section has no `title`",
            "a file that is no section has its place in another folder",
        ),
        (
            "README.md",
            "+++\ntitle = \"T\"\n+++\n",
            "p/README.md:1:1: the file's name is the section's key",
            "rename the file, or write `key = \"…\"` in it",
        ),
        (
            "notes.txt",
            "no section",
            "haft.toml:2:10: the folder `p` has no Markdown file",
            "a file such as `task.md`",
        ),
    ] {
        let path = format!("p/{file}");
        let folder = folder(&[("haft.toml", "[prompt]\nfolder = \"p\"\n"), (&path, text)]);
        let told = told_by_both(folder.path());
        assert!(told.starts_with(begin), "{begin} does not begin {told}");
        assert!(told.contains(words), "{words} is not in {told}");
    }
}

#[test]
fn a_server_without_a_description_is_told_where_to_write_one() {
    let toml = "[mcp.files]\ncommand = \"nobody\"\n\
                [[prompt.section]]\nserver = \"files\"\nvisibility = \"summary\"\n";
    let folder = folder(&[("haft.toml", toml)]);
    let told = told_by_both(folder.path());
    let words = "write `description = \"…\"` in `[mcp.files]`, or `summary = \"…\"` here";
    assert!(told.contains(words), "{told}");
}

#[test]
fn a_mark_of_the_encoding_is_no_text() {
    let folder = folder(&[
        ("haft.toml", "[prompt]\nfolder = \"p\"\n"),
        ("p/a.md", "\u{feff}+++\ntitle = \"T\"\n+++\nHi.\n"),
    ]);
    let (code, out, aside) = render(folder.path(), &[]);
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "## 1. T (a)\n\nHi.\n"),
        "{aside}"
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_among_the_files_is_refused_and_not_waited_for() {
    let folder = folder(&[
        ("haft.toml", "[prompt]\nfolder = \"p\"\n"),
        ("p/a.md", "+++\ntitle = \"T\"\n+++\n"),
    ]);
    let pipe = folder.path().join("p/pipe.md");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    let told = told_by_both(folder.path());
    assert!(
        told.contains("`p/pipe.md` cannot be read: it is no file"),
        "{told}"
    );
}

#[test]
fn a_parameter_that_nothing_uses_is_told() {
    let folder = folder(&[("haft.toml", &GOLDEN.replace("10 rps.", "$limit rps."))]);
    let arguments = [
        "--param", "limit=1", "--param", "limits=2", "--param", "x=3",
    ];
    let (code, _, aside) = render(folder.path(), &arguments);
    assert_eq!(code, Some(0));
    for words in [
        "note: nothing uses `--param limits`: did you mean `limit`?",
        "note: nothing uses `--param x`: no text has a placeholder `$x`",
    ] {
        assert!(aside.contains(words), "{words} is not in {aside}");
    }
    assert!(!aside.contains("`--param limit`"), "{aside}");
}

#[test]
fn a_folder_without_its_section_is_told() {
    let folder = folder(&[
        ("haft.toml", "[prompt]\nfolder = \"p\"\n"),
        ("p/ref/a.md", "+++\ntitle = \"A\"\n+++\n"),
    ]);
    let (code, _, aside) = render(folder.path(), &[]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("write `p/ref.md`"), "{aside}");
}

#[test]
fn what_the_command_line_says_wrong_is_told() {
    let folder = folder(&[("haft.toml", &GOLDEN.replace("10 rps.", "$limit rps."))]);
    for (arguments, words) in [
        (&[][..], "say it with `--param limit=VALUE`"),
        (&["--param", "limit"], "write `NAME=VALUE`"),
        (&["--open", "reff"], "did you mean `ref`?"),
        (&["--visibility", "ref"], "write `PATH=full`"),
        (&["--visibility", "ref=half"], "`half` is no visibility"),
        (&["--visibility", "nowhere=full"], "there is `task`, `ref`"),
        (
            &["--param", "limit=1", "--visibility", "style=summary"],
            "section `style` is to be shown as a summary and has none",
        ),
    ] {
        let (code, out, aside) = render(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{aside}");
        assert!(aside.contains(words), "{words} is not in {aside}");
    }
    let empty = tempfile::tempdir().unwrap();
    let (code, _, aside) = render(empty.path(), &[]);
    assert_eq!(code, Some(2));
    assert!(
        aside.contains("write `[[prompt.section]]` entries"),
        "{aside}"
    );
}

#[test]
fn what_stands_in_a_file_does_not_steer_the_terminal() {
    let toml = "[[prompt.section]]\nkey = \"a\"\ntitle = \"A\"\nbody = \"x\\u001b[2Jy\"\n";
    let folder = folder(&[("haft.toml", toml)]);
    let (_, out, _) = render(folder.path(), &[]);
    assert!(out.contains("x\u{fffd}[2Jy"), "{out:?}");
    let rendered = render_json(folder.path(), &[]);
    assert!(rendered["text"].as_str().unwrap().contains("x\u{1b}[2Jy"));
}
