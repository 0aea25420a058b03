//! A conversation with a server, which keeps it.

use std::error::Error;
use std::io;
use std::time::Duration;

use haft::models::process_environment;
use haft::{Usage, Value, json};

use super::answer::{Answer, AnswerEnd, Reply, usage_of};
use super::approval::{Question, Word};
use super::desk::Desk;
use super::memory::Memory;
use super::open_calls::OpenCalls;
use super::place::Place;
use crate::arguments::ChatArguments;
use crate::catalogue;
use crate::failure::Failure;
use crate::remote::{Events, Remote, RemoteError};

/// How haft's own servers sign their models.
const OWN_NAME: &str = "haft";

/// The tools that every haft server has.
const USUAL_TOOLS: [&str; 2] = ["clock", "calculate"];

/// After an answer was stopped, the server may still be busy with it: how often it is asked again, and
/// after which pause.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(250);

/// A server, and where the conversation with it stands.
pub(super) struct Server {
    remote: Remote,
    models: Vec<String>,
    model: Option<String>,
    /// Who answered last, as the server says.
    answered: Option<String>,
    tools: Vec<Value>,
    instructions: Option<String>,
    place: Place,
    memory: Memory,
    pub(super) open: OpenCalls,
}

impl Server {
    /// The server that the arguments name. It is asked for its models: whoever is not there, or wants
    /// a key, is told of at once.
    pub(super) async fn open(arguments: &ChatArguments) -> Result<Self, Box<dyn Error>> {
        let remote = Remote::connect(&arguments.remote)?;
        let list = remote.get(&["models"], &[]).await?;
        let listed = list["data"].as_array().map_or(&[][..], Vec::as_slice);
        let is_own = listed.iter().any(|model| model["owned_by"] == OWN_NAME);
        let ids = listed.iter().filter_map(|model| model["id"].as_str());
        let models: Vec<String> = ids.map(str::to_owned).collect();
        let tools = match &arguments.tools {
            Some(tools) => tools.iter().filter(|it| *it != "none").cloned().collect(),
            None if is_own => USUAL_TOOLS.map(str::to_owned).to_vec(),
            // Others know no tools of ours.
            None => Vec::new(),
        };
        let typed = |tool: String| {
            let prefix = if tool.contains(':') {
                ""
            } else {
                catalogue::PREFIX
            };
            json!({"type": format!("{prefix}{tool}")})
        };
        let mut server = Self {
            remote,
            models,
            model: None,
            answered: None,
            tools: tools.into_iter().map(typed).collect(),
            instructions: arguments.instructions.clone(),
            place: Place::default(),
            memory: Memory::of_this_user(&process_environment),
            open: OpenCalls::default(),
        };
        if let Some(name) = &arguments.model {
            server.choose(name).await?;
        }
        server.place = Place::find(&server.remote, arguments, &server.memory).await?;
        server.open = OpenCalls::of(server.place.past());
        Ok(server)
    }

    pub(super) fn base(&self) -> &str {
        self.remote.base()
    }

    /// Who answers: whoever was chosen, else whoever answered last, else the only one.
    pub(super) fn name(&self) -> &str {
        let known = self.model.as_deref().or(self.answered.as_deref());
        known.unwrap_or(match self.models.as_slice() {
            [only] => only,
            _ => "the server's own choice",
        })
    }

    pub(super) fn models(&self) -> Vec<String> {
        self.models.clone()
    }

    /// Lets another model answer: one that the server has, where it tells which these are.
    pub(super) async fn choose(&mut self, name: &str) -> Result<(), Box<dyn Error>> {
        let is_listed = self.models.is_empty() || self.models.iter().any(|known| known == name);
        if !is_listed {
            // It may be one by another name.
            match self.remote.get(&["models", name], &[]).await {
                Err(error) if error.status == Some(404) => return Err(self.unknown(name).into()),
                asked => drop(asked?),
            }
        }
        self.model = Some(name.to_owned());
        Ok(())
    }

    fn unknown(&self, name: &str) -> Failure {
        let known: Vec<_> = self.models.iter().map(|it| format!("`{it}`")).collect();
        Failure::mistake(format!("the server has no model `{name}`"))
            .remedy(format!("take one of {}", known.join(", ")))
    }

    /// What to say about where the conversation begins.
    pub(super) fn note(&self) -> Option<&str> {
        self.place.note()
    }

    /// The conversation of the API, if it is in one.
    pub(super) fn conversation(&self) -> Option<&str> {
        self.place.conversation()
    }

    pub(super) fn tools(&self) -> Vec<(String, String)> {
        let types = self.tools.iter().filter_map(|tool| tool["type"].as_str());
        types
            .map(|kind| (kind.to_owned(), String::from("runs on the server")))
            .collect()
    }

    /// What was said before this conversation was taken up.
    pub(super) fn past(&self) -> &[Value] {
        self.place.past()
    }

    /// The command that goes on with this conversation.
    pub(super) fn way_back(&self) -> Option<String> {
        let back = self.place.way_back()?;
        Some(format!("haft chat --server {} {back}", self.base()))
    }

    pub(super) async fn begin_anew(&mut self) -> Result<(), RemoteError> {
        self.open = OpenCalls::default();
        self.place.begin_anew(&self.remote).await
    }

    /// Answers a message.
    pub(super) async fn answer(
        &mut self,
        message: &str,
        desk: &mut Desk,
    ) -> Result<Reply, Box<dyn Error>> {
        let message = json!({"type": "message", "role": "user", "content": message});
        self.go_on(vec![message], desk).await
    }

    /// Goes on with these items: asks the model, and the person where the server wants that.
    pub(super) async fn go_on(
        &mut self,
        mut input: Vec<Value>,
        desk: &mut Desk,
    ) -> Result<Reply, Box<dyn Error>> {
        let mut answer = Answer {
            end: AnswerEnd::Stopped,
            items: Vec::new(),
            usage: Usage::default(),
            response_id: None,
            conversation_id: self.place.conversation().map(str::to_owned),
        };
        loop {
            answer.items.extend(input.iter().cloned());
            let response = match self.exchange(&input, desk).await? {
                Exchange::Ended(response) => response,
                Exchange::Stopped => {
                    answer.end = AnswerEnd::Stopped;
                    return Ok(Reply::Answer(answer));
                }
            };
            let output = response["output"].as_array().cloned().unwrap_or_default();
            answer.items.extend(output.iter().cloned());
            answer.usage += usage_of(&response);
            answer.response_id = response["id"].as_str().map(str::to_owned);
            self.answered = response["model"].as_str().map(str::to_owned);
            self.open = OpenCalls::of(&output);
            answer.end = end_of(&response, !self.open.is_empty());
            input = match self.approvals(&output, desk).await? {
                Some(answers) if answers.is_empty() => return Ok(Reply::Answer(answer)),
                Some(answers) => answers,
                None => {
                    answer.end = AnswerEnd::Stopped;
                    return Ok(Reply::Answer(answer));
                }
            };
        }
    }

    /// Asks about the calls that the server wants to have approved; nothing if somebody wants no
    /// answer any more.
    async fn approvals(&self, output: &[Value], desk: &mut Desk) -> io::Result<Option<Vec<Value>>> {
        let requests = output
            .iter()
            .filter(|it| it["type"] == "mcp_approval_request");
        let mut answers = Vec::new();
        for request in requests {
            let text = |name: &str| request[name].as_str().unwrap_or_default();
            let arguments = serde_json::from_str(text("arguments"));
            let arguments = arguments.unwrap_or_else(|_| Value::from(text("arguments")));
            let tool = format!("{}/{}", text("server_label"), text("name"));
            let question = Question {
                tool: &tool,
                arguments: &arguments,
                reason: "the server asks for approval",
            };
            let mut answer = json!({
                "type": "mcp_approval_response",
                "approval_request_id": text("id"),
                "approve": false,
            });
            match desk.judge(&question).await? {
                Word::Yes | Word::Always => answer["approve"] = true.into(),
                Word::No(reason) => answer["reason"] = reason.into(),
                Word::Quit => return Ok(None),
            }
            answers.push(answer);
        }
        Ok(Some(answers))
    }

    /// One response, shown as it comes.
    async fn exchange(
        &mut self,
        input: &[Value],
        desk: &mut Desk,
    ) -> Result<Exchange, Box<dyn Error>> {
        desk.vigil.begin("waiting for the server");
        let exchanged = self.follow(input, desk).await;
        desk.vigil.end();
        exchanged
    }

    async fn follow(
        &mut self,
        input: &[Value],
        desk: &mut Desk,
    ) -> Result<Exchange, Box<dyn Error>> {
        let begun = {
            let mut begun = std::pin::pin!(self.begin(input));
            loop {
                tokio::select! {
                    begun = &mut begun => break Some(begun?),
                    () = desk.interrupts.next() => break None,
                    () = desk.vigil.due() => desk.vigil.show(),
                }
            }
        };
        let Some(mut events) = begun else {
            self.place.stopped();
            return Ok(Exchange::Stopped);
        };
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = desk.interrupts.next() => {
                    // To hang up stops the run; what it finished until then is stored.
                    self.place.stopped();
                    return Ok(Exchange::Stopped);
                }
                () = desk.vigil.due() => {
                    desk.vigil.show();
                    continue;
                }
            };
            let Some(event) = event.transpose()? else {
                return Err(Box::new(RemoteError::without_end()));
            };
            desk.vigil.end();
            desk.screen.show_wire(&event)?;
            if !desk.screen.is_in_words() {
                desk.vigil.begin("waiting for the model and its tools");
            }
            let response = &event["response"];
            match event["type"].as_str().unwrap_or_default() {
                "response.created" => self.place.began(response),
                "response.completed" | "response.incomplete" | "response.failed" => {
                    self.place.ended(response);
                    if let Some(last) = self.place.to_remember() {
                        self.memory.keep(self.remote.base(), last);
                    }
                    return Ok(Exchange::Ended(response.clone()));
                }
                _ => {}
            }
        }
    }

    /// Sends what is to be answered; waits for the server if it is not done with the last answer.
    async fn begin(&mut self, input: &[Value]) -> Result<Events, RemoteError> {
        for _ in 0..BUSY_TRIES {
            let begun = self.remote.stream(&["responses"], &self.body(input)).await;
            let error = match begun {
                Err(error) if self.place.was_stopped() => error,
                begun => return begun,
            };
            if error.has_code("previous_response_not_found") {
                // What was stopped so early was not stored.
                self.place.step_back();
            } else if error.status == Some(409) {
                tokio::time::sleep(BUSY_PAUSE).await;
            } else {
                return Err(error);
            }
        }
        self.remote.stream(&["responses"], &self.body(input)).await
    }

    fn body(&self, input: &[Value]) -> Value {
        let mut body = json!({"input": input, "stream": true});
        if let Some(model) = &self.model {
            body["model"] = model.as_str().into();
        }
        if let Some(instructions) = &self.instructions {
            body["instructions"] = instructions.as_str().into();
        }
        if !self.tools.is_empty() {
            body["tools"] = self.tools.clone().into();
        }
        self.place.add_to(&mut body);
        body
    }
}

/// How one response went.
enum Exchange {
    Ended(Value),
    Stopped,
}

fn end_of(response: &Value, is_open: bool) -> AnswerEnd {
    let reason = |path: &str| {
        let reason = response.pointer(path).and_then(Value::as_str);
        reason.unwrap_or("it does not say why").to_owned()
    };
    match response["status"].as_str().unwrap_or_default() {
        "completed" | "requires_action" if is_open => AnswerEnd::Waiting,
        "completed" | "requires_action" => AnswerEnd::Completed,
        "incomplete" => AnswerEnd::Incomplete(format!(
            "the answer is incomplete: `{}`",
            reason("/incomplete_details/reason")
        )),
        "cancelled" => AnswerEnd::Stopped,
        _ => AnswerEnd::Failed(reason("/error/message")),
    }
}
