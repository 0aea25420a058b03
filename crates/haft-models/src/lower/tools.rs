//! A request's tools, each lowered and serialised once.
//!
//! What comes in: the tools of a request and the form in which a provider wants them. What goes
//! out: the bytes of the list, and for each tool how to undo its lowering. The bytes are kept with
//! the tools, so that the next request with the same ones costs nothing.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use haft_core::{Loading, RenderKey, ToolDefinition, ToolSpec, ToolSpecs};
use serde_json::{Value, json};

use super::schema::{Dropped, Lowered, Profile, clean_text, lower, shorten};

/// How a provider wants its tools.
#[derive(Debug, Clone, Copy)]
pub struct ToolForm {
    /// What the rendering is kept under: one per form.
    pub key: RenderKey,
    /// The rules for schemas.
    pub profile: Profile,
    /// The rules for tools that ask to be strict; the same as `profile` where there are none.
    pub strict_profile: Profile,
    /// Writes one tool.
    pub write: fn(&Shown<'_>) -> Value,
}

/// One tool as it is to be shown.
#[derive(Debug)]
pub struct Shown<'t> {
    /// Its definition.
    pub definition: &'t ToolDefinition,
    /// Its description, cleaned and not too long.
    pub description: Option<&'t str>,
    /// Its schema, lowered.
    pub schema: &'t Value,
    /// Whether the schema can be followed strictly, and the tool asks for it.
    pub strict: bool,
    /// How the model gets to see it, where the provider has a word for that.
    pub loading: Loading,
}

/// One tool in a provider's form.
#[derive(Debug)]
pub struct RenderedTool {
    name: String,
    json: Bytes,
    lowered: Lowered,
    loading: Loading,
}

impl RenderedTool {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its JSON.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// What became of its schema.
    pub fn lowered(&self) -> &Lowered {
        &self.lowered
    }

    /// How the model gets to see it.
    pub fn loading(&self) -> Loading {
        self.loading
    }
}

/// A tool that could not be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool `{name}` is left out: {reason}")]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: Dropped,
}

/// All tools of a request in a provider's form.
#[derive(Debug, Default)]
pub struct RenderedTools {
    json: Bytes,
    tools: Vec<Arc<RenderedTool>>,
    places: HashMap<String, usize>,
    left_out: Vec<LeftOut>,
}

impl RenderedTools {
    /// The JSON list of them; empty, without brackets, if there are none.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Those that are shown, in order.
    pub fn tools(&self) -> &[Arc<RenderedTool>] {
        &self.tools
    }

    /// Those that are not.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The list `shown` with the provider's own search in front of it, where there is something for it to
    /// find. It stands there from the first request to the last.
    pub(crate) fn searchable(&self, shown: Bytes, search: &str) -> Bytes {
        let mut tools = self.tools.iter();
        // One tool that must be called stands alone.
        let is_searched =
            shown.len() == self.json.len() && tools.any(|tool| tool.loading == Loading::Searched);
        match shown.strip_prefix(b"[") {
            Some(rest) if is_searched => [b"[", search.as_bytes(), b",", rest].concat().into(),
            _ => shown,
        }
    }

    /// The one with this name, if it is shown.
    pub fn tool(&self, name: &str) -> Option<&Arc<RenderedTool>> {
        self.places.get(name).map(|place| &self.tools[*place])
    }

    /// The arguments of a call to `name` with the lowering undone; as they are where nothing has to
    /// be undone.
    pub fn restored(&self, name: &str, arguments: String) -> String {
        self.tool(name)
            .and_then(|tool| tool.lowered.restore(&arguments))
            .unwrap_or(arguments)
    }
}

/// Renders the tools of a request in this form. What was rendered before is used again.
///
/// ```
/// use haft_core::{RenderKey, ToolDefinition, ToolSpecs};
/// use haft_models::lower::schema::Profile;
/// use haft_models::lower::tools::{ToolForm, render_tools};
///
/// let ping = ToolDefinition::builder("ping").parameters(serde_json::json!({"type": "object"})).build()?;
/// let tools: ToolSpecs = [ping].into_iter().collect();
/// let form = ToolForm {
///     key: RenderKey::new("doc"),
///     profile: Profile::Generic,
///     strict_profile: Profile::Generic,
///     write: |tool| serde_json::json!({"name": tool.definition.name().as_str()}),
/// };
/// assert_eq!(render_tools(&tools, &form).json(), r#"[{"name":"ping"}]"#);
/// # Ok::<(), haft_core::DefinitionError>(())
/// ```
pub fn render_tools(specs: &ToolSpecs, form: &ToolForm) -> Arc<RenderedTools> {
    specs.rendered().get(form.key, || {
        let mut rendered = RenderedTools::default();
        for spec in specs.iter() {
            match &*render_tool(spec, form) {
                Ok(tool) => {
                    rendered
                        .places
                        .insert(tool.name.clone(), rendered.tools.len());
                    rendered.tools.push(Arc::clone(tool));
                }
                Err(left_out) => rendered.left_out.push(left_out.clone()),
            }
        }
        rendered.json = joined(&rendered.tools);
        rendered
    })
}

/// The JSON list of some tools; empty, without brackets, if there are none.
pub fn joined(tools: &[Arc<RenderedTool>]) -> Bytes {
    let mut json = Vec::new();
    for tool in tools {
        json.push(if json.is_empty() { b'[' } else { b',' });
        json.extend_from_slice(&tool.json);
    }
    if !json.is_empty() {
        json.push(b']');
    }
    json.into()
}

type Rendering = Result<Arc<RenderedTool>, LeftOut>;

fn render_tool(spec: &ToolSpec, form: &ToolForm) -> Arc<Rendering> {
    spec.rendered().get(form.key, || {
        let definition = spec.definition();
        match lowered(definition, spec.loading(), form) {
            Ok(tool) => Ok(Arc::new(tool)),
            Err(reason) => {
                let name = definition.name().as_str().to_owned();
                tracing::warn!(tool = %name, %reason, "a tool is left out of a request");
                Err(LeftOut { name, reason })
            }
        }
    })
}

fn lowered(
    definition: &ToolDefinition,
    loading: Loading,
    form: &ToolForm,
) -> Result<RenderedTool, Dropped> {
    let asks_strict = definition.strict() == Some(true);
    let profile = if asks_strict {
        form.strict_profile
    } else {
        form.profile
    };
    let open = json!({});
    let mut lowered = lower(definition.parameters().unwrap_or(&open), profile)?;
    let mut description = definition.description().map(clean_text);
    let size = lowered.schema.to_string().len() + description.as_ref().map_or(0, String::len);
    lowered.shorten_with(description.as_mut(), size);
    for note in &lowered.notes {
        tracing::debug!(tool = %definition.name(), note, "a schema was lowered");
    }
    let json = (form.write)(&Shown {
        definition,
        description: description.as_deref(),
        schema: &lowered.schema,
        strict: asks_strict && lowered.strict,
        loading,
    });
    Ok(RenderedTool {
        name: definition.name().as_str().to_owned(),
        json: json.to_string().into(),
        lowered,
        loading,
    })
}

impl Lowered {
    fn shorten_with(&mut self, description: Option<&mut String>, size: usize) {
        let mut texts = self.descriptions();
        texts.extend(description);
        shorten(texts, size);
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::MAX_TOOL_BYTES;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static WRITTEN: AtomicUsize = AtomicUsize::new(0);

    const FORM: ToolForm = ToolForm {
        key: RenderKey::new("counted"),
        profile: Profile::Openai,
        strict_profile: Profile::OpenaiStrict,
        write: |tool| {
            WRITTEN.fetch_add(1, Ordering::Relaxed);
            json!({"name": tool.definition.name().as_str(), "parameters": tool.schema, "strict": tool.strict})
        },
    };

    fn tool(name: &str, parameters: Value, strict: Option<bool>) -> Arc<ToolDefinition> {
        let mut builder = ToolDefinition::builder(name).parameters(parameters);
        if let Some(strict) = strict {
            builder = builder.strict(strict);
        }
        builder.build().unwrap()
    }

    fn unlowerable() -> Value {
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}})
    }

    /// R14
    #[test]
    fn each_tool_is_serialised_once_and_the_list_once() {
        let before = WRITTEN.load(Ordering::Relaxed);
        let specs: ToolSpecs = [
            tool("a", json!({"type": "object"}), None),
            tool("b", json!({"type": "object"}), None),
        ]
        .into_iter()
        .collect();
        let first = render_tools(&specs, &FORM);
        assert!(Arc::ptr_eq(&first, &render_tools(&specs.clone(), &FORM)));
        // A longer list shows the same tools, and one more.
        let mut longer: Vec<_> = specs.iter().cloned().collect();
        longer.push(ToolSpec::new(tool("c", json!({"type": "object"}), None)));
        let second = render_tools(&ToolSpecs::new(longer), &FORM);
        assert_eq!(WRITTEN.load(Ordering::Relaxed) - before, 3);
        let prefix = &first.json()[..first.json().len() - 1];
        assert!(
            second.json().starts_with(prefix),
            "the list only grows at its end"
        );
    }

    #[test]
    fn a_tool_that_cannot_be_lowered_is_left_out_alone() {
        let form = ToolForm {
            key: RenderKey::new("bad"),
            write: |tool| json!(tool.definition.name().as_str()),
            ..FORM
        };
        let specs: ToolSpecs = [
            tool("good", json!({"type": "object"}), None),
            tool("bad", unlowerable(), None),
            tool("also_good", json!({"type": "object"}), None),
        ]
        .into_iter()
        .collect();
        let rendered = render_tools(&specs, &form);
        assert_eq!(rendered.json(), r#"["good","also_good"]"#);
        assert_eq!(rendered.left_out().len(), 1);
        assert!(rendered.left_out()[0].to_string().contains("`bad`"));
        assert!(rendered.tool("bad").is_none() && rendered.tool("also_good").is_some());
        let none: ToolSpecs = [tool("bad", unlowerable(), None)].into_iter().collect();
        assert!(
            render_tools(&none, &form).json().is_empty(),
            "no empty list is sent"
        );
    }

    #[test]
    fn strict_is_asked_for_only_by_tools_that_can_be() {
        let form = ToolForm {
            key: RenderKey::new("strict"),
            write: |tool| json!(tool.strict),
            ..FORM
        };
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let map = json!({"type": "object", "properties": {"a": {"type": "object"}}});
        let specs: ToolSpecs = [
            tool("asks", closed.clone(), Some(true)),
            tool("silent", closed, None),
            tool("open", map, Some(true)),
        ]
        .into_iter()
        .collect();
        let rendered = render_tools(&specs, &form);
        assert_eq!(rendered.json(), "[true,false,false]");
        assert_eq!(rendered.restored("asks", r#"{"a":null}"#.into()), "{}");
        assert_eq!(
            rendered.restored("silent", r#"{"a": null}"#.into()),
            r#"{"a": null}"#
        );
    }

    #[test]
    fn long_descriptions_are_cut_and_unseen_characters_removed() {
        let form = ToolForm {
            key: RenderKey::new("long"),
            write: |tool| json!(tool.description),
            ..FORM
        };
        let long = ToolDefinition::builder("long")
            .description(format!("visible\u{200b}{}", "é".repeat(4_000)))
            .parameters(json!({"type": "object", "description": "x".repeat(14_000)}))
            .build()
            .unwrap();
        let specs: ToolSpecs = [long].into_iter().collect();
        let rendered = render_tools(&specs, &form);
        let text = String::from_utf8(rendered.json().to_vec()).unwrap();
        assert!(
            text.starts_with(r#"["visibleé"#) && text.ends_with("é\"]"),
            "only the longest is cut"
        );
        let schema = rendered.tools()[0].lowered().schema.to_string();
        assert!(text.len() + schema.len() <= MAX_TOOL_BYTES + 10);
        assert!(
            schema.contains("x…") && schema.len() > 7_000,
            "no more than needed"
        );
    }
}
