use std::collections::HashSet;

use haft_core::{Capabilities, ContentPart, Item, Owner};
use serde_json::{Value, json};

use super::compacted::Compacted;
use super::digest::digest;
use super::division::{Scope, divide, open_places};
use super::transcript::transcript;
use super::unfold::drop_covered;
use super::*;
use crate::error::ErrorCode;
use crate::history::Record;
use crate::sealed::SealingKeys;
use crate::wire::Vocabulary;

const EVERYTHING: Scope = Scope::Everything {
    budget: 100,
    goes_on: true,
};

fn item(json: Value) -> Item {
    serde_json::from_value(json).unwrap()
}

fn piece(json: Value) -> Piece {
    let item = item(json);
    let id = item.id().unwrap_or_default().to_owned();
    Piece::new(Record {
        id,
        item,
        param: None,
    })
}

/// Pieces from a list of items, each with an id of its own.
fn pieces(items: Value) -> Vec<Piece> {
    let Value::Array(items) = items else {
        panic!("no list: {items}");
    };
    let numbered = items.into_iter().enumerate().map(|(at, mut item)| {
        if item["id"].is_null() {
            item["id"] = format!("item_{at}").into();
        }
        piece(item)
    });
    numbered.collect()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "seen"})
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": []})
}

fn ids(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.id().unwrap()).collect()
}

fn compacted(summary: &str) -> Compacted {
    Compacted::new(
        vec![Item::developer("rule")],
        summary.to_owned(),
        Vec::new(),
        vec![Item::user("latest")],
        vec![1, 2],
    )
}

fn sealed_item(keys: &SealingKeys, owner: &Owner, compacted: &Compacted) -> Value {
    json!({"type": "compaction", "id": "cmp_1", "encrypted_content": compacted.seal(keys, owner).unwrap()})
}

fn open(keys: &SealingKeys, owner: &str, items: Value) -> Result<Vec<Piece>, crate::ApiError> {
    let owner = Owner::new(owner);
    let words = Vocabulary::default();
    let by = Unfolding {
        keys,
        owner: &owner,
        words: &words,
        passes_foreign: false,
        inherited_by: "previous_response_id",
    };
    unfold(pieces(items), &by)
}

#[test]
fn a_compaction_opens_for_its_owner_and_for_nobody_else() {
    let keys = SealingKeys::ephemeral().unwrap();
    let item = sealed_item(&keys, &Owner::new("acme"), &compacted("what was"));
    let opened = open(&keys, "acme", json!([item])).unwrap();
    let texts: Vec<String> = opened
        .iter()
        .map(|piece| piece.record.item.text())
        .collect();
    assert_eq!((texts[0].as_str(), texts[2].as_str()), ("rule", "latest"));
    assert!(texts[1].starts_with("[Summary") && texts[1].ends_with("\n\nwhat was"));
    let refused = open(&keys, "other", json!([item])).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidEncryptedContent);
    // It came from an earlier response, so that is what cannot be used.
    assert_eq!(refused.param.as_deref(), Some("previous_response_id"));
    let others = SealingKeys::ephemeral().unwrap();
    let refused = open(&others, "acme", json!([item])).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidEncryptedContent);
}

fn texts(pieces: &[Piece]) -> Vec<String> {
    let texts = pieces.iter().map(|piece| piece.record.item.text());
    texts
        .map(|text| match text.rsplit_once("]\n\n") {
            Some((_, summary)) => format!("summary: {summary}"),
            None => text,
        })
        .collect()
}

#[test]
fn answered_requests_stand_in_front_of_the_summary() {
    let all = pieces(json!([
        user("first"),
        assistant("1"),
        user("second"),
        assistant("2"),
        {"type": "mcp_list_tools", "server_label": "air", "tools": []},
        user("third"),
        {"type": "additional_tools", "role": "developer", "tools": []},
    ]));
    let division = divide(&all, EVERYTHING);
    assert_eq!(ids(&division.kept), ["item_0", "item_2", "item_5"]);
    assert_eq!(division.kept_before_summary, 2);
    // Compacted once more, what the summary covered is still not open.
    let compacted = Compacted::new(
        Vec::new(),
        "so far".into(),
        Vec::new(),
        division.kept,
        vec![],
    )
    .with_summary_after(2);
    let mut again = compacted.pieces(1, None);
    assert_eq!(
        texts(&again),
        ["first", "second", "summary: so far", "third"]
    );
    again.extend(pieces(json!([assistant("3"), user("fourth")])));
    let division = divide(&again, EVERYTHING);
    assert_eq!(division.kept.len(), 4);
    assert_eq!(division.kept_before_summary, 3);
}

#[test]
fn a_compaction_of_an_earlier_version_is_read_in_the_same_order() {
    let kept = json!([user("first"), user("second"), call("a"), output("a")]);
    let earlier =
        json!({"v": 1, "host": [], "summary": "so far", "tools": [], "kept": kept, "covers": []});
    let keys = SealingKeys::ephemeral().unwrap();
    let sealed = keys.seal("acme", earlier.to_string().as_bytes()).unwrap();
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": sealed});
    let opened = open(&keys, "acme", json!([item])).unwrap();
    assert_eq!(
        texts(&opened)[..3],
        ["first", "second", "summary: so far"].map(str::to_owned)
    );
    let kinds: Vec<&str> = opened[3..].iter().map(Piece::kind).collect();
    assert_eq!(kinds, ["function_call", "function_call_output"]);
}

#[test]
fn what_is_sealed_but_no_compaction_of_a_known_form_is_refused() {
    let keys = SealingKeys::ephemeral().unwrap();
    let mut newer = json!(compacted("x"));
    newer["v"] = 2.into();
    for plain in [newer, json!({}), json!("text"), json!({"v": 1})] {
        let sealed = keys.seal("acme", plain.to_string().as_bytes()).unwrap();
        let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": sealed});
        let refused = open(&keys, "acme", json!([item])).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidEncryptedContent, "{plain}");
    }
}

#[test]
fn what_cannot_be_sealed_for_its_size_is_told() {
    let keys = SealingKeys::ephemeral().unwrap();
    let huge = compacted(&"x".repeat(8_000_000));
    let error = huge.seal(&keys, &Owner::default()).unwrap_err();
    assert_eq!(error.code, ErrorCode::ContextLengthExceeded);
}

#[test]
fn items_are_known_again_whatever_clients_do_to_them() {
    let same = |one: Value, other: Value| digest(&item(one)) == digest(&item(other));
    assert!(same(
        json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}]}),
        json!({"role": "assistant", "content": "hi"}),
    ));
    assert!(same(
        json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "a", "arguments": "{}"}),
        json!({"type": "function_call", "call_id": "c", "name": "a", "arguments": "{ }"}),
    ));
    assert!(!same(user("hi"), assistant("hi")));
    assert!(!same(user("hi"), user("ho")));
    assert!(!same(call("c"), output("c")));
    assert!(!same(call("c"), call("d")));
    let two = json!({"role": "user", "content": [
        {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]});
    assert!(!same(two, user("ab")));
}

#[test]
fn what_is_covered_goes_with_the_thoughts_that_led_to_it_and_the_rest_stays() {
    let mut all = pieces(json!([
        user("old"), thought("rs_1"), call("a"), output("a"), user("new"), thought("rs_2"), assistant("x"),
        {"type": "additional_tools", "role": "developer", "tools": []},
    ]));
    let covered: HashSet<u64> = [0, 2, 3].map(|at: usize| all[at].digest()).into();
    drop_covered(&mut all, &covered);
    let left: Vec<&str> = all.iter().map(|piece| piece.record.id.as_str()).collect();
    assert_eq!(left, ["item_4", "rs_2", "item_6", "item_7"]);
}

#[test]
fn open_calls_stay_outside_with_their_thoughts_and_siblings() {
    let all = pieces(json!([
        user("look"), thought("rs_1"), call("a"), output("a"),
        thought("rs_2"), call("b"), call("c"), output("b"),
        {"type": "custom_tool_call", "call_id": "d", "name": "x", "input": "y"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"},
        {"type": "mcp_approval_request", "id": "mcpr_2", "server_label": "s", "name": "n", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_2", "approve": true},
    ]));
    let mut places: Vec<usize> = open_places(&all).into_iter().collect();
    places.sort_unstable();
    assert_eq!(places, [4, 5, 6, 7, 8, 9]);
    // One that ran here, and one that was cut off, wait for nobody.
    let done = pieces(json!([
        {"type": "haft:clock", "call_id": "e", "arguments": "{}", "output": "noon"},
        {"type": "function_call", "status": "incomplete", "call_id": "f", "name": "x", "arguments": "{"},
    ]));
    assert!(open_places(&done).is_empty());
}

#[test]
fn the_latest_messages_of_the_user_are_kept_as_far_as_the_budget_goes() {
    let long = "x".repeat(200);
    let all = pieces(json!([
        user("early"),
        assistant("1"),
        user(&long),
        assistant("2"),
        user("late"),
        user("last"),
        assistant("3"),
    ]));
    let kept = |budget| {
        let scope = Scope::Everything {
            budget,
            goes_on: true,
        };
        divide(&all, scope).kept
    };
    assert_eq!(ids(&kept(0)), ["item_4", "item_5"]);
    assert_eq!(ids(&kept(50)), ["item_4", "item_5"]);
    assert_eq!(ids(&kept(65)), ["item_2", "item_4", "item_5"]);
    assert_eq!(ids(&kept(1000)), ["item_0", "item_2", "item_4", "item_5"]);
    let window = divide(&all, Scope::Window);
    assert!(window.kept.is_empty());
    assert_eq!(window.outside, [0, 2, 4, 5]);
}

#[test]
fn the_last_calls_are_kept_whole_if_the_model_goes_on() {
    let kept = |items: Value, goes_on| {
        let scope = Scope::Everything { budget: 0, goes_on };
        let division = divide(&pieces(items), scope);
        division
            .kept
            .iter()
            .map(|item| item.id().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let looked = json!([
        user("look"),
        call("a"),
        output("a"),
        thought("rs_1"),
        call("b"),
        call("c"),
        output("c"),
        output("b"),
    ]);
    assert_eq!(
        kept(looked.clone(), true),
        ["item_0", "rs_1", "item_4", "item_5", "item_6", "item_7"]
    );
    assert_eq!(kept(looked, false), ["item_0"]);
    // An output that comes late takes everything since its call with it.
    let late = json!([
        user("look"),
        call("a"),
        output("a"),
        call("b"),
        assistant("wait"),
        call("c"),
        output("c"),
        output("b"),
    ]);
    assert_eq!(
        kept(late, true),
        ["item_0", "item_3", "item_4", "item_5", "item_6", "item_7"]
    );
}

#[test]
fn a_compaction_is_worth_it_only_if_there_is_something_to_sum_up() {
    let is_worthwhile = |items: Value| divide(&pieces(items), EVERYTHING).is_worthwhile;
    assert!(is_worthwhile(json!([user("a"), assistant("b"), user("c")])));
    assert!(!is_worthwhile(json!([user("a")])));
    assert!(!is_worthwhile(
        json!([{"role": "system", "content": "s"}, user("a"), call("c"), output("c")])
    ));
    let keys = SealingKeys::ephemeral().unwrap();
    let item = sealed_item(&keys, &Owner::new("acme"), &compacted("x"));
    let opened = open(&keys, "acme", json!([item, user("more")])).unwrap();
    assert!(!divide(&opened, EVERYTHING).is_worthwhile);
}

#[test]
fn a_transcript_tells_who_said_and_did_what() {
    let opened = compacted("what was").pieces(7, None);
    let mut all = opened[1..2].to_vec();
    all.extend(pieces(json!([
        {"role": "system", "content": "Be brief."},
        user("Look."),
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "secret"},
        call("a"),
        {"type": "function_call_output", "call_id": "a", "output": "nothing", "is_error": true},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "ok"},
        {"type": "haft:clock", "call_id": "c", "arguments": "{}", "output": "noon", "error": null},
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "hidden"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ])));
    let parts = transcript(&all, &Capabilities::default());
    let [ContentPart::InputText { text }] = parts.as_slice() else {
        panic!("{parts:?}");
    };
    insta::assert_snapshot!(text);
}

#[test]
fn images_go_along_where_the_model_takes_them_and_are_named_where_not() {
    let image =
        json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"});
    let all = pieces(json!([{"role": "user", "content": [
        {"type": "input_text", "text": "What is this?"}, image, {"type": "input_text", "text": "Say."}]}]));
    let blind = transcript(&all, &Capabilities::default());
    assert_eq!(
        json!(blind),
        json!([{"type": "input_text",
            "text": "<conversation>\n[user]\nWhat is this?\n[input_image]\nSay.\n\n</conversation>"}])
    );
    let seeing = Capabilities {
        image_input: true,
        ..Capabilities::default()
    };
    assert_eq!(
        json!(transcript(&all, &seeing)),
        json!([
            {"type": "input_text", "text": "<conversation>\n[user]\nWhat is this?\n"},
            image,
            {"type": "input_text", "text": "\nSay.\n\n</conversation>"},
        ])
    );
}

#[test]
fn a_long_output_is_told_by_its_ends() {
    let long = format!("begin{}é{}end", "x".repeat(20_000), "y".repeat(20_000));
    let all = pieces(json!([{"type": "function_call_output", "call_id": "a", "output": long}]));
    let parts = transcript(&all, &Capabilities::default());
    let text = parts[0].text().unwrap();
    assert!(text.len() < 17_000);
    assert!(text.contains("begin") && text.contains("end"));
    assert!(text.contains(" bytes are left out here]"));
}
