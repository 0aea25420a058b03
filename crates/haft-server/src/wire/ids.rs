//! Ids: a prefix that says what it is, and a rest that says nothing.

use std::fmt::Write as _;

use ring::rand::{SecureRandom as _, SystemRandom};

/// A new id, `msg_` and 32 hexadecimal digits for `msg`.
///
/// The digits come from the system: ids are kept for years by many processes, and none may come up
/// twice.
pub(crate) fn new_id(prefix: &str) -> String {
    let mut bytes = [0; 16];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        fastrand::fill(&mut bytes);
    }
    let mut id = format!("{prefix}_");
    for byte in bytes {
        // Writing to a `String` cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_32_digits_that_never_come_again() {
        let ids: HashSet<_> = (0..1000).map(|_| new_id("msg")).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            let rest = id.strip_prefix("msg_").unwrap();
            assert_eq!(rest.len(), 32, "{id}");
            assert!(rest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        }
    }
}
