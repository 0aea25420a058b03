use haft_core::FileSystem;
use serde_json::json;

use super::{Place, call};

/// R39
#[tokio::test]
async fn every_path_outside_the_workspace_is_refused() {
    let place = Place::new();
    place.put("inside.txt", "x");
    place.link("../outside", "way_out");
    place.link(place.all.path().join("outside/secret.txt"), "secret");
    place.link("../outside/not_there_yet", "dangling");
    place.link("way_out", "chain");
    let workspace = place.workspace();
    let absolute = place.root().join("inside.txt");
    let outside = [
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "..",
        "/etc/passwd",
        absolute.to_str().unwrap(),
        "way_out/secret.txt",
        "way_out/new.txt",
        "way_out/new/er.txt",
        "chain/secret.txt",
        "secret",
        "dangling",
        "dangling/x",
    ];
    for path in outside {
        let refused = Err(format!("Path '{path}' is outside the workspace."));
        for (tool, arguments) in [
            ("list_files", json!({"path": path})),
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "y"})),
            (
                "edit_file",
                json!({"path": path, "old": "hunter2", "new": "y"}),
            ),
        ] {
            assert_eq!(call(&workspace, tool, arguments).await, refused, "{tool}");
        }
        assert!(!workspace.exists(path), "{path}");
    }
    assert_eq!(place.get("../outside/secret.txt").unwrap(), "hunter2");
    assert!(place.get("../outside/new.txt").is_none());
    assert!(place.get("../outside/not_there_yet").is_none());
}

#[tokio::test]
async fn paths_and_links_that_stay_inside_are_followed() {
    let place = Place::new();
    place.put("real/a.txt", "one");
    place.link("real", "alias");
    place.link("real/a.txt", "shortcut.txt");
    let workspace = place.workspace();
    for path in ["real/a.txt", "./alias//a.txt", "x/../shortcut.txt"] {
        let read = call(&workspace, "read_file", json!({"path": path})).await;
        assert_eq!(read.unwrap(), "     1\tone", "{path}");
    }
    let written = call(
        &workspace,
        "write_file",
        json!({"path": "shortcut.txt", "content": "two"}),
    );
    written.await.unwrap();
    assert_eq!(place.get("real/a.txt").unwrap(), "two");
    assert!(place.root().join("shortcut.txt").is_symlink());
    assert!(workspace.exists("alias/a.txt") && !workspace.exists("real"));
}

#[tokio::test]
async fn a_listing_shows_links_and_does_not_walk_through_them() {
    let place = Place::new();
    place.put("a.txt", "");
    place.link("../outside", "way_out");
    place.link(".", "circle");
    let workspace = place.workspace();
    let all = call(&workspace, "list_files", json!({})).await.unwrap();
    assert_eq!(all, "a.txt\ncircle\nway_out");
    let found = call(&workspace, "list_files", json!({"glob": "**/*.txt"}));
    assert_eq!(found.await.unwrap(), "a.txt");
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let place = Place::new();
    place.put("dir/a.txt", "");
    let fifo = place.root().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let workspace = place.workspace();
    for (path, reason) in [
        ("fifo", "'fifo' cannot be used: it is no regular file"),
        ("dir", "'dir' is a directory"),
        (".", "'.' is a directory"),
        ("gone", "'gone' does not exist"),
        (
            "dir/a.txt/b",
            "'dir/a.txt/b' leads through something that is no directory",
        ),
    ] {
        let read = call(&workspace, "read_file", json!({"path": path})).await;
        assert_eq!(read, Err(reason.to_owned()));
    }
    for path in ["fifo", "dir", ".", "dir/a.txt/b", "nul\0"] {
        let arguments = json!({"path": path, "content": "x"});
        assert!(call(&workspace, "write_file", arguments).await.is_err());
    }
}

#[tokio::test]
async fn a_workspace_that_is_not_there_says_so_without_naming_the_place() {
    let workspace = haft_builtin::Workspace::new("/nowhere/secret-place").allow_shell();
    for (tool, arguments) in [
        ("read_file", json!({"path": "a"})),
        ("bash", json!({"command": "true"})),
    ] {
        let error = call(&workspace, tool, arguments).await.unwrap_err();
        assert_eq!(error, "the workspace cannot be opened");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_becomes_a_link_meanwhile_leads_nowhere() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let place = Place::new();
    place.put("door/a.txt", "inside");
    place.put("../outside/a.txt", "outside");
    place.link("../outside", "link");
    let workspace = place.workspace();
    let (door, link) = (place.root().join("door"), place.root().join("link"));
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    // `door` is the inner directory and a link to the outer one by turns, and always there.
    let swapping = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        }
    });
    for at in 0..1000 {
        let writing = json!({"path": "door/b.txt", "content": at.to_string()});
        let _ = call(&workspace, "write_file", writing).await;
        let reading = call(&workspace, "read_file", json!({"path": "door/a.txt"})).await;
        assert!(!reading.is_ok_and(|text| text.contains("\toutside")));
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(place.get("../outside/b.txt").is_none());
    assert_eq!(place.get("../outside/a.txt").unwrap(), "outside");
}
