//! How much the model shall think, in the provider's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How a wish for more or less thinking is told to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Thinking {
    /// The model decides when to think, by the effort that is asked for. Models of 2026 know
    /// nothing else.
    #[default]
    Adaptive,
    /// So many tokens to think with, by the effort that is asked for: models before Claude 4.6.
    Budget,
}

/// What a request says about thinking.
#[derive(Debug, PartialEq)]
pub(super) struct Thought {
    pub(super) thinking: Option<Value>,
    /// A member of `output_config`.
    pub(super) effort: Option<String>,
    pub(super) max_tokens: u64,
}

/// The provider takes no smaller budget.
const SMALLEST_BUDGET: u64 = 1_024;

impl Thinking {
    /// What is said for `effort`. A model that thinks cannot be forced to call a tool: then the call
    /// goes before the thinking.
    pub(super) fn lower(
        self,
        effort: Option<&str>,
        is_forced: bool,
        asked_tokens: Option<u64>,
        default_tokens: u64,
    ) -> Thought {
        let max_tokens = asked_tokens.unwrap_or(default_tokens);
        let silent = Thought {
            thinking: None,
            effort: None,
            max_tokens,
        };
        let Some(effort) = effort.filter(|effort| *effort != "none") else {
            return silent;
        };
        if is_forced {
            return silent;
        }
        match self {
            Self::Adaptive => Thought {
                thinking: Some(json!({"type": "adaptive"})),
                effort: Some(if effort == "minimal" { "low" } else { effort }.to_owned()),
                max_tokens,
            },
            Self::Budget => {
                let budget = match effort {
                    "minimal" => SMALLEST_BUDGET,
                    "low" => 4_096,
                    "medium" => 10_240,
                    _ => 24_576,
                };
                // The budget is part of the limit and must leave room for the answer.
                let (budget, max_tokens) = match asked_tokens {
                    None => (budget, default_tokens.saturating_add(budget)),
                    Some(asked) => (budget.min(asked / 2), asked),
                };
                if budget < SMALLEST_BUDGET {
                    return silent;
                }
                Thought {
                    thinking: Some(json!({"type": "enabled", "budget_tokens": budget})),
                    effort: None,
                    max_tokens,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(effort: &str, is_forced: bool, asked: Option<u64>) -> (Option<u64>, u64) {
        let lowered = Thinking::Budget.lower(Some(effort), is_forced, asked, 8_000);
        let tokens = lowered
            .thinking
            .map(|it| it["budget_tokens"].as_u64().unwrap());
        (tokens, lowered.max_tokens)
    }

    #[test]
    fn nothing_is_said_where_nothing_is_asked() {
        for effort in [None, Some("none")] {
            for thinking in [Thinking::Adaptive, Thinking::Budget] {
                let lowered = thinking.lower(effort, false, None, 8_000);
                assert_eq!((lowered.thinking, lowered.effort), (None, None));
                assert_eq!(lowered.max_tokens, 8_000);
            }
        }
    }

    #[test]
    fn a_budget_leaves_room_for_the_answer() {
        assert_eq!(budget("low", false, None), (Some(4_096), 12_096));
        assert_eq!(budget("high", false, Some(6_000)), (Some(3_000), 6_000));
        assert_eq!(budget("high", false, Some(1_500)), (None, 1_500));
        assert_eq!(budget("high", true, None), (None, 8_000));
    }

    #[test]
    fn the_effort_is_passed_on_in_words_the_provider_knows() {
        for (asked, said) in [("minimal", "low"), ("high", "high"), ("xhigh", "xhigh")] {
            let lowered = Thinking::Adaptive.lower(Some(asked), false, None, 8_000);
            assert_eq!(lowered.effort.as_deref(), Some(said));
            assert_eq!(lowered.thinking, Some(json!({"type": "adaptive"})));
            let forced = Thinking::Adaptive.lower(Some(asked), true, None, 8_000);
            assert_eq!((forced.effort, forced.thinking), (None, None));
        }
    }
}
