//! Loop detection: does the model go round in circles?
//!
//! What comes in: calls as the model wrote them, in call order, before any of their batch runs; and,
//! where asked for, finished calls with their results. What goes out: reports, numbered over the
//! whole run, each with the action that its number calls for. The detector keeps digests, never
//! arguments or results, and no more of them than its window. It must never run, change or hold
//! back a call: that is the loop's work.

use std::collections::VecDeque;

use haft_core::{Capabilities, RawArguments, canonical_json, cut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::loop_report::{LoopAction, LoopKind, LoopReport};

/// How a run watches for loops.
///
/// ```
/// use haft_engine::{LoopAction, LoopDetection};
///
/// let patient: LoopDetection = serde_json::from_str(r#"{"max_exact": 5}"#)?;
/// assert_eq!(patient.max_exact, 5);
/// assert_eq!(patient.actions, [LoopAction::Warn, LoopAction::Warn, LoopAction::Terminate]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoopDetection {
    /// Whether it watches at all.
    pub enabled: bool,
    /// So many equal calls within the window are admitted; the next one is reported.
    pub max_exact: usize,
    /// How many earlier calls are looked at for equal ones.
    pub exact_window: usize,
    /// Whether repeating sequences are looked for.
    pub patterns: bool,
    /// The shortest sequence.
    pub min_len: usize,
    /// The longest sequence.
    pub max_len: usize,
    /// What the first, the second, and the third and every later report lead to.
    pub actions: [LoopAction; 3],
    /// Whether finished calls are watched too: equal calls with equal results.
    pub same_result: bool,
    /// Whether a repeated call is left out if its result is in the conversation and running it again would change
    /// nothing; the model is asked for its answer instead.
    pub nudge: Nudge,
}

impl Default for LoopDetection {
    fn default() -> Self {
        Self {
            enabled: true,
            max_exact: 3,
            exact_window: 10,
            patterns: true,
            min_len: 2,
            max_len: 3,
            actions: [LoopAction::Warn, LoopAction::Warn, LoopAction::Terminate],
            same_result: false,
            nudge: Nudge::Auto,
        }
    }
}

impl LoopDetection {
    /// No detection.
    pub fn off() -> Self {
        Self {
            enabled: false,
            ..Self::default()
        }
    }

    /// Whether calls are left out whose results a model with these capabilities already has.
    pub fn nudges(&self, capabilities: &Capabilities) -> bool {
        let is_on = match self.nudge {
            Nudge::On => true,
            Nudge::Off => false,
            Nudge::Auto => capabilities.repeats_calls,
        };
        self.enabled && is_on
    }

    /// How many records the detector needs to look back.
    fn memory(&self) -> usize {
        let sequences = if self.patterns {
            self.max_len.saturating_mul(2)
        } else {
            0
        };
        self.exact_window.max(sequences)
    }

    fn action(&self, number: usize) -> LoopAction {
        self.actions[number.clamp(1, self.actions.len()) - 1]
    }
}

/// Whether calls are left out whose results the model already has, and the model is asked for its answer instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nudge {
    /// For models that tend to repeat calls: those of `openai-chat` and `ollama`, unless `repeats_calls` of their
    /// capabilities says otherwise.
    #[default]
    Auto,
    /// For every model.
    On,
    /// For none.
    Off,
}

/// From how many equal calls with equal results on the second detector reports.
const SAME_RESULTS: usize = 3;

/// The detector of one run, also across its restarts.
///
/// ```
/// use haft_engine::{LoopDetection, LoopDetector};
///
/// let mut detector = LoopDetector::new(LoopDetection::default());
/// let arguments = r#"{"q":"rust"}"#.into();
/// for _ in 0..3 {
///     assert_eq!(detector.check("search", &arguments), None);
/// }
/// let report = detector.check("search", &arguments).unwrap();
/// assert!(report.warning().starts_with("[loop warning 1] 'search' was called"));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoopDetector {
    options: LoopDetection,
    calls: VecDeque<Record>,
    reports: usize,
    results: VecDeque<String>,
    result_reports: usize,
}

/// One earlier call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    /// For the text of a report; cut, because the model may write any name.
    tool: String,
    digest: String,
}

impl LoopDetector {
    /// A detector that has seen nothing.
    pub fn new(options: LoopDetection) -> Self {
        Self {
            options,
            calls: VecDeque::new(),
            reports: 0,
            results: VecDeque::new(),
            result_reports: 0,
        }
    }

    /// Looks at the next call, in call order, before anything of its batch runs, and remembers it.
    pub fn check(&mut self, name: &str, arguments: &RawArguments) -> Option<LoopReport> {
        if !self.options.enabled {
            return None;
        }
        let digest = call_digest(name, arguments);
        let kind = self
            .exact(name, &digest)
            .or_else(|| self.pattern(&digest))
            .map(|kind| {
                self.reports += 1;
                LoopReport {
                    number: self.reports,
                    kind,
                    action: self.options.action(self.reports),
                }
            });
        let record = Record {
            tool: cut(name),
            digest,
        };
        remember(&mut self.calls, record, self.options.memory());
        kind
    }

    /// Looks at a call that has run, if [`LoopDetection::same_result`] is set, and remembers it.
    pub fn finished(
        &mut self,
        name: &str,
        arguments: &RawArguments,
        result: &str,
    ) -> Option<LoopReport> {
        if !self.options.enabled || !self.options.same_result {
            return None;
        }
        let digest = digest_of(&[
            call_digest(name, arguments).as_bytes(),
            Sha256::digest(result).as_slice(),
        ]);
        let count = 1 + self.results.iter().filter(|seen| **seen == digest).count();
        remember(&mut self.results, digest, self.options.exact_window);
        if count < SAME_RESULTS {
            return None;
        }
        self.result_reports += 1;
        Some(LoopReport {
            number: self.result_reports,
            kind: LoopKind::SameResult {
                tool: cut(name),
                count,
            },
            action: self.options.action(self.result_reports),
        })
    }

    fn exact(&self, name: &str, digest: &str) -> Option<LoopKind> {
        let window = self.options.exact_window;
        let seen = self
            .calls
            .iter()
            .rev()
            .take(window)
            .filter(|call| call.digest == digest)
            .count();
        (seen >= self.options.max_exact).then(|| LoopKind::Exact {
            tool: cut(name),
            count: seen + 1,
            window: window.saturating_add(1),
        })
    }

    /// A sequence that was there twice, and whose third time this call begins.
    fn pattern(&self, digest: &str) -> Option<LoopKind> {
        if !self.options.patterns {
            return None;
        }
        let calls = self.calls.len();
        let longest = self.options.max_len.min(calls / 2);
        (self.options.min_len.max(1)..=longest)
            .find(|length| {
                let last = calls - length;
                self.calls[last].digest == digest
                    && (last..calls)
                        .all(|at| self.calls[at].digest == self.calls[at - length].digest)
            })
            .map(|length| LoopKind::Pattern {
                tools: self
                    .calls
                    .range(calls - length..)
                    .map(|call| call.tool.clone())
                    .collect(),
            })
    }
}

fn remember<T>(records: &mut VecDeque<T>, record: T, limit: usize) {
    records.push_back(record);
    while records.len() > limit {
        records.pop_front();
    }
}

/// Equal for equal calls: the same name, and the same JSON whatever the order of members. `1` and
/// `1.0` differ; what is no JSON compares as text. Nothing and `null` mean `{}`, as in hydration.
pub(crate) fn call_digest(name: &str, arguments: &RawArguments) -> String {
    let json = |value: &Value| {
        let text = match value {
            Value::Null => "{}".to_owned(),
            value => canonical_json(value),
        };
        digest_of(&[name.as_bytes(), b"json", text.as_bytes()])
    };
    match arguments {
        RawArguments::Json(value) => json(value),
        RawArguments::Text(text) if text.trim().is_empty() => json(&Value::Null),
        RawArguments::Text(text) => match serde_json::from_str(text) {
            Ok(value) => json(&value),
            Err(_) => digest_of(&[name.as_bytes(), b"text", text.as_bytes()]),
        },
    }
}

/// Each part with its length in front: no two lists of parts give the same bytes.
pub(crate) fn digest_of(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    digest.iter().fold(String::new(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
        text
    })
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
