//! How a catalogue is set up.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{Namespace, ValidatorFactory};
use haft_hydrate::{Compile, ValidatorCache};

use crate::catalog::Catalog;
use crate::offered::Workshop;

/// The longest that an internal tool may take to start.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest that an internal tool may take to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Collects the settings of a [`Catalog`].
///
/// ```
/// use haft_catalog::Catalog;
/// use haft_hydrate::Compile;
///
/// // A large remote catalogue: its validators are compiled when first needed.
/// let catalog = Catalog::builder().compile(Compile::Late).build();
/// assert!(catalog.is_empty());
/// ```
#[derive(Debug)]
#[must_use = "a catalogue exists only after `build`"]
pub struct CatalogBuilder {
    validators: ValidatorCache,
    compile: Compile,
    initialize_timeout: Duration,
    shutdown_timeout: Duration,
    groups: Vec<Namespace>,
}

impl Default for CatalogBuilder {
    fn default() -> Self {
        Self {
            validators: ValidatorCache::default(),
            compile: Compile::Early,
            initialize_timeout: INITIALIZE_TIMEOUT,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            groups: Vec::new(),
        }
    }
}

impl CatalogBuilder {
    /// The library that validates arguments; the bundled one if nothing is said.
    pub fn validator_factory(mut self, factory: Arc<dyn ValidatorFactory>) -> Self {
        self.validators = ValidatorCache::new(factory);
        self
    }

    /// When validators are compiled; at registration if nothing is said.
    pub fn compile(mut self, compile: Compile) -> Self {
        self.compile = compile;
        self
    }

    /// The longest that an internal tool may take to start; 30 seconds if nothing is said.
    pub fn initialize_timeout(mut self, limit: Duration) -> Self {
        self.initialize_timeout = limit;
        self
    }

    /// The longest that an internal tool may take to shut down; 5 seconds if nothing is said.
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.shutdown_timeout = limit;
        self
    }

    /// The order of groups: MCP servers as they are configured.
    pub fn groups(mut self, labels: impl IntoIterator<Item = Namespace>) -> Self {
        self.groups = labels.into_iter().collect();
        self
    }

    /// The catalogue, empty.
    pub fn build(self) -> Catalog {
        let workshop = Workshop {
            validators: Arc::new(self.validators),
            compile: self.compile,
        };
        Catalog::assembled(
            workshop,
            self.initialize_timeout,
            self.shutdown_timeout,
            self.groups,
        )
    }
}
