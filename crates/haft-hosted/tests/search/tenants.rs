//! Folders of tenants: for others they are not there.

use haft_core::{Owner, OwnersTool, ToolContext, ToolObject};
use haft_hosted::{
    FileSearch, FileSearchConfig, FileSearchError, Folder, SearchRequest, search_files,
};
use serde_json::{Value, json};
use std::sync::Arc;

use super::{Site, ask, places};

/// Everybody's `docs`, and folders of `acme`, of `other`, and of both.
fn site() -> (Site, FileSearchConfig) {
    let site = Site::with(&[("a.md", "needle for everybody")]);
    for (folder, text) in [
        ("plans", "needle of acme"),
        ("notes", "needle of other"),
        ("shared", "needle of acme and other"),
    ] {
        site.put(&format!("{folder}/{folder}.md"), text);
    }
    let folder = |name: &str| Folder::from(site.path(name));
    let folders = [
        folder("docs"),
        folder("plans").for_tenants(["acme"]),
        folder("notes").for_tenants(["other"]),
        folder("shared").for_tenants(["acme", "other"]),
    ];
    let config = FileSearchConfig {
        refresh_seconds: 0,
        ..FileSearchConfig::of_folders(folders)
    };
    (site, config)
}

const ALL: [&str; 4] = [
    "docs/a.md:1",
    "notes/notes.md:1",
    "plans/plans.md:1",
    "shared/shared.md:1",
];

#[test]
fn a_search_finds_only_what_its_tenant_may_see() {
    let (site, config) = site();
    let search = site.open_with(&config);
    assert_eq!(places(&search, "needle"), ALL, "as the operator sees it");
    assert_eq!(places(&search.for_everybody(), "needle"), [ALL[0]]);
    let acme = search.for_tenant("acme");
    assert_eq!(places(&acme, "needle"), [ALL[0], ALL[2], ALL[3]]);
    let other = search.for_tenant("other");
    assert_eq!(places(&other, "needle"), [ALL[0], ALL[1], ALL[3]]);
    for stranger in ["", "ACME", "acme ", "default"] {
        assert_eq!(places(&search.for_tenant(stranger), "needle"), [ALL[0]]);
    }
    assert!(places(&other, "acme -other").is_empty());
    assert!(places(&other, "plans").is_empty(), "nor by its name");
}

#[test]
fn a_folder_of_another_tenant_is_as_unknown_as_one_that_is_not_there() {
    let (site, config) = site();
    let search = site.open_with(&config);
    let other = search.for_tenant("other");
    let named = |folder: &str| SearchRequest {
        folder: Some(folder.to_owned()),
        ..SearchRequest::new("needle")
    };
    let error = |folder: &str| {
        let cancel = haft_core::Cancel::new();
        let error = other.search(&named(folder), &cancel).unwrap_err();
        error.to_string().replace(folder, "FOLDER")
    };
    assert_eq!(error("plans"), error("nowhere"));
    assert!(!error("nowhere").contains("plans"), "{}", error("nowhere"));
    assert_eq!(ask(&other, &named("notes")).results.len(), 1);
    // Patterns do not lead there either.
    for glob in ["plans/**", "**/plans.md", "*"] {
        let request = SearchRequest {
            path_glob: Some(glob.to_owned()),
            ..SearchRequest::new("needle")
        };
        let found = ask(&other, &request);
        let is_foreign = |path: &str| path.starts_with("plans");
        assert!(
            !found.results.iter().any(|hit| is_foreign(&hit.path)),
            "{glob}"
        );
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

#[test]
fn what_is_wrong_with_a_folder_is_told_to_those_who_see_it() {
    let (site, config) = site();
    let search = site.open_with(&config);
    ask(&search, &SearchRequest::new("needle"));
    std::fs::remove_dir_all(site.path("plans")).unwrap();
    let notes = |search: &FileSearch| ask(search, &SearchRequest::new("needle")).notes;
    let told = notes(&search.for_tenant("acme"));
    assert!(told[0].contains("`plans` cannot be read"), "{told:?}");
    assert!(notes(&search.for_tenant("other")).is_empty());
    assert!(notes(&search.for_everybody()).is_empty());
}

#[test]
fn a_folder_for_nobody_is_a_mistake() {
    let site = Site::new();
    for tenants in [vec![], vec!["acme", ""]] {
        let folder = Folder::from(site.path("docs")).for_tenants(tenants);
        let config = FileSearchConfig::of_folders([folder]);
        let error = FileSearch::open(site.index(), &config).unwrap_err();
        assert!(matches!(error, FileSearchError::Tenants { .. }), "{error}");
    }
}

/// What a tool finds, as text.
async fn found(tool: &Arc<dyn ToolObject>, arguments: Value) -> String {
    let call = tool.instantiate(&arguments).unwrap();
    match call.run(&ToolContext::default()).await {
        Ok(output) => output.text_for_model(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn each_tenant_has_a_tool_of_his_own() {
    let (site, config) = site();
    let tool = search_files(site.open_with(&config)).unwrap();
    let for_owner = |name: &str| tool.for_owner(&Owner::new(name));
    let OwnersTool::Own(acme) = for_owner("acme") else {
        panic!("he has folders");
    };
    assert!(matches!(for_owner("default"), OwnersTool::Same));
    let description = |tool: &Arc<dyn ToolObject>| {
        let definition = tool.definition();
        definition.description().unwrap_or_default().to_owned()
    };
    for (tool, seen, unseen) in [
        (&acme, &["docs", "plans", "shared"][..], &["notes"][..]),
        // Whoever does not ask for whom it is shows what everybody may see.
        (&tool, &["docs"], &["plans", "notes", "shared"]),
    ] {
        assert_eq!(tool.definition().name().as_str(), "search_files");
        let found = found(tool, json!({"query": "needle"})).await;
        for folder in seen {
            assert!(description(tool).contains(&format!("`{folder}`")));
            assert!(found.contains(&format!("{folder}/")), "{found}");
        }
        for folder in unseen {
            assert!(!description(tool).contains(&format!("`{folder}`")));
            assert!(!found.contains(&format!("{folder}/")), "{found}");
        }
    }
    let refused = found(&acme, json!({"query": "needle", "folder": "notes"})).await;
    assert!(refused.contains("there is no folder `notes`"), "{refused}");
}

#[tokio::test]
async fn who_has_no_folder_has_no_tool() {
    let (site, mut config) = site();
    config.folders.remove(0);
    let tool = search_files(site.open_with(&config)).unwrap();
    assert!(matches!(
        tool.for_owner(&Owner::default()),
        OwnersTool::Hidden
    ));
    assert!(matches!(
        tool.for_owner(&Owner::new("acme")),
        OwnersTool::Own(_)
    ));
    let nothing = found(&tool, json!({"query": "needle"})).await;
    assert!(!nothing.contains("needle of"), "{nothing}");
    // Without tenants it is what it always was.
    for folder in &mut config.folders {
        folder.tenants = None;
    }
    let tool = search_files(site.open_with(&config)).unwrap();
    assert!(matches!(
        tool.for_owner(&Owner::new("acme")),
        OwnersTool::Same
    ));
}
