//! One tool as it can be offered: under its wire name, with its validator, rendered once.
//!
//! A tool in a namespace (or of an MCP server) has two possible names, both functions of its
//! identity alone: the plain one, `namespace__name`, and the hashed one, which it takes where a
//! native tool or a request's function bears the plain one (`mcp.md` §7.2). Both forms are made from
//! the same tool and share its compiled validator.

use std::fmt;
use std::sync::{Arc, OnceLock};

use haft_core::{
    DefinitionError, Loading, Namespace, SchemaError, ToolDefinition, ToolName, ToolObject,
    ToolSpec, Validator, ViewFormat, caught,
};
use haft_hydrate::{Compile, PreparedTool, ValidatorCache};
use serde_json::json;

use crate::presented::presented;

pub(crate) struct Offered {
    prepared: PreparedTool,
    identity: Identity,
    /// The tool as it came, under its own definition.
    source: Arc<dyn ToolObject>,
    attached: Option<Arc<dyn Validator>>,
    workshop: Workshop,
    spec: Arc<ToolSpec>,
    hashed: OnceLock<Option<Arc<Offered>>>,
    briefs: [OnceLock<Option<Arc<Offered>>>; 2],
    deferred: [OnceLock<Arc<Offered>>; 2],
}

/// What is left of a tool's parameters while it is shown in brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BriefSchema {
    /// Nothing but that they are an object: this is what saves tokens.
    #[default]
    Drop,
    /// All of them.
    Keep,
}

/// What names are made of: nothing else may show in them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) namespace: Option<Namespace>,
    /// The name inside the namespace; for an MCP tool the server's own.
    pub(crate) raw: Box<str>,
}

/// How validators come about in one catalogue.
#[derive(Debug, Clone)]
pub(crate) struct Workshop {
    pub(crate) validators: Arc<ValidatorCache>,
    pub(crate) compile: Compile,
}

impl Offered {
    /// A native tool, in a namespace or in none.
    pub(crate) fn native(
        tool: Arc<dyn ToolObject>,
        namespace: Option<Namespace>,
        workshop: &Workshop,
    ) -> Result<Arc<Self>, SchemaError> {
        let raw = tool.definition().name().as_str().into();
        Self::new(tool, Identity { namespace, raw }, workshop)
    }

    /// A tool of a group. Its raw name is the foreign one that its definition keeps.
    pub(crate) fn grouped(
        tool: Arc<dyn ToolObject>,
        label: &Namespace,
        workshop: &Workshop,
    ) -> Result<Arc<Self>, SchemaError> {
        let raw = foreign_name(tool.definition()).into();
        let namespace = Some(label.clone());
        Self::new(tool, Identity { namespace, raw }, workshop)
    }

    fn new(
        source: Arc<dyn ToolObject>,
        identity: Identity,
        workshop: &Workshop,
    ) -> Result<Arc<Self>, SchemaError> {
        let prepared = caught(|| {
            let tool = named(&source, identity.plain_name(&source));
            PreparedTool::new(tool, &workshop.validators, workshop.compile)
        })
        .unwrap_or_else(|panic| {
            Err(SchemaError {
                reason: format!("the tool panicked: {panic}"),
            })
        })?;
        Ok(Arc::new(Self {
            spec: ToolSpec::new(Arc::clone(prepared.definition())),
            prepared,
            identity,
            source,
            attached: None,
            workshop: workshop.clone(),
            hashed: OnceLock::new(),
            briefs: Default::default(),
            deferred: Default::default(),
        }))
    }

    /// The same tool with a validator of its own.
    pub(crate) fn with_validator(&self, validator: Arc<dyn Validator>) -> Arc<Self> {
        Arc::new(Self {
            prepared: self.prepared.with_validator(Arc::clone(&validator)),
            identity: self.identity.clone(),
            source: Arc::clone(&self.source),
            attached: Some(validator),
            workshop: self.workshop.clone(),
            spec: Arc::clone(&self.spec),
            hashed: OnceLock::new(),
            briefs: Default::default(),
            deferred: Default::default(),
        })
    }

    /// The same tool, shown in one line; itself where it cannot be. What is validated stays the whole
    /// schema. Made once, so that adapters render it once.
    pub(crate) fn brief(self: &Arc<Self>, schema: BriefSchema) -> Arc<Self> {
        let kept = &self.briefs[usize::from(schema == BriefSchema::Keep)];
        let brief = kept.get_or_init(|| {
            let definition = brief_of(self.definition(), schema);
            definition.map(|definition| self.shown_as(definition)).ok()
        });
        brief.clone().unwrap_or_else(|| Arc::clone(self))
    }

    /// The same tool, which the model gets to see in another way. Made once, so that adapters render it
    /// once.
    pub(crate) fn loaded_by(self: &Arc<Self>, loading: Loading) -> Arc<Self> {
        if self.spec.loading() == loading {
            return Arc::clone(self);
        }
        let with = |loading| {
            let definition = Arc::clone(self.spec.definition());
            self.shown_by(ToolSpec::loaded_by(definition, loading))
        };
        let [searched, referenced] = &self.deferred;
        match loading {
            Loading::Listed => with(loading),
            Loading::Searched => Arc::clone(searched.get_or_init(|| with(loading))),
            Loading::Referenced => Arc::clone(referenced.get_or_init(|| with(loading))),
        }
    }

    /// The same tool, shown to models by another definition of the same name.
    pub(crate) fn shown_as(&self, definition: Arc<ToolDefinition>) -> Arc<Self> {
        self.shown_by(ToolSpec::new(definition))
    }

    fn shown_by(&self, spec: Arc<ToolSpec>) -> Arc<Self> {
        Arc::new(Self {
            prepared: self.prepared.clone(),
            identity: self.identity.clone(),
            source: Arc::clone(&self.source),
            attached: self.attached.clone(),
            workshop: self.workshop.clone(),
            spec,
            hashed: OnceLock::from(None),
            briefs: Default::default(),
            deferred: Default::default(),
        })
    }

    /// The same tool under its hashed name; none if it has no other name than the one it bears.
    pub(crate) fn hashed(&self) -> Option<&Arc<Self>> {
        self.hashed
            .get_or_init(|| {
                let name = self.identity.hashed_name()?;
                (name != *self.name()).then(|| self.under(name))
            })
            .as_ref()
    }

    fn under(&self, name: ToolName) -> Arc<Self> {
        let tool = named(&self.source, name);
        let prepared = self.prepared.presented_as(tool);
        Arc::new(Self {
            spec: ToolSpec::new(Arc::clone(prepared.definition())),
            prepared,
            identity: self.identity.clone(),
            source: Arc::clone(&self.source),
            attached: self.attached.clone(),
            workshop: self.workshop.clone(),
            hashed: OnceLock::from(None),
            briefs: Default::default(),
            deferred: Default::default(),
        })
    }

    pub(crate) fn name(&self) -> &ToolName {
        self.definition().name()
    }

    pub(crate) fn definition(&self) -> &Arc<ToolDefinition> {
        self.prepared.definition()
    }

    pub(crate) fn prepared(&self) -> &PreparedTool {
        &self.prepared
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The validator that somebody attached.
    pub(crate) fn attached(&self) -> Option<&Arc<dyn Validator>> {
        self.attached.as_ref()
    }

    /// The tool as models are shown it.
    pub(crate) fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// The tool as `format` announces it, in compact JSON; serialised once.
    pub(crate) fn render(&self, format: ViewFormat) -> Arc<String> {
        self.spec.rendered().get(format.key(), || {
            self.spec.definition().view(format).to_string()
        })
    }
}

impl fmt::Debug for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offered({})", self.name())
    }
}

impl Identity {
    fn plain_name(&self, tool: &Arc<dyn ToolObject>) -> ToolName {
        match &self.namespace {
            Some(namespace) => ToolName::in_namespace(namespace, &self.raw),
            None => tool.definition().name().clone(),
        }
    }

    fn hashed_name(&self) -> Option<ToolName> {
        let namespace = self.namespace.as_ref()?;
        Some(ToolName::in_namespace_hashed(namespace, &self.raw))
    }
}

fn brief_of(
    definition: &ToolDefinition,
    schema: BriefSchema,
) -> Result<Arc<ToolDefinition>, DefinitionError> {
    let parameters = match schema {
        BriefSchema::Drop => json!({"type": "object"}),
        BriefSchema::Keep => definition.offered_parameters(),
    };
    ToolDefinition::builder(definition.name().as_str())
        .description(definition.brief())
        .parameters(parameters)
        .build()
}

/// The name that an imported tool had where it comes from.
pub(crate) fn foreign_name(definition: &ToolDefinition) -> &str {
    let origin = definition.annotations().origin.as_deref();
    origin.unwrap_or(definition.name().as_str())
}

fn named(tool: &Arc<dyn ToolObject>, name: ToolName) -> Arc<dyn ToolObject> {
    if *tool.definition().name() == name {
        Arc::clone(tool)
    } else {
        let definition = tool.definition().renamed(name);
        presented(Arc::clone(tool), definition)
    }
}
