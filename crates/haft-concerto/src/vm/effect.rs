//! What only the host can do.

use std::sync::Arc;
use std::time::Duration;

use crate::value::{Builder, Value};

/// What a fiber waits for. The host performs it and resumes the fiber with its value.
#[derive(Debug, Clone)]
pub enum Effect {
    /// `emit`: resumed with the handler's answer, or nil.
    Emit {
        /// The channel.
        channel: String,
        /// The payload.
        payload: Value,
        /// Whether the program waits for the answer.
        wait: bool,
    },
    /// A call of a model: resumed with a Result.
    Model(ModelCall),
    /// A call of an agent: resumed with a Result.
    Agent(ModelCall),
    /// `listen`: resumed with a Result.
    Listen(ListenCall),
    /// A call of an MCP server's tool from code: resumed with a Result.
    Mcp(McpCall),
    /// `sleep`: resumed with nil.
    Sleep(Duration),
    /// `std::http`: resumed with a Result.
    Http(HttpRequest),
}

/// A call of a model or an agent.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// The model's or agent's name.
    pub model: Arc<str>,
    /// `execute` or `execute_with_schema`.
    pub method: Arc<str>,
    /// The display form of the argument.
    pub prompt: String,
    /// The schema that the answer must have.
    pub schema: Option<Arc<str>>,
    /// Memory, tools and context of this call.
    pub builder: Option<Arc<Builder>>,
}

/// A `listen` expression.
#[derive(Debug, Clone)]
pub struct ListenCall {
    /// The call that begins it.
    pub call: ModelCall,
    /// `$listen_N`.
    pub listen: Arc<str>,
    /// For each type of message its handler, a function of one argument.
    pub handlers: Vec<(Arc<str>, Value)>,
}

/// A call of an MCP server's tool.
#[derive(Debug, Clone)]
pub struct McpCall {
    /// The server.
    pub server: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments in order, with names where the source has them.
    pub arguments: Vec<(Option<Arc<str>>, Value)>,
}

/// A request of `std::http`; the host was already found to be allowed.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// `GET`, …
    pub method: String,
    /// Where to.
    pub url: String,
    /// JSON.
    pub body: Option<String>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}
