//! Calls of models: each is a run of haft's engine (§8, §9.1).

use std::sync::{Arc, Mutex, PoisonError};

use haft_core::{
    Defer, Item, Message, ModelErrorKind, ModelOptions, Role, Streaming, ToolObject, Usage,
};
use haft_engine::{
    End, EventKind, FailedReason, IncompleteReason, LoopOptions, OnMismatch, Outcome, Run, RunEvent,
};
use serde_json::{Value as Json, json};

use super::Unfit;
use super::connections::{ConnectionRetry, Line};
use super::course::{Course, DEEPEST};
use super::reply::{self, Answer};
use super::session::Session;
use super::talk::Talk;
use super::tools::Calling;
use crate::ir::{self, Retry};
use crate::value::Value;
use crate::vm::{Failure, ModelCall, Stop};

/// How often an answer is validated in one attempt.
const VALIDATIONS: u32 = 3;

/// How many rounds of tool calls there are if the model does not say.
const ROUNDS: u32 = 10;

/// Calls a model. What goes wrong is an `Err` for the program; only what ends programs is a failure.
pub(super) async fn call(
    session: &Arc<Session>,
    course: &Course,
    call: &ModelCall,
) -> Result<Value, Failure> {
    let program = Arc::clone(&session.house.program);
    let Some(model) = reply::declared(&program, &call.model) else {
        return Ok(refused(format!("there is no model '{}'", call.model)));
    };
    if course.depth >= DEEPEST {
        return Ok(refused(format!(
            "model '{}': tools call models that call tools deeper than {DEEPEST}",
            model.name
        )));
    }
    let mocked = reply::mocked(&*session.machine().await, call);
    let conversing = Conversing {
        session,
        course,
        call,
        model,
    };
    let called = match mocked {
        Some(Ok(answer)) => return conversing.take(answer, 1, 1).await,
        Some(Err(error)) => return Ok(refused(error)),
        None => conversing.attempts(),
    };
    match ir::Decorator::timeout(&model.decorators) {
        None => called.await,
        Some(time) => match tokio::time::timeout(time, called).await {
            Ok(called) => called,
            Err(_) => Ok(refused(format!(
                "model '{}' timed out after {}s",
                model.name,
                time.as_secs_f64()
            ))),
        },
    }
}

fn refused(text: impl Into<String>) -> Value {
    Value::err(Value::text(text.into()))
}

/// One call of a model.
struct Conversing<'c> {
    session: &'c Arc<Session>,
    course: &'c Course,
    call: &'c ModelCall,
    model: &'c ir::Model,
}

/// Why an attempt gave no answer.
enum Trouble {
    /// The provider failed; it was asked so often.
    Provider {
        requests: u32,
        text: String,
        may_pass: bool,
    },
    /// The answer never had its schema.
    Schema {
        validations: u32,
        errors: Vec<String>,
    },
    /// Anything that another attempt would not change.
    Final(String),
    /// The program ends.
    Stop(Failure),
}

/// What an attempt gave.
struct Attempt {
    text: String,
    model: String,
    validations: u32,
}

impl Conversing<'_> {
    /// Tries as often as `@retry` says.
    async fn attempts(&self) -> Result<Value, Failure> {
        let retry = Retry::of(&self.model.decorators);
        let mut usage = Usage::default();
        let (mut requests, mut validations) = (0, 0);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let trouble = match self.attempt(retry.is_some(), &mut usage).await {
                Ok(given) => {
                    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
                    let answer = Answer {
                        text: given.text,
                        tokens_in: tokens(usage.input_tokens),
                        tokens_out: tokens(usage.output_tokens),
                        model: given.model,
                    };
                    return self.take(answer, attempt, given.validations).await;
                }
                Err(trouble) => trouble,
            };
            let (text, may_pass) = match trouble {
                Trouble::Stop(failure) => return Err(failure),
                Trouble::Final(text) => (text, false),
                Trouble::Provider {
                    requests: more,
                    text,
                    may_pass,
                } => {
                    requests += more;
                    let name = &self.model.name;
                    let text = format!("model '{name}' failed after {requests} attempts: {text}");
                    (text, may_pass)
                }
                Trouble::Schema {
                    validations: more,
                    errors,
                } => {
                    validations += more;
                    (reply::invalid(validations, &errors), true)
                }
            };
            match retry.and_then(|retry| retry.wait(attempt)) {
                Some(wait) if may_pass => tokio::time::sleep(wait).await,
                _ => return Ok(refused(text)),
            }
        }
    }

    /// Makes the answer the program's: value, memory, log.
    async fn take(&self, answer: Answer, attempt: u32, validations: u32) -> Result<Value, Failure> {
        let mut machine = self.session.machine().await;
        let value = match reply::value(&mut machine, self.call, &answer) {
            Ok(value) => value,
            Err(Unfit::Invalid(errors)) => {
                return Ok(refused(reply::invalid(validations, &errors)));
            }
            Err(Unfit::Failed(failure)) => return Err(*failure),
        };
        reply::remember(&mut machine, self.call, &answer.text);
        drop(machine);
        if reply::logs(self.model) {
            let entry = reply::log_entry(self.call, &answer, attempt, validations);
            self.session.emit("model:log", entry).await;
        }
        Ok(Value::ok(value))
    }

    async fn attempt(&self, is_retried: bool, usage: &mut Usage) -> Result<Attempt, Trouble> {
        let house = &self.session.house;
        let line = house.partners.connections.line(house, self.model);
        let line = line.map_err(Trouble::Final)?;
        let calling = Arc::new(Calling::new(self.course.cancel.child()));
        let tools = self.tools(&calling).await;
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let run = self.run(&line, tools, is_retried).await?;
        let hear = Arc::clone(&heard);
        let run = run.cancel(calling.cancel.clone()).on_event(move |event| {
            let mut heard = hear.lock().unwrap_or_else(PoisonError::into_inner);
            heard.hear(event);
        });
        let outcome = run
            .await
            .map_err(|error| Trouble::Final(error.to_string()))?;
        *usage += outcome.usage;
        if let Some(failure) = calling.stopped() {
            return Err(Trouble::Stop(failure));
        }
        let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
        self.judge(outcome, heard, line.model.name()).await
    }

    /// The run of an attempt: request order is system prompt, memory, prompt.
    async fn run(
        &self,
        line: &Line,
        tools: Vec<Arc<dyn ToolObject>>,
        is_retried: bool,
    ) -> Result<Run, Trouble> {
        let config = &self.model.config;
        let setup = &self.session.house.setup;
        let mut run = Run::new(Talk::new(line, config.max_tokens))
            .options(LoopOptions {
                max_rounds: config.max_tool_rounds.unwrap_or(ROUNDS),
                final_turn: false,
                max_parallel: 1,
                defer: Defer::Never,
                ..setup.options.clone()
            })
            .model_options(ModelOptions {
                temperature: config.temperature,
                stream: Streaming::Either,
                ..ModelOptions::default()
            })
            .tools(tools)
            .error_words(error_json)
            .input(self.memory().await)
            .user(self.call.prompt.clone());
        let computed = self.session.system_prompt(&self.model.name);
        if let Some(prompt) = computed.or(config.system_prompt.as_deref()) {
            run = run.instructions(prompt);
        }
        if let Some(approver) = &setup.approver {
            run = run.approver(Asked(Arc::clone(approver)));
        }
        match line.retry {
            Some(retry) => run = run.retry(retry),
            // Who says how often a call is tried means its requests.
            None if is_retried => run = run.retry(ConnectionRetry::never()),
            None => {}
        }
        if let Some(name) = &self.call.schema {
            let schema = self.schema(name)?;
            run = run
                .answer_schema(schema_name(name), schema)
                .on_mismatch(OnMismatch::Retry { tries: VALIDATIONS });
        }
        Ok(run)
    }

    fn schema(&self, name: &str) -> Result<Json, Trouble> {
        let schemas = &self.session.house.program.ir().schemas;
        let schema = schemas.iter().find(|schema| schema.name == name);
        schema
            .map(|schema| schema.json_schema.clone())
            .ok_or_else(|| Trouble::Final(format!("there is no schema '{name}'")))
    }

    async fn memory(&self) -> Vec<Item> {
        let builder = self.call.builder.as_ref();
        let Some((memory, _)) = builder.and_then(|it| it.memory.as_ref()) else {
            return Vec::new();
        };
        let mut machine = self.session.machine().await;
        let messages = machine.stores().messages(memory);
        let item = |message: &crate::natives::Message| {
            let role = match message.role.as_str() {
                "assistant" => Role::Assistant,
                "system" => Role::System,
                "developer" => Role::Developer,
                _ => Role::User,
            };
            Item::Message(Message::new(role, message.content.clone()))
        };
        messages.map(item).collect()
    }

    /// The tools of this call (§9.1): the model's own, then those of `with_tools`, one per name.
    async fn tools(&self, calling: &Arc<Calling>) -> Vec<Arc<dyn ToolObject>> {
        let house = &self.session.house;
        let builder = self.call.builder.as_deref();
        let own = self.model.tools.iter().map(String::as_str);
        let own = own.filter(|_| builder.is_none_or(|it| !it.without_tools));
        let given = builder.into_iter().flat_map(|it| &it.tools);
        let mut tools: Vec<Arc<dyn ToolObject>> = Vec::new();
        for name in own.chain(given.map(|it| &*it.name)) {
            let toolbox = house.toolbox();
            let more = if toolbox.has(name) {
                toolbox.called(name, self.session, self.course, calling)
            } else {
                house.partners.servers.tools(house, name).await
            };
            for tool in more {
                let name = tool.definition().name();
                if !tools.iter().any(|other| other.definition().name() == name) {
                    tools.push(tool);
                }
            }
        }
        tools
    }

    /// What the end of a run means for the program.
    async fn judge(&self, outcome: Outcome, heard: Heard, asked: &str) -> Result<Attempt, Trouble> {
        let name = &self.model.name;
        let is_cut = matches!(
            outcome.end,
            End::Incomplete {
                reason: IncompleteReason::MaxOutputTokens,
                ..
            }
        );
        let attempt = || Attempt {
            text: match (&outcome.refusal, outcome.text.is_empty()) {
                (Some(refusal), true) => refusal.clone(),
                _ => outcome.text.clone(),
            },
            model: heard.model.clone().unwrap_or_else(|| asked.to_owned()),
            validations: heard.complaints + 1,
        };
        Err(match &outcome.end {
            End::Completed => match &outcome.refusal {
                Some(refusal) if self.call.schema.is_some() && outcome.text.is_empty() => {
                    Trouble::Final(format!("model '{name}' declined: {refusal}"))
                }
                _ => return Ok(attempt()),
            },
            // What was said up to the limit is the answer, unless it must have a form.
            End::Incomplete { .. }
                if is_cut && self.call.schema.is_none() && !outcome.text.is_empty() =>
            {
                return Ok(attempt());
            }
            End::Incomplete {
                reason: IncompleteReason::MaxTurns,
                ..
            } => {
                let rounds = self.model.config.max_tool_rounds.unwrap_or(ROUNDS);
                Trouble::Final(format!(
                    "model '{name}' reached the tool round limit ({rounds})"
                ))
            }
            End::Failed {
                reason: FailedReason::Model { error, attempts },
                ..
            } => Trouble::Provider {
                requests: *attempts,
                text: error.to_string(),
                may_pass: error.kind.is_retryable() || error.kind == ModelErrorKind::Protocol,
            },
            End::Failed {
                reason: FailedReason::OutputInvalid,
                message,
            } => Trouble::Schema {
                validations: heard.complaints + 1,
                errors: self.errors_of(&outcome.text, message).await,
            },
            End::Incomplete { message, .. } | End::Failed { message, .. } => {
                Trouble::Final(message.clone())
            }
            End::Cancelled => Trouble::Stop(Failure::Stop(Stop::Cancelled)),
            End::Waiting(waiting) => {
                let tools = waiting.approvals.iter();
                let tools = tools.map(|it| format!("'{}'", it.definition.name()));
                let tools: Vec<_> = tools.collect();
                Trouble::Final(format!(
                    "model '{name}': calls wait for approval: {}",
                    tools.join(", ")
                ))
            }
            other => Trouble::Final(other.summary().to_string()),
        })
    }

    /// What is wrong with an answer, in the words that every schema call has.
    async fn errors_of(&self, text: &str, message: &str) -> Vec<String> {
        let schema = self.call.schema.as_deref().unwrap_or_default();
        let mut machine = self.session.machine().await;
        match super::read_answer(&mut machine, schema, text) {
            Err(Unfit::Invalid(errors)) => errors,
            Err(Unfit::Failed(_)) | Ok(_) => vec![message.to_owned()],
        }
    }
}

/// What a run tells on its way.
#[derive(Default)]
struct Heard {
    model: Option<String>,
    /// How often the model was told that its answer has not the demanded form.
    complaints: u32,
}

impl Heard {
    fn hear(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::AnswerFinished {
                model: Some(model), ..
            } => self.model = Some(model.clone()),
            EventKind::ItemAdded {
                item: Item::Message(message),
                ..
            } if message.role == Role::User => self.complaints += 1,
            _ => {}
        }
    }
}

/// Somebody who is asked, shared.
struct Asked(Arc<dyn haft_core::Approver>);

impl haft_core::Approver for Asked {
    fn ask(
        &self,
        request: haft_core::ApprovalRequest,
    ) -> haft_core::BoxFuture<'_, haft_core::Decision> {
        self.0.ask(request)
    }
}

/// An error as `content` (§9.1).
fn error_json(text: &str) -> String {
    json!({ "error": text }).to_string()
}

/// A name of letters, digits, `_` and `-`, as providers want it.
fn schema_name(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.replace("::", "__")
        .chars()
        .map(|c| if legal(c) { c } else { '_' })
        .take(64)
        .collect()
}
