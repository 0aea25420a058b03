//! A run as a Rust program sees it: a builder, a stream of events, an outcome.

mod error;
mod setup;
mod showing;
mod stream;

use std::future::IntoFuture;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use haft_catalog::{Binding, Catalog};
use haft_core::{
    Approver, BoxFuture, CallOutput, Cancel, Decision, FunctionCallOutput, IntoToolOutput, Item,
    Model, ModelOptions, Policy, SchemaError, SessionState, ToolCall, ToolChoice, ToolContext,
    ToolError, ToolName, ToolRef, TrustRules,
};
use haft_hydrate::Hydrator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::answer::{AnswerContract, OnMismatch};
use crate::callbacks::Callbacks;
use crate::detect::LoopDetection;
use crate::event::{RunContext, RunEvent};
use crate::executor::{ExecutorCall, NamedExecutor, ToolExecutor};
use crate::feedback::Feedback;
use crate::loop_report::{LoopAction, LoopReport};
use crate::machine::{Answers, Environment, Machine};
use crate::moment::Moment;
use crate::options::LoopOptions;
use crate::outcome::{Outcome, ToolResult};
use crate::retry::RetryPolicy;
use crate::session::Session;

use showing::PromptSettings;

pub use error::RunError;
pub use stream::RunStream;

/// One run of the loop: a model, its tools, a conversation, and what bounds it.
///
/// Awaiting it gives the [`Outcome`]; [`start`](Self::start) gives the events as they happen.
///
/// ```
/// # use haft_core::{BoxFuture, Capabilities, Item, Model, ModelError, ModelRequest, ModelResponse, ModelStream};
/// use haft_engine::Run;
/// # struct Parrot;
/// # impl Model for Parrot {
/// #     fn name(&self) -> &str { "parrot" }
/// #     fn provider(&self) -> &str { "example" }
/// #     fn capabilities(&self) -> Capabilities { Capabilities::default() }
/// #     fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
/// #         let said = request.conversation.items().last().map(Item::text).unwrap_or_default();
/// #         Box::pin(async move { Ok(ModelResponse::text(said).into_stream()) })
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), haft_engine::RunError> {
/// let outcome = Run::new(Parrot).user("hello").await?;
/// assert!(outcome.is_completed());
/// assert_eq!(outcome.text, "hello");
/// # Ok(())
/// # }
/// ```
#[must_use = "a run does nothing until it is awaited or started"]
pub struct Run {
    /// Apart: a run is moved about while it is built.
    environment: Box<Environment>,
    binding: Option<Binding>,
    tools: Vec<ToolRef>,
    tool_choice: Option<ToolChoice>,
    first_choice: Option<ToolChoice>,
    session: Session,
    input: Vec<Item>,
    answers: Answers,
    carry_out: Vec<String>,
    context: ToolContext,
    trust: TrustRules,
    policies: Vec<Arc<dyn Policy>>,
    hydrator: Option<Hydrator>,
    approver: Option<Arc<dyn Approver>>,
    cancel: Cancel,
    deadline: Option<SystemTime>,
    retry: Option<Arc<dyn RetryPolicy>>,
    answer: Option<Result<AnswerContract, SchemaError>>,
    identity: RunContext,
    callbacks: Callbacks,
    on_checkpoint: Option<Box<crate::driver::OnCheckpoint>>,
    spill_directory: Option<std::path::PathBuf>,
    keep_spill: bool,
    spills_to_memory: bool,
    loaded: Vec<ToolName>,
    prompt: PromptSettings,
}

/// A run of this model: the same as [`Run::new`], where a verb reads better.
///
/// The facade's `haft::Run` is the trait of struct tools; there this is the way to a run.
pub fn run(model: impl Model) -> Run {
    Run::new(model)
}

/// The binding of a run without tools, made once.
fn no_tools() -> Binding {
    static NOTHING: LazyLock<Binding> = LazyLock::new(|| {
        let nothing = Catalog::new().snapshot().bind().without_tools().build();
        match nothing {
            Ok(binding) => binding,
            // Without tools and choice nothing can be wrong.
            Err(error) => unreachable!("an empty binding failed: {error}"),
        }
    });
    NOTHING.clone()
}

impl Run {
    /// A run of this model.
    pub fn new(model: impl Model) -> Self {
        Self {
            environment: Box::new(Environment::new(Arc::new(model), no_tools())),
            binding: None,
            tools: Vec::new(),
            tool_choice: None,
            first_choice: None,
            session: Session::new(),
            input: Vec::new(),
            answers: Answers::new(),
            carry_out: Vec::new(),
            context: ToolContext::default(),
            trust: TrustRules::default(),
            policies: Vec::new(),
            hydrator: None,
            approver: None,
            cancel: Cancel::new(),
            deadline: None,
            retry: None,
            answer: None,
            identity: RunContext::default(),
            callbacks: Callbacks::default(),
            on_checkpoint: None,
            spill_directory: None,
            keep_spill: false,
            spills_to_memory: false,
            loaded: Vec::new(),
            prompt: PromptSettings::default(),
        }
    }

    /// What the model is told before everything else.
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.environment.instructions = Some(text.into());
        self
    }

    /// Adds a message of the user.
    pub fn user(self, text: impl Into<String>) -> Self {
        self.input([Item::user(text)])
    }

    /// Adds items to the conversation.
    pub fn input(mut self, items: impl IntoIterator<Item = Item>) -> Self {
        self.input.extend(items);
        self
    }

    /// Goes on with a conversation. If its last run waits, answer what it waits for.
    pub fn session(mut self, session: impl Into<Session>) -> Self {
        self.session = session.into();
        self
    }

    /// Answers a call that the caller executed.
    pub fn output(mut self, call_id: impl Into<String>, output: impl Into<CallOutput>) -> Self {
        let mut answer = FunctionCallOutput::new(call_id, "");
        answer.output = output.into();
        self.answers.push_output(answer);
        self
    }

    /// Answers a call that the caller executed and that failed.
    pub fn failed_output(mut self, call_id: impl Into<String>, words: impl Into<String>) -> Self {
        let answer = FunctionCallOutput::new(call_id, words).as_error();
        self.answers.push_output(answer);
        self
    }

    /// Allows a call that the run waits with.
    pub fn approve(mut self, call_id: impl Into<String>) -> Self {
        self.answers.push_decision(call_id, Decision::Allow);
        self
    }

    /// Executes a call that the conversation holds without output, before the model is asked: somebody
    /// was asked about it at the end of an earlier run, and has allowed it. What `tool_choice` says is
    /// about the model's next calls, not about this one; policies that deny it count. What
    /// [`input`](Self::input) says comes behind the output.
    ///
    /// For hosts that keep conversations and no sessions; a [session](Self::session) that waits is
    /// answered by [`approve`](Self::approve).
    pub fn carry_out(mut self, call_id: impl Into<String>) -> Self {
        self.carry_out.push(call_id.into());
        self
    }

    /// Refuses a call that the run waits with; the model is told the reason.
    pub fn deny(mut self, call_id: impl Into<String>, reason: impl Into<String>) -> Self {
        let decision = Decision::Deny(Some(reason.into()));
        self.answers.push_decision(call_id, decision);
        self
    }

    /// The tools of the run.
    pub fn binding(mut self, binding: Binding) -> Self {
        self.binding = Some(binding);
        self
    }

    /// Adds tools, behind those of the binding if there is one.
    pub fn tools<R: Into<ToolRef>>(mut self, tools: impl IntoIterator<Item = R>) -> Self {
        self.tools.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Which tools the model must, may or must not call.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Which tools the model must, may or must not call until one has run; from then on what
    /// [`tool_choice`](Self::tool_choice) or the binding says.
    pub fn first_choice(mut self, choice: ToolChoice) -> Self {
        self.first_choice = Some(choice);
        self
    }

    /// Whether the model may call several tools at once. Where it may not, only the first call of an
    /// answer is executed.
    pub fn parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.environment.parallel_tool_calls = Some(parallel);
        self
    }

    /// Whether calls for the caller are handed over as the model wrote them, also those whose
    /// arguments are wrong: the verdict is in their hydration, and what to do about it is the
    /// caller's business. Otherwise such calls are answered here, with what is wrong.
    pub fn hand_over_refused(mut self, hand_over: bool) -> Self {
        self.environment.hands_over_refused = hand_over;
        self
    }

    /// The form that the answer must have: tools run first, then the text is validated.
    pub fn answer_as<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.answer = Some(AnswerContract::of::<T>());
        self
    }

    /// The same, by a schema.
    pub fn answer_schema(mut self, name: impl Into<String>, schema: serde_json::Value) -> Self {
        self.answer = Some(AnswerContract::new(name, schema));
        self
    }

    /// What becomes of an answer that does not have the demanded form: three tries if not said.
    /// Comes after [`answer_as`](Self::answer_as) or [`answer_schema`](Self::answer_schema).
    pub fn on_mismatch(mut self, then: OnMismatch) -> Self {
        let demanded = self.answer.take();
        self.answer = demanded.map(|contract| Ok(contract?.on_mismatch(then)));
        self
    }

    /// How the model shall write.
    pub fn model_options(mut self, options: ModelOptions) -> Self {
        self.environment.model_options = options;
        self
    }

    /// All options of the loop at once.
    pub fn options(mut self, options: LoopOptions) -> Self {
        self.environment.options = options;
        self
    }

    /// How many answers with calls are executed; 10 if not said.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.environment.options.max_rounds = rounds;
        self
    }

    /// How many calls are executed here.
    pub fn max_tool_calls(mut self, calls: u32) -> Self {
        self.environment.options.max_tool_calls = Some(calls);
        self
    }

    /// How many tokens the run may send, over all its requests.
    pub fn max_input_tokens(mut self, tokens: u64) -> Self {
        self.environment.options.max_input_tokens = Some(tokens);
        self
    }

    /// How many tokens it may receive, over all its requests.
    pub fn max_output_tokens(mut self, tokens: u64) -> Self {
        self.environment.options.max_output_tokens = Some(tokens);
        self
    }

    /// How many tokens the run may use in all.
    pub fn max_total_tokens(mut self, tokens: u64) -> Self {
        self.environment.options.max_total_tokens = Some(tokens);
        self
    }

    /// Whether the model gets one last request, without tools, at the round and call limits; it does
    /// if not said.
    pub fn final_turn(mut self, granted: bool) -> Self {
        self.environment.options.final_turn = granted;
        self
    }

    /// How long a call may take; a tool's own timeout wins.
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.environment.options.tool_timeout = timeout;
        self
    }

    /// How many calls run at the same time.
    pub fn max_parallel(mut self, calls: usize) -> Self {
        self.environment.options.max_parallel = calls;
        self
    }

    /// How long the run may take, from its start.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.environment.options.deadline = Some(limit);
        self
    }

    /// When the run must be over.
    pub fn deadline(mut self, deadline: SystemTime) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Repairs broken arguments where that is possible without guessing. Repaired calls are marked,
    /// and gated.
    pub fn repair(mut self) -> Self {
        self.environment.options.repair = true;
        self
    }

    /// When repeated calls are noticed, and what is done then.
    pub fn loop_detection(mut self, detection: LoopDetection) -> Self {
        self.environment.options.loop_detection = detection;
        self
    }

    /// Hears of each detected loop and says what is done about it.
    pub fn on_loop(
        mut self,
        decide: impl Fn(&LoopReport) -> LoopAction + Send + Sync + 'static,
    ) -> Self {
        self.environment.on_loop = Some(Arc::new(decide));
        self
    }

    /// Keeps results longer than so many bytes in files; the model gets the beginning, and a tool to
    /// read on.
    pub fn spill(mut self, bytes: usize) -> Self {
        self.environment.options.spill_bytes = Some(bytes);
        self
    }

    /// Where long results are kept, below a directory of the run's own; a temporary one if not said.
    pub fn spill_directory(mut self, directory: impl Into<std::path::PathBuf>) -> Self {
        self.spill_directory = Some(directory.into());
        self
    }

    /// Keeps long results in memory, up to a bound, and never on a disk. A run that goes on later finds none
    /// of them.
    pub fn spill_to_memory(mut self) -> Self {
        self.spills_to_memory = true;
        self
    }

    /// Keeps the files of long results when the run is dropped.
    pub fn keep_spill(mut self) -> Self {
        self.keep_spill = true;
        self
    }

    /// When failed requests are repeated.
    pub fn retry(mut self, policy: impl RetryPolicy + 'static) -> Self {
        self.retry = Some(Arc::new(policy));
        self
    }

    /// What becomes of repaired, unvalidated and destructive calls.
    pub fn trust(mut self, trust: impl Into<TrustRules>) -> Self {
        self.trust = trust.into();
        self
    }

    /// Asks the approver about every call of a destructive tool.
    pub fn approve_destructive(mut self) -> Self {
        self.trust.trust.approve_destructive = true;
        self
    }

    /// Lets the built-in shell run without asking anybody.
    pub fn allow_shell_unasked(mut self) -> Self {
        self.trust.trust.allow_shell_unasked = true;
        self
    }

    /// Adds a policy; the first that denies a call decides.
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.policies.push(Arc::new(policy));
        self
    }

    /// Who decides about calls that need approval. Without one they are not approved.
    ///
    /// Which calls those are is a matter of [`trust`](Self::trust) and policies: repaired and
    /// unvalidated ones by default, destructive tools with
    /// [`approve_destructive`](Self::approve_destructive). A rule that needs no waiting can be a
    /// closure, `|request: &ApprovalRequest| Decision::Allow`.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Runs calls of declared functions that it can execute.
    pub fn executor(mut self, executor: impl ToolExecutor) -> Self {
        self.environment.executors.push(Arc::new(executor));
        self
    }

    /// Runs the calls of one declared function.
    pub fn with_executor<F, R, O>(self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(ExecutorCall, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoToolOutput,
    {
        self.executor(NamedExecutor::new(name.into(), run))
    }

    /// How the words of a call that came to nothing are written for the model, whatever the reason:
    /// for hosts whose models read errors in a form of its own, such as JSON. As they are if not said.
    pub fn error_words(mut self, words: fn(&str) -> String) -> Self {
        self.environment.error_words = Some(words);
        self
    }

    /// Adds words to tool results when its triggers say so.
    pub fn feedback(mut self, feedback: Feedback) -> Self {
        self.environment.feedback = feedback;
        self
    }

    /// How calls are hydrated, with a repairer or sink of your own.
    pub fn hydrator(mut self, hydrator: Hydrator) -> Self {
        self.hydrator = Some(hydrator);
        self
    }

    /// The host's state for tools. Its signal to stop stops the run.
    pub fn context(mut self, context: ToolContext) -> Self {
        self.cancel = context.cancel().clone();
        self.context = context;
        self
    }

    /// The session state that tools read and change in transactions.
    pub fn state(mut self, state: SessionState) -> Self {
        self.environment.state = state;
        self
    }

    /// The signal that stops the run.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Names the request and trace that this run belongs to, in its events.
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.identity.request_id = Some(id.into());
        self
    }

    /// Names the trace that this run is part of, in its events.
    pub fn trace_id(mut self, id: impl Into<String>) -> Self {
        self.identity.trace_id = Some(id.into());
        self
    }

    /// Hears each piece of the answer's text.
    pub fn on_content(mut self, hear: impl FnMut(&str) + Send + 'static) -> Self {
        self.callbacks.content.push(Box::new(hear));
        self
    }

    /// Hears each piece of what the model thinks.
    pub fn on_reasoning(mut self, hear: impl FnMut(&str) + Send + 'static) -> Self {
        self.callbacks.reasoning.push(Box::new(hear));
        self
    }

    /// Hears the calls of each answer, before anything of them runs.
    pub fn on_tool_calls(mut self, hear: impl FnMut(&[ToolCall]) + Send + 'static) -> Self {
        self.callbacks.tool_calls.push(Box::new(hear));
        self
    }

    /// Hears the results of each round, before the next request.
    pub fn on_tool_results(mut self, hear: impl FnMut(&[ToolResult]) + Send + 'static) -> Self {
        self.callbacks.tool_results.push(Box::new(hear));
        self
    }

    /// Hears every event.
    pub fn on_event(mut self, hear: impl FnMut(&RunEvent) + Send + 'static) -> Self {
        self.callbacks.events.push(Box::new(hear));
        self
    }

    /// Is given the session at every turn boundary, to put it away.
    pub fn on_checkpoint(mut self, keep: impl FnMut(&Session) + Send + 'static) -> Self {
        self.on_checkpoint = Some(Box::new(keep));
        self
    }

    /// Makes the session go on in another process also from within a turn: calls are noted down
    /// before they begin. One that was under way is repeated if its tool is read-only or idempotent;
    /// of any other the model is told that nobody knows what came of it.
    ///
    /// Read the run by [`RunStream::next_step`], and store the [session](RunStream::session) at every
    /// [`Step::Journal`](crate::Step::Journal) and [`Step::Checkpoint`](crate::Step::Checkpoint).
    pub fn journaled(mut self) -> Self {
        self.environment.is_journaled = true;
        self
    }

    /// Starts the run. It goes on as far as the events are read.
    pub fn start(self) -> Result<RunStream, RunError> {
        let now = Moment::from(SystemTime::now());
        Ok(RunStream::new(self.prepare(now, fastrand::u64(..))?))
    }

    /// The machine of this run, for a host that drives it by itself: it says what time it is, gives
    /// the seed of all chance in the run, and performs every effect.
    pub fn into_machine(self, now: Moment, seed: u64) -> Result<Machine, RunError> {
        Ok(self.prepare(now, seed)?.machine)
    }
}

impl IntoFuture for Run {
    type Output = Result<Outcome, RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.start()?.finish().await) })
    }
}
