//! A tool: definition and call.
//!
//! [`Tool`] is what `#[tool]` implements for a type; [`ToolObject`] is the same thing behind a
//! pointer, as a catalogue holds it; [`HydratedTool`] is one call of it, arguments inside, ready to
//! run. Nothing registers itself: a tool exists for a model only where somebody lists it.

use std::any::type_name;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::ToolContext;
use crate::definition::ToolDefinition;
use crate::definition_error::DefinitionError;
use crate::kind::ToolKind;
use crate::output::{IntoToolOutput, ToolError, ToolOutput};
use crate::store::Owner;
use crate::validator::Validator;

/// A boxed future that may be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool with typed arguments. `#[tool]` writes this.
pub trait Tool: Send + Sync + 'static {
    /// The validated argument object.
    type Arguments: DeserializeOwned + Send + 'static;

    /// The definition, or why the author's types make none. Built once; the same object every time.
    fn try_definition() -> Result<&'static Arc<ToolDefinition>, &'static DefinitionError>;

    /// Runs one call.
    fn execute(
        arguments: Self::Arguments,
        context: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// A validator that goes before the catalogue's own.
    fn validator() -> Option<Arc<dyn Validator>> {
        None
    }

    /// The definition.
    ///
    /// # Panics
    /// If the author's types make no definition: a schema that is no object or refers outside
    /// itself. Registration reports the same as an error; use
    /// [`try_definition`](Self::try_definition) where a panic is out of place.
    fn definition() -> &'static Arc<ToolDefinition> {
        match Self::try_definition() {
            Ok(definition) => definition,
            Err(error) => panic!("{}: {error}", type_name::<Self>()),
        }
    }

    /// The tool as a catalogue holds it.
    fn into_object() -> Result<Arc<dyn ToolObject>, DefinitionError>
    where
        Self: Sized,
    {
        match Self::try_definition() {
            Ok(definition) => Ok(Arc::new(TypedTool::<Self> {
                definition: Arc::clone(definition),
                tool: PhantomData,
            })),
            Err(error) => Err(error.clone()),
        }
    }
}

/// What a struct tool does: the fields are the arguments, `self` is the validated call.
///
/// There is no default body: a tool without `run` does not compile.
#[diagnostic::on_unimplemented(
    message = "the tool `{Self}` does not say what it does: `haft::Run` is not implemented for it",
    label = "this tool has no `run`",
    note = "write `impl haft::Run for {Self} {{ type Output = …; async fn run(self, ctx: \
            &haft::ToolContext) -> Result<Self::Output, haft::ToolError> {{ … }} }}`"
)]
pub trait Run: Sized + Send {
    /// What comes back: nothing, anything serialisable, or a [`ToolOutput`].
    type Output: IntoToolOutput;

    /// Runs the call.
    fn run(
        self,
        context: &ToolContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// A tool behind a pointer, as a catalogue holds it.
pub trait ToolObject: Send + Sync + 'static {
    /// The definition; the same object every time.
    fn definition(&self) -> &Arc<ToolDefinition>;

    /// Makes one call of validated arguments.
    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError>;

    /// A validator that goes before the catalogue's own.
    fn validator(&self) -> Option<Arc<dyn Validator>> {
        None
    }

    /// The tool as this owner may see it: the same for everybody, unless it holds what belongs to
    /// some owners only. Whoever offers tools to owners asks; so that nobody who forgets it shows too
    /// much, the tool itself holds nothing but what everybody may see.
    fn for_owner(&self, owner: &Owner) -> OwnersTool {
        let _ = owner;
        OwnersTool::Same
    }

    /// Whether it can run its calls. One that is only declared cannot: its calls go to an executor
    /// of the run, or back to the caller.
    fn runs_here(&self) -> bool {
        true
    }
}

/// What a tool is for one owner.
#[derive(Debug, Clone)]
pub enum OwnersTool {
    /// What it is for everybody.
    Same,
    /// This one, of the same name.
    Own(Arc<dyn ToolObject>),
    /// Nothing: there is no such tool for him.
    Hidden,
}

impl fmt::Debug for dyn ToolObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolObject({})", self.definition().name())
    }
}

/// One call, arguments inside, ready to run.
pub trait HydratedTool: Send {
    /// Whose call it is.
    fn definition(&self) -> &Arc<ToolDefinition>;

    /// Runs it.
    fn run(self: Box<Self>, context: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}

impl fmt::Debug for dyn HydratedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HydratedTool({})", self.definition().name())
    }
}

/// Arguments that the schema admits and the type does not: the author's mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at `{path}`: {reason}")]
pub struct InstantiateError {
    /// Where in the arguments, as serde writes paths.
    pub path: String,
    /// What the type says.
    pub reason: String,
}

struct TypedTool<T> {
    definition: Arc<ToolDefinition>,
    tool: PhantomData<fn() -> T>,
}

impl<T: Tool> ToolObject for TypedTool<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        Ok(Box::new(TypedCall::<T> {
            definition: Arc::clone(&self.definition),
            arguments: read_arguments(arguments)?,
        }))
    }

    fn validator(&self) -> Option<Arc<dyn Validator>> {
        T::validator()
    }
}

struct TypedCall<T: Tool> {
    definition: Arc<ToolDefinition>,
    arguments: T::Arguments,
}

impl<T: Tool> HydratedTool for TypedCall<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn run(self: Box<Self>, context: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { T::execute(self.arguments, context).await })
    }
}

/// Reads validated arguments into a type.
///
/// `5.0` is an integer by JSON Schema and not by serde; so where the first reading fails, one more
/// is tried with integral numbers written as integers.
///
/// ```
/// let read: Vec<u8> = haft_core::read_arguments(&serde_json::json!([1, 2.0]))?;
/// assert_eq!(read, [1, 2]);
/// # Ok::<(), haft_core::InstantiateError>(())
/// ```
pub fn read_arguments<A: DeserializeOwned>(arguments: &Value) -> Result<A, InstantiateError> {
    match serde_path_to_error::deserialize(arguments) {
        Ok(read) => Ok(read),
        Err(error) => {
            let mut integral = arguments.clone();
            if integers_from_integral_floats(&mut integral)
                && let Ok(read) = A::deserialize(&integral)
            {
                return Ok(read);
            }
            Err(InstantiateError {
                path: error.path().to_string(),
                reason: error.inner().to_string(),
            })
        }
    }
}

/// Rewrites `5.0` as `5` throughout; says whether there was anything to rewrite.
fn integers_from_integral_floats(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => match integral(number) {
            Some(integer) => {
                *value = integer;
                true
            }
            None => false,
        },
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, item| integers_from_integral_floats(item) | any),
        Value::Object(members) => members
            .values_mut()
            .fold(false, |any, item| integers_from_integral_floats(item) | any),
        _ => false,
    }
}

/// A double without fraction is an integer exactly; here if 64 bits hold it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "integral and within the bounds of the type, so the casts are exact"
)]
fn integral(number: &serde_json::Number) -> Option<Value> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let float = number
        .as_f64()
        .filter(|float| number.is_f64() && float.fract() == 0.0)?;
    if (-TWO_TO_63..TWO_TO_63).contains(&float) {
        Some(Value::from(float as i64))
    } else if (TWO_TO_63..2.0 * TWO_TO_63).contains(&float) {
        Some(Value::from(float as u64))
    } else {
        None
    }
}

/// Makes a tool of a definition and a closure over the validated arguments.
///
/// State comes with the closure, or through the context. The definition's kind becomes
/// [`ToolKind::Internal`], because it now runs in this process.
///
/// ```
/// use haft_core::{ToolDefinition, dynamic_tool};
/// use serde_json::json;
///
/// let definition = ToolDefinition::builder("shout")
///     .description("Say it louder.")
///     .parameters(json!({"type": "object", "properties": {"text": {"type": "string"}}}))
///     .build()?;
/// let shout = dynamic_tool(definition, |arguments, _context| async move {
///     Ok(arguments["text"].as_str().unwrap_or_default().to_uppercase())
/// });
/// assert_eq!(shout.definition().name().as_str(), "shout");
/// # Ok::<(), haft_core::DefinitionError>(())
/// ```
pub fn dynamic_tool<F, R, O>(definition: Arc<ToolDefinition>, run: F) -> Arc<dyn ToolObject>
where
    F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolOutput,
{
    let definition = match definition.kind() {
        ToolKind::Function => Arc::new(definition.of_kind(ToolKind::Internal)),
        _ => definition,
    };
    Arc::new(DynamicTool {
        definition,
        run: Arc::new(move |arguments, context| {
            let running = run(arguments, context);
            Box::pin(async move { running.await?.into_tool_output() })
        }),
    })
}

type DynamicRun =
    dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

struct DynamicTool {
    definition: Arc<ToolDefinition>,
    run: Arc<DynamicRun>,
}

impl ToolObject for DynamicTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        Ok(Box::new(DynamicCall {
            definition: Arc::clone(&self.definition),
            run: Arc::clone(&self.run),
            arguments: arguments.clone(),
        }))
    }
}

struct DynamicCall {
    definition: Arc<ToolDefinition>,
    run: Arc<DynamicRun>,
    arguments: Value,
}

impl HydratedTool for DynamicCall {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn run(self: Box<Self>, context: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        (self.run)(self.arguments, context.clone())
    }
}

/// A tool that only its caller can run: its calls are validated here and handed back.
pub fn function_tool(definition: Arc<ToolDefinition>) -> Arc<dyn ToolObject> {
    Arc::new(FunctionTool(definition))
}

struct FunctionTool(Arc<ToolDefinition>);

impl ToolObject for FunctionTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn instantiate(&self, _: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        Ok(Box::new(FunctionCall(Arc::clone(&self.0))))
    }

    fn runs_here(&self) -> bool {
        false
    }
}

struct FunctionCall(Arc<ToolDefinition>);

impl HydratedTool for FunctionCall {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn run(self: Box<Self>, _: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            Err(ToolError::new(format!(
                "`{}` is a function of the caller and does not run here",
                self.0.name()
            )))
        })
    }
}

/// A tool hosted in this process that has to be started before it is offered.
pub trait InternalTool: ToolObject {
    /// Prepares the tool (opens a file, builds an index). Runs once, before it is first offered.
    ///
    /// It is bounded in time, as far as it awaits: what blocks its thread cannot be interrupted.
    fn initialize<'a>(&'a self, context: &'a InitContext) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = context;
        Box::pin(async { Ok(()) })
    }

    /// Lets go of what `initialize` took.
    fn shutdown(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }

    /// The schema of the operator's configuration for it.
    fn config_schema(&self) -> Option<Value> {
        None
    }
}

/// What an internal tool is started with.
#[derive(Clone, Default, PartialEq)]
pub struct InitContext {
    /// The operator's configuration, already validated against the tool's schema.
    pub config: Value,
}

impl fmt::Debug for InitContext {
    /// Says only whether there is a configuration: it may hold keys, and logs are read by many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitContext")
            .field("has_config", &!self.config.is_null())
            .finish()
    }
}

/// A tool on its way into a catalogue or a binding, or the reason why its types make none.
#[derive(Debug, Clone)]
pub struct ToolSource(Result<Arc<dyn ToolObject>, DefinitionError>);

impl ToolSource {
    /// The typed tool `T`.
    pub fn of<T: Tool>() -> Self {
        Self(T::into_object())
    }

    /// The tool, or why there is none.
    pub fn into_object(self) -> Result<Arc<dyn ToolObject>, DefinitionError> {
        self.0
    }
}

impl From<Arc<dyn ToolObject>> for ToolSource {
    fn from(tool: Arc<dyn ToolObject>) -> Self {
        Self(Ok(tool))
    }
}

impl From<Result<Arc<dyn ToolObject>, DefinitionError>> for ToolSource {
    /// A tool made by code, or why its definition is none: registration reports it.
    fn from(tool: Result<Arc<dyn ToolObject>, DefinitionError>) -> Self {
        Self(tool)
    }
}

impl From<Arc<ToolDefinition>> for ToolSource {
    /// A definition alone is a function of the caller.
    fn from(definition: Arc<ToolDefinition>) -> Self {
        Self(Ok(function_tool(definition)))
    }
}

impl<T: Tool> From<T> for ToolSource {
    /// The value only names its type: `register(get_weather)`.
    fn from(_: T) -> Self {
        Self::of::<T>()
    }
}

/// Lists tools: types that `#[tool]` made, by name.
///
/// ```ignore
/// catalog.register_all(tools![get_weather, LookupCustomer]);
/// ```
#[macro_export]
macro_rules! tools {
    ($($tool:ty),* $(,)?) => {
        ::std::vec![$($crate::ToolSource::of::<$tool>()),*]
    };
}
