//! The promises of search.

use std::sync::Arc;

use haft_core::{Annotations, ToolDefinition, ToolName};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tool(name: &str, description: &str) -> Arc<ToolDefinition> {
    ToolDefinition::builder(name)
        .description(description)
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap()
}

fn needing(name: &str, needs: &[&str]) -> Arc<ToolDefinition> {
    ToolDefinition::builder(name)
        .description(format!("Does {name}."))
        .parameters(json!({"type": "object"}))
        .annotations(Annotations {
            depends_on: needs.iter().map(|it| ToolName::new(*it).unwrap()).collect(),
            ..Annotations::default()
        })
        .build()
        .unwrap()
}

fn placed(server: &str, raw: &str, description: &str) -> Arc<PlacedTool> {
    let definition = tool(&format!("{server}__{raw}"), description);
    let section = SearchSection {
        key: server.to_owned(),
        title: server.to_owned(),
        summary: String::new(),
    };
    Arc::new(
        PlacedTool::new(definition)
            .of_server(server, raw)
            .in_section(section),
    )
}

fn servers() -> SearchIndex {
    SearchIndex::of([
        placed("git", "log", "Shows the commit history."),
        placed(
            "github",
            "create_issue",
            "Create a new issue in a repository.",
        ),
        placed("github", "list_issues", "List issues in a repository."),
        placed(
            "notes",
            "createIssue",
            "Create a note about issues and commits.",
        ),
        placed(
            "web",
            "fetch",
            "Fetches a page and creates a summary of the issue.",
        ),
    ])
}

fn answer(index: &SearchIndex, query: &str) -> SearchAnswer {
    index.search(&SearchRequest::new(query)).unwrap()
}

fn names(answer: &SearchAnswer) -> Vec<&str> {
    answer.hits.iter().map(|hit| &*hit.name).collect()
}

#[test]
fn a_name_in_any_spelling_comes_first_and_says_why() {
    let index = servers();
    for tool in ["git__log", "github__list_issues", "notes__createIssue"] {
        let spellings = [
            tool.to_owned(),
            tool.to_uppercase(),
            tool.replace('_', "-"),
            tool.replace('_', " "),
            format!("please use {tool} for all of it"),
            format!("select:{tool}"),
        ];
        for spelling in spellings {
            let hit = &answer(&index, &spelling).hits[0];
            assert_eq!(
                (&*hit.name, hit.reason, hit.score),
                (tool, Reason::Exact, 1.0),
                "{spelling}"
            );
        }
    }
}

#[test]
fn a_name_of_signs_alone_is_found_by_itself() {
    let fire = ToolDefinition::builder("__ed8d830565bf")
        .description("Burns things")
        .parameters(json!({"type": "object"}))
        .annotations(Annotations {
            origin: Some(String::from("🔥")),
            ..Annotations::default()
        })
        .build()
        .unwrap();
    let index = SearchIndex::of([tool("weather", "The weather in a city"), fire]);
    let answer = index.search(&SearchRequest::new(" 🔥 ")).unwrap();
    assert_eq!(names(&answer), ["__ed8d830565bf"]);
    assert_eq!(answer.hits[0].reason, Reason::Exact);
    for other in ["🔥🔥", "?", "-"] {
        let answer = index.search(&SearchRequest::new(other)).unwrap();
        assert!(answer.hits.is_empty(), "{other}");
    }
}

#[test]
fn a_name_that_two_servers_have_returns_both() {
    let found = answer(&servers(), "create issue");
    assert_eq!(
        names(&found)[..2],
        ["github__create_issue", "notes__createIssue"]
    );
    assert!(
        found.hits[..2]
            .iter()
            .all(|hit| hit.reason == Reason::Exact)
    );
}

#[test]
fn select_returns_exactly_those_tools() {
    let index = servers();
    let found = answer(&index, "select: web__fetch, git__log,nothing_of_the_kind");
    assert_eq!(names(&found), ["web__fetch", "git__log"]);
    assert!(found.exhausted);
    let one = index
        .search(&SearchRequest::new("select:web__fetch,git__log").k(1))
        .unwrap();
    assert_eq!(one.hits.len(), 2);
}

#[test]
fn a_name_of_one_word_must_look_meant() {
    let index = SearchIndex::of([
        tool("web_search", "Search the web and find pages"),
        tool("search", "Looks into files"),
        tool("md5", "A checksum"),
    ]);
    for meant in [
        "run `search` now",
        "the search tool",
        "please use search here",
        "say \"search\"",
    ] {
        assert_eq!(answer(&index, meant).hits[0].name, "search", "{meant}");
    }
    assert_eq!(
        answer(&index, "I want to search the web for pages").hits[0].name,
        "web_search"
    );
    assert_eq!(
        answer(&index, "what is the md5 of it").hits[0].reason,
        Reason::Exact
    );
}

#[test]
fn the_longest_name_counts_and_names_come_in_order_of_appearance() {
    let index = SearchIndex::of([
        tool("list_files", ""),
        tool("list_files_in_folder", ""),
        tool("send_mail", ""),
    ]);
    let found = answer(&index, "send mail about what list files in folder gives");
    let exact = found.hits.iter().filter(|hit| hit.reason == Reason::Exact);
    let exact: Vec<_> = exact.map(|hit| &*hit.name).collect();
    assert_eq!(exact, ["send_mail", "list_files_in_folder"]);
}

#[test]
fn the_beginning_of_a_name_comes_before_words() {
    let index = SearchIndex::of([
        tool("read", "Creates and creates and creates"),
        tool("create_user", "Makes one"),
        tool("create_group", "Makes one"),
    ]);
    let found = answer(&index, "create");
    assert_eq!(names(&found), ["create_user", "create_group", "read"]);
    assert_eq!(found.hits[0].reason, Reason::Prefix);
    assert!(
        answer(&index, "cr")
            .hits
            .iter()
            .all(|hit| hit.reason != Reason::Prefix)
    );
}

#[test]
fn words_are_found_in_other_forms_and_nothing_is_padded() {
    let index = servers();
    let found = answer(&index, "fetching pages");
    assert_eq!(names(&found), ["web__fetch"]);
    assert_eq!(found.hits[0].matched, ["fetching", "pages"]);
    assert!(found.exhausted);
    let typo = answer(&index, "repositry");
    assert_eq!(
        names(&typo),
        ["github__create_issue", "github__list_issues"]
    );
    assert_eq!(typo.hits[0].matched, ["repositry"]);
    for nothing in ["weather in Paris", "", "the of a", "☃", "select:"] {
        let found = answer(&index, nothing);
        assert_eq!(names(&found), [""; 0], "{nothing}");
        assert!(found.exhausted);
    }
}

#[test]
fn queries_are_dealt_out_in_turn() {
    let request = SearchRequest::of(["commit history".to_owned(), "fetch a page".to_owned()]);
    let found = servers().search(&request.k(2)).unwrap();
    assert_eq!(names(&found), ["git__log", "web__fetch"]);
    assert!(!found.exhausted);
}

#[test]
fn filters_hold_for_everything_even_for_exact_names() {
    let index = servers();
    let ask = |request: SearchRequest| {
        let found = index.search(&request).unwrap();
        let names: Vec<String> = found.hits.into_iter().map(|hit| hit.name).collect();
        (names, found.total_tools)
    };
    let create = || SearchRequest::new("create_issue");
    assert_eq!(
        ask(create().servers(["notes"])),
        (vec!["notes__createIssue".into()], 1)
    );
    let (names, total) = ask(create().sections(["github"]));
    assert_eq!(
        (&*names[0], names.len(), total),
        ("github__create_issue", 2, 2)
    );
    let (names, _) = ask(create().exclude(["github__create_issue"]));
    assert!(!names.contains(&"github__create_issue".to_owned()));
    let (names, _) = ask(SearchRequest::new("history")
        .always(["web__fetch"])
        .exclude(["git__log"]));
    assert_eq!(names, ["web__fetch"]);
}

#[test]
fn what_must_not_be_used_is_named_and_not_returned() {
    let hidden = PlacedTool::new(tool("drop_table", "Drops a table of the database."));
    let hidden = Arc::new(hidden.withheld_because("denied by the operator"));
    let open = Arc::new(PlacedTool::new(tool(
        "list_tables",
        "Lists the tables of the database.",
    )));
    let index = SearchIndex::of([hidden, open]);
    assert_eq!(index.len(), 1);
    for query in ["drop_table", "use drop table on it", "select:drop_table"] {
        let found = answer(&index, query);
        assert!(
            found.hits.iter().all(|hit| hit.name != "drop_table"),
            "{query}"
        );
        assert_eq!(found.withheld[0].why, "denied by the operator", "{query}");
    }
    assert!(answer(&index, "tables").withheld.is_empty());
}

#[test]
fn what_a_tool_needs_follows_it_once_and_not_without_end() {
    let index = SearchIndex::of([
        needing("book_flight", &["find_airport", "log_in"]),
        needing("find_airport", &["locate"]),
        needing("log_in", &["book_flight"]),
        needing("locate", &["log_in"]),
    ]);
    let found = answer(&index, "select:book_flight");
    let hits: Vec<_> = found
        .hits
        .iter()
        .map(|hit| (&*hit.name, hit.via.as_deref()))
        .collect();
    let expected = [
        ("book_flight", None),
        ("find_airport", Some("book_flight")),
        ("log_in", Some("book_flight")),
        ("locate", Some("find_airport")),
    ];
    assert_eq!(hits, expected);
    assert_eq!(found.hits[1].reason, Reason::Dependency);
    let capped = SearchRequest::new("select:book_flight").max_dependencies(1);
    assert_eq!(index.search(&capped).unwrap().hits.len(), 2);
}

#[test]
fn a_budget_cuts_from_the_end_but_never_the_first_and_what_it_needs() {
    let index = SearchIndex::of([
        needing("book_flight", &["log_in"]),
        needing("book_hotel", &["log_in", "find_city"]),
        needing("log_in", &[]),
        needing("find_city", &[]),
    ]);
    let ask = |budget| {
        let request = SearchRequest::new("select:book_flight,book_hotel").detail(Detail::Full);
        index.search(&request.budget_tokens(budget)).unwrap()
    };
    let all = ask(1_000);
    assert_eq!(
        names(&all),
        ["book_flight", "book_hotel", "log_in", "find_city"]
    );
    assert_eq!(names(&ask(all.shown_tokens)), names(&all));
    let cut = ask(all.shown_tokens - 1);
    assert_eq!(names(&cut), ["book_flight", "log_in"]);
    assert!(!cut.exhausted && cut.shown_tokens < all.shown_tokens);
    assert_eq!(names(&ask(0)), ["book_flight", "log_in"]);
}

#[test]
fn each_detail_shows_what_it_says() {
    let index = servers();
    let shown = |detail| {
        let request = SearchRequest::new("git__log").detail(detail);
        serde_json::to_value(&index.search(&request).unwrap().hits[0]).unwrap()
    };
    assert_eq!(shown(Detail::Brief)["brief"], "Shows the commit history.");
    assert_eq!(shown(Detail::Full)["definition"]["name"], "git__log");
    assert_eq!(
        shown(Detail::Names),
        json!({"name": "git__log", "server": "git", "section": "git", "score": 1.0,
            "reason": "exact", "matched": ["git", "log"]})
    );
}

#[test]
fn sections_are_ranked_by_their_best_tool() {
    let sections = servers().search_sections("list issues", 3);
    assert_eq!(sections[0].section, "github");
    assert_eq!(sections[0].best, "github__list_issues");
    assert!((sections[0].score - 1.0).abs() < 1e-9);
}

#[test]
fn a_request_that_cannot_be_made_says_why() {
    let index = servers();
    let ask = |queries: Vec<String>| index.search(&SearchRequest::of(queries)).unwrap_err();
    assert_eq!(ask(vec![]), SearchError::NoQuery);
    assert_eq!(
        ask(vec!["a".into(); 9]),
        SearchError::TooManyQueries { count: 9 }
    );
    let long = ask(vec!["a".into(), "b".repeat(1_001)]);
    assert_eq!(
        long,
        SearchError::QueryTooLong {
            at: 1,
            chars: 1_001
        }
    );
}

#[test]
fn only_what_is_new_is_read() {
    let many = |count: usize| -> Vec<Arc<dyn Searchable>> {
        let tools = (0..count).map(|n| tool(&format!("tool_{n}"), "does something"));
        tools.map(|tool| tool as Arc<dyn Searchable>).collect()
    };
    let first = SearchIndex::default().following(many(100));
    // The same tools again, but other objects: a server told its list anew.
    let again = first.following(many(100));
    let [one, other] = [&first, &again].map(|index| &index.inner.parts);
    assert_eq!((one.len(), other.len()), (1, 1));
    assert!(Arc::ptr_eq(&one[0].segment, &other[0].segment));
    let more = first.following(many(101));
    assert!(
        more.inner
            .parts
            .iter()
            .any(|part| Arc::ptr_eq(&part.segment, &one[0].segment))
    );
    assert!(first.is_of(&first.inner.tools) && !first.is_of(&again.inner.tools));
}

#[test]
fn what_changed_behind_the_same_words_is_what_is_returned() {
    let schema = |kind: &str| {
        let schema = json!({"type": "object", "properties": {"n": {"type": kind}}});
        let tool = ToolDefinition::builder("count")
            .parameters(schema)
            .build()
            .unwrap();
        // The type of a property is nothing that anybody searches for.
        tool as Arc<dyn Searchable>
    };
    let index = SearchIndex::default()
        .following([schema("integer")])
        .following([schema("number")]);
    let request = SearchRequest::new("count").detail(Detail::Full);
    let Shown::Definition { definition: shown } = &index.search(&request).unwrap().hits[0].shown
    else {
        panic!("no definition");
    };
    assert_eq!(shown["parameters"]["properties"]["n"]["type"], "number");
}

/// Tools over few words, so that they share them.
fn some_tool() -> impl Strategy<Value = Arc<ToolDefinition>> {
    let word = prop::sample::select(vec![
        "mail", "mails", "send", "sender", "file", "profile", "read", "weather", "whether",
        "größe", "東京",
    ]);
    let words = |count| prop::collection::vec(word.clone(), count);
    (words(1..3), words(0..6), 0..40_u32).prop_map(|(name, text, number)| {
        let name = ToolName::import(&format!("{}_{number}", name.join("_")));
        tool(name.as_str(), &text.join(" "))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_way_to_a_list_does_not_show(
        tools in prop::collection::vec(some_tool(), 1..40),
        steps in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..60), 1..12),
    ) {
        let queries = ["send a mail", "profil", "weather file größe", "read 東京", "mail_1", "file"];
        let mut index = SearchIndex::default();
        for step in steps {
            let chosen = step.iter().map(|at| Arc::clone(at.get(&tools)) as Arc<dyn Searchable>);
            let chosen: Vec<_> = chosen.collect();
            index = index.following(chosen.clone());
            let from_scratch = SearchIndex::default().following(chosen);
            for query in queries {
                let bytes = |index: &SearchIndex| {
                    let request = SearchRequest::new(query).k(100);
                    serde_json::to_string(&index.search(&request).unwrap()).unwrap()
                };
                prop_assert_eq!(bytes(&index), bytes(&from_scratch));
                let found = index.inner.clone();
                let exact = |inner: &index::Inner| {
                    let query = query::Query::read(query);
                    (rankers::by_stems(inner, &query, None), rankers::by_runs(inner, &query, None))
                };
                // To the last bit, not only after rounding.
                prop_assert_eq!(exact(&found), exact(&from_scratch.inner));
            }
        }
    }

    #[test]
    fn no_query_and_no_tool_is_too_strange(name in ".{0,40}", text in ".{0,200}", query in ".{0,200}") {
        let definition = ToolDefinition::builder(String::from(ToolName::import(&name)))
            .foreign_description(&text)
            .parameters(json!({"type": "object"}))
            .build();
        if let Ok(definition) = definition {
            let index = SearchIndex::of([definition, tool("other", "another one")]);
            let found = index.search(&SearchRequest::new(query)).unwrap();
            prop_assert!(found.hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
        }
    }
}
