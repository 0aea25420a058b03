//! What is logged, at its most talkative.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use haft_mcp::TokenStore;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::guarded::{Guarded, person};
use crate::kit::{call, call_text, open_with};
use crate::oauth::{itself, logged_in, plain, settings, with};

/// Keeps everything that anybody says.
#[derive(Clone, Default)]
struct Everything(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Everything {
    fn note(&self, target: &str, record: impl FnOnce(&mut Line<'_>)) {
        let mut text = self.0.lock().unwrap();
        text.push_str(target);
        record(&mut Line(&mut text));
        text.push('\n');
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(span.metadata().target(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.note("", |line| values.record(line));
    }

    fn event(&self, event: &Event<'_>) {
        self.note(event.metadata().target(), |line| event.record(line));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn no_token_no_code_and_no_secret_is_ever_logged() {
    let logged = Everything::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let server = Guarded::start().await;
    // Every way to a token: a login, a refresh, a client for itself, more rights, and a failure.
    let (_folder, tokens) = logged_in(&server).await;
    let connection = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap();
    server.revoke();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    let robot = settings(server.url(), itself());
    open_with(robot, &with(&tokens, None)).await.unwrap();
    server.behave(|it| it.wants_scope = Some("write"));
    let (opener, _) = person();
    let options = with(&TokenStore::memory(), Some(opener));
    let connection = open_with(plain(&server), &options).await.unwrap();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    server.revoke();
    server.revoke_refresh();
    server.behave(|it| it.token_error = Some(json!({"error": "invalid_client"})));
    assert!(call(&connection, "echo", json!({})).await.is_err());
    let logged = logged.0.lock().unwrap();
    // It does hear something.
    assert!(logged.contains("haft_mcp"), "{logged}");
    for secret in [
        "access-",
        "refresh-",
        "identity-token",
        "code-basic",
        "hunter2-secret",
        "registered-secret",
    ] {
        let line = logged.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}
