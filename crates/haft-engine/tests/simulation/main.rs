//! The machine under thousands of seeded random schedules.
//!
//! Nothing here has a clock, a task or a socket: the world decides in which order things happen,
//! which of them fail, when the process dies between two turns, when somebody cancels. After every
//! run the promises are checked. `HAFT_SIMULATIONS` sets how many; a failure prints its seed, which
//! `HAFT_SIMULATION_SEED` repeats.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod checks;
mod world;

use world::{Faults, World};

fn seeds() -> std::ops::Range<u64> {
    if let Ok(seed) = std::env::var("HAFT_SIMULATION_SEED") {
        let seed = seed.parse().expect("a seed");
        return seed..seed + 1;
    }
    let count = std::env::var("HAFT_SIMULATIONS");
    0..count.map_or(2500, |count| {
        count.parse().expect("a number of simulations")
    })
}

/// Runs one simulation; a panic names its seed.
fn simulate(seed: u64, faults: Faults) -> World {
    let result = std::panic::catch_unwind(|| {
        let mut world = World::new(seed, faults);
        world.run_to_its_end();
        world
    });
    result.unwrap_or_else(|_| panic!("simulation failed: seed {seed}, {faults:?}"))
}

#[test]
fn whatever_happens_the_promises_hold() {
    let mut ends = std::collections::BTreeMap::new();
    for seed in seeds() {
        let world = simulate(seed, Faults::Everything);
        *ends.entry(world.end_name()).or_insert(0) += 1;
    }
    println!("{ends:?}");
    // A simulation that never meets an end would prove nothing about it.
    for end in [
        "completed",
        "cancelled",
        "incomplete budget",
        "incomplete content_filter",
        "incomplete loop_detected",
        "incomplete max_output_tokens",
        "incomplete max_tool_calls",
        "incomplete max_turns",
        "incomplete time_limit",
        "failed model_error",
        "failed tool_choice_not_followed",
    ] {
        assert!(ends.contains_key(end), "no run ended as {end}: {ends:?}");
    }
}

#[test]
fn a_process_that_dies_while_calls_run_leaves_a_run_that_goes_on() {
    let mut unknown = 0;
    for seed in seeds() {
        let world = simulate(seed, Faults::DiesWithinTurns);
        let calls = world.outcome().tool_calls.iter();
        unknown += calls
            .filter(|call| call.status == haft_engine::CallStatus::OutcomeUnknown)
            .count();
    }
    assert!(unknown > 0, "nothing was ever interrupted");
}

#[test]
fn neither_order_nor_process_changes_the_conversation() {
    for seed in seeds() {
        let in_one_go = simulate(seed, Faults::None);
        let in_pieces = simulate(seed, Faults::DiesBetweenTurns);
        assert_eq!(
            in_one_go.conversation(),
            in_pieces.conversation(),
            "seed {seed}"
        );
        assert_eq!(in_one_go.end_name(), in_pieces.end_name(), "seed {seed}");
        assert_eq!(in_one_go.outcome().usage, in_pieces.outcome().usage);
        assert_eq!(in_one_go.outcome().rounds, in_pieces.outcome().rounds);
    }
}
