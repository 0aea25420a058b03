//! State at one moment, as it can be written down.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::{Error, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::error::RestoreError;
use super::slice::{AnyValue, SliceType};

/// The form that this version writes and reads.
const VERSION: &str = "1";

/// What is said about a snapshot. Times and ids come from outside: this crate has no clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMeta {
    /// Its id.
    #[serde(skip)]
    pub snapshot_id: String,
    /// When, in RFC 3339.
    #[serde(skip)]
    pub created_at: String,
    /// A name that the host gives it.
    #[serde(default)]
    pub tag: Option<String>,
    /// The call around which it was taken.
    #[serde(default)]
    pub call_id: Option<String>,
    /// That call's tool.
    #[serde(default)]
    pub tool_name: Option<String>,
    /// When in the course of things.
    pub phase: SnapshotPhase,
}

/// When in the course of things a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotPhase {
    /// Before a tool ran.
    PreTool,
    /// After a tool ran.
    PostTool,
    /// When the host wanted it.
    Manual,
}

impl SnapshotMeta {
    /// A snapshot that the host wants.
    pub fn manual(snapshot_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        Self {
            snapshot_id: snapshot_id.into(),
            created_at: created_at.into(),
            tag: None,
            call_id: None,
            tool_name: None,
            phase: SnapshotPhase::Manual,
        }
    }

    /// Sets the name that the host gives it.
    #[must_use]
    pub fn tagged(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Sets the call around which it is taken.
    #[must_use]
    pub fn around(
        mut self,
        call_id: impl Into<String>,
        tool_name: impl Into<String>,
        phase: SnapshotPhase,
    ) -> Self {
        self.call_id = Some(call_id.into());
        self.tool_name = Some(tool_name.into());
        self.phase = phase;
        self
    }
}

/// Every state slice and every resource at one moment.
///
/// It serialises as `{"version":"1","snapshot_id","created_at","state","resources","metadata"}`.
#[derive(Clone)]
pub struct Snapshot {
    version: String,
    meta: SnapshotMeta,
    pub(super) state: BTreeMap<String, Held>,
    pub(super) resources: BTreeMap<String, Value>,
}

/// A slice's value: shared with the session it came from, or read from JSON.
#[derive(Clone)]
pub(super) enum Held {
    Live(AnyValue, SliceType),
    Json(Value),
}

impl Held {
    pub(super) fn to_json(&self) -> Result<Value, String> {
        match self {
            Self::Live(value, of) => (of.write)(value),
            Self::Json(json) => Ok(json.clone()),
        }
    }
}

impl Snapshot {
    pub(super) fn new(
        meta: SnapshotMeta,
        state: BTreeMap<String, Held>,
        resources: BTreeMap<String, Value>,
    ) -> Self {
        Self {
            version: VERSION.to_owned(),
            meta,
            state,
            resources,
        }
    }

    /// What is said about it.
    pub fn meta(&self) -> &SnapshotMeta {
        &self.meta
    }

    pub(super) fn check_version(&self) -> Result<(), RestoreError> {
        if self.version == VERSION {
            Ok(())
        } else {
            Err(RestoreError::UnknownVersion(crate::cut(&self.version)))
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // State may hold secrets: only which slices there are.
        f.debug_struct("Snapshot")
            .field("version", &self.version)
            .field("meta", &self.meta)
            .field("slices", &self.state.keys())
            .field("resources", &self.resources.keys())
            .finish()
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut state = serde_json::Map::new();
        for (name, held) in &self.state {
            let json = held.to_json().map_err(|reason| {
                S::Error::custom(format!("the slice `{name}` cannot be written: {reason}"))
            })?;
            state.insert(name.clone(), json);
        }
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("snapshot_id", &self.meta.snapshot_id)?;
        map.serialize_entry("created_at", &self.meta.created_at)?;
        map.serialize_entry("state", &state)?;
        map.serialize_entry("resources", &self.resources)?;
        map.serialize_entry("metadata", &self.meta)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Form {
            version: String,
            snapshot_id: String,
            created_at: String,
            state: BTreeMap<String, Value>,
            #[serde(default)]
            resources: BTreeMap<String, Value>,
            metadata: SnapshotMeta,
        }
        let form = Form::deserialize(deserializer)?;
        Ok(Self {
            version: form.version,
            meta: SnapshotMeta {
                snapshot_id: form.snapshot_id,
                created_at: form.created_at,
                ..form.metadata
            },
            state: form
                .state
                .into_iter()
                .map(|(name, json)| (name, Held::Json(json)))
                .collect(),
            resources: form.resources,
        })
    }
}
