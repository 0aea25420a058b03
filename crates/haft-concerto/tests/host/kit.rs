//! Programs with a scripted provider behind them.

use std::sync::{Arc, Mutex};

use haft_concerto::host::{Host, RunFailure, Setup};
use haft_concerto::load::load;
use haft_concerto::manifest::Manifest;
use haft_concerto::vm::Output;
use haft_concerto::{Options, Source, compile};
use haft_models::testing::{ScriptedServer, Step};
use serde_json::Value;

/// What a program printed.
#[derive(Clone, Default)]
pub struct Printed(Arc<Mutex<String>>);

impl Printed {
    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Output for Printed {
    fn print(&mut self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    fn log(&mut self, line: &str) {
        self.print(&format!("{line}\n"));
    }
}

/// A host, and what comes of it.
pub struct Stage {
    pub host: Host,
    pub printed: Printed,
    pub warnings: Arc<Mutex<Vec<String>>>,
}

/// A manifest with the connection `desk` at this address, and more.
pub fn manifest(address: &str, more: &str) -> String {
    format!(
        "[project]\nname = \"test\"\n[connections.desk]\nprovider = \"openai\"\n\
         api_key_env = \"DESK_KEY\"\nbase_url = \"{address}\"\n{more}"
    )
}

/// A host for a program with this manifest.
pub fn stage(manifest: &str, program: &str, change: impl FnOnce(&mut Setup)) -> Stage {
    let manifest = Manifest::read(manifest).unwrap();
    assert_eq!(manifest.warnings, []);
    let options = Options {
        manifest: Some(manifest.clone()),
        ..Options::default()
    };
    let compiled = compile(&Source::new("test.conc", program), &options);
    assert!(!compiled.has_errors(), "{}", compiled.render());
    let program = load(compiled.ir.unwrap()).unwrap();
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&warnings);
    let mut setup = Setup {
        manifest: Some(manifest),
        variables: Arc::new(|name| match name {
            "DESK_KEY" => Some("sk-test".to_owned()),
            "NAME_OF_SECRET" => Some("hunter2".to_owned()),
            _ => None,
        }),
        warn: Arc::new(move |text| heard.lock().unwrap().push(text.to_owned())),
        ..Setup::default()
    };
    change(&mut setup);
    Stage {
        host: Host::new(program, setup),
        printed: Printed::default(),
        warnings,
    }
}

impl Stage {
    /// Runs the program to its end and gives what it printed.
    pub async fn run(&self) -> Result<String, RunFailure> {
        let ended = self.host.run(Box::new(self.printed.clone())).await;
        self.host.close().await;
        ended.map(|_| self.printed.text())
    }

    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap().clone()
    }
}

/// A provider that answers like this.
pub async fn provider(steps: impl IntoIterator<Item = Step>) -> ScriptedServer {
    let steps: Vec<Step> = steps.into_iter().collect();
    ScriptedServer::start(steps).await.unwrap()
}

/// Runs a program that asks this provider.
pub async fn run(server: &ScriptedServer, program: &str) -> String {
    run_with(server, "", program).await
}

/// The same with more in its manifest.
pub async fn run_with(server: &ScriptedServer, more: &str, program: &str) -> String {
    let stage = stage(&manifest(&server.base_url(), more), program, |_| {});
    let printed = stage.run().await.unwrap();
    assert_eq!(stage.warnings(), Vec::<String>::new());
    printed
}

/// The bodies of the requests so far.
pub fn bodies(server: &ScriptedServer) -> Vec<Value> {
    server.received().into_iter().map(|it| it.body).collect()
}

/// The names of the tools in a request; none if it has no such member.
pub fn tools(body: &Value) -> Option<Vec<&str>> {
    let tools = body.get("tools")?.as_array()?;
    Some(
        tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap())
            .collect(),
    )
}

/// Role and content of the messages of a request.
pub fn messages(body: &Value) -> Vec<(&str, String)> {
    let messages = body["messages"].as_array().unwrap();
    let message = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    messages
        .iter()
        .map(|it| (it["role"].as_str().unwrap(), message(it)))
        .collect()
}

/// The contents of the tool messages of a request.
pub fn results(body: &Value) -> Vec<String> {
    let messages = messages(body).into_iter();
    messages
        .filter_map(|(role, content)| (role == "tool").then_some(content))
        .collect()
}
