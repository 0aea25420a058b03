//! What a translation depends on, besides the events of the run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::ProviderOptions;
use haft_mcp::CallLog;

use crate::history::Unsaid;
use crate::mcp::QuestionIds;
use crate::toolkit::Declared;
use crate::wire::View;

use super::items::Shown;

/// What the translation of a run depends on, besides its events.
#[derive(Debug, Clone, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent wishes of one request"
)]
pub(crate) struct Translation {
    /// What each tool is for the client, by the name that the model calls it by.
    pub(crate) tools: HashMap<String, Shown>,
    /// The tools about whose calls somebody may be asked, by the same name.
    pub(crate) asking: HashSet<String>,
    /// Gives questions ids that nobody else can make.
    pub(crate) questions: Option<QuestionIds>,
    /// Hears what MCP servers say to calls.
    pub(crate) calls: Arc<CallLog>,
    /// The tools as their client declared them, by the name that the model calls them by.
    pub(crate) declared: Arc<HashMap<String, Declared>>,
    /// The tools that cannot be called before they are found, by the same name.
    pub(crate) held: HashSet<String>,
    /// The tools that the conversation has called, by the same name, where repeated calls are left out.
    pub(crate) called: Option<HashSet<String>>,
    /// What is to be remembered of searches that nobody sees; none where there are none.
    pub(crate) unsaid: Option<Unsaid>,
    /// How items are presented to the client.
    pub(crate) view: View,
    /// Whether raw reasoning is presented as a summary: the client asked for one.
    pub(crate) raw_as_summary: bool,
    /// Whether an answer may hold several calls.
    pub(crate) is_parallel: bool,
    /// Whether messages wait until it is certain that they are valid.
    pub(crate) holds_text: bool,
    /// Whether vendor events are sent.
    pub(crate) has_vendor_events: bool,
    /// The provider's own tools that the request declares: the client sees their items and no others.
    pub(crate) provider: ProviderOptions,
    /// Whether a response that waits for its client says so.
    pub(crate) is_agentic: bool,
}
