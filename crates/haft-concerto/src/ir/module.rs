//! A program: its functions and everything that its source declares.

use serde::{Deserialize, Serialize};
use serde_json::{Map as JsonMap, Value as Json};

use super::Instruction;

/// A compiled program. Lists that are empty are left out of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// `0.1.x`.
    pub version: String,
    /// The stem of the source file's name.
    pub module: String,
    /// The source file's name.
    pub source_file: String,
    /// Values that instructions name by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<Constant>,
    /// Structs and enums.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<TypeDef>,
    /// Functions, methods, closures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// Models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// Tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Schemas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<Schema>,
    /// Connections of the manifest and MCP servers of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Shared maps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hashmaps: Vec<HashMapStore>,
    /// Pipelines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipelines: Vec<Pipeline>,
    /// Ledgers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledgers: Vec<Ledger>,
    /// Memories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<Memory>,
    /// Agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// `listen` expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listens: Vec<Listen>,
    /// Tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Test>,
    /// How it was compiled, and where it begins.
    pub metadata: Metadata,
}

/// How a program was compiled, and where it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The compiler's version.
    pub compiler_version: String,
    /// Always empty, so that equal input gives equal output.
    #[serde(default)]
    pub compiled_at: String,
    /// Always 0 for haft.
    #[serde(default)]
    pub optimization_level: u32,
    /// Whether instructions have spans.
    #[serde(default)]
    pub debug_info: bool,
    /// The function to begin with: `main`, also in script mode.
    pub entry_point: String,
}

/// A value that instructions name by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Constant {
    /// Its number: its place in the list.
    pub index: u32,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ConstantKind,
    /// The value.
    #[serde(default)]
    pub value: Json,
}

/// What a constant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstantKind {
    /// A 64-bit integer.
    Int,
    /// A double; `"inf"`, `"-inf"` and `"NaN"` are strings.
    Float,
    /// Text.
    String,
    /// A Bool.
    Bool,
    /// nil.
    Nil,
}

/// A struct or an enum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TypeDef {
    /// Its path.
    pub name: String,
    /// Which of the two.
    pub kind: TypeKind,
    /// Fields of a struct, in source order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Variants of an enum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
}

/// Which kind of type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TypeKind {
    /// A struct.
    Struct,
    /// An enum.
    Enum,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type, as text.
    #[serde(rename = "type")]
    pub kind: String,
    /// False for `name?` fields: absent ones read as nil. Missing means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// **haft**: the function without parameters that gives the default, for struct literals and
    /// schemas alike. Struct literals of haft's emitter call it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_fn: Option<String>,
}

/// A variant of an enum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Types of its values, as text, or `{"name","type"}` objects for named ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Json>,
}

/// A function, method or closure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its path; for methods of tools the method's name alone.
    pub name: String,
    /// The module it was written in.
    #[serde(default)]
    pub module: String,
    /// `public` or `private`.
    #[serde(default)]
    pub visibility: String,
    /// Parameters without `self`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// The declared type, `nil` if there is none.
    #[serde(default)]
    pub return_type: Json,
    /// Whether it was declared `async`.
    #[serde(default)]
    pub is_async: bool,
    /// Names of locals; only for readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locals: Vec<Json>,
    /// The code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    /// **haft**: whether there is a `self`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Receiver>,
    /// **haft**: locals that are filled when a closure is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<String>,
    /// **haft**: other paths of the same function.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// **haft**: the file that it was written in, if that is not `source_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// How a method takes `self`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receiver {
    /// `self`.
    #[serde(rename = "self")]
    Value,
    /// `mut self`: written back.
    #[serde(rename = "mut")]
    Mut,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type, as text.
    #[serde(rename = "type", default)]
    pub kind: Json,
    /// **haft**: it has a default and may be left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// The module it was written in.
    #[serde(default)]
    pub module: String,
    /// The connection that `provider` names.
    #[serde(default)]
    pub connection: String,
    /// Its settings.
    #[serde(default)]
    pub config: ModelConfig,
    /// Its tools and MCP servers, in source order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// `@retry`, `@timeout`, `@log`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decorators: Vec<Decorator>,
}

/// Settings of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// The model's name or alias at its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Most tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// A literal system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The function that computes the system prompt at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt_fn: Option<String>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// **haft**: rounds of tool calls, 10 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_rounds: Option<u32>,
    /// Whatever else is there.
    #[serde(flatten)]
    pub other: JsonMap<String, Json>,
}

/// A decorator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decorator {
    /// Its name.
    pub name: String,
    /// Values, and objects with one member for named ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Json>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The module it was written in.
    #[serde(default)]
    pub module: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// All methods, public or not.
    #[serde(default)]
    pub methods: Vec<Function>,
    /// What models are told, for each public method in source order.
    #[serde(default)]
    pub tool_schemas: Vec<ToolSchema>,
    /// **haft**: names of the fields that are state; `$init` stores them as `Tool.field`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<String>,
}

/// What a model is told of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// `Calculator::add`.
    pub method_name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Json,
}

/// A schema that answers must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Its name, and that of the structs that valid answers become.
    pub name: String,
    /// JSON Schema.
    pub json_schema: Json,
    /// `strict`.
    #[serde(default)]
    pub validation_mode: String,
    /// **haft**: the fields as declared, with their Concerto types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

/// A connection or an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The name in `provider` or `tools`.
    pub name: String,
    /// Its settings; `type` is `mcp` for servers.
    pub config: Json,
}

/// A shared map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HashMapStore {
    /// Its name.
    pub name: String,
    /// Type of keys, as text.
    #[serde(default)]
    pub key_type: String,
    /// Type of values, as text.
    #[serde(default)]
    pub value_type: String,
}

/// A memory of messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Its name.
    pub name: String,
    /// How many messages it keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<u64>,
}

/// A ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Its name.
    pub name: String,
}

/// A pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// Type of its input, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_type: Option<Json>,
    /// Type of its output, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_type: Option<Json>,
    /// Its stages, in order.
    #[serde(default)]
    pub stages: Vec<Stage>,
}

/// A stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its parameters: at most the input, then optional ones.
    #[serde(default)]
    pub params: Vec<Param>,
    /// Type of its input, as text.
    #[serde(default)]
    pub input_type: Json,
    /// Type of its output, as text.
    #[serde(default)]
    pub output_type: Json,
    /// `@retry`, `@timeout`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decorators: Vec<Decorator>,
    /// The code.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    /// **haft**: the file that it was written in, if that is not `source_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// An agent: a process that answers lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The entry of the manifest.
    #[serde(default)]
    pub connector: String,
    /// `text` or `json`.
    #[serde(default)]
    pub input_format: String,
    /// `text` or `json`.
    #[serde(default)]
    pub output_format: String,
    /// Everything else: `timeout command args env working_dir params decorators`.
    #[serde(flatten)]
    pub settings: JsonMap<String, Json>,
}

/// A `listen` expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listen {
    /// `$listen_N`.
    pub name: String,
    /// The agent, if the source names it.
    #[serde(default)]
    pub agent: String,
    /// What to do with which messages.
    #[serde(default)]
    pub handlers: Vec<HandlerIr>,
}

/// What a `listen` expression does with one type of message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandlerIr {
    /// The type.
    pub message_type: String,
    /// The parameter: its name, or `{"name","type"}`.
    pub param: Json,
    /// The code.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    /// **haft**: locals that are filled when the `listen` expression begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<String>,
    /// **haft**: the file that it was written in, if that is not `source_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// What it is called in the report: the description, else the function's name.
    pub description: String,
    /// The code.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    /// Whether it must fail.
    #[serde(default)]
    pub expect_fail: bool,
    /// What the failure must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_fail_message: Option<String>,
    /// **haft**: the file that it was written in, if that is not `source_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// For members that are only written where they say something.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it with a reference
fn is_false(value: &bool) -> bool {
    !*value
}
