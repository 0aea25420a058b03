//! Paths below the server's address.

/// Something that is no part of a path: it could name something else than what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoStep(pub(super) String);

/// The steps of a path, put together.
pub(super) fn joined(steps: &[&str]) -> Result<String, NoStep> {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-_.:".contains(it);
    let is_step = |step: &str| {
        !step.is_empty() && step.chars().all(plain) && step.chars().any(|it| it != '.')
    };
    match steps.iter().find(|step| !is_step(step)) {
        Some(step) => Err(NoStep((*step).to_owned())),
        None => Ok(steps.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_lead_elsewhere() {
        assert_eq!(
            joined(&["responses", "resp_1"]).unwrap(),
            "responses/resp_1"
        );
        for id in ["", ".", "..", "../models", "a/b", "a?b", "a b", "é", "%2e"] {
            assert_eq!(joined(&["responses", id]), Err(NoStep(id.to_owned())));
        }
    }
}
