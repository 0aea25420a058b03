//! Agents (§18): processes that answer lines, started on first use and kept alive.

mod line;
mod listening;
mod process;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map as JsonMap, Value as Json, json};

use self::process::{Partner, Reply};
use super::session::Session;
use super::{Unfit, reply};
use crate::ir;
use crate::value::Value;
use crate::vm::{Failure, ModelCall};

pub(super) use self::listening::listen;

/// The agents that a host started, by name.
#[derive(Default)]
pub(super) struct Agents(Mutex<HashMap<String, Arc<Partner>>>);

impl Agents {
    /// The one of this name, whether its process runs or not.
    fn partner(&self, name: &str) -> Arc<Partner> {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(agents.entry(name.to_owned()).or_default())
    }

    /// Ends all processes.
    pub(super) async fn close(&self) {
        let agents: Vec<_> = {
            let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            agents.drain().map(|(_, agent)| agent).collect()
        };
        for agent in agents {
            agent.close().await;
        }
    }
}

/// The agent of a call, if it may be used.
fn declared<'s>(session: &'s Session, name: &str) -> Result<&'s ir::Agent, String> {
    if session.house.setup.mock {
        return Err(format!("agent '{name}' is not started offline"));
    }
    let agents = &session.house.program.ir().agents;
    let agent = agents.iter().find(|agent| agent.name == name);
    agent.ok_or_else(|| format!("there is no agent '{name}'"))
}

/// `execute` and `execute_with_schema`: a Result.
pub(super) async fn call(session: &Arc<Session>, call: &ModelCall) -> Result<Value, Failure> {
    let text = match asked(session, call).await {
        Ok(text) => text,
        Err(why) => return Ok(Value::result(Err(why))),
    };
    let mut machine = session.machine().await;
    let value = match &call.schema {
        None => Value::from(text.as_str()),
        Some(schema) => match super::read_answer(&mut machine, schema, &text) {
            Ok(value) => value,
            Err(Unfit::Invalid(errors)) => {
                return Ok(Value::result(Err(reply::invalid(1, &errors))));
            }
            Err(Unfit::Failed(failure)) => return Err(*failure),
        },
    };
    reply::remember(&mut machine, call, &text);
    Ok(Value::ok(value))
}

/// What the agent answers.
async fn asked(session: &Arc<Session>, call: &ModelCall) -> Result<String, String> {
    let agent = declared(session, &call.model)?;
    let message = message(session, agent, call).await?;
    let partner = session.house.partners.agents.partner(&agent.name);
    let mut talk = partner.begin(&session.house, agent).await?;
    talk.send(&message).await?;
    let said = match talk.line().await? {
        Reply::Line(line) => line,
        Reply::Ended(why) => return Err(why),
    };
    talk.over();
    drop(partner);
    Ok(text_of(agent, said))
}

/// What an agent's line says: with JSON the member `text`, if there is one.
fn text_of(agent: &ir::Agent, line: String) -> String {
    if agent.output_format != "json" {
        return line;
    }
    let json: Option<Json> = serde_json::from_str(&line).ok();
    match json.as_ref().and_then(|json| json.get("text")?.as_str()) {
        Some(text) => text.to_owned(),
        None => line,
    }
}

/// The line that a call sends. A text in several lines becomes one, with blanks between; JSON keeps them,
/// and has place for context and memory.
async fn message(session: &Session, agent: &ir::Agent, call: &ModelCall) -> Result<String, String> {
    if agent.input_format != "json" {
        if call.builder.as_ref().is_some_and(|it| it.context.is_some()) {
            let name = &agent.name;
            let text = format!("agent `{name}` gets no context: its `input_format` is not `json`");
            session.house.warn(&text, &text);
        }
        let lines: Vec<&str> = call.prompt.lines().collect();
        return Ok(lines.join(" "));
    }
    let mut message = JsonMap::new();
    message.insert("prompt".to_owned(), Json::from(call.prompt.as_str()));
    let builder = call.builder.as_deref();
    if let Some(context) = builder.and_then(|it| it.context.as_ref()) {
        let context = context.to_json().map_err(|error| error.to_string())?;
        let context = serde_json::from_str(&context).map_err(|error| error.to_string())?;
        message.insert("context".to_owned(), context);
    }
    if let Some((memory, _)) = builder.and_then(|it| it.memory.as_ref()) {
        let mut machine = session.machine().await;
        let messages = machine.stores().messages(memory);
        let messages = messages.map(|it| json!({"role": it.role, "content": it.content}));
        message.insert("memory".to_owned(), messages.collect());
    }
    Ok(Json::Object(message).to_string())
}
