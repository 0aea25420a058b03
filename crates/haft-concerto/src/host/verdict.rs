//! How a test ended (§17).

use super::Place;
use crate::ir::Test;
use crate::value::Value;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOutcome {
    /// As it should; `true` if it was to fail.
    Passed(bool),
    /// With this message, and there, if code of the test failed.
    Failed(String, Option<Place>),
}

impl TestOutcome {
    /// What the end of its code means for a test.
    pub(super) fn of(test: &Test, ended: Result<Value, (String, Option<Place>)>) -> Self {
        match (ended, test.expect_fail, &test.expect_fail_message) {
            (Ok(_), false, _) => Self::Passed(false),
            (Ok(_), true, _) => Self::Failed("expected a failure, but it passed".into(), None),
            (Err((said, place)), false, _) => Self::Failed(said, place),
            (Err((said, place)), true, Some(part)) if !said.contains(part.as_str()) => {
                let said = format!("expected a failure with '{part}', got: {said}");
                Self::Failed(said, place)
            }
            (Err(_), true, _) => Self::Passed(true),
        }
    }
}
