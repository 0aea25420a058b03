//! IR from and to text.

use thiserror::Error;

use super::{Instruction, Metadata, Module, VERSION};

/// Why a text is not the IR of a program.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Not JSON, or not in the form of the IR.
    #[error("not a compiled Concerto program: {0}; compile the source again")]
    Form(#[from] serde_json::Error),
    /// A version that haft does not read.
    #[error("IR of version `{0}` cannot be read, only 0.1.x: compile the source again")]
    Version(String),
}

impl Module {
    /// An empty program.
    pub fn new(module: impl Into<String>, source_file: impl Into<String>) -> Self {
        Self {
            version: VERSION.to_owned(),
            module: module.into(),
            source_file: source_file.into(),
            constants: Vec::new(),
            types: Vec::new(),
            functions: Vec::new(),
            models: Vec::new(),
            tools: Vec::new(),
            schemas: Vec::new(),
            connections: Vec::new(),
            hashmaps: Vec::new(),
            pipelines: Vec::new(),
            ledgers: Vec::new(),
            memories: Vec::new(),
            agents: Vec::new(),
            listens: Vec::new(),
            tests: Vec::new(),
            metadata: Metadata {
                compiler_version: concat!("haft ", env!("CARGO_PKG_VERSION")).to_owned(),
                compiled_at: String::new(),
                optimization_level: 0,
                debug_info: true,
                entry_point: "main".to_owned(),
            },
        }
    }

    /// Reads a `.conc-ir` file's text. Editors may have put a byte order mark before it.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let module: Self = serde_json::from_str(text)?;
        if module.version == "0.1" || module.version.starts_with("0.1.") {
            Ok(module)
        } else {
            Err(ReadError::Version(module.version))
        }
    }

    /// All code of a program, by the names that failures tell.
    pub fn bodies(&self) -> impl Iterator<Item = (String, &[Instruction])> {
        let functions = self
            .functions
            .iter()
            .map(|it| (it.name.clone(), &it.instructions));
        let methods = self.tools.iter().flat_map(|tool| {
            let methods = tool.methods.iter();
            methods.map(|it| {
                let name = it.name.rsplit("::").next().unwrap_or_default();
                (format!("{}::{name}", tool.name), &it.instructions)
            })
        });
        let stages = self.pipelines.iter().flat_map(|pipeline| {
            let stages = pipeline.stages.iter();
            stages.map(|it| (format!("{}::{}", pipeline.name, it.name), &it.instructions))
        });
        let handlers = self.listens.iter().flat_map(|listen| {
            let handlers = listen.handlers.iter();
            handlers.map(|it| {
                (
                    format!("{} {}", listen.name, it.message_type),
                    &it.instructions,
                )
            })
        });
        let tests = self
            .tests
            .iter()
            .map(|it| (it.description.clone(), &it.instructions));
        let all = functions
            .chain(methods)
            .chain(stages)
            .chain(handlers)
            .chain(tests);
        all.map(|(name, code)| (name, code.as_slice()))
    }

    /// The file that a function was written in, by the name that a failure tells: a function, `Tool::method`,
    /// `Pipeline::stage`, a handler of `listen`, a test. Programs of others know only one file.
    pub fn source_of(&self, function: &str) -> &str {
        let functions = self.functions.iter();
        let mut functions = functions
            .filter(|it| it.name == function)
            .map(|it| &it.source);
        let of_tool = || {
            let (tool, method) = function.rsplit_once("::")?;
            let tool = self.tools.iter().find(|it| it.name == tool)?;
            let last = |name: &str| name.rsplit("::").next() == Some(method);
            let method = tool.methods.iter().find(|it| last(&it.name))?;
            Some(&method.source)
        };
        let of_stage = || {
            let (pipeline, stage) = function.rsplit_once("::")?;
            let pipeline = self.pipelines.iter().find(|it| it.name == pipeline)?;
            let stage = pipeline.stages.iter().find(|it| it.name == stage)?;
            Some(&stage.source)
        };
        let of_handler = || {
            let (listen, kind) = function.split_once(' ')?;
            let listen = self.listens.iter().find(|it| it.name == listen)?;
            let mut handlers = listen.handlers.iter();
            let handler = handlers.find(|it| it.message_type == kind)?;
            Some(&handler.source)
        };
        let of_test = || {
            let test = self.tests.iter().find(|it| it.description == function)?;
            Some(&test.source)
        };
        let found = functions.next();
        let found = found
            .or_else(of_tool)
            .or_else(of_stage)
            .or_else(of_handler)
            .or_else(of_test);
        let source = found.and_then(|it| it.as_deref());
        source.unwrap_or(&self.source_file)
    }

    /// The text of a `.conc-ir` file, with a newline at its end.
    pub fn to_json(&self) -> String {
        // Maps of the IR have text as keys and no float is infinite (those are text), so that
        // serialising has nothing to refuse.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}
