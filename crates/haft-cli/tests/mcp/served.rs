//! `haft mcp serve`: haft's tools and those of several servers as one, for clients of both eras.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_mcp::{
    CallOptions, ConnectOptions, Connection, Era, Label, ServerSettings, TransportSettings,
};
use serde_json::{Map, Value, json};

use crate::kit::{FAKE_TOOLS, LONG, LineClient, fake, folder};

/// Two servers whose tools have the same names. What they change is used at once.
fn two() -> String {
    let keys = "pin = \"off\"";
    format!(
        "{}{}",
        fake("zeta", "modern", keys),
        fake("alpha", "legacy", keys)
    )
}

/// A client of haft's own in front of `haft mcp serve`.
async fn client(folder: &std::path::Path, arguments: &[&str]) -> Connection {
    let label = Label::new("gate").unwrap();
    let mut all = vec!["mcp", "serve"];
    all.extend(arguments);
    let mut settings = ServerSettings::stdio(label, env!("CARGO_BIN_EXE_haft")).args(all);
    if let TransportSettings::Stdio(stdio) = &mut settings.transport {
        stdio.cwd = Some(folder.to_owned());
    }
    let options = ConnectOptions::default();
    let opening = Connection::open(Arc::new(settings), &options);
    tokio::time::timeout(LONG, opening).await.unwrap().unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn raw(client: &Connection, name: &str, arguments: Value) -> Value {
    let called = client.call_tool(name, object(arguments), CallOptions::default());
    let outcome = tokio::time::timeout(LONG, called).await.unwrap().unwrap();
    (*outcome.raw).clone()
}

async fn names(client: &Connection) -> Vec<String> {
    let list = client.list_tools().await.unwrap();
    list.tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_all_servers_are_there_in_their_order_and_results_are_unchanged() {
    let folder = folder(&two());
    let client = client(folder.path(), &["--mode", "passthrough"]).await;
    assert_eq!(client.era(), Era::Modern);
    let names = names(&client).await;
    assert_eq!(names[..3], ["calculate", "clock", "zeta__echo"]);
    assert_eq!(names[2 + FAKE_TOOLS], "alpha__echo");
    assert_eq!(names.len(), 2 + 2 * FAKE_TOOLS);
    let own = raw(&client, "calculate", json!({"expression": "6*7"})).await;
    assert_eq!(own["structuredContent"]["result"], "42", "{own}");
    for server in ["zeta", "alpha"] {
        let name = format!("{server}__raw");
        for told in [
            json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"b": [1]}, "isError": true}),
            json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "_meta": {"x/y": 1}}),
            json!({"content": [], "structuredContent": null}),
        ] {
            let result = raw(&client, &name, json!({ "result": told })).await;
            for key in ["content", "structuredContent", "isError", "_meta"] {
                let before = told.get(key).unwrap_or(&Value::Null);
                let after = result.get(key).filter(|it| **it != json!(false));
                assert_eq!(after.unwrap_or(&Value::Null), before, "{key} of {result}");
            }
        }
    }
    let wrong = raw(&client, "calculate", json!({"expression": 1})).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_through_and_a_cancelled_call_is_cancelled_at_its_server() {
    let folder = folder(&two());
    let client = client(folder.path(), &["--mode", "passthrough"]).await;
    for server in ["zeta", "alpha"] {
        let mut heard = Vec::new();
        let mut hear = |progress: haft::ToolProgress| heard.push(progress.message);
        let options = CallOptions {
            on_progress: Some(&mut hear),
            ..CallOptions::default()
        };
        let arguments = object(json!({"count": 3, "every_ms": 300}));
        let name = format!("{server}__progress");
        client.call_tool(&name, arguments, options).await.unwrap();
        assert_eq!(heard[0].as_deref(), Some("step 1"), "{server}");

        let options = CallOptions::default();
        let cancel = options.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        });
        let silent = format!("{server}__silent");
        client
            .call_tool(&silent, Map::new(), options)
            .await
            .unwrap_err();
        let begin = Instant::now();
        loop {
            let told = raw(&client, &format!("{server}__cancelled"), json!({})).await;
            if told["content"][0]["text"] != "[]" {
                break;
            }
            assert!(begin.elapsed() < LONG, "{server}: {told}");
        }
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_server_is_told_to_clients_of_both_eras() {
    let folder = folder(&two());
    let modern = client(folder.path(), &["--mode", "passthrough"]).await;
    let mut changes = modern.changes();
    assert!(!names(&modern).await.contains(&"alpha__extra_0".into()));
    raw(&modern, "alpha__change", json!({})).await;
    let told = tokio::time::timeout(LONG, changes.next()).await;
    assert!(told.unwrap(), "nothing was told");
    let begin = Instant::now();
    while !names(&modern).await.contains(&"alpha__extra_0".into()) {
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
    modern.close().await;

    // Another data folder: a remembered list with `alpha__extra_0` would be shown until alpha's own is final.
    let folder = self::folder(&two());
    let mut legacy = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    let before = legacy.names();
    // That servers were heard of for the first time is told as well, a moment later.
    std::thread::sleep(Duration::from_secs(1));
    legacy.ask("ping", json!({}));
    legacy.notices.clear();
    legacy.text("zeta__change", json!({}));
    legacy.notice("notifications/tools/list_changed");
    let mut expected = before.clone();
    let at = before.iter().position(|it| it == "alpha__echo").unwrap();
    expected.insert(at, "zeta__extra_0".into());
    assert_eq!(
        legacy.names(),
        expected,
        "what is new is at its server's end"
    );
}

#[test]
fn many_tools_are_behind_three() {
    let always = fake("zeta", "modern", "[mcp.zeta.tools.echo]\ndefer = \"never\"");
    let folder = folder(&format!("{always}{}", fake("alpha", "legacy", "")));
    let facade = ["search_tools", "describe_tool", "call_tool", "zeta__echo"];
    for arguments in [&["--mode", "facade"][..], &[]] {
        let mut client = LineClient::of_haft(folder.path(), arguments, json!({}));
        assert_eq!(client.names(), facade, "{arguments:?}");
        let found = client.text("search_tools", json!({"query": "alpha__echo"}));
        assert!(found.contains("alpha__echo"), "{found}");
        let call = json!({"name": "alpha__raw", "arguments": {"result": {
            "content": [{"type": "text", "text": "x"}], "isError": true, "structuredContent": {"a": 1},
        }}});
        let result = client.call("call_tool", call)["result"].clone();
        assert_eq!(
            (&result["isError"], &result["structuredContent"]),
            (&true.into(), &json!({"a": 1}))
        );
        let unknown = client.call("call_tool", json!({"name": "alpha__ecko", "arguments": {}}));
        assert_eq!(unknown["result"]["isError"], true, "{unknown}");
        assert_eq!(client.names(), facade, "a search unlocks nothing");
        assert_eq!(client.leave(), Some(0));
    }
}

#[test]
fn a_part_of_the_tools_can_be_served() {
    let folder = folder(&format!("[gateway]\nservers = [\"alpha\"]\n{}", two()));
    let all = |arguments: &[&str]| LineClient::of_haft(folder.path(), arguments, json!({})).names();
    let served = all(&["--only", "zeta"]);
    assert_eq!(
        (served.len(), served[0].as_str()),
        (FAKE_TOOLS, "zeta__echo")
    );
    let served = all(&[]);
    assert_eq!(served[0], "alpha__echo", "as the configuration says");
    let served = all(&["--tools", "clock,zeta__e*"]);
    assert_eq!(served, ["clock", "zeta__echo", "zeta__environment"]);
    let (code, _, aside) = crate::kit::mcp(folder.path(), &["serve", "--only", "zetta"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("did you mean `zeta`?"), "{aside}");
}

#[test]
fn what_needs_an_approval_is_asked_about_or_does_not_run() {
    let folder = folder(&fake("zeta", "modern", "approve = \"always\""));
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    let refused = client.call("zeta__echo", json!({}))["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("needs the approval of a person"), "{text}");
    for (action, runs) in [("accept", true), ("decline", false), ("cancel", false)] {
        let can = json!({"elicitation": {"form": {}}});
        let mut client = LineClient::of_haft(folder.path(), &[], can);
        let call = json!({"name": "zeta__echo", "arguments": {"a": 1}});
        let id = client.begin("tools/call", call);
        let asked = client.notice("elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("zeta__echo") && message.contains("{\"a\":1}"),
            "{message}"
        );
        let result = json!({"action": action, "content": {}});
        client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
        let result = client.answer(id)["result"].clone();
        let has_run = result["content"][0]["text"] == "{\"a\":1}";
        assert_eq!(has_run, runs, "{action}: {result}");
    }
}

#[test]
fn a_silent_server_keeps_nobody_waiting_for_long() {
    let mute = fake("mute", "silent silent-on-discover", "");
    let dead = fake("dead", "exits-at-once", "");
    let folder = folder(&format!("{mute}{dead}{}", fake("zeta", "modern", "")));
    let begin = Instant::now();
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "nothing is started yet"
    );
    let names = client.names();
    assert!(
        begin.elapsed() < Duration::from_secs(8),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(names.len(), 2 + FAKE_TOOLS, "{names:?}");
    // From now on nothing waits for the silent server: neither lists nor calls of other servers and of names
    // that no server has.
    let begin = Instant::now();
    for _ in 0..20 {
        assert_eq!(client.names().len(), 2 + FAKE_TOOLS);
        assert_eq!(client.text("zeta__echo", json!({})), "{}");
        let unknown = client.call("nothing", json!({}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    // A call to the server that ended says why, and does not start it for each call.
    let dead = client.text("dead__anything", json!({}));
    assert!(dead.contains("MCP server `dead` is unavailable"), "{dead}");
}

#[test]
fn a_server_that_is_late_arrives_by_a_notice() {
    let late = fake("late", "modern sleeps-first=3500", "");
    let folder = folder(&format!("{late}{}", fake("zeta", "modern", "")));
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    let before = client.names();
    assert!(!before.contains(&"late__echo".into()), "{before:?}");
    while !client.names().contains(&"late__echo".into()) {
        client.notice("notifications/tools/list_changed");
    }
    assert_eq!(client.text("late__echo", json!({})), "{}");
    drop(client);
    // The next process knows the list and waits for nothing.
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    assert!(client.names().contains(&"late__echo".into()));
}

#[test]
fn the_facade_says_which_servers_there_are_and_which_are_unavailable() {
    let dead = fake("dead", "exits-at-once", "description = \"Licences\"");
    let mute = fake("mute", "silent silent-on-discover", "");
    let broken = "[mcp.broken]\ncommand = \"x\"\nenv = { A = \"${HAFT_TEST_MISSING}\" }\n";
    let zeta = fake("zeta", "modern", "description = \"Does as it is told\"");
    let folder = folder(&format!("{dead}{mute}{broken}{zeta}"));
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "facade"], json!({}));
    let instructions = client.greeting["result"]["instructions"].as_str().unwrap();
    for line in [
        "\n- dead: Licences",
        "\n- mute",
        "\n- zeta: Does as it is told",
    ] {
        assert!(instructions.contains(line), "{instructions}");
    }
    let list = client.ask("tools/list", json!({}));
    let about = list["result"]["tools"][0]["description"].as_str().unwrap();
    assert!(about.contains("zeta: Does as it is told"), "{about}");
    for query in ["echo", "xyzzy"] {
        let found = client.call("search_tools", json!({"query": query}))["result"].clone();
        let text = found["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("Unavailable servers: `dead`: "), "{text}");
        assert!(text.contains("`mute`: still starting"), "{text}");
        assert!(
            text.contains("`broken`: its configuration cannot be used"),
            "{text}"
        );
        let unavailable = found["structuredContent"]["unavailable"]
            .as_array()
            .unwrap();
        let labels: Vec<_> = unavailable.iter().map(|it| &it["server"]).collect();
        assert_eq!(labels, ["dead", "mute", "broken"]);
        assert_eq!(unavailable[0]["state"], "unavailable");
    }
    let named = client.text("search_tools", json!({"query": "echo", "server": "dead"}));
    assert!(
        named.starts_with("no tools of server `dead`. Unavailable"),
        "{named}"
    );
    // Arguments as a string, as some models write them.
    let call = json!({"name": "zeta__echo", "arguments": "{\"a\": 1}"});
    assert_eq!(client.text("call_tool", call), "{\"a\":1}");
    let call = json!({"name": "zeta__echo", "arguments": "[1]"});
    let refused = client.text("call_tool", call);
    assert!(
        refused.contains("`arguments` is a string that holds no JSON object"),
        "{refused}"
    );
    let late = client.text("call_tool", json!({"name": "dead__x"}));
    assert!(late.contains("MCP server `dead` is unavailable"), "{late}");
}

#[test]
fn only_selected_servers_are_started() {
    let folder = tempfile::tempdir().unwrap();
    let server = |label: &str, keys: &str| {
        let note = folder.path().join(label);
        fake(
            label,
            &format!("modern notes-start={}", note.display()),
            keys,
        )
    };
    let config = format!(
        "{}{}{}",
        server("one", ""),
        server("two", "warm = true"),
        server("three", "")
    );
    crate::kit::configure(folder.path(), &config);
    for (arguments, label) in [(["--only", "one"], "one"), (["--tools", "one__e*"], "one")] {
        let mut client = LineClient::of_haft(folder.path(), &arguments, json!({}));
        let names = client.names();
        assert!(names.contains(&"one__echo".into()), "{names:?}");
        // Neither a list nor a call by name reaches the others.
        let unknown = client.call("two__echo", json!({}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        assert!(folder.path().join(label).exists());
        for other in ["two", "three"] {
            assert!(!folder.path().join(other).exists(), "{other} was started");
        }
    }
}

#[test]
fn a_server_that_dies_costs_one_call_and_traces_go_through() {
    let folder = folder(&two());
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    let died = client.call("alpha__die", json!({}))["result"].clone();
    assert_eq!(died["isError"], true, "{died}");
    let text = died["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("MCP server `alpha`: connection lost"),
        "{text}"
    );
    assert_eq!(client.text("alpha__echo", json!({})), "{}");
    let unknown = client.call("alpha__nothing", json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let meta = json!({"traceparent": parent, "secret": "hunter2"});
    let call = json!({"name": "zeta__meta", "arguments": {}, "_meta": meta});
    let answer = client.ask("tools/call", call);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(parent) && !text.contains("hunter2"), "{text}");
}
