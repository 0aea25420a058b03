//! Files of tenants: a request finds and names only those that its tenant may see.

use haft_catalog::Catalog;
use haft_hosted::{FileSearchConfig, Folder, HostedOptions, register};
use haft_models::ScriptedModel;
use haft_models::testing::{call, say};
use serde_json::{Value, json};

use crate::access::Keys;
use crate::support::{Served, Setup};

/// A server with a folder of `acme`, and perhaps one of everybody's.
async fn served(keys: &Keys, has_common: bool, query: Value) -> (Served, ScriptedModel) {
    let files = keys.folder().join("files");
    for (folder, text) in [("docs", "common needle"), ("plans", "secret needle")] {
        std::fs::create_dir_all(files.join(folder)).unwrap();
        std::fs::write(files.join(folder).join("a.md"), text).unwrap();
    }
    let mut folders = vec![Folder::from(files.join("plans")).for_tenants(["acme"])];
    if has_common {
        folders.push(Folder::from(files.join("docs")));
    }
    let catalog = Catalog::new();
    let options = HostedOptions {
        search: Some(FileSearchConfig::of_folders(folders)),
        index: keys.folder().join("search.db"),
    };
    register(&catalog, options).unwrap();
    let model = ScriptedModel::new([
        call("search_files", query.clone()),
        say("done"),
        call("search_files", query),
        say("done"),
    ]);
    let setup = Setup {
        catalog,
        data_dir: Some(keys.folder().to_owned()),
        ..Setup::of(model.clone())
    };
    (setup.serve().await, model)
}

fn body() -> Value {
    json!({"input": "go", "tools": [{"type": "haft:search_files"}]})
}

/// The description of the tool in the last request to the model.
fn described(model: &ScriptedModel) -> String {
    let request = model.received().last().unwrap().clone();
    let tool = request.tools.iter().next().unwrap().definition();
    assert_eq!(tool.name().as_str(), "search_files");
    tool.description().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_finds_only_the_files_of_its_tenant() {
    let keys = Keys::new();
    let acme = keys.add("acme", "acme");
    let other = keys.add("other", "other");
    let (served, model) = served(&keys, true, json!({"query": "needle"})).await;
    let own = served.post_as(&acme, "/responses", body()).await.ok();
    let output = own["output"][0].to_string();
    assert!(
        output.contains("plans/a.md") && output.contains("docs/a.md"),
        "{output}"
    );
    assert!(described(&model).contains("plans"));
    let foreign = served.post_as(&other, "/responses", body()).await.ok();
    let output = foreign["output"][0].to_string();
    assert!(output.contains("docs/a.md"), "{output}");
    assert!(
        !output.contains("plans") && !output.contains("secret"),
        "{output}"
    );
    assert!(!described(&model).contains("plans"));
}

#[tokio::test]
async fn a_folder_of_another_tenant_cannot_be_named() {
    let keys = Keys::new();
    let acme = keys.add("acme", "acme");
    let other = keys.add("other", "other");
    let query = json!({"query": "needle", "folder": "plans"});
    let (served, _) = served(&keys, true, query).await;
    let own = served.post_as(&acme, "/responses", body()).await.ok();
    assert!(own["output"][0].to_string().contains("secret needle"));
    let foreign = served.post_as(&other, "/responses", body()).await.ok();
    let output = foreign["output"][0].to_string();
    assert!(output.contains("there is no folder `plans`"), "{output}");
    assert!(!output.contains("secret"), "{output}");
}

#[tokio::test]
async fn a_tool_without_any_folder_for_a_tenant_is_not_there() {
    let keys = Keys::new();
    let acme = keys.add("acme", "acme");
    let other = keys.add("other", "other");
    let (served, _) = served(&keys, false, json!({"query": "needle"})).await;
    let own = served.post_as(&acme, "/responses", body()).await.ok();
    assert_eq!(own["status"], "completed");
    let foreign = served.post_as(&other, "/responses", body()).await;
    assert_eq!(
        foreign.error(),
        (400, "unsupported_tool", Some("tools[0].type"))
    );
    // As where nobody has such a tool.
    let catalog = Catalog::new();
    let options = HostedOptions {
        search: None,
        index: keys.folder().join("none.db"),
    };
    register(&catalog, options).unwrap();
    let setup = Setup {
        catalog,
        data_dir: Some(keys.folder().to_owned()),
        ..Setup::of(ScriptedModel::new([say("done")]))
    };
    let bare = setup.serve().await;
    let nowhere = bare.post_as(&other, "/responses", body()).await;
    assert_eq!(foreign.body, nowhere.body);
}
