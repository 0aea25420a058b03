//! `mod name;`: further files of a program.

use crate::ast::{Item, ItemKind, Part, Program};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::lex::lex;
use crate::parse::parse;
use crate::source::{SourceError, SourceMap, Sources, Span};

/// How deep files may include files.
const MAX_FILES_DEEP: usize = 32;

/// How many files a program may have; one that is included twice counts twice. Where each file includes two
/// others, there would be no end of them.
const MAX_FILES: usize = 1000;

/// Reads a program: its first file and all that it includes.
pub fn read_program(
    path: &str,
    text: String,
    more: &dyn Sources,
    map: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Program {
    let mut loader = Loader {
        more,
        map,
        diagnostics,
        open: Vec::new(),
        is_full: false,
    };
    let Some(mut program) = loader.file(path, text, Span::default()) else {
        return Program::default();
    };
    loader.open.push(path.to_owned());
    for part in &mut program.parts {
        if let Part::Item(item) = part {
            loader.item(item, path);
        }
    }
    program
}

struct Loader<'a> {
    more: &'a dyn Sources,
    map: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    /// The files that lead to the one that is read.
    open: Vec<String>,
    /// Whether no more files are taken, which was told.
    is_full: bool,
}

impl Loader<'_> {
    fn file(&mut self, path: &str, text: String, span: Span) -> Option<Program> {
        if self.map.files().len() >= MAX_FILES {
            self.is_full = true;
            let text = format!("a program has at most {MAX_FILES} files");
            let help = "a file that several others name with `mod` is read for each: name it once, and `use` it";
            let told = Diagnostic::new(Code::E036, span, text).help(help);
            self.diagnostics.push(told);
            return None;
        }
        match self.map.add(path, text) {
            Ok(file) => {
                let lexed = lex(file, self.diagnostics);
                Some(parse(file, lexed, self.diagnostics))
            }
            Err(error) => {
                // No other file would fit either.
                self.is_full = !matches!(error, SourceError::TooLong { .. });
                let code = if self.is_full { Code::E036 } else { Code::E001 };
                let told = Diagnostic::new(code, span, error.to_string());
                self.diagnostics.push(told);
                None
            }
        }
    }

    fn item(&mut self, item: &mut Item, beside: &str) {
        let ItemKind::Mod(module) = &mut item.kind else {
            return;
        };
        if let Some(items) = &mut module.items {
            for item in items {
                self.item(item, beside);
            }
            return;
        }
        if self.is_full {
            module.items = Some(Vec::new());
            return;
        }
        let directory = beside.rfind(['/', '\\']).map_or("", |at| &beside[..=at]);
        let name = &module.name.text;
        let places = [
            format!("{directory}{name}.conc"),
            format!("{directory}{name}/mod.conc"),
        ];
        let found = places
            .iter()
            .find_map(|path| Some((path, self.more.read(path)?)));
        let span = module.name.span;
        let Some((path, text)) = found else {
            let text = format!("the module `{name}` is not there");
            let help = format!("write it to `{}` or `{}`", places[0], places[1]);
            self.diagnostics
                .push(Diagnostic::new(Code::E010, span, text).help(help));
            module.items = Some(Vec::new());
            return;
        };
        let is_own = self.open.contains(path);
        if is_own || self.open.len() >= MAX_FILES_DEEP {
            let told = if is_own {
                let text = format!("the module `{name}` includes itself");
                let help = "`mod` reads a file; to shorten names of one that was read, write `use`";
                Diagnostic::new(Code::E010, span, text).help(help)
            } else {
                let text = format!("files include files more than {MAX_FILES_DEEP} deep");
                Diagnostic::new(Code::E036, span, text)
            };
            self.diagnostics.push(told);
            module.items = Some(Vec::new());
            return;
        }
        let program = self.file(path, text, span).unwrap_or_default();
        self.open.push(path.clone());
        let mut items = Vec::new();
        for part in program.parts {
            match part {
                Part::Item(mut item) => {
                    self.item(&mut item, path);
                    items.push(item);
                }
                Part::Stmt(stmt) => {
                    let text = "statements stand only in the file that the program starts with";
                    self.diagnostics
                        .push(Diagnostic::new(Code::E034, stmt.span, text));
                }
            }
        }
        self.open.pop();
        module.items = Some(items);
    }
}
