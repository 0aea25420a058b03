//! Tools that come and go during a conversation.
//!
//! What comes in: all tools of a run, what the conversation remembers, and the calls by which a model
//! asks for more. What goes out: the list for the next request. Nothing here is about one model: an
//! adapter that cannot take a new list is started anew with it.

mod finder;
mod host;
mod memory;
mod pick;
mod search;
mod section;
mod toolset;

pub use host::{HostError, VisibilityChange};
pub use search::{ToolFinder, search_tools_definition, search_tools_described};
pub use section::ReadSectionResult;

pub(crate) use memory::{Deferral, Picked};
pub(crate) use pick::Pick;
pub(crate) use search::{Found, SEARCH_TOOLS};
pub(crate) use section::{FrozenPrompt, Opens, PromptSource};
pub(crate) use toolset::{Parts, Showing, Toolset};
pub use toolset::{is_held_back, search_tool_name};
