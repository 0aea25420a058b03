//! Who runs a call: the tool itself, else the first executor that can, else the caller.

use haft_core::{BoxFuture, ToolContext, ToolDefinition, ToolError, ToolKind};
use haft_engine::{End, ExecutorCall, Run, ToolExecutor, ToolResult};

use crate::script::{Script, calls, says};
use crate::tools::{echo, function};
use crate::{results, texts};

struct Prefixed(&'static str);

impl ToolExecutor for Prefixed {
    fn kind(&self) -> ToolKind {
        ToolKind::Function
    }

    fn can_execute(&self, definition: &ToolDefinition) -> bool {
        definition.name().as_str().starts_with(self.0)
    }

    fn execute<'a>(
        &'a self,
        call: ExecutorCall,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            ToolResult {
                output: format!("{} ran {} as {}", self.0, call.name, context.call_id()),
                call_id: call.call_id,
                is_error: call.arguments["text"] == "fail",
            }
        })
    }
}

fn script(name: &'static str, arguments: &'static str) -> Script {
    Script::new([calls([("a", name, arguments)]), says("done")])
}

/// R32
#[tokio::test]
async fn the_bindings_own_tool_goes_first() {
    let outcome = Run::new(script("echo", r#"{"text":"own"}"#))
        .tools([echo()])
        .with_executor("echo", |_, _| async { Ok("executor") })
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["own"]);
}

/// R32
#[tokio::test]
async fn then_the_executors_in_their_order() {
    let outcome = Run::new(script("db_read", "{}"))
        .tools([function("db_read")])
        .executor(Prefixed("web_"))
        .executor(Prefixed("db_"))
        .with_executor("db_read", |_, _| async { Ok("too late") })
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["db_ ran db_read as a"]);
}

/// R32
#[tokio::test]
async fn then_the_caller() {
    let outcome = Run::new(script("ask", "{}"))
        .tools([function("ask")])
        .executor(Prefixed("db_"))
        .user("go")
        .await
        .unwrap();
    assert!(matches!(outcome.end, End::Waiting(_)));
}

#[tokio::test]
async fn a_name_that_nobody_declared_is_unknown_whatever_the_executors_say() {
    let outcome = Run::new(script("db_secret", "{}"))
        .tools([function("ask")])
        .executor(Prefixed("db_"))
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        texts(&outcome),
        ["Unknown tool 'db_secret'. Available tools: ask."]
    );
}

#[tokio::test]
async fn executors_get_only_validated_arguments() {
    let outcome = Run::new(script("db_read", r#"{"text":5}"#))
        .tools([function("db_read")])
        .executor(Prefixed("db_"))
        .user("go")
        .await
        .unwrap();
    assert!(texts(&outcome)[0].contains("invalid arguments"));
}

#[tokio::test]
async fn their_failures_read_like_those_of_tools() {
    let outcome = Run::new(script("ask", "{}"))
        .tools([function("ask")])
        .with_executor("ask", |_, _| async {
            Err::<(), _>(ToolError::new("kaput"))
        })
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["Tool 'ask' failed: kaput"]);
    assert!(results(&outcome)[0].is_error);

    let outcome = Run::new(script("db_read", r#"{"text":"fail"}"#))
        .tools([function("db_read")])
        .executor(Prefixed("db_"))
        .user("go")
        .await
        .unwrap();
    assert!(results(&outcome)[0].is_error);
}
