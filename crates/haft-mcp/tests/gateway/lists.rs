//! What is listed.

use std::time::Duration;

use haft_mcp::gateway::{Gateway, GatewayError, Mode, Subset};
use rmcp::model::{CacheScope, ErrorCode, PaginatedRequestParams};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use crate::client::{Connection, ERAS, Era, Person, call, connect, params, text};
use crate::toolbox::{Toolbox, object, tool};

async fn names(client: &Connection) -> Vec<String> {
    let tools = client.list_all_tools().await.unwrap();
    tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect()
}

fn code(error: ServiceError) -> ErrorCode {
    match error {
        ServiceError::McpError(error) => error.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_tool_is_listed_as_its_server_describes_it() {
    let mut listed = tool("echo")
        .titled("Echo")
        .giving(object(json!({"type": "object", "required": ["b", "a"]})))
        .annotated(object(json!({"readOnlyHint": true, "title": "E"})));
    // Order, dialect and odd words stay.
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"z": {"$ref": "#/$defs/d"}, "a": {"x-odd": [1, null]}},
        "$defs": {"d": {"$anchor": "here"}}
    });
    listed.input_schema = object(schema.clone()).into();
    listed.meta = Some(object(json!({"vendor/key": 1})));
    for era in ERAS {
        let toolbox = Toolbox::new([listed.clone()]);
        let gateway = Gateway::builder(toolbox).build().unwrap();
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let tools = client.list_all_tools().await.unwrap();
        let tool = serde_json::to_string(&tools[0]).unwrap();
        let expected = json!({
            "name": "box__echo",
            "title": "Echo",
            "description": "Does echo. And nothing else.",
            "inputSchema": schema,
            "outputSchema": {"type": "object", "required": ["b", "a"]},
            "annotations": {"title": "E", "readOnlyHint": true},
            "_meta": {"vendor/key": 1}
        });
        assert_eq!(tool, expected.to_string(), "{era:?}");
    }
}

#[tokio::test]
async fn a_long_list_comes_in_pages_and_in_order() {
    let raws: Vec<String> = (0..7).map(|n| format!("t{n}")).collect();
    let toolbox = Toolbox::new(raws.iter().map(|raw| tool(raw)));
    let expected: Vec<String> = raws.iter().map(|raw| format!("box__{raw}")).collect();
    let gateway = Gateway::builder(toolbox).page_size(3).build().unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let first = client.list_tools(None).await.unwrap();
        assert_eq!(first.tools.len(), 3);
        assert!(first.next_cursor.is_some());
        assert_eq!(names(&client).await, expected);
        let bad = PaginatedRequestParams::default().with_cursor(Some("nonsense".into()));
        let error = client.list_tools(Some(bad)).await.unwrap_err();
        assert_eq!(code(error), ErrorCode::INVALID_PARAMS);
    }
}

#[tokio::test]
async fn only_modern_clients_are_told_how_long_a_list_is_fresh() {
    let toolbox = Toolbox::of(&["echo"]);
    toolbox.set_hints(Duration::from_secs(5), true);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let list = client.list_tools(None).await.unwrap();
    let hints = (list.ttl_ms, list.cache_scope);
    assert_eq!(hints, (Some(5_000), Some(CacheScope::Public)));

    toolbox.set_hints(Duration::ZERO, false);
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let list = client.list_tools(None).await.unwrap();
    let hints = (list.ttl_ms, list.cache_scope);
    assert_eq!(hints, (Some(0), Some(CacheScope::Private)));

    let client = connect(&gateway, "a", Person::helpful(Era::Legacy).0).await;
    let list = client.list_tools(None).await.unwrap();
    assert_eq!((list.ttl_ms, list.cache_scope), (None, None));
}

#[tokio::test]
async fn a_subset_narrows_what_is_listed_and_what_can_be_called() {
    let other = haft_mcp::gateway::ListedTool::new("mail__echo", object(json!({"type": "object"})))
        .of_server("mail", "echo");
    let toolbox = Toolbox::new([tool("echo"), tool("fail"), other]);
    let gateway = Gateway::builder(toolbox.clone())
        .subset("mail", Subset::default().with_server("mail"))
        .subset("few", Subset::default().without("box__f*"))
        .build()
        .unwrap();
    let error = gateway.narrowed("none").unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown subset `none`; the subsets are: `few`, `mail`"
    );
    assert!(matches!(error, GatewayError::UnknownSubset { .. }));
    for era in ERAS {
        let mail = gateway.narrowed("mail").unwrap();
        let client = connect(&mail, "a", Person::helpful(era).0).await;
        assert_eq!(names(&client).await, ["mail__echo"]);
        assert!(text(&call(&client, "mail__echo", json!({"text": "x"})).await).contains('x'));
        let hidden = client.call_tool(params("box__echo", json!({}))).await;
        assert_eq!(code(hidden.unwrap_err()), ErrorCode::INVALID_PARAMS);
        let few = gateway.narrowed("few").unwrap();
        let client = connect(&few, "a", Person::helpful(era).0).await;
        assert_eq!(names(&client).await, ["box__echo", "mail__echo"]);
    }
    assert!(toolbox.calls().iter().all(|(name, _)| name == "mail__echo"));
}

#[tokio::test]
async fn what_the_backend_does_not_have_is_neither_declared_nor_answered() {
    let gateway = Gateway::builder(Toolbox::of(&["echo"])).build().unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let info = client.peer_info().unwrap();
        let capabilities = serde_json::to_value(&info.capabilities).unwrap();
        assert_eq!(
            capabilities,
            json!({"tools": {"listChanged": true}}),
            "{era:?}"
        );
        let prompts = client.list_prompts(None).await.unwrap_err();
        let resources = client.list_resources(None).await.unwrap_err();
        for error in [prompts, resources] {
            assert_eq!(code(error), ErrorCode::METHOD_NOT_FOUND, "{era:?}");
        }
        let identity = serde_json::to_value(&info.server_info).unwrap();
        assert_eq!(identity, json!({"name": "toolbox", "version": "1.2.3"}));
    }
}

#[tokio::test]
async fn the_same_list_is_the_same_bytes() {
    let raws: Vec<String> = (0..25).map(|n| format!("t{n}")).collect();
    let toolbox = Toolbox::new(raws.iter().map(|raw| tool(raw)));
    let gateway = Gateway::builder(toolbox)
        .mode(Mode::Passthrough)
        .build()
        .unwrap();
    let mut seen: Vec<Value> = Vec::new();
    for caller in ["a", "b"] {
        let client = connect(&gateway, caller, Person::mute(Era::Modern).0).await;
        let tools = client.list_all_tools().await.unwrap();
        seen.push(json!(serde_json::to_string(&tools).unwrap()));
    }
    assert_eq!(seen[0], seen[1]);
}
