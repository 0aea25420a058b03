//! Three stable tools in front of all others, for clients that cannot hold back definitions.
//!
//! The list never changes as a side effect of a search: found tools are called through `call_tool`, not
//! added to the list.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use haft_core::brief_of;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::outcome::CallOutcome;
use super::overview;
use super::search::Search;
use super::tool::ListedTool;
use super::view::View;
use crate::pool::ServerStatus;

pub(super) const SEARCH: &str = "search_tools";
pub(super) const DESCRIBE: &str = "describe_tool";
pub(super) const CALL: &str = "call_tool";

/// How many tools a search gives if nobody says, and at most.
const LIMIT: usize = 8;
const MAX_LIMIT: usize = 25;
/// How many tools are described at once.
const MAX_DESCRIBED: usize = 10;
/// How much of a query is read.
const MAX_QUERY_CHARS: usize = 1_000;
/// How many near names help.
const SUGGESTIONS: usize = 3;

/// The three tools without the names of the servers.
static TOOLS: LazyLock<[Arc<ListedTool>; 3]> = LazyLock::new(|| {
    let tool = |name: &str, description: &str, schema: Value, annotations: Value| {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let tool = ListedTool::new(name, object(schema)).described(description);
        Arc::new(tool.annotated(object(annotations)))
    };
    [
        tool(
            SEARCH,
            "Finds tools by what they do or by name. Many more tools exist than are listed: search here first. \
             Then read what a tool takes with `describe_tool` and run it with `call_tool`.",
            json!({
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "What one step needs, as verb, object and system, or the name of a tool. \
                            Search once per step; do not paste a whole request"
                    },
                    "server": {"type": "string", "description": "Only tools of this server"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT},
                    "detail": {
                        "type": "string",
                        "enum": ["names", "brief", "full"],
                        "default": "brief",
                        "description": "`full` includes the schemas"
                    }
                },
                "required": ["query"],
                "additionalProperties": false
            }),
            json!({"readOnlyHint": true, "openWorldHint": false}),
        ),
        tool(
            DESCRIBE,
            "Describes tools in full, with the schemas of what they take and give.",
            json!({
                "type": "object",
                "properties": {
                    "names": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "maxItems": MAX_DESCRIBED
                    }
                },
                "required": ["names"],
                "additionalProperties": false
            }),
            json!({"readOnlyHint": true, "openWorldHint": false}),
        ),
        tool(
            CALL,
            "Runs a tool that `search_tools` found, and gives its result.",
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "arguments": {"type": "object", "description": "As `describe_tool` says"}
                },
                "required": ["name"],
                "additionalProperties": false
            }),
            json!({}),
        ),
    ]
});

/// The three tools as they are listed: the first names the servers, so that a model knows what can be found.
pub(super) fn tools(servers: &[ServerStatus]) -> [Arc<ListedTool>; 3] {
    let mut tools = TOOLS.clone();
    let names = overview::for_description(servers);
    if !names.is_empty() {
        let search = Arc::make_mut(&mut tools[0]);
        search.description.get_or_insert_default().push_str(&names);
    }
    tools
}

/// One of the three.
pub(super) fn find(name: &str) -> Option<&'static Arc<ListedTool>> {
    TOOLS.iter().find(|tool| tool.name == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    server: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    detail: Detail,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Detail {
    Names,
    #[default]
    Brief,
    Full,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribeArguments {
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallArguments {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Reads arguments; what is wrong with them is for the model.
fn read<T: DeserializeOwned>(tool: &str, arguments: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| format!("invalid arguments for `{tool}`: {error}"))
}

/// `search_tools`
pub(super) fn search(
    arguments: Map<String, Value>,
    tools: &[Arc<ListedTool>],
    servers: &[ServerStatus],
    search: &dyn Search,
) -> CallOutcome {
    let wanted: SearchArguments = match read(SEARCH, arguments) {
        Ok(wanted) => wanted,
        Err(text) => return CallOutcome::error(text),
    };
    let chosen: Vec<Arc<ListedTool>> = match &wanted.server {
        None => tools.to_vec(),
        Some(server) => {
            let of_server = |tool: &&Arc<ListedTool>| tool.server.as_ref() == Some(server);
            let chosen: Vec<_> = tools.iter().filter(of_server).cloned().collect();
            if chosen.is_empty() {
                return without_tools(server, tools, servers);
            }
            chosen
        }
    };
    let limit = wanted.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let text = format!("`limit` is {limit}: ask for 1 to {MAX_LIMIT} tools");
        return CallOutcome::error(text);
    }
    if wanted.query.chars().nth(MAX_QUERY_CHARS).is_some() {
        let text = format!(
            "`query` is longer than {MAX_QUERY_CHARS} characters: say in a few words what the tool should do"
        );
        return CallOutcome::error(text);
    }
    // One more than is shown tells whether there are more.
    let places = search.search(&wanted.query, &chosen, limit + 1);
    let has_more = places.len() > limit;
    let found: Vec<&ListedTool> = places
        .into_iter()
        .filter_map(|at| chosen.get(at).map(Arc::as_ref))
        .take(limit)
        .collect();
    let structured: Vec<Value> = found.iter().map(|it| entry(it, wanted.detail)).collect();
    let mut structured = json!({"tools": structured, "total": chosen.len()});
    if has_more {
        structured["has_more"] = true.into();
    }
    overview::add_problems(&mut structured, servers);
    let problems = overview::problems(servers);
    if found.is_empty() {
        let mut text = format!(
            "nothing among {} tools fits; say it in other words. {}",
            chosen.len(),
            capitalised(&labels(tools, servers))
        );
        if !problems.is_empty() {
            let _ = write!(text, "\n{problems}");
        }
        return CallOutcome::text(text).with_structured(structured);
    }
    let mut lines: Vec<String> = found.iter().map(|it| line(it, wanted.detail)).collect();
    if has_more {
        lines.push(format!(
            "More tools fit than these {limit}: say more exactly what is needed, or raise `limit` (at most {MAX_LIMIT})."
        ));
    }
    if !problems.is_empty() {
        lines.push(problems);
    }
    let blank = if matches!(wanted.detail, Detail::Full) {
        "\n\n"
    } else {
        "\n"
    };
    CallOutcome::text(lines.join(blank)).with_structured(structured)
}

/// The answer to a search in a server that has no tools: why, if that is known.
fn without_tools(label: &str, tools: &[Arc<ListedTool>], servers: &[ServerStatus]) -> CallOutcome {
    let Some(server) = servers.iter().find(|it| it.label == label) else {
        let label: String = label.chars().take(100).collect();
        let labels = labels(tools, servers);
        return CallOutcome::error(format!("no tools of server `{label}`; {labels}"));
    };
    let only = std::slice::from_ref(server);
    let mut structured = json!({"tools": [], "total": 0});
    overview::add_problems(&mut structured, only);
    let mut text = format!("no tools of server `{label}`");
    let problems = overview::problems(only);
    if !problems.is_empty() {
        let _ = write!(text, ". {problems}");
    }
    CallOutcome::error(text).with_structured(structured)
}

/// `describe_tool`: plain text, which every client shows to its model.
pub(super) fn describe(arguments: Map<String, Value>, view: &View) -> CallOutcome {
    let wanted: DescribeArguments = match read(DESCRIBE, arguments) {
        Ok(wanted) => wanted,
        Err(text) => return CallOutcome::error(text),
    };
    let count = wanted.names.len();
    if count == 0 || count > MAX_DESCRIBED {
        return CallOutcome::error(format!(
            "invalid arguments for `{DESCRIBE}`: `names` takes 1 to {MAX_DESCRIBED} names, not {count}"
        ));
    }
    let mut known = 0;
    let texts: Vec<String> = wanted
        .names
        .iter()
        .map(|name| {
            if let Some(tool) = view.get(name) {
                known += 1;
                in_full(tool)
            } else {
                unknown(name, &view.tools)
            }
        })
        .collect();
    let outcome = CallOutcome::text(texts.join("\n\n"));
    CallOutcome {
        is_error: known == 0,
        ..outcome
    }
}

/// The tool that `call_tool` is to call, and with what.
pub(super) fn target(
    arguments: Map<String, Value>,
) -> Result<(String, Map<String, Value>), String> {
    let wanted: CallArguments = read(CALL, arguments)?;
    let arguments = match wanted.arguments {
        Value::Null => Map::new(),
        Value::Object(arguments) => arguments,
        // Some models write the arguments of an inner call as they write those of a call: as a string.
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => serde_json::from_str(&text).map_err(|error| {
            format!(
                "invalid arguments for `{CALL}`: `arguments` is a string that holds no JSON object \
                 ({error}); pass an object"
            )
        })?,
        _ => {
            return Err(format!(
                "invalid arguments for `{CALL}`: `arguments` must be an object"
            ));
        }
    };
    Ok((wanted.name, arguments))
}

/// What to say about a name that no tool has.
pub(super) fn unknown(name: &str, tools: &[Arc<ListedTool>]) -> String {
    let near = near(name, tools);
    let hint = if near.is_empty() {
        String::new()
    } else {
        let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
        format!(" did you mean {}?", quoted.join(" or "))
    };
    let name: String = name.chars().take(100).collect();
    format!("unknown tool `{name}`;{hint} `{SEARCH}` finds tools by what they do")
}

/// The names most like it, the best first.
fn near<'t>(wanted: &str, tools: &'t [Arc<ListedTool>]) -> Vec<&'t str> {
    let wanted: String = wanted.chars().take(100).collect::<String>().to_lowercase();
    // The label in front is the same for many; how much may differ is up to what follows it.
    let own = wanted.rsplit("__").next().unwrap_or_default();
    let tolerance = (own.chars().count() / 3).max(2);
    let mut found: Vec<(usize, &str)> = tools
        .iter()
        .filter_map(|tool| {
            let name = tool.name.to_lowercase();
            let distance = strsim::osa_distance(&wanted, &name);
            // `read` for `files__read`: a part of the name is as good as a slip of the pen.
            let is_part = wanted.len() >= 3 && name.contains(&wanted);
            let distance = if is_part {
                distance.min(tolerance)
            } else {
                distance
            };
            (distance <= tolerance).then_some((distance, tool.name.as_str()))
        })
        .collect();
    found.sort_by_key(|&(distance, _)| distance);
    found.truncate(SUGGESTIONS);
    found.into_iter().map(|(_, name)| name).collect()
}

/// The labels of all servers, those without tools too.
fn labels(tools: &[Arc<ListedTool>], servers: &[ServerStatus]) -> String {
    let mut labels: Vec<&str> = servers.iter().map(|it| it.label.as_str()).collect();
    for label in tools.iter().filter_map(|tool| tool.server.as_deref()) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    if labels.is_empty() {
        return "there are no servers, only tools of haft itself".into();
    }
    format!("the servers are: {}", labels.join(", "))
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

fn summary(tool: &ListedTool) -> String {
    let text = tool.description.as_deref().or(tool.title.as_deref());
    brief_of(text.unwrap_or_default())
}

/// A found tool for programs.
fn entry(tool: &ListedTool, detail: Detail) -> Value {
    let mut entry = json!({"name": tool.name});
    if let Some(server) = &tool.server {
        entry["server"] = json!(server);
    }
    match detail {
        Detail::Names => {}
        Detail::Brief => entry["summary"] = json!(summary(tool)),
        Detail::Full => {
            entry["description"] = json!(tool.description);
            entry["inputSchema"] = Value::Object((*tool.input_schema).clone());
            if let Some(schema) = &tool.output_schema {
                entry["outputSchema"] = Value::Object((**schema).clone());
            }
        }
    }
    entry
}

/// A found tool for the model.
fn line(tool: &ListedTool, detail: Detail) -> String {
    match detail {
        Detail::Names => tool.name.clone(),
        Detail::Full => in_full(tool),
        Detail::Brief => {
            let mut line = tool.name.clone();
            if let Some(server) = &tool.server {
                let _ = write!(line, " ({server})");
            }
            let summary = summary(tool);
            if !summary.is_empty() {
                let _ = write!(line, ": {summary}");
            }
            line
        }
    }
}

fn in_full(tool: &ListedTool) -> String {
    let mut text = format!("# {}\n", tool.name);
    if let Some(server) = &tool.server {
        let _ = writeln!(text, "Server: {server}");
    }
    if let Some(description) = &tool.description {
        let _ = writeln!(text, "{}", description.trim());
    }
    let json = |schema: &Map<String, Value>| json!(schema).to_string();
    let _ = write!(text, "Input schema: {}", json(&tool.input_schema));
    if let Some(schema) = &tool.output_schema {
        let _ = write!(text, "\nOutput schema: {}", json(schema));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_definitions_are_small() {
        let server = |n| {
            let mut server = ServerStatus::unusable(format!("server-{n}"), "");
            server.description = Some("What this server is for, in many words. ".repeat(9));
            server
        };
        let servers: Vec<_> = (0..30).map(server).collect();
        for (servers, limit) in [(&[][..], 2_000), (&servers, 2_450)] {
            let bytes: usize = tools(servers).iter().map(|tool| tool.weight()).sum();
            // 700 tokens are the bound; a token of such text has well over three bytes and a half.
            assert!(bytes < limit, "{bytes} bytes");
        }
    }

    #[test]
    fn a_slip_of_the_pen_finds_the_name() {
        let tool = |name: &str| Arc::new(ListedTool::new(name, Map::new()));
        let tools = [tool("get_weather"), tool("files__read"), tool("ping")];
        assert_eq!(near("get_wether", &tools), ["get_weather"]);
        assert_eq!(near("read", &tools), ["files__read"]);
        assert!(near("something_else_entirely", &tools).is_empty());
        assert!(near("files__what", &tools).is_empty());
        assert_eq!(
            unknown("Pong", &tools),
            "unknown tool `Pong`; did you mean `ping`? `search_tools` finds tools by what they do"
        );
    }
}
