//! A program's tools in somebody else's catalogue.

use std::sync::Arc;
use std::time::Duration;

use haft_catalog::Catalog;
use haft_core::{ToolContext, ToolError, ToolObject};
use haft_engine::Run;
use haft_models::ScriptedModel;
use haft_models::testing::{call, say};
use serde_json::{Value, json};

use crate::kit::{Printed, Stage, manifest, provider, stage};

const COUNTER: &str = r#"
    const START: Int = 40;
    struct Point { x: Int }
    model M { provider: desk, base: "small" }
    tool Counter {
        count: Int = START,
        @describe("Counts") pub fn next(mut self) -> Int { self.count += 1; self.count }
        @describe("Takes") pub fn take(@param("n") n: Int, @param("o") o: Option<Int>) -> String { "${n} ${o}" }
        @describe("Gives") pub fn point() -> Point { Point { x: 1 } }
        @describe("Fails") pub fn odd(@param("n") n: Int) -> Result<Int, String> { throw "odd ${n}"; }
        @describe("Fails") pub fn fault() -> Int { [1][5] }
        @describe("Fails") pub fn stop() -> Int { panic("enough") }
        @describe("Never ends") pub fn spin() -> Int { loop { } }
        @describe("Never ends") pub fn chat() -> Int { loop { emit("x", 1); } }
        @describe("Never ends") pub fn deep(@param("n") n: Int) -> Int { Counter::deep(n) + 1 }
        @describe("Waits") pub fn wait(@param("ms") ms: Int) -> Int { std::time::sleep(ms); ms }
        @describe("Asks") pub fn ask(@param("q") q: String) -> Result<String, String> { Ok(M.execute(q)?.text) }
        fn hidden() -> Int { 1 }
    }
    fn main() { panic("nobody runs the program"); }
"#;

struct Served {
    tools: Vec<Arc<dyn ToolObject>>,
    _stage: Stage,
}

impl Served {
    async fn new(address: &str, limit: Duration) -> Self {
        let stage = stage(&manifest(address, ""), COUNTER, |setup| {
            setup.call_limit = limit;
        });
        let tools = stage
            .host
            .tools(Box::new(Printed::default()))
            .await
            .unwrap();
        Self {
            tools,
            _stage: stage,
        }
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        let tool = self
            .tools
            .iter()
            .find(|it| it.definition().name().as_str() == name);
        let call = tool.unwrap().instantiate(&arguments).unwrap();
        let output = call.run(&ToolContext::default()).await?;
        Ok(output.text_for_model())
    }
}

#[tokio::test]
async fn tools_are_there_by_their_wire_names_and_share_their_state() {
    let served = Served::new("http://127.0.0.1:9", Duration::from_secs(5)).await;
    let names: Vec<_> = served
        .tools
        .iter()
        .map(|it| it.definition().name().to_string())
        .collect();
    assert_eq!(names[0], "Counter__next");
    assert_eq!(names.len(), 11);
    assert_eq!(served.call("Counter__next", json!({})).await.unwrap(), "41");
    assert_eq!(served.call("Counter__next", json!({})).await.unwrap(), "42");
    assert_eq!(
        served.call("Counter__point", json!({})).await.unwrap(),
        r#"{"x":1}"#
    );
    assert_eq!(
        served
            .call("Counter__take", json!({"n": 1, "o": null}))
            .await
            .unwrap(),
        "1 None"
    );
}

#[tokio::test]
async fn what_goes_wrong_in_a_call_is_that_calls_error() {
    let served = Served::new("http://127.0.0.1:9", Duration::from_millis(300)).await;
    for (name, arguments, said) in [
        ("Counter__odd", json!({"n": 3}), "odd 3"),
        (
            "Counter__fault",
            json!({}),
            "index error: index 5 out of bounds (length 1)",
        ),
        ("Counter__stop", json!({}), "panic: enough"),
        ("Counter__spin", json!({}), "max time exceeded (0.3s)"),
        ("Counter__chat", json!({}), "max time exceeded (0.3s)"),
        (
            "Counter__deep",
            json!({"n": 1}),
            "max call depth exceeded (10000)",
        ),
    ] {
        let error = served.call(name, arguments).await.unwrap_err();
        assert_eq!(error.message(), said);
        assert!(
            served.call("Counter__next", json!({})).await.is_ok(),
            "after {name}"
        );
    }
}

#[tokio::test]
async fn steps_are_counted_for_each_call() {
    let text = manifest("http://127.0.0.1:9", "");
    let stage = stage(&text, COUNTER, |setup| setup.limits.steps = Some(2_000_000));
    let tools = stage
        .host
        .tools(Box::new(Printed::default()))
        .await
        .unwrap();
    let served = Served {
        tools,
        _stage: stage,
    };
    for _ in 0..2 {
        let error = served.call("Counter__spin", json!({})).await.unwrap_err();
        assert_eq!(error.message(), "max steps exceeded (2000000)");
    }
    assert_eq!(served.call("Counter__next", json!({})).await.unwrap(), "41");
}

#[tokio::test]
async fn a_call_that_never_ends_does_not_hold_up_others() {
    let served = Arc::new(Served::new("http://127.0.0.1:9", Duration::from_secs(20)).await);
    let spinning = {
        let served = Arc::clone(&served);
        tokio::spawn(async move { served.call("Counter__spin", json!({})).await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..5 {
        let others = served.call("Counter__next", json!({}));
        let others = tokio::time::timeout(Duration::from_secs(5), others).await;
        assert!(others.expect("it comes to its turn").is_ok());
    }
    assert!(!spinning.is_finished());
    // Nobody waits for it any more: its thread ends, or the runtime would never shut down.
    spinning.abort();
    let waiting = served.call("Counter__wait", json!({"ms": 30}));
    let (waited, next) = tokio::join!(waiting, served.call("Counter__next", json!({})));
    assert_eq!((waited.unwrap(), next.is_ok()), ("30".to_owned(), true));
}

const HEAVY: &str = r#"
    tool Heavy {
        count: Int = 0,
        @describe("Counts") pub fn next(mut self) -> Int { self.count += 1; self.count }
        @describe("Never ends") pub fn compare(mut self) -> Bool {
            let mut a: Any = [1]; let mut b: Any = [1];
            for _i in 0..60 { a = [a, a]; b = [b, b]; }
            self.count += 100;
            a == b
        }
        @describe("Never ends") pub fn shout() -> Int {
            let t = "ab".repeat(1000000);
            loop { t.to_uppercase().split("B").join("b"); }
        }
    }
    fn main() {}
"#;

#[tokio::test]
async fn steps_that_take_long_hold_up_nobody_and_end_with_their_call() {
    let text = manifest("http://127.0.0.1:9", "");
    let stage = stage(&text, HEAVY, |setup| {
        setup.call_limit = Duration::from_millis(400);
    });
    let tools = stage.host.tools(Box::new(Printed::default())).await;
    let served = Arc::new(Served {
        tools: tools.unwrap(),
        _stage: stage,
    });
    for (name, count) in [("Heavy__compare", 101), ("Heavy__shout", 102)] {
        let heavy = {
            let served = Arc::clone(&served);
            tokio::spawn(async move { served.call(name, json!({})).await })
        };
        tokio::time::sleep(Duration::from_millis(50)).await;
        let next = served.call("Heavy__next", json!({}));
        let next = tokio::time::timeout(Duration::from_secs(4), next).await;
        let next = next.expect("it comes to its turn").unwrap();
        // What the call did before it ended is not lost.
        assert_eq!(next, count.to_string(), "{name}");
        let error = heavy.await.unwrap().unwrap_err();
        assert_eq!(error.message(), "max time exceeded (0.4s)", "{name}");
    }
}

#[tokio::test]
async fn a_served_tool_may_ask_models() {
    let answering = provider([say("42")]).await;
    let served = Served::new(&answering.base_url(), Duration::from_secs(5)).await;
    assert_eq!(
        served
            .call("Counter__ask", json!({"q": "why"}))
            .await
            .unwrap(),
        "42"
    );
    let error = served
        .call("Counter__ask", json!({"q": "why"}))
        .await
        .unwrap_err();
    assert!(
        error
            .message()
            .starts_with("model 'M' failed after 1 attempts"),
        "{error}"
    );
}

#[tokio::test]
async fn a_catalogue_takes_them_and_a_run_validates_their_arguments() {
    let served = Served::new("http://127.0.0.1:9", Duration::from_secs(5)).await;
    let catalog = Catalog::new();
    for tool in &served.tools {
        catalog.register(Arc::clone(tool)).unwrap();
    }
    let model = ScriptedModel::new([
        call("Counter__take", json!({"n": "x"})),
        call("Counter__take", json!({"n": 7, "o": null})),
        call("Counter__odd", json!({"n": 7})),
        say("done"),
    ]);
    let binding = catalog.snapshot().bind().build().unwrap();
    let outcome = Run::new(model).binding(binding).user("go").await.unwrap();
    let results: Vec<_> = outcome
        .tool_calls
        .iter()
        .map(|it| it.output().to_owned())
        .collect();
    assert!(results[0].contains("invalid arguments"), "{results:?}");
    assert_eq!(
        results[1..],
        ["7 None", "Tool 'Counter__odd' failed: odd 7"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_hold_memory_together() {
    let program = r#"
        tool Holder {
            @describe("Holds") pub fn hold(@param("n") n: Int) -> Int {
                let s = "x".repeat(n);
                let mut i = 0;
                while i < 100 { i += 1; }
                std::time::sleep(1500);
                s.len()
            }
        }
        fn main() {}
    "#;
    let stage = stage(&manifest("http://127.0.0.1:9", ""), program, |setup| {
        setup.limits.memory = 32;
    });
    let tools = stage.host.tools(Box::new(Printed::default())).await;
    let tools = tools.unwrap();
    let served = Arc::new(Served {
        tools,
        _stage: stage,
    });
    let calls = (0..12).map(|_| {
        let served = Arc::clone(&served);
        tokio::spawn(async move { served.call("Holder__hold", json!({"n": 18_000_000})).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut held = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => held += 1,
            Err(error) => assert!(error.to_string().contains("max memory exceeded"), "{error}"),
        }
    }
    assert!((1..=2).contains(&held), "{held} calls of 18 MB fit into 32");
    // What they held is free again.
    let again = served.call("Holder__hold", json!({"n": 18_000_000})).await;
    assert!(again.is_ok(), "{again:?}");
}
