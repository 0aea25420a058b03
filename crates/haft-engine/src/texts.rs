//! What the model reads when a call came to nothing (`dynamic-tools.md` §11, word for word).

use std::time::Duration;

/// Why a call was not executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotExecuted {
    Cancelled,
    Deadline,
    Budget,
    CallLimit,
    RoundLimit,
    OutputLimit,
    ContentFilter,
    LoopDetected,
    OneAtATime,
}

impl NotExecuted {
    pub(crate) fn text(self) -> String {
        let reason = match self {
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline exceeded",
            Self::Budget => "budget exceeded",
            Self::CallLimit => "call limit reached",
            Self::RoundLimit => "round limit reached",
            Self::OutputLimit => "output limit reached",
            Self::ContentFilter => "content filter",
            Self::LoopDetected => "loop detected",
            Self::OneAtATime => "one call at a time",
        };
        format!("Not executed: {reason}.")
    }
}

pub(crate) fn failed(tool: &str, message: &str) -> String {
    format!("Tool '{tool}' failed: {message}")
}

pub(crate) fn panicked(tool: &str, message: &str) -> String {
    format!("Tool '{tool}' panicked: {message}")
}

pub(crate) fn timed_out(tool: &str, after: Duration) -> String {
    // Whole milliseconds: a deadline leaves odd remainders.
    let after = Duration::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
    format!("Tool '{tool}' timed out after {}s.", after.as_secs_f64())
}

/// Not among the reference's texts: to say "not executed" of a call that was running would be false.
pub(crate) fn stopped(tool: &str) -> String {
    format!(
        "Tool '{tool}' was stopped while it ran: the run was cancelled. Whether it took effect is \
         unknown: check before you call it again."
    )
}

/// Nor this one: a call that may have had its effect must not be repeated as if it had not.
pub(crate) fn outcome_unknown(tool: &str) -> String {
    format!(
        "Tool '{tool}' was interrupted by a restart while it ran. Whether it took effect is unknown: \
         check before you call it again."
    )
}

pub(crate) fn too_large(tool: &str, bytes: usize, limit: usize) -> String {
    format!("Tool '{tool}' returned {bytes} bytes, more than the limit of {limit}.")
}

pub(crate) fn invalid_output(tool: &str, errors: &str) -> String {
    format!("Tool '{tool}' returned an invalid result: {errors}")
}

/// Not among the reference's texts: the one there promises that the rest can be read.
pub(crate) fn shortened(text: &str) -> String {
    let beginning = &text[..text.floor_char_boundary(512)];
    let bytes = text.len();
    format!(
        "{beginning}\n\n[Result truncated: {bytes} bytes in total. The rest could not be kept.]"
    )
}

pub(crate) fn next_turn(tool: &str) -> String {
    format!("Tool '{tool}' becomes available in the next turn.")
}

/// Behind what is wrong with a call of a tool that was shown in one line.
pub(crate) fn pick_first(pick: &str, tool: &str) -> String {
    format!(" Call {pick} with [\"{tool}\"] to see its parameters.")
}

pub(crate) fn not_approved(tool: &str, reason: Option<&str>) -> String {
    let refused = format!("Tool '{tool}' needs approval and was not approved.");
    match reason {
        Some(reason) => format!("{refused} Reason: {reason}"),
        None => refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_without_needless_digits() {
        assert_eq!(
            timed_out("x", Duration::from_secs(30)),
            "Tool 'x' timed out after 30s."
        );
        assert_eq!(
            timed_out("x", Duration::from_millis(1500)),
            "Tool 'x' timed out after 1.5s."
        );
        assert_eq!(
            timed_out("x", Duration::from_nanos(999_780_673)),
            "Tool 'x' timed out after 0.999s."
        );
    }
}
