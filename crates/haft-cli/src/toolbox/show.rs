//! `haft tools show`.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use haft::{ToolDefinition, ToolKind, Value};
use owo_colors::OwoColorize;

use super::{Held, Toolbox, json_of, type_of};
use crate::arguments::ShowToolArguments;
use crate::terminal::print_json;
use crate::text::{one_line, printable, spoken};

/// How much of a description is shown in a table.
const SHOWN_CHARS: usize = 200;

pub(super) async fn show(arguments: &ShowToolArguments) -> Result<ExitCode, Box<dyn Error>> {
    let toolbox = Toolbox::open(&arguments.from, &arguments.scripts).await?;
    let toolbox = toolbox.with_tools_of(Some(&arguments.name)).await?;
    toolbox.close().await;
    let tool = toolbox.find(&arguments.name)?;
    let held = toolbox.holding().tool(&tool);
    if arguments.json {
        print_json(&json_of(&tool, &held))?;
    } else {
        let mut out = anstream::stdout().lock();
        page(&mut out, &tool, &held, toolbox.options.tool_timeout)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn page(
    out: &mut impl Write,
    tool: &ToolDefinition,
    held: &Held,
    usual: Duration,
) -> io::Result<()> {
    writeln!(out, "{}", tool.name().as_str().bold())?;
    let description = printable(
        tool.description()
            .unwrap_or("It says nothing about itself."),
    );
    for line in description.trim().lines() {
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    writeln!(out)?;
    let mut field = |label: &str, text: &str| {
        let text = one_line(text, SHOWN_CHARS);
        writeln!(out, "  {:<12}{text}", label.dimmed())
    };
    field("type", &type_of(tool))?;
    field("runs", &runs(tool.kind()))?;
    let shown = if held.is_held {
        "held back until the model finds it"
    } else {
        "in every request"
    };
    field("shown", &format!("{shown}: {}", held.because))?;
    let annotations = tool.annotations();
    let says = [
        (annotations.read_only, "changes nothing"),
        (annotations.destructive, "may destroy something"),
        (annotations.idempotent, "twice does no more than once"),
        (annotations.open_world, "reaches out of this system"),
        (annotations.sequential, "never runs beside another call"),
    ];
    let says: Vec<_> = says.iter().filter(|it| it.0).map(|it| it.1).collect();
    if !says.is_empty() {
        field("says", &says.join(", "))?;
    }
    let timeout = annotations.timeout_ms.map(Duration::from_millis);
    let timeout = match timeout {
        Some(own) => spoken(own),
        None => format!("{}, as `tool_timeout` of `[loop]` says", spoken(usual)),
    };
    field("timeout", &timeout)?;
    if !annotations.tags.is_empty() {
        field("tags", &annotations.tags.join(", "))?;
    }
    parameters(out, tool.parameters())?;
    for example in &annotations.examples {
        writeln!(out, "\n{}", "example".dimmed())?;
        writeln!(out, "  {}", printable(&example.input.to_string()))?;
    }
    for (heading, schema) in [
        ("schema of the arguments", tool.parameters()),
        ("schema of the result", tool.output_schema()),
    ] {
        if let Some(schema) = schema {
            writeln!(out, "\n{}", heading.dimmed())?;
            let json = serde_json::to_string_pretty(schema)?;
            writeln!(out, "  {}", printable(&json).replace('\n', "\n  "))?;
        }
    }
    Ok(())
}

fn runs(kind: &ToolKind) -> String {
    match kind {
        ToolKind::Function => String::from("with the caller"),
        ToolKind::Mcp => String::from("on an MCP server"),
        ToolKind::Internal => String::from("in this process"),
        other => other.to_string(),
    }
}

/// The parameters as a table.
fn parameters(out: &mut impl Write, schema: Option<&Value>) -> io::Result<()> {
    let members = schema.and_then(|schema| schema["properties"].as_object());
    writeln!(out, "\n{}", "arguments".dimmed())?;
    let Some(members) = members.filter(|members| !members.is_empty()) else {
        return writeln!(out, "  none");
    };
    let required = schema.and_then(|schema| schema["required"].as_array());
    let widest = members.keys().map(|name| name.chars().count()).max();
    let width = widest.unwrap_or(0).min(32);
    for (name, member) in members {
        let is_needed = required.is_some_and(|it| it.iter().any(|it| it == name));
        let mut form = form_of(member);
        if is_needed {
            form.push_str(", needed");
        } else if let Some(default) = member.get("default").filter(|it| !it.is_null()) {
            form = format!("{form}, {default} if not given");
        }
        let name = format!("{:<width$}", one_line(name, 64));
        writeln!(out, "  {}  {}", name.cyan(), one_line(&form, SHOWN_CHARS))?;
        if let Some(text) = member["description"].as_str() {
            let text = one_line(text, SHOWN_CHARS);
            writeln!(out, "  {:width$}  {}", "", text.dimmed())?;
        }
    }
    Ok(())
}

/// What a value must be, in a few words.
fn form_of(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(Value::to_string).collect();
        return format!("one of {}", values.join(", "));
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    for members in ["anyOf", "oneOf"] {
        if let Some(forms) = schema[members].as_array() {
            let forms: Vec<_> = forms.iter().map(form_of).collect();
            return forms.join(" or ");
        }
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let form = match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", form_of(&schema["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<_> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => String::from("anything"),
    };
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!("{form}, {least} to {most}"),
        (Some(least), None) => format!("{form}, at least {least}"),
        (None, Some(most)) => format!("{form}, at most {most}"),
        (None, None) => form,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft::json;

    #[test]
    fn schemas_are_told_in_a_few_words() {
        for (schema, form) in [
            (json!({"type": "string"}), "string"),
            (
                json!({"type": ["integer", "null"], "minimum": 1, "maximum": 50}),
                "integer or null, 1 to 50",
            ),
            (
                json!({"type": "array", "items": {"type": "number"}}),
                "list of number",
            ),
            (json!({"enum": ["a", 1]}), "one of \"a\", 1"),
            (
                json!({"anyOf": [{"$ref": "#/$defs/Unit"}, {"type": "null"}]}),
                "Unit or null",
            ),
            (
                json!({"type": "integer", "minimum": 0}),
                "integer, at least 0",
            ),
            (json!(true), "anything"),
        ] {
            assert_eq!(form_of(&schema), form);
        }
    }
}
