//! Tools that haft serves by itself: what time it is, exact arithmetic, and full-text search.
//!
//! What comes in: the operator's wish which folders may be searched. What goes out: three tools for
//! a catalogue, [`clock()`], [`calculate()`] and [`search_files()`], whose calls run in this process
//! ([`ToolKind::Internal`](haft_core::ToolKind::Internal)). All of them only read.
//!
//! A call must never panic, run without end, grow without limit, or give away anything of the server
//! that the operator did not offer: not its time zone, not its paths, and of its files only those in
//! the listed folders. Whatever may block runs beside the runtime's threads.
//!
//! ```
//! use haft_catalog::Catalog;
//! use haft_hosted::{FileSearchConfig, HostedOptions, register};
//!
//! # let directory = tempfile::tempdir()?;
//! # std::fs::create_dir(directory.path().join("docs"))?;
//! let catalog = Catalog::new();
//! let config: FileSearchConfig = toml::from_str(r#"folders = ["docs"]"#)?;
//! let names = register(
//!     &catalog,
//!     HostedOptions {
//!         search: Some(config.relative_to(directory.path())),
//!         index: directory.path().join("search.db"),
//!     },
//! )?;
//! assert_eq!(names.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Adding one
//!
//! A hosted tool is a definition and a function. The arguments are a type: its schema is what the
//! model sees, and what was checked against it is what the function gets. What the tool needs beside
//! them comes with the closure.
//!
//! ```
//! use std::sync::Arc;
//!
//! use haft_catalog::Catalog;
//! use haft_core::{
//!     DefinitionError, ToolDefinition, ToolError, ToolObject, dynamic_tool, read_arguments, schema_of,
//! };
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Arguments {
//!     /// How many sides the dice have.
//!     #[schemars(range(min = 2, max = 100))]
//!     sides: u64,
//! }
//!
//! /// The tool `roll`. Where the numbers come from is given, so that a test can say what falls.
//! fn roll(
//!     random: impl Fn() -> u64 + Send + Sync + 'static,
//! ) -> Result<Arc<dyn ToolObject>, DefinitionError> {
//!     let definition = ToolDefinition::builder("roll")
//!         .description("Roll a dice.")
//!         .parameters(schema_of::<Arguments>())
//!         .read_only()
//!         .build()?;
//!     Ok(dynamic_tool(definition, move |arguments, _context| {
//!         let number = random();
//!         async move {
//!             let Arguments { sides } = read_arguments(&arguments)?;
//!             // Also checked by the schema; a tool relies on nothing that it can see for itself.
//!             let rest = number.checked_rem(sides);
//!             rest.map(|rest| rest + 1).ok_or_else(|| ToolError::new("a dice has sides"))
//!         }
//!     }))
//! }
//!
//! let catalog = Catalog::new();
//! assert_eq!(catalog.register(roll(|| 3))?.as_str(), "roll");
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let tool = roll(|| 3)?;
//! let call = tool.instantiate(&serde_json::json!({"sides": 6}))?;
//! let output = call.run(&haft_core::ToolContext::default()).await.unwrap();
//! assert_eq!(output.text_for_model(), "4");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A tool whose work blocks does it in `tokio::task::spawn_blocking`; one that must be started first
//! and stopped at the end is an [`InternalTool`](haft_core::InternalTool).

#[cfg(not(unix))]
compile_error!("haft-hosted needs a Unix system: it opens files relative to directories");

mod calculate;
mod clock;
mod register;
mod search;
mod tool;

pub use calculate::{Calculation, CalculationError, CalculationProblem, calculate, evaluate};
pub use clock::{clock, clock_with};
pub use register::{HostedError, HostedOptions, register};
pub use search::{
    FileSearch, FileSearchConfig, FileSearchError, Folder, Hit, RefreshReport, SearchError,
    SearchRequest, SearchResults, search_files,
};
pub use tool::HostedTool;
