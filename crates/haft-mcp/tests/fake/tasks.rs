//! Tasks of the modern era: a call that is answered later.

use serde_json::{Value, json};

use super::asking::form;
use super::brain::Sink;
use super::words::{answer, refuse, text};

/// The tasks of a server.
#[derive(Default)]
pub struct Tasks {
    tasks: Vec<Task>,
}

struct Task {
    /// What the call said: how many `polls` it takes, whether it `asks`, and how it `ends`.
    arguments: Value,
    polls: u64,
    responses: Value,
    is_cancelled: bool,
}

impl Tasks {
    /// Answers a call with a new task, if the client takes one.
    pub fn start(&mut self, id: &Value, params: &Value, sink: &Sink) {
        let capabilities = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let is_offered = &capabilities["extensions"]["io.modelcontextprotocol/tasks"];
        if !is_offered.is_object() && params["arguments"]["anyway"] != true {
            return text(sink, id, "at once");
        }
        self.tasks.push(Task {
            arguments: params["arguments"].clone(),
            polls: 0,
            responses: Value::Null,
            is_cancelled: false,
        });
        let mut state = self.state(self.tasks.len() - 1);
        state["resultType"] = "task".into();
        answer(sink, id, &state);
    }

    pub fn hear(&mut self, method: &str, id: &Value, params: &Value, sink: &Sink) {
        let number = params["taskId"].as_str();
        let number = number.and_then(|it| it.parse::<usize>().ok());
        let Some(number) = number.filter(|it| *it < self.tasks.len()) else {
            return refuse(sink, id, -32602, "unknown task");
        };
        let task = &mut self.tasks[number];
        match method {
            "tasks/get" => {
                task.polls += 1;
                answer(sink, id, &self.state(number));
            }
            "tasks/update" => {
                task.responses = params["inputResponses"].clone();
                answer(sink, id, &json!({"resultType": "complete"}));
            }
            _ => {
                task.is_cancelled = true;
                answer(sink, id, &json!({"resultType": "complete"}));
            }
        }
    }

    /// The numbers of the tasks that were cancelled.
    pub fn cancelled(&self) -> Value {
        let numbered = self.tasks.iter().enumerate();
        let cancelled = numbered.filter(|(_, task)| task.is_cancelled);
        cancelled.map(|(number, _)| Value::from(number)).collect()
    }

    fn state(&self, number: usize) -> Value {
        let task = &self.tasks[number];
        let mut state = json!({
            "resultType": "complete",
            "taskId": number.to_string(),
            "status": "working",
            "statusMessage": format!("poll {}", task.polls),
            "createdAt": "2026-11-18T00:00:00Z",
            "lastUpdatedAt": "2026-11-18T00:00:00Z",
            "ttlMs": null,
            "pollIntervalMs": 1,
        });
        if task.polls == 0 || task.polls < task.arguments["polls"].as_u64().unwrap_or(2) {
            return state;
        }
        if task.arguments["asks"] == true && task.responses.is_null() {
            state["status"] = "input_required".into();
            let request = json!({"method": "elicitation/create", "params": form()});
            state["inputRequests"] = json!({"who": request});
            return state;
        }
        let ends = task.arguments["ends"].as_str().unwrap_or("completed");
        state["status"] = ends.into();
        match ends {
            "completed" => {
                let seen = format!("after {} polls: {}", task.polls, task.responses);
                state["result"] = json!({"content": [{"type": "text", "text": seen}]});
            }
            "failed" => state["error"] = json!({"code": -32000, "message": "out of cheese"}),
            _ => {}
        }
        state
    }
}
