//! The grammar for editors knows the words that the lexer knows.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use haft_concerto::lex::{Keyword, Punct};
use haft_concerto::symbols::TYPES;
use serde_json::Value;

fn editor(file: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vscode");
    let text = fs::read_to_string(folder.join(file)).expect("the file is there");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// What stands between `\b(?:` and `)\b` in the patterns of a part of the grammar.
fn words(grammar: &Value, part: &str) -> Vec<String> {
    let patterns = grammar["repository"][part]["patterns"].as_array().unwrap();
    patterns
        .iter()
        .filter_map(|pattern| {
            let text = pattern["match"].as_str()?.strip_prefix("\\b(?:")?;
            Some(text.split_once(')')?.0.to_owned())
        })
        .flat_map(|list| list.split('|').map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn every_keyword_is_coloured_and_nothing_else_is() {
    let grammar = editor("syntaxes/concerto.tmLanguage.json");
    let coloured = words(&grammar, "keywords");
    let once: BTreeSet<&str> = coloured.iter().map(String::as_str).collect();
    assert_eq!(once.len(), coloured.len(), "a word has two colours");
    let known: BTreeSet<&str> = Keyword::ALL.iter().map(|word| word.text()).collect();
    assert_eq!(once, known);
}

#[test]
fn every_type_that_nobody_declares_is_coloured() {
    let grammar = editor("syntaxes/concerto.tmLanguage.json");
    let coloured = words(&grammar, "types");
    for ty in TYPES {
        assert!(coloured.iter().any(|it| it == ty), "`{ty}` has no colour");
    }
}

/// The operators as the grammar's pattern lists them: whole ones, and a class of single characters.
#[test]
fn every_operator_is_coloured() {
    let grammar = editor("syntaxes/concerto.tmLanguage.json");
    let pattern = grammar["repository"]["operators"]["patterns"][0]["match"]
        .as_str()
        .unwrap()
        .replace('\\', "");
    let (whole, class) = pattern.split_once("|[").expect("a class comes last");
    let punctuation = ["::", ".", ",", ";", ":", "(", ")", "{", "}", "[", "]"];
    for it in Punct::ALL {
        let text = it.text();
        let coloured = if text.len() == 1 {
            class.contains(text) || whole.starts_with(text) || whole.contains(&format!("|{text}|"))
        } else {
            whole.contains(text)
        };
        assert!(
            coloured || punctuation.contains(&text),
            "`{text}` has no colour"
        );
    }
}

#[test]
fn the_package_names_files_that_are_there() {
    let package = editor("package.json");
    let contributes = &package["contributes"];
    editor(
        contributes["languages"][0]["configuration"]
            .as_str()
            .unwrap(),
    );
    let grammar = editor(contributes["grammars"][0]["path"].as_str().unwrap());
    assert_eq!(
        grammar["scopeName"],
        contributes["grammars"][0]["scopeName"]
    );
    assert_eq!(contributes["languages"][0]["extensions"][0], ".conc");
}

/// Every `#name` that is included is a part of the grammar.
#[test]
fn the_grammar_includes_only_what_it_has() {
    fn look(value: &Value, repository: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(name) = members.get("include").and_then(Value::as_str) {
                    let name = name.strip_prefix('#').expect("only its own parts");
                    assert!(repository.get(name).is_some(), "`{name}` is not there");
                }
                members.values().for_each(|it| look(it, repository));
            }
            Value::Array(list) => list.iter().for_each(|it| look(it, repository)),
            _ => {}
        }
    }
    let grammar = editor("syntaxes/concerto.tmLanguage.json");
    look(&grammar, &grammar["repository"]);
}
