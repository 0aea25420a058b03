//! Calls in, one result per call out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use haft_core::{
    ErrorCode, FinishReason, HydratedTool, HydrationError, HydrationResult, Provenance,
    RawArguments, Stage, ToolCall, ValidatorRecord, caught, cut,
};

use serde::{Deserialize, Serialize};

use crate::parse::{ParseFailure, parse_arguments};
use crate::pipeline::{Contract, check_arguments};
use crate::prepared::{Admission, PreparedTool, ToolTable};
use crate::repairer::{AuditedRepairer, Repairer};
use crate::sink::ProvenanceSink;
use crate::text::Root;

/// Makes calls safe: resolve, parse, validate, at most one audited repair, instantiate.
///
/// It never throws and never runs a tool. Repair is off unless switched on.
///
/// ```
/// use haft_core::{ToolCall, ToolDefinition, dynamic_tool};
/// use haft_hydrate::{CallIds, Compile, Hydrator, PreparedTool, ValidatorCache};
/// use serde_json::json;
///
/// let definition = ToolDefinition::builder("double")
///     .parameters(json!({
///         "type": "object",
///         "properties": {"n": {"type": "integer"}},
///         "required": ["n"]
///     }))
///     .build()?;
/// let double = dynamic_tool(definition, |arguments, _| async move {
///     Ok(arguments["n"].as_i64().unwrap_or_default() * 2)
/// });
/// let tools = [PreparedTool::new(double, &ValidatorCache::default(), Compile::Early)?];
///
/// let hydrator = Hydrator::new();
/// let mut ids = CallIds::default();
/// let good = hydrator.hydrate(&ToolCall::new("double", r#"{"n": 2}"#), &tools[..], &mut ids);
/// assert!(good.success());
/// let bad = hydrator.hydrate(&ToolCall::new("double", r#"{"n": "two"}"#), &tools[..], &mut ids);
/// assert_eq!(bad.errors[0].message, "'n' must be integer, got string");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Hydrator {
    repairer: Option<Arc<dyn Repairer>>,
    sink: Option<Arc<dyn ProvenanceSink>>,
}

impl Hydrator {
    /// A hydrator without repair and without sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// Switches the bundled audited repair on. Repaired calls are marked, and gated by policy.
    #[must_use]
    pub fn with_audited_repair(self) -> Self {
        self.with_repairer(Arc::new(AuditedRepairer))
    }

    /// Switches repair on, by another repairer.
    #[must_use]
    pub fn with_repairer(mut self, repairer: Arc<dyn Repairer>) -> Self {
        self.repairer = Some(repairer);
        self
    }

    /// Hands every result, good or bad, to `sink` before anyone can run it.
    #[must_use]
    pub fn with_sink(mut self, sink: Arc<dyn ProvenanceSink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Hydrates the calls of one answer: exactly one result per call, in the same order.
    pub fn hydrate_all<T: ToolTable + ?Sized>(
        &self,
        calls: &[ToolCall],
        table: &T,
        ids: &mut CallIds,
    ) -> Vec<HydrationResult> {
        calls
            .iter()
            .map(|call| self.hydrate(call, table, ids))
            .collect()
    }

    /// Hydrates one call.
    pub fn hydrate<T: ToolTable + ?Sized>(
        &self,
        call: &ToolCall,
        table: &T,
        ids: &mut CallIds,
    ) -> HydrationResult {
        let mut result = HydrationResult {
            tool: None,
            errors: Vec::new(),
            provenance: Provenance {
                provider_tool_id: call.name.clone(),
                call_id: ids.assign(call.call_id.as_deref()),
                tool_name: None,
                definition_fingerprint: None,
                original_raw_args: call.arguments.clone(),
                parsed: None,
                validated: None,
                validator: None,
                repaired: false,
                repair: None,
                unvalidated: false,
                no_schema_mode: None,
                source: call.source.clone(),
                at: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            },
        };
        match table.admission(&call.name) {
            Admission::Admitted(tool) => self.hydrate_known(call, tool, &mut result),
            Admission::Refused { tool, text } => record_refused(call, tool, text, &mut result),
        }
        if let Some(sink) = &self.sink
            && let Err(panic) = caught(|| sink.record(&result))
        {
            tracing::error!(panic, "the provenance sink panicked");
        }
        result
    }

    fn hydrate_known(&self, call: &ToolCall, tool: &PreparedTool, result: &mut HydrationResult) {
        let definition = tool.definition();
        identify(tool, result);
        if was_cut_before_it_began(call) {
            let failure: Box<ParseFailure> = ErrorCode::Truncated.into();
            result.errors.push(failure.to_error());
            return;
        }
        let validated = match definition.parameters() {
            None => read_unvalidated(call, tool, result),
            Some(schema) => self.check(call, tool, schema, result),
        };
        let Some(arguments) = validated else {
            return;
        };
        match instantiate(tool, &arguments) {
            Ok(hydrated) => result.tool = Some(hydrated),
            Err(error) => result.errors.push(error),
        }
    }

    /// Parses, validates and, if switched on, repairs. Records what happened.
    fn check(
        &self,
        call: &ToolCall,
        tool: &PreparedTool,
        schema: &serde_json::Value,
        result: &mut HydrationResult,
    ) -> Option<serde_json::Value> {
        let validator = match tool.validator()? {
            Ok(validator) => validator,
            Err(error) => {
                result.provenance.parsed = parse_arguments(&call.arguments, Root::Object).ok();
                result.errors.push(HydrationError {
                    stage: Stage::Validate,
                    message: error.to_string(),
                    detail: ErrorCode::BrokenSchema,
                });
                return None;
            }
        };
        let contract = Contract {
            schema,
            validator: &*validator,
            factory: tool.factory(),
            tool: tool.definition().name().as_str(),
            root: Root::Object,
        };
        let checked = check_arguments(
            &call.arguments,
            call.finish,
            &contract,
            self.repairer.as_deref(),
        );
        let provenance = &mut result.provenance;
        provenance.repaired = checked.is_repaired();
        let reached_validation = checked.parsed.is_some() || checked.validated.is_some();
        provenance.validator = reached_validation.then(|| {
            let (name, version) = tool.validator_identity();
            ValidatorRecord {
                name,
                version,
                compiled_at: tool.compiled_at(),
                elapsed_us: u64::try_from(checked.validation.as_micros()).unwrap_or(u64::MAX),
            }
        });
        provenance.parsed = checked.parsed;
        provenance.validated.clone_from(&checked.validated);
        provenance.repair = checked.repair;
        result.errors = checked.errors;
        checked.validated
    }
}

/// No arguments at all mean an empty object, unless the token limit kept the model from writing any.
fn was_cut_before_it_began(call: &ToolCall) -> bool {
    let is_blank = matches!(&call.arguments, RawArguments::Text(text) if text.trim().is_empty());
    is_blank && call.finish == FinishReason::Length
}

/// A tool without schema: its arguments must still be an object, and are marked as unvalidated.
fn read_unvalidated(
    call: &ToolCall,
    tool: &PreparedTool,
    result: &mut HydrationResult,
) -> Option<serde_json::Value> {
    result.provenance.unvalidated = true;
    result.provenance.no_schema_mode = tool.definition().no_schema_mode();
    match parse_arguments(&call.arguments, Root::Object) {
        Ok(value) => {
            result.provenance.parsed = Some(value.clone());
            Some(value)
        }
        Err(failure) => {
            result.errors.push(failure.to_error());
            None
        }
    }
}

fn identify(tool: &PreparedTool, result: &mut HydrationResult) {
    let definition = tool.definition();
    result.provenance.tool_name = Some(definition.name().to_string());
    result.provenance.definition_fingerprint = Some(definition.fingerprint().clone());
}

fn record_refused(
    call: &ToolCall,
    tool: Option<&PreparedTool>,
    text: String,
    result: &mut HydrationResult,
) {
    result.provenance.parsed = parse_arguments(&call.arguments, Root::Object).ok();
    let name = cut(&call.name);
    let (message, detail) = match tool {
        None => (
            format!("unknown tool '{name}'"),
            ErrorCode::UnknownTool { text },
        ),
        Some(tool) => {
            identify(tool, result);
            let message = format!("tool '{name}' is not allowed in this request");
            (message, ErrorCode::NotAllowed { text })
        }
    };
    result.errors.push(HydrationError {
        stage: Stage::Instantiate,
        message,
        detail,
    });
}

fn instantiate(
    tool: &PreparedTool,
    arguments: &serde_json::Value,
) -> Result<Box<dyn HydratedTool>, HydrationError> {
    let (path, reason) = match caught(|| tool.tool().instantiate(arguments)) {
        Ok(Ok(hydrated)) => return Ok(hydrated),
        Ok(Err(error)) => (error.path, error.reason),
        Err(panic) => (".".to_owned(), format!("it panicked: {panic}")),
    };
    let name = tool.definition().name();
    // Without the reason: serde's words may quote a value.
    tracing::error!(
        tool = name.as_str(),
        path,
        "a tool's schema admits arguments that its type does not"
    );
    Err(HydrationError {
        stage: Stage::Instantiate,
        message: format!("its arguments could not be read at `{path}`: {reason}"),
        detail: ErrorCode::TypeMismatch { path },
    })
}

/// Gives every call of a conversation an id of its own.
///
/// ```
/// use haft_hydrate::CallIds;
/// let mut ids = CallIds::default();
/// assert_eq!(ids.assign(Some("call_9")), "call_9");
/// assert_eq!(ids.assign(Some("call_9")), "call_1");
/// assert_eq!(ids.assign(None), "call_2");
/// assert_eq!(ids.assign(Some(&"x".repeat(65))), "call_3");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallIds {
    used: BTreeSet<String>,
    next: u64,
}

impl CallIds {
    /// Marks an id of the loaded history as used.
    pub fn reserve(&mut self, id: impl Into<String>) {
        self.used.insert(id.into());
    }

    /// Lets a call that is hydrated once more keep its id.
    pub fn release(&mut self, id: &str) {
        self.used.remove(id);
    }

    /// The longest id that every provider takes back.
    const MAX_BYTES: usize = 64;

    /// The provider's id, or a new one if it gave none, one already used or one too long.
    pub fn assign(&mut self, provided: Option<&str>) -> String {
        if let Some(id) = provided.filter(|id| (1..=Self::MAX_BYTES).contains(&id.len()))
            && self.used.insert(id.to_owned())
        {
            return id.to_owned();
        }
        loop {
            self.next += 1;
            let id = format!("call_{}", self.next);
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}
