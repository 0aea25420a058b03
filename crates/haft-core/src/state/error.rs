//! What goes wrong with session state.

/// Why a slice could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Nobody registered it.
    #[error(
        "the session has no slice `{slice}`: register its type with `SessionState::builder().slice`"
    )]
    NotRegistered {
        /// Its name.
        slice: &'static str,
    },
    /// Another type was registered under its name.
    #[error("the slice name `{slice}` is taken by the type `{holder}`: choose another name")]
    NameTaken {
        /// The name.
        slice: &'static str,
        /// Who has it.
        holder: &'static str,
    },
    /// Another resource was registered under its name.
    #[error("the session already has a resource `{resource}`: choose another name")]
    ResourceTaken {
        /// The name.
        resource: String,
    },
    /// The call was already committed or rolled back.
    #[error("the call `{call_id}` is over: nothing can be changed in its name any more")]
    CallOver {
        /// The call.
        call_id: String,
    },
    /// An operation that went well on the call's own view failed on the committed value.
    #[error("a change of the slice `{slice}` panicked while it was committed: {reason}")]
    Panicked {
        /// The slice.
        slice: &'static str,
        /// What the panic said.
        reason: String,
    },
    /// A value that has no JSON form.
    #[error("the slice `{slice}` cannot be written as JSON: {reason}")]
    NoJson {
        /// The slice.
        slice: String,
        /// Why.
        reason: String,
    },
}

/// Why state could not be put back. Everything is then as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Not of this version's form.
    #[error("unknown snapshot version `{0}`: this version reads `1`")]
    UnknownVersion(String),
    /// Not an object of slices.
    #[error("stored state must be a JSON object with one member per slice")]
    NotAnObject,
    /// Slices that nobody registered.
    #[error(
        "unknown slice {}: register the types that the state was written with",
        .0.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    )]
    UnknownSlices(Vec<String>),
    /// A slice whose JSON its type does not read.
    #[error("the slice `{slice}` cannot be read: {reason}")]
    InvalidSlice {
        /// The slice.
        slice: String,
        /// Why.
        reason: String,
    },
    /// A resource that nobody registered.
    #[error("unknown resource `{0}`: register it before restoring")]
    UnknownResource(String),
    /// A resource that failed.
    #[error("the resource `{resource}` failed: {reason}")]
    Resource {
        /// The resource.
        resource: String,
        /// What it says.
        reason: String,
    },
    /// The call was already committed or rolled back.
    #[error("the call `{0}` is over: there is nothing left to roll back")]
    CallOver(String),
}
