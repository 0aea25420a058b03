//! `std::crypto`.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::{Native, count_of, give, md5, text_of};
use crate::vm::{Fault, Outcome};

pub(super) const ALL: &[Native] = &[
    Native::new("std::crypto::sha256", (1, 1), |context, a| {
        let text = text_of("sha256", &a[0])?;
        context.meter().work(text.len() / 2)?;
        give(hex(&Sha256::digest(text.as_bytes())))
    }),
    Native::new("std::crypto::md5", (1, 1), |context, a| {
        let text = text_of("md5", &a[0])?;
        context.meter().work(text.len() / 2)?;
        give(hex(&md5::digest(text.as_bytes())))
    }),
    Native::new("std::crypto::uuid", (0, 0), |_, _| {
        let mut bytes = [0; 16];
        fill(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = hex(&bytes);
        for place in [20, 16, 12, 8] {
            text.insert(place, '-');
        }
        give(text)
    }),
    Native::new("std::crypto::random_bytes", (1, 1), |context, a| {
        let count = count_of("random_bytes", &a[0])?;
        context.meter().ask(count.saturating_mul(3))?;
        context.meter().work(count.saturating_mul(2))?;
        let mut bytes = vec![0; count];
        fill(&mut bytes)?;
        give(hex(&bytes))
    }),
];

fn fill(bytes: &mut [u8]) -> Outcome<()> {
    getrandom::fill(bytes)
        .map_err(|error| Fault::type_error(format!("no random bytes from the system: {error}")))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
