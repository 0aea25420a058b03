//! Servers that want more rights than there are.

use haft_mcp::{Cause, ConnectOptions, TokenStore};
use serde_json::json;

use crate::guarded::{Guarded, person};
use crate::kit::{call, call_text, open_with};
use crate::oauth::{itself, logged_in, plain, settings, with};

#[tokio::test]
async fn more_rights_are_asked_for_beside_those_that_are_there() {
    let server = Guarded::start().await;
    server.behave(|it| it.wants_scope = Some("write"));
    let (opener, pages) = person();
    let connection = open_with(plain(&server), &with(&TokenStore::memory(), Some(opener)))
        .await
        .unwrap();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    let pages = pages.lock().unwrap();
    assert_eq!(pages.len(), 2);
    assert!(
        pages[1].query().unwrap().contains("scope=basic+write"),
        "{}",
        pages[1]
    );
}

#[tokio::test]
async fn rights_that_are_never_enough_are_asked_for_three_times() {
    let server = Guarded::start().await;
    server.behave(|it| (it.wants_scope, it.is_never_content) = (Some("more"), true));
    let (opener, pages) = person();
    let connection = open_with(plain(&server), &with(&TokenStore::memory(), Some(opener)))
        .await
        .unwrap();
    let error = call(&connection, "echo", json!({})).await.unwrap_err();
    assert!(
        matches!(*error.cause, Cause::LoginRequired { .. }),
        "{error}"
    );
    assert_eq!(pages.lock().unwrap().len(), 1 + 3);
    // Where nobody can be asked, it is said what is missing.
    let (_folder, tokens) = logged_in(&server).await;
    let connection = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap();
    let error = call(&connection, "echo", json!({})).await.unwrap_err();
    assert_eq!(
        error.cause.to_string(),
        "the server asks for more rights: add `more` to `scopes` of `[mcp.web.oauth]` and run `haft mcp login web`"
    );
    // And a client that acts for itself gives up as well.
    let robot = settings(server.url(), itself());
    let connection = open_with(robot, &ConnectOptions::default()).await.unwrap();
    let before = server.requests();
    let error = call(&connection, "echo", json!({})).await.unwrap_err();
    assert!(
        matches!(*error.cause, Cause::Unauthorized { status: 403, .. }),
        "{error}"
    );
    assert!(server.requests() - before < 12);
}
