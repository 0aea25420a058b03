//! A server's tool as a catalogue holds it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{
    Annotations, BoxFuture, DefinitionError, HydratedTool, InstantiateError, MAX_NAME_BYTES,
    ToolContext, ToolDefinition, ToolError, ToolKind, ToolName, ToolObject, ToolOutput,
};
use serde_json::{Map, Value};

use super::record::{CallLog, CallRecord};
use super::server::Server;
use crate::connection::CallOptions;
use crate::names::exposed_name;
use crate::question::AskerSlot;
use crate::render::RenderOptions;
use crate::tool::ToolDef;

/// How much longer the loop waits than the call may take, so that the server's own limit is the one
/// that strikes, and says why.
const GRACE_MS: u64 = 5_000;

/// A tool of an MCP server, under the name that a model sees.
///
/// Whether a person is asked before it runs is said in its definition (`x-needs-approval`), as the
/// settings of its server have it. What the server asks in the middle of a call goes to the
/// [`AskerSlot`] of the run's context, if there is one.
#[derive(Clone)]
pub struct McpTool {
    server: Arc<Server>,
    tool: Arc<ToolDef>,
    definition: Arc<ToolDefinition>,
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpTool({})", self.definition.name())
    }
}

impl McpTool {
    /// The tool under its exposed name.
    pub fn new(server: Arc<Server>, tool: Arc<ToolDef>) -> Result<Self, DefinitionError> {
        let name = exposed_name(server.label(), &tool.name, MAX_NAME_BYTES);
        Self::named(server, tool, &name)
    }

    /// The tool under another name, where the exposed one is taken.
    pub fn named(
        server: Arc<Server>,
        tool: Arc<ToolDef>,
        name: &ToolName,
    ) -> Result<Self, DefinitionError> {
        let definition = definition(&server, &tool, name)?;
        Ok(Self {
            server,
            tool,
            definition,
        })
    }

    /// Whose tool it is.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The tool as its server describes it.
    pub fn tool(&self) -> &Arc<ToolDef> {
        &self.tool
    }

    /// The same tool, about which a person is always asked.
    #[must_use]
    pub fn asking(&self) -> Self {
        self.with_approval(true)
    }

    /// The same tool without approval, unless a call was repaired or recovered from text. Only for a server that the
    /// request itself declares.
    #[must_use]
    pub fn unasked(&self) -> Self {
        self.with_approval(false)
    }

    /// The same tool, held back until somebody searches for it, or not.
    #[must_use]
    pub fn with_defer(&self, defer: haft_core::Defer) -> Self {
        let word = serde_json::to_value(defer).unwrap_or_default();
        self.annotated("defer", word)
    }

    fn with_approval(&self, asks: bool) -> Self {
        self.annotated("x-needs-approval", asks.into())
    }

    fn annotated(&self, key: &str, value: Value) -> Self {
        let mut json = self.definition.to_json();
        json["annotations"][key] = value;
        match ToolDefinition::from_json(json) {
            Ok(definition) => Self {
                definition: Arc::new(definition.of_kind(ToolKind::Mcp)),
                ..self.clone()
            },
            // It was a definition before, and one more annotation keeps it one.
            Err(_) => self.clone(),
        }
    }
}

fn definition(
    server: &Server,
    tool: &ToolDef,
    name: &ToolName,
) -> Result<Arc<ToolDefinition>, DefinitionError> {
    let settings = server.settings();
    let (_, total) = settings.call_limits(&tool.name);
    // While a person is asked, the call's own time stands still.
    let asked = if server.may_be_asked() {
        settings.timeouts.asking
    } else {
        Duration::ZERO
    };
    let total = total.saturating_add(asked).as_millis();
    let total = u64::try_from(total).unwrap_or(u64::MAX);
    let mut extra = Map::new();
    if server.needs_approval(tool) {
        extra.insert("x-needs-approval".into(), true.into());
    }
    extra.insert("x-mcp-server".into(), server.label().as_str().into());
    if settings.trusted {
        extra.insert("x-mcp-trusted".into(), true.into());
    }
    // Not for approval, where only trusted servers count: for whether a repeated call is worth running.
    if tool.hints.read_only == Some(true) {
        extra.insert("x-mcp-read-only".into(), true.into());
    }
    let own = settings.tools.get(&tool.name);
    let on_repaired = own.and_then(|own| own.on_repaired);
    if let Some(on_repaired) = on_repaired.or(settings.on_repaired) {
        let word = serde_json::to_value(on_repaired).unwrap_or_default();
        extra.insert("x-on-repaired".into(), word);
    }
    // What a stranger says about himself counts for nothing.
    let hint = |said: Option<bool>| settings.trusted && said == Some(true);
    let fears = |said: Option<bool>| !settings.trusted || said != Some(false);
    let read_only = hint(tool.hints.read_only);
    let annotations = Annotations {
        title: tool.title.clone(),
        read_only,
        destructive: !read_only && fears(tool.hints.destructive),
        idempotent: hint(tool.hints.idempotent),
        open_world: fears(tool.hints.open_world),
        timeout_ms: Some(total.saturating_add(GRACE_MS)),
        polling: own.is_some_and(|own| own.polling),
        origin: Some(tool.name.clone()),
        defer: settings.deferral(&tool.name).into(),
        extra,
        ..Annotations::default()
    };
    let mut builder = ToolDefinition::builder(name.as_str())
        .kind(ToolKind::Mcp)
        .annotations(annotations);
    if let Some(description) = &tool.description {
        builder = builder.foreign_description(description);
    }
    builder = match &tool.input_schema {
        Ok(schema) => builder.parameters(Value::clone(schema)),
        Err(mode) => builder.no_schema(*mode),
    };
    if let Some(schema) = &tool.output_schema {
        builder = builder.output_schema(Value::clone(schema));
    }
    builder.build()
}

impl ToolObject for McpTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => Map::new(),
            _ => {
                return Err(InstantiateError {
                    path: ".".into(),
                    reason: "the arguments of an MCP tool are an object".into(),
                });
            }
        };
        Ok(Box::new(McpCall {
            tool: self.clone(),
            arguments,
        }))
    }
}

/// One call, ready to go.
struct McpCall {
    tool: McpTool,
    arguments: Map<String, Value>,
}

impl HydratedTool for McpCall {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.tool.definition
    }

    fn run(self: Box<Self>, context: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Self { tool, arguments } = *self;
            let mut tell = |progress| context.progress(progress);
            let options = CallOptions {
                cancel: context.cancel().clone(),
                on_progress: Some(&mut tell),
                output_schema: tool.tool.output_schema.clone(),
                asker: context
                    .state::<AskerSlot>()
                    .ok()
                    .map(|it| Arc::clone(&it.0)),
                ..CallOptions::default()
            };
            let server = &tool.server;
            let answer = server.call(&tool.tool.name, arguments, options).await;
            let log = context.state::<CallLog>().ok();
            let record = |record| {
                if let Some(log) = log {
                    log.put(context.call_id(), record);
                }
            };
            match answer {
                Ok(outcome) => {
                    let mut options = render_options(server, &tool.tool.name);
                    if context.keeps_long_results() {
                        options.text_bytes = usize::MAX;
                    }
                    let shown = outcome.render(&options);
                    record(CallRecord::Answered(outcome));
                    Ok(shown.output)
                }
                Err(error) => {
                    let reason = error.for_log();
                    tracing::warn!(server = %server.label(), tool = tool.tool.name, reason, "call failed");
                    let text = format!(
                        "MCP server `{}`: {}",
                        error.server,
                        error.cause.for_callers()
                    );
                    record(CallRecord::Failed(error));
                    Err(ToolError::new(text))
                }
            }
        })
    }
}

fn render_options(server: &Server, raw: &str) -> RenderOptions {
    let settings = server.settings();
    let own = settings.tools.get(raw);
    RenderOptions {
        text_bytes: own
            .and_then(|tool| tool.result_text_bytes)
            .unwrap_or(settings.limits.result_text_bytes),
        image_bytes: settings.limits.result_image_bytes,
        prefer: own.and_then(|tool| tool.prefer).unwrap_or(settings.prefer),
        trusted: settings.trusted,
        // The model's adapter leaves out what its model cannot see.
        takes_images: true,
    }
}
