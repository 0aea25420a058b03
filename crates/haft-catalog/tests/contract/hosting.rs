//! T16 and the life of internal tools (`tool-definition.md` §9.3).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_catalog::{Catalog, RegisterError};
use haft_core::{
    BoxFuture, HydratedTool, InitContext, InstantiateError, InternalTool, ToolDefinition,
    ToolError, ToolKind, ToolObject,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::*;

type Log = Arc<Mutex<Vec<String>>>;

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Well,
    Fails,
    Panics,
    Hangs,
    Takes(Duration),
}

struct Hosted {
    definition: Arc<ToolDefinition>,
    initialize: Manner,
    shutdown: Manner,
    config_schema: Option<Value>,
    log: Log,
}

impl Hosted {
    fn new(name: &str, log: &Log) -> Self {
        Self {
            definition: definition(name),
            initialize: Manner::Well,
            shutdown: Manner::Well,
            config_schema: None,
            log: Arc::clone(log),
        }
    }

    fn initialize(mut self, manner: Manner) -> Self {
        self.initialize = manner;
        self
    }

    fn shutdown(mut self, manner: Manner) -> Self {
        self.shutdown = manner;
        self
    }

    async fn act(&self, manner: Manner, what: &str) -> Result<(), ToolError> {
        let entry = format!("{what} {}", self.definition.name());
        self.log.lock().unwrap().push(entry);
        match manner {
            Manner::Well => Ok(()),
            Manner::Fails => Err(ToolError::new("no disk")),
            Manner::Panics => panic!("boom"),
            Manner::Hangs => std::future::pending().await,
            Manner::Takes(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
        }
    }
}

impl ToolObject for Hosted {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn instantiate(&self, _: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        unreachable!("nothing is called here")
    }
}

impl InternalTool for Hosted {
    fn initialize<'a>(&'a self, context: &'a InitContext) -> BoxFuture<'a, Result<(), ToolError>> {
        if !context.config.is_null() {
            self.log
                .lock()
                .unwrap()
                .push(format!("config {}", context.config));
        }
        Box::pin(self.act(self.initialize, "start"))
    }

    fn shutdown(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.act(self.shutdown, "stop"))
    }

    fn config_schema(&self) -> Option<Value> {
        self.config_schema.clone()
    }
}

fn register(catalog: &Catalog, tool: Hosted) {
    catalog.register_internal(Arc::new(tool)).unwrap();
}

fn entries(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

#[tokio::test]
async fn an_internal_tool_is_offered_only_after_it_started() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("index", &log));
    assert!(catalog.is_empty());
    assert!(entries(&log).is_empty());
    assert!(catalog.start().await.is_empty());
    let tool = catalog.get("index").unwrap();
    assert_eq!(tool.definition().kind(), &ToolKind::Internal);
    assert_eq!(entries(&log), ["start index"]);
}

#[tokio::test]
async fn its_name_is_taken_from_registration_on() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("index", &log));
    let error = catalog.register(definition("index")).unwrap_err();
    assert!(matches!(error, RegisterError::DuplicateTool { .. }));
    let error = catalog
        .register_internal(Arc::new(Hosted::new("index", &log)))
        .unwrap_err();
    assert!(matches!(error, RegisterError::DuplicateTool { .. }));
}

#[tokio::test]
async fn a_second_start_initialises_only_what_is_new() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("a", &log));
    catalog.start().await;
    catalog.start().await;
    register(&catalog, Hosted::new("b", &log));
    catalog.start().await;
    assert_eq!(entries(&log), ["start a", "start b"]);
    assert_eq!(names(&catalog.snapshot()), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn t16_a_tool_that_fails_to_start_is_left_out_and_the_rest_live() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(
        &catalog,
        Hosted::new("fails", &log).initialize(Manner::Fails),
    );
    register(&catalog, Hosted::new("good", &log));
    register(
        &catalog,
        Hosted::new("hangs", &log).initialize(Manner::Hangs),
    );
    register(
        &catalog,
        Hosted::new("panics", &log).initialize(Manner::Panics),
    );
    catalog.register(definition("plain")).unwrap();

    let failed = catalog.start().await;
    let texts: Vec<_> = failed.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "tool `fails`: it failed to start: no disk; it is left out",
            "tool `hangs`: it did not start within 30s; it is left out",
            "tool `panics`: it panicked: boom; it is left out",
        ]
    );
    assert_eq!(names(&catalog.snapshot()), ["good", "plain"]);
    let mut known = catalog.diagnostics();
    known.sort_by(|a, b| a.tool.cmp(&b.tool));
    assert_eq!(known, failed);

    log.lock().unwrap().clear();
    assert!(catalog.shutdown().await.is_empty());
    assert_eq!(entries(&log), ["stop good"], "only what was started");
    catalog.start().await;
    assert_eq!(entries(&log), ["stop good"], "nothing is tried again");
}

#[tokio::test(start_paused = true)]
async fn all_start_concurrently_each_within_the_limit() {
    let log = Log::default();
    let catalog = Catalog::builder()
        .initialize_timeout(Duration::from_secs(10))
        .build();
    for name in ["a", "b", "c", "d"] {
        let slow = Manner::Takes(Duration::from_secs(9));
        register(&catalog, Hosted::new(name, &log).initialize(slow));
    }
    register(
        &catalog,
        Hosted::new("e", &log).initialize(Manner::Takes(Duration::from_secs(11))),
    );
    let began = Instant::now();
    let failed = catalog.start().await;
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    assert_eq!(failed.len(), 1);
    assert_eq!(names(&catalog.snapshot()), ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_goes_in_reverse_order_each_within_the_limit() {
    let (catalog, log) = (Catalog::new(), Log::default());
    // Registered in this order; they are up in another one.
    register(
        &catalog,
        Hosted::new("z", &log).initialize(Manner::Takes(Duration::from_secs(3))),
    );
    register(&catalog, Hosted::new("y", &log).shutdown(Manner::Hangs));
    register(&catalog, Hosted::new("x", &log).shutdown(Manner::Fails));
    register(&catalog, Hosted::new("w", &log).shutdown(Manner::Panics));
    catalog.start().await;
    log.lock().unwrap().clear();
    let began = Instant::now();
    let failed = catalog.shutdown().await;
    assert_eq!(entries(&log), ["stop w", "stop x", "stop y", "stop z"]);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let tools: Vec<_> = failed.iter().map(|d| d.tool.as_str()).collect();
    assert_eq!(tools, ["w", "x", "y"]);
    assert!(catalog.is_empty(), "what is shut down is not offered");
    assert!(catalog.shutdown().await.is_empty(), "once");
}

#[tokio::test]
async fn an_earlier_snapshot_never_changes_by_a_start() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("index", &log));
    let before = catalog.snapshot();
    catalog.start().await;
    assert!(before.is_empty());
    assert!(catalog.snapshot().version() > before.version());
}

#[tokio::test(start_paused = true)]
async fn concurrent_starts_initialise_once_and_both_wait() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(
        &catalog,
        Hosted::new("a", &log).initialize(Manner::Takes(Duration::from_secs(3))),
    );
    let both = tokio::join!(
        async {
            catalog.start().await;
            catalog.len()
        },
        async {
            catalog.start().await;
            catalog.len()
        }
    );
    assert_eq!(both, (1, 1));
    assert_eq!(entries(&log), ["start a"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_dropped_half_way_can_be_made_good() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("quick", &log));
    register(
        &catalog,
        Hosted::new("slow", &log).initialize(Manner::Takes(Duration::from_secs(9))),
    );
    let dropped = tokio::time::timeout(Duration::from_secs(1), catalog.start()).await;
    assert!(dropped.is_err());
    assert_eq!(names(&catalog.snapshot()), ["quick"]);
    assert!(catalog.start().await.is_empty());
    assert_eq!(names(&catalog.snapshot()), ["quick", "slow"]);
    assert_eq!(entries(&log), ["start quick", "start slow", "start slow"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_removed_after_its_start_is_still_shut_down() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("a", &log));
    catalog.start().await;
    catalog.remove("a");
    catalog.shutdown().await;
    assert_eq!(entries(&log), ["start a", "stop a"]);
}

#[tokio::test]
async fn a_failed_tool_can_be_removed_and_registered_again() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("a", &log).initialize(Manner::Fails));
    assert_eq!(catalog.start().await.len(), 1);
    assert!(catalog.remove("a").is_some());
    assert!(catalog.diagnostics().is_empty());
    register(&catalog, Hosted::new("a", &log));
    assert!(catalog.start().await.is_empty());
    assert!(catalog.get("a").is_some());
}

#[tokio::test]
async fn configuration_is_validated_before_initialize() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"]
    });
    let tool = || {
        let mut tool = Hosted::new("index", &log);
        tool.config_schema = Some(schema.clone());
        Arc::new(tool)
    };
    let error = catalog
        .register_internal_with(tool(), json!({"path": 3}))
        .unwrap_err();
    assert!(matches!(&error, RegisterError::InvalidConfig { .. }));
    assert!(
        error.to_string().contains("'path' must be string"),
        "{error}"
    );
    let error = catalog.register_internal(tool()).unwrap_err();
    assert!(
        error.to_string().contains("missing field 'path'"),
        "{error}"
    );
    catalog
        .register_internal_with(tool(), json!({"path": "/x"}))
        .unwrap();
    catalog.start().await;
    assert_eq!(entries(&log), [r#"config {"path":"/x"}"#, "start index"]);
}

#[tokio::test]
async fn a_tool_without_config_schema_takes_no_configuration() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let tool = Arc::new(Hosted::new("index", &log));
    let error = catalog
        .register_internal_with(tool, json!({"path": 3}))
        .unwrap_err();
    assert!(
        error.to_string().contains("takes no configuration"),
        "{error}"
    );
    assert!(catalog.diagnostics().is_empty());
}

#[test]
fn debug_of_an_init_context_shows_no_configuration() {
    let config = json!({"api_key": "sk-secret"});
    let shown = format!(
        "{:?} {:#?}",
        InitContext {
            config: config.clone()
        },
        InitContext { config }
    );
    assert!(
        !shown.contains("secret") && !shown.contains("api_key"),
        "{shown}"
    );
    assert!(shown.contains("has_config: true"), "{shown}");
    let shown = format!("{:?}", InitContext::default());
    assert_eq!(shown, "InitContext { has_config: false }");
}
