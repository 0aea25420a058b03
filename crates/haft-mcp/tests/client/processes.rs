//! Children: what they get, and that nothing of them is left.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::{Duration, Instant};

use haft_mcp::{Label, ServerSettings, TransportSettings};
use serde_json::{Value, json};

use crate::kit::{LONG, call, call_text, connected, fake, open};

fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    // A zombie whose parent has not looked yet is gone.
    status.is_ok_and(|status| {
        !status
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('Z')
    })
}

async fn is_gone(pid: &str) -> bool {
    let begin = Instant::now();
    while lives(pid) {
        if begin.elapsed() > Duration::from_secs(6) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

#[tokio::test]
async fn grandchildren_go_with_the_connection() {
    for era in ["legacy", "modern"] {
        let connection = connected(&[era]).await;
        let pid = call_text(&connection, "spawn", json!({})).await;
        assert!(lives(&pid), "`{pid}`");
        connection.close().await;
        assert!(is_gone(&pid).await, "after close");

        let connection = connected(&[era]).await;
        let pid = call_text(&connection, "spawn", json!({})).await;
        drop(connection);
        assert!(is_gone(&pid).await, "after drop");
    }
}

#[tokio::test]
async fn grandchildren_go_when_the_server_dies_first() {
    let connection = connected(&["legacy"]).await;
    let pid = call_text(&connection, "spawn", json!({})).await;
    call(&connection, "die", json!({})).await.unwrap_err();
    assert!(lives(&pid));
    connection.close().await;
    assert!(is_gone(&pid).await);
}

/// The numbers of the processes with this word among their arguments.
fn with_argument(word: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pids = pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let told = |pid: &String| {
        let line = std::fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|argument| argument == word.as_bytes())
            && lives(pid)
    };
    pids.filter(told).collect()
}

#[tokio::test]
async fn a_server_that_does_not_want_to_go_is_made_to() {
    // One that does not mind its input ending, and one that does not mind being asked either.
    for (mark, script) in [
        ("mark-deaf", "exec \"$0\" \"$@\""),
        ("mark-stubborn", "trap '' TERM; exec \"$0\" \"$@\""),
    ] {
        let mark = format!("{mark}-{}", std::process::id());
        let mut settings = ServerSettings::stdio(Label::new("fake").unwrap(), "sh").args([
            "-c",
            script,
            env!("CARGO_BIN_EXE_haft-mcp-fake"),
            "legacy",
            "deaf",
            &mark,
        ]);
        settings.timeouts.stop = Duration::from_millis(300);
        let connection = open(settings).await.unwrap();
        assert_eq!(with_argument(&mark).len(), 1, "{mark}");
        tokio::time::timeout(Duration::from_secs(5), connection.close())
            .await
            .expect("closing hangs");
        assert_eq!(with_argument(&mark), [""; 0], "{mark}");
    }
}

#[tokio::test]
async fn an_opening_that_is_dropped_leaves_nothing() {
    let mark = format!("mark-opening-{}", std::process::id());
    let settings = fake(&["silent", "silent-on-discover", &mark]);
    let opening = tokio::time::timeout(Duration::from_millis(500), open(settings)).await;
    assert!(opening.is_err());
    for pid in with_argument(&mark) {
        assert!(is_gone(&pid).await);
    }
}

#[tokio::test]
async fn a_child_gets_the_listed_variables_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = fake(&["legacy"]);
    let TransportSettings::Stdio(stdio) = &mut settings.transport else {
        panic!()
    };
    stdio.env.insert("OWN".into(), "value".into());
    stdio.cwd = Some(directory.path().to_owned());
    let connection = open(settings).await.unwrap();
    let seen: Value =
        serde_json::from_str(&call_text(&connection, "environment", json!({})).await).unwrap();
    assert_eq!(seen["env"]["OWN"], "value");
    assert_eq!(seen["env"]["HAFT_MCP_DEPTH"], "1");
    assert_eq!(seen["env"]["PATH"], std::env::var("PATH").unwrap());
    assert_eq!(
        Path::new(seen["cwd"].as_str().unwrap()),
        directory.path().canonicalize().unwrap()
    );
    let allowed = [
        "OWN",
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "TEMP",
        "TMP",
        "HAFT_MCP_DEPTH",
    ];
    for name in seen["env"].as_object().unwrap().keys() {
        assert!(allowed.contains(&name.as_str()), "`{name}` leaked");
    }
    // The test itself has variables that must not go along.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_told_as_such() {
    let mut settings = fake(&["legacy"]);
    let TransportSettings::Stdio(stdio) = &mut settings.transport else {
        panic!()
    };
    stdio.cwd = Some("/no/such/directory".into());
    let error = open(settings).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("its directory `/no/such/directory` does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn a_flood_on_standard_error_blocks_nobody() {
    let connection = connected(&["legacy"]).await;
    assert_eq!(
        call_text(&connection, "stderr", json!({"bytes": 5 << 20})).await,
        "complained"
    );
    let closed = tokio::time::timeout(LONG, connection.close()).await;
    assert!(closed.is_ok());
}
