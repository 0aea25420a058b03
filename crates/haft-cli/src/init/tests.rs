use std::collections::BTreeSet;

use haft::LoopOptions;
use haft::models::Adapter;

use super::*;
use crate::config::{Flags, Resolved, Source, Variables, resolve};

/// The template with its keys switched on: all of them, or those that show a default.
fn switched_on(text: &str, examples: bool) -> String {
    let lines = text.lines().filter_map(|line| {
        let key = line.strip_prefix('#');
        let key = key.filter(|rest| !rest.starts_with([' ', '#']) && !rest.is_empty());
        match key {
            Some(key) if key.ends_with("# example") && !examples => None,
            Some(key) => Some(key),
            None => Some(line),
        }
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The template up to the models, and the models.
fn halves() -> (&'static str, &'static str) {
    TEMPLATE.split_at(TEMPLATE.find("# ---- Models ----").unwrap())
}

fn resolved(text: &str) -> Resolved {
    let source = Source {
        text: text.to_owned(),
        ..Source::default()
    };
    let lookup = |_: &str| Some(String::from("hunter2"));
    let resolved = resolve(&source, &Variables::none(), Flags::default(), &lookup);
    resolved.unwrap_or_else(|complaint| panic!("{complaint}"))
}

#[test]
fn the_file_means_the_defaults_as_it_is_and_with_every_default_switched_on() {
    let defaults = format!("{:#?}", resolved(""));
    assert_eq!(format!("{:#?}", resolved(TEMPLATE)), defaults);
    let switched_on = switched_on(halves().0, false);
    assert_eq!(format!("{:#?}", resolved(&switched_on)), defaults);
    let switches = switched_on.lines().filter(|line| line.contains(" = "));
    assert!(switches.count() > 25, "{switched_on}");
}

#[test]
fn every_example_can_be_switched_on() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("local.key"), "hunter2").unwrap();
    std::fs::write(folder.path().join("script.jsonl"), "{\"text\": \"hi\"}\n").unwrap();
    std::fs::write(folder.path().join("notes.token"), "hunter2").unwrap();
    std::fs::write(folder.path().join("forum.secret"), "hunter2").unwrap();
    let prompts = folder.path().join("prompts");
    std::fs::create_dir(&prompts).unwrap();
    std::fs::write(prompts.join("a.md"), "+++\ntitle = \"A\"\n+++\nHi.\n").unwrap();
    let others = r#"{"mcpServers": {"other": {"command": "other"}}}"#;
    std::fs::write(folder.path().join("mcp.json"), others).unwrap();
    // Either of the two, and the default is a model that is there; there is no key.
    let key = ", grant = \"client-credentials\", private_key_file = \"robot.pem\"";
    let text = switched_on(TEMPLATE, true)
        .replace(key, "")
        .replace("api_key_file = \"haft.key\"", "")
        .replace("default_model = \"default\"", "default_model = \"local\"");
    let source = Source {
        name: String::from("haft.toml"),
        folder: folder.path().to_owned(),
        text,
        is_there: true,
        is_of_user: false,
    };
    let lookup = |_: &str| Some(String::from("hunter2"));
    let resolved = resolve(&source, &Variables::none(), Flags::default(), &lookup);
    let resolved = resolved.unwrap_or_else(|complaint| panic!("{complaint}"));
    let adapters: Vec<_> = resolved.models.iter().map(|model| model.adapter).collect();
    let every = [
        Adapter::OpenaiResponses,
        Adapter::Anthropic,
        Adapter::Ollama,
        Adapter::OpenaiChat,
        Adapter::Scripted,
        Adapter::Offline,
    ];
    assert_eq!(adapters, every);
    assert_eq!(resolved.default_model.as_deref(), Some("local"));
    assert!(resolved.prompt.is_some_and(|it| it.has_servers()));
    assert!(resolved.search_files.is_some() && resolved.api_key.is_some());
    let servers = resolved.mcp.iter().map(|it| it.label.as_str());
    let expected = [
        "files", "search", "notes", "crm", "tickets", "forum", "robot", "other",
    ];
    assert_eq!(servers.collect::<Vec<_>>(), expected);
    assert_eq!(
        resolved.gateway.map(|it| it.servers),
        Some(vec!["files".into()])
    );
}

/// The keys that stand in a value, in whatever table.
fn gather(value: &toml::Value, keys: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                keys.insert(key.clone());
                gather(value, keys);
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|it| gather(it, keys)),
        _ => {}
    }
}

#[test]
fn no_key_is_left_out() {
    let (tables, models) = halves();
    let mut wanted = crate::config::keys_of_tables();
    for (key, value) in serde_json::to_value(LoopOptions::default())
        .unwrap()
        .as_object()
        .unwrap()
    {
        wanted.insert(key.clone());
        let nested = value
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys);
        wanted.extend(nested.cloned());
    }
    let mut told = BTreeSet::new();
    let table = switched_on(TEMPLATE, true).parse().unwrap();
    gather(&toml::Value::Table(table), &mut told);
    let missing: Vec<_> = wanted.difference(&told).collect();
    assert!(missing.is_empty(), "not in the template: {missing:?}");
    // Each has a line of words somewhere above it.
    for half in [tables, models] {
        let mut before = "";
        for line in half.lines() {
            let is_first_key = line.starts_with('#') && before.is_empty();
            let is_words = line.starts_with("# ") || line == "#" || line.contains("enabled");
            assert!(!is_first_key || is_words, "nothing is said about {line}");
            before = line;
        }
    }
    assert!(wanted.contains("allowed_origins") && wanted.contains("header_timeout"));
    assert!(wanted.contains("exact_window"), "{wanted:?}");
    for key in [
        "no_schema_mode",
        "bearer_file",
        "failover",
        "failures",
        "open",
        "longest",
        "every",
        "timeout",
    ] {
        assert!(told.contains(key), "{key} is not in the template");
    }
}
