//! Ids: a prefix that tells what it names, and a rest that tells nothing.

/// A new id that nobody can guess: `resp_` and 32 hexadecimal digits.
pub(crate) fn new_id(prefix: &str) -> String {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut bytes = [0; 16];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // The operating system has no randomness left; ids must still differ.
        bytes = fastrand::u128(..).to_be_bytes();
    }
    format!("{prefix}_{:032x}", u128::from_be_bytes(bytes))
}
