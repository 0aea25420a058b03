//! From what the command line names to a program: its file, its manifest, and what `haft.toml` knows.

use std::cell::RefCell;
use std::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use haft_concerto::diagnostic::{Code, Diagnostic};
use haft_concerto::manifest::{Manifest, ManifestError};
use haft_concerto::source::{MAX_FILE_BYTES, Sources};
use haft_concerto::{Compiled, Connections, Options, Source, ir};

use super::diagnostics;
use crate::arguments::Program;
use crate::config::{ForPrograms, for_programs};
use crate::failure::Failure;
use crate::text::printable;

/// The file that describes a project.
pub(crate) const MANIFEST: &str = "Concerto.toml";

/// Where a project begins if its manifest does not say.
pub(super) const ENTRY: &str = "src/main.conc";

/// The extension of what is compiled.
pub(super) const IR: &str = "conc-ir";

/// The extension of sources.
pub(super) const SOURCE: &str = "conc";

/// How large a compiled program may be.
const MAX_IR_BYTES: usize = 256 << 20;

/// How large a manifest may be.
const MAX_MANIFEST_BYTES: usize = 1 << 20;

/// Who answers for models, as far as a compiler cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Models {
    /// The connections that are configured.
    Connected,
    /// Nobody: any name will do.
    Mocked,
}

impl Models {
    /// As a flag says, or the environment.
    pub(crate) fn of(is_mocked: bool) -> Self {
        let said = std::env::var_os("HAFT_MOCK");
        if is_mocked || said.is_some_and(|it| it == "1" || it == "true") {
            Self::Mocked
        } else {
            Self::Connected
        }
    }
}

/// A program and what is around it.
#[derive(Debug)]
pub(crate) struct Project {
    /// The file that the program starts with.
    pub(crate) file: PathBuf,
    pub(crate) manifest: Option<Manifest>,
    /// The folder of the manifest: its relative paths begin there.
    pub(crate) folder: PathBuf,
    /// What `haft.toml` knows.
    pub(crate) beside: ForPrograms,
    is_compiled: bool,
}

impl Project {
    /// The program that a command line names.
    pub(crate) fn open(named: &Program) -> Result<Self, Box<dyn Error>> {
        Self::find(&named.file, for_programs(named.from.config.as_deref())?)
    }

    /// The program of this file or folder.
    pub(crate) fn find(named: &Path, beside: ForPrograms) -> Result<Self, Box<dyn Error>> {
        let shown = shown(named);
        let about = named.metadata().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::mistake(format!("there is no file `{shown}`")),
            _ => Failure::mistake(format!("cannot read `{shown}`: {error}")),
        })?;
        let (file, found) = if about.is_dir() {
            let found = manifest_of(named)?.ok_or_else(|| {
                Failure::mistake(format!("the folder `{shown}` has no `{MANIFEST}`"))
                    .remedy("name a file, or begin a project with `haft init --concerto`")
            })?;
            let entry = found.1.entry.as_deref().unwrap_or(ENTRY);
            let file = named.join(entry);
            let file = file.strip_prefix(".").map_or(file.clone(), Path::to_owned);
            if !file.is_file() {
                for note in &found.1.warnings {
                    diagnostics::warn(&format!("{}:{note}", super::project::shown(&found.0)));
                }
                let manifest = super::project::shown(&found.0);
                let text = format!(
                    "the entry `{}` of `{manifest}` is not there",
                    printable(entry)
                );
                return Err(Failure::new(text).into());
            }
            (file, Some(found))
        } else {
            (named.to_owned(), None)
        };
        let extension = file.extension().and_then(|it| it.to_str());
        let is_compiled = match extension {
            Some(SOURCE) => false,
            Some(IR) => true,
            _ => {
                let text = format!("`{}` is no Concerto program", super::project::shown(&file));
                let remedy = "programs end in `.conc`, compiled ones in `.conc-ir`";
                return Err(Failure::mistake(text).remedy(remedy).into());
            }
        };
        let found = match found {
            Some(found) => Some(found),
            None => manifest_above(&file)?,
        };
        Ok(Self::with(file, is_compiled, found, beside))
    }

    /// No program, but the manifest that is found from a folder on upward.
    pub(crate) fn without_program(
        folder: &Path,
        beside: ForPrograms,
    ) -> Result<Self, Box<dyn Error>> {
        let file = folder.join("repl.conc");
        let found = manifest_above(&file)?;
        Ok(Self::with(file, false, found, beside))
    }

    fn with(
        file: PathBuf,
        is_compiled: bool,
        found: Option<(PathBuf, Manifest)>,
        beside: ForPrograms,
    ) -> Self {
        let (path, manifest) = found.unzip();
        let folder = path.as_deref().and_then(Path::parent);
        Self {
            folder: folder.map(Path::to_owned).unwrap_or_default(),
            manifest,
            file,
            is_compiled,
            beside,
        }
    }

    /// Whether the file is compiled already.
    pub(crate) fn is_compiled(&self) -> bool {
        self.is_compiled
    }

    /// The file, as it is shown.
    pub(crate) fn name(&self) -> String {
        shown(&self.file)
    }

    /// What programs are compiled with.
    pub(crate) fn options(&self, models: Models) -> Options {
        let manifest = self.manifest.as_ref();
        let declared = manifest.map_or(&[][..], |manifest| &manifest.servers);
        let servers = self
            .beside
            .mcp
            .iter()
            .map(|server| server.label.to_string());
        Options {
            connections: match models {
                Models::Mocked => Connections::Any,
                Models::Connected => {
                    let models = self.beside.models.iter();
                    let names = models.flat_map(|it| std::iter::once(&it.name).chain(&it.aliases));
                    Connections::Known(names.cloned().collect())
                }
            },
            servers: servers
                .filter(|name| !declared.iter().any(|it| it.name == *name))
                .collect(),
            manifest: self.manifest.clone(),
        }
    }

    /// What is wrong with the program; `None` of one that is compiled already and can be loaded.
    pub(crate) fn check(&self, models: Models) -> Result<Option<Compiled>, Box<dyn Error>> {
        if self.is_compiled {
            let ir = self.read_ir()?;
            haft_concerto::load::load(ir).map_err(|error| self.unloadable(&error))?;
            return Ok(None);
        }
        self.with_source(|source| haft_concerto::check(source, &self.options(models)))
            .map(Some)
    }

    /// The program, or nothing once it was told what is wrong with it.
    pub(crate) fn compile(
        &self,
        models: Models,
        warnings: Warnings,
    ) -> Result<Option<ir::Module>, Box<dyn Error>> {
        self.note_manifest(warnings);
        if self.is_compiled {
            return self.read_ir().map(Some);
        }
        let compiled =
            self.with_source(|source| haft_concerto::compile(source, &self.options(models)))?;
        diagnostics::show(&compiled, warnings)?;
        Ok(compiled.ir)
    }

    /// The program for its tools, or nothing once it was told what is wrong with it. A model that has no
    /// connection is told, and keeps back no tool: it may need none.
    pub(crate) fn compile_tools(
        &self,
        models: Models,
    ) -> Result<Option<ir::Module>, Box<dyn Error>> {
        if !self.is_compiled
            && let Some(checked) = self.check(models)?
        {
            let is_unconnected = |it: &&Diagnostic| it.code == Code::E022;
            let mut errors = checked.diagnostics.iter().filter(|it| !it.is_warning());
            if checked.has_errors() && errors.clone().all(|it| is_unconnected(&it)) {
                for it in errors.by_ref() {
                    let text = format!("`{}`: {}; its calls will fail", self.name(), it.text);
                    diagnostics::warn(&text);
                }
                return self.compile(Models::Mocked, Warnings::Shown);
            }
        }
        self.compile(models, Warnings::Shown)
    }

    /// Says what of the manifest means nothing.
    pub(crate) fn note_manifest(&self, warnings: Warnings) {
        if warnings == Warnings::Shown {
            let path = self.folder.join(MANIFEST);
            let notes = self.manifest.iter().flat_map(|it| &it.warnings);
            notes.for_each(|note| diagnostics::warn(&format!("{}:{note}", path.display())));
        }
    }

    fn with_source<T>(&self, work: impl FnOnce(&Source<'_>) -> T) -> Result<T, Box<dyn Error>> {
        let path = self.file.to_string_lossy();
        let text = read(&self.file, MAX_FILE_BYTES + 1)?;
        let more = Beside::default();
        let done = work(&Source::new(&path, &text).with(&more));
        more.tell();
        Ok(done)
    }

    fn read_ir(&self) -> Result<ir::Module, Box<dyn Error>> {
        let text = read(&self.file, MAX_IR_BYTES)?;
        let module = ir::Module::from_json(&text);
        Ok(module.map_err(|error| Failure::new(format!("`{}`: {error}", self.name())))?)
    }

    /// Why a compiled program cannot be run.
    pub(crate) fn unloadable(&self, error: &haft_concerto::load::LoadError) -> Failure {
        Failure::new(format!("`{}`: {error}", self.name()))
    }
}

/// Whether warnings are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warnings {
    Shown,
    Hidden,
}

impl Warnings {
    pub(crate) fn unless(quiet: bool) -> Self {
        if quiet { Self::Hidden } else { Self::Shown }
    }
}

/// A path as it is shown.
pub(super) fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// The text of a file of the program.
pub(super) fn read(path: &Path, most_bytes: usize) -> Result<String, Failure> {
    let shown = shown(path);
    let bytes = read_bytes(path, most_bytes).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::mistake(format!("there is no file `{shown}`")),
        _ => Failure::mistake(format!("cannot read `{shown}`: {error}")),
    })?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("`{shown}` is not UTF-8")).remedy("save it as UTF-8"))
}

/// No more of a file than that, so that nothing endless is read.
fn read_bytes(path: &Path, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Whoever opens a pipe waits for somebody who writes.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = File::open(path)?;
    file.take(most_bytes as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The manifest of a folder, if it has one.
fn manifest_of(folder: &Path) -> Result<Option<(PathBuf, Manifest)>, Failure> {
    let path = folder.join(MANIFEST);
    if !path.is_file() {
        return Ok(None);
    }
    let text = read(&path, MAX_MANIFEST_BYTES)?;
    match Manifest::read(&text) {
        Ok(manifest) => Ok(Some((path, manifest))),
        Err(error) => Err(wrong_manifest(&path, &error)),
    }
}

/// The nearest manifest in the folder of a file or above it.
fn manifest_above(file: &Path) -> Result<Option<(PathBuf, Manifest)>, Failure> {
    let absolute = std::path::absolute(file)
        .map_err(|error| Failure::new(format!("cannot tell which folder this is: {error}")))?;
    for folder in absolute.ancestors().skip(1) {
        if let Some(found) = manifest_of(folder)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Everything that is wrong with a manifest: `path:line:column: text`.
fn wrong_manifest(path: &Path, error: &ManifestError) -> Failure {
    // Which of them, for there may be several on the way up.
    let path = shown(path);
    let problems = error.problems.iter();
    let told: Vec<String> = problems
        .map(|it| format!("{path}:{}", printable(&it.to_string())))
        .collect();
    Failure::mistake(told.join("\n"))
}

/// Files beside the first one.
#[derive(Default)]
pub(super) struct Beside {
    /// Those that are there and cannot be read.
    unreadable: RefCell<Vec<String>>,
}

impl Beside {
    /// Says which could not be read.
    pub(super) fn tell(self) {
        for note in self.unreadable.into_inner() {
            diagnostics::warn(&note);
        }
    }
}

impl Sources for Beside {
    fn read(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if !path.is_file() {
            return None;
        }
        match read(path, MAX_FILE_BYTES + 1) {
            Ok(text) => Some(text),
            Err(failure) => {
                self.unreadable.borrow_mut().push(failure.to_string());
                None
            }
        }
    }
}
