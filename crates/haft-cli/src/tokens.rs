//! How many tokens a text costs.
//!
//! Counted as current models of `OpenAI` do, if this was built with `tokens`; others count a little
//! differently, so it is a measure for comparing and not a bill. Without it, four bytes are one token.

/// How it is counted, for whoever shows a number.
#[cfg(feature = "tokens")]
pub(crate) const METHOD: &str = "o200k_base";

/// How it is counted, for whoever shows a number.
#[cfg(not(feature = "tokens"))]
pub(crate) const METHOD: &str = "estimated";

/// How many tokens a text has.
#[cfg(feature = "tokens")]
pub(crate) fn count(text: &str) -> usize {
    bpe_openai::o200k_base().count(text)
}

/// How many tokens a text has, about.
#[cfg(not(feature = "tokens"))]
pub(crate) fn count(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// How many tokens a tool costs in every request that offers it: its definition as requests announce it.
pub(crate) fn of_tool(definition: &haft::ToolDefinition) -> usize {
    count(&definition.view(haft::ViewFormat::Responses).to_string())
}

#[cfg(all(test, feature = "tokens"))]
mod tests {
    use super::*;

    /// As `tiktoken` has it for `o200k_base`.
    #[test]
    fn tokens_are_those_of_the_encoding() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count("tiktoken is great!"), 6);
        assert_eq!(count("お誕生日おめでとう"), 8);
    }

    #[test]
    fn a_tool_costs_its_name_its_description_and_its_schema() {
        let tool = |description: &str| {
            haft::ToolDefinition::builder("ping")
                .description(description)
                .parameters(haft::json!({"type": "object"}))
                .build()
                .unwrap()
        };
        let (short, long) = (tool("Ping."), tool("Ping. It says whether all is well."));
        assert!(of_tool(&short) > 10 && of_tool(&long) > of_tool(&short) + 5);
    }
}
