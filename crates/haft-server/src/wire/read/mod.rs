//! Reading what clients write: every rule about a request that needs nothing but the request.
//!
//! Liberal in form, exact in meaning (`open-responses.md` §1.3): short forms become the long ones,
//! what may be missing is filled in, unknown fields are let through; a value that means nothing
//! here is refused with the path to it. Nothing is looked up, fetched or run.

mod choice;
mod conversation;
mod create;
mod effort;
pub(crate) mod fields;
pub(crate) mod forms;
mod item_table;
mod items;
mod mcp_tool;
mod options;
mod parameters;
mod parts;
mod tools;

#[cfg(test)]
mod choice_tests;
#[cfg(test)]
mod conversation_tests;
#[cfg(test)]
mod create_tests;
#[cfg(test)]
mod items_tests;
#[cfg(test)]
pub(crate) mod refusals;
#[cfg(test)]
mod tools_tests;

use haft_core::ValidatorFactory;
use haft_hydrate::JsonSchemaFactory;

use crate::error::ApiError;

pub(crate) use conversation::{ConversationBody, ItemsBody};
pub(crate) use effort::BoundedSchemas;
pub(crate) use item_table::foreign_prefix;
pub(crate) use mcp_tool::cut_secrets;
pub(crate) use options::json_schema;
pub(crate) use parts::{IMAGE_DETAILS, file, image_url};
pub(crate) use tools::parameters;

/// What was read, or what is wrong and where.
pub(crate) type Read<T> = Result<T, ApiError>;

/// Where a body came in. What may stand in it differs a little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// `POST /responses`
    Http,
    /// `response.create` on a WebSocket
    WebSocket,
    /// `POST /responses/compact`
    Compact,
    /// `POST /responses/input_tokens`
    InputTokens,
}

/// The words of this server that a request may use besides those of the API.
#[derive(Clone, Copy)]
pub(crate) struct Vocabulary<'v> {
    /// Whether somebody registered the type `slug:name`, for tools and items. Never asked about
    /// `haft:` and `openai:`.
    pub(crate) is_vendor_type: &'v dyn Fn(&str) -> bool,
    /// What compiles the schemas of a request.
    pub(crate) schemas: &'v dyn ValidatorFactory,
}

impl Default for Vocabulary<'_> {
    /// No vendor but haft itself, and the bundled validator.
    fn default() -> Self {
        Self {
            is_vendor_type: &|_| false,
            schemas: &JsonSchemaFactory,
        }
    }
}

impl Vocabulary<'_> {
    /// Whether `slug:name` is a type of haft's own or of a registered vendor.
    fn knows(&self, vendor_type: &str) -> bool {
        match vendor_type.split_once(':') {
            Some(("haft", name)) => !name.is_empty(),
            Some(("openai", _)) | None => false,
            Some((_, _)) => (self.is_vendor_type)(vendor_type),
        }
    }
}
