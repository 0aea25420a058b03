//! How a connection begins.

use std::time::Duration;

use haft_mcp::{Cause, ConnectOptions, Era, Launcher, Phase};
use serde_json::json;

use crate::kit::{call_text, connected, fake, open, open_with};
use crate::web::{Style, Web};

#[tokio::test]
async fn both_eras_connect_and_answer() {
    for (words, era, protocol) in [
        (&["modern"][..], Era::Modern, "2026-07-28"),
        (&["legacy"], Era::Legacy, "2025-11-25"),
        (&["legacy", "python"], Era::Legacy, "2025-11-25"),
        (&["legacy", "ancient"], Era::Legacy, "2024-11-05"),
        (&["legacy", "banner"], Era::Legacy, "2025-11-25"),
        (&["modern", "banner"], Era::Modern, "2026-07-28"),
    ] {
        let connection = connected(words).await;
        assert_eq!(connection.era(), era, "{words:?}");
        assert_eq!(connection.identity().protocol, protocol);
        assert_eq!(connection.identity().name.as_deref(), Some("fake"));
        assert_eq!(
            connection.identity().instructions.as_deref(),
            Some("Be kind.")
        );
        assert_eq!(
            call_text(&connection, "echo", json!({"a": 1})).await,
            r#"{"a":1}"#
        );
        connection.close().await;
    }
}

#[tokio::test]
async fn whatever_a_server_says_to_the_question_for_the_era_it_is_asked_the_older_one() {
    for word in [
        "silent-on-discover",
        "nonsense-on-discover",
        "error-without-id-on-discover",
        "dies-on-discover",
        "late-strangers",
        "odd-capabilities",
        "bare-initialize",
    ] {
        let connection = connected(&["legacy", word]).await;
        assert_eq!(connection.era(), Era::Legacy, "{word}");
        assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
        assert!(connection.identity().tells_changes, "{word}");
    }
}

#[tokio::test]
async fn an_answer_with_the_least_is_enough_for_the_modern_era() {
    for word in ["bare-discover", "odd-capabilities"] {
        let connection = connected(&["modern", word]).await;
        assert_eq!(connection.era(), Era::Modern, "{word}");
    }
}

#[tokio::test]
async fn a_server_that_locks_itself_to_an_era_is_started_anew() {
    // It reads the question, says nothing for longer than is waited, and then refuses the handshake.
    let mut settings = fake(&["late-discover"]);
    settings.timeouts.probe = Duration::from_millis(300);
    let connection = open(settings).await.unwrap();
    assert_eq!(connection.era(), Era::Modern);
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn what_was_known_about_the_era_is_used_and_found_out_again_if_wrong() {
    for (word, known) in [
        ("modern", Era::Modern),
        ("modern", Era::Legacy),
        ("legacy", Era::Legacy),
        ("legacy", Era::Modern),
    ] {
        let options = ConnectOptions {
            era: Some(known),
            ..ConnectOptions::default()
        };
        let connection = open_with(fake(&[word]), &options).await.unwrap();
        let expected = if word == "modern" {
            Era::Modern
        } else {
            Era::Legacy
        };
        assert_eq!(connection.era(), expected, "{word} known as {known}");
    }
}

#[tokio::test]
async fn a_modern_refusal_is_told_and_not_worked_around() {
    let error = open(fake(&["newer-on-discover"])).await.unwrap_err();
    assert_eq!(
        *error.cause,
        Cause::NoSharedVersion {
            server: vec!["2099-01-01".into()]
        }
    );
    let error = open(fake(&["capability-on-discover"])).await.unwrap_err();
    assert_eq!(
        (error.phase, error.cause.to_string().as_str()),
        (
            Phase::Probe,
            "the server says: sampling is needed (code -32021)"
        )
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_at_all_is_given_up() {
    for words in [&["silent", "silent-on-discover"][..], &["never-reads"]] {
        let mut settings = fake(words);
        settings.timeouts.connect = Duration::from_millis(800);
        settings.timeouts.probe = Duration::from_millis(200);
        let error = open(settings).await.unwrap_err();
        assert_eq!(error.phase, Phase::Initialize);
        assert_eq!(
            *error.cause,
            Cause::TimedOut {
                limit: Duration::from_millis(800),
                setting: "connect_timeout"
            }
        );
    }
}

#[tokio::test]
async fn a_server_that_ends_at_once_leaves_its_last_words() {
    let error = open(fake(&["exits-at-once"])).await.unwrap_err();
    assert_eq!(error.stderr, "no license found");
    let text = error.to_string();
    assert!(
        text.contains("connection lost: the process ended with exit status: 7"),
        "{text}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_at_once() {
    let mut settings = fake(&[]);
    let haft_mcp::TransportSettings::Stdio(stdio) = &mut settings.transport else {
        panic!()
    };
    stdio.command = "/no/such/program".into();
    let error = open(settings).await.unwrap_err();
    assert_eq!(error.phase, Phase::Spawn);
    assert!(error.cause.is_lasting());
    assert!(
        error
            .to_string()
            .contains("`/no/such/program` cannot be started"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_can_be_started_through_another_program() {
    let options = ConnectOptions {
        launcher: Launcher::through(["env", "WATCHED=1"]),
        ..ConnectOptions::default()
    };
    let connection = open_with(fake(&["legacy"]), &options).await.unwrap();
    let seen: serde_json::Value =
        serde_json::from_str(&call_text(&connection, "environment", json!({})).await).unwrap();
    assert_eq!(seen["env"]["WATCHED"], "1");
}

#[tokio::test]
async fn silence_is_survived_with_the_usual_limits_over_every_transport() {
    // rmcp has a limit of its own, of about the same length. Both must not get into each other's way.
    let usual = haft_mcp::Timeouts::default();
    let words = ["legacy", "silent-on-discover"];
    let mut child = fake(&words);
    child.timeouts = usual;
    let web = Web::start(Style::Json, &words).await;
    let mut http = crate::http::settings(&web, haft_mcp::HttpKind::Auto);
    http.timeouts = usual;
    let (child, http) = tokio::join!(open(child), open(http));
    for connection in [child.unwrap(), http.unwrap()] {
        assert_eq!(connection.era(), Era::Legacy);
        assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
    }
}
