//! Prompts as trees of sections, shown in full or as a summary.
//!
//! What comes in: a [`PromptTemplate`] of [`Section`]s, each with its text, its tools and what holds
//! for them; then, for every rendering, parameters, session state and overrides. What goes out: a
//! [`Prompt`] that was checked once, and what it makes of them: the text for the model, the state of
//! every section and the tools that may be offered ([`Rendered`]), or what the model reads when it
//! asks for one section ([`Read`]).
//!
//! A summary tells nothing about tools; a section that is disabled cannot be told from one that was
//! never declared. Rendering the same things gives the same bytes.
//!
//! Nothing here stores an override, offers a tool or talks to a model: that is the engine's work.
//!
//! ```
//! use haft_catalog::prompt::{Context, PromptTemplate, Section, Visibility};
//!
//! let prompt = PromptTemplate::<String>::new("example", "research")
//!     .section(Section::new("task", "Task").body("Answer questions about $topic."))
//!     .section(
//!         Section::new("ref", "Reference")
//!             .body("All API notes.")
//!             .summary("API notes.")
//!             .visibility(Visibility::Summary),
//!     )
//!     .build()?;
//! let context = Context::new().param("topic", "rivers");
//! let rendered = prompt.render(&context)?;
//! assert!(rendered.offers_read_section);
//! assert!(rendered.text.starts_with("## 1. Task (task)\n\nAnswer questions about rivers.\n\n"));
//!
//! let read = prompt.read("ref", &context)?;
//! assert_eq!(
//!     read.text,
//!     "Content of section 'ref':\n\n## 2. Reference (ref)\n\nAll API notes."
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod context;
mod error;
mod key;
mod overrides;
mod params;
mod prompt_template;
mod read;
mod render;
mod section;
mod survey;
mod template;
mod tree;
mod visibility;

pub use context::{Collect, Context, StateView};
pub use error::{PromptError, RenderError, TemplateError};
pub use overrides::Overrides;
pub use params::Params;
pub use prompt_template::PromptTemplate;
pub use read::{READ_SECTION, Read, read_section_definition, restart_text};
pub use render::{Rendered, SectionTool};
pub use section::Section;
pub use template::TextPart;
pub use tree::{MAX_DEPTH, Prompt, SectionView};
pub use visibility::{SectionState, UnknownVisibility, Visibility};

#[cfg(test)]
mod tests;
