//! From source to diagnostics and IR.

use crate::check::{self, Known};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::emit::{self, Surroundings};
use crate::ir;
use crate::load::{self, LoadErrorKind};
use crate::manifest::Manifest;
use crate::modules::read_program;
use crate::source::{SourceMap, Sources, Span};
use crate::symbols::Symbols;

/// Which connections `provider` may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Those of the manifest, and these beside.
    Known(Vec<String>),
    /// Any: models are mocked.
    Any,
}

/// What a program is compiled with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The manifest, if there is one.
    pub manifest: Option<Manifest>,
    /// Which connections there are beside the manifest's.
    pub connections: Connections,
    /// MCP servers that are known beside the manifest's.
    pub servers: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            manifest: None,
            connections: Connections::Known(Vec::new()),
            servers: Vec::new(),
        }
    }
}

/// A program to compile: its first file and where further ones come from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The path of the first file, as it is shown.
    pub path: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Where further files come from.
    pub more: &'a dyn Sources,
}

impl<'a> Source<'a> {
    /// A program of one file.
    pub fn new(path: &'a str, text: &'a str) -> Self {
        let more = &();
        Self { path, text, more }
    }

    /// With further files.
    #[must_use]
    pub fn with(mut self, more: &'a dyn Sources) -> Self {
        self.more = more;
        self
    }
}

/// What became of a program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program, unless it has errors.
    pub ir: Option<ir::Module>,
    /// What is wrong with it, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// Its files, for showing diagnostics.
    pub sources: SourceMap,
}

impl Compiled {
    /// All diagnostics as a person reads them.
    pub fn render(&self) -> String {
        let shown = self.diagnostics.iter().map(|it| it.render(&self.sources));
        shown.collect()
    }

    /// Whether it has errors.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| !it.is_warning())
    }
}

/// Compiles a program.
///
/// ```
/// use haft_concerto::{Options, Source, compile};
///
/// let source = Source::new("hello.conc", "println(\"hello\", nobody);");
/// let compiled = compile(&source, &Options::default());
/// assert!(compiled.ir.is_none());
/// assert!(compiled.render().starts_with("hello.conc:1:18: error[E010]: `nobody` is not defined"));
/// ```
pub fn compile(source: &Source<'_>, options: &Options) -> Compiled {
    run(source, options, true)
}

/// Checks a program and writes nothing.
pub fn check(source: &Source<'_>, options: &Options) -> Compiled {
    run(source, options, false)
}

fn run(source: &Source<'_>, options: &Options, emitting: bool) -> Compiled {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::default();
    let text = source.text.to_owned();
    let program = read_program(
        source.path,
        text,
        source.more,
        &mut sources,
        &mut diagnostics,
    );
    let mut ir = None;
    // What could not be read would be told again as names that are not there.
    if !diagnostics.has_errors() {
        let known = known(options);
        let symbols = Symbols::new(&program, &known.servers, &mut diagnostics);
        check::check(&symbols, &known, &mut diagnostics);
        if !diagnostics.has_errors() {
            // What only turns out when it is written belongs to what is wrong with it too.
            let around = surroundings(options);
            ir = written(&symbols, &sources, &around, &mut diagnostics).filter(|_| emitting);
        }
    }
    Compiled {
        ir,
        diagnostics: diagnostics.into_sorted(),
        sources,
    }
}

/// The IR of a program that was checked, if it has room in the machine.
pub(crate) fn written(
    symbols: &Symbols<'_>,
    sources: &SourceMap,
    around: &Surroundings,
    diagnostics: &mut Diagnostics,
) -> Option<ir::Module> {
    let (module, problems) = emit::emit(symbols, sources, around);
    let problems = problems.into_iter().chain(too_large(&module, sources));
    problems.for_each(|it| diagnostics.push(it));
    (!diagnostics.has_errors()).then_some(module)
}

/// Whatever has no room in the machine has at least so many instructions or parameters.
const LARGE: usize = 10_000;

/// A function that has no room in the machine. Only a long one can be so: then it is tried.
fn too_large(module: &ir::Module, sources: &SourceMap) -> Option<Diagnostic> {
    let is_long = |(_, code): (_, &[ir::Instruction])| code.len() >= LARGE;
    let methods = module.tools.iter().flat_map(|it| &it.methods);
    let mut functions = module.functions.iter().chain(methods);
    let has_many = functions.any(|it| it.params.len() + it.captures.len() >= LARGE);
    if !has_many && !module.bodies().any(is_long) {
        return None;
    }
    let error = load::load(module.clone()).err()?;
    let name = &error.function;
    let (text, help) = match error.kind {
        LoadErrorKind::TooHigh => (
            format!("an expression of `{name}` has more parts than the machine holds at once"),
            "make several of it; lists of data are better read from a file",
        ),
        LoadErrorKind::TooManyLocals => (
            format!("`{name}` has more variables than a function may have"),
            "make several functions of it",
        ),
        _ => return None,
    };
    let mut bodies = module.bodies();
    let code = bodies.find(|(body, _)| body == name).map(|(_, code)| code);
    let code = code.unwrap_or_default();
    let near = &code[error.place.unwrap_or(0).min(code.len())..];
    let place = near.iter().chain(code).find_map(|it| it.span);
    let span = place.map_or_else(Span::default, |[line, column]| {
        sources.span_at(module.source_of(name), line, column)
    });
    Some(Diagnostic::new(Code::E036, span, text).help(help))
}

pub(crate) fn known(options: &Options) -> Known {
    let names = |list: &[ir::Connection]| list.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let manifest = options.manifest.clone().unwrap_or_default();
    let agents = manifest.agents.iter().map(|(name, _)| name.clone());
    let agents = (options.connections != Connections::Any).then(|| agents.collect());
    let connections = match &options.connections {
        Connections::Any => None,
        Connections::Known(more) => {
            let mut list = names(&manifest.connections);
            list.extend(more.iter().cloned());
            Some(list)
        }
    };
    let mut servers = names(&manifest.servers);
    servers.extend(options.servers.iter().cloned());
    Known {
        connections,
        servers,
        agents,
    }
}

pub(crate) fn surroundings(options: &Options) -> Surroundings {
    let manifest = options.manifest.clone().unwrap_or_default();
    let mut connections = manifest.connections;
    connections.extend(manifest.servers);
    // Servers that only the host knows have no settings here, but a program names them all the same.
    for name in &options.servers {
        if connections.iter().all(|it| it.name != *name) {
            connections.push(ir::Connection {
                name: name.clone(),
                config: serde_json::json!({"type": "mcp"}),
            });
        }
    }
    Surroundings {
        connections,
        agents: manifest.agents,
    }
}
