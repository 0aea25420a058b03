//! The entries of `tools`: what they become, what is echoed, and what is refused.

use serde_json::{Value, json};

use super::*;
use crate::error::ErrorCode;
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

#[track_caller]
fn refused(tools: &Value, code: ErrorCode, param: &str) {
    let error = read(tools).expect_err(&format!("{tools} is accepted"));
    assert_eq!(
        (error.code, error.param.as_deref()),
        (code, Some(param)),
        "{tools}: {error}"
    );
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
    assert_eq!(
        tool.kind,
        RequestToolKind::Mcp(given.as_object().unwrap().clone())
    );
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
    use ErrorCode::{
        DuplicateTool, InvalidFunctionParameters, InvalidType, InvalidValue, McpServerNotAllowed,
        MissingRequiredParameter, StringAboveMaxLength, UnsupportedTool, UnsupportedValue,
    };
    let function = |parameters: Value| {
        json!([{"type": "function", "name": "a"},
               {"type": "function", "name": "b", "parameters": parameters}])
    };
    let mcp = |members: Value| {
        let mut tool = json!({"type": "mcp", "server_label": "air"});
        for (key, value) in members.as_object().unwrap() {
            tool[key] = value.clone();
        }
        json!([tool])
    };
    let search = json!({"type": "tool_search"});
    let mut deep = json!({"type": "string"});
    for _ in 0..70 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    for (tools, code, param) in [
        (json!([{}]), MissingRequiredParameter, "tools[0].type"),
        (
            json!([{"type": "telepathy"}]),
            UnsupportedTool,
            "tools[0].type",
        ),
        (
            json!([{"type": "other:thing"}]),
            UnsupportedTool,
            "tools[0].type",
        ),
        (
            json!([{"type": "openai:function"}]),
            UnsupportedTool,
            "tools[0].type",
        ),
        (json!([{"type": "haft:"}]), UnsupportedTool, "tools[0].type"),
        (
            json!([{"type": "web_search_yesterday"}]),
            UnsupportedTool,
            "tools[0].type",
        ),
        (
            json!([{"type": "function"}]),
            MissingRequiredParameter,
            "tools[0].name",
        ),
        (
            json!([{"type": "function", "name": "a b"}]),
            InvalidValue,
            "tools[0].name",
        ),
        (
            json!([{"type": "function", "name": ""}]),
            InvalidValue,
            "tools[0].name",
        ),
        (
            json!([{"type": "function", "name": "x".repeat(65)}]),
            StringAboveMaxLength,
            "tools[0].name",
        ),
        (
            json!([{"type": "function", "name": "a", "description": 5}]),
            InvalidType,
            "tools[0].description",
        ),
        (
            json!([{"type": "function", "name": "a", "strict": "yes"}]),
            InvalidType,
            "tools[0].strict",
        ),
        (
            json!([{"type": "function", "name": "a", "defer_loading": 1}]),
            InvalidType,
            "tools[0].defer_loading",
        ),
        (
            function(json!([])),
            InvalidFunctionParameters,
            "tools[1].parameters",
        ),
        (
            function(json!("{}")),
            InvalidFunctionParameters,
            "tools[1].parameters",
        ),
        (
            function(json!({"type": "string"})),
            InvalidFunctionParameters,
            "tools[1].parameters",
        ),
        (
            function(json!({"type": "object", "properties": 5})),
            InvalidFunctionParameters,
            "tools[1].parameters",
        ),
        (
            function(json!({"type": "object", "properties": {"a": {"type": "strang"}}})),
            InvalidFunctionParameters,
            "tools[1].parameters",
        ),
        (
            function(json!({"type": "object", "$ref": "https://a/b"})),
            InvalidFunctionParameters,
            "tools[1].parameters",
        ),
        (
            function(deep),
            InvalidFunctionParameters,
            "tools[1].parameters",
        ),
        (
            json!([{"type": "custom", "name": "a", "format": {"type": "xml"}}]),
            InvalidValue,
            "tools[0].format.type",
        ),
        (
            json!([{"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "bnf",
            "definition": "x"}}]),
            InvalidValue,
            "tools[0].format.syntax",
        ),
        (
            json!([{"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "lark"}}]),
            MissingRequiredParameter,
            "tools[0].format.definition",
        ),
        (
            json!([{"type": "namespace", "name": "n"}]),
            MissingRequiredParameter,
            "tools[0].tools",
        ),
        (
            json!([{"type": "namespace", "name": "n", "tools": [{"type": "mcp"}]}]),
            UnsupportedTool,
            "tools[0].tools[0].type",
        ),
        (
            json!([{"type": "namespace", "name": "n", "tools": [
            {"type": "function", "name": "a", "parameters": 1}]}]),
            InvalidFunctionParameters,
            "tools[0].tools[0].parameters",
        ),
        (
            json!([{"type": "tool_search", "execution": "nobody"}]),
            InvalidValue,
            "tools[0].execution",
        ),
        (
            json!([{"type": "tool_search", "defer_loading": true}]),
            InvalidValue,
            "tools[0].defer_loading",
        ),
        (
            json!([{"type": "tool_search", "parameters": {"type": 5}}]),
            InvalidFunctionParameters,
            "tools[0].parameters",
        ),
        (json!([search, search]), DuplicateTool, "tools[1].type"),
        (
            json!([{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]),
            DuplicateTool,
            "tools[1].name",
        ),
        (
            json!([{"type": "function", "name": "a"}, {"type": "custom", "name": "a"}]),
            DuplicateTool,
            "tools[1].name",
        ),
        (
            json!([{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "a"}]},
                {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "a"}]}]),
            DuplicateTool,
            "tools[1].tools[0].name",
        ),
        (
            json!([{"type": "web_search"}, {"type": "openai:web_search"}]),
            DuplicateTool,
            "tools[1].type",
        ),
        (
            json!([{"type": "haft:clock"}, {"type": "haft:clock"}]),
            DuplicateTool,
            "tools[1].type",
        ),
        (
            json!([{"type": "mcp", "server_label": "a"}, {"type": "mcp", "server_label": "a"}]),
            DuplicateTool,
            "tools[1].server_label",
        ),
        (
            json!([{"type": "mcp"}]),
            MissingRequiredParameter,
            "tools[0].server_label",
        ),
        (
            json!([{"type": "mcp", "server_label": "a b"}]),
            InvalidValue,
            "tools[0].server_label",
        ),
        (
            mcp(json!({"connector_id": "c"})),
            UnsupportedValue,
            "tools[0].connector_id",
        ),
        (
            mcp(json!({"tunnel_id": "c"})),
            UnsupportedValue,
            "tools[0].tunnel_id",
        ),
        (
            mcp(json!({"server_url": 5})),
            InvalidType,
            "tools[0].server_url",
        ),
        (
            mcp(json!({"server_url": "no address"})),
            InvalidValue,
            "tools[0].server_url",
        ),
        (
            mcp(json!({"server_url": "/path"})),
            InvalidValue,
            "tools[0].server_url",
        ),
        (
            mcp(json!({"server_url": "https:///x"})),
            InvalidValue,
            "tools[0].server_url",
        ),
        (
            mcp(json!({"server_url": "file:///etc/passwd"})),
            McpServerNotAllowed,
            "tools[0].server_url",
        ),
        (
            mcp(json!({"authorization": 5})),
            InvalidType,
            "tools[0].authorization",
        ),
        (mcp(json!({"headers": []})), InvalidType, "tools[0].headers"),
        (
            mcp(json!({"headers": {"X": 5}})),
            InvalidType,
            "tools[0].headers.X",
        ),
        (
            mcp(json!({"authorization": "t", "headers": {"AUTHORIZATION": "t"}})),
            InvalidValue,
            "tools[0].authorization",
        ),
        (
            mcp(json!({"allowed_tools": "find"})),
            InvalidType,
            "tools[0].allowed_tools",
        ),
        (
            mcp(json!({"allowed_tools": [5]})),
            InvalidType,
            "tools[0].allowed_tools[0]",
        ),
        (
            mcp(json!({"require_approval": "perhaps"})),
            InvalidValue,
            "tools[0].require_approval",
        ),
        (
            mcp(json!({"require_approval": {"never": 5}})),
            InvalidType,
            "tools[0].require_approval.never",
        ),
        (
            mcp(json!({"defer_loading": "x"})),
            InvalidType,
            "tools[0].defer_loading",
        ),
    ] {
        refused(&tools, code, param);
    }
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
        refused(&json!([tool]), ErrorCode::InvalidValue, param);
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
        json!({"type": "mcp", "server_label": "a", "headers": {"X": ["hush"]}}),
        json!({"type": "mcp", "server_label": "a", "authorization": "hush",
            "headers": {"Authorization": "hush"}}),
    ] {
        let error = read(&json!([tool])).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}
