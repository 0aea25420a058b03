//! An agent's process: one talk at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{Pipes, Process, Secret, StdioSettings};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::super::connections::seconds;
use super::super::house::House;
use super::line;
use crate::ir;

/// How long an agent may take for a line if nothing is said.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How long each step of its end may take.
const STEP: Duration = Duration::from_millis(500);

/// An agent, whether its process runs or not.
#[derive(Default)]
pub(super) struct Partner(Arc<Mutex<Option<Running>>>);

struct Running {
    process: Process,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// A talk with an agent. Unless it comes to its end the process is not used again: nobody knows what it
/// still has to say.
pub(super) struct Talk {
    held: OwnedMutexGuard<Option<Running>>,
    name: String,
    timeout: Duration,
    is_over: bool,
}

/// What comes from an agent.
pub(super) enum Reply {
    Line(String),
    /// It wrote nothing more, and this is what is known about it.
    Ended(String),
}

impl Partner {
    /// Begins a talk; starts the process if it does not run.
    pub(super) async fn begin(&self, house: &House, agent: &ir::Agent) -> Result<Talk, String> {
        let timeout = agent.settings.get("timeout").and_then(Json::as_f64);
        let timeout = timeout.and_then(seconds).unwrap_or(TIMEOUT);
        let held = Arc::clone(&self.0).lock_owned();
        let held = tokio::time::timeout(timeout, held).await;
        let held = held.map_err(|_| format!("agent '{}' is busy", agent.name))?;
        let mut talk = Talk {
            held,
            name: agent.name.clone(),
            timeout,
            is_over: false,
        };
        if talk.held.is_none() {
            *talk.held = Some(start(house, agent)?);
            if let Some(params) = agent.settings.get("params") {
                talk.introduce(params).await?;
            }
        }
        Ok(talk)
    }

    /// Ends the process.
    pub(super) async fn close(&self) {
        if let Some(running) = self.0.lock().await.take() {
            let Running { process, stdin, .. } = running;
            drop(stdin);
            process.stop(STEP).await;
        }
    }
}

impl Talk {
    /// Tells a new process its parameters.
    async fn introduce(&mut self, params: &Json) -> Result<(), String> {
        let init = json!({"type": "init", "params": params});
        self.send(&init.to_string()).await?;
        let said = match self.line().await? {
            Reply::Line(line) => line,
            Reply::Ended(why) => return Err(why),
        };
        let json: Option<Json> = serde_json::from_str(&said).ok();
        match json.as_ref().and_then(|json| json.get("type")?.as_str()) {
            Some("init_ack") => Ok(()),
            _ => Err(format!(
                "agent '{}' did not acknowledge its parameters: {}",
                self.name,
                haft_core::cut(&said)
            )),
        }
    }

    /// Writes a line.
    pub(super) async fn send(&mut self, line: &str) -> Result<(), String> {
        let Some(running) = self.held.as_mut() else {
            return Err(format!("agent '{}' does not run", self.name));
        };
        let line = format!("{line}\n");
        let sending = async {
            running.stdin.write_all(line.as_bytes()).await?;
            running.stdin.flush().await
        };
        match tokio::time::timeout(self.timeout, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.ended(&error.to_string()).await),
            Err(_) => Err(self.late()),
        }
    }

    /// Reads a line.
    pub(super) async fn line(&mut self) -> Result<Reply, String> {
        let Some(running) = self.held.as_mut() else {
            return Err(format!("agent '{}' does not run", self.name));
        };
        let reading = line::next(&mut running.stdout);
        match tokio::time::timeout(self.timeout, reading).await {
            Ok(Ok(Some(line))) => Ok(Reply::Line(line)),
            Ok(Ok(None)) => Ok(Reply::Ended(self.ended("it ended").await)),
            Ok(Err(error)) => Err(format!("agent '{}': {error}", self.name)),
            Err(_) => Err(self.late()),
        }
    }

    fn late(&self) -> String {
        format!(
            "agent '{}' did not answer within {}s",
            self.name,
            self.timeout.as_secs_f64()
        )
    }

    /// What is known about a process that does not talk any more.
    async fn ended(&mut self, how: &str) -> String {
        let mut text = format!("agent '{}': {how}", self.name);
        if let Some(running) = self.held.as_mut() {
            if let Some(status) = running.process.end().await {
                text = format!("{text} ({status})");
            }
            let words = running.process.last_words().await;
            if !words.is_empty() {
                text = format!("{text}: {words}");
            }
        }
        text
    }

    /// It came to its end as it should: the process stays.
    pub(super) fn over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if !self.is_over {
            // Kills it.
            *self.held = None;
        }
    }
}

fn start(house: &House, agent: &ir::Agent) -> Result<Running, String> {
    let name = &agent.name;
    let settings = &agent.settings;
    let text = |key: &str| settings.get(key).and_then(Json::as_str);
    let Some(command) = text("command") else {
        let connector = &agent.connector;
        return Err(format!(
            "agent '{name}': [agents.{connector}] of Concerto.toml names no command"
        ));
    };
    let manifest = house.setup.manifest.as_ref();
    let known = manifest.and_then(|manifest| {
        let mut agents = manifest.agents.iter();
        agents.find(|(name, _)| *name == agent.connector)
    });
    // What is started, with what and where, is the manifest's, or allowed.
    let is_granted = known.is_some_and(|(_, known)| {
        let keys = ["command", "args", "env", "working_dir"];
        keys.iter().all(|key| known.get(*key) == settings.get(*key))
    });
    if !is_granted {
        let allowed = house.setup.permissions.may_start();
        allowed.map_err(|denied| format!("agent '{name}': {denied}"))?;
    }
    let mut words = command.split_whitespace().map(str::to_owned);
    let program = words.next();
    let program = program.ok_or_else(|| format!("agent '{name}': `command` is empty"))?;
    let args = settings.get("args").and_then(Json::as_array);
    let args = args.into_iter().flatten().filter_map(Json::as_str);
    let settings = StdioSettings {
        command: program,
        args: words.chain(args.map(str::to_owned)).collect(),
        env: environment(house, settings.get("env"), is_granted),
        cwd: text("working_dir").map(PathBuf::from),
    };
    let started = house.setup.connect.launcher.start(&settings);
    let (process, Pipes { stdin, stdout }) =
        started.map_err(|error| format!("agent '{name}': {error}"))?;
    Ok(Running {
        process,
        stdin,
        stdout: BufReader::new(stdout),
    })
}

/// The variables of an agent: that of the named variable if there is one, else the text itself.
fn environment(house: &House, env: Option<&Json>, is_granted: bool) -> BTreeMap<String, Secret> {
    let entries = env.and_then(Json::as_object).into_iter().flatten();
    let entry = |(variable, named): (&String, &Json)| {
        let named = named.as_str()?;
        let may_read = is_granted || house.setup.permissions.env.allows(named);
        let value = Some(named).filter(|_| may_read);
        let value = value.and_then(|named| (house.setup.variables)(named));
        let value = value.unwrap_or_else(|| named.to_owned());
        Some((variable.clone(), Secret::new(value)))
    };
    entries.filter_map(entry).collect()
}
