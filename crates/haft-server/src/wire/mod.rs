//! The forms of the API: what clients write and what they get, and nothing of what is done with it.

mod echo;
mod ids;
mod list;
mod mcp;
mod query;
pub(crate) mod read;
mod request;
mod resource;
mod shown_items;
mod visible;

pub(crate) use ids::new_id;
pub(crate) use list::{ListPage, unknown_after};
pub(crate) use mcp::{McpAddress, McpEntry, OWN_LABEL};
pub(crate) use query::{ItemsQuery, Parameters, RetrieveQuery};
pub(crate) use read::{
    BoundedSchemas, ConversationBody, Door, ItemsBody, Vocabulary, cut_secrets, foreign_prefix,
};
pub(crate) use request::{
    CreateRequest, CustomTool, FunctionTool, Include, InputItem, RequestTool, RequestToolKind,
    TextFormat, Truncation, WireChoice, WireChoiceMode, WireToolName,
};
pub(crate) use resource::{
    IncompleteDetails, ResponseError, ResponseResource, ResponseStatus, UsageBody,
};
pub(crate) use shown_items::{ShownItems, TextMessage};
pub(crate) use visible::{View, make_visible, visible_item};
