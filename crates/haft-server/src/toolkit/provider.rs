//! Tools of a request that go to the model's provider in its own form.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_core::{ProviderForm, ProviderOptions, ProviderTools};
use serde_json::{Map, Value, json};

use super::WireName;
use super::builder::Builder;
use super::deferral::Within;
use crate::wire::RequestTool;

/// What goes to the provider, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// The types that the model takes in its provider's form.
    types: ProviderTools,
    tools: Vec<Value>,
    forms: BTreeMap<String, ProviderForm>,
}

impl Passed {
    /// Nothing yet, to a model that takes these types.
    pub(super) fn to(types: &ProviderTools) -> Self {
        Self {
            types: types.clone(),
            ..Self::default()
        }
    }

    /// Whether a tool of this type can be passed on.
    pub(super) fn takes(&self, tool_type: &str) -> bool {
        self.types.contains(tool_type)
    }

    /// Whether the provider is given a tool of its own.
    pub(super) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// All of it, as a request to the model has it.
    pub(super) fn into_options(
        self,
        choice: Option<Value>,
        allowed: Vec<Value>,
    ) -> ProviderOptions {
        ProviderOptions {
            tools: self.tools.into(),
            choice,
            allowed,
            include: Vec::new(),
            max_calls: None,
            forms: Arc::new(self.forms),
        }
    }
}

impl Builder {
    /// Passes a hosted tool on, with all its members. A later declaration of a type replaces the earlier one.
    pub(super) fn pass_on(&mut self, tool_type: &str, config: &Map<String, Value>) {
        let mut declared = config.clone();
        declared.insert("type".into(), tool_type.into());
        self.is_agentic |= runs_at_provider(tool_type, config);
        let declared = Value::Object(declared);
        let mut tools = self.passed.tools.iter_mut();
        match tools.find(|tool| tool["type"] == tool_type) {
            Some(earlier) => *earlier = declared,
            None => self.passed.tools.push(declared),
        }
        self.wire_names.push(WireName::Provider {
            tool_type: tool_type.to_owned(),
        });
    }

    /// Notes the form that the provider has for a tool of the client, if it has one. `custom` is the declaration
    /// of a custom tool.
    pub(super) fn note_form(
        &mut self,
        backend: &str,
        name: &str,
        within: Option<Within<'_>>,
        custom: Option<&RequestTool>,
    ) {
        let within = within.filter(|_| self.passed.takes("namespace"));
        let custom = custom.filter(|_| self.passed.takes("custom"));
        if within.is_none() && custom.is_none() {
            return;
        }
        let namespace = within.map(|within| {
            // The provider demands a description.
            let description = within.description.unwrap_or(within.name);
            let declared =
                json!({"type": "namespace", "name": within.name, "description": description});
            Arc::new(into_map(declared))
        });
        let custom = custom.map(|tool| {
            let mut declared = into_map(tool.echo.clone());
            // Tools are held back here.
            declared.shift_remove("defer_loading");
            declared
        });
        let form = ProviderForm {
            name: match namespace {
                Some(_) => name.to_owned(),
                None => backend.to_owned(),
            },
            namespace,
            custom,
        };
        self.passed.forms.insert(backend.to_owned(), form);
    }
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Whether the provider runs a tool; other tools it only defines, and its client executes the calls.
fn runs_at_provider(tool_type: &str, config: &Map<String, Value>) -> bool {
    match tool_type {
        "apply_patch" | "computer" | "computer_use_preview" | "local_shell" => false,
        "shell" => {
            let environment = config.get("environment");
            let place = environment.and_then(|environment| environment["type"].as_str());
            !matches!(place, None | Some("local"))
        }
        _ => true,
    }
}

/// The values of `include` that belong to the tools that are passed on.
pub(crate) fn includes_for(provider: &ProviderOptions, wanted: &[&'static str]) -> Vec<String> {
    let has = |prefix: &str| {
        let mut types = provider
            .tools
            .iter()
            .filter_map(|tool| tool["type"].as_str());
        types.any(|tool_type| tool_type.starts_with(prefix))
    };
    let belongs = |value: &&&str| {
        let item_type = value.split('.').next().unwrap_or_default();
        let item_type = item_type.strip_suffix("_output").unwrap_or(item_type);
        item_type.strip_suffix("_call").is_some_and(has)
    };
    let belonging = wanted.iter().filter(belongs);
    belonging.map(|value| (*value).to_owned()).collect()
}
