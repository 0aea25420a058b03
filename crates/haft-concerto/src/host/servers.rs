//! MCP servers of a program (§9): started at the first call that needs them, ended with the host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{Defer, ToolObject};
use haft_mcp::{
    CallOptions, HttpKind, Label, McpTool, Pool, RenderOptions, Secret, Server, ServerSettings,
    ServerTools, StdioSettings, TransportSettings, Url,
};
use serde_json::{Map as JsonMap, Value as Json};

use super::Setup;
use super::connections::seconds;
use super::course::Course;
use super::house::House;
use super::web::allowed;
use crate::diagnostic::did_you_mean;
use crate::ir;
use crate::value::Value;
use crate::vm::McpCall;

/// The servers that a host started.
pub(super) struct Servers {
    pool: Pool,
}

impl Servers {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            pool: Pool::builder().connect(setup.connect.clone()).build(),
        }
    }

    /// The tools of a server for a model, in the server's order. One that cannot be started has none.
    pub(super) async fn tools(&self, house: &House, name: &str) -> Vec<Arc<dyn ToolObject>> {
        if house.setup.mock {
            return Vec::new();
        }
        let (server, tools) = match self.reach(house, name).await {
            Ok(reached) => reached,
            Err(problem) => {
                let text = format!("MCP server `{name}` is left out: {problem}");
                house.warn(&format!("server {name}"), &text);
                return Vec::new();
            }
        };
        let tool = |tool: &Arc<haft_mcp::ToolDef>| {
            match McpTool::new(Arc::clone(&server), Arc::clone(tool)) {
                // A program names the tools that it wants: none is held back.
                Ok(tool) => Some(Arc::new(tool.with_defer(Defer::Never)) as Arc<dyn ToolObject>),
                Err(error) => {
                    let text = format!("MCP server `{name}`: {error}");
                    house.warn(&text, &text);
                    None
                }
            }
        };
        tools.tools.iter().filter_map(tool).collect()
    }

    /// `Server::tool(arguments)` from code.
    pub(super) async fn call(&self, house: &House, course: &Course, call: &McpCall) -> Value {
        if house.setup.mock {
            let text = format!("MCP server '{}' is not started offline", call.server);
            return Value::result(Err(text));
        }
        Value::result(self.called(house, course, call).await)
    }

    async fn called(
        &self,
        house: &House,
        course: &Course,
        call: &McpCall,
    ) -> Result<Value, String> {
        let (server, tools) = self.reach(house, &call.server).await?;
        let Some(tool) = tools.get(&call.tool) else {
            return Err(unknown_tool(call, &tools));
        };
        let schema = tool.input_schema.as_ref().ok();
        let arguments = arguments(call, schema.map(|schema| &**schema))?;
        let options = CallOptions {
            cancel: course.cancel.clone(),
            ..CallOptions::default()
        };
        let outcome = server.call(&call.tool, arguments, options).await;
        let outcome = outcome.map_err(|error| {
            format!(
                "MCP server `{}`: {}",
                error.server,
                error.cause.for_callers()
            )
        })?;
        let shown = outcome.render(&RenderOptions::default());
        let text = shown.output.text_for_model();
        if outcome.is_error {
            return Err(text);
        }
        Ok(match &outcome.structured {
            Some(value) => Value::from_json(value),
            None => Value::text(text),
        })
    }

    /// A server and its tools; it is started if it does not run.
    async fn reach(
        &self,
        house: &House,
        name: &str,
    ) -> Result<(Arc<Server>, Arc<ServerTools>), String> {
        let server = self.server(house, name)?;
        let tools = server.tools().await.map_err(|error| error.to_string())?;
        let declared = config(house, name).and_then(|config| config.get("declared"));
        let declared = declared.and_then(Json::as_array).into_iter().flatten();
        for signature in declared.filter_map(Json::as_str) {
            if tools.get(signature).is_none() {
                let text = format!(
                    "MCP server `{name}` has no tool `{signature}`, which the program declares"
                );
                house.warn(&text, &text);
            }
        }
        Ok((server, tools))
    }

    fn server(&self, house: &House, name: &str) -> Result<Arc<Server>, String> {
        let label = name.rsplit("::").next().unwrap_or_default();
        if let Some(server) = self.pool.server(label) {
            return Ok(server);
        }
        let config = config(house, name);
        let has_place = |config: &&Json| config.get("command").or(config.get("url")).is_some();
        let Some(config) = config.filter(has_place) else {
            let known = house.setup.servers.as_ref();
            return known.and_then(|pool| pool.server(label)).ok_or_else(|| {
                "it has neither `command` nor `url`: describe it in `[mcp.*]` of Concerto.toml or \
                 haft.toml"
                    .to_owned()
            });
        };
        let settings = settings(&house.setup, name, label, config)?;
        match self.pool.add(settings) {
            Ok(server) => Ok(server),
            // Somebody else was faster.
            Err(taken) => self.pool.server(label).ok_or_else(|| taken.to_string()),
        }
    }

    /// Ends the servers.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

/// What the program and its manifest say about a server.
fn config<'h>(house: &'h House, name: &str) -> Option<&'h Json> {
    let connections = &house.program.ir().connections;
    let is_server =
        |it: &&ir::Connection| it.name == name && it.config.get("type") == Some(&Json::from("mcp"));
    connections.iter().find(is_server).map(|it| &it.config)
}

fn settings(
    setup: &Setup,
    name: &str,
    label: &str,
    config: &Json,
) -> Result<ServerSettings, String> {
    let text = |key: &str| config.get(key).and_then(Json::as_str);
    let label = Label::new(label).map_err(|error| error.to_string())?;
    let manifest = setup.manifest.as_ref();
    let known = manifest.and_then(|it| it.servers.iter().find(|it| it.name == name));
    let known = known.map(|it| &it.config);
    let is_same = |key: &str| known.is_some_and(|known| known.get(key) == config.get(key));
    let transport = text("transport");
    let over_http = matches!(transport, Some("http" | "sse")) || text("command").is_none();
    let mut settings = if over_http {
        let url = text("url").unwrap_or_default();
        let url = Url::parse(url).map_err(|error| format!("`url`: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("`url`: only http and https can be reached".to_owned());
        }
        if !is_same("url") {
            allowed(setup, &url)?;
        }
        let mut settings = ServerSettings::http(label, url);
        if let TransportSettings::Http(http) = &mut settings.transport {
            http.kind = match transport {
                Some("http") => HttpKind::Streamable,
                Some("sse") => HttpKind::Sse,
                _ => HttpKind::Auto,
            };
        }
        settings
    } else {
        if !is_same("command") {
            setup.permissions.may_start()?;
        }
        let env = variables(setup, config.get("env"), is_same("env"))?;
        let command = text("command").unwrap_or_default();
        ServerSettings::new(label, TransportSettings::Stdio(stdio(command, env)?))
    };
    if let Some(time) = config
        .get("timeout")
        .and_then(Json::as_f64)
        .and_then(seconds)
    {
        settings.timeouts.call = time;
        settings.timeouts.idle = time;
        settings.timeouts.connect = time.max(Duration::from_millis(100));
    }
    Ok(settings)
}

/// That a server has no such tool, and which it has.
fn unknown_tool(call: &McpCall, tools: &ServerTools) -> String {
    let McpCall { server, tool, .. } = call;
    let names = || tools.tools.iter().map(|tool| &*tool.name);
    let text = format!("MCP server '{server}' has no tool '{tool}'");
    if let Some(meant) = did_you_mean(tool, names()) {
        return format!("{text}: did you mean '{meant}'?");
    }
    let names = names().collect::<Vec<_>>().join(", ");
    format!("{text}: it has {names}")
}

/// A command, split into words; there is no shell.
fn stdio(command: &str, env: BTreeMap<String, Secret>) -> Result<StdioSettings, String> {
    let mut words = command.split_whitespace().map(str::to_owned);
    Ok(StdioSettings {
        command: words.next().ok_or("`command` is empty")?,
        args: words.collect(),
        env,
        cwd: None,
    })
}

/// `env = { VAR = "NAME_OF_VAR" }`. What is not the manifest's needs permission.
fn variables(
    setup: &Setup,
    env: Option<&Json>,
    is_granted: bool,
) -> Result<BTreeMap<String, Secret>, String> {
    let mut variables = BTreeMap::new();
    for (variable, name) in env.and_then(Json::as_object).into_iter().flatten() {
        let name = name
            .as_str()
            .ok_or_else(|| format!("`env.{variable}` is the name of a variable"))?;
        if !is_granted {
            setup.permissions.may_read_variable(name)?;
        }
        let value = (setup.variables)(name);
        let value = value.ok_or_else(|| format!("environment variable {name} is not set"))?;
        variables.insert(variable.clone(), Secret::new(value));
    }
    Ok(variables)
}

/// The arguments of a call by name: those without one get the names of the tool's schema, in order.
fn arguments(call: &McpCall, schema: Option<&Json>) -> Result<JsonMap<String, Json>, String> {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let mut names = properties.into_iter().flat_map(JsonMap::keys);
    let mut arguments = JsonMap::new();
    for (name, value) in &call.arguments {
        let name = match name {
            Some(name) => name.to_string(),
            None => names.next().cloned().ok_or_else(|| {
                format!(
                    "`{}::{}` has no further parameter: name the arguments",
                    call.server, call.tool
                )
            })?,
        };
        let json = value.to_json().map_err(|error| error.to_string())?;
        let json = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        arguments.insert(name, json);
    }
    Ok(arguments)
}
