//! T16 and the life of internal tools (`tool-definition.md` §9.3).

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_catalog::{Catalog, Diagnostic, RegisterError};
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
    /// Holds its thread this long.
    Blocks(Duration),
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
            Manner::Blocks(time) => {
                std::thread::sleep(time);
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

/// Polls `start` so that its tasks exist, and never again.
async fn stalled(start: &mut (impl Future<Output = Vec<Diagnostic>> + Unpin)) {
    let polled = std::future::poll_fn(|context| {
        std::task::Poll::Ready(Pin::new(&mut *start).poll(context).is_pending())
    });
    assert!(polled.await, "there is something to wait for");
    tokio::task::yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_a_running_start_and_shuts_down_what_it_brought_up() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let slow = Manner::Takes(Duration::from_secs(9));
    register(&catalog, Hosted::new("slow", &log).initialize(slow));
    let starting = tokio::spawn({
        let catalog = catalog.clone();
        async move { catalog.start().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(entries(&log), ["start slow"]);
    let began = Instant::now();
    assert!(catalog.shutdown().await.is_empty());
    assert_eq!(began.elapsed(), Duration::from_secs(8));
    assert_eq!(entries(&log), ["start slow", "stop slow"]);
    assert!(catalog.is_empty());
    assert!(starting.await.unwrap().is_empty());
    assert!(catalog.is_empty());
}

#[tokio::test(start_paused = true)]
async fn shutdown_also_waits_for_the_start_of_a_tool_that_was_removed() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let slow = Manner::Takes(Duration::from_secs(9));
    register(&catalog, Hosted::new("slow", &log).initialize(slow));
    let mut start = Box::pin(catalog.start());
    stalled(&mut start).await;
    catalog.remove("slow");
    catalog.shutdown().await;
    assert_eq!(entries(&log), ["start slow", "stop slow"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_although_nobody_polls_a_start_that_hangs() {
    let (catalog, log) = (Catalog::new(), Log::default());
    register(&catalog, Hosted::new("good", &log));
    let hangs = Hosted::new("hangs", &log).initialize(Manner::Hangs);
    register(&catalog, hangs);
    let mut start = Box::pin(catalog.start());
    stalled(&mut start).await;
    let began = Instant::now();
    let failed = tokio::time::timeout(Duration::from_hours(1), catalog.shutdown())
        .await
        .expect("shutdown ends");
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    assert_eq!(failed.len(), 1);
    assert!(failed[0].message.contains("did not start within 30s"));
    assert_eq!(entries(&log), ["start good", "start hangs", "stop good"]);
    assert_eq!(start.await, failed, "the start says the same");
    assert!(catalog.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_start_ends_although_nobody_polls_another_that_hangs() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let hangs = Hosted::new("hangs", &log).initialize(Manner::Hangs);
    register(&catalog, hangs);
    let mut start = Box::pin(catalog.start());
    stalled(&mut start).await;
    let second = tokio::time::timeout(Duration::from_hours(1), catalog.start()).await;
    assert!(second.is_ok());
    assert_eq!(entries(&log), ["start hangs"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_still_starting_when_shutdown_gave_it_up_is_never_offered() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let slow = Manner::Takes(Duration::from_secs(31));
    register(&catalog, Hosted::new("slow", &log).initialize(slow));
    let mut start = Box::pin(catalog.start());
    stalled(&mut start).await;
    catalog.shutdown().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    start.await;
    catalog.start().await;
    assert!(catalog.is_empty());
    assert_eq!(entries(&log), ["start slow"], "it never came up");
}

#[tokio::test(start_paused = true)]
async fn a_limit_beyond_the_clock_is_none() {
    for limit in [Duration::MAX, Duration::from_secs(u64::MAX / 4)] {
        let log = Log::default();
        let catalog = Catalog::builder()
            .initialize_timeout(limit)
            .shutdown_timeout(limit)
            .build();
        let slow = Manner::Takes(Duration::from_hours(1));
        register(&catalog, Hosted::new("slow", &log).initialize(slow));
        assert!(catalog.start().await.is_empty());
        assert_eq!(catalog.len(), 1);
        assert!(catalog.shutdown().await.is_empty());
        assert_eq!(entries(&log), ["start slow", "stop slow"]);
    }
}

const BLOCKED: Duration = Duration::from_millis(400);

/// Real time: a thread that blocks knows no paused clock.
async fn logged(log: &Log, count: usize) {
    for _ in 0..500 {
        if entries(log).len() >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", entries(log));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_blocking_initialize_that_ends_after_its_limit_is_shut_down_and_never_offered() {
    let log = Log::default();
    let catalog = Catalog::builder()
        .initialize_timeout(Duration::from_millis(50))
        .build();
    let blocks = Hosted::new("late", &log).initialize(Manner::Blocks(BLOCKED));
    register(&catalog, blocks);
    let failed = catalog.start().await;
    assert_eq!(failed.len(), 1);
    assert_eq!(entries(&log), ["start late"], "start ended in time");
    logged(&log, 2).await;
    assert_eq!(entries(&log), ["start late", "stop late"]);
    assert!(catalog.is_empty());
    catalog.shutdown().await;
    assert_eq!(entries(&log), ["start late", "stop late"], "once");
}

#[tokio::test]
async fn on_one_thread_a_blocking_initialize_past_its_limit_is_out_and_shut_down_too() {
    let log = Log::default();
    let catalog = Catalog::builder()
        .initialize_timeout(Duration::from_millis(20))
        .build();
    let blocks = Manner::Blocks(Duration::from_millis(100));
    register(&catalog, Hosted::new("late", &log).initialize(blocks));
    let failed = catalog.start().await;
    assert_eq!(failed.len(), 1);
    assert!(failed[0].message.contains("did not start within 20ms"));
    assert!(catalog.is_empty());
    catalog.shutdown().await;
    assert_eq!(entries(&log), ["start late", "stop late"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_second_start_waits_for_what_a_dropped_one_left_and_each_success_is_shut_down() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let blocks = Hosted::new("a", &log).initialize(Manner::Blocks(BLOCKED));
    register(&catalog, blocks);
    let dropped = tokio::time::timeout(Duration::from_millis(100), catalog.start()).await;
    assert!(dropped.is_err());
    assert!(catalog.start().await.is_empty());
    assert_eq!(names(&catalog.snapshot()), ["a"]);
    assert_eq!(entries(&log), ["start a", "stop a", "start a"]);
    catalog.shutdown().await;
    assert_eq!(entries(&log), ["start a", "stop a", "start a", "stop a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn shutdown_waits_for_what_a_dropped_start_left_and_shuts_it_down() {
    let (catalog, log) = (Catalog::new(), Log::default());
    let blocks = Hosted::new("a", &log).initialize(Manner::Blocks(BLOCKED));
    register(&catalog, blocks);
    let dropped = tokio::time::timeout(Duration::from_millis(100), catalog.start()).await;
    assert!(dropped.is_err());
    catalog.shutdown().await;
    assert_eq!(entries(&log), ["start a", "stop a"]);
    assert!(catalog.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_tool_whose_dropped_start_never_ends_is_left_out_in_time() {
    let log = Log::default();
    let catalog = Catalog::builder()
        .initialize_timeout(Duration::from_millis(150))
        .build();
    let blocks = Manner::Blocks(Duration::from_secs(1));
    register(&catalog, Hosted::new("a", &log).initialize(blocks));
    let dropped = tokio::time::timeout(Duration::from_millis(50), catalog.start()).await;
    assert!(dropped.is_err());
    let failed = catalog.start().await;
    assert_eq!(failed.len(), 1);
    assert!(failed[0].message.contains("has not ended"), "{failed:?}");
    assert_eq!(entries(&log), ["start a"]);
    logged(&log, 2).await;
    assert_eq!(entries(&log), ["start a", "stop a"]);
    assert!(catalog.is_empty());
}
