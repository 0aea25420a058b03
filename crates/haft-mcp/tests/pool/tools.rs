//! A server's tools as the loop sees and runs them.

use std::sync::Arc;

use haft_core::{Access, Cancel, ToolContext, ToolKind, ToolObject, ToolProgress};
use haft_mcp::{
    Answer, Approve, AskerSlot, CallLog, CallRecord, ConnectOptions, McpTool, Pool, Question,
    Questions, Server,
};
use serde_json::{Value, json};

use crate::kit::{LONG, Place, tools};

fn hinted(name: &str, hints: &Value) -> Value {
    json!({"name": name, "description": "Does it.", "inputSchema": {"type": "object"}, "annotations": hints})
}

async fn object(server: &Arc<Server>, name: &str) -> McpTool {
    let tools = tools(server).await;
    McpTool::new(Arc::clone(server), Arc::clone(tools.get(name).unwrap())).unwrap()
}

async fn run(tool: &McpTool, context: &ToolContext, arguments: Value) -> Result<String, String> {
    let call = tool.instantiate(&arguments).unwrap();
    let ran = tokio::time::timeout(LONG, call.run(context));
    let ran = ran.await.expect("the call hangs");
    ran.map(|output| output.text_for_model())
        .map_err(|error| error.message().to_owned())
}

#[tokio::test]
async fn a_stranger_is_not_believed_and_a_trusted_server_is() {
    for trusted in [false, true] {
        let place = Place::new();
        let pool = place.pool();
        let listed = json!([
            hinted(
                "read.all",
                &json!({"readOnlyHint": true, "openWorldHint": false})
            ),
            hinted("write", &json!({"destructiveHint": false})),
        ]);
        let mut settings = place.listing("files", &listed);
        settings.trusted = trusted;
        settings.approve = Approve::Writes;
        settings.on_repaired = Some(haft_core::OnRepaired::Deny);
        let server = pool.add(settings).unwrap();
        let read = object(&server, "read.all").await;
        let write = object(&server, "write").await;
        let read = read.definition();
        assert!(read.name().as_str().starts_with("files__read_all_"));
        assert_eq!(*read.kind(), ToolKind::Mcp);
        assert_eq!(read.annotations().origin.as_deref(), Some("read.all"));
        assert_eq!(read.annotations().read_only, trusted);
        assert_eq!(read.annotations().destructive, !trusted);
        assert_eq!(read.annotations().open_world, !trusted);
        assert_eq!(read.annotations().extra["x-on-repaired"], "deny");
        let asks = |definition: &haft_core::ToolDefinition| {
            definition
                .annotations()
                .extra
                .contains_key("x-needs-approval")
        };
        assert_eq!(asks(read), !trusted);
        assert!(asks(write.definition()));
        pool.close().await;
    }
}

/// Whoever watches.
#[derive(Debug, Default)]
struct Heard(std::sync::Mutex<Vec<ToolProgress>>);
impl haft_core::ProgressSink for Heard {
    fn report(&self, _: &str, progress: ToolProgress) {
        self.0.lock().unwrap().push(progress);
    }
}

#[tokio::test]
async fn a_call_shows_its_result_its_progress_and_its_failure() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("files", &["modern"])).unwrap();
    let heard = Arc::new(Heard::default());
    let context = ToolContext::builder()
        .state(CallLog::default())
        .build()
        .with_progress(Arc::<Heard>::clone(&heard))
        .for_call("x", "call_1", Access::Full);

    let echo = object(&server, "echo").await;
    let shown = run(&echo, &context, json!({"a": 1})).await;
    assert_eq!(shown.as_deref(), Ok(r#"{"a":1}"#));
    let log = context.state::<CallLog>().unwrap();
    assert!(matches!(log.take("call_1"), Some(CallRecord::Answered(_))));
    assert!(log.take("call_1").is_none());

    let progress = object(&server, "progress").await;
    run(&progress, &context, json!({"count": 2, "every_ms": 300}))
        .await
        .unwrap();
    assert!(!heard.0.lock().unwrap().is_empty());

    let raw = object(&server, "raw").await;
    let failed = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
    let call = raw.instantiate(&json!({"result": failed})).unwrap();
    let output = call.run(&context).await.unwrap();
    assert!(!output.is_success());
    assert_eq!(output.text_for_model(), "no such file");

    let die = object(&server, "die").await;
    let error = run(&die, &context, json!({})).await.unwrap_err();
    assert!(
        error.contains("`files`") && error.contains("may have happened"),
        "{error}"
    );
    // What the process wrote last is for the operator.
    assert!(!error.contains("out of cheese"), "{error}");
    assert!(matches!(log.take("call_1"), Some(CallRecord::Failed(_))));
    pool.close().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_server_is_told() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("files", &["modern"])).unwrap();
    let silent = object(&server, "silent").await;
    let cancel = Cancel::new();
    let context = ToolContext::builder().build().with_cancel(cancel.clone());
    let (ended, ()) = tokio::join!(run(&silent, &context, json!({})), async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        cancel.cancel();
    });
    assert!(ended.unwrap_err().contains("cancelled"));
    let cancelled = object(&server, "cancelled").await;
    let context = ToolContext::default();
    let told = async {
        while run(&cancelled, &context, json!({})).await.unwrap() == "[]" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let told = tokio::time::timeout(LONG, told).await;
    assert!(told.is_ok(), "the server was not told");
    pool.close().await;
}

#[tokio::test]
async fn a_run_answers_what_its_servers_ask() {
    let options = ConnectOptions {
        questions: Questions::PerCall,
        ..ConnectOptions::default()
    };
    for era in ["modern", "legacy"] {
        let place = Place::new();
        let pool = Pool::builder().connect(options.clone()).build();
        let server = pool.add(place.fake("it", &[era])).unwrap();
        let tool = object(&server, "ask").await;
        // While a person thinks, the loop waits as long as the server's side does.
        let settings = server.settings();
        let longest = settings.timeouts.call + settings.timeouts.asking;
        let waits = tool.definition().annotations().timeout_ms.unwrap();
        assert!(u128::from(waits) > longest.as_millis());
        let person = |question: Question| {
            assert_eq!(question.message, "Who?");
            Answer::Accept(serde_json::from_value(json!({"name": "Ann"})).unwrap())
        };
        let asked = ToolContext::builder()
            .state(AskerSlot(Arc::new(person)))
            .build();
        let answer = run(&tool, &asked, json!({})).await.unwrap();
        assert!(answer.contains(r#""name":"Ann""#), "{era}: {answer}");
        let nobody = ToolContext::builder().build();
        let answer = run(&tool, &nobody, json!({})).await;
        let text = answer.unwrap_or_else(|error| error);
        assert!(text.contains("It asks: Who?"), "{era}: {text}");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_long_result_is_cut_unless_the_run_keeps_it_as_a_whole() {
    let place = Place::new();
    let pool = place.pool();
    let server = pool.add(place.fake("files", &["modern"])).unwrap();
    let huge = object(&server, "huge").await;
    let context = ToolContext::default();
    let arguments = json!({"bytes": 10_000_000});
    let cut = run(&huge, &context, arguments.clone()).await.unwrap();
    assert!(cut.len() < 110_000, "{}", cut.len());
    let keeping = context.with_long_results(true);
    let whole = run(&huge, &keeping, arguments).await.unwrap();
    assert_eq!(whole.len(), 10_000_000);
    pool.close().await;
}
