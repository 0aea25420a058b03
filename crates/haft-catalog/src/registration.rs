//! A tool on its way into the catalogue.

use haft_core::{Namespace, ToolSource};

use crate::origin::Origin;

/// A tool, where it belongs and where it comes from.
///
/// ```
/// use haft_catalog::{Catalog, Registration};
/// use haft_core::{Namespace, ToolDefinition};
///
/// let read = ToolDefinition::builder("read")
///     .parameters(serde_json::json!({"type": "object"}))
///     .build()?;
/// let catalog = Catalog::new();
/// let name = catalog.add(
///     Registration::new(read)
///         .in_namespace(Namespace::new("files").unwrap())
///         .from_origin("haft.toml, line 12"),
/// )?;
/// assert_eq!(name.as_str(), "files__read");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Registration {
    pub(crate) tool: ToolSource,
    pub(crate) namespace: Option<Namespace>,
    pub(crate) origin: Origin,
}

impl Registration {
    /// A tool in no namespace, from the line that calls this.
    #[track_caller]
    pub fn new(tool: impl Into<ToolSource>) -> Self {
        Self {
            tool: tool.into(),
            namespace: None,
            origin: Origin::here(),
        }
    }

    /// Puts it into a namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Says where it comes from.
    #[must_use]
    pub fn from_origin(mut self, origin: impl Into<Origin>) -> Self {
        self.origin = origin.into();
        self
    }
}
