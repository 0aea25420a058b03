//! The tools that a request shows to a model.

use std::fmt;
use std::sync::Arc;

use crate::definition::ToolDefinition;
use crate::loading::Loading;
use crate::render_cache::RenderCache;

/// One tool as models are shown it, with whatever adapters made of it.
///
/// An adapter lowers a tool once and keeps the bytes here, for every request that shows it.
pub struct ToolSpec {
    definition: Arc<ToolDefinition>,
    loading: Loading,
    rendered: RenderCache,
}

impl ToolSpec {
    /// A tool that nobody has rendered yet, shown with the list.
    pub fn new(definition: Arc<ToolDefinition>) -> Arc<Self> {
        Self::loaded_by(definition, Loading::Listed)
    }

    /// A tool that nobody has rendered yet, and how the model gets to see it.
    pub fn loaded_by(definition: Arc<ToolDefinition>, loading: Loading) -> Arc<Self> {
        Arc::new(Self {
            definition,
            loading,
            rendered: RenderCache::default(),
        })
    }

    /// How the model gets to see it.
    pub fn loading(&self) -> Loading {
        self.loading
    }

    /// The definition.
    pub fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    /// What adapters made of it.
    pub fn rendered(&self) -> &RenderCache {
        &self.rendered
    }
}

impl fmt::Debug for ToolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolSpec({})", self.definition.name())
    }
}

/// The tools of one request, in order. Clones share one list.
///
/// ```
/// use haft_core::{ToolDefinition, ToolSpecs};
/// let ping = ToolDefinition::builder("ping")
///     .parameters(serde_json::json!({"type": "object"}))
///     .build()?;
/// let specs: ToolSpecs = [ping].into_iter().collect();
/// assert_eq!(specs.iter().next().unwrap().definition().name().as_str(), "ping");
/// # Ok::<(), haft_core::DefinitionError>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolSpecs(Arc<List>);

#[derive(Default)]
struct List {
    tools: Vec<Arc<ToolSpec>>,
    rendered: RenderCache,
}

impl ToolSpecs {
    /// A list in this order. Names are not checked: a binding's are unique.
    pub fn new(tools: Vec<Arc<ToolSpec>>) -> Self {
        Self(Arc::new(List {
            tools,
            rendered: RenderCache::default(),
        }))
    }

    /// The tools, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<ToolSpec>> {
        self.0.tools.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.tools.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.tools.is_empty()
    }

    /// What adapters made of the whole list.
    pub fn rendered(&self) -> &RenderCache {
        &self.0.rendered
    }
}

impl FromIterator<Arc<ToolDefinition>> for ToolSpecs {
    fn from_iter<I: IntoIterator<Item = Arc<ToolDefinition>>>(definitions: I) -> Self {
        Self::new(definitions.into_iter().map(ToolSpec::new).collect())
    }
}

impl fmt::Debug for ToolSpecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0.tools).finish()
    }
}
