//! Servers that ask for authorization.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{
    Cause, ConnectOptions, HttpKind, Label, LoginError, OAuthClient, OAuthOptions, OAuthSettings,
    Opener, Proof, ServerSettings, TokenStore, TransportSettings, Url, login,
};
use serde_json::json;

use crate::guarded::{Guarded, person, slow_person, visit};
use crate::kit::{LONG, call, call_text, open_with};
use crate::web::{Style, Web};

pub(crate) fn settings(url: Url, client: OAuthClient) -> ServerSettings {
    let mut settings = ServerSettings::http(Label::new("web").unwrap(), url);
    settings.timeouts.probe = Duration::from_secs(5);
    let TransportSettings::Http(http) = &mut settings.transport else {
        panic!()
    };
    http.kind = HttpKind::Streamable;
    http.oauth = Some(OAuthSettings {
        client,
        scopes: Vec::new(),
        ..OAuthSettings::default()
    });
    settings
}

pub(crate) fn plain(server: &Guarded) -> ServerSettings {
    settings(server.url(), OAuthClient::Unknown)
}

pub(crate) fn itself() -> OAuthClient {
    OAuthClient::Itself {
        id: "robot".into(),
        proof: Proof::Secret("hunter2-secret".into()),
    }
}

pub(crate) fn with(tokens: &TokenStore, opener: Option<Opener>) -> ConnectOptions {
    ConnectOptions {
        oauth: OAuthOptions {
            tokens: Some(tokens.clone()),
            opener,
        },
        ..ConnectOptions::default()
    }
}

async fn log_in(server: &Guarded, tokens: &TokenStore) {
    let open = |page: &Url| {
        let page = page.clone();
        tokio::spawn(async move { visit(page).await });
    };
    let settings = plain(server);
    let logged_in = tokio::time::timeout(LONG, login(&settings, open, tokens));
    logged_in.await.unwrap().unwrap();
}

/// A file of tokens after somebody has logged in once.
pub(crate) async fn logged_in(server: &Guarded) -> (tempfile::TempDir, TokenStore) {
    let folder = tempfile::tempdir().unwrap();
    let tokens = TokenStore::file(folder.path().join("mcp-tokens.json"));
    log_in(server, &tokens).await;
    (folder, tokens)
}

#[tokio::test]
async fn who_logged_in_once_is_not_asked_again() {
    let server = Guarded::start().await;
    let (folder, _) = logged_in(&server).await;
    // Another process.
    let tokens = TokenStore::file(folder.path().join("mcp-tokens.json"));
    let connection = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    // The first is the login's own.
    let shown = &server.authorizations("/mcp")[1..];
    assert!(!shown.is_empty() && shown.iter().all(|it| it == "Bearer access-1"));
    let asked = server.seen("/authorize").remove(0);
    for part in [
        "code_challenge_method=S256",
        "resource=http%3A%2F%2F127.0.0.1",
        "client_id=registered-client",
        "redirect_uri=http%3A%2F%2F127.0.0.1%3A",
    ] {
        assert!(asked.contains(part), "{asked}");
    }
    assert!(tokens.forget(&server.url()).unwrap());
    let error = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap_err();
    assert!(
        matches!(*error.cause, Cause::LoginRequired { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn who_has_not_logged_in_is_told_how() {
    let server = Guarded::start().await;
    let error = open_with(plain(&server), &with(&TokenStore::memory(), None))
        .await
        .unwrap_err();
    let told = error.to_string();
    assert!(
        told.ends_with("the server asks for authorization: run `haft mcp login web`"),
        "{told}"
    );
    // It does not help to try again.
    assert!(error.cause.is_lasting());
    assert_eq!(server.authorizations("/mcp"), [""]);
}

#[tokio::test]
async fn a_person_is_asked_where_one_is_there() {
    let server = Guarded::start().await;
    let (opener, pages) = person();
    let tokens = TokenStore::memory();
    let connection = open_with(plain(&server), &with(&tokens, Some(opener)))
        .await
        .unwrap();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    assert_eq!(pages.lock().unwrap().len(), 1);
    // What the server named is what is asked for.
    assert!(
        pages.lock().unwrap()[0]
            .query()
            .unwrap()
            .contains("scope=basic")
    );
}

#[tokio::test]
async fn a_token_that_is_refused_is_refreshed_in_silence_and_the_new_one_kept() {
    let server = Guarded::start().await;
    let (folder, tokens) = logged_in(&server).await;
    let connection = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap();
    for round in 2..4 {
        server.revoke();
        assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
        let used = server.seen("/token").pop().unwrap();
        assert!(
            used.contains(&format!("refresh_token=refresh-{}", round - 1)),
            "{used}"
        );
        // A client that was registered with a secret is still that client.
        assert!(used.contains("client_secret=registered-secret"), "{used}");
    }
    let kept = std::fs::read_to_string(folder.path().join("mcp-tokens.json")).unwrap();
    assert!(
        kept.contains("refresh-3") && !kept.contains("refresh-2"),
        "{kept}"
    );
    // When that is no longer good either, a person has to come.
    server.revoke();
    server.revoke_refresh();
    let error = call(&connection, "echo", json!({})).await.unwrap_err();
    assert!(
        matches!(*error.cause, Cause::LoginRequired { .. }),
        "{error}"
    );
    assert!(!error.may_have_happened());
}

#[tokio::test]
async fn a_token_that_ends_soon_is_refreshed_before_it_is_refused() {
    let server = Guarded::start().await;
    server.behave(|it| it.expires_in = Some(5));
    let (_folder, tokens) = logged_in(&server).await;
    server.behave(|it| it.expires_in = Some(3600));
    let connection = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap();
    call_text(&connection, "echo", json!({})).await;
    let shown = &server.authorizations("/mcp")[1..];
    assert!(!shown.is_empty() && shown.iter().all(|it| it == "Bearer access-2"));
}

#[tokio::test]
async fn a_client_that_acts_for_itself_needs_nobody_and_keeps_nothing() {
    let server = Guarded::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-tokens.json");
    let tokens = TokenStore::file(&path);
    let connection = open_with(settings(server.url(), itself()), &with(&tokens, None))
        .await
        .unwrap();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    server.revoke();
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    let asked = server.seen("/token");
    assert_eq!(asked.len(), 2);
    for part in [
        "grant_type=client_credentials",
        "resource=http%3A%2F%2F127.0.0.1",
    ] {
        assert!(asked[0].contains(part), "{asked:?}");
    }
    assert!(!path.exists());
}

#[tokio::test]
async fn a_token_given_by_hand_is_the_only_one() {
    let server = Guarded::start().await;
    let (_folder, tokens) = logged_in(&server).await;
    let mut by_hand = plain(&server);
    let TransportSettings::Http(http) = &mut by_hand.transport else {
        panic!()
    };
    http.bearer = Some("by-hand".into());
    let (opener, pages) = person();
    let error = open_with(by_hand.clone(), &with(&tokens, Some(opener)))
        .await
        .unwrap_err();
    assert!(
        matches!(*error.cause, Cause::Unauthorized { .. }),
        "{error}"
    );
    assert_eq!(server.authorizations("/mcp")[1..], ["Bearer by-hand"]);
    assert!(pages.lock().unwrap().is_empty());
    let refused = login(&by_hand, |_| {}, &tokens).await.unwrap_err();
    assert!(matches!(refused, LoginError::HasToken { .. }), "{refused}");
    let robot = settings(server.url(), itself());
    let refused = login(&robot, |_| {}, &tokens).await.unwrap_err();
    assert!(matches!(refused, LoginError::ForItself { .. }), "{refused}");
    let child = ServerSettings::stdio(Label::new("x").unwrap(), "x");
    let refused = login(&child, |_| {}, &tokens).await.unwrap_err();
    assert!(matches!(refused, LoginError::NoAddress { .. }), "{refused}");
}

#[tokio::test]
async fn a_redirect_to_another_origin_carries_no_token() {
    let server = Guarded::start().await;
    let (_folder, tokens) = logged_in(&server).await;
    let thief = Web::start(Style::Json, &["modern"]).await;
    server.behave(|it| it.redirect = Some(thief.url().to_string()));
    let error = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap_err();
    assert!(
        matches!(*error.cause, Cause::Status { status: 307, .. }),
        "{error}"
    );
    assert_eq!(thief.seen().len(), 0);
    // A server elsewhere that has no token of its own gets nobody else's.
    let elsewhere = settings(thief.url(), OAuthClient::Unknown);
    open_with(elsewhere, &with(&tokens, None)).await.unwrap();
    assert!(
        thief
            .seen()
            .iter()
            .all(|seen| !seen.headers.contains_key("authorization"))
    );
}

#[tokio::test]
async fn tokens_of_one_issuer_are_never_shown_to_another() {
    let server = Guarded::start().await;
    let (_folder, tokens) = logged_in(&server).await;
    let before = server.seen("/token").len();
    // The server has moved to another issuer, which would love to see what the first one gave.
    let other = format!("{}/other", server.origin());
    server.behave(|it| it.issuer = Some(other));
    server.revoke();
    let error = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap_err();
    assert!(
        matches!(*error.cause, Cause::LoginRequired { .. }),
        "{error}"
    );
    assert_eq!(server.seen("/token").len(), before);
    // A person who logs in there is registered there.
    let (opener, _) = person();
    open_with(plain(&server), &with(&tokens, Some(opener)))
        .await
        .unwrap();
    assert_eq!(server.seen("/register").len(), 2);
}

#[tokio::test]
async fn a_server_does_not_lead_to_the_neighbours() {
    let server = Guarded::start().await;
    for issuer in [
        "http://169.254.169.254",
        "http://10.0.0.1:1",
        "http://[fe80::1]:1",
    ] {
        server.behave(|it| it.issuer = Some(issuer.into()));
        let robot = settings(server.url(), itself());
        let error = open_with(robot, &ConnectOptions::default())
            .await
            .unwrap_err();
        assert!(
            matches!(*error.cause, Cause::Authorization(_)),
            "{issuer}: {error}"
        );
        assert!(error.elapsed < Duration::from_secs(5), "{issuer}: {error}");
    }
    assert_eq!(server.seen("/token"), [""; 0]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_of_tokens_that_others_can_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Guarded::start().await;
    let (folder, tokens) = logged_in(&server).await;
    let path = folder.path().join("mcp-tokens.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let before = server.requests();
    let error = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("can be read by others: run `chmod 600`"),
        "{error}"
    );
    assert_eq!(server.requests(), before);
    let refused = login(
        &plain(&server),
        |_| panic!("nobody may be bothered"),
        &tokens,
    )
    .await;
    assert!(matches!(refused, Err(LoginError::Tokens(_))), "{refused:?}");
}

#[tokio::test]
async fn a_login_that_is_refused_says_so() {
    let server = Guarded::start().await;
    let tokens = TokenStore::memory();
    let browser = |page: &Url| {
        let page = page.clone();
        tokio::spawn(async move { visit(page).await });
    };
    server.behave(|it| it.denial = Some("access_denied"));
    let refused = login(&plain(&server), browser, &tokens).await.unwrap_err();
    assert_eq!(refused.to_string(), "the login was refused: access_denied");
    server.behave(|it| (it.denial, it.registers_nobody) = (None, true));
    let refused = login(&plain(&server), browser, &tokens).await.unwrap_err();
    assert_eq!(refused, LoginError::NoRegistration);
    assert!(!tokens.has(&server.url()).unwrap());
}

#[tokio::test]
async fn what_an_authorization_server_echoes_is_not_passed_on() {
    let server = Guarded::start().await;
    let echo = json!({"error": "invalid_client", "error_description": "no hunter2-secret, no code-basic\u{202e}"});
    server.behave(|it| it.token_error = Some(echo));
    let robot = settings(server.url(), itself());
    let error = open_with(robot, &ConnectOptions::default())
        .await
        .unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(told.contains("no [redacted], no code-basic"), "{told}");
    let (opener, _) = person();
    let error = open_with(plain(&server), &with(&TokenStore::memory(), Some(opener)))
        .await
        .unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(told.contains("no hunter2-secret, no [redacted]"), "{told}");
}

#[tokio::test]
async fn nothing_that_is_shown_holds_a_token() {
    let server = Guarded::start().await;
    let (_folder, tokens) = logged_in(&server).await;
    let options = with(&tokens, None);
    let connection = open_with(settings(server.url(), itself()), &options)
        .await
        .unwrap();
    let shown = format!(
        "{options:?} {tokens:?} {connection:?} {:?}",
        connection.settings()
    );
    for secret in [
        "access-1",
        "refresh-1",
        "hunter2-secret",
        "registered-secret",
    ] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[tokio::test]
async fn many_who_are_refused_at_once_log_in_once() {
    let server = Guarded::start().await;
    let (opener, pages) = slow_person(Duration::from_millis(500));
    let connection = open_with(plain(&server), &with(&TokenStore::memory(), Some(opener)))
        .await
        .unwrap();
    server.revoke();
    server.revoke_refresh();
    let connection = Arc::new(connection);
    let start = || {
        let connection = Arc::clone(&connection);
        tokio::spawn(async move { call_text(&connection, "echo", json!({})).await })
    };
    let mut calls: Vec<_> = (0..3).map(|_| start()).collect();
    while pages.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // These come while the person is being asked.
    calls.extend((0..3).map(|_| start()));
    for called in calls {
        assert_eq!(called.await.unwrap(), "{}");
    }
    assert_eq!(pages.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn who_logs_in_elsewhere_is_let_in_here() {
    let server = Guarded::start().await;
    let (_folder, tokens) = logged_in(&server).await;
    let connection = open_with(plain(&server), &with(&tokens, None))
        .await
        .unwrap();
    server.revoke();
    server.revoke_refresh();
    let error = call(&connection, "echo", json!({})).await.unwrap_err();
    assert!(
        matches!(*error.cause, Cause::LoginRequired { .. }),
        "{error}"
    );
    log_in(&server, &tokens).await;
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_server_that_a_request_names_gets_no_token_and_leads_nowhere() {
    let server = Guarded::start().await;
    let (_folder, tokens) = logged_in(&server).await;
    let before = server.requests();
    let mut options = with(&tokens, None);
    options.http.pinned = Some(vec![server.address]);
    let error = open_with(plain(&server), &options).await.unwrap_err();
    assert!(
        matches!(*error.cause, Cause::Unauthorized { .. }),
        "{error}"
    );
    let after = &server.authorizations("/mcp")[1..];
    assert_eq!(after, [""]);
    assert_eq!(server.requests(), before + 1);
}
