//! Tools and items in a form that only one provider knows.
//!
//! A Responses server runs some tools by itself (`web_search`, `code_interpreter`) and defines others that its
//! client executes (`shell`, `apply_patch`, `computer`). haft passes their declarations, items and events on
//! as JSON and interprets only `type`, `id`, `status` and `call_id`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::item::Item;

/// The tool types that an adapter can be configured to pass on; some exist in dated versions as well.
pub const PROVIDER_TOOL_TYPES: [&str; 13] = [
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "custom",
    "file_search",
    "image_generation",
    "local_shell",
    "namespace",
    "programmatic_tool_calling",
    "shell",
    "web_search",
    "web_search_preview",
];

/// Types of items that a provider's own tools produce or take.
const PROVIDER_ITEM_TYPES: [&str; 14] = [
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "program",
    "program_output",
    "shell_call",
    "shell_call_output",
    "web_search_call",
];

/// Calls that the provider's client executes, unless the provider sends their output itself.
const CLIENT_CALL_TYPES: [&str; 4] = [
    "apply_patch_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
];

/// The tool types that a model takes in its provider's own form.
///
/// ```
/// use haft_core::ProviderTools;
/// let tools: ProviderTools = ["web_search", "custom"].into_iter().collect();
/// assert!(tools.contains("web_search_2025_08_26") && !tools.contains("web_search_preview"));
/// assert!(ProviderTools::all().contains("namespace"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderTools(BTreeSet<String>);

impl ProviderTools {
    /// Every type of [`PROVIDER_TOOL_TYPES`].
    #[must_use]
    pub fn all() -> Self {
        PROVIDER_TOOL_TYPES.into_iter().collect()
    }

    /// Whether a tool of this type can be passed on. A dated version counts as the type without the date.
    pub fn contains(&self, tool_type: &str) -> bool {
        self.0.contains(tool_type) || self.0.contains(without_date(tool_type))
    }

    /// Whether no type can.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The types that both have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).cloned().collect()
    }

    /// The types that the other does not have.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.0.difference(&other.0).cloned().collect()
    }
}

impl<S: Into<String>> FromIterator<S> for ProviderTools {
    fn from_iter<I: IntoIterator<Item = S>>(types: I) -> Self {
        Self(types.into_iter().map(Into::into).collect())
    }
}

/// `web_search` for `web_search_2025_08_26`.
fn without_date(tool_type: &str) -> &str {
    const DATE: &str = "_2025_08_26";
    let Some(at) = tool_type.len().checked_sub(DATE.len()) else {
        return tool_type;
    };
    let is_date = |date: &str| {
        date.bytes()
            .zip(DATE.bytes())
            .all(|(byte, form)| match form {
                b'_' => byte == b'_',
                _ => byte.is_ascii_digit(),
            })
    };
    match (tool_type.get(..at), tool_type.get(at..)) {
        (Some(base), Some(date)) if is_date(date) => base,
        _ => tool_type,
    }
}

/// What a request asks of its provider's own tools; nothing by default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProviderOptions {
    /// Declarations of tools, sent as they are in front of all others.
    pub tools: Arc<[Value]>,
    /// `tool_choice` for requests in which the choice is about these tools. It holds for the first answer.
    pub choice: Option<Value>,
    /// Entries of `allowed_tools` that name these tools, for requests that allow others beside them.
    pub allowed: Vec<Value>,
    /// Values for `include` that belong to them.
    pub include: Vec<String>,
    /// At most so many calls of them in one answer.
    pub max_calls: Option<u32>,
    /// Tools of the request that the provider has a form of its own for, by the name that the model's request
    /// calls them by.
    pub forms: Arc<BTreeMap<String, ProviderForm>>,
}

impl ProviderOptions {
    /// The name that a request calls a tool by which the provider calls so.
    pub fn name_of(&self, namespace: Option<&str>, name: &str) -> Option<&str> {
        let is_it = |form: &ProviderForm| form.name == name && form.namespace_name() == namespace;
        let mut forms = self.forms.iter();
        let found = forms.find(|(_, form)| is_it(form));
        found.map(|(known, _)| known.as_str())
    }

    /// Whether items of this type belong to a tool that is declared here.
    ///
    /// ```
    /// use haft_core::ProviderOptions;
    /// let tools = [serde_json::json!({"type": "web_search_2025_08_26"})];
    /// let options = ProviderOptions { tools: tools.into(), ..ProviderOptions::default() };
    /// assert!(options.declares_item("web_search_call"));
    /// assert!(!options.declares_item("shell_call"));
    /// ```
    pub fn declares_item(&self, item_type: &str) -> bool {
        let call = item_type.strip_suffix("_output").unwrap_or(item_type);
        let mut types = self.tools.iter().filter_map(|tool| tool["type"].as_str());
        types.any(|tool_type| match without_date(tool_type) {
            "computer" | "computer_use_preview" => call == "computer_call",
            "programmatic_tool_calling" => call == "program",
            "web_search" | "web_search_preview" => call == "web_search_call",
            other => call.strip_suffix("_call") == Some(other),
        })
    }
}

/// How a provider writes a tool that others would get as a plain function.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderForm {
    /// What the provider calls it.
    pub name: String,
    /// The declaration of the namespace that it is in, without its tools.
    pub namespace: Option<Arc<Map<String, Value>>>,
    /// The declaration of a custom tool, which takes free text; none for a function.
    pub custom: Option<Map<String, Value>>,
}

impl ProviderForm {
    /// The name of its namespace.
    pub fn namespace_name(&self) -> Option<&str> {
        self.namespace.as_ref()?.get("name")?.as_str()
    }
}

/// Whether items of this type belong to a provider's own tools.
pub fn is_provider_item(item_type: &str) -> bool {
    PROVIDER_ITEM_TYPES.contains(&item_type)
}

/// A call of a provider's own tool that somebody has to answer, or the answer to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderCall<'i> {
    /// A call.
    Call {
        /// The id that its output bears.
        call_id: &'i str,
        /// The id of the item, which some outputs bear instead.
        id: Option<&'i str>,
    },
    /// An output.
    Output {
        /// The id of the call.
        call_id: &'i str,
    },
}

impl Item {
    /// What the item is among the calls of a provider's own tools that have outputs.
    ///
    /// ```
    /// use haft_core::{Item, ProviderCall};
    /// let item: Item = serde_json::from_str(r#"{"type":"shell_call","id":"sh_1","call_id":"c"}"#)?;
    /// let call = ProviderCall::Call { call_id: "c", id: Some("sh_1") };
    /// assert_eq!(item.provider_call(), Some(call));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn provider_call(&self) -> Option<ProviderCall<'_>> {
        let Self::Other(members) = self else {
            return None;
        };
        let kind = self.kind();
        let call_id = members.get("call_id").and_then(Value::as_str);
        if CLIENT_CALL_TYPES.contains(&kind) {
            let call_id = call_id?;
            let id = self.id();
            return Some(ProviderCall::Call { call_id, id });
        }
        let call = kind.strip_suffix("_output")?;
        // The output of a local shell call bears the id of the call as its own.
        let call_id = call_id.or_else(|| self.id())?;
        let is_output = CLIENT_CALL_TYPES.contains(&call);
        is_output.then_some(ProviderCall::Output { call_id })
    }
}

/// The calls of a provider's own tools among these items that nothing among them answers.
pub fn open_provider_calls<'i>(items: impl Iterator<Item = &'i Item>) -> Vec<&'i Item> {
    let mut open: Vec<&Item> = Vec::new();
    for item in items {
        match item.provider_call() {
            Some(ProviderCall::Call { .. }) => open.push(item),
            Some(ProviderCall::Output { call_id: answered }) => {
                let is_answered = |call: &&Item| match call.provider_call() {
                    Some(ProviderCall::Call { call_id, id }) => {
                        call_id == answered || id == Some(answered)
                    }
                    _ => false,
                };
                open.retain(|call| !is_answered(call));
            }
            None => {}
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(json: Value) -> Item {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn every_provider_item_belongs_to_a_type_that_can_be_declared() {
        let declaring = |types: &[&str]| ProviderOptions {
            tools: types.iter().map(|name| json!({"type": name})).collect(),
            ..ProviderOptions::default()
        };
        let all = declaring(&PROVIDER_TOOL_TYPES);
        for item_type in PROVIDER_ITEM_TYPES {
            assert!(all.declares_item(item_type), "{item_type}");
            assert!(!declaring(&[]).declares_item(item_type), "{item_type}");
        }
        for (tool, items) in [
            ("web_search_preview", &["web_search_call"][..]),
            (
                "computer_use_preview",
                &["computer_call", "computer_call_output"],
            ),
            (
                "local_shell",
                &["local_shell_call", "local_shell_call_output"],
            ),
            ("shell", &["shell_call", "shell_call_output"]),
            ("programmatic_tool_calling", &["program", "program_output"]),
            ("custom", &[]),
        ] {
            let declared = declaring(&[tool]);
            let found = PROVIDER_ITEM_TYPES.into_iter();
            let found: Vec<_> = found.filter(|item| declared.declares_item(item)).collect();
            assert_eq!(found, items, "{tool}");
        }
    }

    #[test]
    fn dated_versions_count_as_their_type() {
        let tools: ProviderTools = ["web_search", "computer"].into_iter().collect();
        assert!(tools.contains("web_search") && tools.contains("web_search_2025_08_26"));
        for other in [
            "web_search_preview",
            "web_search_",
            "computer_use_preview",
            "é_2025_08_26",
        ] {
            assert!(!tools.contains(other), "{other}");
        }
        let both = ProviderTools::all().intersection(&tools);
        assert_eq!(both, tools);
        assert!(tools.intersection(&ProviderTools::default()).is_empty());
    }

    #[test]
    fn calls_are_open_until_an_output_bears_one_of_their_ids() {
        let items = [
            item(json!({"type": "shell_call", "id": "sh_1", "call_id": "a"})),
            item(json!({"type": "local_shell_call", "id": "lsh_1", "call_id": "b"})),
            item(json!({"type": "computer_call", "id": "cu_1", "call_id": "c"})),
            item(json!({"type": "web_search_call", "id": "ws_1", "call_id": "d"})),
            item(json!({"type": "shell_call_output", "call_id": "a", "output": []})),
            item(json!({"type": "local_shell_call_output", "id": "lsh_1", "output": "{}"})),
        ];
        let open = open_provider_calls(items.iter());
        assert_eq!(open, [&items[2]]);
    }
}
