//! Every program of the corpus does on the engine what it does offline: with the mock provider both are
//! the same.

use std::fs;
use std::path::{Path, PathBuf};

use haft_concerto::host::{Host, Setup};
use haft_concerto::load::load;
use haft_concerto::{Connections, Options, Source, compile};

use crate::kit::Printed;

fn programs(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|it| it == "conc") {
            found.push(path);
        }
    }
}

/// How long something took is never the same twice.
fn without_durations(text: &str) -> String {
    let mut pieces = text.split("\"duration_ms\": ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |before, piece| {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{before}\"duration_ms\": 0{rest}")
    })
}

#[tokio::test]
async fn every_program_of_the_corpus_prints_what_is_written_beside_it() {
    let mut found = Vec::new();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    programs(&tests.join("corpus"), &mut found);
    assert!(found.len() > 60, "{}", found.len());
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    for path in found {
        let text = fs::read_to_string(&path).unwrap();
        let compiled = compile(&Source::new("program.conc", &text), &options);
        let setup = Setup {
            mock: true,
            ..Setup::default()
        };
        let host = Host::new(load(compiled.ir.unwrap()).unwrap(), setup);
        let printed = Printed::default();
        let ended = host.run(Box::new(printed.clone())).await;
        let ended = ended.err().map(|it| it.text).unwrap_or_default();
        let expected = fs::read_to_string(path.with_extension("out")).unwrap_or_default();
        let error = fs::read_to_string(path.with_extension("err")).unwrap_or_default();
        assert_eq!(
            without_durations(&printed.text()),
            expected,
            "{}",
            path.display()
        );
        assert_eq!(ended, error.trim_end(), "{}", path.display());
    }
}
