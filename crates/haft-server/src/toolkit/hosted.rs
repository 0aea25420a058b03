//! Tools that run here become tools of a request.

use std::sync::Arc;

use haft_catalog::Snapshot;
use haft_core::{Owner, OwnersTool, ToolKind, ToolObject, ToolRef};
use serde_json::{Map, Value};

use super::builder::Builder;
use super::deferral::{Declared, Origin};
use super::names::Identity;
use super::renamed::renamed;
use super::{UnsupportedTools, WireName};
use crate::error::{ApiError, ErrorCode};
use crate::stream::Shown;
use crate::wire::RequestTool;

/// The types that `OpenAI` hosts.
const HOSTED: [&str; 14] = [
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
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "computer_use",
];

impl Builder {
    pub(super) fn add_hosted(
        &mut self,
        entry: &RequestTool,
        tool_type: &str,
        config: &Map<String, Value>,
        origin: Origin,
    ) -> Result<(), ApiError> {
        let mut visible = visible(&self.snapshot, &self.owner);
        let found = visible.find(|tool| {
            let definition = tool.definition();
            match definition.kind() {
                ToolKind::Custom(kind) => kind.to_string() == tool_type,
                ToolKind::Mcp => false,
                // Whatever runs in this process, under haft's own slug.
                _ => {
                    let name = definition.name().as_str();
                    tool.runs_here() && tool_type.strip_prefix("haft:") == Some(name)
                }
            }
        });
        drop(visible);
        let Some(found) = found else {
            if self.passed.takes(tool_type) {
                self.pass_on(tool_type, config);
                return Ok(());
            }
            return self.leave_out(tool_type, &entry.param);
        };
        let name = found.definition().name().as_str().to_owned();
        let backend = self.names.take(Identity::Hosted(name.clone()));
        let tool = if backend == name {
            ToolRef::from(Arc::clone(&found))
        } else {
            ToolRef::from(renamed(Arc::clone(&found), &backend))
        };
        self.is_agentic = true;
        if self.may_ask(found.definition()) {
            self.asking.insert(backend.clone());
        }
        self.wire_names.push(WireName::Hosted {
            tool_type: tool_type.to_owned(),
            backend: Some(backend.clone()),
        });
        match origin {
            Origin::Declared => {
                let declared = Declared::Alone(entry.echo.clone());
                self.deferral.declared.insert(backend.clone(), declared);
            }
            Origin::Loaded => self.deferral.load(&backend),
        }
        let item_type = tool_type.to_owned();
        self.put(backend, tool, Shown::Hosted { item_type });
        Ok(())
    }

    fn leave_out(&mut self, tool_type: &str, param: &str) -> Result<(), ApiError> {
        let is_web_search = tool_type.starts_with("web_search");
        let is_ignored = match self.unsupported {
            UnsupportedTools::WebSearch => is_web_search,
            UnsupportedTools::Ignore => HOSTED.contains(&tool_type) || is_web_search,
            UnsupportedTools::Reject => false,
        };
        if !is_ignored {
            return Err(self.unsupported(tool_type, param));
        }
        tracing::info!("ignoring unsupported hosted tool type `{tool_type}`");
        self.ignored.push(tool_type.to_owned());
        self.wire_names.push(WireName::Hosted {
            tool_type: tool_type.to_owned(),
            backend: None,
        });
        Ok(())
    }

    fn unsupported(&self, tool_type: &str, param: &str) -> ApiError {
        unsupported(visible(&self.snapshot, &self.owner), tool_type, param)
    }
}

/// The tools of type `haft:NAME` that an owner may use.
pub(crate) fn hosted_tools(
    snapshot: &Snapshot,
    owner: &Owner,
) -> impl Iterator<Item = Arc<dyn ToolObject>> {
    visible(snapshot, owner).filter(|tool| {
        let kind = tool.definition().kind();
        tool.runs_here() && !matches!(kind, ToolKind::Custom(_) | ToolKind::Mcp)
    })
}

/// The tools that an owner may see, each as it is for that owner.
fn visible(snapshot: &Snapshot, owner: &Owner) -> impl Iterator<Item = Arc<dyn ToolObject>> {
    snapshot
        .iter()
        .filter_map(|tool| match tool.tool().for_owner(owner) {
            OwnersTool::Same => Some(Arc::clone(tool.tool())),
            OwnersTool::Own(tool) => Some(tool),
            OwnersTool::Hidden => None,
        })
}

/// The tool that is there only if there is something to search.
const SEARCH: &str = "haft:search_files";

fn unsupported(
    provided: impl Iterator<Item = Arc<dyn ToolObject>>,
    tool_type: &str,
    param: &str,
) -> ApiError {
    let provided: Vec<_> = provided
        .filter(|tool| tool.runs_here())
        .take(12)
        .map(|tool| match tool.definition().kind() {
            ToolKind::Custom(kind) => format!("`{kind}`"),
            _ => format!("`haft:{}`", tool.definition().name()),
        })
        .collect();
    let provided = match provided.len() {
        0 => String::from("nothing is"),
        _ => format!("there is {}", provided.join(", ")),
    };
    // The same for whoever may see no folder: nobody learns which there are.
    let when = match tool_type {
        SEARCH => ", and this one only once `[search_files]` of its configuration lists folders",
        _ => "",
    };
    let message = format!(
        "no tool of type `{}` is provided here ({provided}{when}): remove it from `tools`, or declare \
         it as a `function` of your own",
        haft_core::cut(tool_type)
    );
    ApiError::new(ErrorCode::UnsupportedTool, message).at(format!("{param}.type"))
}
