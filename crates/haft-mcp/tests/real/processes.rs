//! Servers over standard input and output.

use std::time::Duration;

use haft_mcp::{Label, Secret, ServerSettings, TransportSettings};
use serde_json::json;

use crate::installed::{node, older_python, python, toy};
use crate::trial::{Call, Trial};

/// The variable by which the processes of one test are found again.
const MARK: &str = "HAFT_TEST_MARK";

struct Marked {
    settings: ServerSettings,
    mark: String,
}

impl Marked {
    fn new(name: &str, command: &str, args: &[&str]) -> Self {
        let mark = format!("{name}-{}", std::process::id());
        let label = Label::new(name).unwrap();
        let mut settings = ServerSettings::stdio(label, command).args(args.iter().copied());
        if let TransportSettings::Stdio(stdio) = &mut settings.transport {
            stdio.env.insert(MARK.into(), Secret::new(mark.clone()));
        }
        Self { settings, mark }
    }

    /// The processes that were started for it, by whomever.
    fn processes(&self) -> Vec<i32> {
        let wanted = format!("{MARK}={}", self.mark);
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut variables = variables.split(|byte| *byte == 0);
            variables.any(|it| it == wanted.as_bytes())
        })
        .collect()
    }

    fn kill(&self) {
        let processes = self.processes();
        assert!(!processes.is_empty(), "nothing runs");
        for pid in processes {
            let mut kill = std::process::Command::new("kill");
            kill.args(["-9", &pid.to_string()]).status().unwrap();
        }
    }

    /// Listed, called, killed, revived, stopped; nothing is left.
    async fn goes_through(self, at_least: usize, call: Call, slow: Option<Call>) {
        let trial = Trial::new(self.settings.clone());
        trial.lists(at_least).await;
        trial.answers(&call).await;
        if let Some(slow) = &slow {
            trial.cancels(slow.tool, &slow.arguments).await;
            trial.answers(&call).await;
        }
        self.kill();
        trial.loses_it().await;
        trial.answers(&call).await;
        trial.lists(at_least).await;
        trial.ends().await;
        for _ in 0..50 {
            if self.processes().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("left behind: {:?}", self.processes());
    }
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn everything() {
    let call = Call {
        tool: "get-sum",
        arguments: json!({"a": 19, "b": 23}),
        answer: "42",
    };
    let slow = Call {
        tool: "trigger-long-running-operation",
        arguments: json!({"duration": 30, "steps": 100}),
        answer: "",
    };
    let server = Marked::new("everything", &node("mcp-server-everything"), &["stdio"]);
    server.goes_through(13, call, Some(slow)).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("note.txt");
    std::fs::write(&path, "a haft is a handle").unwrap();
    let call = Call {
        tool: "read_text_file",
        arguments: json!({"path": path}),
        answer: "a haft is a handle",
    };
    let allowed = folder.path().to_str().unwrap();
    let server = Marked::new("filesystem", &node("mcp-server-filesystem"), &[allowed]);
    // All that it has, from the first list on.
    server.goes_through(14, call, None).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Marked::new("memory", &node("mcp-server-memory"), &[]);
    if let TransportSettings::Stdio(stdio) = &mut server.settings.transport {
        let file = folder.path().join("memory.jsonl");
        let file = Secret::new(file.to_str().unwrap());
        stdio.env.insert("MEMORY_FILE_PATH".into(), file);
    }
    let call = Call {
        tool: "create_entities",
        arguments: json!({"entities": [
            {"name": "haft", "entityType": "tool", "observations": ["holds"]}
        ]}),
        answer: "",
    };
    server.goes_through(9, call, None).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn time() {
    let call = Call {
        tool: "get_current_time",
        arguments: json!({"timezone": "Europe/Oslo"}),
        answer: "Europe/Oslo",
    };
    let server = Marked::new("time", &python("mcp-server-time"), &[]);
    server.goes_through(2, call, None).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn git() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().to_str().unwrap();
    let mut init = std::process::Command::new("git");
    let init = init.args(["init", "--quiet", repository]).status().unwrap();
    assert!(init.success());
    std::fs::write(folder.path().join("new.txt"), "new").unwrap();
    let call = Call {
        tool: "git_status",
        arguments: json!({"repo_path": repository}),
        answer: "new.txt",
    };
    let args = ["--repository", repository];
    let server = Marked::new("git", &python("mcp-server-git"), &args);
    server.goes_through(10, call, None).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("data.db");
    let call = Call {
        tool: "read_query",
        arguments: json!({"query": "SELECT 6 * 7 AS answer"}),
        answer: "42",
    };
    let args = ["--db-path", database.to_str().unwrap()];
    let server = Marked::new("sqlite", &older_python("mcp-server-sqlite"), &args);
    server.goes_through(6, call, None).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn fastmcp() {
    let call = Call {
        tool: "add",
        arguments: json!({"a": 19, "b": 23}),
        answer: "42",
    };
    let slow = Call {
        tool: "slow",
        arguments: json!({"seconds": 30}),
        answer: "",
    };
    let server = Marked::new("fastmcp", &python("python"), &[&toy(), "stdio"]);
    server.goes_through(2, call, Some(slow)).await;
}
