use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_core::{Access, RestoreError, SessionState, Slice, StateError, ToolContext};
use serde::{Deserialize, Serialize};

use super::{Counter, Events, Notes, Outside, counter, session};

#[test]
fn a_call_sees_its_own_changes_at_once_and_others_see_them_when_committed() {
    let state = session();
    let call = state.begin("call_1", "add");
    call.update::<Counter>(|counter| counter.value += 2)
        .unwrap();
    assert_eq!(
        (call.get::<Counter>().unwrap().value, counter(&state)),
        (2, 0)
    );
    call.commit().unwrap();
    assert_eq!(counter(&state), 2);
}

/// R16
#[test]
fn a_committed_siblings_work_is_kept_when_an_overlapping_call_is_rolled_back() {
    let state = session();
    let (a, b) = (state.begin("a", "add"), state.begin("b", "add"));
    a.update::<Counter>(|counter| counter.value += 1).unwrap();
    a.update::<Notes>(|notes| notes.0.push(1)).unwrap();
    b.update::<Counter>(|counter| counter.value += 10).unwrap();
    b.commit().unwrap();
    a.rollback().unwrap();
    assert_eq!(counter(&state), 10);
    assert!(state.get::<Notes>().unwrap().0.is_empty());
}

#[test]
fn where_both_set_the_same_slice_the_committed_value_stays() {
    let state = session();
    let (a, b) = (state.begin("a", "set"), state.begin("b", "set"));
    b.set(Counter { value: 2 }).unwrap();
    a.set(Counter { value: 1 }).unwrap();
    b.commit().unwrap();
    assert_eq!(a.get::<Counter>().unwrap().value, 1);
    a.rollback().unwrap();
    assert_eq!(counter(&state), 2);
}

#[test]
fn where_both_add_to_the_same_slice_both_count() {
    let state = session();
    let (a, b) = (state.begin("a", "add"), state.begin("b", "add"));
    for (call, amount) in [(&a, 1), (&b, 10), (&a, 100)] {
        call.update::<Counter>(move |counter| counter.value += amount)
            .unwrap();
        call.update::<Notes>(|notes| notes.0.push(0)).unwrap();
    }
    b.commit().unwrap();
    assert_eq!(a.get::<Counter>().unwrap().value, 111);
    a.commit().unwrap();
    assert_eq!(counter(&state), 111);
    assert_eq!(state.get::<Notes>().unwrap().0.len(), 3);
}

#[test]
fn a_log_is_written_at_once_and_survives_rolling_back() {
    let state = session();
    let call = state.begin("call_1", "add");
    call.update::<Events>(|events| events.0.push("began".into()))
        .unwrap();
    assert_eq!(state.get::<Events>().unwrap().0, ["began"]);
    assert_eq!(call.get::<Events>().unwrap().0, ["began"]);
    call.rollback().unwrap();
    assert_eq!(state.get::<Events>().unwrap().0, ["began"]);
}

#[test]
fn after_its_end_a_call_changes_nothing_more() {
    let state = session();
    let (kept, dropped) = (state.begin("kept", "add"), state.begin("dropped", "add"));
    kept.commit().unwrap();
    dropped.rollback().unwrap();
    for (call, id) in [(&kept, "kept"), (&dropped, "dropped")] {
        let over = Err(StateError::CallOver { call_id: id.into() });
        assert_eq!(call.update::<Counter>(|counter| counter.value = 9), over);
        assert_eq!(call.update::<Events>(|events| events.0.clear()), over);
        assert_eq!(call.set(Counter { value: 9 }), over);
        assert_eq!(call.commit(), over);
        assert_eq!(call.rollback(), Err(RestoreError::CallOver(id.into())));
        assert!(!call.is_open());
    }
    assert_eq!(counter(&state), 0);
}

#[test]
fn a_change_that_panics_is_neither_seen_nor_kept() {
    let state = session();
    let call = state.begin("call_1", "add");
    call.update::<Counter>(|counter| counter.value = 1).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        call.update::<Counter>(|counter| {
            counter.value = 7;
            panic!("boom");
        })
    }));
    assert!(outcome.is_err());
    assert_eq!(call.get::<Counter>().unwrap().value, 1);
    call.commit().unwrap();
    assert_eq!(counter(&state), 1);
}

#[test]
fn a_change_that_panics_only_when_committed_leaves_everything_as_it_was() {
    let outside = Outside::named("outside", "");
    let state = SessionState::builder()
        .slice::<Counter>()
        .slice::<Notes>()
        .resource(outside.clone())
        .build()
        .unwrap();
    let call = state.begin("call_1", "add");
    call.update::<Counter>(|counter| assert_eq!(counter.value, 0, "no longer zero"))
        .unwrap();
    call.update::<Notes>(|notes| notes.0.push(1)).unwrap();
    state
        .update::<Counter>(|counter| counter.value = 5)
        .unwrap();
    let error = call.commit().unwrap_err();
    assert!(error.to_string().contains("`counter`"), "{error}");
    assert!(error.to_string().contains("no longer zero"), "{error}");
    assert_eq!(counter(&state), 5);
    assert!(state.get::<Notes>().unwrap().0.is_empty());
    let asked = outside.asked.lock().unwrap().clone();
    assert_eq!(asked, [format!("rollback {:?}", call.id())]);
}

#[test]
fn resources_hear_how_each_call_ended() {
    let (one, two) = (Outside::named("one", ""), Outside::named("two", ""));
    let state = SessionState::builder()
        .resource(one.clone())
        .resource(two.clone())
        .build()
        .unwrap();
    let kept = state.begin("call_1", "write");
    kept.commit().unwrap();
    *one.failing.lock().unwrap() = true;
    let failed = state.begin("call_1", "write");
    let error = failed.rollback().unwrap_err();
    assert_eq!(error.to_string(), "the resource `one` failed: disk full");
    let dropped = state.begin("call_1", "write");
    let ids = [kept.id(), failed.id(), dropped.id()];
    drop(dropped);
    for resource in [one, two] {
        assert_eq!(
            *resource.asked.lock().unwrap(),
            [
                format!("commit {:?}", ids[0]),
                format!("rollback {:?}", ids[1]),
                format!("rollback {:?}", ids[2])
            ]
        );
    }
}

#[test]
fn unregistered_slices_and_clashing_names_are_named() {
    #[derive(Clone, Default, Serialize, Deserialize)]
    struct Impostor;
    impl Slice for Impostor {
        const NAME: &'static str = "counter";
    }
    let empty = SessionState::default();
    let error = empty.begin("c", "t").update::<Notes>(|_| ()).unwrap_err();
    assert_eq!(error, StateError::NotRegistered { slice: "notes" });
    assert!(empty.get::<Notes>().is_err());
    let error = SessionState::builder()
        .slice::<Counter>()
        .slice::<Impostor>()
        .slice::<Counter>()
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("`counter`"), "{error}");
    assert!(session().get::<Impostor>().is_err());
    let twice = SessionState::builder()
        .resource(Outside::named("disk", ""))
        .resource(Outside::named("disk", ""))
        .build();
    let taken = StateError::ResourceTaken {
        resource: "disk".into(),
    };
    assert_eq!(twice.unwrap_err(), taken);
}

#[test]
fn a_tool_changes_session_state_through_its_context() {
    let state = session();
    let call = state.begin("call_1", "add");
    let context = ToolContext::default()
        .for_call("add", "call_1", Access::Full)
        .with_transaction(call.clone());
    context
        .update::<Counter>(|counter| counter.value += 1)
        .unwrap();
    assert_eq!(context.slice::<Counter>().unwrap().value, 1);
    call.commit().unwrap();
    assert_eq!(counter(&state), 1);
    let error = context.update::<Counter>(|_| ()).unwrap_err();
    assert!(error.message().contains("`call_1` is over"), "{error}");
}

#[test]
fn a_context_without_a_run_and_a_call_that_may_only_read_say_so() {
    let outside = ToolContext::default();
    assert!(
        outside
            .slice::<Counter>()
            .unwrap_err()
            .message()
            .contains("outside a run")
    );
    let state = session();
    let context = outside
        .for_call("get", "call_1", Access::ReadOnly)
        .with_transaction(state.begin("call_1", "get"));
    assert_eq!(context.slice::<Counter>().unwrap().value, 0);
    let error = context.update::<Counter>(|_| ()).unwrap_err();
    assert!(error.message().contains("may only read"), "{error}");
    let next = context.for_call("get", "call_2", Access::Full);
    assert!(next.transaction().is_none());
}

static COPIES: AtomicUsize = AtomicUsize::new(0);

#[derive(Default, Serialize, Deserialize)]
struct Counted(Vec<u32>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        COPIES.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl Slice for Counted {
    const NAME: &'static str = "counted";
    const GROWS: bool = true;
}

#[test]
fn a_growing_slice_is_not_copied_by_the_calls_that_add_to_it() {
    let state = SessionState::builder().slice::<Counted>().build().unwrap();
    for at in 0..100 {
        let call = state.begin(&format!("call_{at}"), "add");
        call.update::<Counted>(move |counted| counted.0.push(at))
            .unwrap();
        if at % 2 == 0 {
            call.commit().unwrap();
        }
    }
    let kept: Arc<Counted> = state.get().unwrap();
    assert_eq!((kept.0.len(), COPIES.load(Ordering::Relaxed)), (50, 0));
}
