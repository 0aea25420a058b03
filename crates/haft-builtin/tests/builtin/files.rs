use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{Place, call};

#[tokio::test]
async fn a_directory_is_listed_sorted_with_paths_of_the_workspace() {
    let place = Place::new();
    for path in [
        "src/b.rs",
        "src/a.rs",
        "src/deep/c.rs",
        "src/.hidden",
        "README.md",
    ] {
        place.put(path, "");
    }
    let workspace = place.workspace();
    let list = |arguments| call(&workspace, "list_files", arguments);
    assert_eq!(list(json!({})).await.unwrap(), "README.md\nsrc/");
    assert_eq!(
        list(json!({"path": "src"})).await.unwrap(),
        "src/.hidden\nsrc/a.rs\nsrc/b.rs\nsrc/deep/"
    );
    assert_eq!(
        list(json!({"glob": "**/*.rs"})).await.unwrap(),
        "src/a.rs\nsrc/b.rs\nsrc/deep/c.rs"
    );
    assert_eq!(
        list(json!({"path": "src", "glob": "*.rs"})).await.unwrap(),
        "src/a.rs\nsrc/b.rs"
    );
    let error = list(json!({"glob": "a**b["})).await.unwrap_err();
    assert!(error.starts_with("'a**b[' is no pattern"), "{error}");
}

#[tokio::test]
async fn a_long_listing_says_how_many_entries_it_leaves_out() {
    let place = Place::new();
    for at in 0..1003 {
        place.put(&format!("f{at:04}"), "");
    }
    let list = call(&place.workspace(), "list_files", json!({}))
        .await
        .unwrap();
    let lines: Vec<_> = list.lines().collect();
    assert_eq!((lines.len(), lines[999]), (1001, "f0999"));
    assert_eq!(lines[1000], "[entries left out: 3]");
}

#[tokio::test]
async fn a_file_is_read_in_numbered_lines_and_in_pieces() {
    let place = Place::new();
    let mut text = String::new();
    for line in 1..=2001 {
        writeln!(text, "line {line}").unwrap();
    }
    place.put("long.txt", text);
    let workspace = place.workspace();
    let read = call(&workspace, "read_file", json!({"path": "long.txt"})).await;
    let read = read.unwrap();
    assert!(read.starts_with("     1\tline 1\n     2\tline 2\n"));
    assert!(read.ends_with("  2000\tline 2000\n[lines left out: 1. Read on with offset 2001.]"));
    let rest = json!({"path": "long.txt", "offset": 2000.0, "limit": 5000});
    let rest = call(&workspace, "read_file", rest).await.unwrap();
    assert_eq!(rest, "  2000\tline 2000\n  2001\tline 2001");
}

#[tokio::test]
async fn what_is_not_utf8_is_named_by_size_and_kind() {
    let place = Place::new();
    place.put("a.png", b"\x89PNG\r\n\x1a\n\0\0");
    place.put("latin.txt", b"caf\xe9");
    let workspace = place.workspace();
    for (path, reason) in [
        ("a.png", "'a.png' is not UTF-8 text: 10 bytes, PNG image"),
        (
            "latin.txt",
            "'latin.txt' is not UTF-8 text: 4 bytes, text in another encoding",
        ),
    ] {
        let read = call(&workspace, "read_file", json!({"path": path})).await;
        assert_eq!(read, Err(reason.to_owned()));
        let edit = json!({"path": path, "old": "c", "new": "d"});
        assert_eq!(
            call(&workspace, "edit_file", edit).await,
            Err(reason.into())
        );
    }
}

#[tokio::test]
async fn writing_makes_directories_keeps_permissions_and_leaves_nothing_beside() {
    let place = Place::new();
    let workspace = place.workspace();
    let write = |content: &str| json!({"path": "a/b/run.sh", "content": content});
    let said = call(&workspace, "write_file", write("one")).await.unwrap();
    assert_eq!(said, "Wrote 3 bytes to 'a/b/run.sh'.");
    let file = place.root().join("a/b/run.sh");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    call(&workspace, "write_file", write("zwei")).await.unwrap();
    assert_eq!(place.get("a/b/run.sh").unwrap(), "zwei");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let beside = std::fs::read_dir(file.parent().unwrap()).unwrap();
    assert_eq!(beside.count(), 1);
}

#[tokio::test]
async fn an_edit_needs_exactly_one_place_unless_all_are_meant() {
    let place = Place::new();
    place.put("a.txt", "x = 1\ny = 1\n");
    let workspace = place.workspace();
    let edit = |arguments| call(&workspace, "edit_file", arguments);
    let once = edit(json!({"path": "a.txt", "old": "x = 1", "new": "x = 2"})).await;
    assert_eq!(once.unwrap(), "Changed 1 place in 'a.txt'.");
    assert_eq!(
        edit(json!({"path": "a.txt", "old": " = ", "new": "="})).await,
        Err("'old' occurs 2 times in 'a.txt'.".into())
    );
    for all in [false, true] {
        let missing = json!({"path": "a.txt", "old": "z", "new": "", "all": all});
        let told = Err("'old' occurs 0 times in 'a.txt'.".into());
        assert_eq!(edit(missing).await, told);
    }
    let all = edit(json!({"path": "a.txt", "old": " = ", "new": "=", "all": true}));
    assert_eq!(all.await.unwrap(), "Changed 2 places in 'a.txt'.");
    assert_eq!(place.get("a.txt").unwrap(), "x=2\ny=1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_one_file_at_once_all_count() {
    let place = Place::new();
    let mut text = String::new();
    for at in 0..20 {
        write!(text, "<{at}>").unwrap();
    }
    place.put("a.txt", text);
    let workspace = place.workspace();
    let edits: Vec<_> = (0..20)
        .map(|at| {
            let workspace = workspace.clone();
            let arguments = json!({"path": "a.txt", "old": format!("<{at}>"), "new": "."});
            tokio::spawn(async move { call(&workspace, "edit_file", arguments).await })
        })
        .collect();
    for edit in edits {
        edit.await.unwrap().unwrap();
    }
    assert_eq!(place.get("a.txt").unwrap(), ".".repeat(20));
}
