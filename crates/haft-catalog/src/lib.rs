//! Every tool that exists, and who sees which.
//!
//! What comes in: tools, native ones one by one and MCP servers' by the list; and, for each run,
//! what a model, a request or a script says about them. What goes out: [`Snapshot`]s of the
//! [`Catalog`], which never change, and [`Binding`]s made from them: the tools of one run in a fixed
//! order, rendered to the same bytes each time, with the table by which its calls are hydrated.
//!
//! Wire names follow from a tool's identity; the order of registration, of connections or of a hash
//! map shows nowhere. A bad tool is left out and named; it never spoils the rest.
//!
//! [`search`] finds the few tools that a step needs among thousands.
//!
//! This crate must never run a tool, talk to a server, or change what was handed out.
//!
//! ```
//! use haft_catalog::Catalog;
//! use haft_core::{Namespace, ToolChoice, ToolDefinition, ToolRef};
//! # use haft_catalog::Binding;
//! # fn tool(name: &str) -> std::sync::Arc<ToolDefinition> {
//! #     let object = serde_json::json!({"type": "object"});
//! #     ToolDefinition::builder(name).parameters(object).build().unwrap()
//! # }
//! # fn names(binding: &Binding) -> Vec<String> {
//! #     binding.tools_for_llm().map(|tool| tool.name().to_string()).collect()
//! # }
//!
//! let catalog = Catalog::new();
//! let calculator = Namespace::new("Calculator")?;
//! catalog.register(tool("web_search"))?;
//! catalog.register_in(&calculator, tool("add"))?;
//! catalog.register_in(&calculator, tool("divide"))?;
//! let snapshot = catalog.snapshot();
//!
//! // The model's own tools, and all of Calculator for this run only.
//! let binding = snapshot.bind().tools(["web_search"]).with_tools(["Calculator"]).build()?;
//! assert_eq!(names(&binding), ["web_search", "Calculator__add", "Calculator__divide"]);
//!
//! // Without the model's own; a tool need not be in the catalogue.
//! let binding = snapshot.bind().without_tools().with_tools([tool("ask_user")]).build()?;
//! assert_eq!(names(&binding), ["ask_user"]);
//!
//! // Everything stays visible, and only one tool may be called.
//! let binding = snapshot.bind().tool_choice(ToolChoice::allowed(["web_search"])).build()?;
//! assert_eq!(binding.visible().len(), 3);
//! assert_eq!(
//!     binding.admit("Calculator__add").unwrap_err().to_string(),
//!     "Tool 'Calculator__add' is not allowed in this request. Allowed tools: web_search."
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binding;
mod binding_builder;
mod builder;
mod catalog;
mod error;
mod filter;
mod groups;
mod held;
mod hosting;
mod keyword;
mod lifecycle;
mod natives;
mod near;
mod offered;
mod origin;
mod presented;
pub mod prompt;
mod refusal;
mod registration;
pub mod search;
mod snapshot;

pub use binding::{Appended, Binding, Progress};
pub use binding_builder::{BindError, BindingBuilder};
pub use builder::CatalogBuilder;
pub use catalog::Catalog;
pub use error::{AttachError, Diagnostic, RegisterError, RegisterReport, RejectedTools, Rejection};
pub use filter::{FilterOptions, PickProvenance, PickResult, filter_tools};
pub use keyword::{KeywordIndex, KeywordScorer, rank};
pub use offered::BriefSchema;
pub use origin::Origin;
pub use refusal::CallRefused;
pub use registration::Registration;
pub use search::LexicalScorer;
pub use snapshot::Snapshot;
