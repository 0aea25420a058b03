//! Lists: read when they are needed, remembered, refreshed.

use std::time::{Duration, Instant};

use haft_mcp::State;
use serde_json::json;

use crate::kit::{Place, call, names, tool, tools, until};

#[tokio::test]
async fn nothing_is_started_before_it_is_needed() {
    let place = Place::new();
    let pool = place.pool();
    let one = pool.add(place.fake("one", &["modern"])).unwrap();
    pool.add(place.fake("two", &["modern"])).unwrap();
    pool.warm();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((one.state(), place.starts()), (State::Configured, 0));
    assert_eq!(
        call(&one, "echo", json!({"a": 1})).await.unwrap(),
        r#"{"a":1}"#
    );
    assert_eq!(place.starts(), 1);
    pool.close().await;
}

#[tokio::test]
async fn a_warm_server_is_there_before_it_is_asked_and_comes_back_by_itself() {
    let place = Place::new();
    let pool = place.pool();
    let mut settings = place.fake("warm", &["modern"]);
    settings.warm = true;
    let server = pool.add(settings).unwrap();
    pool.warm();
    until("it connects", || server.connected().is_some()).await;
    call(&server, "die", json!({})).await.unwrap_err();
    until("it comes back", || server.connected().is_some()).await;
    assert_eq!(place.starts(), 2);
    pool.close().await;
}

#[tokio::test]
async fn the_list_of_the_last_process_is_known_without_connecting() {
    let place = Place::new();
    let settings = || place.fake("files", &["legacy", "tools=3"]);
    let pool = place.pool();
    let server = pool.add(settings()).unwrap();
    assert_eq!(names(&*tools(&server).await), ["t0", "t1", "t2"]);
    pool.close().await;

    let pool = place.pool();
    let server = pool.add(settings()).unwrap();
    assert_eq!(server.state(), State::Known);
    let known = server.known_tools().unwrap();
    assert_eq!(names(&known), ["t0", "t1", "t2"]);
    assert!(!known.is_live);
    assert_eq!(place.starts(), 1);
    // Another command under the same label is another server.
    let pool = place.pool();
    let other = pool
        .add(place.fake("files", &["legacy", "tools=4"]))
        .unwrap();
    assert_eq!(other.state(), State::Configured);
}

#[tokio::test]
async fn a_server_that_is_down_keeps_its_list_over_a_restart_and_its_calls_say_why() {
    let place = Place::new();
    let gone = place.file("gone");
    let missing = format!("missing={}", gone.display());
    let settings = || place.fake("files", &["modern", "tools=2", &missing]);
    let pool = place.pool();
    tools(&pool.add(settings()).unwrap()).await;
    pool.close().await;

    std::fs::write(&gone, "").unwrap();
    let pool = place.pool();
    let server = pool.add(settings()).unwrap();
    assert_eq!(names(&*tools(&server).await), ["t0", "t1"]);
    let error = call(&server, "t0", json!({})).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`files`") && text.contains("not now"),
        "{text}"
    );
    assert!(matches!(server.state(), State::Failed { .. }));
    pool.close().await;
}

#[tokio::test]
async fn a_change_that_is_told_is_seen_within_a_second_and_others_hear_of_it() {
    for era in ["modern", "legacy"] {
        let place = Place::new();
        let pool = place.pool();
        let mut settings = place.fake("files", &[era]);
        settings.pin = Some(haft_mcp::Pin::Off);
        let server = pool.add(settings).unwrap();
        let before = tools(&server).await.tools.len();
        let mut news = pool.changes();
        call(&server, "change", json!({})).await.unwrap();
        let told = Instant::now();
        until("the new tool is listed", || {
            server.known_tools().unwrap().tools.len() == before + 1
        })
        .await;
        assert!(told.elapsed() < Duration::from_secs(2), "{era}");
        let changed = tokio::time::timeout(Duration::from_secs(5), news.recv());
        assert_eq!(&*changed.await.unwrap().unwrap(), "files", "{era}");
        let after = server.known_tools().unwrap();
        assert_eq!(after.tools[before].name, "extra_0", "{era}");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_storm_of_notices_is_few_refreshes() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("files", &["modern"])).unwrap();
    tools(&server).await;
    call(&server, "storm", json!({})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Two lists at most for ten thousand notices, beside the first.
    let connection = server.connected().unwrap();
    let pages = connection
        .call_tool(
            "pages",
            serde_json::Map::new(),
            haft_mcp::CallOptions::default(),
        )
        .await
        .unwrap();
    let pages: usize = pages
        .render(&haft_mcp::RenderOptions::default())
        .output
        .text_for_model()
        .parse()
        .unwrap();
    assert!((2..=5).contains(&pages), "{pages} lists");
    pool.close().await;
}

#[tokio::test]
async fn a_silent_server_holds_up_nobody_else() {
    let place = Place::new();
    let pool = place.pool();
    let mut mute = place.fake("mute", &["never-reads"]);
    mute.timeouts.connect = Duration::from_secs(3);
    let mute = pool.add(mute).unwrap();
    let quick = pool.add(place.fake("quick", &["modern"])).unwrap();
    let started = Instant::now();
    let (silent, listed) = tokio::join!(mute.tools(), async {
        let listed = tools(&quick).await;
        (listed, started.elapsed())
    });
    assert!(silent.is_err());
    assert!(!listed.0.tools.is_empty());
    assert!(listed.1 < Duration::from_secs(2), "{:?}", listed.1);
    pool.close().await;
}

#[tokio::test]
async fn a_saved_list_is_there_at_once_and_a_hanging_server_is_waited_for_only_once() {
    let place = Place::new();
    let hangs = place.file("hangs");
    let word = format!("hangs-if={}", hangs.display());
    let settings = || {
        let mut settings = place.fake("files", &["modern", "tools=2", &word]);
        settings.timeouts.connect = Duration::from_secs(4);
        settings
    };
    let pool = place.pool();
    tools(&pool.add(settings()).unwrap()).await;
    pool.close().await;

    std::fs::write(&hangs, "").unwrap();
    let pool = place.pool();
    let server = pool.add(settings()).unwrap();
    let started = Instant::now();
    for _ in 0..20 {
        assert_eq!(names(&server.tools().await.unwrap()), ["t0", "t1"]);
        assert_eq!(names(&server.tools_now().unwrap()), ["t0", "t1"]);
        let wait = Duration::from_secs(10);
        assert!(server.tools_or_first(wait).await.is_some());
    }
    assert!(started.elapsed() < Duration::from_secs(2));
    until("it is being started", || {
        server.status().state.as_str() == "starting"
    })
    .await;
    until("the attempt has failed", || {
        server.status().state.as_str() == "unavailable"
    })
    .await;
    let starts = place.starts();
    for _ in 0..20 {
        assert_eq!(names(&server.tools_now().unwrap()), ["t0", "t1"]);
    }
    assert_eq!(place.starts(), starts, "not asked again within its backoff");
    pool.close().await;

    // Without a saved list: the first wait is bounded for all requests together, and errors come at once.
    let pool = place.pool();
    let mut never_seen = settings();
    never_seen.label = haft_mcp::Label::new("other").unwrap();
    let server = pool.add(never_seen).unwrap();
    let started = Instant::now();
    for _ in 0..5 {
        let wait = Duration::from_secs(1);
        assert!(server.tools_or_first(wait).await.is_none());
    }
    assert!(started.elapsed() < Duration::from_secs(3));
    server.tools().await.unwrap_err();
    let started = Instant::now();
    for _ in 0..5 {
        server.tools().await.unwrap_err();
    }
    assert!(started.elapsed() < Duration::from_secs(3));
    pool.close().await;
}

#[tokio::test]
async fn a_status_says_how_a_server_stands_without_secrets() {
    let place = Place::new();
    let pool = place.pool();
    let mut files = place.fake("files", &["modern", "tools=5"]);
    files.description = Some("The documents".into());
    let files = pool.add(files).unwrap();
    let status = files.status();
    assert_eq!((status.state.as_str(), status.tools), ("not_started", None));
    tools(&files).await;
    let status = files.status();
    assert_eq!(status.label, "files");
    assert_eq!(status.description.as_deref(), Some("The documents"));
    assert_eq!(status.transport, Some(haft_mcp::TransportKind::Stdio));
    assert_eq!(
        (status.state.as_str(), status.tools),
        ("connected", Some(5))
    );
    assert_eq!(status.samples, ["t0", "t1", "t2"]);
    assert!(status.held.is_empty() && status.list_age.is_some());

    let label = haft_mcp::Label::new("gone").unwrap();
    let gone = pool
        .add(haft_mcp::ServerSettings::stdio(
            label,
            "no-such-program-hunter2",
        ))
        .unwrap();
    gone.tools().await.unwrap_err();
    let haft_mcp::ServerState::Unavailable {
        reason,
        detail,
        retry_in,
    } = gone.status().state
    else {
        panic!("{:?}", gone.status());
    };
    assert_eq!(reason, "the server's program cannot be started");
    assert!(detail.contains("no-such-program"), "{detail}");
    assert!(retry_in.unwrap() > Duration::from_secs(30));
    pool.close().await;
}

#[tokio::test]
async fn a_stale_list_is_read_anew_when_it_is_used() {
    let place = Place::new();
    let pool = place.pool();
    let mut settings = place.listing("files", &json!([tool("a", "A.")]));
    settings.pin = Some(haft_mcp::Pin::Off);
    let server = pool.add(settings).unwrap();
    assert_eq!(names(&*tools(&server).await), ["a"]);
    place.list(&json!([tool("b", "B."), tool("a", "A.")]));
    // The server said a minute, and says nothing of changes.
    assert_eq!(names(&*tools(&server).await), ["a"]);
    let refreshed = server.refresh().await.unwrap();
    assert_eq!(names(&refreshed), ["a", "b"]);
    pool.close().await;
}

#[tokio::test]
async fn servers_come_and_go_while_the_pool_is_used() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("one", &["modern"])).unwrap();
    let taken = pool.add(place.fake("one", &["legacy"])).unwrap_err();
    assert!(taken.to_string().contains("`one`"));
    call(&server, "echo", json!({})).await.unwrap();
    assert!(pool.remove("one").await);
    assert!(!pool.remove("one").await);
    assert!(pool.server("one").is_none());
    let error = call(&server, "echo", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("taken out"), "{error}");
}

#[tokio::test]
async fn tools_that_are_registered_after_the_handshake_are_in_the_first_list() {
    for era in ["modern", "legacy"] {
        for early in [&[][..], &["one-early"]] {
            let place = Place::new();
            let pool = place.pool();
            let words = [&[era, "late-tools=150"], early].concat();
            let server = pool.add(place.fake("files", &words)).unwrap();
            let listed = tools(&server).await;
            let expected = [early, &["late_one", "late_two"]].concat();
            let expected: Vec<_> = expected
                .iter()
                .map(|it| it.replace("one-early", "early"))
                .collect();
            assert_eq!(names(&listed), expected, "{era}");
            assert!(listed.held.is_empty(), "{era}");
            assert_eq!(listed.shortfall(), None, "{era}");
            pool.close().await;
        }
    }
}

#[tokio::test]
async fn tools_that_are_announced_after_the_first_list_was_shown_are_not_held_back() {
    let place = Place::new();
    let pool = place.pool();
    // Later than a first list is waited for.
    let server = pool
        .add(place.fake("files", &["legacy", "one-early", "late-tools=700"]))
        .unwrap();
    assert_eq!(names(&*tools(&server).await), ["early"]);
    until("all tools are listed", || {
        server.known_tools().unwrap().tools.len() == 3
    })
    .await;
    assert!(server.known_tools().unwrap().held.is_empty());
    pool.close().await;
}

#[tokio::test]
async fn an_empty_first_list_is_read_again_where_changes_are_not_announced() {
    let place = Place::new();
    let pool = place.pool();
    let words = ["legacy", "tells-no-changes", "late-tools=200"];
    let server = pool.add(place.fake("files", &words)).unwrap();
    assert_eq!(names(&*tools(&server).await), ["late_one", "late_two"]);
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_registers_late_keeps_its_known_tools_over_a_new_connection() {
    let place = Place::new();
    let settings = || place.fake("files", &["legacy", "late-tools=150"]);
    let pool = place.pool();
    tools(&pool.add(settings()).unwrap()).await;
    pool.close().await;

    let pool = place.pool();
    let server = pool.add(settings()).unwrap();
    let refreshed = server.refresh().await.unwrap();
    assert_eq!(names(&refreshed), ["late_one", "late_two"]);
    pool.close().await;
}

#[tokio::test]
async fn an_empty_list_has_a_reason_and_is_not_remembered() {
    let place = Place::new();
    let settings = || place.fake("files", &["legacy", "tools=0"]);
    let pool = place.pool();
    let listed = tools(&pool.add(settings()).unwrap()).await;
    assert_eq!(
        listed.shortfall().as_deref(),
        Some("the server lists no tools")
    );
    pool.close().await;
    let pool = place.pool();
    assert_eq!(pool.add(settings()).unwrap().state(), State::Configured);

    let server = pool
        .add(place.fake("none", &["legacy", "no-list"]))
        .unwrap();
    assert_eq!(
        tools(&server).await.shortfall().as_deref(),
        Some("the server knows no `tools/list`")
    );
    pool.close().await;
}
