//! Random interleavings of calls, against the simplest model: committed lists, and a list of
//! changes per call that is made again whenever somebody looks.

use haft_core::{SessionState, Slice, Transaction};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

const CALLS: usize = 4;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Tried(Vec<u8>);

impl Slice for Tried {
    const NAME: &'static str = "tried";
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Deferred(Vec<u8>);

impl Slice for Deferred {
    const NAME: &'static str = "deferred";
    const GROWS: bool = true;
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Push(u8),
    Pop,
    Set(u8),
}

impl Change {
    fn make(self, list: &mut Vec<u8>) {
        match self {
            Self::Push(item) => list.push(item),
            Self::Pop => drop(list.pop()),
            Self::Set(item) => *list = vec![item],
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Change {
        call: usize,
        deferred: bool,
        change: Change,
    },
    Look {
        call: usize,
    },
    Commit {
        call: usize,
    },
    RollBack {
        call: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        any::<u8>().prop_map(Change::Push),
        Just(Change::Pop),
        any::<u8>().prop_map(Change::Set),
    ];
    prop_oneof![
        6 => (0..CALLS, any::<bool>(), change)
            .prop_map(|(call, deferred, change)| Step::Change { call, deferred, change }),
        3 => (0..CALLS).prop_map(|call| Step::Look { call }),
        2 => (0..CALLS).prop_map(|call| Step::Commit { call }),
        1 => (0..CALLS).prop_map(|call| Step::RollBack { call }),
    ]
}

#[derive(Default)]
struct Model {
    committed: [Vec<u8>; 2],
    journals: [Vec<(usize, Change)>; CALLS],
}

impl Model {
    fn seen_by(&self, call: usize) -> [Vec<u8>; 2] {
        let mut seen = self.committed.clone();
        for (slice, change) in &self.journals[call] {
            change.make(&mut seen[*slice]);
        }
        seen
    }
}

fn make(call: &Transaction, deferred: bool, change: Change) {
    let outcome = match (deferred, change) {
        (false, Change::Set(item)) => call.set(Tried(vec![item])),
        (true, Change::Set(item)) => call.set(Deferred(vec![item])),
        (false, change) => call.update::<Tried>(move |list| change.make(&mut list.0)),
        (true, change) => call.update::<Deferred>(move |list| change.make(&mut list.0)),
    };
    outcome.unwrap();
}

fn committed(state: &SessionState) -> [Vec<u8>; 2] {
    [
        state.get::<Tried>().unwrap().0.clone(),
        state.get::<Deferred>().unwrap().0.clone(),
    ]
}

fn seen_by(call: &Transaction) -> [Vec<u8>; 2] {
    [
        call.get::<Tried>().unwrap().0.clone(),
        call.get::<Deferred>().unwrap().0.clone(),
    ]
}

proptest! {
    #[test]
    fn every_interleaving_ends_as_its_commits_in_their_order(
        steps in prop::collection::vec(step(), 0..60)
    ) {
        let state = SessionState::builder().slice::<Tried>().slice::<Deferred>().build().unwrap();
        let mut model = Model::default();
        let mut calls: [Transaction; CALLS] =
            std::array::from_fn(|at| state.begin(&format!("call_{at}"), "t"));
        for step in steps {
            match step {
                Step::Change { call, deferred, change } => {
                    make(&calls[call], deferred, change);
                    model.journals[call].push((usize::from(deferred), change));
                }
                Step::Look { call } => {
                    prop_assert_eq!(seen_by(&calls[call]), model.seen_by(call));
                }
                Step::Commit { call } => {
                    calls[call].commit().unwrap();
                    calls[call] = state.begin("next", "t");
                    model.committed = model.seen_by(call);
                    model.journals[call].clear();
                }
                Step::RollBack { call } => {
                    calls[call].rollback().unwrap();
                    calls[call] = state.begin("next", "t");
                    model.journals[call].clear();
                }
            }
            prop_assert_eq!(committed(&state), model.committed.clone());
        }
    }
}
