//! A prompt on its way.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use haft_core::{FeedbackProvider, Policy};

use super::build::built;
use super::error::PromptError;
use super::section::Section;
use super::tree::Prompt;

/// A prompt as its author writes it. `T` is the type of the answer.
pub struct PromptTemplate<T = String> {
    pub(super) ns: String,
    pub(super) key: String,
    pub(super) sections: Vec<Section>,
    pub(super) policies: Vec<Arc<dyn Policy>>,
    pub(super) feedback: Vec<Arc<dyn FeedbackProvider>>,
    answer: PhantomData<fn() -> T>,
}

impl<T> PromptTemplate<T> {
    /// A prompt `ns/key` without sections.
    pub fn new(ns: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            ns: ns.into(),
            key: key.into(),
            sections: Vec::new(),
            policies: Vec::new(),
            feedback: Vec::new(),
            answer: PhantomData,
        }
    }

    /// A section, after those that are there.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// Sections, in this order.
    #[must_use]
    pub fn sections(mut self, sections: impl IntoIterator<Item = Section>) -> Self {
        self.sections.extend(sections);
        self
    }

    /// A policy for all tools of the prompt.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.policies.push(Arc::new(policy));
        self
    }

    /// Feedback on calls of all tools of the prompt.
    #[must_use]
    pub fn feedback(mut self, provider: impl FeedbackProvider) -> Self {
        self.feedback.push(Arc::new(provider));
        self
    }

    /// The prompt, or the first thing that is wrong with it.
    pub fn build(self) -> Result<Prompt<T>, PromptError> {
        let tree = built(
            &self.ns,
            &self.key,
            self.sections,
            self.policies,
            self.feedback,
        )?;
        Ok(Prompt::new(tree))
    }
}

impl<T> Clone for PromptTemplate<T> {
    fn clone(&self) -> Self {
        Self {
            ns: self.ns.clone(),
            key: self.key.clone(),
            sections: self.sections.clone(),
            policies: self.policies.clone(),
            feedback: self.feedback.clone(),
            answer: PhantomData,
        }
    }
}

impl<T> fmt::Debug for PromptTemplate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptTemplate")
            .field("ns", &self.ns)
            .field("key", &self.key)
            .field("sections", &self.sections)
            .finish_non_exhaustive()
    }
}
