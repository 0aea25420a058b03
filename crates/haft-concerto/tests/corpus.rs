//! Programs with what they print: every `corpus/**/*.conc` is compiled and run offline, with the mock
//! provider, and prints what is in the `.out` file beside it. A program that fails has what it says
//! after `runtime error: ` in a `.err` file.
#![allow(clippy::expect_used)] // helpers of tests

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_concerto::host::Offline;
use haft_concerto::natives::Permissions;
use haft_concerto::vm::{Limits, Machine, Output};
use haft_concerto::{Connections, Options, Source, compile, load};

#[derive(Clone, Default)]
struct Words(Arc<Mutex<String>>);

impl Output for Words {
    fn print(&mut self, text: &str) {
        self.0.lock().expect("nobody panics with it").push_str(text);
    }

    fn log(&mut self, line: &str) {
        self.print(&format!("{line}\n"));
    }
}

fn programs(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the corpus is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            programs(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "conc")
        {
            found.push(path);
        }
    }
}

fn run(path: &Path) -> Result<(String, String), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(&Source::new("program.conc", &text), &options);
    let ir = compiled.ir.clone().ok_or_else(|| compiled.render())?;
    // Through its text, so that what is written is what is run.
    let ir = haft_concerto::ir::Module::from_json(&ir.to_json()).map_err(|e| e.to_string())?;
    let program = load::load(ir).map_err(|error| error.to_string())?;
    let words = Words::default();
    let mut machine = Machine::new(
        program,
        Permissions::default(),
        Limits::default(),
        Box::new(words.clone()),
    );
    let ended = Offline::new(&mut machine, |machine, channel, payload| {
        let line = format!("[emit:{channel}] {payload}\n");
        machine.output().print(&without_durations(&line));
    })
    .run();
    let said = words.0.lock().expect("nobody panics with it").clone();
    Ok((said, ended.err().unwrap_or_default()))
}

/// How long something took is never the same twice.
fn without_durations(line: &str) -> String {
    match line.split_once("\"duration_ms\": ") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}\"duration_ms\": 0{rest}")
        }
        None => line.to_owned(),
    }
}

#[test]
fn every_program_of_the_corpus_prints_what_is_written_beside_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut found = Vec::new();
    programs(&root, &mut found);
    found.sort();
    assert!(found.len() > 60, "the corpus is there: {}", found.len());
    let mut wrong = Vec::new();
    for path in &found {
        let expected = fs::read_to_string(path.with_extension("out")).unwrap_or_default();
        let error = fs::read_to_string(path.with_extension("err")).unwrap_or_default();
        match run(path) {
            Ok((said, ended)) if said == expected && ended == error.trim_end() => {}
            Ok((said, ended)) => wrong.push(format!(
                "{}\n--- expected\n{expected}{error}--- got\n{said}{ended}\n",
                path.display()
            )),
            Err(text) => wrong.push(format!("{}\n{text}\n", path.display())),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        found.len(),
        wrong.join("\n")
    );
}
