//! The seam to language models: a request goes in, a stream of events comes out.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use serde_json::{Map, Value};

use crate::capabilities::Capabilities;
use crate::choice::ToolChoice;
use crate::conversation::Conversation;
use crate::item::Item;
use crate::model_error::ModelError;
use crate::model_event::ModelEvent;
use crate::provider::ProviderOptions;
use crate::tool::BoxFuture;
use crate::tool_specs::ToolSpecs;
use crate::unsupported::UnsupportedContent;

/// A language model behind its wire protocol.
///
/// An adapter lowers the request to what its provider accepts and lifts what comes back to
/// [`ModelEvent`]s. It keeps no conversation and decides nothing about tools.
pub trait Model: Send + Sync + 'static {
    /// Who answers, as the provider calls it: `gpt-5.2`, `qwen3:8b`.
    fn name(&self) -> &str;

    /// Whose protocol it speaks: `openai`, `anthropic`, `ollama`, or a name of your own.
    fn provider(&self) -> &str;

    /// What it can do. Asked before each request, so an adapter may answer by what it has learnt.
    fn capabilities(&self) -> Capabilities;

    /// The first part of an item that this model cannot be sent, so that whoever takes items in can
    /// refuse them before anything is. In a message such a part fails the request; in the output of
    /// a call, which no run must end by, it is named to the model in brackets.
    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        self.capabilities().unsupported_content(item)
    }

    /// Whether its provider makes compaction items of its own and reads them: sealed context that
    /// nobody else can open.
    fn reads_compaction(&self) -> bool {
        false
    }

    /// The names of the given options that its provider has no member for, so that a request with them is
    /// answered without: `verbosity`, `prompt_cache_key`. Those who accept options can then report them.
    fn ignored_options(&self, _options: &ModelOptions) -> Vec<&'static str> {
        Vec::new()
    }

    /// Sends one request. An error here means that nothing was answered; one inside the stream,
    /// that the answer broke off.
    ///
    /// Dropping the future or the stream ends the request.
    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider(&self) -> &str {
        (**self).provider()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        (**self).unsupported(item)
    }

    fn reads_compaction(&self) -> bool {
        (**self).reads_compaction()
    }

    fn ignored_options(&self, options: &ModelOptions) -> Vec<&'static str> {
        (**self).ignored_options(options)
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        (**self).send(request)
    }
}

/// The events of one answer. It ends after [`ModelEvent::Finished`] or an error.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// One turn as an adapter gets it: conversation, tools and wishes.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// What the host tells the model before everything else.
    pub instructions: Option<Arc<str>>,
    /// The conversation so far.
    pub conversation: Conversation,
    /// The tools to show, in this order.
    pub tools: ToolSpecs,
    /// Which of them it must, may or must not call; none when there are no tools.
    pub tool_choice: Option<ToolChoice>,
    /// Whether it may call several at once; nothing is sent where nothing is said.
    pub parallel_tool_calls: Option<bool>,
    /// What form the answer must have.
    pub output_format: Option<OutputFormat>,
    /// Whether the text of the answer must have a form, also where that is asked for in words and
    /// `output_format` is not set.
    pub structured_output: bool,
    /// Everything else.
    pub options: ModelOptions,
}

impl ModelRequest {
    /// Whether the text of the answer must have a form, however that is asked for. Such text is the
    /// answer, also where it looks like a call.
    pub fn demands_form(&self) -> bool {
        self.structured_output || self.output_format.is_some() || self.options.json_object
    }
}

/// How the model shall write. Nothing is sent where nothing is said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelOptions {
    /// At most so many tokens for this answer.
    pub max_output_tokens: Option<u64>,
    /// How freely it chooses its words.
    pub temperature: Option<f64>,
    /// From how much of the likelihood it chooses.
    pub top_p: Option<f64>,
    /// How much it thinks: `low`, `medium`, `high`, or what the provider knows.
    pub reasoning_effort: Option<String>,
    /// In how many words: `auto`, `concise`, `detailed`; where nothing is said, none are asked for.
    pub reasoning_summary: Option<String>,
    /// How much it says: `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    /// How much it avoids what was said at all, -2 to 2.
    pub presence_penalty: Option<f64>,
    /// How much it avoids what was said often, -2 to 2.
    pub frequency_penalty: Option<f64>,
    /// How many likely alternatives are told for each token, in `logprobs` of the text.
    pub top_logprobs: Option<u32>,
    /// The answer is a JSON object, whatever its members.
    pub json_object: bool,
    /// Who the user is, in a form that says nothing about a person.
    pub safety_identifier: Option<String>,
    /// Which requests shall share a cache.
    pub prompt_cache_key: Option<String>,
    /// How urgent it is: `auto`, `default`, `flex`, `priority`, or what the provider knows.
    pub service_tier: Option<String>,
    /// Whether the answer is asked for piece by piece; if not, its events may come all at the end.
    pub stream: Streaming,
    /// What is asked of the provider's own tools.
    pub provider: ProviderOptions,
    /// Members to put into the request as they are, for what only one provider knows.
    pub extra: Map<String, Value>,
}

/// Whether an answer is asked for piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streaming {
    /// As it is written.
    #[default]
    Pieces,
    /// In one piece at the end.
    Whole,
    /// Nobody hears of the pieces: as it costs least, and is safe.
    Either,
}

/// What form an answer must have.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputFormat {
    /// A name for it, of letters, digits, `_` and `-`.
    pub name: String,
    /// The JSON schema.
    pub schema: Arc<Value>,
    /// Whether the provider shall hold the model to it by the letter.
    pub strict: bool,
}
