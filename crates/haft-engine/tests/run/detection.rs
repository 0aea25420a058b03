//! Loops are noticed in every run: twice a warning, then the end.

use haft_engine::{End, EventKind, IncompleteReason, LoopAction, LoopDetection, Run};

use crate::script::{Script, calls, says};
use crate::tools::{echo, tool};
use crate::{results, texts};

fn same(n: usize) -> Vec<crate::script::Reply> {
    (0..n)
        .map(|_| calls([("", "echo", r#"{"text":"x"}"#)]))
        .collect()
}

/// R13
#[tokio::test]
async fn repeated_calls_are_warned_of_twice_and_then_end_the_run() {
    let outcome = Run::new(Script::new(same(6)))
        .tools([echo()])
        .user("go")
        .await
        .unwrap();
    let texts = texts(&outcome);
    assert_eq!(texts[2], "x");
    assert_eq!(
        texts[3],
        "[loop warning 1] 'echo' was called with identical arguments 4 times within the last 11 \
         calls. Change something or answer with what you have.\n\nx"
    );
    assert!(texts[4].starts_with("[loop warning 2]"));
    assert_eq!(texts[5], "Not executed: loop detected.");
    let End::Incomplete {
        reason, message, ..
    } = &outcome.end
    else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!(*reason, IncompleteReason::LoopDetected);
    assert_eq!(
        message,
        "Loop detected: 'echo' was called with identical arguments 6 times within the last 11 calls."
    );
}

#[tokio::test]
async fn when_a_loop_ends_the_run_no_call_of_the_batch_runs() {
    let ran = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&ran);
    let counting = tool("count", move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(haft_core::ToolOutput::text("1"))
    });
    let mut replies = same(5);
    replies.push(calls([
        ("z", "count", "{}"),
        ("", "echo", r#"{"text":"x"}"#),
    ]));
    let outcome = Run::new(Script::new(replies))
        .tools([echo(), counting])
        .user("go")
        .await
        .unwrap();
    assert_eq!(ran.load(std::sync::atomic::Ordering::SeqCst), 0);
    let results = results(&outcome);
    assert!(
        results
            .iter()
            .rev()
            .take(2)
            .all(|result| result.output == "Not executed: loop detected.")
    );
}

#[tokio::test]
async fn each_detection_is_an_event_and_a_callback_may_decide() {
    let mut replies = same(6);
    replies.push(says("done"));
    let mut run = Run::new(Script::new(replies))
        .tools([echo()])
        .on_loop(|_| LoopAction::Ignore)
        .user("go")
        .start()
        .unwrap();
    let mut seen = 0;
    while let Some(event) = run.next().await {
        if let EventKind::LoopDetected { count, action, .. } = event.kind {
            seen += 1;
            assert_eq!((count, action), (3 + seen, LoopAction::Ignore));
        }
    }
    assert_eq!(seen, 3);
    let outcome = run.finish().await;
    assert!(outcome.is_completed());
    assert_eq!(texts(&outcome), ["x"; 6]);
}

#[tokio::test]
async fn equal_results_are_noticed_where_that_is_switched_on() {
    let detection = LoopDetection {
        same_result: true,
        max_exact: 100,
        patterns: false,
        ..LoopDetection::default()
    };
    let outcome = Run::new(Script::new(same(5)))
        .tools([echo()])
        .loop_detection(detection)
        .user("go")
        .await
        .unwrap();
    let texts = texts(&outcome);
    assert_eq!(
        texts[2],
        "[loop warning 1] 'echo' gave the same result 3 times for identical arguments. Change \
         something or answer with what you have.\n\nx"
    );
    assert_eq!(
        outcome.end.summary().reason.as_deref(),
        Some("loop_detected")
    );
    // The third report ends the run before the next request; the call itself ran.
    assert_eq!(texts.len(), 5);
    assert_eq!(texts[4], "x");
}
