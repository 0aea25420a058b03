//! Every program of `docs/concerto.md` runs, without a word of the compiler, and prints what stands
//! below it.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use haft_concerto::host::{Offline, TestOutcome};
use haft_concerto::load::{Program, load};
use haft_concerto::manifest::Manifest;
use haft_concerto::natives::Permissions;
use haft_concerto::vm::{Limits, Machine, Output};
use haft_concerto::{Connections, Options, Source, compile};

fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/concerto.md");
    std::fs::read_to_string(path).expect("the guide is there")
}

/// The blocks of a page: what stands behind the marks, the text, and its line.
fn blocks(page: &str) -> Vec<(String, String, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(String, String, usize)> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.as_mut()) {
            (Some(kind), None) => open = Some((kind.to_owned(), String::new(), number + 1)),
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some((_, text, _))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

#[derive(Clone, Default)]
struct Printed(Arc<Mutex<String>>);

impl Output for Printed {
    fn print(&mut self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    fn log(&mut self, line: &str) {
        self.print(line);
    }
}

fn machine(program: &Arc<Program>, printed: &Printed) -> Machine {
    let output = Box::new(printed.clone());
    let permissions = Permissions::default();
    Machine::new(Arc::clone(program), permissions, Limits::default(), output)
}

fn run(program: &Arc<Program>) -> String {
    let printed = Printed::default();
    let ended = Offline::new(
        &mut machine(program, &printed),
        |machine, channel, payload| {
            let line = format!("[emit:{channel}] {payload}\n");
            machine.output().print(&without_duration(&line));
        },
    )
    .run();
    let mut said = printed.0.lock().unwrap().clone();
    if let Err(error) = ended {
        writeln!(said, "runtime error: {error}").unwrap();
    }
    said
}

/// How long something took is shown as 0.
fn without_duration(line: &str) -> String {
    match line.split_once("\"duration_ms\": ") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}\"duration_ms\": 0{rest}")
        }
        None => line.to_owned(),
    }
}

/// As `haft test` says it.
fn test(program: &Arc<Program>) -> String {
    let tests = &program.ir().tests;
    let mut said = format!("running {} tests\n\n", tests.len());
    for (place, test) in tests.iter().enumerate() {
        let mut machine = machine(program, &Printed::default());
        let name = &test.description;
        match Offline::new(&mut machine, |_, _, _| {}).test(place) {
            TestOutcome::Passed(false) => writeln!(said, "  PASS  {name}").unwrap(),
            TestOutcome::Passed(true) => {
                writeln!(said, "  PASS  {name} (expected failure)").unwrap();
            }
            TestOutcome::Failed(why, _) => panic!("{name}: {why}"),
        }
    }
    writeln!(said, "\ntest result: ok. {} passed, 0 failed", tests.len()).unwrap();
    said
}

#[test]
fn every_program_of_the_guide_prints_what_stands_below_it() {
    let page = guide();
    let blocks = blocks(&page);
    let mut files = BTreeMap::new();
    let mut ran = 0;
    for (place, (kind, text, line)) in blocks.iter().enumerate() {
        if !kind.starts_with("concerto") {
            continue;
        }
        if let Some(rest) = text.strip_prefix("// file: ") {
            let (name, _) = rest.split_once('\n').unwrap();
            files.insert(name.to_owned(), text.clone());
            continue;
        }
        let options = Options {
            connections: Connections::Any,
            ..Options::default()
        };
        let compiled = compile(&Source::new("program.conc", text).with(&files), &options);
        assert_eq!(compiled.render(), "", "line {line}");
        let program = load(compiled.ir.unwrap()).unwrap();
        let said = if kind == "concerto test" {
            test(&program)
        } else {
            run(&program)
        };
        let (below, expected, _) = &blocks[place + 1];
        assert_eq!(below, "text", "line {line}: what it prints stands below it");
        assert_eq!(&said, expected, "line {line}");
        ran += 1;
    }
    assert!(ran >= 15, "{ran}");
}

#[test]
fn the_manifest_of_the_guide_can_be_read_and_has_no_unknown_key() {
    let page = guide();
    let blocks = blocks(&page);
    let is_manifest = |text: &str| text.starts_with("[project]");
    let mut manifests = blocks.iter();
    let manifest = manifests.find(|(kind, text, _)| kind == "toml" && is_manifest(text));
    let (_, text, _) = manifest.unwrap();
    let manifest = Manifest::read(text).unwrap();
    assert_eq!(manifest.warnings, []);
    assert_eq!(manifest.connections.len(), 1);
    assert_eq!(manifest.servers.len(), 1);
}

/// The tables name what there is.
#[test]
fn the_guide_names_every_function_of_the_standard_library() {
    let page = guide();
    for function in haft_concerto::symbols::STANDARD {
        let path = function.path.strip_prefix("std::").unwrap();
        let (module, name) = path.split_once("::").unwrap();
        if matches!(module, "env" | "fs" | "http") {
            continue;
        }
        let name = name.split("::").next().unwrap();
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `std::{module}`")));
        let row = row.unwrap_or_else(|| panic!("no row for `std::{module}`"));
        assert!(
            row.contains(name),
            "`std::{module}::{name}` is not in the guide"
        );
    }
}
