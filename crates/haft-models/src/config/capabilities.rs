//! What a model can do, as a file says it.

use haft_core::{Capabilities, ForcedChoice};
use serde::{Deserialize, Deserializer};

/// Changes to what an adapter takes for granted. What is not said stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilityOverrides {
    /// See [`Capabilities::supports_dynamic_tools`].
    pub dynamic_tools: Option<bool>,
    /// See [`Capabilities::parallel_calls`].
    pub parallel_calls: Option<bool>,
    /// See [`Capabilities::strict_schemas`].
    pub strict_schemas: Option<bool>,
    /// See [`Capabilities::forced_choice`]: `named`, `only-tool` or `unsupported`.
    #[serde(deserialize_with = "forced_choice")]
    pub forced_choice: Option<ForcedChoice>,
    /// See [`Capabilities::none_choice`].
    pub none_choice: Option<bool>,
    /// See [`Capabilities::native_deferred_loading`].
    pub native_deferred_loading: Option<bool>,
    /// See [`Capabilities::image_input`].
    pub image_input: Option<bool>,
    /// See [`Capabilities::file_input`].
    pub file_input: Option<bool>,
    /// See [`Capabilities::video_input`].
    pub video_input: Option<bool>,
    /// See [`Capabilities::structured_output`].
    pub structured_output: Option<bool>,
    /// See [`Capabilities::structured_output_with_tools`].
    pub structured_output_with_tools: Option<bool>,
}

impl CapabilityOverrides {
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
            image_input: self.image_input.unwrap_or(usual.image_input),
            file_input: self.file_input.unwrap_or(usual.file_input),
            video_input: self.video_input.unwrap_or(usual.video_input),
            structured_output: self.structured_output.unwrap_or(usual.structured_output),
            structured_output_with_tools: self
                .structured_output_with_tools
                .unwrap_or(usual.structured_output_with_tools),
            context_tokens: usual.context_tokens,
        }
    }
}

fn forced_choice<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ForcedChoice>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        Named,
        OnlyTool,
        Unsupported,
    }
    Ok(Some(match Word::deserialize(deserializer)? {
        Word::Named => ForcedChoice::Named,
        Word::OnlyTool => ForcedChoice::OnlyTool,
        Word::Unsupported => ForcedChoice::Unsupported,
    }))
}
