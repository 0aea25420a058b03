//! Which tool types go to a provider in its own form, as a file says it.

use std::borrow::Cow;

use haft_core::{PROVIDER_TOOL_TYPES, ProviderTools};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};

/// `hosted_tools`: `"all"`, or a list of tool types, which may be empty.
///
/// ```
/// use haft_models::HostedTools;
/// let tools: HostedTools = serde_json::from_str(r#"["web_search", "shell"]"#)?;
/// assert!(tools.types().contains("shell"));
/// let error = serde_json::from_str::<HostedTools>(r#"["web-search"]"#).unwrap_err();
/// assert!(error.to_string().contains("`web-search`"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedTools(ProviderTools);

impl HostedTools {
    /// The types.
    pub fn types(&self) -> &ProviderTools {
        &self.0
    }
}

impl<'de> Deserialize<'de> for HostedTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected `\"all\"` or a list of tool types such as `[\"web_search\"]`"
        )]
        enum Form {
            Keyword(String),
            List(Vec<String>),
        }
        let list = match Form::deserialize(deserializer)? {
            Form::Keyword(keyword) if keyword == "all" => return Ok(Self(ProviderTools::all())),
            Form::Keyword(_) => {
                return Err(D::Error::custom(
                    "expected `\"all\"` or a list of tool types such as `[\"web_search\"]`",
                ));
            }
            Form::List(list) => list,
        };
        let known = ProviderTools::all();
        match list.iter().find(|tool_type| !known.contains(tool_type)) {
            None => Ok(Self(list.into_iter().collect())),
            Some(unknown) => Err(D::Error::custom(format!(
                "`{}` is not a hosted tool type; use `\"all\"` or a list of: {}",
                haft_core::cut(unknown),
                PROVIDER_TOOL_TYPES.join(", ")
            ))),
        }
    }
}

impl JsonSchema for HostedTools {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "HostedTools".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "`\"all\"` or list of tool types",
            "anyOf": [
                { "const": "all" },
                { "type": "array", "items": { "enum": PROVIDER_TOOL_TYPES } },
            ],
        })
    }
}
