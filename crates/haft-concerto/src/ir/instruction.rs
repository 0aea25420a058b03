//! One instruction, with whatever members its opcode needs.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Opcode;

/// One instruction. Which members an opcode reads is said at [`Opcode`]; all others are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    /// What to do.
    pub op: Opcode,
    /// An index into the constants, field names, a path, names of arguments: see the opcode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arg: Option<Json>,
    /// The name of a local, a global, a field, a method, a variant or a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The model of `CALL_MODEL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The method, where `name` says something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The schema that an answer must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The tool of `CALL_TOOL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The store of the `HASH_MAP` instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hashmap_name: Option<String>,
    /// The type to build, to test for, or to cast to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// How many arguments a call has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argc: Option<u32>,
    /// Where to jump: the index of an instruction of the same function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// How many values to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Line and column in the source, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<[u32; 2]>,
}

impl Instruction {
    /// An instruction without operands.
    pub fn new(op: Opcode) -> Self {
        Self {
            op,
            arg: None,
            name: None,
            model: None,
            method: None,
            schema: None,
            tool: None,
            hashmap_name: None,
            type_name: None,
            argc: None,
            offset: None,
            count: None,
            span: None,
        }
    }

    /// The same with `name`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same with `arg`.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<Json>) -> Self {
        self.arg = Some(arg.into());
        self
    }

    /// The same with `method`.
    #[must_use]
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// The same with `schema`.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// The same with `tool`.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// The same with `type_name`.
    #[must_use]
    pub fn type_name(mut self, name: impl Into<String>) -> Self {
        self.type_name = Some(name.into());
        self
    }

    /// The same with `argc`.
    #[must_use]
    pub fn argc(mut self, argc: u32) -> Self {
        self.argc = Some(argc);
        self
    }

    /// The same with `offset`.
    #[must_use]
    pub fn offset(mut self, offset: u32) -> Self {
        self.offset = Some(offset);
        self
    }

    /// The same with `count`.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.count = Some(count);
        self
    }

    /// The same with a place in the source.
    #[must_use]
    pub fn span(mut self, line: u32, column: u32) -> Self {
        self.span = Some([line, column]);
        self
    }
}
