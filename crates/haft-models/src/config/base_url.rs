//! Base addresses that cannot be right for their adapter, whatever server is there.

use super::Adapter;

/// What is wrong with the address and what to write instead; none where it may be right.
///
/// An address without `/v1` may be right: llama.cpp serves its API at the root as well.
pub(super) fn fault(adapter: Adapter, base_url: &str) -> Option<String> {
    let address = base_url.trim().trim_end_matches('/');
    // A query may hold a key, and is no mistake.
    if address.contains(['?', '#']) {
        return None;
    }
    let endpoints: &[&str] = match adapter {
        Adapter::OpenaiChat => &["/chat/completions", "/completions"],
        Adapter::OpenaiResponses => &["/responses"],
        Adapter::Anthropic => &["/messages"],
        Adapter::Ollama => &["/api/chat", "/api/generate", "/api", "/v1"],
        Adapter::Scripted | Adapter::Offline => &[],
    };
    let named = endpoints
        .iter()
        .find_map(|end| Some((end, address.strip_suffix(end)?)));
    if let Some((end, root)) = named {
        return Some(format!("it must not end in `{end}`: write `{root}`"));
    }
    let is_openai = matches!(adapter, Adapter::OpenaiChat | Adapter::OpenaiResponses);
    let native = ["/api/chat", "/api/generate", "/api"].iter();
    let root = native.clone().find_map(|end| address.strip_suffix(end))?;
    // Elsewhere `/api` may be the beginning of anything.
    (is_openai && root.ends_with(":11434")).then(|| {
        format!(
            "that is Ollama's own API: write `{root}/v1`, or `adapter = \"ollama\"` and `{root}`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_cannot_be_right_are_faults() {
        for (adapter, address, written) in [
            (
                Adapter::OpenaiChat,
                "http://h/v1/chat/completions/",
                Some("write `http://h/v1`"),
            ),
            (
                Adapter::OpenaiResponses,
                "http://h/v1/responses",
                Some("write `http://h/v1`"),
            ),
            (
                Adapter::Anthropic,
                "http://h/v1/messages",
                Some("write `http://h/v1`"),
            ),
            (
                Adapter::Ollama,
                "http://h:11434/v1",
                Some("write `http://h:11434`"),
            ),
            (
                Adapter::Ollama,
                "http://h:11434/api/chat",
                Some("write `http://h:11434`"),
            ),
            (
                Adapter::OpenaiChat,
                "http://h:11434/api",
                Some("write `http://h:11434/v1`"),
            ),
            (Adapter::OpenaiChat, "http://h:8080", None),
            (Adapter::OpenaiChat, "http://h:11434", None),
            (Adapter::OpenaiChat, "https://openrouter.ai/api/v1", None),
            (Adapter::OpenaiChat, "https://h/api", None),
            (Adapter::Anthropic, "http://h/v1", None),
            (Adapter::Ollama, "http://h/ollama", None),
        ] {
            let fault = fault(adapter, address);
            assert_eq!(fault.is_some(), written.is_some(), "{address}: {fault:?}");
            if let (Some(fault), Some(written)) = (fault, written) {
                assert!(fault.contains(written), "{address}: {fault}");
            }
        }
    }
}
