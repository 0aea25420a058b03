//! What servers want to know in the middle of a call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_hydrate::JsonSchemaFactory;
use haft_mcp::{
    Answer, Asker, CallOptions, Cause, ConnectOptions, Connection, Question, QuestionKind,
    Questions, ServerSettings,
};
use serde_json::{Map, Value, json};

use crate::kit::{LONG, call, call_text, fake, object, open_with};

fn with(asker: impl Asker) -> ConnectOptions {
    ConnectOptions {
        questions: Questions::By(Arc::new(asker)),
        validator: Some(Arc::new(JsonSchemaFactory)),
        ..ConnectOptions::default()
    }
}

async fn asking(words: &[&str], asker: impl Asker) -> Connection {
    open_with(fake(words), &with(asker)).await.unwrap()
}

fn ann(_: Question) -> Answer {
    Answer::Accept(object(json!({"name": "Ann"})))
}

/// Takes its time.
struct Slow(Duration);

impl Asker for Slow {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            ann(question)
        })
    }
}

async fn json_of(connection: &Connection, tool: &str, arguments: Value) -> Value {
    serde_json::from_str(&call_text(connection, tool, arguments).await).unwrap()
}

#[tokio::test]
async fn a_form_is_answered_with_its_proposals_and_the_state_comes_back_to_the_byte() {
    let connection = asking(&["modern"], ann).await;
    let seen = json_of(&connection, "ask", json!({"rounds": 2, "inputs": 2})).await;
    let answer = json!({"action": "accept", "content": {"name": "Ann", "colour": "blue"}});
    let expected =
        json!({"responses": {"key 0": answer, "key 1": answer}, "state": "\u{e9}\u{0}\"/+=\n#2"});
    assert_eq!(seen, expected);
    // Where there is no state, none is sent.
    let seen = json_of(&connection, "ask", json!({"stateless": true})).await;
    assert_eq!(seen, json!({"responses": {"key 0": answer}, "state": null}));
    let connection = asking(&["legacy"], ann).await;
    let replies = json_of(&connection, "interrogate", json!({})).await;
    assert_eq!(replies[0]["result"], answer);
}

#[tokio::test]
async fn the_one_who_is_asked_hears_who_asks_what_and_can_say_no() {
    for (words, tool) in [(&["modern"], Some("ask")), (&["legacy"], None)] {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        let asker = move |question: Question| {
            notes.lock().unwrap().push(question);
            Answer::Decline
        };
        let connection = asking(words, asker).await;
        let page = json!({"mode": "url", "message": "Sign\u{200b} in", "url": "https://x.example/in", "elicitationId": "e1"});
        let name = tool.unwrap_or("interrogate");
        let seen = json_of(&connection, name, json!({"params": page})).await;
        assert!(seen.to_string().contains(r#""action":"decline""#), "{seen}");
        let question = heard.lock().unwrap().remove(0);
        assert_eq!(question.server.as_str(), "fake");
        assert_eq!(question.tool.as_deref(), tool);
        assert_eq!(question.message, "Sign in");
        let QuestionKind::Page { url } = question.kind else {
            panic!()
        };
        assert_eq!(url.as_str(), "https://x.example/in");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_never_sent() {
    for words in [&["modern"], &["legacy"]] {
        let tries = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tries);
        let asker = move |question: Question| {
            let said = match count.fetch_add(1, Ordering::Relaxed) {
                0 => json!({"name": "Ann", "colour": "green"}),
                1 => {
                    assert!(question.complaint.unwrap().contains("colour"));
                    json!({"name": "Ann", "password": "x"})
                }
                _ => json!({"name": ""}),
            };
            Answer::Accept(object(said))
        };
        let connection = asking(words, asker).await;
        let tool = if words == &["modern"] {
            "ask"
        } else {
            "interrogate"
        };
        let seen = json_of(&connection, tool, json!({})).await.to_string();
        assert!(seen.contains(r#"{"action":"cancel"}"#), "{seen}");
        assert_eq!(tries.load(Ordering::Relaxed), 3);
    }
}

#[tokio::test]
async fn the_ability_is_declared_exactly_when_somebody_can_answer() {
    for era in ["modern", "legacy"] {
        let connection = asking(&[era], ann).await;
        let meta = json_of(&connection, "meta", json!({})).await.to_string();
        assert!(
            meta.contains(r#""elicitation":{"form":{},"url":{}}"#),
            "{era}: {meta}"
        );
        let connection = open_with(fake(&[era]), &ConnectOptions::default())
            .await
            .unwrap();
        let meta = json_of(&connection, "meta", json!({})).await.to_string();
        for absent in ["elicitation", "sampling", "roots"] {
            assert!(!meta.contains(absent), "{era}: {meta}");
        }
    }
}

#[tokio::test]
async fn where_nobody_can_answer_the_call_fails_and_says_so() {
    let connection = open_with(fake(&["modern"]), &ConnectOptions::default())
        .await
        .unwrap();
    let error = call(&connection, "ask", json!({})).await.unwrap_err();
    assert_eq!(
        error.cause.to_string(),
        "the server asks for input that cannot be given here: a form to be filled in (elicitation). \
         It asks: Who?"
    );
    let connection = open_with(fake(&["legacy"]), &ConnectOptions::default())
        .await
        .unwrap();
    let replies = json_of(&connection, "interrogate", json!({})).await;
    assert_eq!(
        replies[0]["error"],
        json!({"code": -32601, "message": "this client offers no elicitation"})
    );
}

#[tokio::test]
async fn what_is_never_offered_fails_the_call_before_anybody_is_asked() {
    let never = |_: Question| -> Answer { panic!("nobody may be asked") };
    let connection = asking(&["modern"], never).await;
    for method in ["sampling/createMessage", "roots/list", "who/knows"] {
        let asked = call(&connection, "ask", json!({"method": method, "inputs": 2})).await;
        assert_eq!(
            asked.unwrap_err().cause.to_string(),
            format!("the server asks for input that cannot be given here: {method}, {method}")
        );
    }
}

#[tokio::test]
async fn questions_without_an_end_come_to_one() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let counting = move |question| {
        count.fetch_add(1, Ordering::Relaxed);
        ann(question)
    };
    let connection = asking(&["modern"], counting.clone()).await;
    let endless = call(&connection, "ask", json!({"rounds": 1_000_000})).await;
    assert_eq!(
        *endless.unwrap_err().cause,
        Cause::InputRequired {
            wanted: "more than 10 rounds of input".into()
        }
    );
    assert_eq!(asked.swap(0, Ordering::Relaxed), 10);
    // Nothing but state, for ever.
    let endless = call(&connection, "state", json!({"rounds": 1_000_000})).await;
    assert!(endless.is_err());
    // Nine at once are one too many, and none is asked.
    let many = call(&connection, "ask", json!({"inputs": 9})).await;
    assert_eq!(
        *many.unwrap_err().cause,
        Cause::InputRequired {
            wanted: "9 questions at once, 8 are allowed".into()
        }
    );
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    // The older era: the eleventh question of a call is refused.
    let connection = asking(&["legacy"], counting).await;
    let replies = json_of(&connection, "interrogate", json!({"count": 13})).await;
    let refused = replies
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it.get("error").is_some());
    assert_eq!(refused.count(), 3);
    assert_eq!(asked.load(Ordering::Relaxed), 10);
    // The next call may ask again.
    let replies = json_of(&connection, "interrogate", json!({"count": 1})).await;
    assert_eq!(replies[0]["result"]["action"], "accept");
}

#[tokio::test]
async fn more_than_eight_at_once_are_refused_in_the_older_era_too() {
    let connection = asking(&["legacy"], Slow(Duration::from_secs(1))).await;
    let replies = json_of(
        &connection,
        "interrogate",
        json!({"count": 9, "at_once": true}),
    )
    .await;
    let refused: Vec<_> = replies
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it.get("error").is_some())
        .collect();
    assert_eq!(refused.len(), 1, "{replies}");
    assert_eq!(
        refused[0]["error"]["message"],
        "more than 8 questions at once"
    );
}

fn impatient(words: &[&str]) -> ServerSettings {
    let mut settings = fake(words);
    settings.timeouts.idle = Duration::from_secs(1);
    settings.timeouts.call = Duration::from_millis(1_500);
    settings
}

#[tokio::test]
async fn the_time_of_a_call_stands_still_while_a_person_is_asked() {
    for words in [&["modern"], &["legacy"]] {
        let options = with(Slow(Duration::from_millis(2_500)));
        let connection = open_with(impatient(words), &options).await.unwrap();
        let tool = if words == &["modern"] {
            "ask"
        } else {
            "interrogate"
        };
        let seen = json_of(&connection, tool, json!({})).await.to_string();
        assert!(seen.contains(r#""action":"accept""#), "{words:?}: {seen}");
        // And goes on afterwards.
        let error = call(&connection, "silent", json!({})).await.unwrap_err();
        assert!(matches!(*error.cause, Cause::Idle { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_person_who_says_nothing_is_not_waited_for_without_an_end() {
    let never = || with(Slow(Duration::from_hours(1)));
    let mut settings = fake(&["modern"]);
    settings.timeouts.asking = Duration::from_millis(300);
    let connection = open_with(settings, &never()).await.unwrap();
    let error = call(&connection, "ask", json!({})).await.unwrap_err();
    assert!(
        error.cause.to_string().contains("nobody answered"),
        "{error}"
    );
    let mut settings = fake(&["legacy"]);
    settings.timeouts.asking = Duration::from_millis(300);
    let connection = open_with(settings, &never()).await.unwrap();
    let replies = json_of(&connection, "interrogate", json!({"count": 2})).await;
    assert_eq!(replies[0]["result"], json!({"action": "cancel"}));
    // All of the time was used up.
    assert_eq!(
        replies[1]["error"]["message"],
        "too many questions in one call"
    );
}

#[tokio::test]
async fn a_call_that_is_given_up_takes_its_question_along() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    struct Waiting(Arc<AtomicUsize>);
    impl Asker for Waiting {
        fn ask(&self, _: Question) -> BoxFuture<'_, Answer> {
            let dropped = Dropped(Arc::clone(&self.0));
            Box::pin(async move {
                let _dropped = dropped;
                std::future::pending().await
            })
        }
    }
    for (words, tool) in [(&["modern"], "ask"), (&["legacy"], "interrogate")] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let connection = asking(words, Waiting(Arc::clone(&dropped))).await;
        let cancel = haft_core::Cancel::new();
        let options = CallOptions {
            cancel: cancel.clone(),
            ..CallOptions::default()
        };
        let called = connection.call_tool(tool, Map::new(), options);
        let stopped = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        };
        let (called, ()) = tokio::time::timeout(LONG, async { tokio::join!(called, stopped) })
            .await
            .unwrap();
        assert_eq!(*called.unwrap_err().cause, Cause::Cancelled);
        let gone = async {
            while dropped.load(Ordering::Relaxed) == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, gone).await.unwrap();
    }
}

#[tokio::test]
async fn an_asker_that_panics_says_nothing() {
    for (words, tool) in [(&["modern"], "ask"), (&["legacy"], "interrogate")] {
        let broken = |_: Question| -> Answer { panic!("oh") };
        let connection = asking(words, broken).await;
        let seen = json_of(&connection, tool, json!({})).await.to_string();
        assert!(seen.contains(r#"{"action":"cancel"}"#), "{seen}");
    }
}

#[tokio::test]
async fn a_question_that_is_none_fails_its_call_only() {
    let connection = asking(&["modern"], ann).await;
    for params in [
        json!({}),
        json!({"message": "?"}),
        json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}}),
    ] {
        let error = call(&connection, "ask", json!({"params": params}))
            .await
            .unwrap_err();
        assert!(matches!(*error.cause, Cause::Unexpected(_)), "{error}");
    }
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    let connection = asking(&["legacy"], ann).await;
    let replies = json_of(&connection, "interrogate", json!({"params": {}})).await;
    assert_eq!(replies[0]["error"]["code"], -32602);
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn an_asker_without_a_validator_is_refused() {
    let options = ConnectOptions {
        questions: Questions::By(Arc::new(ann)),
        ..ConnectOptions::default()
    };
    let error = open_with(fake(&["modern"]), &options).await.unwrap_err();
    assert!(matches!(*error.cause, Cause::Settings(_)), "{error}");
}
