//! Ids: a prefix that says what it is, and a rest that says nothing.

use std::cell::RefCell;

use ring::rand::{SecureRandom as _, SystemRandom};

/// How many bytes the system is asked for at once.
const SUPPLY: usize = 512;

/// How many make an id.
const LENGTH: usize = 16;

thread_local! {
    /// Bytes for the next ids: asking the system takes longer than everything else here.
    static SUPPLIES: RefCell<Supplies> = const {
        RefCell::new(Supplies { bytes: [0; SUPPLY], used: SUPPLY })
    };
}

struct Supplies {
    bytes: [u8; SUPPLY],
    used: usize,
}

impl Supplies {
    fn next(&mut self) -> [u8; LENGTH] {
        if self.used + LENGTH > SUPPLY {
            if SystemRandom::new().fill(&mut self.bytes).is_err() {
                fastrand::fill(&mut self.bytes);
            }
            self.used = 0;
        }
        let mut next = [0; LENGTH];
        next.copy_from_slice(&self.bytes[self.used..self.used + LENGTH]);
        self.used += LENGTH;
        next
    }
}

/// A new id, `msg_` and 32 hexadecimal digits for `msg`.
///
/// The digits come from the system: ids are kept for years by many processes, and none may come up
/// twice.
pub(crate) fn new_id(prefix: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = SUPPLIES.with_borrow_mut(Supplies::next);
    let mut id = String::with_capacity(prefix.len() + 1 + 2 * LENGTH);
    id.push_str(prefix);
    id.push('_');
    for byte in bytes {
        id.push(char::from(DIGITS[usize::from(byte >> 4)]));
        id.push(char::from(DIGITS[usize::from(byte & 15)]));
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
