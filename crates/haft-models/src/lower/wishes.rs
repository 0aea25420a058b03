//! How the model shall write: which wish has which name at which provider.
//!
//! | wish | Chat | Responses | Messages | Ollama |
//! |---|---|---|---|---|
//! | `presence_penalty`, `frequency_penalty` | the same | – | – | in `options` |
//! | `top_logprobs` | `logprobs: true` and the same | the same, and asked for in `include` | – | `logprobs: true` and the same |
//! | `json_object` | `response_format` | `text.format` | in words | `format: "json"` |
//! | `verbosity` | the same ¹ | `text.verbosity` | – | – |
//! | `service_tier` | the same ¹ | the same | `auto` or `standard_only` | – |
//! | `safety_identifier` | the same ¹ | the same | `metadata.user_id` | – |
//! | `prompt_cache_key` | the same ¹ | the same | – | – |
//! | `reasoning_effort` | the same | `reasoning.effort` | `thinking` | `think` |
//! | `reasoning_summary` | – ² | `reasoning.summary` | – ² | – ² |
//!
//! ¹ only at `OpenAI`, or where the quirk `openai_members` says so: other servers refuse members
//! that they do not know.
//!
//! ² these servers return the reasoning itself, which `haft serve` presents as the summary.
//!
//! An option without a member is left out, with a note in the log, and named by `Model::ignored_options`: it
//! changes how an answer is written, not what was said. Whether the answer is a JSON object can be asked for in words everywhere, so it
//! is.

use haft_core::{Capabilities, ModelOptions, ModelRequest};

/// What asks for a JSON object where the provider has no member for it.
pub(crate) const JSON_ONLY: &str = "Answer with a JSON object only.";

/// How a JSON object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonObject {
    /// It is not, or a schema already does.
    Unasked,
    /// By a member of the request.
    Member,
    /// In words.
    Words,
}

impl JsonObject {
    /// What a request asks for. A server that lets nothing but JSON through could not write a call.
    pub(crate) fn of(
        request: &ModelRequest,
        capabilities: &Capabilities,
        shows_tools: bool,
    ) -> Self {
        if !request.options.json_object || request.output_format.is_some() {
            return Self::Unasked;
        }
        let fits = capabilities.structured_output_with_tools || !shows_tools;
        if capabilities.structured_output && fits {
            Self::Member
        } else {
            Self::Words
        }
    }

    /// The words, if it is asked for in words.
    pub(crate) fn words(self) -> Option<&'static str> {
        (self == Self::Words).then_some(JSON_ONLY)
    }
}

/// What the host tells the model: its instructions, and the words for a JSON object.
pub(crate) fn instructions(request: &ModelRequest, json: JsonObject) -> Option<String> {
    let told = request
        .instructions
        .as_deref()
        .filter(|text| !text.is_empty());
    match (told, json.words()) {
        (None, None) => None,
        (told, words) => {
            let texts: Vec<_> = told.into_iter().chain(words).collect();
            Some(texts.join("\n\n"))
        }
    }
}

/// Logs which options are given that the provider has no member for.
pub(crate) fn leave_out(provider: &str, ignored: &[&str]) {
    for option in ignored {
        tracing::debug!(
            provider,
            option,
            "ignoring an option that the provider does not support"
        );
    }
}

/// Those of the named options that are given.
pub(crate) fn given(options: &ModelOptions, names: &[&'static str]) -> Vec<&'static str> {
    let names = names.iter().copied();
    names.filter(|name| is_given(options, name)).collect()
}

fn is_given(options: &ModelOptions, name: &str) -> bool {
    match name {
        "temperature" => options.temperature.is_some(),
        "top_p" => options.top_p.is_some(),
        "presence_penalty" => options.presence_penalty.is_some(),
        "frequency_penalty" => options.frequency_penalty.is_some(),
        "top_logprobs" => options.top_logprobs.is_some(),
        "verbosity" => options.verbosity.is_some(),
        "service_tier" => options.service_tier.is_some(),
        "safety_identifier" => options.safety_identifier.is_some(),
        "prompt_cache_key" => options.prompt_cache_key.is_some(),
        "reasoning_summary" => options.reasoning_summary.is_some(),
        _ => false,
    }
}
