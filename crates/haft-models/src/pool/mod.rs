//! Several backends behind one model.
//!
//! What comes in: backends under their names, in the order in which they are asked. What goes out: a
//! [`Pool`], which is a model like any other. Each backend has a [`Breaker`], so that one that fails
//! is left alone for a while, and where a request fails before anything of an answer came, the next
//! backend is asked. [`watch`] asks backends how they are without a request at hand.
//!
//! A pool repeats no request at the same backend and never waits before it asks: that is up to
//! whoever runs the loop. It must never hand a request to a second backend once something of an
//! answer was shown, nor one that the first refused for what it says.

mod affinity;
mod breaker;
mod forward;
mod health;
mod member;
mod model;
mod round;
mod verdict;
mod witness;

pub use breaker::{Blocked, Breaker, BreakerSettings, Change, Pass, Standing};
pub use health::{HealthSettings, watch};
pub use member::Member;
pub use model::Pool;
pub use witness::{Absence, Failover, Witness};

pub(crate) use breaker::LONGEST;
