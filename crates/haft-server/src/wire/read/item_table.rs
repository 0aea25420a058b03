//! The items that have no type of their own inside: what each must hold (`open-responses.md` §2.1).

use haft_core::CallOutput;
use serde_json::{Map, Value, json};

use super::fields::{Fields, wrong_type};
use super::forms::{Flag, Form as _, ListOf, MAX_TEXT, Name, ShortId, Text, TextUpTo, Word};
use super::mcp_tool::cut_secrets;
use super::parts::output;
use super::{Read, Vocabulary};
use crate::history::WIRE_ID;
use crate::wire::ids::new_id;
use crate::wire::request::RequestTool;

/// One type of item.
pub(super) struct ItemForm {
    /// What its ids begin with.
    prefix: &'static str,
    statuses: Option<&'static [&'static str]>,
    members: &'static [Member],
}

/// What one member of an item must be.
struct Member {
    key: &'static str,
    shape: Shape,
    presence: Presence,
}

#[derive(Clone, Copy)]
enum Presence {
    Required,
    /// Written as null where it is absent.
    Nullable,
    /// Left out where it is absent.
    Optional,
    /// This word where it is absent.
    Default(&'static str),
}

#[derive(Clone, Copy)]
enum Shape {
    Any,
    CallId,
    Definitions,
    Flag,
    List,
    LongText,
    Name,
    Object,
    Output,
    Text,
    Word(&'static [&'static str]),
}

const CORE: &[&str] = &["in_progress", "completed", "incomplete"];
const CORE_OR_FAILED: &[&str] = &["in_progress", "completed", "incomplete", "failed"];
const LISTING: &[&str] = &["in_progress", "completed", "failed"];
const CALLING: &[&str] = &[
    "in_progress",
    "calling",
    "completed",
    "incomplete",
    "failed",
];
const COMPLETED: &[&str] = &["in_progress", "completed"];

const fn member(key: &'static str, shape: Shape, presence: Presence) -> Member {
    Member {
        key,
        shape,
        presence,
    }
}

const fn item(
    prefix: &'static str,
    statuses: &'static [&'static str],
    members: &'static [Member],
) -> ItemForm {
    ItemForm {
        prefix,
        statuses: Some(statuses),
        members,
    }
}

/// An item of somebody else's tool, passed through.
const fn foreign(prefix: &'static str) -> ItemForm {
    ItemForm {
        prefix,
        statuses: None,
        members: &[],
    }
}

const CALL_ID: Member = member("call_id", Shape::CallId, Presence::Required);
const CALL_ID_OR_NULL: Member = member("call_id", Shape::CallId, Presence::Nullable);
const NAME: Member = member("name", Shape::Text, Presence::Required);
const SERVER: Member = member("server_label", Shape::Name, Presence::Required);
const ARGUMENTS: Member = member("arguments", Shape::Text, Presence::Required);
const TOOLS: Member = member("tools", Shape::Definitions, Presence::Required);
const EXECUTION: Member = member(
    "execution",
    Shape::Word(&["server", "client"]),
    Presence::Default("server"),
);

static COMPACTION: ItemForm = item(
    "cmp",
    COMPLETED,
    &[member(
        "encrypted_content",
        Shape::LongText,
        Presence::Required,
    )],
);
static CUSTOM_CALL: ItemForm = item(
    "ctc",
    CORE,
    &[
        CALL_ID,
        member("name", Shape::Name, Presence::Required),
        member("input", Shape::LongText, Presence::Required),
        member("namespace", Shape::Text, Presence::Optional),
    ],
);
static CUSTOM_OUTPUT: ItemForm = item(
    "ctco",
    CORE,
    &[
        CALL_ID,
        member("output", Shape::Output, Presence::Required),
        member("is_error", Shape::Flag, Presence::Optional),
    ],
);
static MCP_LIST: ItemForm = item(
    "mcpl",
    LISTING,
    &[
        SERVER,
        member("tools", Shape::List, Presence::Required),
        member("error", Shape::Any, Presence::Nullable),
    ],
);
static MCP_CALL: ItemForm = item(
    "mcp",
    CALLING,
    &[
        SERVER,
        NAME,
        ARGUMENTS,
        member("output", Shape::Text, Presence::Nullable),
        member("error", Shape::Any, Presence::Nullable),
        member("approval_request_id", Shape::Text, Presence::Nullable),
    ],
);
static MCP_REQUEST: ItemForm = item("mcpr", COMPLETED, &[SERVER, NAME, ARGUMENTS]);
static MCP_RESPONSE: ItemForm = item(
    "mcpa",
    COMPLETED,
    &[
        member("approval_request_id", Shape::Text, Presence::Required),
        member("approve", Shape::Flag, Presence::Required),
        member("reason", Shape::Text, Presence::Optional),
    ],
);
static SEARCH_CALL: ItemForm = item(
    "tsc",
    CORE,
    &[
        CALL_ID_OR_NULL,
        EXECUTION,
        member("arguments", Shape::Object, Presence::Required),
    ],
);
static SEARCH_OUTPUT: ItemForm = item("tso", CORE, &[CALL_ID_OR_NULL, EXECUTION, TOOLS]);
static ADDITIONAL_TOOLS: ItemForm = item(
    "at",
    COMPLETED,
    &[
        member(
            "role",
            Shape::Word(&["developer"]),
            Presence::Default("developer"),
        ),
        TOOLS,
    ],
);
static CONFIGURATION: ItemForm = item(
    "cfg",
    COMPLETED,
    &[
        member("reasoning", Shape::Object, Presence::Optional),
        member("text", Shape::Object, Presence::Optional),
    ],
);
static VENDOR: ItemForm = item("haft", CORE_OR_FAILED, &[]);

/// Hosted tools of others, by the type of their items.
static FOREIGN: [(&str, ItemForm); 14] = [
    ("web_search_call", foreign("ws")),
    ("file_search_call", foreign("fs")),
    ("code_interpreter_call", foreign("ci")),
    ("image_generation_call", foreign("ig")),
    ("shell_call", foreign("sh")),
    ("shell_call_output", foreign("sho")),
    ("local_shell_call", foreign("lsh")),
    ("local_shell_call_output", foreign("lsho")),
    ("apply_patch_call", foreign("apc")),
    ("apply_patch_call_output", foreign("apco")),
    ("computer_call", foreign("cu")),
    ("computer_call_output", foreign("cuo")),
    ("program", foreign("prog")),
    ("program_output", foreign("progo")),
];

/// What the ids of items of this type begin with, where it is one of somebody else's tools.
pub(crate) fn foreign_prefix(item_type: &str) -> Option<&'static str> {
    let mut forms = FOREIGN.iter();
    let (_, form) = forms.find(|(name, _)| *name == item_type)?;
    Some(form.prefix)
}

impl ItemForm {
    /// What an item of this type must hold; none if nobody knows the type.
    pub(super) fn of(item_type: &str, words: &Vocabulary<'_>) -> Option<&'static Self> {
        Some(match item_type {
            "compaction" => &COMPACTION,
            "custom_tool_call" => &CUSTOM_CALL,
            "custom_tool_call_output" => &CUSTOM_OUTPUT,
            "mcp_list_tools" => &MCP_LIST,
            "mcp_call" => &MCP_CALL,
            "mcp_approval_request" => &MCP_REQUEST,
            "mcp_approval_response" => &MCP_RESPONSE,
            "tool_search_call" => &SEARCH_CALL,
            "tool_search_output" => &SEARCH_OUTPUT,
            "additional_tools" => &ADDITIONAL_TOOLS,
            "configuration_update" => &CONFIGURATION,
            vendor if words.knows(vendor) => &VENDOR,
            // A tool keeps the spelling that its client used, and so may its items.
            hosted => {
                let bare = hosted.strip_prefix("openai:").unwrap_or(hosted);
                &FOREIGN.iter().find(|(name, _)| *name == bare)?.1
            }
        })
    }

    /// Reads the members of an item of type `item_type`, those that every item has included.
    pub(super) fn read(
        &self,
        item_type: &str,
        mut fields: Fields,
        words: &Vocabulary<'_>,
    ) -> Read<ReadItem> {
        let id = fields.get("id", Text)?.filter(|id| !id.is_empty());
        let is_new = id.is_none();
        let id = id.unwrap_or_else(|| new_id(self.prefix_of(item_type)));
        if is_new && self.statuses.is_none() {
            // The provider never saw this id.
            fields.put(WIRE_ID, "".into());
        }
        let status = match self.statuses {
            Some(statuses) => fields.get("status", Word(statuses))?.map(str::to_owned),
            None => fields.get("status", Text)?,
        };
        let mut tools = Vec::new();
        for member in self.members {
            let Some(mut value) = member.read(&mut fields)? else {
                continue;
            };
            if matches!(member.shape, Shape::Definitions) {
                let path = fields.at(member.key);
                tools = RequestTool::read_list(value.clone(), &path, words)?;
                cut_secrets(&mut value);
            }
            fields.put(member.key, value);
        }
        fields.put("type", item_type.into());
        fields.put("id", id.as_str().into());
        fields.put("status", status.as_deref().unwrap_or("completed").into());
        Ok(ReadItem {
            id,
            members: self.in_full(fields),
            tools,
        })
    }

    /// Nulls are left out, but for those that belong to the item; what is only passed through
    /// stays as it is.
    fn in_full(&self, fields: Fields) -> Map<String, Value> {
        if self.statuses.is_none() {
            return fields.all();
        }
        let mut members = fields.rest();
        for member in self.members {
            if matches!(member.presence, Presence::Nullable) {
                members.entry(member.key).or_insert(Value::Null);
            }
        }
        members
    }

    fn prefix_of<'t>(&'t self, item_type: &'t str) -> &'t str {
        match item_type.split_once(':') {
            Some((slug, _)) if slug != "openai" => slug,
            _ => self.prefix,
        }
    }
}

/// An item as it is stored, and what it brings along.
pub(super) struct ReadItem {
    pub(super) id: String,
    pub(super) members: Map<String, Value>,
    pub(super) tools: Vec<RequestTool>,
}

impl Member {
    /// The member in its long form; none where it is left out.
    fn read(&self, fields: &mut Fields) -> Read<Option<Value>> {
        let shape = self.shape;
        let form = move |value: Value, path: &str| shape.read(value, path);
        Ok(match self.presence {
            Presence::Required => Some(fields.need(self.key, form)?),
            Presence::Nullable | Presence::Optional => fields.get(self.key, form)?,
            Presence::Default(word) => Some(fields.get(self.key, form)?.unwrap_or(word.into())),
        })
    }
}

impl Shape {
    fn read(self, value: Value, path: &str) -> Read<Value> {
        let any = |value: Value, _: &str| Ok(value);
        Ok(match self {
            Self::Any => value,
            Self::CallId => ShortId.read(value, path)?.into(),
            Self::Definitions | Self::List => ListOf(any).read(value, path)?.into(),
            Self::Flag => Flag.read(value, path)?.into(),
            Self::Name => Name.read(value, path)?.into(),
            Self::LongText => TextUpTo(MAX_TEXT).read(value, path)?.into(),
            Self::Object if value.is_object() => value,
            Self::Object => return Err(wrong_type(path, "an object", &value)),
            Self::Output => match output(value, path)? {
                CallOutput::Text(text) => text.into(),
                CallOutput::Parts(parts) => json!(parts),
            },
            Self::Text => Text.read(value, path)?.into(),
            Self::Word(words) => Word(words).read(value, path)?.into(),
        })
    }
}
