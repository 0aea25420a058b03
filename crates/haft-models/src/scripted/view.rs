//! What a request says, whichever way it came.

use haft_core::{Item, ModelRequest, Role, ToolChoice};
use serde_json::Value;

/// What a request says, in words that all protocols share; expectations are checked against it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestView {
    /// The model asked for; in this process, none.
    pub model: Option<String>,
    /// What the host says before everything else. Over HTTP also the `system` and `developer`
    /// messages at the beginning, where the protocol has no other place for it.
    pub instructions: Option<String>,
    /// The text of the user's last message.
    pub user: Option<String>,
    /// The names of the tools offered, in order.
    pub tools: Vec<String>,
    /// Which of them must, may or must not be called.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several may be called at once.
    pub parallel_tool_calls: Option<bool>,
    /// The outputs of calls, in order.
    pub outputs: Vec<OutputView>,
    /// How many of the outputs came before the last call: outputs of earlier rounds.
    pub earlier_outputs: usize,
    /// How many items the conversation has, counted as Open Responses items.
    pub items: usize,
    /// The body, if it came over HTTP.
    pub body: Option<Value>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputView {
    /// The call's id, where the protocol tells it.
    pub call_id: Option<String>,
    /// The text.
    pub text: String,
    /// Whether it tells of a failure, where the protocol says so.
    pub is_error: Option<bool>,
}

impl RequestView {
    /// The outputs since the last call: those of the latest round.
    pub fn latest_outputs(&self) -> &[OutputView] {
        &self.outputs[self.earlier_outputs.min(self.outputs.len())..]
    }

    /// Takes in a call.
    pub(crate) fn add_call(&mut self) {
        self.items += 1;
        self.earlier_outputs = self.outputs.len();
    }

    /// Takes in what came of a call.
    pub(crate) fn add_output(&mut self, output: OutputView) {
        self.items += 1;
        self.outputs.push(output);
    }

    /// Takes in one item of a conversation.
    pub(crate) fn add_item(&mut self, item: &Item) {
        match item {
            Item::FunctionCall(_) => self.add_call(),
            Item::FunctionCallOutput(output) => self.add_output(OutputView {
                call_id: Some(output.call_id.clone()),
                text: output.output.to_text(),
                is_error: Some(output.is_error),
            }),
            other => {
                self.items += 1;
                if let Item::Message(message) = other
                    && message.role == Role::User
                {
                    self.user = Some(message.text());
                }
            }
        }
    }
}

impl From<&ModelRequest> for RequestView {
    fn from(request: &ModelRequest) -> Self {
        let mut view = Self {
            instructions: request.instructions.as_deref().map(str::to_owned),
            tools: request
                .tools
                .iter()
                .map(|tool| tool.definition().name().to_string())
                .collect(),
            tool_choice: request.tool_choice.clone(),
            parallel_tool_calls: request.parallel_tool_calls,
            ..Self::default()
        };
        for item in request.conversation.items() {
            view.add_item(item);
        }
        view
    }
}
