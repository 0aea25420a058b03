//! What the tests share.

use std::path::{Path, PathBuf};

use crate::support::{haft, told};

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// What a command says: its code, standard output and standard error.
pub(crate) fn say(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    told(haft(folder, arguments), "")
}

/// Standard output of a command that succeeds and says nothing beside it.
pub(crate) fn printed(folder: &Path, arguments: &[&str]) -> String {
    let (code, out, aside) = say(folder, arguments);
    assert_eq!((code, aside.as_str()), (Some(0), ""), "{out}");
    out
}

/// A program of the reference.
pub(crate) fn program(name: &str) -> String {
    let path: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "../haft-concerto/tests/programs",
        name,
    ]
    .iter()
    .collect();
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// What a program of the reference prints.
pub(crate) fn expected(name: &str) -> String {
    std::fs::read_to_string(program(name)).unwrap()
}
