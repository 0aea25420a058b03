//! What is counted and timed, in the words of Prometheus.
//!
//! What comes in: what happens, told by the other watchers. What goes out: one text. The series are
//! bounded by the configuration: a client can make numbers larger, never their list longer.

mod exposition;
mod labels;
mod list;
mod per_model;
mod process;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use prometheus_client::registry::Registry;

pub(crate) use exposition::Form;
pub(crate) use labels::{
    BackendLabels, CallLabels, KindLabels, McpCallLabels, McpServerLabels, McpStateLabels,
    McpToolLabels, Name, OperationLabels, OutcomeLabels, RequestLabels, RouteLabels, RunLabels,
    StoreErrorLabels, Word,
};
pub(crate) use list::{Described, Meters};
pub(crate) use per_model::{ModelMeters, absence_word, error_word};

/// All meters of a server.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) meters: Meters,
    models: HashMap<String, Arc<ModelMeters>>,
    /// For what bears no name of the configuration, which nothing does.
    other: OnceLock<Arc<ModelMeters>>,
}

impl Metrics {
    /// Meters for a server with these models.
    pub(crate) fn new<'m>(models: impl IntoIterator<Item = &'m str>) -> Self {
        let mut registry = Registry::default();
        let meters = Meters::register(&mut registry);
        registry.register_collector(Box::new(process::Process::new()));
        let of = |name: &str| (name.to_owned(), Arc::new(ModelMeters::of(name, &meters)));
        let models = models.into_iter().map(of).collect();
        Self {
            registry,
            meters,
            models,
            other: OnceLock::new(),
        }
    }

    /// The meters of a model of the configuration; those of `other` for any other name.
    pub(crate) fn model(&self, name: &str) -> Arc<ModelMeters> {
        let known = self.models.get(name);
        let other = || Arc::new(ModelMeters::of("other", &self.meters));
        Arc::clone(known.unwrap_or_else(|| self.other.get_or_init(other)))
    }

    /// Everything as one text.
    pub(crate) fn text(&self, form: Form) -> String {
        let mut text = String::new();
        // A text takes whatever is written to it.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        form.of(text)
    }
}

/// Every metric that there is, for documents and tests.
pub(crate) fn described() -> impl Iterator<Item = Described> {
    list::METERS.iter().chain(process::DESCRIBED).copied()
}

/// The metrics as a table of a document.
pub fn metrics_table() -> String {
    let mut table = String::from("| Name | Kind | Labels | Meaning |\n|---|---|---|---|\n");
    for metric in described() {
        let name = exposition::sample_name(metric.name, metric.kind);
        let labels = metric.labels.iter().map(|label| format!("`{label}`"));
        let labels = match labels.collect::<Vec<_>>().as_slice() {
            [] => String::from("–"),
            labels => labels.join(", "),
        };
        let (kind, help) = (metric.kind, metric.help);
        // A text takes whatever is written to it.
        let _ = writeln!(table, "| `{name}` | {kind} | {labels} | {help}. |");
    }
    table
}
