//! MCP servers as sections of a prompt.

use std::path::Path;

use serde_json::Value;

use crate::kit::{fake, folder};
use crate::support::{haft, told};

const SECTION: &str = "[[prompt.section]]\nserver = \"Zeta\"\nvisibility = \"summary\"\n";

fn render(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["prompt", "render"];
    all.extend(arguments);
    told(haft(folder, &all), "")
}

#[test]
fn a_server_is_a_section_with_its_name_its_description_and_its_tools() {
    let server = fake("Zeta", "modern", "description = \"Weather for $5\"");
    let folder = folder(&format!("{SECTION}{server}"));
    let (code, out, aside) = render(folder.path(), &[]);
    assert_eq!(code, Some(0), "{aside}");
    assert_eq!(
        out,
        "## 1. Zeta (zeta)\n\nWeather for $5\n\n---\n[This section is summarized. To view full \
         content, call `read_section` with key \"zeta\".]\n"
    );
    assert!(!aside.contains("Zeta__"), "{aside}");

    let (code, out, aside) = render(folder.path(), &["--section", "zeta", "--json"]);
    assert_eq!(code, Some(0), "{aside}");
    let read: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        read["text"],
        "Content of section 'zeta':\n\n## 1. Zeta (zeta)"
    );
    let tools = read["tools"].as_array().unwrap();
    assert!(tools.len() > 10, "{read}");
    let is_its_own = |tool: &Value| tool["name"].as_str().unwrap().starts_with("Zeta__");
    assert!(tools.iter().all(is_its_own), "{read}");
}

#[test]
fn a_server_that_nothing_is_said_of_has_no_summary_unless_the_section_gives_one() {
    let server = fake("Zeta", "modern", "");
    let silent = folder(&format!("{SECTION}{server}"));
    let (code, _, aside) = render(silent.path(), &[]);
    assert_eq!(code, Some(2));
    assert!(
        aside.starts_with("haft.toml:1:1: ") && aside.contains("as a summary and has none"),
        "{aside}"
    );
    let told = folder(&format!("{SECTION}summary = \"All of it.\"\n{server}"));
    let (code, out, aside) = render(told.path(), &[]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(out.contains("\n\nAll of it.\n\n---\n"), "{out}");
}

#[test]
fn a_server_that_does_not_answer_is_noted_and_the_rest_is_shown() {
    let server = fake("Zeta", "exits-at-once", "description = \"Weather\"");
    let folder = folder(&format!("{SECTION}{server}"));
    let (code, out, aside) = render(folder.path(), &["--open", "zeta"]);
    assert_eq!((code, out.as_str()), (Some(0), "## 1. Zeta (zeta)\n"));
    assert!(aside.contains("note: "), "{aside}");
}
