//! The built-in tools, on real directories and with a real shell.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod definitions;
mod files;
mod paths;
mod shell;
mod undo;

use std::path::Path;

use haft_builtin::Workspace;
use haft_core::{ToolContext, ToolError, ToolOutput};
use serde_json::Value;
use tempfile::TempDir;

/// A directory `root` with something outside beside it.
struct Place {
    all: TempDir,
}

impl Place {
    fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        std::fs::create_dir(all.path().join("root")).unwrap();
        let place = Self { all };
        place.put("../outside/secret.txt", "hunter2");
        place
    }

    fn root(&self) -> std::path::PathBuf {
        self.all.path().join("root")
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(self.root()).allow_shell()
    }

    /// Puts a file there, its directories included.
    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, link: &str) {
        std::os::unix::fs::symlink(target, self.root().join(link)).unwrap();
    }

    fn get(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(path)).ok()
    }
}

async fn call_in(
    workspace: &Workspace,
    context: &ToolContext,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    let tools = workspace.tools().into_iter();
    let tool = tools
        .map(|tool| tool.into_object().unwrap())
        .find(|object| object.definition().name().as_str() == tool)
        .unwrap();
    let call = tool.instantiate(&arguments).unwrap();
    call.run(context).await
}

async fn call(workspace: &Workspace, tool: &str, arguments: Value) -> Result<String, String> {
    let context = ToolContext::default();
    match call_in(workspace, &context, tool, arguments).await {
        Ok(output) if output.is_success() => Ok(output.text_for_model()),
        Ok(output) => Err(output.text_for_model()),
        Err(error) => Err(error.to_string()),
    }
}
