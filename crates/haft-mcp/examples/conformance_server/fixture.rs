//! The backend: which fixture does what.

use std::sync::Arc;

use haft_mcp::gateway::{
    Backend, BackendError, CallContext, CallOutcome, CallRequest, Caller, Change, Completion,
    CompletionRequest, Features, Identity, ListedPrompt, ListedResource, ListedTool, Listing,
    PromptOutcome, PromptRequest, ReadOutcome, ReadRequest, Reply, ToolList,
};
use tokio::sync::broadcast;

use crate::{inputs, others, tools};

/// Everything that the suite asks for.
pub(crate) struct Fixture {
    tools: Arc<ToolList>,
    changes: broadcast::Sender<Change>,
}

impl Fixture {
    /// All fixtures.
    pub(crate) fn new() -> Self {
        let tools = tools::all().into_iter().map(Arc::new).collect();
        Self {
            tools: Arc::new(ToolList {
                tools,
                ..ToolList::default()
            }),
            changes: broadcast::channel(16).0,
        }
    }

    fn changed(&self, change: Change) -> CallOutcome {
        // Nobody may be listening.
        let _ = self.changes.send(change);
        CallOutcome::text("changed")
    }
}

impl Backend for Fixture {
    fn identity(&self) -> Identity {
        Identity::new("haft-conformance-server", env!("CARGO_PKG_VERSION"))
    }

    fn features(&self) -> Features {
        Features {
            prompts: true,
            resources: true,
            completion: true,
            logging: true,
        }
    }

    async fn tools(&self, _: &Caller) -> Result<Arc<ToolList>, BackendError> {
        Ok(self.tools.clone())
    }

    fn find_tool(&self, _: &Caller, name: &str) -> Option<Arc<ListedTool>> {
        let mut tools = self.tools.tools.iter();
        tools.find(|tool| tool.name == name).cloned()
    }

    async fn call(
        &self,
        request: CallRequest,
        context: CallContext,
    ) -> Result<Reply<CallOutcome>, BackendError> {
        let name = request.tool.name.clone();
        match name.as_str() {
            "test_trigger_tool_change" => Ok(Reply::Complete(self.changed(Change::Tools))),
            "test_trigger_prompt_change" => Ok(Reply::Complete(self.changed(Change::Prompts))),
            _ => match name.strip_prefix("test_input_required_result_") {
                Some(kind) => inputs::call(kind, &request.input, context.client()),
                None => tools::call(&name, &request.arguments, &context)
                    .await
                    .map(Reply::Complete),
            },
        }
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        Some(self.changes.subscribe())
    }

    async fn prompts(&self, _: &Caller) -> Result<Listing<ListedPrompt>, BackendError> {
        Ok(others::prompts())
    }

    async fn prompt(
        &self,
        request: PromptRequest,
        _: CallContext,
    ) -> Result<Reply<PromptOutcome>, BackendError> {
        others::prompt(&request)
    }

    async fn resources(&self, _: &Caller) -> Result<Listing<ListedResource>, BackendError> {
        Ok(others::resources())
    }

    async fn resource_templates(
        &self,
        _: &Caller,
    ) -> Result<Listing<ListedResource>, BackendError> {
        Ok(others::templates())
    }

    async fn read(
        &self,
        request: ReadRequest,
        _: CallContext,
    ) -> Result<Reply<ReadOutcome>, BackendError> {
        others::read(&request.uri).map(Reply::Complete)
    }

    fn watches(&self, _: &Caller, uri: &str) -> bool {
        others::resources().items.iter().any(|it| it.uri == uri)
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        _: &Caller,
    ) -> Result<Completion, BackendError> {
        Ok(others::complete(&request))
    }
}
