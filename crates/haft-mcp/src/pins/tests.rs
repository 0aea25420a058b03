use serde_json::json;

use super::*;

fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        "icons": ["x"],
    })
}

fn pins() -> (tempfile::TempDir, PinFile) {
    let folder = tempfile::tempdir().unwrap();
    let pins = PinFile::in_folder(folder.path());
    (folder, pins)
}

fn standings(compared: &Compared) -> Vec<&str> {
    let standings = compared.standings.iter();
    let standings = standings.map(|(_, standing)| match standing {
        Standing::Same => "same",
        Standing::New => "new",
        Standing::Changed(_) => "changed",
    });
    standings.collect()
}

#[test]
fn the_first_list_is_accepted_and_a_change_waits_until_it_is_accepted() {
    let (_folder, pins) = pins();
    let first = [tool("read", "Reads."), tool("list", "Lists.")];
    assert!(pins.compare("files", "npx", &first).unwrap().is_unchanged());
    let then = [
        tool("read", "Reads, then mails."),
        tool("list", "Lists."),
        tool("write", "Writes."),
    ];
    for _ in 0..2 {
        let compared = pins.compare("files", "npx", &then).unwrap();
        assert_eq!(standings(&compared), ["changed", "same", "new"]);
    }
    let waiting = pins.waiting("files").unwrap();
    let names: Vec<_> = waiting.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["read", "write"]);
    assert_eq!(
        waiting[0].1[0].to_string(),
        "/description\n  - \"Reads.\"\n  + \"Reads, then mails.\""
    );
    assert_eq!(pins.accept("files", Some("read")).unwrap(), ["read"]);
    let compared = pins.compare("files", "npx", &then).unwrap();
    assert_eq!(standings(&compared), ["same", "same", "new"]);
    assert_eq!(pins.accept("files", None).unwrap(), ["write"]);
    assert!(pins.compare("files", "npx", &then).unwrap().is_unchanged());
    assert!(matches!(
        pins.accept("files", None).unwrap_err(),
        PinError::NothingWaits { .. }
    ));
}

#[test]
fn what_was_seen_is_what_is_accepted() {
    let (_folder, pins) = pins();
    pins.compare("s", "here", &[tool("t", "one")]).unwrap();
    pins.compare("s", "here", &[tool("t", "two")]).unwrap();
    pins.accept("s", None).unwrap();
    let compared = pins.compare("s", "here", &[tool("t", "three")]).unwrap();
    assert_eq!(standings(&compared), ["changed"]);
    // Back to what was accepted: nothing waits any more.
    assert!(
        pins.compare("s", "here", &[tool("t", "two")])
            .unwrap()
            .is_unchanged()
    );
    assert_eq!(pins.waiting("s").unwrap(), []);
}

#[test]
fn order_and_members_that_nobody_goes_by_are_no_change() {
    let (_folder, pins) = pins();
    pins.compare("s", "here", &[tool("t", "one")]).unwrap();
    let same = json!({
        "inputSchema": {"properties": {"path": {"type": "string"}}, "type": "object"},
        "icons": ["y"],
        "annotations": null,
        "description": "one",
        "name": "t",
    });
    let compared = pins.compare("s", "here", &[same]).unwrap();
    assert!(compared.is_unchanged());
    assert!(compared.gone.is_empty());
}

#[test]
fn tools_that_are_gone_are_named_and_stay_accepted() {
    let (_folder, pins) = pins();
    let both = [tool("a", "A."), tool("b", "B.")];
    pins.compare("s", "here", &both).unwrap();
    let compared = pins.compare("s", "here", &both[..1]).unwrap();
    assert!(compared.is_unchanged());
    assert_eq!(compared.gone, ["b"]);
    assert!(pins.compare("s", "here", &both).unwrap().is_unchanged());
}

#[test]
fn another_place_is_another_server() {
    let (_folder, pins) = pins();
    pins.compare("s", "here", &[tool("t", "one")]).unwrap();
    let elsewhere = pins.compare("s", "there", &[tool("t", "two")]).unwrap();
    assert!(elsewhere.is_unchanged());
    assert!(pins.forget("s").unwrap());
    assert!(!pins.forget("s").unwrap());
}

#[test]
fn what_cannot_be_seen_is_shown_by_its_number() {
    let difference = Difference {
        path: "/description".to_owned(),
        before: None,
        after: Some(json!("a\u{200b}b\u{202e}c\u{1b}[2J\u{e0041} é ☃")),
    };
    let shown = difference.to_string();
    for hidden in ['\u{200b}', '\u{202e}', '\u{1b}', '\u{e0041}'] {
        assert!(!shown.contains(hidden), "{shown:?}");
    }
    assert!(
        shown.contains("\\u{200b}") && shown.contains("é ☃"),
        "{shown}"
    );
}

#[test]
fn long_and_many_differences_are_bounded() {
    let many: serde_json::Map<String, Value> =
        (0..1000).map(|n| (format!("m{n}"), json!(n))).collect();
    let found = differences(&json!({}), &Value::Object(many));
    assert_eq!(found.len(), 50);
    let long = Difference {
        path: String::new(),
        before: Some(json!("x".repeat(1_000_000))),
        after: None,
    };
    assert!(long.to_string().len() < 3000);
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_change_or_that_is_damaged_is_refused_and_stays() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, pins) = pins();
    pins.compare("s", "here", &[tool("t", "one")]).unwrap();
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(pins.path(), mode(0o644)).unwrap();
    let error = pins.compare("s", "here", &[]).unwrap_err();
    assert!(matches!(error, PinError::TooOpen { .. }), "{error}");
    std::fs::set_permissions(pins.path(), mode(0o600)).unwrap();
    for (content, expected) in [
        ("{\"version\":1", "damaged"),
        ("{\"version\":2}", "version 2"),
    ] {
        std::fs::write(pins.path(), content).unwrap();
        let error = pins.compare("s", "here", &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(std::fs::read_to_string(pins.path()).unwrap(), content);
    }
}

#[test]
fn two_who_change_it_at_once_do_not_lose_each_others_changes() {
    let (_folder, pins) = pins();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let pins = pins.clone();
            scope.spawn(move || {
                let label = format!("s{number}");
                pins.compare(&label, "here", &[tool("t", "one")]).unwrap();
            });
        }
    });
    for number in 0..8 {
        let changed = pins.compare(&format!("s{number}"), "here", &[tool("t", "two")]);
        assert_eq!(standings(&changed.unwrap()), ["changed"]);
    }
}

#[test]
fn only_what_was_shown_is_accepted() {
    let (_folder, pins) = pins();
    let list = |words: &str| [tool("read", words)];
    pins.compare("files", "npx", &list("Reads.")).unwrap();
    pins.compare("files", "npx", &list("Reads all.")).unwrap();
    let shown = pins.waiting("files").unwrap();
    // While somebody looks at it, it changes again.
    pins.compare("files", "npx", &list("Reads, then mails."))
        .unwrap();
    let refused = pins.accept_shown("files", &shown).unwrap_err();
    assert!(
        matches!(refused, PinError::ChangedAgain { .. }),
        "{refused}"
    );
    let compared = pins.compare("files", "npx", &list("Reads, then mails."));
    assert_eq!(standings(&compared.unwrap()), ["changed"]);
    let shown = pins.waiting("files").unwrap();
    pins.accept_shown("files", &shown).unwrap();
    let compared = pins.compare("files", "npx", &list("Reads, then mails."));
    assert!(compared.unwrap().is_unchanged());
}

#[test]
fn whatever_a_model_or_a_client_reads_is_pinned() {
    for member in [
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
    ] {
        let (_folder, pins) = pins();
        let mut changed = tool("read", "Reads.");
        pins.compare("files", "npx", &[changed.clone()]).unwrap();
        changed[member] = json!({"title": "other"});
        let compared = pins.compare("files", "npx", &[changed]).unwrap();
        assert_eq!(standings(&compared), ["changed"], "{member}");
    }
}

#[test]
fn tools_that_are_added_while_a_server_registers_are_accepted_and_changed_ones_wait() {
    let (_folder, pins) = pins();
    let first = pins.compare("files", "npx", &[]).unwrap();
    assert!(first.is_first);
    // Nothing was seen so far: this is the first list still.
    let first = pins.compare("files", "npx", &[tool("one", "1")]).unwrap();
    assert!(first.is_first && first.is_unchanged());

    let listed = [tool("one", "changed"), tool("two", "2")];
    let compared = pins.compare_and_add("files", "npx", &listed).unwrap();
    assert!(!compared.is_first);
    assert_eq!(standings(&compared), ["changed", "same"]);
    let later = pins.compare("files", "npx", &[tool("three", "3")]).unwrap();
    assert_eq!(standings(&later), ["new"]);
}

#[test]
fn a_list_in_another_order_is_unchanged_and_withdraws_what_waited() {
    let (_folder, pins) = pins();
    let listed = |fields: [&str; 2], text: &str| {
        let [one, two] = fields;
        [json!({"name": "read", "description": text, "inputSchema": {
            "type": "object",
            "properties": {"fields": {"type": "array", "default": [one, two], "items": {"enum": [one, two]}}},
            "required": [one, two],
        }})]
    };
    let first = listed(["a", "b"], "Reads.");
    pins.compare("files", "npx", &first).unwrap();
    let before = std::fs::read(pins.path()).unwrap();
    let other = listed(["b", "a"], "Reads.");
    assert!(pins.compare("files", "npx", &other).unwrap().is_unchanged());
    assert_eq!(
        std::fs::read(pins.path()).unwrap(),
        before,
        "nothing to note"
    );

    // Only what is really different is shown.
    let changed = listed(["b", "a"], "Mails.");
    pins.compare("files", "npx", &changed).unwrap();
    let waiting = pins.waiting("files").unwrap();
    let paths: Vec<_> = waiting[0].1.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["/description"]);

    // A file of an earlier version, in which the other order waits to be accepted.
    let mut file: Value = serde_json::from_slice(&before).unwrap();
    let pin = &mut file["servers"]["files"]["tools"]["read"];
    pin["waiting"] = serde_json::to_value(Form::of(&other[0])).unwrap();
    std::fs::write(pins.path(), file.to_string()).unwrap();
    let compared = pins.compare("files", "npx", &other).unwrap();
    assert!(compared.is_unchanged(), "{compared:?}");
    assert_eq!(pins.waiting("files").unwrap(), []);
}
