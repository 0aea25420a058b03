#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use haft_mcp::{Answer, Question};
use serde_json::{Value, json};

use super::{Heard, Inquiry, Step};

/// A question as a server of the modern era would ask it.
fn question(params: &Value) -> Question {
    Question::from_protocol(&haft_mcp::Label::new("zeta").unwrap(), Some("ask"), params).unwrap()
}

fn form(fields: &Value, required: &Value) -> Question {
    let schema = json!({"type": "object", "properties": fields, "required": required});
    question(&json!({"message": "Who\u{1b}[2J?", "requestedSchema": schema}))
}

/// Types these lines; the screen, and what came of it.
fn held(question: &Question, lines: &[&str]) -> (String, Option<Answer>) {
    let mut inquiry = Inquiry::new(question);
    let mut screen = String::new();
    let mut lines = lines.iter();
    loop {
        let (told, prompt) = match inquiry.step() {
            Step::Ask { told, prompt } => (told, prompt),
            Step::Done(answer) => return (screen, Some(answer)),
        };
        for line in told {
            writeln!(screen, "{line}").unwrap();
        }
        let Some(line) = lines.next() else {
            return (screen + &prompt, None);
        };
        writeln!(screen, "{prompt}{line}").unwrap();
        inquiry.hear(&Heard::Line((*line).to_owned()));
    }
}

fn accepted(values: &Value) -> Answer {
    Answer::Accept(values.as_object().unwrap().clone())
}

#[test]
fn fields_are_asked_for_one_by_one_and_shown_before_they_go() {
    let fields = json!({
        "name": {"type": "string", "title": "Your name", "description": "as in your passport"},
        "colour": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"], "default": "blue"},
        "age": {"type": "integer"},
        "news": {"type": "boolean"},
        "sizes": {"type": "array", "items": {"anyOf": [{"const": "s", "title": "Small"}, {"const": "l"}]}},
        "share": {"type": "number"},
    });
    let question = form(&fields, &json!(["name"]));
    let lines = [
        "Ann", "green", "Red", "1.5", "20", "", "Small, l", "0.5", "perhaps", "y",
    ];
    let (screen, answer) = held(&question, &lines);
    let expected =
        json!({"name": "Ann", "colour": "red", "age": 20, "sizes": ["s", "l"], "share": 0.5});
    assert_eq!(answer, Some(accepted(&expected)));
    for seen in [
        "? MCP server `zeta` asks, in a call of `ask`:\n  Who",
        "  name: Your name: as in your passport\n  name (text): Ann\n",
        "    red (Red)\n    blue (Blue)\n  colour (one of these) [blue]: green\n`green` is none of these\n",
        "  age (a whole number) [may be empty]: 1.5\nthat is no whole number\n",
        "  news (yes or no) [may be empty]: \n",
        "  sizes (some of these, with commas) [may be empty]: Small, l\n",
        "this goes to `zeta`:\n  name: \"Ann\"\n  colour: \"red\"\n  age: 20\n",
        "  news: nothing\n",
        "  send it? [y]es, [n]o: perhaps\nsay `y` or `n`\n",
    ] {
        assert!(screen.contains(seen), "{seen:?} is not in {screen}");
    }
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
}

#[test]
fn what_a_form_proposes_stands_and_nothing_goes_without_a_yes() {
    let question = form(
        &json!({"colour": {"type": "string", "default": "blue"}}),
        &json!([]),
    );
    assert_eq!(held(&question, &["", "yes"]).1, Some(accepted(&json!({}))));
    for last in ["", "n", "no"] {
        let (screen, answer) = held(&question, &["", last]);
        assert_eq!(answer, Some(Answer::Decline));
        assert!(screen.contains("colour: \"blue\"\n"), "{screen}");
    }
}

#[test]
fn an_empty_line_or_ctrl_c_is_a_no() {
    let question = form(&json!({"name": {"type": "string"}}), &json!(["name"]));
    assert_eq!(held(&question, &[""]).1, Some(Answer::Decline));
    let mut inquiry = Inquiry::new(&question);
    inquiry.step();
    inquiry.hear(&Heard::Enough);
    assert_eq!(inquiry.step(), Step::Done(Answer::Decline));
    let nothing = form(&json!({}), &json!([]));
    let (screen, answer) = held(&nothing, &["y"]);
    assert_eq!(answer, Some(accepted(&json!({}))));
    assert!(screen.contains("do you agree?"), "{screen}");
}

#[test]
fn a_page_is_shown_as_it_is() {
    let page = json!({"mode": "url", "message": "Sign in", "url": "https://bücher.example/in?a=1", "elicitationId": "e"});
    let (screen, answer) = held(&question(&page), &["y"]);
    assert!(
        screen.contains("  https://xn--bcher-kva.example/in?a=1\n"),
        "{screen}"
    );
    assert_eq!(answer, Some(accepted(&json!({}))));
    assert_eq!(held(&question(&page), &[""]).1, Some(Answer::Decline));
}

#[test]
fn somebody_who_is_asked_again_hears_why() {
    let mut question = form(&json!({"name": {"type": "string"}}), &json!([]));
    question.complaint = Some("`name` is too short".into());
    let (screen, _) = held(&question, &[]);
    assert!(
        screen.contains("did not fit: `name` is too short"),
        "{screen}"
    );
}
