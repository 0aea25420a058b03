//! Tools of a program as the engine and a catalogue hold them (§9).

use std::sync::{Arc, Mutex, PoisonError};

use haft_core::{
    Annotations, BoxFuture, Cancel, HydratedTool, InstantiateError, ToolContext, ToolDefinition,
    ToolError, ToolKind, ToolName, ToolObject, ToolOutput, ValidationError, Validator,
    ValidatorFactory as _,
};
use haft_hydrate::JsonSchemaFactory;
use serde_json::{Map as JsonMap, Value as Json};

use super::Setup;
use super::course::Course;
use super::session::{Ended, Session};
use crate::ir;
use crate::load::Program;
use crate::value::Value;
use crate::vm::{Failure, Stop};

/// What models are told of a program's tools, made once.
pub(super) struct Toolbox(Vec<(String, Vec<Arc<Entry>>)>);

/// A public method of a tool.
struct Entry {
    tool: String,
    method: String,
    definition: Arc<ToolDefinition>,
    validator: Arc<dyn Validator>,
}

/// What tools of one model call have in common with their caller.
pub(super) struct Calling {
    /// Stops the run that the tools are called in.
    pub(super) cancel: Cancel,
    stopped: Mutex<Option<Failure>>,
}

impl Calling {
    pub(super) fn new(cancel: Cancel) -> Self {
        Self {
            cancel,
            stopped: Mutex::default(),
        }
    }

    /// Ends the run: a tool ended in a way that ends the program.
    fn stop(&self, failure: Failure) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.get_or_insert(failure);
        self.cancel.cancel();
    }

    /// How a tool ended the program, if one did.
    pub(super) fn stopped(&self) -> Option<Failure> {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.take()
    }
}

impl Toolbox {
    /// Those of a program. A method that cannot be shown to a model is left out and named.
    pub(super) fn new(program: &Program, setup: &Setup) -> Self {
        let tools = program.ir().tools.iter().map(|tool| {
            let entries = tool.tool_schemas.iter().filter_map(|schema| {
                match Entry::new(tool, schema, setup) {
                    Ok(entry) => Some(Arc::new(entry)),
                    Err(problem) => {
                        (setup.warn)(&format!(
                            "tool `{}` is left out: {problem}",
                            schema.method_name
                        ));
                        None
                    }
                }
            });
            (tool.name.clone(), entries.collect())
        });
        Self(tools.collect())
    }

    /// Whether there is such a tool.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.0.iter().any(|(name, _)| name == tool)
    }

    /// The methods of a tool for one call of a model.
    pub(super) fn called(
        &self,
        tool: &str,
        session: &Arc<Session>,
        course: &Course,
        calling: &Arc<Calling>,
    ) -> Vec<Arc<dyn ToolObject>> {
        let entries = self.0.iter().filter(|(name, _)| name == tool);
        let entries = entries.flat_map(|(_, entries)| entries);
        let object = |entry: &Arc<Entry>| {
            Arc::new(ProgramTool {
                entry: Arc::clone(entry),
                session: Arc::clone(session),
                caller: Caller::Model(course.clone(), Arc::clone(calling)),
            }) as Arc<dyn ToolObject>
        };
        entries.map(object).collect()
    }

    /// All methods for a catalogue.
    pub(super) fn served(&self, session: &Arc<Session>) -> Vec<Arc<dyn ToolObject>> {
        let entries = self.0.iter().flat_map(|(_, entries)| entries);
        let object = |entry: &Arc<Entry>| {
            Arc::new(ProgramTool {
                entry: Arc::clone(entry),
                session: Arc::clone(session),
                caller: Caller::Catalogue,
            }) as Arc<dyn ToolObject>
        };
        entries.map(object).collect()
    }
}

impl Entry {
    fn new(tool: &ir::Tool, schema: &ir::ToolSchema, setup: &Setup) -> Result<Self, String> {
        let method = schema.method_name.rsplit("::").next().unwrap_or_default();
        let timeout = u64::try_from(setup.tool_timeout.as_millis()).unwrap_or(u64::MAX);
        let definition = ToolDefinition::builder(ToolName::import(&schema.method_name).as_str())
            .foreign_description(&schema.description)
            .parameters(schema.parameters.clone())
            .kind(ToolKind::Internal)
            .annotations(Annotations {
                timeout_ms: Some(timeout),
                origin: Some(schema.method_name.clone()),
                ..Annotations::default()
            })
            .build()
            .map_err(|error| error.to_string())?;
        let inner = JsonSchemaFactory.compile(&schema.parameters);
        let inner = inner.map_err(|error| error.to_string())?;
        let named = tool
            .methods
            .iter()
            .find(|declared| declared.name.rsplit("::").next() == Some(method));
        let params = named.into_iter().flat_map(|declared| &declared.params);
        let optional = params.filter(|param| {
            let kind = param.kind.as_str().unwrap_or_default();
            kind.starts_with("Option<")
        });
        let optional = optional.map(|param| param.name.clone()).collect();
        Ok(Self {
            tool: tool.name.clone(),
            method: method.to_owned(),
            definition,
            validator: Arc::new(NullIsAbsent { inner, optional }),
        })
    }
}

/// Validates as if an explicit null of an `Option` were not there.
struct NullIsAbsent {
    inner: Arc<dyn Validator>,
    optional: Vec<String>,
}

impl Validator for NullIsAbsent {
    fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    fn version(&self) -> Option<&str> {
        self.inner.version()
    }

    fn validate(&self, arguments: &Json) -> Vec<ValidationError> {
        let is_null = |name: &String| arguments.get(name).is_some_and(Json::is_null);
        if !self.optional.iter().any(is_null) {
            return self.inner.validate(arguments);
        }
        let mut arguments = arguments.clone();
        if let Some(members) = arguments.as_object_mut() {
            members.retain(|name, value| !(value.is_null() && self.optional.contains(name)));
        }
        self.inner.validate(&arguments)
    }
}

/// A method of a tool, for somebody who calls it.
struct ProgramTool {
    entry: Arc<Entry>,
    session: Arc<Session>,
    caller: Caller,
}

#[derive(Clone)]
enum Caller {
    /// A model that the program called. What ends a program ends it.
    Model(Course, Arc<Calling>),
    /// Somebody else's run or client. A call is that call's matter alone.
    Catalogue,
}

impl ToolObject for ProgramTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.entry.definition
    }

    fn instantiate(&self, arguments: &Json) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        let arguments = match arguments {
            Json::Object(members) => members.clone(),
            Json::Null => JsonMap::new(),
            _ => {
                return Err(InstantiateError {
                    path: ".".into(),
                    reason: "the arguments of a tool are an object".into(),
                });
            }
        };
        Ok(Box::new(ProgramCall {
            entry: Arc::clone(&self.entry),
            session: Arc::clone(&self.session),
            caller: self.caller.clone(),
            arguments,
        }))
    }

    fn validator(&self) -> Option<Arc<dyn Validator>> {
        Some(Arc::clone(&self.entry.validator))
    }
}

/// One call.
struct ProgramCall {
    entry: Arc<Entry>,
    session: Arc<Session>,
    caller: Caller,
    arguments: JsonMap<String, Json>,
}

impl HydratedTool for ProgramCall {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.entry.definition
    }

    fn run(self: Box<Self>, context: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let cancel = context.cancel().clone();
            match &self.caller {
                Caller::Model(course, calling) => {
                    Ok(for_model(self.drive(course.deeper(cancel)).await, calling))
                }
                Caller::Catalogue => {
                    let setup = &self.session.house.setup;
                    let course = Course::bounded(cancel, setup.call_limit, setup.limits.steps);
                    for_catalogue(self.drive(course).await)
                }
            }
        })
    }
}

impl ProgramCall {
    async fn drive(&self, course: Course) -> Result<Value, Ended> {
        let Entry { tool, method, .. } = &*self.entry;
        let fiber = self
            .session
            .machine()
            .await
            .tool(tool, method, &self.arguments);
        let fiber = fiber.map_err(|error| super::session::internal(&error.to_string()))?;
        self.session.drive(fiber, course).await
    }
}

/// What a model reads (§9.1): JSON of the value, or the words of an error, which the run wraps.
fn for_model(ended: Result<Value, Ended>, calling: &Calling) -> ToolOutput {
    let failure = match ended {
        Ok(Value::Err(error)) => return ToolOutput::failure(error.get().to_string()),
        Ok(value) => {
            return match value.to_tool_json() {
                Ok(json) => ToolOutput::text(json),
                Err(error) => ToolOutput::failure(error.to_string()),
            };
        }
        Err(ended) => ended.failure,
    };
    match failure {
        Failure::Raised(value) => ToolOutput::failure(value.to_string()),
        Failure::Stop(Stop::Cancelled) => ToolOutput::failure("cancelled"),
        Failure::Stop(stop) => {
            let text = stop.to_string();
            calling.stop(Failure::Stop(stop));
            ToolOutput::failure(text)
        }
        fault @ Failure::Fault(_) => ToolOutput::failure(fault.to_string()),
    }
}

/// What others read: the value, or an error.
fn for_catalogue(ended: Result<Value, Ended>) -> Result<ToolOutput, ToolError> {
    let value = match ended {
        Ok(Value::Err(error)) => return Err(ToolError::new(error.get().to_string())),
        Ok(value) => value,
        Err(ended) => {
            return Err(ToolError::new(match ended.failure {
                Failure::Raised(value) => value.to_string(),
                other => other.to_string(),
            }));
        }
    };
    let json = value.to_tool_json()?;
    Ok(ToolOutput::value(serde_json::from_str(&json)?))
}
