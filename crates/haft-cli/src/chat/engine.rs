//! A conversation with the engine of this process: no server, nothing stored.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

use haft::models::http::Http;
use haft::models::{ModelConfig, pools, process_environment};
use haft::prompt::{Context, Params, Prompt};
use haft::{
    ApprovalRequest, Approver, Binding, BoxFuture, Decision, End, Item, LoopOptions, Model,
    RunBuilder, RunEvent, RunStream, Session, ToolContext, ToolName, Value,
};
use haft_mcp::{AskerSlot, Pool, Questions};
use tokio::sync::{mpsc, oneshot};

use super::answer::{Answer, AnswerEnd, Reply};
use super::approval::{AskAlways, Question, Word};
use super::desk::Desk;
use super::inquirer::{Inquirer, inquire};
use crate::arguments::{ChatArguments, ModelChoice, ServeArguments};
use crate::catalogue::{self, HostedHere};
use crate::concerto::{Scripts, Wanted, Words};
use crate::config::{PromptConfig, build_prompt, not_rendered};
use crate::failure::Failure;
use crate::mcp;
use crate::serve::{Door, choice, configured};
use crate::terminal::Spinner;
use crate::text::printable;

/// Questions that wait for an answer at the same time; there are no more calls than that.
const MAX_QUESTIONS: usize = 64;

/// The engine, its models, and the conversation so far.
pub(super) struct Engine {
    models: Vec<Candidate>,
    /// Which of them answers.
    current: usize,
    binding: Binding,
    /// What the model is told, with sections that bring their tools, and what is put into it.
    prompt: Option<(Prompt, Params)>,
    /// What the tools in it need as long as they are used.
    _tools: HostedHere,
    /// The Concerto programs of some of them.
    scripts: Scripts,
    /// The MCP servers of some of them.
    pool: Pool,
    instructions: Option<String>,
    options: LoopOptions,
    asks_always: bool,
    session: Session,
}

impl Engine {
    /// As the arguments and this folder's configuration say.
    pub(super) async fn open(arguments: &ChatArguments) -> Result<Self, Box<dyn Error>> {
        // `--model` may name an entry of the configuration as well as an adapter and a model.
        let flag = arguments.model.as_deref();
        let by_adapter = flag.and_then(|name| name.parse::<ModelChoice>().ok());
        let serve = ServeArguments {
            config: arguments.remote.config.clone(),
            model: by_adapter.clone(),
            ..ServeArguments::default()
        };
        let (config, choice) = configured(serve, Door::None, &process_environment).await?;
        let folder = match config.mcp.as_slice() {
            [] => None,
            _ => Some(crate::serve::data_dir(&config.data_dir)?),
        };
        let (pool, unusable) = mcp::pool_of(&config.mcp, folder.as_deref(), Questions::PerCall)?;
        let mut tools = catalogue::hosted_here(config.search_files, &config.data_dir)?;
        let scripts = Wanted {
            flags: &arguments.scripts,
            said: &config.concerto,
            config: arguments.remote.config.as_deref(),
        };
        let scripts = Scripts::open(&scripts, &tools.catalog, Words::Log).await?;
        tools.names.extend(scripts.names.iter().cloned());
        let notes = unusable.into_iter().map(|(_, error)| error.to_string());
        let mut notes: Vec<String> = notes.collect();
        let has_sections_of_servers = config
            .prompt
            .as_ref()
            .is_some_and(PromptConfig::has_servers);
        let wants_servers =
            has_sections_of_servers || wants_servers(&tools.names, arguments.tools.as_deref());
        if wants_servers && !pool.servers().is_empty() {
            let spinner = Spinner::new("asking MCP servers for their tools");
            notes.extend(
                spinner
                    .during(catalogue::add_mcp(&tools.catalog, &pool))
                    .await,
            );
        }
        for note in notes {
            let _ = writeln!(io::stderr(), "note: {}", printable(&note));
        }
        let mut names = tools.names.clone();
        let all = tools.catalog.snapshot();
        let others = all.names().filter(|name| !tools.names.contains(name));
        names.extend(others.cloned());
        let prompt = match &config.prompt {
            None => None,
            Some(said) => {
                let prompt = build_prompt(said, Some(&all))?;
                let params = said.params.clone();
                // Said now, with its place, and not when the first message was typed.
                let context = Context::new().params(params.clone());
                let rendered = prompt.render(&context);
                rendered.map_err(|error| not_rendered(said, &error))?;
                Some((prompt, params))
            }
        };
        let mut wanted = wanted(&names, arguments.tools.as_deref())?;
        // What a section brings is there when the section is open, and not before.
        wanted.retain(|name| !is_of_section(prompt.as_ref(), name));
        let binding = tools.catalog.snapshot().bind().tools(wanted).build()?;
        let name = match (flag, by_adapter) {
            (Some(name), None) => name.to_owned(),
            _ => choice.default_model.clone(),
        };
        let models = candidates(&choice.models)?;
        Ok(Self {
            current: find(&models, &name)?,
            models,
            binding,
            prompt,
            _tools: tools,
            scripts,
            pool,
            instructions: arguments.instructions.clone(),
            options: config.loop_options,
            asks_always: arguments.ask,
            session: Session::new(),
        })
    }

    /// Ends the MCP servers that were started.
    pub(super) async fn close(&self) {
        self.scripts.close().await;
        self.pool.close().await;
    }

    /// Who answers.
    pub(super) fn name(&self) -> &str {
        &self.models[self.current].name
    }

    /// Who else could.
    pub(super) fn models(&self) -> Vec<String> {
        self.models.iter().map(|model| model.name.clone()).collect()
    }

    /// Lets another model answer.
    pub(super) fn choose(&mut self, name: &str) -> Result<(), Box<dyn Error>> {
        let known = find(&self.models, name);
        self.current = match (known, name.parse::<ModelChoice>()) {
            (Ok(at), _) => at,
            (Err(_), Ok(flag)) => {
                let config = choice::by_flag(&flag, &process_environment)?;
                self.models.extend(candidates(&[config])?);
                self.models.len() - 1
            }
            (Err(failure), Err(_)) => return Err(failure.into()),
        };
        Ok(())
    }

    /// The tools, with a line about each.
    pub(super) fn tools(&self) -> Vec<(String, String)> {
        let tools = self.binding.tools_for_llm();
        let told = tools.map(|tool| (tool.name().to_string(), tool.brief().to_owned()));
        told.collect()
    }

    /// Forgets what was said.
    pub(super) fn begin_anew(&mut self) {
        self.session = Session::new();
    }

    /// Answers a message.
    pub(super) async fn answer(
        &mut self,
        message: &str,
        desk: &mut Desk,
    ) -> Result<Reply, Box<dyn Error>> {
        let (asker, mut questions) = Asker::new();
        let (person, mut inquiries) = Inquirer::new();
        let mut context = ToolContext::builder();
        if desk.is_interactive() {
            context = context.state(AskerSlot(Arc::new(person)));
        }
        let mut run = RunBuilder::new(Arc::clone(&self.models[self.current].model))
            .binding(self.binding.clone())
            .session(self.session.clone())
            .options(self.options.clone())
            .spill_to_memory()
            .approver(asker)
            .context(context.build())
            .user(message);
        if let Some((prompt, params)) = &self.prompt {
            run = run.prompt(prompt).params(params.clone());
        }
        if let Some(instructions) = &self.instructions {
            run = run.instructions(instructions.as_str());
        }
        if self.asks_always {
            run = run.policy(AskAlways);
        }
        let mut stream = run.start()?;
        let mut was_stopped = false;
        desk.vigil.begin("waiting for the model");
        loop {
            tokio::select! {
                event = stream.next() => match event {
                    Some(event) => show(desk, &event)?,
                    None => break,
                },
                Some(question) = questions.recv() => {
                    if ask(desk, &mut stream, question).await? == Word::Quit {
                        was_stopped = true;
                        stream.cancel().cancel();
                    }
                }
                Some(inquiry) = inquiries.recv() => inquire(desk, &mut stream, inquiry).await?,
                () = desk.interrupts.next() => {
                    if was_stopped {
                        return Ok(Reply::Leave);
                    }
                    was_stopped = true;
                    stream.cancel().cancel();
                }
                () = desk.vigil.due() => desk.vigil.show(),
            }
        }
        desk.vigil.end();
        let outcome = stream.finish().await;
        let before = self.session.items().len();
        let added: Vec<&Item> = outcome.session.items().skip(before).collect();
        let items = added.iter().map(serde_json::to_value);
        let items: Vec<Value> = items.collect::<Result<_, _>>()?;
        let end = match &outcome.end {
            End::Completed => AnswerEnd::Completed,
            End::Incomplete { message, .. } => AnswerEnd::Incomplete(message.clone()),
            End::Cancelled => AnswerEnd::Stopped,
            other => AnswerEnd::Failed(other.summary().to_string()),
        };
        let is_lost = matches!(end, AnswerEnd::Failed(_)) && added.len() < 2;
        let usage = outcome.usage;
        if !is_lost {
            // A question that nobody heard need not be heard before the next one.
            self.session = outcome.session;
        }
        Ok(Reply::Answer(Answer {
            end,
            items,
            usage,
            response_id: None,
            conversation_id: None,
        }))
    }
}

/// Shows an event, and that more is waited for.
fn show(desk: &mut Desk, event: &RunEvent) -> io::Result<()> {
    desk.vigil.end();
    desk.screen.show(event)?;
    if !desk.screen.is_in_words() {
        desk.vigil.begin("waiting for the model and its tools");
    }
    Ok(())
}

/// Asks about a call. Meanwhile the run goes on: its clocks do not stand still.
async fn ask(desk: &mut Desk, stream: &mut RunStream, asked: Asked) -> io::Result<Word> {
    let question = Question {
        tool: asked.request.definition.name().as_str(),
        arguments: &asked.request.arguments,
        reason: &asked.request.reason,
    };
    let (word, held) = meanwhile(stream, desk.judge(&question)).await;
    let word = word?;
    let decision = match &word {
        Word::Yes | Word::Always => Decision::Allow,
        Word::No(reason) => Decision::Deny(reason.clone()),
        Word::Quit => Decision::Deny(None),
    };
    let is_late = asked.reply.send(decision).is_err();
    go_on(desk, is_late, held)?;
    Ok(word)
}

/// Does something while the run goes on; what happened there is held for later.
pub(super) async fn meanwhile<T>(
    stream: &mut RunStream,
    work: impl Future<Output = T>,
) -> (T, VecDeque<RunEvent>) {
    let mut held = VecDeque::new();
    let mut is_over = false;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return (done, held),
            event = stream.next(), if !is_over => match event {
                Some(event) => held.push_back(event),
                None => is_over = true,
            },
        }
    }
}

/// Shows what happened while somebody was asked.
pub(super) fn go_on(desk: &mut Desk, is_late: bool, held: VecDeque<RunEvent>) -> io::Result<()> {
    if is_late {
        desk.screen
            .note("the answer came too late: nobody waits for it any more")?;
    }
    for event in held {
        desk.screen.show(&event)?;
    }
    desk.vigil.begin("waiting for the model and its tools");
    Ok(())
}

/// A question on its way to the person.
struct Asked {
    request: ApprovalRequest,
    reply: oneshot::Sender<Decision>,
}

/// Passes questions on to whoever holds the conversation.
struct Asker(mpsc::Sender<Asked>);

impl Asker {
    fn new() -> (Self, mpsc::Receiver<Asked>) {
        let (sender, receiver) = mpsc::channel(MAX_QUESTIONS);
        (Self(sender), receiver)
    }
}

impl Approver for Asker {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            let (reply, decision) = oneshot::channel();
            let sent = self.0.send(Asked { request, reply }).await;
            match sent {
                Ok(()) => decision.await.unwrap_or(Decision::Deny(None)),
                Err(_) => Decision::Deny(None),
            }
        })
    }
}

/// Whether anything beside haft's own tools may be wanted.
fn wants_servers(own: &[ToolName], said: Option<&[String]>) -> bool {
    let is_own = |said: &String| {
        let bare = said.strip_prefix(catalogue::PREFIX).unwrap_or(said);
        bare == "none" || own.iter().any(|name| name.as_str() == bare)
    };
    said.is_none_or(|said| !said.iter().all(is_own))
}

/// The tools that are wanted, by name or by type; all of them if nothing is said.
fn wanted(names: &[ToolName], said: Option<&[String]>) -> Result<Vec<ToolName>, Failure> {
    let Some(said) = said else {
        return Ok(names.to_vec());
    };
    let said = said.iter().filter(|it| *it != "none");
    said.map(|said| {
        let bare = said.strip_prefix(catalogue::PREFIX).unwrap_or(said);
        let found = names.iter().find(|name| name.as_str() == bare);
        found.cloned().ok_or_else(|| {
            let known: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            Failure::mistake(format!("there is no tool `{said}` here"))
                .remedy(format!("there is {}, or `none`", known.join(", ")))
        })
    })
    .collect()
}

fn is_of_section(prompt: Option<&(Prompt, Params)>, name: &ToolName) -> bool {
    let sections = prompt.into_iter().flat_map(|(prompt, _)| prompt.sections());
    let mut tools = sections.flat_map(|section| section.tools());
    tools.any(|tool| tool.definition().name() == name)
}

/// A model that may answer.
struct Candidate {
    name: String,
    aliases: Vec<String>,
    model: Arc<dyn Model>,
}

/// The models, each with those that stand in for it.
fn candidates(configs: &[ModelConfig]) -> Result<Vec<Candidate>, Failure> {
    let pools = pools(configs, &process_environment, &Http::default());
    let pools = pools.map_err(|error| Failure::new(error.to_string()))?;
    let candidates = configs.iter().zip(pools).map(|(config, pool)| Candidate {
        name: config.name.clone(),
        aliases: config.aliases.clone(),
        model: Arc::new(pool),
    });
    Ok(candidates.collect())
}

/// The place of the model of this name.
fn find(models: &[Candidate], name: &str) -> Result<usize, Failure> {
    let is_named = |it: &Candidate| it.name == name || it.aliases.iter().any(|it| it == name);
    models.iter().position(is_named).ok_or_else(|| {
        let known: Vec<_> = models.iter().map(|it| format!("`{}`", it.name)).collect();
        Failure::mistake(format!("there is no model `{name}`")).remedy(format!(
            "take one of {}, or write `ADAPTER:NAME`, such as `ollama:qwen3:8b`",
            known.join(", ")
        ))
    })
}
