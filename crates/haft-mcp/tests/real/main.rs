//! Servers that people really use, from npm and `PyPI`, over every transport: listed, called, cancelled,
//! killed and revived. `scripts/mcp-servers` installs them and runs these tests, which are left out
//! otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod addresses;
mod installed;
mod processes;
mod trial;
