//! Formatting keeps what a program means and every comment, and has nothing to do the second time.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use haft_concerto::diagnostic::Diagnostics;
use haft_concerto::lex::{TokenKind, lex};
use haft_concerto::source::SourceMap;
use haft_concerto::{Connections, Options, Source, compile, format};
use proptest::prelude::*;

const PROGRAMS: [&str; 10] = [
    include_str!("programs/a.conc"),
    include_str!("programs/b.conc"),
    include_str!("programs/c.conc"),
    include_str!("programs/d.conc"),
    include_str!("programs/e.conc"),
    include_str!("programs/f.conc"),
    include_str!("programs/g.conc"),
    include_str!("programs/h.conc"),
    include_str!("programs/i.conc"),
    include_str!("programs/every.conc"),
];

/// The program as IR, without places.
fn meaning(text: &str) -> String {
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(&Source::new("t.conc", text), &options);
    let ir = compiled.ir.as_ref();
    let ir = ir.unwrap_or_else(|| panic!("{}\n{text}", compiled.render()));
    let mut ir = serde_json::to_value(ir).unwrap();
    without_places(&mut ir);
    ir.to_string()
}

fn without_places(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            members.remove("span");
            members.values_mut().for_each(without_places);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(without_places),
        _ => {}
    }
}

fn words(text: &str) -> (Vec<String>, Vec<String>) {
    let mut map = SourceMap::new();
    let file = map.add("t.conc", text.to_owned()).unwrap();
    let lexed = lex(file, &mut Diagnostics::default());
    let slice = |span| file.slice(span).to_owned();
    let words = lexed.tokens.iter().filter(|it| it.kind != TokenKind::End);
    let words = words.map(|it| slice(it.span)).collect();
    let mut comments: Vec<String> = lexed.comments.iter().map(|it| slice(it.span)).collect();
    comments.sort();
    (words, comments)
}

fn holds(text: &str) {
    let once = format(text).unwrap();
    assert_eq!(
        words(&once).1,
        words(text).1,
        "comments of\n{text}\nin\n{once}"
    );
    assert_eq!(meaning(&once), meaning(text), "{once}");
    let twice = format(&once).unwrap();
    assert_eq!(twice, once, "the second time, of\n{text}");
}

#[test]
fn programs_keep_their_meaning() {
    PROGRAMS.into_iter().for_each(holds);
}

#[test]
fn programs_of_the_corpus_keep_their_meaning() {
    fn look(folder: &Path, seen: &mut usize) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Several files are compiled elsewhere.
                if !path.join("main.conc").exists() {
                    look(&path, seen);
                }
            } else if path.extension().is_some_and(|it| it == "conc")
                && !path.with_extension("diag").exists()
                && !path.ends_with("server_references.conc")
            {
                *seen += 1;
                holds(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut seen = 0;
    look(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"),
        &mut seen,
    );
    assert!(seen > 150, "{seen}");
}

/// The words of a program with other blanks, lines and comments between them.
fn scattered() -> impl Strategy<Value = String> {
    let filler = prop_oneof![
        12 => Just(" "),
        2 => Just("\n"),
        1 => Just("\n\n\n"),
        1 => Just(" /* in */ "),
        1 => Just("\n// own\n"),
        1 => Just(" // behind\n"),
        1 => Just("\n\n/* two\n   lines */\n"),
    ];
    (0..PROGRAMS.len(), prop::collection::vec(filler, 1..200)).prop_map(|(index, fillers)| {
        let (words, _) = words(PROGRAMS[index]);
        let mut text = String::new();
        let mut inside = 0;
        for (place, word) in words.iter().enumerate() {
            let is_text = |it: &str| it.starts_with('"') || it.starts_with("r#");
            // Between the pieces of an interpolated string nothing is put: it is copied as it is.
            let begins = is_text(word) && word.ends_with("${");
            let ends = word.starts_with('}') && (word.ends_with('"'));
            text.push_str(word);
            inside += usize::from(begins);
            inside -= usize::from(ends && inside > 0);
            text.push_str(if inside == 0 {
                fillers[place % fillers.len()]
            } else {
                " "
            });
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scattered_programs_keep_their_meaning(text in scattered()) {
        holds(&text);
    }
}
