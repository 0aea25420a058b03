//! Who may come in, as whom, and how much he may ask for.
//!
//! What comes in: the keys that the operator made (`key_file`), the key of a request, the operator's
//! limits. What goes out: a `Pass` that names the tenant, permits for runs, and refusals that say
//! when to come back. The server's view of the keys is the `keyring`; how often and how much at once a
//! key may ask is told by its `meter`; when everybody together asks for more than the server can do,
//! they stand in the `line`, and share a `budget` of bytes meanwhile.
//!
//! This room never keeps, shows or logs a key, only its hash; and whatever is wrong with the file of
//! keys, nobody comes in because of it.

mod budget;
mod key;
mod key_file;
mod keyring;
mod limits;
mod line;
mod meter;
mod rate;

pub use key::{Key, KeyLimits, KeySecret, KeyState, NewKey};
pub use key_file::{KeyFile, KeysError};
pub use limits::Limits;

pub(crate) use budget::{FREE_BYTES, MemoryBudget, MemoryPermit};
pub(crate) use key::KeyHash;
pub(crate) use keyring::{Keyring, Pass};
pub(crate) use line::{RunLine, RunPermit, overloaded};
pub(crate) use rate::RateReport;
