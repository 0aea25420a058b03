//! The mock provider as a model of the engine.

use haft_core::{
    BoxFuture, Capabilities, Item, Model, ModelError, ModelRequest, ModelResponse, ModelStream,
    Role,
};

use super::mock_reply;

/// The mock provider as a model of the engine.
pub(super) struct MockModel {
    name: String,
}

impl MockModel {
    /// One that is asked for under this name.
    pub(super) fn new(name: String) -> Self {
        Self { name }
    }
}

impl Model for MockModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> &'static str {
        "mock"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            structured_output: true,
            structured_output_with_tools: true,
            ..Capabilities::default()
        }
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let last = request
            .conversation
            .items()
            .rev()
            .find_map(|item| match item {
                Item::Message(message) if message.role == Role::User => Some(message.text()),
                _ => None,
            });
        let schema = request.output_format.as_ref().map(|format| &*format.schema);
        let reply = mock_reply(&last.unwrap_or_default(), schema);
        let tokens = |count: i64| u64::try_from(count).unwrap_or_default();
        let response = ModelResponse::text(reply.text)
            .with_usage(tokens(reply.tokens_in), tokens(reply.tokens_out));
        Box::pin(async move { Ok(response.into_stream()) })
    }
}
