//! `haft init --concerto`: a project to begin with.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use super::project::{ENTRY, MANIFEST, shown};
use crate::failure::Failure;
use crate::text::quoted_if_needed;

const MANIFEST_TEXT: &str = include_str!("Concerto.toml");
const PROGRAM: &str = include_str!("main.conc");
const IGNORED: &str = include_str!("gitignore");

/// What a project is called whose folder has no name that fits.
const UNNAMED: &str = "app";

/// Writes the files of a project and says what to do next.
pub(crate) fn begin(folder: &Path) -> Result<(), Failure> {
    if folder.is_file() {
        let text = format!("`{}` is a file", shown(folder));
        return Err(Failure::mistake(text).remedy("name a folder: `haft init --concerto DIR`"));
    }
    // Whether it is there is looked at before anything is written.
    for name in [MANIFEST, ENTRY] {
        let path = folder.join(name);
        if path.symlink_metadata().is_ok() {
            let text = format!("`{}` is there already", shown(&path));
            let remedy = "name a folder of its own: `haft init --concerto DIR`";
            return Err(Failure::new(text).remedy(remedy));
        }
    }
    let manifest = MANIFEST_TEXT.replace("NAME", &name_of(folder));
    let mut told = String::new();
    for (name, text) in [
        (MANIFEST, manifest.as_str()),
        (ENTRY, PROGRAM),
        (".gitignore", IGNORED),
    ] {
        let path = folder.join(name);
        let shown = shown(&path);
        match create(&path, text) {
            Ok(()) => told = format!("{told}wrote {shown}\n"),
            // Somebody has one already, and knows what is in it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && name == ".gitignore" => {}
            Err(error) => return Err(Failure::new(format!("cannot write `{shown}`: {error}"))),
        }
    }
    let place = match shown(folder) {
        here if here.is_empty() => String::from("."),
        place => quoted_if_needed(&place),
    };
    let page = format!(
        "{told}\n  \
         try    haft run --mock {place}\n  \
         test   haft test {place}\n  \
         run    set OPENAI_API_KEY, or name another connection in Concerto.toml; haft run {place}\n"
    );
    // Nobody may be reading; the files are there all the same.
    let _ = io::stdout().write_all(page.as_bytes());
    Ok(())
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    // Not overwritten even if it appears in this moment.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// The name of the folder, as far as it fits between quotes.
fn name_of(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_default();
    let name = absolute.file_name().unwrap_or_default().to_string_lossy();
    let fits = |it: &char| it.is_alphanumeric() || matches!(it, '-' | '_');
    let name: String = name.chars().filter(fits).collect();
    if name.is_empty() {
        String::from(UNNAMED)
    } else {
        name
    }
}
