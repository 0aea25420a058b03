//! The entries of `tools`, declared or loaded (`open-responses.md` §5.1).

use std::collections::HashSet;

use haft_core::{check_parameters, cut};
use serde_json::{Map, Value, json};

use super::fields::{Fields, invalid};
use super::forms::{Flag, Form as _, ListOf, Name, Object, Text, Word};
use super::mcp_tool::{cut_domain_secrets, read_mcp};
use super::{Read, Vocabulary};
use crate::error::{ApiError, ErrorCode};
use crate::wire::request::{CustomTool, FunctionTool, RequestTool, RequestToolKind};

/// Types of tools that a server of this API may host.
const HOSTED: [&str; 11] = [
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "programmatic_tool_calling",
    "shell",
    "web_search",
    "web_search_preview",
];

impl RequestTool {
    /// Tools that an item loads. What they say about deferral does not count, as loaded is loaded;
    /// of two with one name the later is meant.
    pub(crate) fn read_list(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<Vec<Self>> {
        let mut tools = read_entries(value, path, words)?;
        tools.iter_mut().for_each(Self::undefer);
        Ok(tools)
    }

    /// The tools of the request itself: each name once, and at most one search.
    pub(super) fn read_declared(
        value: Value,
        path: &str,
        words: &Vocabulary<'_>,
    ) -> Read<Vec<Self>> {
        let tools = read_entries(value, path, words)?;
        let mut seen = HashSet::new();
        for tool in &tools {
            tool.check_new(None, &mut seen)?;
            tool.check_deferrable()?;
        }
        Ok(tools)
    }

    /// Where it says that it, or a tool in it, is deferred.
    pub(super) fn deferred_at(&self) -> Option<String> {
        let is_deferred = match &self.kind {
            RequestToolKind::Function(function) => function.defer_loading,
            RequestToolKind::Custom(custom) => custom.defer_loading,
            RequestToolKind::Mcp(entry) => entry.defer_loading,
            RequestToolKind::Namespace {
                defer_loading,
                tools,
                ..
            } => {
                if !defer_loading {
                    return tools.iter().find_map(Self::deferred_at);
                }
                true
            }
            RequestToolKind::ToolSearch { .. } | RequestToolKind::Hosted { .. } => false,
        };
        is_deferred.then(|| format!("{}.defer_loading", self.param))
    }

    fn undefer(&mut self) {
        match &mut self.kind {
            RequestToolKind::Function(function) => function.defer_loading = false,
            RequestToolKind::Custom(custom) => custom.defer_loading = false,
            RequestToolKind::Mcp(entry) => entry.defer_loading = false,
            RequestToolKind::Namespace {
                defer_loading,
                tools,
                ..
            } => {
                *defer_loading = false;
                tools.iter_mut().for_each(Self::undefer);
            }
            RequestToolKind::ToolSearch { .. } | RequestToolKind::Hosted { .. } => {}
        }
    }

    /// Refuses to hold back what runs here and is known by its type alone.
    fn check_deferrable(&self) -> Read<()> {
        let RequestToolKind::Hosted { tool_type, config } = &self.kind else {
            return Ok(());
        };
        match config.get("defer_loading") {
            None | Some(Value::Null | Value::Bool(false)) => Ok(()),
            Some(_) => {
                let at = format!("{}.defer_loading", self.param);
                let message = format!(
                    "`{at}` is given, but `{}` cannot be deferred: leave it out",
                    cut(tool_type)
                );
                Err(invalid(&at, message))
            }
        }
    }

    /// Refuses a tool whose name was seen already. A namespace may be given in pieces.
    fn check_new<'t>(
        &'t self,
        namespace: Option<&'t str>,
        seen: &mut HashSet<(Option<&'t str>, &'static str, &'t str)>,
    ) -> Read<()> {
        let (kind, name, field) = match &self.kind {
            RequestToolKind::Function(function) => ("", function.name.as_str(), "name"),
            RequestToolKind::Custom(custom) => ("", custom.name.as_str(), "name"),
            RequestToolKind::Namespace { name, tools, .. } => {
                return tools
                    .iter()
                    .try_for_each(|tool| tool.check_new(Some(name), seen));
            }
            RequestToolKind::ToolSearch { .. } => ("hosted", "tool_search", "type"),
            RequestToolKind::Mcp(entry) => ("mcp", entry.label.as_str(), "server_label"),
            RequestToolKind::Hosted { tool_type, .. } => ("hosted", tool_type.as_str(), "type"),
        };
        if seen.insert((namespace, kind, name)) {
            return Ok(());
        }
        let at = format!("{}.{field}", self.param);
        Err(ApiError::new(
            ErrorCode::DuplicateTool,
            format!(
                "`{at}` is `{name}`, like that of an earlier tool: give each its own, or remove one"
            ),
        )
        .at(at))
    }
}

fn read_entries(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<Vec<RequestTool>> {
    ListOf(|value: Value, path: &str| read_tool(value, path, words)).read(value, path)
}

fn read_tool(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<RequestTool> {
    let mut fields = Fields::of(value.clone(), path)?;
    let tool_type = fields.need("type", Text)?;
    let (kind, echo) = match tool_type.as_str() {
        "function" => return function(fields, words),
        "custom" => return custom(fields, value),
        "namespace" => (namespace(fields, words)?, value),
        "tool_search" => (tool_search(fields, words)?, value),
        "mcp" => {
            let (entry, echo) = read_mcp(into_map(value), path)?;
            (RequestToolKind::Mcp(Box::new(entry)), echo)
        }
        other => {
            let bare = other.strip_prefix("openai:").unwrap_or(other);
            if !is_hosted(bare) && !words.knows(other) {
                return Err(unsupported(&fields.at("type"), other));
            }
            let config = into_map(value);
            let mut echo = config.clone();
            cut_domain_secrets(&mut echo);
            let kind = RequestToolKind::Hosted {
                tool_type: bare.to_owned(),
                config,
            };
            (kind, Value::Object(echo))
        }
    };
    Ok(RequestTool {
        param: path.to_owned(),
        echo,
        kind,
    })
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Whether this API knows a hosted tool of this type; some have a date in it.
pub(super) fn is_hosted(tool_type: &str) -> bool {
    let dated = |name: &str| {
        let date = tool_type.strip_prefix(name)?.strip_prefix('_')?;
        (date.len() == 10
            && date
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'_'))
        .then_some(())
    };
    HOSTED.contains(&tool_type)
        || dated("web_search").is_some()
        || dated("web_search_preview").is_some()
}

/// Tools that haft serves by itself, without what stands in front of them in a type.
const OWN: [&str; 3] = ["calculate", "clock", "search_files"];

fn unsupported(path: &str, tool_type: &str) -> ApiError {
    let remedy = if OWN.contains(&tool_type) {
        format!("did you mean `haft:{tool_type}`?")
    } else {
        String::from("remove it")
    };
    ApiError::new(
        ErrorCode::UnsupportedTool,
        format!(
            "`{path}` is `{}`, and nobody here provides such a tool: {remedy}",
            cut(tool_type)
        ),
    )
    .at(path)
}

fn function(mut fields: Fields, words: &Vocabulary<'_>) -> Read<RequestTool> {
    if fields.has("function") && !fields.has("name") {
        let path = fields.at("function");
        let message = format!(
            "`{path}` is the form of Chat Completions; in the Responses API `name`, `description` and \
             `parameters` are members of the tool itself, beside `type`"
        );
        return Err(ApiError::new(ErrorCode::InvalidValue, message).at(&path));
    }
    let name = fields.need("name", Name)?;
    let description = fields.get("description", Text)?;
    let given = fields.take("parameters");
    let strict = fields.get("strict", Flag)?;
    let defer_loading = fields.get("defer_loading", Flag)?;
    let mut echo = json!({
        "type": "function",
        "name": name,
        "description": description,
        "parameters": given,
        "strict": strict.unwrap_or(false),
    });
    if let Some(is_deferred) = defer_loading {
        echo["defer_loading"] = is_deferred.into();
    }
    let parameters = parameters(given, &fields.at("parameters"), &name, words)?;
    Ok(RequestTool {
        param: fields.path().to_owned(),
        echo,
        kind: RequestToolKind::Function(FunctionTool {
            name,
            description,
            parameters,
            strict: strict.unwrap_or(false),
            defer_loading: defer_loading.unwrap_or(false),
        }),
    })
}

/// A schema of arguments. Arguments are always an object, so one that does not say so is told.
pub(crate) fn parameters(
    given: Option<Value>,
    path: &str,
    name: &str,
    words: &Vocabulary<'_>,
) -> Read<Value> {
    let refuse = |reason: String| {
        ApiError::new(
            ErrorCode::InvalidFunctionParameters,
            format!("`{path}` is no usable JSON schema: {reason}"),
        )
        .at(path)
    };
    let mut schema = given.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let Value::Object(members) = &mut schema else {
        return Err(refuse(String::from("it must be an object")));
    };
    if members.get("type").is_none_or(Value::is_null) {
        members.insert(String::from("type"), "object".into());
    }
    check_parameters(name, &schema).map_err(|error| refuse(error.to_string()))?;
    words
        .schemas
        .compile(&schema)
        .map_err(|error| refuse(error.reason))?;
    Ok(schema)
}

fn custom(mut fields: Fields, echo: Value) -> Read<RequestTool> {
    Ok(RequestTool {
        param: fields.path().to_owned(),
        echo,
        kind: RequestToolKind::Custom(CustomTool {
            name: fields.need("name", Name)?,
            description: fields.get("description", Text)?,
            grammar: fields.get("format", grammar)?.flatten(),
            defer_loading: fields.get("defer_loading", Flag)?.unwrap_or(false),
        }),
    })
}

fn grammar(value: Value, path: &str) -> Read<Option<(String, String)>> {
    let mut fields = Object.read(value, path)?;
    if fields.need("type", Word(&["text", "grammar"]))? == "text" {
        return Ok(None);
    }
    let syntax = fields.need("syntax", Word(&["lark", "regex"]))?;
    let definition = fields.need("definition", Text)?;
    Ok(Some((syntax.to_owned(), definition)))
}

fn namespace(mut fields: Fields, words: &Vocabulary<'_>) -> Read<RequestToolKind> {
    let inner = |value: Value, path: &str| {
        let mut fields = Fields::of(value.clone(), path)?;
        match fields.need("type", Text)?.as_str() {
            "function" => function(fields, words),
            "custom" => custom(fields, value),
            other => Err(ApiError::new(
                ErrorCode::UnsupportedTool,
                format!(
                    "`{path}` is a tool of type `{}`, but a namespace holds functions and custom \
                     tools only: move it out",
                    cut(other)
                ),
            )
            .at(fields.at("type"))),
        }
    };
    Ok(RequestToolKind::Namespace {
        name: fields.need("name", Name)?,
        description: fields.get("description", Text)?,
        defer_loading: fields.get("defer_loading", Flag)?.unwrap_or(false),
        tools: fields.need("tools", ListOf(inner))?,
    })
}

fn tool_search(mut fields: Fields, words: &Vocabulary<'_>) -> Read<RequestToolKind> {
    if fields.get("defer_loading", Flag)? == Some(true) {
        let at = fields.at("defer_loading");
        return Err(invalid(
            &at,
            format!("`{at}` is true, but the search itself cannot be deferred: leave it out"),
        ));
    }
    let at = fields.at("parameters");
    Ok(RequestToolKind::ToolSearch {
        is_client: fields.get("execution", Word(&["server", "client"]))? == Some("client"),
        description: fields.get("description", Text)?,
        parameters: match fields.take("parameters") {
            None => None,
            given => Some(parameters(given, &at, "tool_search", words)?),
        },
    })
}
