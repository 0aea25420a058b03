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

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_concerto::host::{Offline, TestOutcome};
use haft_concerto::ir::Module;
use haft_concerto::load::{self, Program};
use haft_concerto::natives::{Grant, Permissions};
use haft_concerto::vm::{Limits, Machine, Output};
use haft_concerto::{Connections, Options, Source, compile};

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

/// What a program is run with.
#[derive(Default)]
struct Switches {
    permissions: Permissions,
    limits: Limits,
    /// Its tests are run, not its entry.
    test: bool,
    servers: Vec<String>,
    /// Only these connections are known.
    connections: Option<Vec<String>>,
}

impl Switches {
    fn read(text: &str) -> Self {
        let mut switches = Self::default();
        let first = text.lines().next().unwrap_or_default();
        for word in first.strip_prefix("// with: ").unwrap_or("").split(' ') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let grant = || match value {
                "" => Grant::Everything,
                names => Grant::Only(names.split(',').map(str::to_owned).collect()),
            };
            let number = || value.parse().expect("a limit is a number");
            match name {
                "--allow-fs" => switches.permissions.fs = grant(),
                "--allow-net" => switches.permissions.net = grant(),
                "--allow-env" => switches.permissions.env = grant(),
                "--max-depth" => switches.limits.depth = number(),
                "--max-steps" => switches.limits.steps = u64::try_from(number()).ok(),
                "--max-memory" => switches.limits.memory = number(),
                "--test" => switches.test = true,
                "--server" => switches.servers.push(value.to_owned()),
                "--connection" => switches.connections = Some(vec![value.to_owned()]),
                "" => {}
                other => panic!("`{other}` is no switch of the corpus"),
            }
        }
        switches
    }
}

/// The programs below a directory.
fn programs(directory: &Path, found: &mut Vec<PathBuf>) {
    let main = directory.join("main.conc");
    if main.exists() {
        found.push(main);
        return;
    }
    for entry in fs::read_dir(directory).expect("the corpus is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|it| it == "conc") {
            found.push(path);
        }
    }
}

/// The other files of a program in a folder of its own.
fn modules(main: &Path) -> BTreeMap<String, String> {
    fn gather(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(directory).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                gather(root, &path, files);
            } else if path.extension().is_some_and(|it| it == "conc") {
                let name = path.strip_prefix(root).expect("it is below the root");
                let text = fs::read_to_string(&path).expect("it can be read");
                files.insert(name.to_string_lossy().into_owned(), text);
            }
        }
    }
    let mut files = BTreeMap::new();
    let folder = main.parent().expect("a file is in a folder");
    if main.ends_with("main.conc") {
        gather(folder, folder, &mut files);
    }
    files
}

/// What a program did.
#[derive(Default, PartialEq, Eq)]
struct Ended {
    diagnostics: String,
    printed: String,
    error: String,
}

impl Ended {
    /// What is written beside a program.
    fn expected(path: &Path) -> Self {
        let read = |extension| fs::read_to_string(path.with_extension(extension));
        Self {
            diagnostics: read("diag").unwrap_or_default(),
            printed: read("out").unwrap_or_default(),
            error: read("err").unwrap_or_default().trim_end().to_owned(),
        }
    }

    fn show(&self) -> String {
        let Self {
            diagnostics,
            printed,
            error,
        } = self;
        format!("{diagnostics}{printed}{error}\n")
    }
}

/// A folder for files that programs write, which is empty at first.
fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

fn run(path: &Path, with_diagnostics: bool) -> Ended {
    let text = fs::read_to_string(path).expect("it can be read");
    let scratch = scratch();
    let scratch = scratch.to_str().expect("its name is text");
    let text = text.replace("SCRATCH", scratch);
    let switches = Switches::read(&text);
    let options = Options {
        connections: match &switches.connections {
            Some(names) => Connections::Known(names.clone()),
            None => Connections::Any,
        },
        servers: switches.servers.clone(),
        ..Options::default()
    };
    let files = modules(path);
    let compiled = compile(&Source::new("main.conc", &text).with(&files), &options);
    let diagnostics = if with_diagnostics || compiled.has_errors() {
        compiled.render()
    } else {
        String::new()
    };
    let mut ended = Ended {
        diagnostics,
        ..Ended::default()
    };
    let Some(ir) = compiled.ir else {
        return ended;
    };
    // Through its text, so that what is written is what is run.
    let ir = Module::from_json(&ir.to_json()).expect("what is written can be read");
    let program = load::load(ir).expect("what is compiled can be loaded");
    (ended.printed, ended.error) = if switches.test {
        (test(&program, &switches), String::new())
    } else {
        execute(&program, &switches)
    };
    ended.printed = ended.printed.replace(scratch, "SCRATCH");
    ended.error = ended.error.replace(scratch, "SCRATCH");
    ended
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
        machine.output().print(&without_durations(&line));
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
            TestOutcome::Failed(why) => writeln!(said, "FAIL  {name} -- {why}"),
        }
        .expect("writing to a string does not fail");
    }
    said
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
    let only = std::env::var("HAFT_CORPUS").unwrap_or_default();
    let mut found = Vec::new();
    programs(&root, &mut found);
    found.sort();
    let mut wrong = Vec::new();
    for path in &found {
        let name = path.strip_prefix(&root).expect("it is there").display();
        if !name.to_string().contains(&only) {
            continue;
        }
        let expected = Ended::expected(path);
        let got = run(path, path.with_extension("diag").exists());
        if got != expected {
            wrong.push(format!(
                "{name}\n--- expected\n{}--- got\n{}",
                expected.show(),
                got.show()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        found.len(),
        wrong.join("\n")
    );
    assert!(found.len() > 170, "the corpus is there: {}", found.len());
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
