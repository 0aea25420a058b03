//! Tools that haft serves by itself.

mod calculate;
mod clock;
mod tool;

pub use calculate::{Calculation, CalculationError, CalculationProblem, calculate, evaluate};
pub use clock::{clock, clock_with};
pub use tool::HostedTool;
