//! Clients hear of changes.

// Subscriptions to single resources are deprecated; legacy clients have no others.
#![allow(deprecated)]

use std::time::Duration;

use haft_mcp::gateway::{Change, Gateway, ListedTool, Mode};
use rmcp::model::{
    ErrorCode, ServerNotification, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::ServiceError;
use serde_json::json;

use crate::client::{Era, Heard, Person, call, connect, text};
use crate::toolbox::{Toolbox, object, tool};

/// Longer than changes are gathered.
const A_WHILE: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn a_legacy_client_hears_of_a_storm_once() {
    let toolbox = Toolbox::of(&["echo"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let (person, mut heard) = Person::helpful(Era::Legacy);
    let client = connect(&gateway, "a", person).await;
    for n in 0..10 {
        toolbox.add(tool(&format!("t{n}")));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(heard.recv().await, Some(Heard::ToolsChanged));
    assert_eq!(client.list_all_tools().await.unwrap().len(), 11);
    let more = tokio::time::timeout(A_WHILE, heard.recv()).await;
    assert!(more.is_err(), "{more:?}");
    toolbox.add(tool("late"));
    assert_eq!(heard.recv().await, Some(Heard::ToolsChanged));
}

#[tokio::test(start_paused = true)]
async fn more_changes_than_fit_are_still_heard_of() {
    let toolbox = Toolbox::of(&["echo"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let (person, mut heard) = Person::helpful(Era::Legacy);
    let _client = connect(&gateway, "a", person).await;
    // Others push the one that matters out of the queue.
    toolbox.announce(Change::Tools);
    for _ in 0..100 {
        toolbox.announce(Change::Prompts);
    }
    assert_eq!(heard.recv().await, Some(Heard::ToolsChanged));
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_hears_what_it_listens_for_and_nothing_else() {
    let toolbox = Toolbox::of(&["echo"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let (person, mut heard) = Person::helpful(Era::Modern);
    let client = connect(&gateway, "a", person).await;
    // Before it listens it hears nothing.
    toolbox.add(tool("early"));
    tokio::time::sleep(A_WHILE).await;

    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resource_subscription("file:///x")
        .build();
    let mut listening = client.listen(filter).await.unwrap();
    let expected = SubscriptionFilter::builder().tools_list_changed().build();
    assert_eq!(*listening.acknowledged(), expected);
    toolbox.announce(Change::Prompts);
    toolbox.announce(Change::Resource("file:///x".into()));
    toolbox.add(tool("late"));
    let notice = listening.next().await.unwrap().unwrap();
    let is_tools = matches!(notice, ServerNotification::ToolListChangedNotification(_));
    assert!(is_tools, "{notice:?}");
    let more = tokio::time::timeout(A_WHILE, listening.next()).await;
    assert!(more.is_err(), "{more:?}");
    // Nothing came unasked.
    assert!(heard.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn no_change_falls_between_listening_and_being_heard() {
    let toolbox = Toolbox::of(&["echo"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    for n in 0..20 {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut listening = client.listen(filter).await.unwrap();
        toolbox.add(tool(&format!("t{n}")));
        assert!(listening.next().await.unwrap().is_some());
        listening.cancel().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn behind_the_facade_a_new_tool_is_found_at_once_and_the_list_is_as_it_was() {
    let toolbox = Toolbox::of(&["echo"]);
    let gateway = Gateway::builder(toolbox.clone())
        .mode(Mode::Facade)
        .build()
        .unwrap();
    let (person, mut heard) = Person::helpful(Era::Legacy);
    let client = connect(&gateway, "a", person).await;
    // The first change might be any; after it the list is known.
    toolbox.add(tool("first"));
    assert_eq!(heard.recv().await, Some(Heard::ToolsChanged));
    toolbox.add(tool("second"));
    let result = call(&client, "search_tools", json!({"query": "second"})).await;
    assert!(text(&result).starts_with("box__second"));
    let more = tokio::time::timeout(A_WHILE, heard.recv()).await;
    assert!(more.is_err(), "{more:?}");
    // What is always listed changes the list.
    let always = ListedTool::new("always", object(json!({"type": "object"}))).always_listed();
    toolbox.add(always);
    assert_eq!(heard.recv().await, Some(Heard::ToolsChanged));
    assert_eq!(client.list_all_tools().await.unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn only_resources_that_the_backend_lets_one_watch_are_watched() {
    let toolbox = Toolbox::of(&["echo"]);
    toolbox.offer_resources();
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let uris = ["file:///secret", "file:///open"];

    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let filter = SubscriptionFilter::builder().resource_subscriptions(uris);
    let mut listening = client.listen(filter.build()).await.unwrap();
    let accepted = SubscriptionFilter::builder().resource_subscription("file:///open");
    assert_eq!(*listening.acknowledged(), accepted.build());

    let (person, mut heard) = Person::helpful(Era::Legacy);
    let client = connect(&gateway, "a", person).await;
    let refused = client.subscribe(SubscribeRequestParams::new(uris[0])).await;
    assert!(matches!(refused, Err(ServiceError::McpError(error))
        if error.code == ErrorCode::RESOURCE_NOT_FOUND));
    client
        .subscribe(SubscribeRequestParams::new(uris[1]))
        .await
        .unwrap();

    for uri in uris {
        toolbox.announce(Change::Resource(uri.into()));
    }
    let notice = listening.next().await.unwrap().unwrap();
    assert!(
        matches!(notice, ServerNotification::ResourceUpdatedNotification(update)
        if update.params.uri == "file:///open")
    );
    assert_eq!(
        heard.recv().await,
        Some(Heard::Updated("file:///open".into()))
    );
    client
        .unsubscribe(UnsubscribeRequestParams::new(uris[1]))
        .await
        .unwrap();
    toolbox.announce(Change::Resource(uris[1].into()));
    let more = tokio::time::timeout(A_WHILE, heard.recv()).await;
    assert!(more.is_err(), "{more:?}");
}
