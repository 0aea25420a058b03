//! `listen` (§18): messages of an agent go to handlers of the program.

use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json, json};

use super::process::{Reply, Talk};
use super::{declared, message};
use crate::host::course::Course;
use crate::host::session::Session;
use crate::ir;
use crate::value::{Map, Value};
use crate::vm::{Failure, ListenCall};

/// Why listening ended early.
enum Ended {
    /// An `Err` for the program.
    Error(Value),
    /// The program ends.
    Stop(Failure),
}

impl From<String> for Ended {
    fn from(text: String) -> Self {
        Self::Error(Value::text(text))
    }
}

/// A `listen` expression: a Result.
pub(in crate::host) async fn listen(
    session: &Arc<Session>,
    course: &Course,
    listen: &ListenCall,
) -> Result<Value, Failure> {
    let name = &*listen.call.model;
    let agent = match declared(session, name) {
        Ok(agent) => agent,
        Err(text) => return Ok(Value::err(Value::text(text))),
    };
    let start = [
        ("agent", Value::from(name)),
        ("listen", Value::from(&*listen.listen)),
    ];
    session.emit("listen:start", map(start)).await;
    match talk(session, course, agent, listen).await {
        Ok(value) => {
            session
                .emit("listen:complete", map([("agent", Value::from(name))]))
                .await;
            Ok(Value::ok(value))
        }
        Err(Ended::Error(error)) => {
            let payload = map([("agent", Value::from(name)), ("error", error.clone())]);
            session.emit("listen:error", payload).await;
            Ok(Value::err(error))
        }
        Err(Ended::Stop(failure)) => Err(failure),
    }
}

fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::map(members.into_iter().collect::<Map>())
}

async fn talk(
    session: &Arc<Session>,
    course: &Course,
    agent: &ir::Agent,
    listen: &ListenCall,
) -> Result<Value, Ended> {
    let first = message(session, agent, &listen.call).await?;
    let partner = session.house.partners.agents.partner(&agent.name);
    let mut talk = partner.begin(&session.house, agent).await?;
    talk.send(&first).await?;
    loop {
        let line = match talk.line().await? {
            Reply::Line(line) => line,
            Reply::Ended(why) => return Err(why.into()),
        };
        let Some((kind, mut members)) = typed(&line) else {
            talk.over();
            return Ok(map([("text", Value::from(line.as_str()))]));
        };
        match kind.as_str() {
            "result" => {
                members.remove("type");
                talk.over();
                return Ok(Value::from_json(&Json::Object(members)));
            }
            "error" => {
                talk.over();
                let text = match members.get("message") {
                    Some(Json::String(text)) => text.clone(),
                    _ => line,
                };
                return Err(text.into());
            }
            _ => handle(session, course, listen, &mut talk, &kind, members).await?,
        }
    }
}

/// A line that is an object with a type.
fn typed(line: &str) -> Option<(String, JsonMap<String, Json>)> {
    match serde_json::from_str(line) {
        Ok(Json::Object(members)) => {
            let kind = members.get("type")?.as_str()?.to_owned();
            Some((kind, members))
        }
        _ => None,
    }
}

/// Gives a message to its handler, and the handler's value back to the agent.
async fn handle(
    session: &Arc<Session>,
    course: &Course,
    listen: &ListenCall,
    talk: &mut Talk,
    kind: &str,
    members: JsonMap<String, Json>,
) -> Result<(), Ended> {
    let message = Value::from_json(&Json::Object(members));
    let handler = listen.handlers.iter().find(|(it, _)| **it == *kind);
    let Some((_, handler)) = handler else {
        let payload = [
            ("agent", Value::from(&*listen.call.model)),
            ("type", Value::from(kind)),
            ("message", message),
        ];
        session.emit("listen:unhandled", map(payload)).await;
        return Ok(());
    };
    let fiber = session.machine().await.call(handler, vec![message]);
    let fiber = fiber.map_err(|failure| Ended::Error(Value::text(failure.to_string())))?;
    let value = match session.drive(fiber, course.clone()).await {
        Ok(value) => value,
        Err(ended) => {
            return Err(match ended.failure {
                Failure::Raised(value) => Ended::Error(value),
                fault @ Failure::Fault(_) => Ended::Error(Value::text(fault.to_string())),
                stop @ Failure::Stop(_) => Ended::Stop(stop),
            });
        }
    };
    if matches!(value, Value::Nil) {
        return Ok(());
    }
    let value = value.to_json().map_err(|error| error.to_string())?;
    let value: Json = serde_json::from_str(&value).map_err(|error| error.to_string())?;
    let response = json!({"type": "response", "in_reply_to": kind, "value": value});
    talk.send(&response.to_string()).await?;
    Ok(())
}
