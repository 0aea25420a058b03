//! The entries of `tools`: what they become, what is echoed, and what is refused.

use serde_json::{Value, json};

use super::refusals::{check_refused, rows};
use super::*;
use crate::wire::request::{CreateRequest, CustomTool, FunctionTool, RequestTool, RequestToolKind};

fn words() -> Vocabulary<'static> {
    Vocabulary {
        is_vendor_type: &|name| name == "acme:ledger",
        ..Vocabulary::default()
    }
}

fn read(tools: &Value) -> Read<Vec<RequestTool>> {
    let body = json!({"input": "x", "tools": tools});
    CreateRequest::read(body, Door::Http, &words()).map(|request| request.tools)
}

fn one(tool: &Value) -> RequestTool {
    read(&json!([tool]))
        .unwrap_or_else(|error| panic!("{tool}: {error:?}"))
        .remove(0)
}

#[test]
fn a_function_is_echoed_with_all_five_members() {
    let tool = one(&json!({"type": "function", "name": "ping", "unknown": 1}));
    assert_eq!(
        tool.echo,
        json!({"type": "function", "name": "ping", "description": null, "parameters": null,
            "strict": false})
    );
    assert_eq!(
        tool.kind,
        RequestToolKind::Function(FunctionTool {
            name: String::from("ping"),
            description: None,
            parameters: json!({"type": "object", "properties": {}}),
            strict: false,
            defer_loading: false,
        })
    );
    let full = json!({"type": "function", "name": "ping", "description": "d",
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
        "strict": true, "defer_loading": false});
    assert_eq!(one(&full).echo, full);
    assert_eq!(one(&full).param, "tools[0]");
}

#[test]
fn parameters_that_do_not_say_so_are_an_object_all_the_same() {
    let tool = one(&json!({"type": "function", "name": "a", "parameters": {}}));
    assert_eq!(tool.echo["parameters"], json!({}));
    let RequestToolKind::Function(function) = tool.kind else {
        panic!("a function");
    };
    assert_eq!(function.parameters, json!({"type": "object"}));
}

#[test]
fn other_tools_are_echoed_as_sent() {
    for tool in [
        json!({"type": "custom", "name": "sh", "format": {"type": "grammar", "syntax": "lark",
            "definition": "start: /a/"}, "x": null}),
        json!({"type": "namespace", "name": "ns", "description": "d", "tools": [
            {"type": "function", "name": "a"}, {"type": "custom", "name": "b"}]}),
        json!({"type": "tool_search"}),
        json!({"type": "tool_search", "execution": "client", "description": "d",
            "parameters": {"type": "object"}}),
        json!({"type": "web_search", "search_context_size": "low"}),
        json!({"type": "web_search_2025_08_26"}),
        json!({"type": "web_search_preview_2025_03_11"}),
        json!({"type": "openai:web_search"}),
        json!({"type": "programmatic_tool_calling"}),
        json!({"type": "haft:clock", "zone": "UTC"}),
        json!({"type": "acme:ledger"}),
    ] {
        assert_eq!(one(&tool).echo, tool);
    }
}

#[test]
fn each_type_becomes_what_it_is() {
    let kind = |tool: Value| one(&tool).kind;
    assert_eq!(
        kind(
            json!({"type": "custom", "name": "sh", "description": "d", "format": {
            "type": "grammar", "syntax": "regex", "definition": "a+"}})
        ),
        RequestToolKind::Custom(CustomTool {
            name: String::from("sh"),
            description: Some(String::from("d")),
            grammar: Some((String::from("regex"), String::from("a+"))),
            defer_loading: false,
        })
    );
    let RequestToolKind::Custom(custom) =
        kind(json!({"type": "custom", "name": "sh", "format": {"type": "text"}}))
    else {
        panic!("a custom tool");
    };
    assert_eq!(custom.grammar, None);
    assert_eq!(
        kind(json!({"type": "tool_search", "execution": "client"})),
        RequestToolKind::ToolSearch {
            is_client: true,
            description: None,
            parameters: None,
        }
    );
    let RequestToolKind::Hosted { tool_type, config } =
        kind(json!({"type": "openai:web_search", "size": 1}))
    else {
        panic!("a hosted tool");
    };
    assert_eq!(tool_type, "web_search");
    assert_eq!(config["size"], 1);
    let RequestToolKind::Namespace { name, tools, .. } = kind(
        json!({"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "a"}]}),
    ) else {
        panic!("a namespace");
    };
    assert_eq!(
        (name.as_str(), tools[0].param.as_str()),
        ("ns", "tools[0].tools[0]")
    );
}

#[test]
fn the_echo_of_an_mcp_server_holds_no_secret() {
    let given = json!({"type": "mcp", "server_label": "air", "server_description": "flights",
        "server_url": "https://me:hush@air.example:8443/hush/mcp?token=hush",
        "authorization": "hush", "headers": {"X-Key": "hush"},
        "allowed_tools": {"tool_names": ["find"], "read_only": true},
        "require_approval": {"never": {"tool_names": ["find"]}}});
    let tool = one(&given);
    assert_eq!(
        tool.echo,
        json!({"type": "mcp", "server_label": "air", "server_description": "flights",
            "server_url": "https://air.example:8443",
            "allowed_tools": {"tool_names": ["find"], "read_only": true},
            "require_approval": {"never": {"tool_names": ["find"]}}, "defer_loading": false,
            "headers": null, "authorization": null})
    );
    assert!(!format!("{tool:?}").contains("hush"));
    let RequestToolKind::Mcp(entry) = tool.kind else {
        panic!("{:?}", tool.kind)
    };
    let address = entry.address.unwrap();
    assert_eq!(address.bearer.unwrap().expose(), "hush");
    assert_eq!(address.headers["X-Key"].expose(), "hush");
    assert_eq!(address.url.query(), Some("token=hush"));
}

#[test]
fn an_mcp_server_is_echoed_with_what_holds_for_it() {
    let echo =
        one(&json!({"type": "mcp", "server_label": "a", "server_url": "https://[::1]/"})).echo;
    assert_eq!(echo["server_url"], "https://[::1]");
    assert_eq!(echo["require_approval"], "always");
    // The operator decides about a server of his own.
    let echo = one(&json!({"type": "mcp", "server_label": "a"})).echo;
    assert_eq!(echo["require_approval"], Value::Null);
    assert_eq!(echo["server_url"], Value::Null);
}

#[test]
fn tools_are_refused_with_the_path_to_what_is_wrong() {
    for (tools, code, param) in rows(include_str!("refusals/tools.txt")) {
        check_refused(read(&tools), &tools, code, param);
    }
}

#[test]
fn a_schema_that_is_too_deep_is_refused() {
    let mut deep = json!({"type": "string"});
    for _ in 0..70 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let tools = json!([{"type": "function", "name": "a", "parameters": deep}]);
    let code = "invalid_function_parameters";
    check_refused(read(&tools), &tools, code, "tools[0].parameters");
}

#[test]
fn one_name_may_stand_in_several_namespaces() {
    let tool = json!({"type": "function", "name": "a"});
    let tools = read(&json!([
        tool,
        {"type": "namespace", "name": "n", "tools": [tool]},
        {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "b"}]},
        {"type": "namespace", "name": "m", "tools": [tool]},
    ]));
    assert_eq!(tools.unwrap().len(), 4);
}

#[test]
fn deferred_tools_need_a_search() {
    let search = json!({"type": "tool_search"});
    let function = json!({"type": "function", "name": "a", "defer_loading": true});
    for (tool, param) in [
        (function.clone(), "tools[0].defer_loading"),
        (
            json!({"type": "custom", "name": "a", "defer_loading": true}),
            "tools[0].defer_loading",
        ),
        (
            json!({"type": "mcp", "server_label": "a", "defer_loading": true}),
            "tools[0].defer_loading",
        ),
        (
            json!({"type": "namespace", "name": "n", "defer_loading": true, "tools": []}),
            "tools[0].defer_loading",
        ),
        (
            json!({"type": "namespace", "name": "n", "tools": [function]}),
            "tools[0].tools[0].defer_loading",
        ),
    ] {
        check_refused(read(&json!([tool])), &tool, "invalid_value", param);
        assert_eq!(read(&json!([tool, search])).unwrap().len(), 2);
    }
    // An item may bring the search.
    let body = json!({"tools": [function], "input": [
        {"role": "user", "content": "x"}, {"type": "additional_tools", "tools": [search]}]});
    CreateRequest::read(body, Door::Http, &words()).unwrap();
}

#[test]
fn secrets_stay_out_of_every_message() {
    for tool in [
        json!({"type": "mcp", "server_label": "a", "server_url": "hush hush"}),
        json!({"type": "mcp", "server_label": "a", "server_url": "ftp://hush"}),
        json!({"type": "mcp", "server_label": "a", "authorization": ["hush"]}),
        json!({"type": "mcp", "server_label": "a", "authorization": "hush"}),
        json!({"type": "mcp", "server_label": "a", "server_url": "https://a.example/hush",
            "authorization": "hush\n"}),
        json!({"type": "mcp", "server_label": "a", "server_url": "https://a.example/hush",
            "headers": {"X": "hush\n"}}),
        json!({"type": "mcp", "server_label": "a", "headers": {"X": ["hush"]}}),
        json!({"type": "mcp", "server_label": "a", "authorization": "hush",
            "headers": {"Authorization": "hush"}}),
    ] {
        let error = read(&json!([tool])).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}
