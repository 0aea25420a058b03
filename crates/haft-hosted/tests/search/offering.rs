//! The tools as a catalogue holds them.

use haft_catalog::Catalog;
use haft_core::{ToolContext, ToolKind};
use haft_hosted::{FileSearchConfig, HostedError, HostedOptions, register};
use serde_json::json;

use super::Site;

fn names(catalog: &Catalog) -> Vec<String> {
    let tools = catalog.list();
    tools.iter().map(|tool| tool.name().to_string()).collect()
}

#[test]
fn search_is_offered_only_where_folders_are_listed() {
    let site = Site::with(&[("a.md", "needle")]);
    let registered = |search| {
        let catalog = Catalog::new();
        let index = site.index();
        register(&catalog, HostedOptions { search, index }).unwrap();
        names(&catalog)
    };
    let without = ["calculate", "clock"];
    assert_eq!(sorted(registered(None)), without);
    assert_eq!(
        sorted(registered(Some(FileSearchConfig::default()))),
        without
    );
    let with = ["calculate", "clock", "search_files"];
    assert_eq!(sorted(registered(Some(site.config()))), with);
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn all_of_them_run_here_only_read_and_have_closed_schemas() {
    let site = Site::with(&[("a.md", "needle")]);
    let catalog = Catalog::new();
    let options = HostedOptions {
        search: Some(site.config()),
        index: site.index(),
    };
    register(&catalog, options).unwrap();
    for tool in catalog.list() {
        assert_eq!(*tool.kind(), ToolKind::Internal, "{}", tool.name());
        assert!(tool.annotations().read_only && tool.annotations().idempotent);
        assert_eq!(
            tool.parameters().unwrap()["additionalProperties"],
            json!(false)
        );
        assert!(tool.output_schema().is_some());
    }
    let search = catalog.get("search_files").unwrap();
    let description = search.tool().definition().description().unwrap().to_owned();
    assert!(description.contains("`docs`"));
}

#[test]
fn a_name_that_is_taken_is_reported_and_the_rest_registered() {
    let catalog = Catalog::new();
    catalog.register(haft_hosted::clock()).unwrap();
    let error = register(&catalog, HostedOptions::default()).unwrap_err();
    assert!(matches!(error, HostedError::Rejected(_)), "{error}");
    assert_eq!(sorted(names(&catalog)), ["calculate", "clock"]);
}

#[tokio::test]
async fn the_tool_gives_places_and_says_what_is_wrong() {
    let site = Site::with(&[("a.md", "one\nneedle\n")]);
    let tool = haft_hosted::search_files(site.open()).unwrap();
    let context = ToolContext::default();
    let call = tool.instantiate(&json!({"query": "needle"})).unwrap();
    let output = call.run(&context).await.unwrap();
    let snippet = "1: one\n2: needle";
    assert_eq!(
        output.as_value(),
        Some(&json!({
            "results": [{"rank": 1, "path": "docs/a.md", "line": 2, "snippet": snippet}]
        }))
    );
    let call = tool
        .instantiate(&json!({"query": "needle", "folder": "etc"}))
        .unwrap();
    let error = call.run(&context).await.unwrap_err();
    assert_eq!(
        error.message(),
        "there is no folder `etc`: folders are docs"
    );
}

#[tokio::test]
async fn the_clock_tells_the_time_that_it_is_given() {
    use std::time::{Duration, SystemTime};
    // 10 o'clock on the first of July 2026.
    let now = || SystemTime::UNIX_EPOCH + Duration::from_hours(495_250);
    let clock = haft_hosted::clock_with(now).unwrap();
    let context = ToolContext::default();
    let call = clock.instantiate(&json!({})).unwrap();
    let output = call.run(&context).await.unwrap();
    assert_eq!(
        output.as_value(),
        Some(&json!({
            "time": "2026-07-01T10:00:00+00:00",
            "timezone": "UTC",
            "weekday": "Wednesday",
            "unix_seconds": 1_782_900_000
        }))
    );
    // The example in the definition is true.
    let example = clock.definition().annotations().examples[0].clone();
    let call = clock.instantiate(&example.input).unwrap();
    let output = call.run(&context).await.unwrap();
    assert_eq!(output.as_value(), example.output.as_ref());
}

#[test]
fn configurations_are_read_strictly() {
    let read = |text: &str| toml::from_str::<FileSearchConfig>(text);
    let config =
        read("folders = ['a', { path = 'b' }, { path = '/c', name = 'd' }]\nhidden = true");
    let config = config.unwrap().relative_to("/base");
    let paths: Vec<_> = config
        .folders
        .iter()
        .map(|folder| folder.path.to_str().unwrap())
        .collect();
    assert_eq!(paths, ["/base/a", "/base/b", "/c"]);
    assert_eq!(config.folders[2].name.as_deref(), Some("d"));
    assert!(config.hidden);
    let error = read("folders = [{ path = 'b', label = 'x' }]").unwrap_err();
    assert!(
        error.to_string().contains("unknown field `label`"),
        "{error}"
    );
    let error = read("folders = [7]").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a path, or a table with `path`, `name` and `tenants`"),
        "{error}"
    );
    assert!(read("refresh = 3").is_err());
}
