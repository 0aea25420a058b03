//! Promises of the text repairer over generated documents and generated damage.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod damage;

use damage::{Faults, Random};
use haft_core::{FinishReason, RepairEvent};
use haft_hydrate::text::{Root, TextPolicy, TextRefusal, TextRepair, repair_text, replay};
use proptest::prelude::*;
use serde_json::{Map, Value};

fn arguments(input: &str, finish: FinishReason) -> Result<TextRepair, TextRefusal> {
    repair_text(input, finish, TextPolicy::Arguments, Root::Object)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-zA-Z ,:é{}\\[\\]\"'“”\\\\\n\t/*#+.-]{0,12}", "\\PC{0,8}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-z_]{1,6}|\\PC{1,4}", any_value(), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

/// Text of pieces that mean something to the repairer.
fn jsonish() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "'",
        "“",
        "”",
        "‘",
        "’",
        "`",
        "```",
        "~~~",
        "\\",
        "\\\"",
        "\\u",
        "\\ud83d",
        "\\n",
        "\n",
        "\r\n",
        "\t",
        " ",
        "\u{a0}",
        "\u{feff}",
        "//",
        "/*",
        "*/",
        "# ",
        "a",
        "key",
        "é",
        "😀",
        "true",
        "None",
        "NaN",
        "undefined",
        "1",
        "-",
        ".5",
        "2.",
        "007",
        "...",
        "…",
        "+",
        "=",
        "(",
        ")",
        ";",
        "<t>",
        "</t>",
        "\"a\": ",
        "\"b\"",
        "'c': ",
        "json",
        "{\\\"",
        "\0",
        "\u{1f}",
        "&",
        "1e5",
        "\"x\"\n",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

/// Whether `cut` is `full` with members or elements missing at the end, along the last path only.
fn is_beginning(cut: &Value, full: &Value) -> bool {
    match (cut, full) {
        (Value::Object(cut), Value::Object(full)) => {
            let mut pairs = cut.iter().zip(full.iter()).rev();
            let last = pairs.next();
            cut.len() <= full.len()
                && last.is_none_or(|(cut, full)| cut.0 == full.0 && is_beginning(cut.1, full.1))
                && pairs.all(|(cut, full)| cut == full)
        }
        (Value::Array(cut), Value::Array(full)) => {
            let mut pairs = cut.iter().zip(full.iter()).rev();
            let last = pairs.next();
            cut.len() <= full.len()
                && last.is_none_or(|(cut, full)| is_beginning(cut, full))
                && pairs.all(|(cut, full)| cut == full)
        }
        // A number at the end may be cut (§4.2); nothing else may.
        (Value::Number(cut), Value::Number(full)) => {
            cut == full || full.to_string().starts_with(&cut.to_string())
        }
        _ => cut == full,
    }
}

fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, found)),
        _ => {}
    }
}

fn well_formed(input: &str, events: &[RepairEvent]) -> bool {
    let mut done = 0;
    events.iter().all(|event| {
        let offset = event.offset.unwrap_or(0);
        let ordered = offset >= done;
        done = offset + event.before.len();
        ordered && input[offset..].starts_with(&event.before)
    })
}

proptest! {
    // `PROPTEST_CASES` sets the number of cases, for the nightly run.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_json_comes_back_untouched(value in any_object(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        for policy in [TextPolicy::Arguments, TextPolicy::Preview] {
            for root in [Root::Object, Root::Any] {
                let repaired = repair_text(&text, FinishReason::Unknown, policy, root).unwrap();
                prop_assert_eq!(&repaired.text, &text);
                prop_assert!(repaired.events.is_empty());
            }
        }
    }

    #[test]
    fn any_valid_root_comes_back_untouched(value in any_value()) {
        let text = value.to_string();
        let repaired = repair_text(&text, FinishReason::Length, TextPolicy::Arguments, Root::Any).unwrap();
        prop_assert_eq!(repaired.text, text);
    }

    #[test]
    fn a_cut_document_is_refused_or_a_true_beginning(value in any_object(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let cut = &text[..end];
            prop_assert!(arguments(cut, FinishReason::Length).is_err(), "{}", cut);
            if let Ok(repaired) = arguments(cut, FinishReason::Normal) {
                prop_assert!(is_beginning(&parsed(&repaired.text), &value), "{} -> {}", cut, repaired.text);
            }
            for finish in [FinishReason::Unknown, FinishReason::Error, FinishReason::ContentFilter] {
                prop_assert!(arguments(cut, finish).is_err(), "{}", cut);
            }
        }
    }

    #[test]
    fn a_cut_escaped_document_is_refused_or_a_true_beginning(value in any_object()) {
        let encoded = serde_json::to_string(&value.to_string()).unwrap();
        for wrapped in [false, true] {
            let text = if wrapped { &encoded } else { &encoded[1..encoded.len() - 1] };
            for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
                if let Ok(repaired) = arguments(&text[..end], FinishReason::Normal) {
                    prop_assert!(is_beginning(&parsed(&repaired.text), &value), "{} -> {}", &text[..end], repaired.text);
                }
            }
        }
    }

    #[test]
    fn nothing_makes_it_panic_and_what_it_accepts_is_json(text in jsonish()) {
        for policy in [TextPolicy::Arguments, TextPolicy::Preview] {
            for root in [Root::Object, Root::Any] {
                let Ok(repaired) = repair_text(&text, FinishReason::Normal, policy, root) else { continue };
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&repaired.text).is_ok(), "{:?} -> {:?}", text, repaired.text);
                prop_assert!(well_formed(&text, &repaired.events), "{:?} {:?}", text, repaired.events);
                let replayed = replay(&text, &repaired.events);
                prop_assert_eq!(replayed.as_deref(), Some(&*repaired.text));
                let again = repair_text(&repaired.text, FinishReason::Length, TextPolicy::Arguments, Root::Any).unwrap();
                prop_assert!(again.events.is_empty(), "{:?} -> {:?}", repaired.text, again.events);
            }
        }
    }

    #[test]
    fn arguments_take_only_admissible_edits(text in jsonish()) {
        if let Ok(repaired) = arguments(&text, FinishReason::Normal) {
            prop_assert!(repaired.events.iter().all(|event| event.kind.class().admissible_in_arguments()));
        }
    }

    #[test]
    fn any_text_at_all_is_survived(text in "\\PC{0,60}|(?s).{0,40}") {
        let _ = arguments(&text, FinishReason::Normal);
        let _ = repair_text(&text, FinishReason::Unknown, TextPolicy::Preview, Root::Any);
    }
}

/// The value comes back or the text is refused, and it comes back often enough.
fn damaged(faults: Faults, seeds: std::ops::Range<u64>, share: f64) {
    let mut accepted = 0;
    let total = seeds.end - seeds.start;
    for seed in seeds {
        let mut random = Random::new(seed);
        let value = damage::document(faults, &mut random);
        let text = damage::damage(&value, faults, &mut random);
        let Ok(repaired) = arguments(&text, FinishReason::Normal) else {
            continue;
        };
        accepted += 1;
        assert_eq!(parsed(&repaired.text), value, "seed {seed}: {text}");
        assert_eq!(
            replay(&text, &repaired.events).as_deref(),
            Some(&*repaired.text),
            "seed {seed}"
        );
        let mut strings = Vec::new();
        leaves(&value, &mut strings);
        let plain = text
            .replace("\\\\", "\\")
            .replace("\\n", "\n")
            .replace("\\\"", "\"")
            .replace("\\\"", "\"");
        for leaf in strings
            .iter()
            .filter(|leaf| !leaf.contains(['\\', '"', '\n', '\t']))
        {
            assert!(
                plain.contains(leaf.as_str()),
                "seed {seed}: {leaf} is not in {text}"
            );
        }
    }
    let reached =
        f64::from(u32::try_from(accepted).unwrap()) / f64::from(u32::try_from(total).unwrap());
    assert!(reached >= share, "{faults:?}: only {reached:.3} accepted");
}

#[test]
fn a_single_fault_is_repaired() {
    for fault in Faults::ALL {
        damaged(fault, 0..250, 0.99);
    }
}

#[test]
fn two_faults_are_repaired() {
    for (index, first) in Faults::ALL.into_iter().enumerate() {
        for (other, second) in Faults::ALL.into_iter().enumerate().skip(index + 1) {
            let seed = 10_000 + 1_000 * (index as u64) + 20 * (other as u64);
            // A text that ends with `'` may have been cut within a word like `don't`.
            let apostrophe = first | second == Faults::SINGLE_QUOTES | Faults::MISSING_CLOSE;
            let share = if apostrophe { 0.5 } else { 0.8 };
            damaged(first | second, seed..seed + 20, share);
        }
    }
}

#[test]
fn many_faults_never_make_a_wrong_value() {
    // The nightly run sets this higher.
    let seeds = std::env::var("HAFT_DAMAGE_SEEDS").ok();
    let seeds = seeds
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(1_500u64);
    for seed in 0..seeds {
        let faults = Faults::random(&mut Random::new(seed ^ 0x5eed));
        damaged(faults, 50_000 + seed..50_001 + seed, 0.0);
    }
}

#[test]
fn where_jsonrepair_agrees_the_values_agree() {
    let mut both = 0;
    for seed in 0..400u64 {
        let mut random = Random::new(seed);
        let faults = Faults::random(&mut random);
        let value = damage::document(faults, &mut random);
        let text = damage::damage(&value, faults, &mut random);
        let (Ok(ours), Ok(theirs)) = (
            arguments(&text, FinishReason::Normal),
            jsonrepair_rs::jsonrepair(&text),
        ) else {
            continue;
        };
        // It turns prose and labels into strings beside the document, and takes bare words for text.
        let theirs = parsed(&theirs);
        if theirs.is_object() && theirs == value {
            assert_eq!(parsed(&ours.text), theirs, "seed {seed}: {text}");
            both += 1;
        }
    }
    assert!(both > 40, "only {both} texts were comparable");
}
