//! The definition of a server's tool.
//!
//! Tools are read one by one. Harmless mistakes are repaired with a diagnostic; a tool that cannot be used
//! is left out alone, with a diagnostic.

use std::fmt;
use std::sync::Arc;

use haft_core::{NoSchemaMode, cut};
use serde_json::{Map, Value};

use crate::header::check_header_annotations;
use crate::schema_repair;
use crate::schema_text::clean_schema;
use crate::text::visible;

/// The longest name that is believed to be one.
const MAX_RAW_NAME_BYTES: usize = 1024;

/// A tool as its server describes it, made harmless: nothing in its prose is hidden.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDef {
    /// The name on the wire, exactly as the server wrote it.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// What it takes. Without one it is only here because the operator said what it may do.
    pub input_schema: Result<Arc<Value>, NoSchemaMode>,
    /// What it gives as structured content.
    pub output_schema: Option<Arc<Value>>,
    /// What the server says about it. To be believed only if the server is trusted.
    pub hints: ToolHints,
    /// What else the server attached.
    pub meta: Option<Map<String, Value>>,
}

/// What a server says about a tool's behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolHints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice does no more than calling it once.
    pub idempotent: Option<bool>,
    /// It reaches out of its own system.
    pub open_world: Option<bool>,
}

/// Something about a server's list that was not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The raw name of the tool, where it is about one; cut and made visible.
    pub tool: Option<String>,
    /// Whether the tool was left out.
    pub is_left_out: bool,
    /// What was wrong.
    pub problem: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.tool, self.is_left_out) {
            (Some(tool), true) => write!(f, "tool `{tool}` is left out: {}", self.problem),
            (Some(tool), false) => write!(f, "tool `{tool}`: {}", self.problem),
            (None, true) => write!(f, "a tool is left out: {}", self.problem),
            (None, false) => f.write_str(&self.problem),
        }
    }
}

/// How tools are read.
pub(crate) struct ToolReader<'a> {
    /// Whether arguments become headers, so that what says how must be right.
    pub(crate) mirrors: bool,
    /// What the operator lets a tool of this name do without a schema.
    pub(crate) no_schema: &'a dyn Fn(&str) -> Option<NoSchemaMode>,
}

impl ToolReader<'_> {
    /// Reads one tool; none if it cannot be used.
    pub(crate) fn read(&self, value: &Value, notes: &mut Vec<Diagnostic>) -> Option<ToolDef> {
        let left_out = |tool: Option<&str>, problem: String| Diagnostic {
            tool: tool.map(shown),
            is_left_out: true,
            problem,
        };
        let name = match name_of(value) {
            Ok(name) => name,
            Err(problem) => {
                notes.push(left_out(None, problem));
                return None;
            }
        };
        let mut problems = Vec::new();
        match self.definition(&name, value, &mut problems) {
            Ok(tool) => {
                let about = |problem| Diagnostic {
                    tool: Some(shown(&name)),
                    is_left_out: false,
                    problem,
                };
                notes.extend(problems.into_iter().map(about));
                Some(tool)
            }
            Err(problem) => {
                notes.push(left_out(Some(&name), problem));
                None
            }
        }
    }

    fn definition(
        &self,
        name: &str,
        value: &Value,
        problems: &mut Vec<String>,
    ) -> Result<ToolDef, String> {
        let annotations = value.get("annotations").unwrap_or(&Value::Null);
        for key in ["annotations", "_meta"] {
            let is_object = value
                .get(key)
                .is_none_or(|it| it.is_object() || it.is_null());
            if !is_object {
                problems.push(format!("`{key}` is not an object and is ignored"));
            }
        }
        let title = text(value, "title", problems).or_else(|| text(annotations, "title", problems));
        Ok(ToolDef {
            name: name.to_owned(),
            title,
            description: text(value, "description", problems),
            input_schema: self.input_schema(name, value, problems)?,
            output_schema: output_schema(value, problems),
            hints: hints(annotations, problems),
            meta: value.get("_meta").and_then(Value::as_object).cloned(),
        })
    }

    fn input_schema(
        &self,
        name: &str,
        value: &Value,
        problems: &mut Vec<String>,
    ) -> Result<Result<Arc<Value>, NoSchemaMode>, String> {
        let schema = match value.get("inputSchema") {
            None | Some(Value::Null) => {
                let mode = (self.no_schema)(name);
                return mode.map(Err).ok_or_else(|| {
                    "it has no `inputSchema`; set `no_schema_mode` for it to use it all the same".into()
                });
            }
            Some(schema) => schema.clone(),
        };
        let mut schema = schema_repair::input_schema(schema, problems)?;
        clean_schema(&mut schema, problems)?;
        if self.mirrors {
            check_header_annotations(&schema)?;
        }
        Ok(Ok(Arc::new(schema)))
    }
}

/// A name as it is shown in messages.
fn shown(name: &str) -> String {
    cut(&visible(name))
}

fn name_of(value: &Value) -> Result<String, String> {
    let object = value.as_object().ok_or("it is no object")?;
    match object.get("name") {
        Some(Value::String(name)) if name.is_empty() => Err("its name is empty".into()),
        Some(Value::String(name)) if name.len() > MAX_RAW_NAME_BYTES => Err(format!(
            "its name has {} bytes: `{}`",
            name.len(),
            shown(name)
        )),
        Some(Value::String(name)) => Ok(name.clone()),
        Some(_) => Err("its name is no text".into()),
        None => Err("it has no name".into()),
    }
}

fn text(value: &Value, key: &str, problems: &mut Vec<String>) -> Option<String> {
    match value.get(key)? {
        Value::String(text) => Some(visible(text)).filter(|text| !text.trim().is_empty()),
        Value::Null => None,
        _ => {
            problems.push(format!("`{key}` is no text and is ignored"));
            None
        }
    }
}

fn hints(annotations: &Value, problems: &mut Vec<String>) -> ToolHints {
    let mut flag = |key: &str| match annotations.get(key)? {
        Value::Bool(flag) => Some(*flag),
        Value::Null => None,
        _ => {
            problems.push(format!(
                "`annotations.{key}` is neither true nor false and is ignored"
            ));
            None
        }
    };
    ToolHints {
        read_only: flag("readOnlyHint"),
        destructive: flag("destructiveHint"),
        idempotent: flag("idempotentHint"),
        open_world: flag("openWorldHint"),
    }
}

fn output_schema(value: &Value, problems: &mut Vec<String>) -> Option<Arc<Value>> {
    let schema = value
        .get("outputSchema")
        .filter(|schema| !schema.is_null())?;
    let mut repairs = Vec::new();
    let mut usable = schema_repair::output_schema(schema.clone(), &mut repairs);
    if let Ok(schema) = &mut usable {
        usable = clean_schema(schema, &mut repairs).map(|()| schema.take());
    }
    match usable {
        Ok(schema) => {
            let of_output = |repair| format!("`outputSchema`: {repair}");
            problems.extend(repairs.into_iter().map(of_output));
            Some(Arc::new(schema))
        }
        Err(problem) => {
            problems.push(format!("`outputSchema` is ignored: {problem}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> (Option<ToolDef>, Vec<String>) {
        let reader = ToolReader {
            mirrors: true,
            no_schema: &|name| (name == "opted_in").then_some(NoSchemaMode::HumanApproval),
        };
        let mut notes = Vec::new();
        let tool = reader.read(value, &mut notes);
        (tool, notes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_good_tool_is_read_whole_and_without_a_note() {
        let (tool, notes) = read(&json!({
            "name": "read.file", "title": "Read", "description": "Reads a\u{200b} file.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "Where\u{202e}."}}},
            "outputSchema": {"type": "array"},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
            "icons": "x", "_meta": {"a": 1}, "unknown": [],
        }));
        let tool = tool.unwrap();
        assert_eq!(notes, [""; 0]);
        assert_eq!(tool.name, "read.file");
        assert_eq!(tool.description.as_deref(), Some("Reads a file."));
        assert_eq!(
            tool.input_schema.unwrap()["properties"]["path"]["description"],
            "Where."
        );
        assert_eq!(*tool.output_schema.unwrap(), json!({"type": "array"}));
        assert_eq!(tool.hints.read_only, Some(true));
        assert_eq!(tool.hints.open_world, Some(false));
        assert_eq!(tool.hints.destructive, None);
    }

    #[test]
    fn harmless_mistakes_cost_only_themselves() {
        let (tool, notes) = read(&json!({
            "name": "t", "inputSchema": true, "description": 7, "outputSchema": "x",
            "annotations": {"readOnlyHint": "true", "title": "From the annotations"},
        }));
        let tool = tool.unwrap();
        assert_eq!(*tool.input_schema.unwrap(), json!({"type": "object"}));
        assert_eq!(tool.title.as_deref(), Some("From the annotations"));
        assert_eq!(tool.hints, ToolHints::default());
        assert_eq!(
            notes,
            [
                "tool `t`: `description` is no text and is ignored",
                "tool `t`: `inputSchema` is `true`, read as any object",
                "tool `t`: `outputSchema` is ignored: it is not an object",
                "tool `t`: `annotations.readOnlyHint` is neither true nor false and is ignored",
            ]
        );
        let (tool, _) = read(&json!({"name": "t", "inputSchema": {"properties": {}}}));
        assert_eq!(
            tool.unwrap().input_schema.unwrap().to_string(),
            r#"{"type":"object","properties":{}}"#
        );
    }

    #[test]
    fn what_cannot_be_used_is_left_out_with_a_reason() {
        let mut deep = json!({"type": "string"});
        for _ in 0..200 {
            deep = json!({"type": "object", "properties": {"x": deep}});
        }
        for (tool, expected) in [
            (json!(3), "a tool is left out: it is no object"),
            (json!({}), "a tool is left out: it has no name"),
            (json!({"name": ""}), "a tool is left out: its name is empty"),
            (
                json!({"name": 1}),
                "a tool is left out: its name is no text",
            ),
            (
                json!({"name": "t"}),
                "tool `t` is left out: it has no `inputSchema`; set `no_schema_mode` for it to use it all the same",
            ),
            (
                json!({"name": "t", "inputSchema": null}),
                "tool `t` is left out: it has no `inputSchema`; set `no_schema_mode` for it to use it all the same",
            ),
            (
                json!({"name": "t", "inputSchema": [1]}),
                "tool `t` is left out: `inputSchema` is not a schema",
            ),
            (
                json!({"name": "t", "inputSchema": {"type": "string"}}),
                "tool `t` is left out: `inputSchema` is not of type `object` but `string`",
            ),
            (
                json!({"name": "t", "inputSchema": deep}),
                "tool `t` is left out: its schema cannot be used: it is nested deeper than 128",
            ),
        ] {
            let (read, notes) = read(&tool);
            assert_eq!(read, None);
            assert_eq!(notes, [expected]);
        }
    }

    #[test]
    fn a_tool_without_schema_comes_in_only_by_name() {
        let (tool, _) = read(&json!({"name": "opted_in"}));
        assert_eq!(tool.unwrap().input_schema, Err(NoSchemaMode::HumanApproval));
    }

    #[test]
    fn data_keeps_its_bytes_and_prose_loses_what_deceives() {
        let (tool, notes) = read(&json!({
            "name": "t",
            "inputSchema": {"type": "object", "properties": {
                "mood 👩\u{200d}💻": {"enum": ["👨\u{200d}👩\u{200d}👧", "می\u{200c}خواهم", "❤\u{fe0f}"], "default": "❤\u{fe0f}"},
                "b": {"enum": ["a\u{e0041}"], "description": "tag\u{e0041} 👩\u{200d}💻", "x-note": "zero\u{200b}width"},
                "\u{200b}p": {"const": "c"},
            }},
        }));
        let schema = tool.unwrap().input_schema.unwrap();
        let properties = &schema["properties"];
        assert_eq!(
            properties["mood 👩\u{200d}💻"]["enum"],
            json!(["👨\u{200d}👩\u{200d}👧", "می\u{200c}خواهم", "❤\u{fe0f}"])
        );
        assert_eq!(
            properties["b"],
            json!({"enum": ["a\u{e0041}"], "description": "tag 👩\u{200d}💻", "x-note": "zerowidth"})
        );
        assert_eq!(properties["\u{200b}p"], json!({"const": "c"}));
        assert_eq!(
            notes,
            [
                "tool `t`: a value in its schema has invisible characters, which are kept: `a`",
                "tool `t`: a name in its schema has invisible characters, which are kept: `p`",
            ]
        );
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "says why nothing was tested")]
    fn definitions_of_real_servers_stay_as_they_are() {
        let beside = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
        let folder = std::env::var_os("HAFT_SHARED").map_or(beside, Into::into);
        let Ok(files) = std::fs::read_dir(folder.join("data/mcp-tooldefs")) else {
            return eprintln!("skipped: no corpus of tools; set `HAFT_SHARED` to where `data` is");
        };
        let mut count = 0;
        for file in files.flatten().map(|it| it.path()) {
            if file.extension().is_none_or(|it| it != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            for tool in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
                let (read, notes) = read(&tool);
                let read = read.unwrap_or_else(|| panic!("{tool}: {notes:?}"));
                assert_eq!(notes, [""; 0], "{tool}");
                assert_eq!(*read.input_schema.unwrap(), tool["inputSchema"]);
                assert_eq!(read.output_schema.as_deref(), tool.get("outputSchema"));
                count += 1;
            }
        }
        assert!(count > 100, "{count}");
    }
}
