//! Long lists through `haft mcp serve` while servers come and go.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{LineClient, configure, fake};

const SERVERS: usize = 10;

/// Writes a list of so many tools for a server to announce. The file is replaced as a whole.
fn write_tools(folder: &Path, server: usize, count: usize) {
    let tool = |n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}});
    let tools: Vec<Value> = (0..count).map(tool).collect();
    let new = folder.join(format!("new{server}"));
    std::fs::write(&new, json!(tools).to_string()).unwrap();
    std::fs::rename(new, folder.join(format!("tools{server}"))).unwrap();
}

/// All names, page by page, and how many pages there were.
fn list_all(client: &mut LineClient) -> (Vec<String>, usize) {
    let (mut names, mut pages, mut params) = (Vec::new(), 0, json!({}));
    loop {
        let answer = client.ask("tools/list", params);
        let result = &answer["result"];
        let tools = result["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("page {pages}: {answer}"));
        names.extend(
            tools
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (names, pages),
        }
    }
}

#[test]
fn two_thousand_tools_are_listed_without_an_error_while_servers_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_owned();
    let mut config = String::new();
    for server in 0..SERVERS {
        write_tools(&place, server, 200);
        let words = format!(
            "{} announces-file tools-in={2}/tools{1} notes-start={2}/pid{1}",
            if server % 2 == 0 { "modern" } else { "legacy" },
            server,
            place.display()
        );
        config += &fake(&format!("s{server}"), &words, "pin = \"off\"");
    }
    configure(&place, &config);
    let mut client = LineClient::of_haft(&place, &["--mode", "passthrough"], json!({}));
    // All are there: those that were late came with a notice.
    while list_all(&mut client).0.len() < SERVERS * 200 {
        client.notice("notifications/tools/list_changed");
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let folder_of_servers = place.clone();
    let churn = std::thread::spawn(move || {
        let mut round = 0;
        while !over.load(Ordering::Relaxed) {
            let server = round % SERVERS;
            write_tools(&folder_of_servers, server, 150 + (round * 37) % 100);
            if round % 5 == 4 {
                let pid = std::fs::read_to_string(folder_of_servers.join(format!("pid{server}")));
                let pid = pid.unwrap_or_default();
                let killed = std::process::Command::new("kill")
                    .args(["-9", &pid])
                    .output();
                killed.unwrap();
            }
            round += 1;
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let mut lengths = HashSet::new();
    for attempt in 0..100 {
        let (names, pages) = list_all(&mut client);
        let unique: HashSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "attempt {attempt}: a tool twice");
        assert!(pages >= 4, "attempt {attempt}: {pages} pages");
        assert!(
            names.len() >= SERVERS * 150,
            "attempt {attempt}: {}",
            names.len()
        );
        lengths.insert(names.len());
        // Servers that were killed come back when they are needed.
        client.call(&format!("s{}__t0", attempt % SERVERS), json!({}));
    }
    is_over.store(true, Ordering::Relaxed);
    churn.join().unwrap();
    assert!(
        lengths.len() > 3,
        "the list has changed meanwhile: {lengths:?}"
    );
}
