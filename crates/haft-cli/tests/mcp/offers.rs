//! Prompts, resources, completion and logs of servers, through the gateway and by hand.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{
    CallOptions, Completed, ConnectOptions, Connection, Era, Label, Pool, ServerEvent,
    ServerSettings, Url,
};
use serde_json::{Map, Value, json};

use crate::http::serving;
use crate::kit::{LONG, LineClient, fake, folder};

/// Two servers, one of each era, that offer the same under different names.
fn both() -> String {
    let old = fake("old", "legacy offers name=old", "pin = \"off\"");
    let new = fake("new", "modern offers name=new", "pin = \"off\"");
    format!("{old}{new}")
}

fn texts(list: &Value, member: &str, key: &str) -> Vec<String> {
    let items = list["result"][member].as_array();
    let items = items.unwrap_or_else(|| panic!("{list}")).iter();
    items
        .map(|it| it[key].as_str().unwrap().to_owned())
        .collect()
}

fn read(client: &mut LineClient, uri: &str) -> Value {
    client.ask("resources/read", json!({ "uri": uri }))
}

fn read_text(client: &mut LineClient, uri: &str) -> String {
    let answer = read(client, uri);
    let text = answer["result"]["contents"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Asks until the answer is as it should be.
fn until(client: &mut LineClient, method: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let answer = client.ask(method, json!({}));
        if is_so(&answer) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("`{method}` never gives what it should");
}

fn lists_both(list: &Value) -> bool {
    let text = list.to_string();
    text.contains("old") && text.contains("new")
}

#[test]
fn prompts_and_resources_of_all_servers_are_listed_and_read() {
    let folder = folder(&both());
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    let prompts = until(&mut client, "prompts/list", lists_both);
    assert_eq!(
        texts(&prompts, "prompts", "name"),
        ["old__greet", "new__greet"]
    );
    let first = &prompts["result"]["prompts"][0];
    assert_eq!(
        first["description"], "Says hello.",
        "no invisible characters"
    );
    assert_eq!(
        first["arguments"],
        json!([{"name": "who", "required": true}])
    );
    let params = json!({"name": "new__greet", "arguments": {"who": "Ada"}});
    let prompt = client.ask("prompts/get", params);
    let message = &prompt["result"]["messages"][0];
    assert_eq!(message["content"]["text"], "Hello, Ada!", "{prompt}");
    let unknown = client.ask("prompts/get", json!({"name": "new__none"}));
    assert_eq!(unknown["error"]["code"], -32602);

    let resources = until(&mut client, "resources/list", lists_both);
    assert_eq!(
        texts(&resources, "resources", "uri"),
        [
            "fake://old/one",
            "fake://shared",
            "fake://new/one",
            "haft+new:fake://shared"
        ]
    );
    let templates = client.ask("resources/templates/list", json!({}));
    assert_eq!(
        texts(&templates, "resourceTemplates", "uriTemplate"),
        ["fake://old/item/{id}", "fake://new/item/{id}"]
    );
    for (uri, expected) in [
        ("fake://old/one", "old has fake://old/one"),
        ("fake://new/one", "new has fake://new/one"),
        ("fake://shared", "old has fake://shared"),
        ("haft+new:fake://shared", "new has fake://shared"),
        ("fake://new/item/7", "new has fake://new/item/7"),
        (
            "haft+old:fake://old/unlisted",
            "old has fake://old/unlisted",
        ),
    ] {
        assert_eq!(read_text(&mut client, uri), expected);
    }
    let answer = read(&mut client, "haft+new:fake://shared");
    let contents = &answer["result"]["contents"][0];
    assert_eq!(
        contents["uri"], "haft+new:fake://shared",
        "as it was asked for"
    );
    assert_eq!(answer["result"]["_meta"]["from"], "new");
    // Unknown to the gateway, and unknown to each of the servers.
    for uri in ["other://x", "haft+none:x", "haft+old:x:y", "haft+new:x:y"] {
        let answer = read(&mut client, uri);
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri, "{answer}");
    }
}

#[test]
fn links_in_results_can_be_read_by_whoever_got_them() {
    let folder = folder(&both());
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    until(&mut client, "resources/list", lists_both);
    assert_eq!(read(&mut client, "fake://linked")["error"]["code"], -32002);
    let link = client.call("new__link", json!({}));
    assert_eq!(
        link["result"]["content"][0]["uri"], "fake://linked",
        "{link}"
    );
    assert_eq!(
        read_text(&mut client, "fake://linked"),
        "new has fake://linked"
    );
    // A link to what another server lists leads to the one that it came from.
    let link = client.call("new__link", json!({"uri": "fake://shared"}));
    let uri = link["result"]["content"][0]["uri"].as_str().unwrap();
    assert_eq!(uri, "haft+new:fake://shared");
    assert_eq!(read_text(&mut client, uri), "new has fake://shared");
}

#[test]
fn changes_are_reported_to_those_who_subscribed() {
    let folder = folder(&both());
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    until(&mut client, "resources/list", lists_both);
    until(&mut client, "prompts/list", lists_both);
    for server in ["old", "new"] {
        let uri = format!("fake://{server}/one");
        let answer = client.ask("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(answer["result"], json!({}), "{answer}");
        // A modern server is subscribed to in the background.
        std::thread::sleep(Duration::from_millis(300));
        client.call(&format!("{server}__touch"), json!({"uri": "fake://shared"}));
        client.call(&format!("{server}__touch"), json!({ "uri": uri }));
        let notice = client.notice("notifications/resources/updated");
        assert_eq!(notice["params"]["uri"], uri);
        client.notices.clear();
        client.call(&format!("{server}__grow"), json!({}));
        client.notice("notifications/prompts/list_changed");
        client.notice("notifications/resources/list_changed");
        let prompts = client.ask("prompts/list", json!({}));
        let added = format!("{server}__added_0");
        assert!(
            texts(&prompts, "prompts", "name").contains(&added),
            "{prompts}"
        );
        let resources = client.ask("resources/list", json!({}));
        let added = format!("fake://{server}/added/0");
        assert!(texts(&resources, "resources", "uri").contains(&added));
        let answer = client.ask("resources/unsubscribe", json!({ "uri": uri }));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    let answer = client.ask("resources/subscribe", json!({"uri": "other://x"}));
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
}

#[test]
fn a_server_that_dies_is_subscribed_to_again_when_it_is_back() {
    let folder = folder(&both());
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    until(&mut client, "resources/list", lists_both);
    for server in ["old", "new"] {
        let uri = format!("fake://{server}/one");
        client.ask("resources/subscribe", json!({ "uri": uri }));
        client.call(&format!("{server}__die"), json!({}));
        // What changed meanwhile was not reported, so that the resource counts as changed.
        let notice = client.notice("notifications/resources/updated");
        assert_eq!(notice["params"]["uri"], uri);
        std::thread::sleep(Duration::from_millis(500));
        client.notices.clear();
        client.call(&format!("{server}__touch"), json!({ "uri": uri }));
        let notice = client.notice("notifications/resources/updated");
        assert_eq!(notice["params"]["uri"], uri);
    }
}

#[test]
fn arguments_are_completed_by_their_server() {
    let folder = folder(&both());
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    let complete = |client: &mut LineClient, reference: Value| {
        let params = json!({
            "ref": reference, "argument": {"name": "who", "value": "pa"},
            "context": {"arguments": {"other": "x"}},
        });
        let answer = client.ask("completion/complete", params);
        answer["result"]["completion"].clone()
    };
    let done = complete(
        &mut client,
        json!({"type": "ref/prompt", "name": "old__greet"}),
    );
    let values: Vec<&str> = done["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert_eq!(values[..2], ["paris", "park"], "{done}");
    assert!(values[2].contains("\"greet\""), "its own name: {done}");
    assert!(values[3].contains("\"other\":\"x\""), "{done}");
    assert_eq!(
        (&done["total"], &done["hasMore"]),
        (&json!(5), &json!(true))
    );
    let template = json!({"type": "ref/resource", "uri": "fake://new/item/{id}"});
    let done = complete(&mut client, template);
    assert!(
        done["values"][2]
            .as_str()
            .unwrap()
            .contains("fake://new/item/{id}"),
        "{done}"
    );
}

#[test]
fn log_messages_reach_the_client_from_the_level_that_it_set() {
    let folder = folder(&both());
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    client.names();
    for server in ["old", "new"] {
        let tool = format!("{server}__log");
        client.ask("logging/setLevel", json!({"level": "warning"}));
        client.call(&tool, json!({"level": "info", "data": "too quiet"}));
        client.call(&tool, json!({"level": "error", "data": {"loud": true}}));
        let message = client.notice("notifications/message");
        let expected =
            json!({"level": "error", "logger": format!("{server}/core"), "data": {"loud": true}});
        assert_eq!(message["params"], expected);
        client.ask("logging/setLevel", json!({"level": "debug"}));
        // A legacy server is told in the background.
        std::thread::sleep(Duration::from_millis(300));
        client.call(&tool, json!({"level": "debug", "data": "details"}));
        let message = client.notice("notifications/message");
        assert_eq!(message["params"]["data"], "details");
    }
}

#[test]
fn one_malformed_item_costs_itself_and_one_silent_server_costs_nobody() {
    let hostile = fake(
        "hostile",
        "modern offers malformed-offers name=hostile",
        "pin = \"off\"",
    );
    let silent = fake("silent", "legacy offers silent-offers", "pin = \"off\"");
    let dead = fake("dead", "exits-at-once", "");
    let folder = folder(&format!("{silent}{dead}{hostile}"));
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    let is_there = |list: &Value| list.to_string().contains("hostile");
    let prompts = until(&mut client, "prompts/list", is_there);
    assert_eq!(texts(&prompts, "prompts", "name"), ["hostile__greet"]);
    let resources = until(&mut client, "resources/list", is_there);
    assert_eq!(
        texts(&resources, "resources", "uri"),
        ["fake://hostile/one", "fake://shared"]
    );
    // The silent one has had its chance: it delays nothing any more.
    let begin = std::time::Instant::now();
    for _ in 0..10 {
        client.ask("resources/list", json!({}));
        client.ask("prompts/list", json!({}));
    }
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    let answer = read(&mut client, "fake://hostile/one");
    let contents = answer["result"]["contents"].as_array().unwrap();
    assert_eq!(contents[0]["text"], "hostile has fake://hostile/one");
    assert_eq!(contents[1]["text"], "[unsupported resource contents]");
}

#[test]
fn servers_that_are_not_selected_offer_nothing() {
    let folder = folder(&both());
    let mut client = LineClient::of_haft(folder.path(), &["--only", "new"], json!({}));
    let is_there = |list: &Value| list.to_string().contains("new");
    let prompts = until(&mut client, "prompts/list", is_there);
    assert_eq!(texts(&prompts, "prompts", "name"), ["new__greet"]);
    let resources = client.ask("resources/list", json!({}));
    assert_eq!(
        texts(&resources, "resources", "uri"),
        ["fake://new/one", "fake://shared"]
    );
    for uri in ["fake://old/one", "haft+old:fake://shared"] {
        assert_eq!(read(&mut client, uri)["error"]["code"], -32002);
    }
}

async fn connected(address: &str, era: Era) -> Connection {
    let url = Url::parse(&format!("{address}/mcp")).unwrap();
    let settings = ServerSettings::http(Label::new("gate").unwrap(), url);
    let options = ConnectOptions {
        era: Some(era),
        ..ConnectOptions::default()
    };
    let opening = Connection::open(Arc::new(settings), &options);
    let connection = tokio::time::timeout(LONG, opening).await.unwrap().unwrap();
    assert_eq!(connection.era(), era);
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn both_eras_have_everything_over_http() {
    let folder = folder(&format!("[gateway]\nmode = \"passthrough\"\n{}", both()));
    let (_running, address) = serving(folder.path(), &[]);
    for era in [Era::Legacy, Era::Modern] {
        let client = connected(&address, era).await;
        let mut uris = Vec::new();
        for _ in 0..100 {
            let list = client.list_resources().await.unwrap();
            uris = list.items.into_iter().map(|it| it.uri).collect();
            if uris.len() == 4 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(uris.len(), 4, "{uris:?}");
        let templates = client.list_resource_templates().await.unwrap();
        assert_eq!(templates.items.len(), 2);
        for server in ["old", "new"] {
            let uri = format!("fake://{server}/one");
            let result = client.read_resource(&uri, CallOptions::default()).await;
            let text = &result.unwrap()["contents"][0]["text"];
            assert_eq!(*text, format!("{server} has {uri}"));
            let name = format!("{server}__greet");
            let arguments: Map<String, Value> =
                [("who".to_owned(), json!("Ada"))].into_iter().collect();
            let result = client
                .get_prompt(&name, arguments, CallOptions::default())
                .await;
            let text = &result.unwrap()["messages"][0]["content"]["text"];
            assert_eq!(*text, "Hello, Ada!");
            let of = Completed::Prompt(name);
            let done = client
                .complete(&of, "who", "r", [].into(), CallOptions::default())
                .await;
            assert_eq!(done.unwrap()["completion"]["values"][0], "rome");
        }
        let error = client
            .read_resource("other://x", CallOptions::default())
            .await;
        let error = error.unwrap_err().to_string();
        let code = if era == Era::Legacy {
            "-32002"
        } else {
            "-32602"
        };
        assert!(error.contains(code), "{error}");
        // Log messages of a modern client's request come with it only if it asks for them.
        let mut events = client.events();
        let options = CallOptions {
            log_level: Some(haft_mcp::LogLevel::Debug),
            ..CallOptions::default()
        };
        let arguments = json!({"level": "error", "data": "loud"});
        let arguments = arguments.as_object().cloned().unwrap();
        client
            .call_tool("new__log", arguments, options)
            .await
            .unwrap();
        let logged = async {
            loop {
                if let ServerEvent::Log(message) = events.recv().await.unwrap() {
                    return message;
                }
            }
        };
        let message = tokio::time::timeout(LONG, logged).await.unwrap();
        assert_eq!(message.logger.as_deref(), Some("new/core"));
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_subscribes_over_http() {
    let folder = folder(&format!("[gateway]\nmode = \"passthrough\"\n{}", both()));
    let (_running, address) = serving(folder.path(), &[]);
    let pool = Pool::builder().build();
    let url = Url::parse(&format!("{address}/mcp")).unwrap();
    let gate = ServerSettings::http(Label::new("gate").unwrap(), url);
    let gate = pool.add(gate).unwrap();
    let mut events = pool.events();
    for server in ["old", "new"] {
        let uri = format!("fake://{server}/one");
        let list = || async { gate.resources().await.unwrap().resources.items.len() };
        for _ in 0..100 {
            if list().await == 4 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let subscription = gate.subscribe(&uri).await.unwrap();
        let touch = async {
            loop {
                // It is subscribed to in the background.
                tokio::time::sleep(Duration::from_millis(200)).await;
                let arguments = json!({ "uri": uri }).as_object().cloned().unwrap();
                let name = format!("{server}__touch");
                gate.call(&name, arguments, CallOptions::default())
                    .await
                    .unwrap();
            }
        };
        let updated = async {
            loop {
                let event = events.recv().await.unwrap().event;
                if event == ServerEvent::ResourceUpdated(uri.clone()) {
                    return;
                }
            }
        };
        tokio::select! {
            () = touch => {}
            updated = tokio::time::timeout(LONG, updated) => updated.expect("no notice"),
        }
        drop(subscription);
    }
    pool.close().await;
}
