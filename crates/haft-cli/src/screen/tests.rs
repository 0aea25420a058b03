use std::sync::{Arc, Mutex};

use haft::json;

use super::*;

/// What was written.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    /// Without the colours that are ours, and only without those.
    fn read(&self) -> String {
        let mut text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        for code in ["0", "1", "2", "31", "32", "33", "36", "39"] {
            text = text.replace(&format!("\u{1b}[{code}m"), "");
        }
        text
    }
}

fn screen(layout: Layout) -> (Screen, Paper, Paper) {
    let (answer, aside) = (Paper::default(), Paper::default());
    let screen = Screen::over(Box::new(answer.clone()), Box::new(aside.clone()), layout);
    (screen, answer, aside)
}

fn events() -> Vec<haft::Value> {
    let added = |item| json!({"type": "response.output_item.added", "item": item});
    let done = |item| json!({"type": "response.output_item.done", "item": item});
    vec![
        json!({"type": "response.reasoning.delta", "delta": "Let me see."}),
        added(
            json!({"type": "haft:clock", "call_id": "call_1", "arguments": "", "output": null,
            "error": null}),
        ),
        done(
            json!({"type": "haft:clock", "call_id": "call_1", "arguments": "{\"zone\":\"Z\"}",
            "output": "\u{1b}]0;noon\u{7}", "error": null, "provenance": {"duration_ms": 7}}),
        ),
        json!({"type": "response.output_text.delta", "delta": "It is\n"}),
        json!({"type": "response.output_text.delta", "delta": "\u{1b}[2Jnoon"}),
        json!({"type": "response.completed", "response": {}}),
    ]
}

#[test]
fn a_person_reads_words_and_calls_in_their_order() {
    let (mut screen, answer, aside) = screen(Layout::Framed);
    for event in events() {
        screen.show_wire(&event).unwrap();
    }
    screen.end_answer().unwrap();
    let thoughts_and_answer = "\n  Let me see.\n\n\n  It is\n  \u{fffd}[2Jnoon\n";
    assert_eq!(answer.read(), thoughts_and_answer);
    let lines = "  → clock\n  ✓ clock {\"zone\":\"Z\"} (7 ms) \u{fffd}]0;noon\u{fffd}\n";
    assert_eq!(aside.read(), lines);
}

#[test]
fn a_program_reads_the_answer_and_nothing_else() {
    let (screen, answer, aside) = screen(Layout::Plain);
    let mut screen = screen.thoughts(false);
    for event in events() {
        screen.show_wire(&event).unwrap();
    }
    screen.end_answer().unwrap();
    assert_eq!(answer.read(), "It is\n\u{fffd}[2Jnoon\n");
    assert!(!aside.read().contains("Let me see"), "{}", aside.read());
}

#[test]
fn nothing_that_others_wrote_steers_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}[35m\u{1b}]52;c;aGk=\u{7}\u{9b}31m\r";
    let (mut screen, answer, aside) = screen(Layout::Framed);
    screen.words(evil, Tone::Answer).unwrap();
    screen.words(evil, Tone::Thought).unwrap();
    screen.call_asked(evil, evil, evil);
    screen.call_began(evil).unwrap();
    let result = CallResult {
        text: evil,
        is_error: true,
    };
    screen.call_ended(evil, &result).unwrap();
    screen.note(evil).unwrap();
    for item in [
        json!({"type": "message", "role": evil, "content": evil}),
        json!({"type": "function_call", "call_id": evil, "name": evil, "arguments": evil}),
        json!({"type": evil, "call_id": evil, "arguments": evil, "output": evil}),
        json!({"type": "function_call_output", "call_id": evil, "output": evil}),
    ] {
        for detail in [item::Detail::Short, item::Detail::Full] {
            screen.item(&item, detail).unwrap();
        }
    }
    screen.end_answer().unwrap();
    let written = answer.read() + &aside.read();
    let steering: Vec<char> = written
        .chars()
        .filter(|it| crate::text::steers(*it))
        .collect();
    assert!(steering.is_empty(), "{written:?}");
}
