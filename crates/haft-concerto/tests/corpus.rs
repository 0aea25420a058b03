//! Programs with what they print. Every `corpus/**/*.conc` is compiled and run offline, with the mock
//! provider; beside it stand, where there is something to say,
//!
//! - `.out`: what it prints,
//! - `.err`: what it says after `runtime error: ` when it fails,
//! - `.diag`: what the compiler says.
//!
//! A folder with a `main.conc` is one program of several files. The first line may be
//! `// with: …`, the switches that the program is run with, as for `haft run` and `haft test`.
#![allow(clippy::expect_used)] // helpers of tests

mod case;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use haft_concerto::host::{Offline, TestOutcome};
use haft_concerto::load::Program;
use haft_concerto::vm::{Machine, Output};

use case::{Case, Switches, compare, programs};

#[derive(Clone, Default)]
struct Words(Arc<Mutex<String>>);

impl Words {
    fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().expect("nobody panics with it"))
    }
}

impl Output for Words {
    fn print(&mut self, text: &str) {
        self.0.lock().expect("nobody panics with it").push_str(text);
    }

    fn log(&mut self, line: &str) {
        self.print(&format!("{line}\n"));
    }
}

fn machine(program: &Arc<Program>, switches: &Switches, words: &Words) -> Machine {
    Machine::new(
        Arc::clone(program),
        switches.permissions.clone(),
        switches.limits,
        Box::new(words.clone()),
    )
}

fn execute(program: &Arc<Program>, switches: &Switches) -> (String, String) {
    let words = Words::default();
    let mut machine = machine(program, switches, &words);
    let ended = Offline::new(&mut machine, |machine, channel, payload| {
        let line = format!("[emit:{channel}] {payload}\n");
        machine.output().print(&line);
    })
    .run();
    (words.take(), ended.err().unwrap_or_default())
}

/// Every test on a machine of its own, as `haft test` says it.
fn test(program: &Arc<Program>, switches: &Switches) -> String {
    let words = Words::default();
    let mut said = String::new();
    for (place, test) in program.ir().tests.iter().enumerate() {
        let mut machine = machine(program, switches, &words);
        let name = &test.description;
        let outcome = Offline::new(&mut machine, |_, _, _| {}).test(place);
        said += &words.take();
        match outcome {
            TestOutcome::Passed(false) => writeln!(said, "PASS  {name}"),
            TestOutcome::Passed(true) => writeln!(said, "PASS  {name} (expected failure)"),
            TestOutcome::Failed(why, _) => writeln!(said, "FAIL  {name} -- {why}"),
        }
        .expect("writing to a string does not fail");
    }
    said
}

#[test]
fn every_program_of_the_corpus_prints_what_is_written_beside_it() {
    let (_, found) = programs();
    let only = std::env::var("HAFT_CORPUS").unwrap_or_default();
    let wanted = found
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(&only));
    compare(wanted.map(|path| {
        let case = Case::read(&path, "offline");
        let (printed, error) = match &case.program {
            None => Default::default(),
            Some(program) if case.switches.test => (test(program, &case.switches), String::new()),
            Some(program) => execute(program, &case.switches),
        };
        let ended = case.ended(&printed, &error);
        (path, ended)
    }));
}

#[test]
fn nothing_lies_beside_a_program_that_is_not_there() {
    fn look(directory: &Path) {
        for entry in fs::read_dir(directory).expect("the corpus is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                look(&path);
            } else {
                assert!(path.with_extension("conc").exists(), "{}", path.display());
            }
        }
    }
    look(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"));
}

#[test]
fn every_code_of_the_reference_is_shown_somewhere() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/diagnostics");
    let shown: String = fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|it| it == "diag"))
        .map(|path| fs::read_to_string(path).expect("it can be read"))
        .collect();
    let errors = [1, 2].into_iter().chain(10..=34);
    let errors = errors.map(|number| format!(": error[E{number:03}]: "));
    let warnings = (1..=7).map(|number| format!(": warning[W{number:03}]: "));
    for code in errors.chain(warnings) {
        assert!(shown.contains(&code), "no program earns `{code}`");
    }
}
