use haft_core::Cancel;
use haft_hosted::{FileSearchConfig, Folder, Hit, SearchRequest};
use proptest::prelude::*;

use super::{Site, ask, finds_nothing, places};

#[test]
fn a_word_is_found_with_its_line_and_the_lines_around() {
    let site = Site::with(&[(
        "guide.md",
        "# Guide\n\nbefore\nThe Retry limit is five.\nafter\n\nend\n",
    )]);
    let found = ask(&site.open(), &SearchRequest::new("retry"));
    assert_eq!(
        found.results,
        [Hit {
            rank: 1,
            path: "docs/guide.md".into(),
            line: 4,
            snippet: "3: before\n4: The Retry limit is five.\n5: after".into(),
        }]
    );
    assert_eq!(found.notes, Vec::<String>::new());
}

#[test]
fn line_numbers_are_right_anywhere_in_a_long_file() {
    let lines: Vec<_> = (1..=2000)
        .map(|number| match number % 7 {
            0 => String::new(),
            1 => format!("marker{number} {}", "words ".repeat(number % 90)),
            _ => format!("marker{number}"),
        })
        .collect();
    let site = Site::with(&[
        ("long.txt", &lines.join("\n")),
        ("windows.txt", &lines.join("\r\n")),
    ]);
    let search = site.open();
    for number in [1, 2, 29, 30, 31, 100, 1000, 1999, 2000] {
        let expected = [
            format!("docs/long.txt:{number}"),
            format!("docs/windows.txt:{number}"),
        ];
        assert_eq!(places(&search, &format!("marker{number}")), expected);
    }
}

#[test]
fn words_phrases_beginnings_and_exclusions_do_what_they_say() {
    let site = Site::with(&[
        ("a.md", "the quick brown fox"),
        ("b.md", "the brown quick dog"),
        ("c.md", "configuration of the fox"),
    ]);
    let search = site.open();
    assert_eq!(
        places(&search, "quick brown"),
        ["docs/a.md:1", "docs/b.md:1"]
    );
    assert_eq!(places(&search, "\"quick brown\""), ["docs/a.md:1"]);
    assert_eq!(places(&search, "quick -dog"), ["docs/a.md:1"]);
    assert_eq!(places(&search, "fox -\"quick brown\""), ["docs/c.md:1"]);
    assert_eq!(places(&search, "conf*"), ["docs/c.md:1"]);
    assert!(finds_nothing(&search, "conf"));
    assert_eq!(places(&search, "\"of the f\"*"), ["docs/c.md:1"]);
    assert_eq!(places(&search, "QUICK -fox"), ["docs/b.md:1"]);
}

#[test]
fn letters_of_all_scripts_are_found_with_and_without_accents() {
    let site = Site::with(&[
        ("größe.md", "Die Größe der Ärzte\n"),
        ("b.md", "Привет, мир\n日本語 テキスト\n"),
    ]);
    let search = site.open();
    for query in ["größe", "der ÄRZTE", "arzte"] {
        assert_eq!(places(&search, query), ["docs/größe.md:1"], "{query}");
    }
    assert_eq!(places(&search, "привет"), ["docs/b.md:1"]);
    assert_eq!(places(&search, "日本語"), ["docs/b.md:2"]);
}

#[test]
fn a_file_is_found_by_its_name_once() {
    let long = "text\n".repeat(500);
    let site = Site::with(&[("deep/invoice-2024.md", &long), ("empty-invoice.txt", "")]);
    let found = places(&site.open(), "invoice");
    assert_eq!(
        found,
        ["docs/deep/invoice-2024.md:1", "docs/empty-invoice.txt:1"]
    );
}

#[test]
fn where_no_passage_has_all_words_those_with_some_are_given() {
    let site = Site::with(&[("a.md", "apples and pears"), ("b.md", "plums")]);
    let found = ask(&site.open(), &SearchRequest::new("apples cherries"));
    assert_eq!(found.results.len(), 1);
    assert_eq!(
        found.notes,
        ["no passage has all of the words: these have some"]
    );
}

#[test]
fn the_best_comes_first() {
    let site = Site::with(&[
        ("a.md", &format!("needle {}", "hay ".repeat(400))),
        ("b.md", "needle needle needle"),
    ]);
    let found = ask(&site.open(), &SearchRequest::new("needle"));
    let ranked: Vec<_> = found
        .results
        .iter()
        .map(|hit| (hit.rank, hit.path.as_str()))
        .collect();
    assert_eq!(ranked, [(1, "docs/b.md"), (2, "docs/a.md")]);
}

#[test]
fn results_are_limited_in_number_and_for_each_file() {
    let many = "needle\n".repeat(1000);
    let site = Site::with(&[("many.md", &many)]);
    for number in 0..60 {
        site.put(&format!("docs/{number}.md"), "needle");
    }
    let search = site.open();
    let count = |limit| {
        let request = SearchRequest {
            limit,
            ..SearchRequest::new("needle")
        };
        let found = ask(&search, &request);
        assert_eq!(
            found.notes,
            ["there is more: raise `limit` or use rarer words"]
        );
        let of_many = found
            .results
            .iter()
            .filter(|hit| hit.path == "docs/many.md");
        assert!(of_many.count() <= 3);
        found.results.len()
    };
    assert_eq!(count(None), 10);
    assert_eq!(count(Some(1)), 1);
    assert_eq!(count(Some(0)), 1);
    assert_eq!(count(Some(999)), 50);
}

#[test]
fn results_are_limited_in_bytes() {
    let site = Site::new();
    let line = format!("{0}\n{0} needle\n{0}\n", "ж".repeat(1000));
    for number in 0..50 {
        site.put(&format!("docs/{number}.md"), &line);
    }
    let request = SearchRequest {
        limit: Some(50),
        ..SearchRequest::new("needle")
    };
    let found = ask(&site.open(), &request);
    let bytes = serde_json::to_string(&found).unwrap().len();
    assert!(bytes < 40_000, "{bytes}");
    assert!(!found.results.is_empty() && found.results.len() < 50);
    assert_eq!(
        found.notes,
        ["there is more: raise `limit` or use rarer words"]
    );
}

#[test]
fn folders_and_patterns_narrow_the_search() {
    let site = Site::with(&[
        ("a.md", "needle"),
        ("sub/b.txt", "needle"),
        ("sub/c.md", "needle"),
    ]);
    site.put("wiki/a.md", "needle");
    let config = FileSearchConfig {
        folders: vec![
            site.path("docs").into(),
            Folder::from(site.path("wiki")).named("The Wiki"),
        ],
        ..site.config()
    };
    let search = site.open_with(&config);
    let narrowed = |folder: Option<&str>, glob: Option<&str>| {
        let found = ask(
            &search,
            &SearchRequest {
                folder: folder.map(str::to_owned),
                path_glob: glob.map(str::to_owned),
                ..SearchRequest::new("needle")
            },
        );
        let mut paths: Vec<_> = found.results.into_iter().map(|hit| hit.path).collect();
        paths.sort();
        paths
    };
    assert_eq!(narrowed(Some("The Wiki"), None), ["The Wiki/a.md"]);
    assert_eq!(narrowed(Some("docs"), Some("*.txt")), ["docs/sub/b.txt"]);
    assert_eq!(
        narrowed(None, Some("*.md")),
        ["The Wiki/a.md", "docs/a.md", "docs/sub/c.md"]
    );
    assert_eq!(
        narrowed(None, Some("docs/**/*.md")),
        ["docs/a.md", "docs/sub/c.md"]
    );
    assert_eq!(
        narrowed(None, Some("sub/*")),
        ["docs/sub/b.txt", "docs/sub/c.md"]
    );
    assert!(narrowed(None, Some("*.rs")).is_empty());

    let refused = |request: &SearchRequest| {
        let error = search.search(request, &Cancel::new()).unwrap_err();
        error.to_string()
    };
    let elsewhere = SearchRequest {
        folder: Some("etc".into()),
        ..SearchRequest::new("needle")
    };
    assert_eq!(
        refused(&elsewhere),
        "there is no folder `etc`: folders are docs, The Wiki"
    );
    let broken = SearchRequest {
        path_glob: Some("[".into()),
        ..SearchRequest::new("needle")
    };
    assert!(refused(&broken).starts_with("`[` is no pattern: "));
}

#[test]
fn a_query_without_words_finds_nothing_and_says_why() {
    let site = Site::with(&[("a.md", "needle")]);
    let search = site.open();
    for query in ["", "-needle", "\"\"", "***"] {
        let found = ask(&search, &SearchRequest::new(query));
        assert!(found.results.is_empty());
        assert_eq!(found.notes, ["the query has no word to look for"]);
    }
}

#[test]
fn no_query_is_a_mistake() {
    let site = Site::with(&[(
        "a.md",
        "needle in a haystack, with \"quotes\" and text:path",
    )]);
    let search = site.open();
    let fragments = prop::sample::select(vec![
        "\"", "'", "-", "*", "(", ")", "AND", "OR", "NOT", "NEAR", "NEAR(", "text:", "path :", "{",
        "}", "^", "+", ":", ",", "\\", ";", "--", "/*", "\0", "\u{1}", "\u{300}", "needle", "in",
        "haystack", " ", "%", "_", "texts", "rank", "MATCH", "é", "日本", "\u{93e}", "²",
    ]);
    let queries = prop_oneof![
        prop::collection::vec(fragments, 0..20).prop_map(|parts| parts.concat()),
        "\\PC{0,40}",
        any::<String>(),
    ];
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&queries, |query| {
            let found = search.search(&SearchRequest::new(&query), &Cancel::new());
            prop_assert!(found.is_ok(), "{query:?}: {found:?}");
            Ok(())
        })
        .unwrap();
    // And the index has taken no harm.
    assert_eq!(places(&search, "needle"), ["docs/a.md:1"]);
}
