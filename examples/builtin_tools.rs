//! The built-in tools in a directory of their own: list, read, write, edit. Nothing leads out of the
//! directory, and an existing file must be read before it is written.
//!
//! `cargo run -p haft-examples --example builtin_tools` (Unix; feature `builtin` of `haft`)

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::fs;
use std::sync::Arc;

use haft::builtin::{RegisterBuiltin, Workspace};
use haft::testing::{ScriptedModel, call, say};
use haft::{Catalog, ReadBeforeWrite, SessionState, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    fs::write(
        directory.path().join("todo.txt"),
        "buy milk\nfeed the cat\n",
    )?;
    // `.allow_shell()` would add `bash`, whose every command needs approval.
    let workspace = Workspace::new(directory.path());

    let catalog = Catalog::new();
    catalog
        .register_all_builtin(workspace.clone())
        .into_result()?;
    // As a resource of the session it also undoes what a failed call wrote.
    let state = SessionState::builder()
        .resource(Arc::new(workspace.clone()))
        .build()?;

    let model = ScriptedModel::new([
        call("list_files", json!({})).call("read_file", json!({"path": "../../etc/passwd"})),
        call(
            "write_file",
            json!({"path": "todo.txt", "content": "nothing"}),
        ),
        call("read_file", json!({"path": "todo.txt"})),
        call(
            "edit_file",
            json!({"path": "todo.txt", "old": "buy milk\n", "new": ""}),
        )
        .call(
            "write_file",
            json!({"path": "done.txt", "content": "buy milk\n"}),
        ),
        say("The milk is bought."),
    ]);
    let outcome = haft::run(model)
        .binding(catalog.snapshot().bind().build()?)
        .state(state)
        .policy(ReadBeforeWrite::new().files(workspace))
        .user("I bought the milk.")
        .await?;

    for call in &outcome.tool_calls {
        let result = call.result.as_ref().map_or("", |result| &result.output);
        println!("{}", call.tool_name);
        println!("  {}", result.trim_end().replace('\n', "\n  "));
    }
    assert!(outcome.is_completed());
    let read = |name: &str| fs::read_to_string(directory.path().join(name));
    assert_eq!(read("todo.txt")?, "feed the cat\n");
    assert_eq!(read("done.txt")?, "buy milk\n");
    let results = outcome
        .tool_calls
        .iter()
        .filter_map(|call| call.result.as_ref());
    let results: Vec<_> = results.map(|result| result.output.as_str()).collect();
    assert!(results.contains(&"Path '../../etc/passwd' is outside the workspace."));
    assert!(results.contains(&"Read 'todo.txt' before writing to it."));
    Ok(())
}
