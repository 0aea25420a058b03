//! The walls of the house (`docs/architecture.md`): which crate may know which, as Cargo resolves it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Every room and the rooms that it may know.
const ROOMS: [(&str, &[&str]); 12] = [
    ("haft-core", &[]),
    ("haft-macros", &[]),
    ("haft-hydrate", &["haft-core"]),
    ("haft-catalog", &["haft-core", "haft-hydrate"]),
    (
        "haft-engine",
        &["haft-catalog", "haft-core", "haft-hydrate"],
    ),
    ("haft-models", &["haft-catalog", "haft-core"]),
    ("haft-builtin", &["haft-catalog", "haft-core"]),
    ("haft-files", &[]),
    (
        "haft-mcp",
        &["haft-catalog", "haft-core", "haft-files", "haft-hydrate"],
    ),
    (
        "haft-concerto",
        &[
            "haft-core",
            "haft-engine",
            "haft-hydrate",
            "haft-mcp",
            "haft-models",
        ],
    ),
    (
        "haft",
        &[
            "haft-builtin",
            "haft-catalog",
            "haft-core",
            "haft-engine",
            "haft-hydrate",
            "haft-macros",
            "haft-mcp",
            "haft-models",
        ],
    ),
    (
        "haft-cli",
        &[
            "haft",
            "haft-concerto",
            "haft-hosted",
            "haft-mcp",
            "haft-server",
            "haft-store",
        ],
    ),
];

/// Crates that reach a network or a database.
const OUTWARD: [&str; 13] = [
    "axum",
    "h2",
    "hyper",
    "hyper-util",
    "mio",
    "native-tls",
    "reqwest",
    "rmcp",
    "rusqlite",
    "rustls",
    "socket2",
    "sqlx",
    "tungstenite",
];

/// What Cargo says when it is asked this.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--locked")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// Everything that a crate is built from, with the features that it asks for.
fn built_from(room: &str) -> BTreeMap<String, BTreeSet<String>> {
    let format = ["--edges", "normal", "--prefix", "none", "--format"];
    let mut arguments = vec!["tree", "--package", room];
    arguments.extend(format);
    arguments.push("{p}|{f}");
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in cargo(&arguments).lines() {
        let (package, features) = line.split_once('|').expect("a package and its features");
        let name = package.split(' ').next().expect("a name");
        let features = features.trim_end_matches("(*)").split(',');
        let features = features.map(|it| it.trim().to_owned());
        crates.entry(name.to_owned()).or_default().extend(features);
    }
    assert!(crates.contains_key(room), "{room} is not among {crates:?}");
    crates
}

#[test]
fn a_room_knows_only_the_rooms_below_it() {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    for (room, may_know) in ROOMS {
        let package = packages.iter().find(|package| package["name"] == room);
        let package = package.unwrap_or_else(|| panic!("there is no crate `{room}`"));
        let known: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            // What only tests need does not count.
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| dependency["name"].as_str().unwrap())
            .filter(|name| name.starts_with("haft"))
            .collect();
        assert_eq!(known, may_know.iter().copied().collect(), "{room}");
    }
}

#[test]
fn the_engine_knows_nothing_of_http() {
    for room in ["haft-core", "haft-hydrate", "haft-catalog", "haft-engine"] {
        let crates = built_from(room);
        let outward: Vec<_> = OUTWARD
            .iter()
            .filter(|name| crates.contains_key(**name))
            .collect();
        assert!(outward.is_empty(), "{room} is built from {outward:?}");
    }
    // The list would mean nothing if it did not find what is there.
    assert!(built_from("haft-models").contains_key("reqwest"));
}

#[test]
fn the_core_does_no_io_and_starts_no_task() {
    // Of tokio only what wakes those who wait, for the signal to stop.
    let tokio = &built_from("haft-core")["tokio"];
    let allowed = BTreeSet::from(["default".to_owned(), "sync".to_owned()]);
    assert_eq!(*tokio, allowed);
}
