//! The programs of the corpus: what each is run with, and what it must say. See `tests/corpus.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_concerto::ir::Module;
use haft_concerto::load::{self, Program};
use haft_concerto::natives::{Grant, Permissions};
use haft_concerto::vm::Limits;
use haft_concerto::{Connections, Options, Source, compile};

/// What a program is run with.
#[derive(Default)]
pub(crate) struct Switches {
    pub(crate) permissions: Permissions,
    pub(crate) limits: Limits,
    /// Its tests are run, not its entry.
    pub(crate) test: bool,
    pub(crate) servers: Vec<String>,
    /// Only these connections are known.
    pub(crate) connections: Option<Vec<String>>,
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

/// All programs of the corpus, in order, and where it lies.
pub(crate) fn programs() -> (PathBuf, Vec<PathBuf>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut found = Vec::new();
    gather_programs(&root, &mut found);
    found.sort();
    assert!(found.len() > 170, "the corpus is there: {}", found.len());
    (root, found)
}

/// The programs below a directory.
fn gather_programs(directory: &Path, found: &mut Vec<PathBuf>) {
    let main = directory.join("main.conc");
    if main.exists() {
        found.push(main);
        return;
    }
    for entry in fs::read_dir(directory).expect("the corpus is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            gather_programs(&path, found);
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
pub(crate) struct Ended {
    pub(crate) diagnostics: String,
    pub(crate) printed: String,
    pub(crate) error: String,
}

impl Ended {
    /// What is written beside a program.
    pub(crate) fn expected(path: &Path) -> Self {
        let read = |extension| fs::read_to_string(path.with_extension(extension));
        Self {
            diagnostics: read("diag").unwrap_or_default(),
            printed: read("out").unwrap_or_default(),
            error: read("err").unwrap_or_default().trim_end().to_owned(),
        }
    }

    pub(crate) fn show(&self) -> String {
        let Self {
            diagnostics,
            printed,
            error,
        } = self;
        format!("{diagnostics}{printed}{error}\n")
    }
}

/// A folder for files that programs write, which is empty at first.
fn scratch(host: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(host);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

/// A program of the corpus, compiled.
pub(crate) struct Case {
    pub(crate) switches: Switches,
    pub(crate) diagnostics: String,
    /// None if it has errors.
    pub(crate) program: Option<Arc<Program>>,
    scratch: String,
}

impl Case {
    /// Reads and compiles it. Each host has files of its own.
    pub(crate) fn read(path: &Path, host: &str) -> Self {
        let text = fs::read_to_string(path).expect("it can be read");
        let scratch = scratch(host);
        let scratch = scratch.to_str().expect("its name is text").to_owned();
        let text = text.replace("SCRATCH", &scratch);
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
        let is_told = path.with_extension("diag").exists() || compiled.has_errors();
        let diagnostics = if is_told {
            compiled.render()
        } else {
            String::new()
        };
        // Through its text, so that what is written is what is run.
        let program = compiled.ir.map(|ir| {
            let ir = Module::from_json(&ir.to_json()).expect("what is written can be read");
            load::load(ir).expect("what is compiled can be loaded")
        });
        Self {
            switches,
            diagnostics,
            program,
            scratch,
        }
    }

    /// What it did, in the words of the file beside it.
    pub(crate) fn ended(&self, printed: &str, error: &str) -> Ended {
        Ended {
            diagnostics: self.diagnostics.clone(),
            printed: without_durations(&printed.replace(&self.scratch, "SCRATCH")),
            error: error.replace(&self.scratch, "SCRATCH"),
        }
    }
}

/// Compares what every program did with what is written beside it.
pub(crate) fn compare(got: impl IntoIterator<Item = (PathBuf, Ended)>) {
    let mut wrong = Vec::new();
    for (path, got) in got {
        let expected = Ended::expected(&path);
        if got != expected {
            let (expected, got) = (expected.show(), got.show());
            wrong.push(format!(
                "{}\n--- expected\n{expected}--- got\n{got}",
                path.display()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// How long something took is never the same twice.
pub(crate) fn without_durations(text: &str) -> String {
    let mut pieces = text.split("\"duration_ms\": ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |before, piece| {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{before}\"duration_ms\": 0{rest}")
    })
}
