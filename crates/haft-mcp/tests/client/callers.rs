//! Questions of servers reach whoever made the call, and nobody else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_hydrate::JsonSchemaFactory;
use haft_mcp::{
    Answer, Asker, CallOptions, ConnectOptions, Connection, Question, Questions, Takes,
};
use serde_json::{Value, json};

use crate::asking::form;
use crate::kit::{LONG, fake, object, open_with, text};

/// Somebody with a name, who notes what he is asked.
struct Person {
    name: Option<&'static str>,
    takes: Takes,
    heard: Mutex<Vec<String>>,
    thinks: Duration,
}

impl Person {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self::nameless().named(name))
    }

    fn nameless() -> Self {
        Self {
            name: None,
            takes: Takes::ALL,
            heard: Mutex::default(),
            thinks: Duration::ZERO,
        }
    }

    fn named(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

impl Asker for Person {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        self.heard.lock().unwrap().push(question.message);
        Box::pin(async move {
            tokio::time::sleep(self.thinks).await;
            let name = self.name.unwrap_or("Nobody");
            Answer::Accept(object(json!({ "name": name })))
        })
    }

    fn caller(&self) -> Option<&str> {
        self.name
    }

    fn takes(&self) -> Takes {
        self.takes
    }
}

async fn connected(words: &[&str], questions: Questions) -> Connection {
    let options = ConnectOptions {
        questions,
        validator: Some(Arc::new(JsonSchemaFactory)),
        ..ConnectOptions::default()
    };
    open_with(fake(words), &options).await.unwrap()
}

fn by(person: &Arc<Person>) -> CallOptions<'static> {
    CallOptions {
        asker: Some(Arc::clone(person) as Arc<dyn Asker>),
        ..CallOptions::default()
    }
}

async fn told(
    connection: &Connection,
    tool: &str,
    arguments: Value,
    options: CallOptions<'_>,
) -> Value {
    let called = connection.call_tool(tool, object(arguments), options);
    let outcome = tokio::time::timeout(LONG, called).await.unwrap().unwrap();
    let text = text(&outcome);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn asking(message: &str) -> Value {
    let mut form = form();
    form["message"] = message.into();
    json!({ "params": form })
}

#[tokio::test]
async fn whoever_made_the_call_goes_before_whoever_stands_for_the_connection() {
    for (era, tool) in [("modern", "ask"), ("legacy", "interrogate")] {
        let (own, usual) = (Person::new("own"), Person::new("usual"));
        let connection = connected(&[era], Questions::By(Arc::clone(&usual) as _)).await;
        let seen = told(&connection, tool, json!({}), by(&own))
            .await
            .to_string();
        assert!(seen.contains(r#""name":"own""#), "{era}: {seen}");
        let seen = told(&connection, tool, json!({}), CallOptions::default()).await;
        let seen = seen.to_string();
        assert!(seen.contains(r#""name":"usual""#), "{era}: {seen}");
        assert_eq!((own.heard().len(), usual.heard().len()), (1, 1));
    }
}

#[tokio::test]
async fn modern_calls_at_the_same_time_are_each_asked_their_own_questions() {
    let connection = connected(&["modern"], Questions::PerCall).await;
    let (ann, bob) = (Person::new("ann"), Person::new("bob"));
    let (of_ann, of_bob) = tokio::join!(
        told(&connection, "ask", asking("Ann?"), by(&ann)),
        told(&connection, "ask", asking("Bob?"), by(&bob)),
    );
    for (seen, person, name) in [(of_ann, &ann, "ann"), (of_bob, &bob, "bob")] {
        assert_eq!(
            seen["responses"]["key 0"]["content"]["name"], name,
            "{seen}"
        );
        assert_eq!(person.heard().len(), 1);
    }
    assert_eq!(ann.heard(), ["Ann?"]);
    assert_eq!(bob.heard(), ["Bob?"]);
}

#[tokio::test]
async fn a_modern_request_declares_what_its_own_caller_can_answer() {
    let connection = connected(&["modern"], Questions::PerCall).await;
    let declared =
        |meta: &Value| meta["meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
    let trace = haft_mcp::TraceContext {
        parent: Some("00-1-2-3".into()),
        ..Default::default()
    };
    let options = CallOptions {
        trace,
        ..by(&Person::new("ann"))
    };
    let meta = told(&connection, "meta", json!({}), options).await;
    assert_eq!(
        declared(&meta),
        json!({"elicitation": {"form": {}, "url": {}}})
    );
    assert_eq!(meta["meta"]["traceparent"], "00-1-2-3");
    let only_forms = Arc::new(Person {
        takes: Takes {
            forms: true,
            pages: false,
        },
        ..Person::nameless()
    });
    let meta = told(&connection, "meta", json!({}), by(&only_forms)).await;
    assert_eq!(declared(&meta), json!({"elicitation": {"form": {}}}));
    let meta = told(&connection, "meta", json!({}), CallOptions::default()).await;
    assert_eq!(declared(&meta), json!({}));
    // What was not declared is refused before anybody hears of it.
    let page = json!({"mode": "url", "message": "Sign in", "url": "https://x.example/", "elicitationId": "e"});
    let asked = connection.call_tool("ask", object(json!({"params": page})), by(&only_forms));
    let error = asked.await.unwrap_err().cause.to_string();
    assert!(
        error.ends_with("a page to be visited (elicitation). It asks: Sign in"),
        "{error}"
    );
    assert_eq!(only_forms.heard(), [""; 0]);
}

#[tokio::test]
async fn a_connection_that_refuses_questions_does_so_whatever_a_call_says() {
    let ann = Person::new("ann");
    let connection = connected(&["modern"], Questions::Refused).await;
    let asked = connection
        .call_tool("ask", object(json!({})), by(&ann))
        .await;
    assert!(
        asked
            .unwrap_err()
            .cause
            .to_string()
            .contains("cannot be given here")
    );
    let connection = connected(&["legacy"], Questions::Refused).await;
    let replies = told(&connection, "interrogate", json!({}), by(&ann)).await;
    assert_eq!(replies[0]["error"]["code"], -32601);
    assert_eq!(ann.heard(), [""; 0]);
}

#[tokio::test]
async fn a_legacy_call_that_nobody_answers_for_says_so_to_its_server() {
    let connection = connected(&["legacy"], Questions::PerCall).await;
    let replies = told(
        &connection,
        "interrogate",
        json!({}),
        CallOptions::default(),
    )
    .await;
    let message = replies[0]["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "nobody can be asked: whoever made the call answers no questions, and the server wants a form to \
         be filled in (elicitation). It asks: Who?"
    );
}

/// What comes of a question while a call of this one is under way.
async fn beside(connection: &Connection, other: CallOptions<'_>, person: &Arc<Person>) -> Value {
    let slept = connection.call_tool("sleep", object(json!({"ms": 1_000})), other);
    let asked = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        told(connection, "interrogate", json!({}), by(person)).await
    };
    let (slept, replies) = tokio::join!(slept, asked);
    slept.unwrap();
    replies
}

#[tokio::test]
async fn a_legacy_question_is_asked_only_where_all_calls_are_the_same_callers() {
    let connection = connected(&["legacy"], Questions::PerCall).await;
    let (ann, bob) = (Person::new("ann"), Person::new("bob"));
    let doubt = "nobody can be asked: calls of several callers are under way";
    for other in [by(&bob), CallOptions::default()] {
        let replies = beside(&connection, other, &ann).await;
        let message = replies[0]["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(doubt), "{message}");
        assert_eq!((ann.heard(), bob.heard()), (vec![], vec![]));
    }
    // Another one of the same name: the older call's is asked.
    let elder = Person::new("ann");
    let replies = beside(&connection, by(&elder), &ann).await;
    assert_eq!(replies[0]["result"]["action"], "accept", "{replies}");
    assert_eq!((elder.heard().len(), ann.heard().len()), (1, 0));
}

#[tokio::test]
async fn a_question_of_a_call_that_was_given_up_is_not_asked_of_the_next_caller() {
    let connection = connected(&["legacy"], Questions::PerCall).await;
    let (ann, bob) = (Person::new("ann"), Person::new("bob"));
    let given_up = connection.call_tool("silent", object(json!({})), by(&bob));
    let given_up = tokio::time::timeout(Duration::from_millis(200), given_up).await;
    assert!(given_up.is_err());
    let replies = told(&connection, "interrogate", json!({}), by(&ann)).await;
    assert!(replies[0]["error"].is_object(), "{replies}");
    assert_eq!(ann.heard(), [""; 0]);
    let replies = told(&connection, "interrogate", json!({}), by(&bob)).await;
    assert_eq!(replies[0]["result"]["action"], "accept", "{replies}");
}

#[tokio::test]
async fn somebody_who_cannot_be_asked_says_why() {
    struct Away;
    impl Asker for Away {
        fn ask(&self, _: Question) -> BoxFuture<'_, Answer> {
            Box::pin(async { Answer::Unaskable("the shop is closed".into()) })
        }
    }
    let away = || CallOptions {
        asker: Some(Arc::new(Away)),
        ..CallOptions::default()
    };
    let connection = connected(&["modern"], Questions::PerCall).await;
    let asked = connection.call_tool("ask", object(json!({})), away()).await;
    let error = asked.unwrap_err().cause.to_string();
    assert_eq!(
        error,
        "the server asks for input that cannot be given here: the shop is closed"
    );
    let connection = connected(&["legacy"], Questions::PerCall).await;
    let replies = told(&connection, "interrogate", json!({}), away()).await;
    assert_eq!(replies[0]["error"]["message"], "the shop is closed");
}
