//! What a model can do, as a file says it.

use haft_core::{Capabilities, ForcedChoice};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// Changes to what an adapter takes for granted. What is not said stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilityOverrides {
    /// Whether the tool list may change in a running conversation.
    ///
    /// See [`Capabilities::supports_dynamic_tools`].
    pub dynamic_tools: Option<bool>,
    /// Whether one answer may have several calls.
    ///
    /// See [`Capabilities::parallel_calls`].
    pub parallel_calls: Option<bool>,
    /// Whether schemas marked strict are followed to the letter.
    ///
    /// See [`Capabilities::strict_schemas`].
    pub strict_schemas: Option<bool>,
    /// How one tool can be forced.
    ///
    /// See [`Capabilities::forced_choice`].
    #[serde(deserialize_with = "forced_choice")]
    #[schemars(with = "Option<Word>")]
    pub forced_choice: Option<ForcedChoice>,
    /// Whether `tool_choice: none` really keeps the model from calling.
    ///
    /// See [`Capabilities::none_choice`].
    pub none_choice: Option<bool>,
    /// Whether the provider itself holds tools back until its own search finds them: `openai-responses`
    /// and `anthropic` only.
    ///
    /// See [`Capabilities::native_deferred_loading`].
    pub native_deferred_loading: Option<bool>,
    /// Whether the provider holds tools back until the output of a call refers to them: `anthropic` only.
    ///
    /// See [`Capabilities::tool_references`].
    pub tool_references: Option<bool>,
    /// Whether it takes images.
    ///
    /// See [`Capabilities::image_input`].
    pub image_input: Option<bool>,
    /// Whether it takes files, such as PDF documents.
    ///
    /// See [`Capabilities::file_input`].
    pub file_input: Option<bool>,
    /// Whether it takes videos.
    ///
    /// See [`Capabilities::video_input`].
    pub video_input: Option<bool>,
    /// Whether an answer can be bound to a JSON schema.
    ///
    /// See [`Capabilities::structured_output`].
    pub structured_output: Option<bool>,
    /// Whether it can be bound to one while tools are offered, and still call them. By default only for
    /// `openai-responses`, `anthropic` and the `openai-chat` server of `OpenAI`: others then write nothing but
    /// JSON, or refuse the request.
    ///
    /// See [`Capabilities::structured_output_with_tools`].
    pub structured_output_with_tools: Option<bool>,
    /// Whether the model tends to repeat calls whose results it already has; so `openai-chat` and `ollama` assume.
    ///
    /// See [`Capabilities::repeats_calls`].
    pub repeats_calls: Option<bool>,
}

impl CapabilityOverrides {
    /// Which of the ways to hold tools back are said to be there.
    pub(super) fn deferrals(&self) -> impl Iterator<Item = &'static str> {
        let said = [
            ("native_deferred_loading", self.native_deferred_loading),
            ("tool_references", self.tool_references),
        ];
        let said = said.into_iter().filter(|(_, said)| *said == Some(true));
        said.map(|(name, _)| name)
    }

    /// The override that contradicts another, and why.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let has_no_schemas = self.structured_output == Some(false);
        (has_no_schemas && self.structured_output_with_tools == Some(true)).then_some(
            "`structured_output_with_tools`: it needs `structured_output`, which is `false`: leave one of them out",
        )
    }

    /// The capabilities with these changes.
    ///
    /// ```
    /// use haft_core::Capabilities;
    /// use haft_models::CapabilityOverrides;
    /// let overrides = CapabilityOverrides { image_input: Some(true), ..Default::default() };
    /// assert!(overrides.apply(Capabilities::default()).image_input);
    /// ```
    #[must_use]
    pub fn apply(&self, capabilities: Capabilities) -> Capabilities {
        let usual = capabilities;
        Capabilities {
            supports_dynamic_tools: self.dynamic_tools.unwrap_or(usual.supports_dynamic_tools),
            parallel_calls: self.parallel_calls.unwrap_or(usual.parallel_calls),
            strict_schemas: self.strict_schemas.unwrap_or(usual.strict_schemas),
            named_choice: usual.named_choice,
            forced_choice: self.forced_choice.unwrap_or(usual.forced_choice),
            none_choice: self.none_choice.unwrap_or(usual.none_choice),
            native_deferred_loading: self
                .native_deferred_loading
                .unwrap_or(usual.native_deferred_loading),
            tool_references: self.tool_references.unwrap_or(usual.tool_references),
            image_input: self.image_input.unwrap_or(usual.image_input),
            file_input: self.file_input.unwrap_or(usual.file_input),
            video_input: self.video_input.unwrap_or(usual.video_input),
            structured_output: self.structured_output.unwrap_or(usual.structured_output),
            structured_output_with_tools: self
                .structured_output_with_tools
                .unwrap_or(usual.structured_output_with_tools),
            provider_tools: usual.provider_tools,
            repeats_calls: self.repeats_calls.unwrap_or(usual.repeats_calls),
            context_tokens: usual.context_tokens,
        }
    }
}

/// [`ForcedChoice`] as a file writes it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Word {
    /// By naming it.
    Named,
    /// Only by `required` with no other tool in the request.
    OnlyTool,
    /// Not at all.
    Unsupported,
}

fn forced_choice<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ForcedChoice>, D::Error> {
    Ok(Some(match Word::deserialize(deserializer)? {
        Word::Named => ForcedChoice::Named,
        Word::OnlyTool => ForcedChoice::OnlyTool,
        Word::Unsupported => ForcedChoice::Unsupported,
    }))
}
