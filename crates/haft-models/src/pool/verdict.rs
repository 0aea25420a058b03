//! What a failure says about the backend, and whether another one could do better.

use haft_core::{ModelError, ModelErrorKind as Kind};

/// What a failure says about the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is at fault.
    Fault,
    /// It is alive but of no use for a while.
    Rests,
    /// It is alive; the request is at fault.
    Alive,
    /// Nothing: it was never asked.
    Nothing,
}

pub(super) fn of(error: &ModelError) -> Verdict {
    match error.kind {
        Kind::RateLimit | Kind::QuotaExhausted | Kind::Unauthorized | Kind::NotFound => {
            Verdict::Rests
        }
        Kind::ContextLength | Kind::PromptRefused | Kind::InvalidRequest => match error.status {
            Some(_) => Verdict::Alive,
            // An adapter may refuse by itself what it cannot send.
            None => Verdict::Nothing,
        },
        // Requests without tools may be answered all the same.
        Kind::Misconfigured => Verdict::Alive,
        // Unreachable, too slow, broken, or not what the protocol says; and what is not known yet.
        _ => Verdict::Fault,
    }
}

/// Whether another backend could answer what this one did not.
pub(super) fn is_curable(error: &ModelError) -> bool {
    !matches!(
        error.kind,
        Kind::ContextLength | Kind::PromptRefused | Kind::InvalidRequest
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_the_request_are_neither_the_backends_nor_cured_elsewhere() {
        for kind in [
            Kind::ContextLength,
            Kind::PromptRefused,
            Kind::InvalidRequest,
        ] {
            let error = ModelError::new(kind, "x").with_status(400);
            assert_eq!((of(&error), is_curable(&error)), (Verdict::Alive, false));
            let own = ModelError::new(kind, "x");
            assert_eq!((of(&own), is_curable(&own)), (Verdict::Nothing, false));
        }
    }

    #[test]
    fn everything_else_may_be_cured_elsewhere() {
        for (kind, verdict) in [
            (Kind::Unreachable, Verdict::Fault),
            (Kind::Timeout, Verdict::Fault),
            (Kind::ServerError, Verdict::Fault),
            (Kind::Protocol, Verdict::Fault),
            (Kind::RateLimit, Verdict::Rests),
            (Kind::QuotaExhausted, Verdict::Rests),
            (Kind::Unauthorized, Verdict::Rests),
            (Kind::NotFound, Verdict::Rests),
        ] {
            let error = ModelError::new(kind, "x");
            assert_eq!(
                (of(&error), is_curable(&error)),
                (verdict, true),
                "{kind:?}"
            );
        }
    }
}
