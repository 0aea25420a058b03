//! `mod name;`: further files of a program.

use crate::ast::{Item, ItemKind, Part, Program};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::lex::lex;
use crate::parse::parse;
use crate::source::{SourceMap, Sources};

/// How deep files may include files.
const MAX_FILES_DEEP: usize = 32;

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
    };
    let Some(mut program) = loader.file(path, text) else {
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
}

impl Loader<'_> {
    fn file(&mut self, path: &str, text: String) -> Option<Program> {
        match self.map.add(path, text) {
            Ok(file) => {
                let lexed = lex(file, self.diagnostics);
                Some(parse(file, lexed, self.diagnostics))
            }
            Err(error) => {
                let told = Diagnostic::new(
                    Code::E001,
                    crate::source::Span::default(),
                    error.to_string(),
                );
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
        if self.open.contains(path) || self.open.len() >= MAX_FILES_DEEP {
            let text = format!("the module `{name}` includes itself");
            self.diagnostics
                .push(Diagnostic::new(Code::E010, span, text));
            module.items = Some(Vec::new());
            return;
        }
        let program = self.file(path, text).unwrap_or_default();
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
