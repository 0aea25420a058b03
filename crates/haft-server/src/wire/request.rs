//! A request for a response, read and checked for itself; nothing that it refers to is looked up.

use std::fmt;

use haft_core::{Item, StoredItem};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use super::mcp::McpEntry;

/// The body of `POST /responses`, every default applied.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "the API has so many")]
pub(crate) struct CreateRequest {
    pub(crate) model: Option<String>,
    /// None if the request has no `input`; then something else must give the context.
    pub(crate) input: Option<Vec<InputItem>>,
    pub(crate) instructions: Option<String>,
    pub(crate) previous_response_id: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) tools: Vec<RequestTool>,
    pub(crate) tool_choice: WireChoice,
    pub(crate) parallel_tool_calls: bool,
    pub(crate) max_tool_calls: Option<u32>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) presence_penalty: Option<f64>,
    pub(crate) frequency_penalty: Option<f64>,
    pub(crate) top_logprobs: Option<u32>,
    pub(crate) text: TextOptions,
    pub(crate) reasoning: Option<ReasoningOptions>,
    pub(crate) include: Include,
    pub(crate) store: bool,
    pub(crate) stream: bool,
    pub(crate) background: bool,
    pub(crate) truncation: Truncation,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) service_tier: Option<String>,
    pub(crate) safety_identifier: Option<String>,
    pub(crate) prompt_cache_key: Option<String>,
    /// Compact when the context has more tokens than this.
    pub(crate) compact_threshold: Option<u64>,
    pub(crate) stream_id: Option<String>,
    /// `false`: a warm-up on a WebSocket.
    pub(crate) generate: bool,
    /// What the response shows of the fields that are kept in another form here.
    pub(crate) echo: RequestEcho,
    /// The members that have no effect whichever model answers, as paths.
    pub(crate) ignored: Vec<String>,
}

impl CreateRequest {
    /// Whether it asks for a summary of the reasoning.
    pub(crate) fn asks_for_summary(&self) -> bool {
        let reasoning = self.reasoning.as_ref();
        reasoning.is_some_and(|reasoning| reasoning.summary.is_some())
    }
}

/// Fields as the client wrote them, or their defaults: `0` stays `0`, `0.0` stays `0.0`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestEcho {
    pub(crate) temperature: Value,
    pub(crate) top_p: Value,
    pub(crate) presence_penalty: Value,
    pub(crate) frequency_penalty: Value,
    pub(crate) tool_choice: Value,
}

/// One entry of `input`.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "nearly every entry is an item")]
pub(crate) enum InputItem {
    /// An item, in the form in which it is stored and listed.
    Item(InputRecord),
    /// A stored item, by its id.
    Reference {
        /// Its id.
        id: String,
        /// Where it stands: `input[3]`.
        param: String,
    },
    /// Compact what came before. Always the last.
    CompactionTrigger,
}

/// An item as a client sent it, with an id and a status, its content as parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InputRecord {
    /// Its id: the client's, or a new one.
    pub(crate) id: String,
    /// Where it stands: `input[3]`.
    pub(crate) param: String,
    /// The item. The five core types are typed, every other is [`Item::Other`]. It holds no secret.
    pub(crate) item: Item,
    /// The tools that it loads (`additional_tools`, `tool_search_output`), secrets included.
    pub(crate) tools: Vec<RequestTool>,
}

impl InputRecord {
    /// The item as the store keeps it.
    pub(crate) fn stored(&self) -> serde_json::Result<StoredItem> {
        Ok(StoredItem {
            id: self.id.clone(),
            json: to_raw_value(&self.item)?,
        })
    }
}

/// One entry of `tools`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestTool {
    /// Where it stands: `tools[1]`, or `input[2].tools[0]` for a loaded one.
    pub(crate) param: String,
    /// The tool as the response echoes it (`open-responses.md` §4).
    pub(crate) echo: Value,
    pub(crate) kind: RequestToolKind,
}

/// What an entry of `tools` is.
#[derive(Clone, PartialEq)]
pub(crate) enum RequestToolKind {
    Function(FunctionTool),
    Custom(CustomTool),
    Namespace {
        name: String,
        description: Option<String>,
        defer_loading: bool,
        /// Functions and custom tools, each with its own `param`.
        tools: Vec<RequestTool>,
    },
    ToolSearch {
        /// `execution: "client"`.
        is_client: bool,
        description: Option<String>,
        parameters: Option<Value>,
    },
    /// `mcp`
    Mcp(Box<McpEntry>),
    /// Every other type, of a vendor (`haft:clock`) or hosted (`web_search`), as it came.
    /// `openai:web_search` is the same as `web_search`; the spelling stays in `echo`.
    Hosted {
        /// The type without an `openai:` prefix.
        tool_type: String,
        config: Map<String, Value>,
    },
}

impl fmt::Debug for RequestToolKind {
    /// Names only: what stands in the configuration of a server may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(function) => function.fmt(f),
            Self::Custom(custom) => custom.fmt(f),
            Self::Namespace { name, tools, .. } => {
                write!(f, "Namespace({name}, ")?;
                tools.fmt(f)?;
                f.write_str(")")
            }
            Self::ToolSearch { is_client, .. } => write!(f, "ToolSearch(is_client: {is_client})"),
            Self::Mcp(entry) => entry.fmt(f),
            Self::Hosted { tool_type, .. } => write!(f, "Hosted({tool_type})"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FunctionTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The schema; absent ones are an object without properties.
    pub(crate) parameters: Value,
    pub(crate) strict: bool,
    pub(crate) defer_loading: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CustomTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The grammar, `{syntax, definition}`; none for free text.
    pub(crate) grammar: Option<(String, String)>,
    pub(crate) defer_loading: bool,
}

/// `tool_choice`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireChoice {
    Auto,
    None,
    Required,
    /// One tool.
    Tool(WireToolName),
    Allowed {
        mode: WireChoiceMode,
        tools: Vec<WireToolName>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireChoiceMode {
    Auto,
    Required,
    None,
}

/// How `tool_choice` names a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireToolName {
    Function {
        name: String,
        namespace: Option<String>,
    },
    Custom {
        name: String,
    },
    Mcp {
        server_label: String,
        name: Option<String>,
    },
    /// A hosted type or `haft:clock`; without an `openai:` prefix.
    Hosted {
        tool_type: String,
    },
}

/// `text`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextOptions {
    pub(crate) format: TextFormat,
    pub(crate) verbosity: Option<String>,
}

/// `text.format`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextFormat {
    Text,
    JsonObject,
    JsonSchema {
        name: String,
        description: Option<String>,
        schema: Value,
        strict: bool,
    },
}

/// `reasoning`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReasoningOptions {
    pub(crate) effort: Option<String>,
    pub(crate) summary: Option<String>,
    /// What else the client sent.
    pub(crate) extra: Map<String, Value>,
}

/// What of `include` has an effect here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Include {
    /// `reasoning.encrypted_content`
    pub(crate) encrypted_reasoning: bool,
    /// `message.output_text.logprobs`
    pub(crate) logprobs: bool,
    /// The values that belong to tools of a provider, as bits in the order of
    /// `PROVIDER_INCLUDES`.
    pub(crate) provider: u8,
}

/// `truncation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truncation {
    Auto,
    Disabled,
}
