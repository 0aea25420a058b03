use proptest::prelude::*;

use super::*;

/// One letter for each item: the host, the user, the assistant, calls `a` and `b` and their outputs
/// `A` and `B`.
fn conversation(letters: &str) -> Conversation {
    letters.chars().map(item).collect()
}

fn item(letter: char) -> Item {
    match letter {
        'h' => Item::developer("h"),
        'u' => Item::user("u"),
        's' => Item::assistant("s"),
        call if call.is_lowercase() => Item::function_call(call, "f", "{}"),
        output => Item::function_call_output(output.to_lowercase().to_string(), "x"),
    }
}

fn letters(conversation: &Conversation) -> String {
    conversation
        .items()
        .map(|item| match item {
            Item::FunctionCall(call) => call.call_id.clone(),
            Item::FunctionCallOutput(output) => output.call_id.to_uppercase(),
            other => other.text(),
        })
        .collect()
}

fn half(text: &str) -> Option<String> {
    shorter(&conversation(text)).map(|it| letters(&it))
}

/// The shortest that is ever made of it.
fn least(text: &str) -> Option<String> {
    fitted(&conversation(text), 0).map(|it| letters(&it))
}

#[test]
fn the_host_and_the_latest_turn_stay() {
    assert_eq!(least("hususus"), Some("hus".into()));
    assert_eq!(least("hushusu"), Some("hhu".into()));
    assert_eq!(least("susu"), Some("u".into()));
}

#[test]
fn a_single_turn_is_not_cut() {
    for text in ["", "h", "s", "hs", "u", "us", "huaAbBs", "aA"] {
        assert_eq!(least(text), None, "{text}");
        assert_eq!(half(text), None, "{text}");
    }
}

#[test]
fn messages_of_the_user_in_a_row_are_one_turn() {
    assert_eq!(least("usuhu"), Some("uhu".into()));
    assert_eq!(least("uu"), None);
}

#[test]
fn a_call_is_never_parted_from_its_output() {
    assert_eq!(least("uaAsu"), Some("u".into()));
    // The output comes behind the next message of the user: nothing may go between them.
    assert_eq!(least("uauAs"), None);
    assert_eq!(least("usuauA"), Some("uauA".into()));
}

#[test]
fn no_more_goes_than_must() {
    let text = "husususu";
    let each = tokens_of_item(&Item::user("u"));
    let kept = |items: u64| fitted(&conversation(text), items * each).map(|it| letters(&it));
    assert_eq!(kept(8), None);
    assert_eq!(kept(7), Some("hususu".into()));
    assert_eq!(kept(6), Some("hususu".into()));
    assert_eq!(kept(5), Some("husu".into()));
    assert_eq!(kept(2), Some("hu".into()));
}

#[test]
fn half_of_the_turns_goes_at_once() {
    assert_eq!(half("husususu"), Some("husu".into()));
    assert_eq!(half("husu"), Some("hu".into()));
}

/// Turns with messages of the host in front, and calls whose outputs may come a turn later.
fn histories() -> impl Strategy<Value = Conversation> {
    let turn = (any::<bool>(), 0..3_usize, any::<bool>());
    prop::collection::vec(turn, 1..6).prop_map(|turns| {
        let mut items = Vec::new();
        let mut late = Vec::new();
        for (round, (has_host, calls, is_late)) in turns.into_iter().enumerate() {
            if has_host {
                items.push(item('h'));
            }
            items.push(item('u'));
            items.append(&mut late);
            let ids = (0..calls).map(|call| format!("{round}.{call}"));
            let ids: Vec<String> = ids.collect();
            items.extend(ids.iter().map(|id| Item::function_call(id, "f", "{}")));
            let outputs = ids.iter().map(|id| Item::function_call_output(id, "x"));
            if is_late {
                late.extend(outputs);
            } else {
                items.extend(outputs);
            }
            items.push(item('s'));
        }
        items.append(&mut late);
        items.into()
    })
}

proptest! {
    #[test]
    fn whatever_is_cut_is_a_whole_history(whole in histories(), room in 0_u64..150) {
        let hosts = |it: &Conversation| it.items().filter(|item| is_host(item)).count();
        let last = whole.items().rposition(|item| is_from(item, Role::User)).unwrap();
        let tail: Vec<&Item> = whole.items().skip(last).collect();
        prop_assert_eq!(whole.verify(), Ok(()));
        for cut in [fitted(&whole, room), shorter(&whole)].into_iter().flatten() {
            prop_assert!(cut.len() < whole.len());
            prop_assert_eq!(cut.verify(), Ok(()));
            prop_assert_eq!(hosts(&cut), hosts(&whole));
            let kept: Vec<&Item> = cut.items().skip(cut.len() - tail.len()).collect();
            prop_assert_eq!(&kept, &tail);
        }
    }
}
