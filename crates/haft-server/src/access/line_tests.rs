use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const LONG: Duration = Duration::from_mins(10);

fn line(most: usize, max_waiting: usize) -> Arc<RunLine> {
    RunLine::new(most, max_waiting, LONG)
}

fn owner(name: &str) -> Owner {
    Owner::new(name)
}

fn slot(line: &Arc<RunLine>, name: &str) -> Slot {
    match line.ask(&owner(name)) {
        Asked::Slot(slot) => slot,
        _ => panic!("there is no slot for {name}"),
    }
}

fn place(line: &Arc<RunLine>, name: &str) -> Place {
    match line.ask(&owner(name)) {
        Asked::Place(place) => place,
        _ => panic!("{name} does not wait"),
    }
}

fn is_full(line: &Arc<RunLine>, name: &str) -> bool {
    matches!(line.ask(&owner(name)), Asked::Full)
}

/// What a place came to: a slot, nothing yet, or nothing at all.
fn turn(place: &mut Place) -> Result<Option<Slot>, ()> {
    match place.turn.try_recv() {
        Ok(slot) => Ok(Some(slot)),
        Err(oneshot::error::TryRecvError::Empty) => Ok(None),
        Err(oneshot::error::TryRecvError::Closed) => Err(()),
    }
}

#[test]
fn turns_of_one_tenant_come_in_order() {
    let line = line(1, 3);
    let first = slot(&line, "a");
    let mut places = [place(&line, "a"), place(&line, "a"), place(&line, "a")];
    assert!(is_full(&line, "a"));
    drop(first);
    for at in 0..places.len() {
        let taken = turn(&mut places[at]).unwrap().unwrap();
        for later in &mut places[at + 1..] {
            assert!(turn(later).unwrap().is_none());
        }
        drop(taken);
    }
    drop(places);
    let state = line.state();
    assert_eq!((state.running, state.waiting), (0, 0));
    assert!(
        state.tenants.is_empty(),
        "nothing is remembered of who left"
    );
}

#[test]
fn who_goes_away_leaves_the_line() {
    let line = line(1, 2);
    let first = slot(&line, "a");
    let (gone, mut stays) = (place(&line, "a"), place(&line, "a"));
    assert!(is_full(&line, "a"));
    drop(gone);
    let mut later = place(&line, "a");
    drop(first);
    let second = turn(&mut stays).unwrap().unwrap();
    drop(second);
    assert!(turn(&mut later).unwrap().is_some());
}

#[test]
fn a_slot_that_nobody_takes_any_more_is_given_on() {
    let line = line(1, 2);
    let first = slot(&line, "a");
    let (unread, mut next) = (place(&line, "a"), place(&line, "b"));
    drop(first);
    // It is his already, but he never looks.
    drop(unread);
    assert!(turn(&mut next).unwrap().is_some());
}

/// Whose turn it is now, if it is anybody's.
fn served(places: &mut Vec<Place>) -> Option<Slot> {
    for at in 0..places.len() {
        if let Some(slot) = turn(&mut places[at]).unwrap() {
            places.remove(at);
            return Some(slot);
        }
    }
    None
}

#[test]
fn slots_go_to_the_tenant_that_has_fewest() {
    let line = line(4, 8);
    let mut running: Vec<_> = (0..4).map(|_| slot(&line, "greedy")).collect();
    let mut greedy: Vec<_> = (0..3).map(|_| place(&line, "greedy")).collect();
    let mut modest: Vec<_> = (0..3).map(|_| place(&line, "modest")).collect();
    running.pop();
    let _first = served(&mut modest).unwrap();
    running.pop();
    let _second = served(&mut modest).unwrap();
    // Two each now. The next slot is one of the greedy tenant's, which then has fewer.
    running.pop();
    let third = served(&mut greedy).unwrap();
    assert!(served(&mut modest).is_none());
    // Two each again, and the greedy tenant had the last turn.
    drop(third);
    assert!(served(&mut greedy).is_some());
}

#[test]
fn whoever_fills_the_line_gives_way() {
    let line = line(1, 4);
    let _running = slot(&line, "greedy");
    let mut greedy: Vec<_> = (0..4).map(|_| place(&line, "greedy")).collect();
    assert!(is_full(&line, "greedy"), "nobody displaces himself");
    let mut first = place(&line, "modest");
    let mut second = place(&line, "modest");
    let lost: Vec<bool> = greedy.iter_mut().map(|it| turn(it).is_err()).collect();
    assert_eq!(lost, [false, false, true, true], "the last ones go");
    assert!(is_full(&line, "modest"), "each has his half");
    assert!(is_full(&line, "greedy"));
    assert!(turn(&mut first).unwrap().is_none());
    assert!(turn(&mut second).unwrap().is_none());
    let mut third = place(&line, "third");
    assert!(turn(&mut third).unwrap().is_none());
    assert_eq!(line.state().waiting, 4);
}

#[test]
fn where_nobody_may_wait_the_next_one_is_refused() {
    let line = line(1, 0);
    let first = slot(&line, "a");
    assert!(is_full(&line, "a") && is_full(&line, "b"));
    drop(first);
    drop(slot(&line, "b"));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_he_may() {
    let line = RunLine::new(1, 4, Duration::from_secs(10));
    let first = line.enter(&owner("a")).await.unwrap();
    let begun = tokio::time::Instant::now();
    let error = line.enter(&owner("b")).await.err().unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    assert_eq!(error.code, ErrorCode::ServerIsOverloaded);
    assert_eq!(error.retry_after, Some(COME_BACK));
    assert!(error.message.ends_with("try again in 1s"), "{error}");
    assert!(!line.is_crowded());
    drop(first);
    assert!(line.enter(&owner("b")).await.is_ok());
}

proptest! {
    /// Whatever happens in whatever order: no more run and wait than may, nothing is lost, nobody
    /// waits while there is room, and at the end nothing is left.
    #[test]
    fn the_books_are_always_right(
        most in 1_usize..4,
        max_waiting in 0_usize..6,
        steps in prop::collection::vec((0_u8..4, 0_usize..4, 0_usize..8), 1..200),
    ) {
        let names = ["a", "b", "c", "d"];
        let line = line(most, max_waiting);
        let mut running: Vec<Slot> = Vec::new();
        let mut waiting: Vec<Place> = Vec::new();
        for (what, who, which) in steps {
            match what {
                0 | 1 => match line.ask(&owner(names[who])) {
                    Asked::Slot(slot) => running.push(slot),
                    Asked::Place(place) => waiting.push(place),
                    Asked::Full => prop_assert!(line.state().waiting >= max_waiting),
                },
                2 if !running.is_empty() => drop(running.swap_remove(which % running.len())),
                3 if !waiting.is_empty() => drop(waiting.swap_remove(which % waiting.len())),
                _ => {}
            }
            let mut still = Vec::new();
            for mut place in waiting {
                match turn(&mut place) {
                    Ok(Some(slot)) => running.push(slot),
                    Ok(None) => still.push(place),
                    Err(()) => {}
                }
            }
            waiting = still;
            let state = line.state();
            prop_assert_eq!(state.running, running.len());
            prop_assert_eq!(state.waiting, waiting.len());
            prop_assert!(state.running <= most && state.waiting <= max_waiting);
            prop_assert!(state.waiting == 0 || state.running == most);
            let mut counted: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
            for slot in &running {
                counted.entry(slot.owner.as_str()).or_default().0 += 1;
            }
            for place in &waiting {
                counted.entry(place.owner.as_str()).or_default().1 += 1;
            }
            let kept: BTreeMap<&str, (usize, usize)> = state
                .tenants
                .iter()
                .map(|(owner, it)| (owner.as_str(), (it.running, it.waiting.len())))
                .collect();
            prop_assert_eq!(kept, counted);
        }
        drop((running, waiting));
        let state = line.state();
        prop_assert_eq!((state.running, state.waiting, state.tenants.len()), (0, 0, 0));
    }
}
