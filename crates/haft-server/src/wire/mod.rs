//! The forms of the API: what clients write and what they get, and nothing of what is done with it.

mod request;
mod resource;
mod visible;

pub(crate) use request::{
    CreateRequest, CustomTool, FunctionTool, Include, InputItem, InputRecord, ReasoningOptions,
    RequestTool, RequestToolKind, TextFormat, TextOptions, Truncation, WireChoice, WireChoiceMode,
    WireToolName,
};
pub(crate) use resource::{
    IncompleteDetails, ResponseError, ResponseResource, ResponseStatus, usage_json,
};
pub(crate) use visible::{visible_item, visible_part};
