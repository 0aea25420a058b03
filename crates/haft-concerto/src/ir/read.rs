//! IR from and to text.

use thiserror::Error;

use super::{Metadata, Module, VERSION};

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

    /// The text of a `.conc-ir` file, with a newline at its end.
    pub fn to_json(&self) -> String {
        // Maps of the IR have text as keys and no float is infinite (those are text), so that
        // serialising has nothing to refuse.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}
