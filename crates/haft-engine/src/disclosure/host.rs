//! What a host does between runs: open and close sections, pick tools. It holds from the next run on.

use haft_catalog::Binding;
use haft_catalog::prompt::{Overrides, Prompt, Visibility};
use haft_core::{Slice, ToolName, cut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::session::Session;

use super::memory::Picked;

/// How a conversation's sections are to be shown from its next run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisibilityChange {
    /// Shows a section like this, whatever its author says.
    SetVisibilityOverride {
        /// The section.
        path: String,
        /// How.
        visibility: Visibility,
    },
    /// Shows a section as its author says.
    ClearVisibilityOverride {
        /// The section.
        path: String,
    },
    /// Shows all sections as their authors say.
    ClearAllVisibilityOverrides,
}

/// What a host asked for and does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No such section.
    #[error("prompt `{prompt}` has no section `{path}`: use the path that its heading shows")]
    UnknownSection {
        /// The path as given.
        path: String,
        /// The prompt.
        prompt: String,
    },
    /// No such tools.
    #[error("no tool is called {}: pick among those of the binding", names.join(", "))]
    UnknownTools {
        /// The names as given.
        names: Vec<String>,
    },
    /// The session's state is not what this version wrote.
    #[error("the session's `{slice}` cannot be read: {reason}")]
    BadState {
        /// Which part.
        slice: &'static str,
        /// Why.
        reason: String,
    },
}

impl Session {
    /// Changes how sections of this prompt are shown. A running run is not touched.
    ///
    /// ```
    /// use haft_catalog::prompt::{PromptTemplate, Section, Visibility};
    /// use haft_engine::{Session, VisibilityChange};
    ///
    /// let prompt = PromptTemplate::<String>::new("docs", "help")
    ///     .section(Section::new("api", "API").body("All.").summary("Some.").visibility(Visibility::Summary))
    ///     .build()?;
    /// let mut session = Session::new();
    /// session.dispatch(&prompt, VisibilityChange::SetVisibilityOverride {
    ///     path: "api".into(),
    ///     visibility: Visibility::Full,
    /// })?;
    /// assert!(session.visibility_overrides()?.opens("api"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dispatch<T>(
        &mut self,
        prompt: &Prompt<T>,
        change: VisibilityChange,
    ) -> Result<(), HostError> {
        let known = |path: String| match prompt.contains(&path) {
            true => Ok(path),
            false => Err(HostError::UnknownSection {
                path: cut(&path),
                prompt: prompt.name().to_owned(),
            }),
        };
        let mut overrides = self.visibility_overrides()?;
        match change {
            VisibilityChange::SetVisibilityOverride { path, visibility } => {
                overrides.set(known(path)?, visibility);
            }
            VisibilityChange::ClearVisibilityOverride { path } => {
                overrides.clear(&known(path)?);
            }
            VisibilityChange::ClearAllVisibilityOverrides => overrides.clear_all(),
        }
        self.keep(&overrides)
    }

    /// The sections that are shown otherwise than their authors say.
    pub fn visibility_overrides(&self) -> Result<Overrides, HostError> {
        self.kept()
    }

    /// Picks tools of this binding: they are shown in full from the next run on.
    pub fn pick<N: AsRef<str>>(
        &mut self,
        binding: &Binding,
        names: impl IntoIterator<Item = N>,
    ) -> Result<(), HostError> {
        let mut picked: Picked = self.kept()?;
        let mut unknown = Vec::new();
        for name in names {
            let name = name.as_ref();
            let mut tools = binding.tools_for_llm();
            match tools.find(|tool| tool.name().as_str() == name) {
                Some(tool) => {
                    picked.add(tool.name());
                }
                None => unknown.push(cut(name)),
            }
        }
        if !unknown.is_empty() {
            return Err(HostError::UnknownTools { names: unknown });
        }
        self.keep(&picked)
    }

    /// The tools that are picked, in the order in which they were.
    pub fn picked(&self) -> Result<Vec<ToolName>, HostError> {
        Ok(self.kept::<Picked>()?.0)
    }

    /// Shows all tools in brief again.
    pub fn clear_picked(&mut self) -> Result<(), HostError> {
        self.keep(&Picked::default())
    }

    fn kept<T: Slice + DeserializeOwned>(&self) -> Result<T, HostError> {
        match self.state.get(T::NAME) {
            None => Ok(T::default()),
            Some(json) => T::deserialize(json).map_err(|error| HostError::BadState {
                slice: T::NAME,
                reason: error.to_string(),
            }),
        }
    }

    fn keep<T: Slice + Serialize>(&mut self, value: &T) -> Result<(), HostError> {
        let json = serde_json::to_value(value).map_err(|error| HostError::BadState {
            slice: T::NAME,
            reason: error.to_string(),
        })?;
        if !self.state.is_object() {
            self.state = Value::Object(Map::new());
        }
        self.state[T::NAME] = json;
        Ok(())
    }
}
