//! What a model behind an adapter can do.

use crate::provider::ProviderTools;

/// What an adapter declares about its model; the loop and the lowering go by it.
///
/// The default is the careful one: nothing that not every server can do.
///
/// ```
/// use haft_core::Capabilities;
/// let capabilities = Capabilities { parallel_calls: true, ..Capabilities::default() };
/// assert!(!capabilities.supports_dynamic_tools);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about a server, each named where it is declared"
)]
pub struct Capabilities {
    /// The tool list travels with every request, so it may change in a running conversation.
    pub supports_dynamic_tools: bool,
    /// Several calls in one answer, and a switch against them.
    pub parallel_calls: bool,
    /// Schemas marked strict are followed to the letter.
    pub strict_schemas: bool,
    /// How one tool can be forced.
    pub forced_choice: ForcedChoice,
    /// Naming one of several tools is worth a try: most servers follow, and none is put off.
    pub named_choice: bool,
    /// `tool_choice: none` really keeps the model from calling, with the tools still in the prompt.
    pub none_choice: bool,
    /// The provider itself holds tools back until its own search finds them.
    pub native_deferred_loading: bool,
    /// The provider holds tools back until the output of a call refers to them.
    pub tool_references: bool,
    /// Images as input.
    pub image_input: bool,
    /// Files as input, such as PDF documents.
    pub file_input: bool,
    /// Videos as input.
    pub video_input: bool,
    /// An answer can be bound to a JSON schema.
    pub structured_output: bool,
    /// It can be bound to one also while tools are offered. A server that lets nothing but the
    /// schema through cannot: its model could not write a call any more.
    pub structured_output_with_tools: bool,
    /// The tool types that go to the provider in its own form.
    pub provider_tools: ProviderTools,
    /// Models behind it tend to repeat calls whose results they already have.
    pub repeats_calls: bool,
    /// How many tokens fit, if known.
    pub context_tokens: Option<u64>,
}

/// How one tool can be forced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForcedChoice {
    /// By naming it.
    Named,
    /// Only by `required` with no other tool in the request.
    #[default]
    OnlyTool,
    /// Not at all: the server has no `tool_choice`.
    Unsupported,
}
