//! Language models behind their wire protocols.
//!
//! What comes in: a [`ModelRequest`](haft_core::ModelRequest), in haft's words. What goes out: a
//! stream of [`ModelEvent`](haft_core::ModelEvent)s, in haft's words again. Between them stands one
//! adapter per protocol. It lowers conversation, tools and choices to what its provider accepts
//! ([`lower`]), sends them ([`http`]), cuts the answer into frames ([`frame`]) and lifts those to
//! events.
//!
//! [`Backend`] makes all that from an entry of a file, [`probe`] finds a model that nobody named, and
//! [`pool`] puts several backends behind one model.
//!
//! Beside them stand two models that need no network: [`ScriptedModel`], which answers from a script
//! and remembers what it was asked, and [`OfflineModel`], which goes by rules.
//!
//! An adapter declares what its model can do and invents nothing: a call that was cut off arrives
//! cut off, an answer that broke off is an error. It must never decide about tools, keep a
//! conversation, or show a key to anybody but the provider that it is for.

mod answer;
mod anthropic;
mod builders;
mod config;
mod embeddings;
pub mod frame;
pub mod http;
mod lift;
pub mod lower;
pub mod offline;
mod ollama;
mod openai_chat;
mod openai_responses;
pub mod pool;
pub mod probe;
mod reasoning_field;
mod rejected_tools;
pub mod scripted;
pub mod testing;
mod wire;

pub use anthropic::{Anthropic, AnthropicOptions};
pub use config::{
    Adapter, Backend, CapabilityOverrides, ConfigError, HeaderSource, HostedTools, Lookup,
    ModelConfig, from_config, from_config_with, pools, process_environment, required_variable,
};
pub use embeddings::OpenAiEmbeddings;
pub use lower::{Thinking, ThoughtsBack};
pub use offline::OfflineModel;
pub use ollama::Ollama;
pub use openai_chat::{ChatQuirks, ChatServer, OpenAiChat};
pub use openai_responses::{OpenAiResponses, ResponsesOptions};
pub use reasoning_field::ReasoningField;
pub use scripted::ScriptedModel;
