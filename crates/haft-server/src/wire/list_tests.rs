use serde_json::{Value, json};

use super::*;

fn items(ids: &[&str]) -> Vec<StoredItem> {
    ids.iter()
        .map(|id| StoredItem {
            id: (*id).to_owned(),
            json: serde_json::from_str(&format!(
                r#"{{"id":"{id}",  "type":"x","status":"completed"}}"#
            ))
            .unwrap(),
        })
        .collect()
}

fn query(after: Option<&str>, limit: usize, is_descending: bool) -> PageQuery {
    PageQuery {
        after: after.map(str::to_owned),
        limit,
        is_descending,
    }
}

fn ids(page: &ListPage<'_>) -> (Vec<String>, bool) {
    let page = serde_json::to_value(page).unwrap();
    let ids = page["data"].as_array().unwrap().iter();
    (
        ids.map(|item| item["id"].as_str().unwrap().to_owned())
            .collect(),
        page["has_more"].as_bool().unwrap(),
    )
}

#[test]
fn a_page_is_written_with_the_bytes_of_the_store() {
    let items = items(&["a", "b"]);
    let page = ListPage::whole(&items, &View::default());
    assert_eq!(
        serde_json::to_string(&page).unwrap(),
        r#"{"object":"list","data":[{"id":"a",  "type":"x","status":"completed"},{"id":"b",  "type":"x","status":"completed"}],"first_id":"a","last_id":"b","has_more":false}"#
    );
}

#[test]
fn an_empty_page_has_no_ids() {
    let empty = Page::default();
    let page = ListPage::of(&empty, &View::default());
    assert_eq!(
        serde_json::to_value(&page).unwrap(),
        json!({"object": "list", "data": [], "first_id": Value::Null, "last_id": Value::Null,
            "has_more": false})
    );
}

#[test]
fn pages_follow_each_other_in_both_orders() {
    let items = items(&["a", "b", "c"]);
    for (after, limit, is_descending, expected, has_more) in [
        (None, 2, false, vec!["a", "b"], true),
        (Some("b"), 2, false, vec!["c"], false),
        (Some("c"), 2, false, vec![], false),
        (None, 2, true, vec!["c", "b"], true),
        (Some("b"), 2, true, vec!["a"], false),
        (None, 3, true, vec!["c", "b", "a"], false),
    ] {
        let page = ListPage::cut(
            &items,
            &query(after, limit, is_descending),
            &View::default(),
        );
        let expected = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(ids(&page.unwrap()), (expected, has_more));
    }
}

#[test]
fn a_reader_of_a_list_with_one_item_twice_comes_to_its_end() {
    let items = items(&["a", "b", "a", "c"]);
    let mut after: Option<String> = None;
    for _ in 0..4 {
        let query = query(after.as_deref(), 1, false);
        let page = ListPage::cut(&items, &query, &View::default()).unwrap();
        after = page.last_id.map(str::to_owned);
        if !page.has_more {
            return;
        }
    }
    panic!("the list does not end");
}

#[test]
fn a_page_behind_an_unknown_item_is_refused() {
    let error =
        ListPage::cut(&items(&["a"]), &query(Some("z"), 1, true), &View::default()).unwrap_err();
    assert_eq!(error.code, ErrorCode::ItemNotFound);
    assert_eq!(error.param.as_deref(), Some("after"));
}
