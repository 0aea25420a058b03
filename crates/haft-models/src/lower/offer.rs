//! Which tools a request shows and what it says about calling them, by what the server can do.

use bytes::Bytes;
use haft_core::{AllowedMode, Capabilities, ForcedChoice, ModelError, ModelErrorKind, ToolChoice};

use super::tools::{RenderedTools, joined};

/// What a request says about tools.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offer<'r> {
    /// The JSON list; empty, without brackets, if none is to be sent.
    pub(crate) tools: Bytes,
    /// The choice, if one is to be sent.
    pub(crate) choice: Option<Choice<'r>>,
}

/// The choices that are left after lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice<'r> {
    Auto,
    Required,
    None,
    Named(&'r str),
}

/// Lowers a choice (`dynamic-tools.md` §16, `providers.md`). Nothing is sent where there are no
/// tools. A forced tool that is not shown is an error: nothing that is sent could be right.
pub(crate) fn offer<'r>(
    choice: Option<&'r ToolChoice>,
    rendered: &RenderedTools,
    capabilities: &Capabilities,
) -> Result<Offer<'r>, ModelError> {
    let all = |choice: Option<Choice<'r>>| {
        Ok(Offer {
            tools: rendered.json().clone(),
            choice: choice.filter(|_| !rendered.json().is_empty()),
        })
    };
    let can_choose = capabilities.forced_choice != ForcedChoice::Unsupported;
    let can_name = match capabilities.forced_choice {
        ForcedChoice::Named => true,
        ForcedChoice::OnlyTool => capabilities.named_choice,
        ForcedChoice::Unsupported => false,
    };
    let auto = can_choose.then_some(Choice::Auto);
    let required = can_choose.then_some(Choice::Required);
    let none = || {
        if capabilities.none_choice {
            all(Some(Choice::None))
        } else {
            Ok(Offer {
                tools: Bytes::new(),
                choice: None,
            })
        }
    };
    match choice {
        None => all(None),
        Some(ToolChoice::Auto) => all(auto),
        Some(ToolChoice::Required) => all(required),
        Some(ToolChoice::None) => none(),
        // The list stays as it is, for the caches; calls outside are refused when they come.
        Some(ToolChoice::Allowed(allowed)) => match allowed.mode {
            AllowedMode::Auto => all(auto),
            // One that must be called is named. The list stays as it is all the same.
            AllowedMode::Required => match allowed.names.as_slice() {
                [only] if can_name && rendered.tool(only).is_some() => {
                    all(Some(Choice::Named(only)))
                }
                _ => all(required),
            },
            AllowedMode::None => none(),
        },
        Some(ToolChoice::Function(name)) => {
            let tool = rendered
                .tool(name)
                .ok_or_else(|| not_shown(name, rendered))?;
            match capabilities.forced_choice {
                ForcedChoice::Named => all(Some(Choice::Named(name))),
                ForcedChoice::OnlyTool | ForcedChoice::Unsupported => Ok(Offer {
                    tools: joined(std::slice::from_ref(tool)),
                    choice: required,
                }),
            }
        }
    }
}

fn not_shown(name: &str, rendered: &RenderedTools) -> ModelError {
    let left_out = rendered
        .left_out()
        .iter()
        .find(|left_out| left_out.name == name);
    let words = match left_out {
        Some(left_out) => left_out.to_string(),
        None => format!("`tool_choice` names `{name}`, which is not among the tools"),
    };
    ModelError::new(ModelErrorKind::InvalidRequest, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::schema::Profile;
    use crate::lower::tools::{ToolForm, render_tools};
    use haft_core::{AllowedTools, RenderKey, ToolDefinition, ToolSpecs};
    use serde_json::json;
    use std::sync::Arc;

    fn rendered() -> Arc<RenderedTools> {
        let tool = |name: &str, property| {
            ToolDefinition::builder(name)
                .parameters(json!({"type": "object", "properties": {"p": property}}))
                .build()
                .unwrap()
        };
        let tools = [
            tool("a", json!({})),
            tool("b", json!({})),
            tool("bad", json!({"$ref": "#/x"})),
        ];
        let form = ToolForm {
            key: RenderKey::new("offer"),
            profile: Profile::Generic,
            strict_profile: Profile::Generic,
            write: |tool| json!(tool.definition.name().as_str()),
        };
        render_tools(&tools.into_iter().collect::<ToolSpecs>(), &form)
    }

    fn lowered(choice: &ToolChoice, capabilities: &Capabilities) -> (String, String) {
        let rendered = rendered();
        let offer = offer(Some(choice), &rendered, capabilities).unwrap();
        let tools = String::from_utf8(offer.tools.to_vec()).unwrap();
        (tools, format!("{:?}", offer.choice))
    }

    fn allowed(mode: AllowedMode) -> ToolChoice {
        ToolChoice::Allowed(AllowedTools {
            mode,
            names: vec!["a".into()],
        })
    }

    #[test]
    fn each_choice_is_lowered_by_what_the_server_can_do() {
        let named = || Capabilities {
            forced_choice: ForcedChoice::Named,
            none_choice: true,
            ..Capabilities::default()
        };
        let only = Capabilities::default;
        let none = || Capabilities {
            forced_choice: ForcedChoice::Unsupported,
            ..only()
        };
        let both = r#"["a","b"]"#;
        let b = || ToolChoice::Function("b".into());
        for (choice, capabilities, tools, expected) in [
            (ToolChoice::Auto, only(), both, "Some(Auto)"),
            (ToolChoice::Auto, none(), both, "None"),
            (ToolChoice::Required, only(), both, "Some(Required)"),
            (ToolChoice::Required, none(), both, "None"),
            (ToolChoice::None, named(), both, "Some(None)"),
            (ToolChoice::None, only(), "", "None"),
            (b(), named(), both, "Some(Named(\"b\"))"),
            (b(), only(), r#"["b"]"#, "Some(Required)"),
            (b(), none(), r#"["b"]"#, "None"),
            (allowed(AllowedMode::Auto), only(), both, "Some(Auto)"),
            (
                allowed(AllowedMode::Required),
                named(),
                both,
                "Some(Named(\"a\"))",
            ),
            (
                allowed(AllowedMode::Required),
                only(),
                both,
                "Some(Required)",
            ),
            (
                allowed(AllowedMode::Required),
                Capabilities {
                    named_choice: true,
                    ..only()
                },
                both,
                "Some(Named(\"a\"))",
            ),
            (allowed(AllowedMode::Required), none(), both, "None"),
            (allowed(AllowedMode::None), only(), "", "None"),
        ] {
            assert_eq!(
                lowered(&choice, &capabilities),
                (tools.to_owned(), expected.to_owned()),
                "{choice:?} {:?}",
                capabilities.forced_choice
            );
        }
    }

    #[test]
    fn no_choice_is_sent_without_tools() {
        let empty = RenderedTools::default();
        let offer = offer(
            Some(&ToolChoice::Required),
            &empty,
            &Capabilities::default(),
        )
        .unwrap();
        assert_eq!(
            offer,
            Offer {
                tools: Bytes::new(),
                choice: None
            }
        );
    }

    #[test]
    fn a_forced_tool_that_is_not_shown_is_an_error_with_the_reason() {
        let rendered = rendered();
        for (name, words) in [
            ("bad", "tool `bad` is left out"),
            ("c", "not among the tools"),
        ] {
            let choice = ToolChoice::Function(name.into());
            let error = offer(Some(&choice), &rendered, &Capabilities::default()).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
