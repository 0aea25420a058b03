//! Which tools a model must, may or must not call.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// `tool_choice` in all its forms, as the Responses API writes them.
///
/// ```
/// use haft_core::ToolChoice;
/// let choice: ToolChoice = serde_json::from_str(r#"{"type":"function","name":"ping"}"#)?;
/// assert_eq!(choice, ToolChoice::Function("ping".into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call a tool.
    Required,
    /// It must not call one.
    None,
    /// It must call this one.
    Function(String),
    /// It sees all tools and may call only these.
    Allowed(AllowedTools),
}

/// The tools that may be called while all stay visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTools {
    /// Whether one of them must be called.
    pub mode: AllowedMode,
    /// Their names.
    pub names: Vec<String>,
}

/// Whether one of the allowed tools must be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AllowedMode {
    /// The model decides.
    #[default]
    Auto,
    /// It must call one.
    Required,
    /// None may be called after all.
    None,
}

impl ToolChoice {
    /// Allows only these tools; the model decides whether to call one.
    pub fn allowed<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Allowed(AllowedTools {
            mode: AllowedMode::Auto,
            names: names.into_iter().map(Into::into).collect(),
        })
    }

    /// What the choice becomes after the first round in which a tool ran.
    ///
    /// A forced function and `required` relax to `auto`; otherwise the run could only end at its
    /// limit. `auto` and `none` persist, and so does an allowed subset.
    ///
    /// ```
    /// use haft_core::ToolChoice;
    /// assert_eq!(ToolChoice::Required.relaxed(), ToolChoice::Auto);
    /// assert_eq!(ToolChoice::None.relaxed(), ToolChoice::None);
    /// ```
    #[must_use]
    pub fn relaxed(&self) -> Self {
        match self {
            Self::Required | Self::Function(_) => Self::Auto,
            Self::Allowed(allowed) => Self::Allowed(AllowedTools {
                mode: match allowed.mode {
                    AllowedMode::None => AllowedMode::None,
                    AllowedMode::Auto | AllowedMode::Required => AllowedMode::Auto,
                },
                names: allowed.names.clone(),
            }),
            Self::Auto | Self::None => self.clone(),
        }
    }

    /// Whether an answer without a call breaks this choice.
    pub fn demands_call(&self) -> bool {
        match self {
            Self::Required | Self::Function(_) => true,
            Self::Allowed(allowed) => allowed.mode == AllowedMode::Required,
            Self::Auto | Self::None => false,
        }
    }
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = match self {
            Self::Auto => json!("auto"),
            Self::Required => json!("required"),
            Self::None => json!("none"),
            Self::Function(name) => json!({"type": "function", "name": name}),
            Self::Allowed(allowed) => json!({
                "type": "allowed_tools",
                "mode": allowed.mode,
                "tools": allowed.names.iter()
                    .map(|name| json!({"type": "function", "name": name}))
                    .collect::<Vec<_>>(),
            }),
        };
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn read(json: &Value) -> Result<ToolChoice, String> {
    const FORMS: &str = "`tool_choice` must be `auto`, `required`, `none`, \
         {\"type\":\"function\",\"name\":…} or {\"type\":\"allowed_tools\",\"mode\":…,\"tools\":[…]}";
    if let Some(word) = json.as_str() {
        return match word {
            "auto" => Ok(ToolChoice::Auto),
            "required" => Ok(ToolChoice::Required),
            "none" => Ok(ToolChoice::None),
            _ => Err(FORMS.into()),
        };
    }
    match json.get("type").and_then(Value::as_str) {
        Some("function") => name_of(json).map(ToolChoice::Function),
        Some("allowed_tools") => {
            let mode = match json.get("mode").map(Value::as_str) {
                None | Some(Some("auto")) => AllowedMode::Auto,
                Some(Some("required")) => AllowedMode::Required,
                Some(Some("none")) => AllowedMode::None,
                Some(_) => {
                    return Err("`tool_choice.mode` must be `auto`, `required` or `none`".into());
                }
            };
            let tools = json.get("tools").and_then(Value::as_array);
            let tools = tools.ok_or("`tool_choice.tools` must be a list of tools")?;
            let names = tools.iter().map(name_of).collect::<Result<_, _>>()?;
            Ok(ToolChoice::Allowed(AllowedTools { mode, names }))
        }
        _ => Err(FORMS.into()),
    }
}

fn name_of(tool: &Value) -> Result<String, String> {
    tool.get("name")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| "`tool_choice` names a function without a `name`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_survives_the_wire() {
        for json in [
            json!("auto"),
            json!("required"),
            json!("none"),
            json!({"type": "function", "name": "a"}),
            json!({
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "b"}]
            }),
        ] {
            let choice: ToolChoice = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&choice).unwrap(), json);
        }
    }

    #[test]
    fn other_forms_are_refused_with_the_legal_ones() {
        for json in [
            json!("maybe"),
            json!(3),
            json!({"type": "function"}),
            json!({"type": "allowed_tools", "mode": "maybe", "tools": []}),
            json!({"type": "allowed_tools", "mode": "auto"}),
        ] {
            let error = serde_json::from_value::<ToolChoice>(json).unwrap_err();
            assert!(error.to_string().contains("tool_choice"), "{error}");
        }
    }

    #[test]
    fn the_subset_does_not_relax_and_its_mode_does() {
        let choice = ToolChoice::Allowed(AllowedTools {
            mode: AllowedMode::Required,
            names: vec!["a".into()],
        });
        assert!(choice.demands_call());
        assert_eq!(choice.relaxed(), ToolChoice::allowed(["a"]));
    }
}
