use haft_core::ToolContext;

use super::*;

#[tokio::test]
async fn ranges_that_follow_each_other_give_the_whole_text() {
    for store in [SpillStore::temporary().unwrap(), SpillStore::in_memory()] {
        let text = "aé€😀".repeat(50);
        store.write("call_1", &text).await.unwrap();
        for limit in 1..20 {
            let mut whole = String::new();
            let mut offset = 0;
            while offset < text.len() as u64 {
                whole += &store.read("call_1", offset, limit).await.unwrap().unwrap();
                offset += limit;
            }
            assert_eq!(whole, text, "{limit}");
        }
        let all = store.read("call_1", 0, u64::MAX).await.unwrap();
        assert_eq!(all.as_deref(), Some(text.as_str()));
        let beyond = store.read("call_1", u64::MAX, u64::MAX).await.unwrap();
        assert_eq!(beyond.as_deref(), Some(""));
        assert_eq!(store.read("call_2", 0, 1).await.unwrap(), None);
    }
}

#[tokio::test]
async fn store_in_memory_is_bounded_and_gives_its_room_back() {
    let half = "x".repeat(MAX_STORE_BYTES / 2);
    for _ in 0..20 {
        let store = SpillStore::in_memory();
        assert_eq!(store.directory(), None);
        store.write("a", &half).await.unwrap();
        store.write("b", &half).await.unwrap();
        store.write("b", &half).await.unwrap();
        let refused = store.write("c", "x").await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert_eq!(store.read("a", 0, 1).await.unwrap().as_deref(), Some("x"));
    }
}

#[test]
fn the_head_is_cut_on_a_character_and_names_the_whole() {
    let text = format!("{}é{}", "x".repeat(511), "y".repeat(17_718));
    assert_eq!(
        SpillStore::head(&text, "call_7"),
        format!(
            "{}\n\n[Result truncated: 18231 bytes in total. Call recall_tool_result with \
             tool_call_id \"call_7\" to read more.]",
            "x".repeat(511)
        )
    );
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_look_and_no_call_id_chooses_a_path() {
    use std::os::unix::fs::PermissionsExt;

    let parent = tempfile::tempdir().unwrap();
    let store = SpillStore::below(&parent.path().join("deeper")).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(store.directory().unwrap()), 0o700);
    for call_id in ["../../escape", "/etc/passwd", "", "a\0b"] {
        store.write(call_id, call_id).await.unwrap();
        let read = store.read(call_id, 0, 100).await.unwrap();
        assert_eq!(read.as_deref(), Some(call_id));
    }
    let files: Vec<_> = std::fs::read_dir(store.directory().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 4);
    assert!(files.iter().all(|file| mode(file) == 0o600));
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn files_go_with_the_store_unless_kept() {
    let parent = tempfile::tempdir().unwrap();
    let count = || std::fs::read_dir(parent.path()).unwrap().count();
    let store = SpillStore::below(parent.path()).unwrap();
    store.write("call_1", "text").await.unwrap();
    let kept = SpillStore::below(parent.path()).unwrap().keep();
    kept.write("call_1", "kept").await.unwrap();
    assert_eq!(count(), 2);
    drop((store, kept));
    assert_eq!(count(), 1);
}

async fn recall(store: &Arc<SpillStore>, arguments: serde_json::Value) -> ToolOutput {
    let tool = recall_tool_result(Arc::clone(store)).unwrap();
    let call = tool.instantiate(&arguments).unwrap();
    call.run(&ToolContext::default()).await.unwrap()
}

#[tokio::test]
async fn the_model_recalls_any_part_of_a_result() {
    let store = Arc::new(SpillStore::temporary().unwrap());
    let text = "0123456789".repeat(1000);
    store.write("call_7", &text).await.unwrap();
    let beginning = recall(&store, json!({"tool_call_id": "call_7"})).await;
    assert_eq!(beginning.text_for_model(), text[..4096]);
    let arguments = json!({"tool_call_id": "call_7", "offset": 9995.0, "limit": 10});
    assert_eq!(recall(&store, arguments).await.text_for_model(), "56789");
    let unknown = recall(&store, json!({"tool_call_id": "x"})).await;
    assert!(!unknown.is_success());
    assert_eq!(unknown.text_for_model(), "Unknown tool_call_id 'x'.");
}

#[test]
fn recalling_changes_nothing_and_is_offered_under_its_reserved_name() {
    let store = Arc::new(SpillStore::temporary().unwrap());
    let tool = recall_tool_result(store).unwrap();
    assert!(tool.definition().name().is_reserved());
    assert!(tool.definition().annotations().read_only);
}
