use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_core::{Cancel, ProgressSink, ToolContext, ToolProgress};
use serde_json::json;

use super::{Place, call, call_in};

/// Waits, at most a few seconds, until the process has gone.
async fn gone(pid: &str) -> bool {
    let stat = format!("/proc/{}/stat", pid.trim());
    for _ in 0..500 {
        match std::fs::read_to_string(&stat) {
            // A zombie has ended; somebody still has to notice.
            Ok(stat) if !stat.contains(") Z ") => {}
            _ => return true,
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Starts two processes, writes down who they are, and waits for ever.
const FOR_EVER: &str = "sleep 1000 & echo $! > child; echo $$ > shell; echo started; wait";

async fn written(place: &Place, file: &str) -> String {
    loop {
        match place.get(file) {
            Some(pid) if pid.ends_with('\n') => return pid,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

#[tokio::test]
async fn output_and_errors_come_together_in_their_order() {
    let place = Place::new();
    let command = "echo one; echo two >&2; echo three; pwd";
    let said = call(&place.workspace(), "bash", json!({"command": command})).await;
    let root = place.root().canonicalize().unwrap();
    assert_eq!(
        said.unwrap(),
        format!("one\ntwo\nthree\n{}\n", root.display())
    );
}

#[tokio::test]
async fn a_command_that_fails_is_an_error_that_ends_with_its_code() {
    let place = Place::new();
    let workspace = place.workspace();
    for (command, end) in [
        ("echo bad; exit 2", "bad\n[exit code 2]"),
        ("printf bad; exit 2", "bad\n[exit code 2]"),
        ("exit 7", "[exit code 7]"),
        ("kill -9 $$", "[ended by signal 9]"),
    ] {
        let said = call(&workspace, "bash", json!({"command": command})).await;
        assert_eq!(said, Err(end.to_owned()));
    }
}

#[tokio::test]
async fn the_environment_is_let_in_by_name_only() {
    let place = Place::new();
    // Set for every test by cargo, and not on the list.
    let name = "CARGO_MANIFEST_DIR";
    let value = std::env::var(name).unwrap();
    let command = json!({"command": format!("echo ${name}; test -n \"$PATH\"")});
    let said = call(&place.workspace(), "bash", command.clone()).await;
    assert_eq!(said.unwrap(), "\n");
    let said = call(&place.workspace().allow_env(name), "bash", command).await;
    assert_eq!(said.unwrap(), format!("{value}\n"));
}

#[tokio::test]
async fn a_timeout_ends_the_whole_group_and_keeps_what_was_written() {
    let place = Place::new();
    let arguments = json!({"command": FOR_EVER, "timeout_ms": 3000});
    let said = call(&place.workspace(), "bash", arguments).await;
    assert_eq!(said, Err("started\n[timed out after 3s]".to_owned()));
    for file in ["shell", "child"] {
        assert!(gone(&place.get(file).unwrap()).await, "{file}");
    }
}

#[tokio::test]
async fn cancelling_ends_the_whole_group() {
    let place = Place::new();
    let workspace = place.workspace();
    let cancel = Cancel::new();
    let context = ToolContext::default().with_cancel(cancel.clone());
    let running = call_in(&workspace, &context, "bash", json!({"command": FOR_EVER}));
    let cancelling = async {
        written(&place, "shell").await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(running, cancelling);
    assert!(output.unwrap().text_for_model().ends_with("[cancelled]"));
    for file in ["shell", "child"] {
        assert!(gone(&place.get(file).unwrap()).await, "{file}");
    }
}

#[tokio::test]
async fn dropping_the_call_ends_the_whole_group() {
    let place = Place::new();
    let workspace = place.workspace();
    tokio::select! {
        _ = call(&workspace, "bash", json!({"command": FOR_EVER})) => panic!("it ended"),
        _ = written(&place, "shell") => {}
    }
    for file in ["shell", "child"] {
        assert!(gone(&place.get(file).unwrap()).await, "{file}");
    }
}

#[tokio::test]
async fn a_background_process_neither_holds_the_call_nor_outlives_it() {
    let place = Place::new();
    let command = "sleep 1000 & echo $! > child; echo done";
    let said = call(&place.workspace(), "bash", json!({"command": command})).await;
    assert_eq!(said.unwrap(), "done\n");
    assert!(gone(&place.get("child").unwrap()).await);
}

#[derive(Default)]
struct Watching(Mutex<String>);

impl ProgressSink for Watching {
    fn report(&self, _: &str, progress: ToolProgress) {
        *self.0.lock().unwrap() += &progress.chunk.unwrap_or_default();
    }
}

#[tokio::test]
async fn output_is_shown_as_it_comes_with_characters_whole() {
    let place = Place::new();
    let watching = Arc::new(Watching::default());
    let context = ToolContext::default().with_progress(watching.clone());
    // The two halves of `é` in two writes.
    let command = r"printf 'caf\303'; sleep 0.05; printf '\251 au lait\n'";
    let workspace = place.workspace();
    let output = call_in(&workspace, &context, "bash", json!({"command": command})).await;
    assert_eq!(output.unwrap().text_for_model(), "café au lait\n");
    assert_eq!(*watching.0.lock().unwrap(), "café au lait\n");
}

#[tokio::test]
async fn output_without_end_is_bounded() {
    let place = Place::new();
    let command = "head -c 3000000 /dev/zero | tr '\\0' x; exit 3";
    let said = call(&place.workspace(), "bash", json!({"command": command})).await;
    let said = said.unwrap_err();
    assert!(said.len() < 1024 * 1024, "{}", said.len());
    assert!(said.ends_with("x\n[output cut off: 3000000 bytes in total]\n[exit code 3]"));
    let endless = json!({"command": "yes", "timeout_ms": 300});
    let said = call(&place.workspace(), "bash", endless).await.unwrap_err();
    assert!(said.ends_with("[timed out after 300ms]"));
}
