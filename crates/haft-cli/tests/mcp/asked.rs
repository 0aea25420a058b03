//! What servers ask in the middle of a call, through the gateway: all four pairs of eras, clients that
//! cannot be asked, and callers who must not hear each other's questions.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_mcp::{
    Answer, CallOptions, ConnectOptions, Connection, Era, Label, Question, QuestionKind, Questions,
    Secret, ServerSettings, TransportSettings, Url,
};
use serde_json::{Map, Value, json};

use crate::http::serving;
use crate::kit::{LONG, fake, folder};
use crate::support::{haft, told};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// One server of each era.
fn both() -> String {
    let keys = "pin = \"off\"";
    let modern = fake("modern", "modern", keys);
    format!("{modern}{}", fake("legacy", "legacy", keys))
}

/// Somebody who notes what he is asked, and says the same each time.
#[derive(Clone)]
struct Person {
    heard: Arc<Mutex<Vec<Question>>>,
    says: Answer,
}

impl Person {
    fn named(name: &str) -> Self {
        Self::saying(Answer::Accept(object(json!({ "name": name }))))
    }

    fn saying(says: Answer) -> Self {
        Self {
            heard: Arc::default(),
            says,
        }
    }

    fn options(&self, era: Era) -> ConnectOptions {
        let person = self.clone();
        let asker = move |question: Question| {
            person.heard.lock().unwrap().push(question);
            person.says.clone()
        };
        ConnectOptions {
            questions: Questions::By(Arc::new(asker)),
            ..mute(era)
        }
    }

    fn messages(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().map(|it| it.message.clone()).collect()
    }
}

fn mute(era: Era) -> ConnectOptions {
    ConnectOptions {
        era: Some(era),
        validator: Some(Arc::new(haft::JsonSchemaFactory)),
        ..ConnectOptions::default()
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// A client of `haft mcp serve`.
async fn client(folder: &Path, arguments: &[&str], options: &ConnectOptions) -> Connection {
    let mut all = vec!["mcp", "serve"];
    all.extend(arguments);
    let label = Label::new("gate").unwrap();
    let mut settings = ServerSettings::stdio(label, env!("CARGO_BIN_EXE_haft")).args(all);
    if let TransportSettings::Stdio(stdio) = &mut settings.transport {
        stdio.cwd = Some(folder.to_owned());
    }
    let opening = Connection::open(Arc::new(settings), options);
    let client = tokio::time::timeout(LONG, opening).await.unwrap().unwrap();
    assert_eq!(Some(client.era()), options.era);
    client.list_tools().await.unwrap();
    client
}

/// The texts of a result, and whether it is an error.
async fn call(client: &Connection, name: &str, arguments: Value) -> (String, bool) {
    let called = client.call_tool(name, object(arguments), CallOptions::default());
    let outcome = tokio::time::timeout(LONG, called).await.unwrap().unwrap();
    let blocks = outcome.raw["content"].as_array().unwrap().iter();
    let texts: Vec<_> = blocks.filter_map(|it| it["text"].as_str()).collect();
    (texts.join("\n"), outcome.is_error)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_reaches_the_client_in_all_four_pairs_of_eras() {
    let folder = folder(&both());
    for era in ERAS {
        let person = Person::named("Ann");
        let options = person.options(era);
        let client = client(folder.path(), &["--mode", "passthrough"], &options).await;
        for server in ["modern", "legacy"] {
            let pair = format!("{era} client, {server} server");
            let (text, is_error) = call(&client, &format!("{server}__ask"), json!({})).await;
            let filled = r#"{"action":"accept","content":{"name":"Ann","colour":"blue"}}"#;
            assert!(text.contains(filled) && !is_error, "{pair}: {text}");
            let message = format!("MCP server `{server}` asks: Who?");
            assert_eq!(person.messages(), [message], "{pair}");
            person.heard.lock().unwrap().clear();
        }
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_passed_on_as_it_is_and_a_no_comes_back() {
    let folder = folder(&both());
    let page = json!({"params": {
        "mode": "url", "message": "Sign in", "url": "https://x.example/in?a=1", "elicitationId": "e",
    }});
    for era in ERAS {
        let person = Person::saying(Answer::Decline);
        let options = person.options(era);
        let client = client(folder.path(), &["--mode", "facade"], &options).await;
        for server in ["modern", "legacy"] {
            let arguments = json!({"name": format!("{server}__ask"), "arguments": page});
            let (text, _) = call(&client, "call_tool", arguments).await;
            assert!(
                text.contains(r#"{"action":"decline"}"#),
                "{era}, {server}: {text}"
            );
            let question = person.heard.lock().unwrap().remove(0);
            let QuestionKind::Page { url } = question.kind else {
                panic!("{question:?}")
            };
            assert_eq!(url.as_str(), "https://x.example/in?a=1");
        }
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_be_asked_reads_what_was_wanted() {
    let folder = folder(&both());
    for era in ERAS {
        let client = client(folder.path(), &["--mode", "passthrough"], &mute(era)).await;
        for server in ["modern", "legacy"] {
            let (text, is_error) = call(&client, &format!("{server}__ask"), json!({})).await;
            assert!(is_error, "{era}, {server}: {text}");
            let wanted = "a form to be filled in (elicitation). It asks: Who?";
            assert!(text.contains(wanted), "{era}, {server}: {text}");
        }
        // To a server of the modern era it is not even said that somebody could.
        let (meta, _) = call(&client, "modern__meta", json!({})).await;
        assert!(!meta.contains("elicitation"), "{meta}");
        client.close().await;
    }
}

/// A tenant's client of `haft serve --mcp`.
async fn tenant(address: &str, key: &str, options: &ConnectOptions) -> Connection {
    let url = Url::parse(&format!("{address}/mcp")).unwrap();
    let mut settings = ServerSettings::http(Label::new("gate").unwrap(), url);
    if let TransportSettings::Http(http) = &mut settings.transport {
        http.bearer = Some(Secret::new(key));
    }
    let opening = Connection::open(Arc::new(settings), options);
    let client = tokio::time::timeout(LONG, opening).await.unwrap().unwrap();
    client.list_tools().await.unwrap();
    client
}

fn asking(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"params": {"message": message, "requestedSchema": schema}})
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_never_hear_each_others_questions() {
    let folder = folder(&format!("[gateway]\nmode = \"passthrough\"\n{}", both()));
    let key = |tenant: &str| {
        let command = haft(folder.path(), &["keys", "add", tenant, "--tenant", tenant]);
        let (code, out, aside) = told(command, "");
        assert_eq!(code, Some(0), "{aside}");
        out.trim().to_owned()
    };
    let (acme, other) = (key("acme"), key("other"));
    let (_running, address) = serving(folder.path(), &[]);
    for era in ERAS {
        let (ann, bob) = (Person::named("Ann"), Person::named("Bob"));
        let of_ann = tenant(&address, &acme, &ann.options(era)).await;
        let of_bob = tenant(&address, &other, &bob.options(era)).await;
        for round in 0..5 {
            let (a, b) = (format!("Ann {round}?"), format!("Bob {round}?"));
            let (said_a, said_b) = tokio::join!(
                call(&of_ann, "modern__ask", asking(&a)),
                call(&of_bob, "modern__ask", asking(&b)),
            );
            assert!(said_a.0.contains("\"Ann\"") && said_b.0.contains("\"Bob\""));
        }
        for (person, name) in [(&ann, "Ann "), (&bob, "Bob ")] {
            let messages = person.messages();
            assert_eq!(messages.len(), 5, "{era}: {messages:?}");
            assert!(messages.iter().all(|it| it.contains(name)), "{messages:?}");
            person.heard.lock().unwrap().clear();
        }
        // A server of the older era does not say whose question it is, so that nobody is asked.
        let asked = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            call(&of_ann, "legacy__ask", json!({})).await
        };
        let slept = call(&of_bob, "legacy__sleep", json!({"ms": 1500}));
        let ((text, _), (slept, _)) = tokio::join!(asked, slept);
        assert!(
            text.contains("calls of several callers are under way"),
            "{text}"
        );
        assert_eq!(slept, "slept");
        assert_eq!((ann.messages().len(), bob.messages().len()), (0, 0));
        let (text, _) = call(&of_ann, "legacy__ask", json!({})).await;
        assert!(text.contains("\"Ann\""), "alone again: {text}");
        of_ann.close().await;
        of_bob.close().await;
    }
}
