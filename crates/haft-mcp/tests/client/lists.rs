//! Lists of tools, and what servers do to them.

use std::time::Duration;

use haft_mcp::{Cause, Phase};
use serde_json::json;

use crate::kit::{LONG, call_text, connected, fake, names, open};

async fn list(words: &[&str]) -> haft_mcp::ToolList {
    let connection = connected(words).await;
    let listed = tokio::time::timeout(LONG, connection.list_tools())
        .await
        .expect("the list hangs");
    listed.unwrap()
}

fn notes(list: &haft_mcp::ToolList) -> Vec<String> {
    list.diagnostics.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn tools_are_listed_in_both_eras() {
    for era in ["legacy", "modern"] {
        let list = list(&[era]).await;
        assert_eq!(names(&list)[..2], ["echo", "raw"]);
        assert!(list.is_complete);
        assert_eq!(notes(&list), [""; 0]);
        assert_eq!((list.ttl_ms, list.is_public), (60_000, true));
        assert_eq!(list.tools[0].description.as_deref(), Some("The tool echo."));
    }
}

#[tokio::test]
async fn a_malformed_tool_costs_itself_only() {
    let list = list(&["legacy", "malformed-tools"]).await;
    assert_eq!(
        names(&list),
        [
            "good_one",
            "true_schema",
            "text_hint",
            "text_icons",
            "number_description",
            "untyped_schema",
            "good_two"
        ]
    );
    assert_eq!(
        notes(&list),
        [
            "tool `null_schema` is left out: it has no `inputSchema`; set `no_schema_mode` for it to use it all the same",
            "tool `true_schema`: `inputSchema` is `true`, read as any object",
            "tool `text_hint`: `annotations.readOnlyHint` is neither true nor false and is ignored",
            "tool `number_description`: `description` is no text and is ignored",
            "a tool is left out: its name is empty",
            "tool `no_schema` is left out: it has no `inputSchema`; set `no_schema_mode` for it to use it all the same",
            "a tool is left out: it is no object",
        ]
    );
}

#[tokio::test]
async fn an_endless_list_ends() {
    for era in ["legacy", "modern"] {
        let list = list(&[era, "endless-pages"]).await;
        assert_eq!(list.tools.len(), 200);
        assert!(!list.is_complete);
        assert_eq!(
            notes(&list),
            ["there are more than 200 pages, the rest is left out"]
        );
    }
}

#[tokio::test]
async fn a_list_that_goes_in_a_circle_ends() {
    let list = list(&["legacy", "circle"]).await;
    assert_eq!(names(&list), ["t1", "t2"]);
    assert!(!list.is_complete);
}

#[tokio::test]
async fn an_empty_cursor_leads_on() {
    let list = list(&["legacy", "empty-cursor"]).await;
    assert_eq!(names(&list), ["first", "second"]);
    assert!(list.is_complete);
}

#[tokio::test]
async fn a_forgotten_cursor_starts_the_list_again_once() {
    let list = list(&["legacy", "forgets-cursors"]).await;
    assert_eq!(names(&list), ["t3", "last"]);
    assert!(list.is_complete);
}

#[tokio::test]
async fn ten_thousand_tools_are_cut_to_five_thousand() {
    let list = list(&["legacy", "tools=10000"]).await;
    assert_eq!(list.tools.len(), 5000);
    assert_eq!(
        notes(&list),
        ["there are more than 5000 tools, the rest is left out"]
    );
}

#[tokio::test]
async fn a_list_that_takes_too_long_keeps_what_it_has() {
    let mut settings = fake(&["legacy", "slow-pages"]);
    settings.timeouts.list = Duration::from_millis(1500);
    let list = open(settings).await.unwrap().list_tools().await.unwrap();
    assert!((1..5).contains(&list.tools.len()), "{}", list.tools.len());
    assert!(!list.is_complete);
    assert!(
        notes(&list)[0].starts_with("the rest of the list is left out: not done after 1.5 s"),
        "{:?}",
        notes(&list)
    );
}

#[tokio::test]
async fn a_page_past_the_message_limit_fails_with_its_size() {
    let mut settings = fake(&["legacy", "huge-list"]);
    settings.limits.message_bytes = 1024 * 1024;
    let connection = open(settings).await.unwrap();
    let error = connection.list_tools().await.unwrap_err();
    assert_eq!(error.phase, Phase::List);
    assert!(
        matches!(
            *error.cause,
            Cause::TooLarge {
                bytes: 0x20_0000..,
                limit: 0x10_0000
            }
        ),
        "{error}"
    );
    // The connection is none the worse for it.
    assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_server_without_tools_has_an_empty_list() {
    let list = list(&["legacy", "no-list"]).await;
    assert!(list.tools.is_empty());
    assert_eq!(notes(&list), ["the server knows no `tools/list`"]);
}

#[tokio::test]
async fn allowed_and_denied_tools_are_told_apart_by_raw_name() {
    let mut settings = fake(&["legacy"]);
    settings.allow = Some(vec!["echo".into(), "raw".into()]);
    settings.deny = vec!["raw".into()];
    let list = open(settings).await.unwrap().list_tools().await.unwrap();
    assert_eq!(names(&list), ["echo"]);
}

#[tokio::test]
async fn changes_are_told_in_both_eras() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let before = connection.list_tools().await.unwrap().tools.len();
        let mut changes = connection.changes();
        // The modern era needs a subscription, which comes about by itself.
        let told = async {
            loop {
                call_text(&connection, "change", json!({})).await;
                let wait = tokio::time::timeout(Duration::from_millis(300), changes.next());
                if let Ok(told) = wait.await {
                    return told;
                }
            }
        };
        assert!(
            tokio::time::timeout(LONG, told)
                .await
                .expect("nothing was told"),
            "{era}"
        );
        assert!(connection.list_tools().await.unwrap().tools.len() > before);
    }
}

#[tokio::test]
async fn a_storm_of_changes_counts_as_few_and_disturbs_nobody() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let mut changes = connection.changes();
        assert_eq!(call_text(&connection, "storm", json!({})).await, "stormed");
        assert_eq!(call_text(&connection, "echo", json!({})).await, "{}");
        if era == "legacy" {
            assert!(changes.next().await);
            let more = tokio::time::timeout(Duration::from_millis(50), changes.next()).await;
            assert!(more.is_err(), "one notice after all were read");
        }
    }
}

#[tokio::test]
async fn the_end_of_a_connection_ends_its_changes() {
    let connection = connected(&["legacy"]).await;
    let mut changes = connection.changes();
    connection.close().await;
    drop(connection);
    let ended = tokio::time::timeout(LONG, changes.next()).await;
    assert!(!ended.expect("the changes go on"));
}
