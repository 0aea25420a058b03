//! A configuration that starts haft again never multiplies.

use std::time::Duration;

use serde_json::json;

use crate::kit::{LineClient, all_gone, configure, fake, folder, mcp, with_argument};

/// How long processes that should not exist have to appear.
const GROWTH: Duration = Duration::from_secs(3);

/// How long everything may take to be gone.
const GONE: Duration = Duration::from_secs(8);

#[test]
fn entries_of_a_client_that_start_haft_are_skipped() {
    let folder = folder("");
    let haft = env!("CARGO_BIN_EXE_haft");
    let path = folder.path().join("haft.toml");
    let own = json!(["mcp", "serve", "--config", path]);
    let entries = json!({"mcpServers": {
        "gateway": {"command": haft, "args": own},
        "by-npx": {"command": "npx", "args": ["-y", "haft@latest", "mcp", "serve"]},
    }});
    std::fs::write(folder.path().join("client.json"), entries.to_string()).unwrap();
    let config = format!(
        "[server]\nmcp_servers = \"client.json\"\n{}",
        fake("files", "", "")
    );
    configure(folder.path(), &config);
    let (code, out, log) = mcp(folder.path(), &["list"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(
        out.contains("files") && !out.contains("gateway") && !out.contains("npx"),
        "{out}"
    );
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    assert!(client.names().iter().any(|name| name.contains("echo")));
    std::thread::sleep(GROWTH);
    let path = path.display().to_string();
    assert_eq!(with_argument(&path).len(), 0, "{:?}", with_argument(&path));
    client.leave();
}

#[test]
fn haft_that_starts_itself_by_another_route_stops_at_the_second_level() {
    let folder = folder("");
    let haft = env!("CARGO_BIN_EXE_haft");
    let path = folder.path().join("haft.toml");
    let path = path.display().to_string();
    let again = |label: &str| {
        format!(
            "[mcp.{label}]\ncommand = \"sh\"\nargs = [\"-c\", \"exec {haft} mcp serve --config {path}\", \"{path}\"]\n"
        )
    };
    configure(folder.path(), &format!("{}{}", again("one"), again("two")));
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    let _ = client.names();
    std::thread::sleep(GROWTH);
    // Two below the first and two below each of them, each with its supervisor.
    let count = with_argument(&path).len();
    assert!((2..=12).contains(&count), "{:?}", with_argument(&path));
    client.leave();
    assert!(all_gone(&path, GONE), "{:?}", with_argument(&path));
}
