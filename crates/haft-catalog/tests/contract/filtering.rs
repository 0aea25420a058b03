//! The request-time filter: golden vectors and contract of `dynamic-tools.md` §9.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_catalog::{FilterOptions, KeywordIndex, LexicalScorer, PickResult, filter_tools, rank};
use haft_core::{Annotations, ScoreError, Scorer, ToolDefinition, scorer_fn};
use serde_json::json;

fn tool(name: &str, description: &str, tags: &[&str], safe: Option<bool>) -> Arc<ToolDefinition> {
    ToolDefinition::builder(name)
        .description(description)
        .parameters(json!({"type": "object"}))
        .annotations(Annotations {
            tags: tags.iter().map(ToString::to_string).collect(),
            safe,
            ..Annotations::default()
        })
        .build()
        .unwrap()
}

fn golden() -> [Arc<ToolDefinition>; 5] {
    [
        tool(
            "get_current_weather",
            "Get the current weather for a given location",
            &[],
            None,
        ),
        tool(
            "delete_file",
            "Delete a file from disk",
            &["fs"],
            Some(false),
        ),
        tool("listFiles", "List files in a directory", &["fs"], None),
        tool("search_web", "Search the web for pages", &[], None),
        tool("HTTPFetch", "Fetch one page over HTTP", &[], None),
    ]
}

fn default() -> FilterOptions {
    FilterOptions::default()
}

fn scored_by(scorer: Arc<dyn Scorer>) -> FilterOptions {
    FilterOptions {
        scorer: Some(scorer),
        ..default()
    }
}

fn pairs(picked: &[PickResult]) -> Vec<(&str, f64)> {
    picked
        .iter()
        .map(|r| (r.tool.name().as_str(), r.score))
        .collect()
}

/// A query, options, and the tools with their scores that come back.
type Row = (&'static str, FilterOptions, &'static [(&'static str, f64)]);

#[test]
fn the_golden_vectors_hold() {
    const TWO_THIRDS: f64 = 2.0 / 3.0;
    let unsafe_too = FilterOptions {
        allow_unsafe: true,
        ..default()
    };
    let picky = FilterOptions {
        min_score: 0.9,
        ..default()
    };
    let lax = FilterOptions {
        min_score: 0.0,
        ..default()
    };
    let table: [Row; 8] = [
        (
            "What's the weather in Paris?",
            default(),
            &[("get_current_weather", 0.5)],
        ),
        (
            "list the files on disk",
            default(),
            &[("listFiles", TWO_THIRDS)],
        ),
        (
            "list the files on disk",
            unsafe_too,
            &[("delete_file", TWO_THIRDS), ("listFiles", TWO_THIRDS)],
        ),
        (
            "fetch pages from the web",
            default(),
            &[("search_web", TWO_THIRDS), ("HTTPFetch", TWO_THIRDS)],
        ),
        ("fetch pages from the web", picky, &[]),
        ("hello there", default(), &[]),
        (
            "hello there",
            lax,
            &[
                ("get_current_weather", 0.0),
                ("listFiles", 0.0),
                ("search_web", 0.0),
            ],
        ),
        ("the of a", default(), &[]),
    ];
    for (query, options, expected) in table {
        let picked = filter_tools(query, golden(), &options);
        assert_eq!(pairs(&picked), expected, "{query} with {options:?}");
    }
}

#[test]
fn the_reason_lists_the_matched_tokens_in_query_order() {
    let picked = filter_tools("fetch pages from the web", golden(), &default());
    assert_eq!(picked[0].reason.as_deref(), Some("matched: page, web"));
    assert_eq!(picked[1].reason.as_deref(), Some("matched: fetch, page"));
    assert_eq!(picked[0].provenance.scorer, "keyword");
    let lax = FilterOptions {
        min_score: 0.0,
        ..default()
    };
    assert_eq!(filter_tools("hello there", golden(), &lax)[0].reason, None);
}

#[test]
fn other_input_is_read_as_its_compact_json() {
    let picked = filter_tools(json!({"want": ["weather"]}), golden(), &default());
    assert_eq!(pairs(&picked), [("get_current_weather", 0.5)]);
}

#[test]
fn later_entries_of_a_seen_name_are_dropped() {
    let first = tool("a", "nothing here", &[], None);
    let second = tool("a", "weather", &[], None);
    assert!(filter_tools("weather", [first, second], &default()).is_empty());
    // Names are compared before safety: an unsafe first entry hides a safe second one.
    let hidden = tool("b", "weather", &[], Some(false));
    let shown = tool("b", "weather", &[], None);
    assert!(filter_tools("weather", [hidden, shown], &default()).is_empty());
}

#[test]
fn unsafe_tools_are_dropped_before_any_scorer_sees_them() {
    let all = scorer_fn("all", |_, tool| {
        assert_ne!(tool.annotations().safe, Some(false));
        Ok(1.0)
    });
    let picked = filter_tools("x", golden(), &scored_by(all));
    assert_eq!(picked.len(), 3);
    assert!(
        picked
            .iter()
            .all(|result| result.provenance.details.is_empty())
    );
}

#[test]
fn bad_scores_are_zero_with_an_error_and_spoil_no_other() {
    let scorer = scorer_fn("odd", |_, tool| match tool.name().as_str() {
        "get_current_weather" => Ok(f64::NAN),
        "listFiles" => Err(ScoreError {
            reason: "no idea".into(),
        }),
        "search_web" => panic!("boom"),
        _ => Ok(7.0),
    });
    let options = FilterOptions {
        min_score: 0.0,
        max_candidates: 9,
        ..scored_by(scorer)
    };
    let picked = filter_tools("x", golden(), &options);
    assert_eq!(
        pairs(&picked),
        [
            ("HTTPFetch", 1.0),
            ("get_current_weather", 0.0),
            ("listFiles", 0.0),
            ("search_web", 0.0)
        ]
    );
    let error = |at: usize| picked[at].provenance.details["error"].as_str().unwrap();
    assert!(error(1).contains("not a number"));
    assert_eq!(error(2), "no idea");
    assert!(error(3).contains("boom"));
    assert_eq!(picked[3].provenance.scorer, "odd");
}

#[test]
fn scores_are_clamped() {
    for (raw, clamped) in [(-3.0, 0.0), (f64::INFINITY, 1.0), (0.4, 0.4)] {
        let scorer = scorer_fn("raw", move |_, _| Ok(raw));
        let options = FilterOptions {
            min_score: 0.0,
            ..scored_by(scorer)
        };
        let picked = filter_tools("x", golden(), &options);
        assert_eq!(picked[0].score.to_bits(), f64::to_bits(clamped));
    }
}

#[test]
fn a_scorer_that_panics_while_preparing_rates_nothing() {
    struct Unprepared;
    impl Scorer for Unprepared {
        fn name(&self) -> &'static str {
            "unprepared"
        }
        fn prepare<'a>(
            &'a self,
            _: &'a str,
            _: &'a [Arc<ToolDefinition>],
        ) -> haft_core::Scoring<'a> {
            panic!("not today")
        }
    }
    assert!(filter_tools("x", golden(), &scored_by(Arc::new(Unprepared))).is_empty());
}

#[test]
fn no_candidates_asked_none_given() {
    let options = FilterOptions {
        max_candidates: 0,
        min_score: 0.0,
        ..default()
    };
    assert!(filter_tools("weather", golden(), &options).is_empty());
}

/// R30
#[test]
fn out_of_time_the_first_eligible_tools_are_returned_unscored() {
    let slow = scorer_fn("slow", |_, _| {
        std::thread::sleep(Duration::from_secs(5));
        Ok(1.0)
    });
    for timeout in [Duration::ZERO, Duration::from_millis(20)] {
        let options = FilterOptions {
            timeout: Some(timeout),
            ..scored_by(slow.clone())
        };
        let started = Instant::now();
        let picked = filter_tools("weather", golden(), &options);
        assert!(started.elapsed() < Duration::from_secs(2));
        assert_eq!(
            pairs(&picked),
            [
                ("get_current_weather", 0.0),
                ("listFiles", 0.0),
                ("search_web", 0.0)
            ],
            "the unsafe tool stays out"
        );
        assert!(
            picked
                .iter()
                .all(|result| result.reason.as_deref() == Some("timeout"))
        );
    }
}

#[test]
fn in_time_a_timeout_changes_nothing() {
    let options = FilterOptions {
        timeout: Some(Duration::from_mins(1)),
        ..default()
    };
    let query = "fetch pages from the web";
    assert_eq!(
        filter_tools(query, golden(), &options),
        filter_tools(query, golden(), &default())
    );
}

#[test]
fn up_to_20_tools_keyword_scores_and_above_lexical() {
    let weather = |count| (0..count).map(|n| tool(&format!("weather_{n}"), "Weather", &[], None));
    let few = filter_tools("weather", weather(20), &default());
    assert_eq!(few[0].provenance.scorer, "keyword");
    let picked = filter_tools("weather", weather(21), &default());
    assert_eq!(picked[0].provenance.scorer, "lexical");
    let names: Vec<_> = picked.iter().map(|r| r.tool.name().as_str()).collect();
    assert_eq!(
        names,
        ["weather_0", "weather_1", "weather_2"],
        "ties keep the order"
    );
}

#[test]
fn lexical_scores_between_0_and_1_and_says_why() {
    let scorer: Arc<dyn Scorer> = Arc::new(LexicalScorer::new());
    let ask = |query: &str, min_score| {
        let options = FilterOptions {
            min_score,
            max_candidates: 9,
            ..scored_by(Arc::clone(&scorer))
        };
        filter_tools(query, golden(), &options)
    };
    let picked = ask("fetching the pages", 0.05);
    assert_eq!(picked[0].tool.name().as_str(), "HTTPFetch");
    assert_eq!(
        picked[0].reason.as_deref(),
        Some("matched: fetching, pages")
    );
    assert!(picked.iter().all(|it| it.score > 0.0 && it.score <= 1.0));
    let named = ask("please use listFiles for the weather", 0.05);
    assert_eq!(pairs(&named)[0], ("listFiles", 1.0));
    assert!(named[1].score < 1.0);
    assert!(ask("hello there", 0.05).is_empty());
    let nothing = ask("hello there", 0.0);
    assert_eq!(nothing.len(), 4);
    assert!(
        nothing
            .iter()
            .all(|it| it.score == 0.0 && it.reason.is_none())
    );
}

#[test]
fn rank_gives_the_k_best_without_zero_scores_and_ties_in_order() {
    let tools = golden();
    let best = rank("fetch pages from the web", &tools, 20);
    assert_eq!(
        pairs(&best),
        [("search_web", 2.0 / 3.0), ("HTTPFetch", 2.0 / 3.0)]
    );
    let best = rank("delete file", &tools, 20);
    assert_eq!(pairs(&best), [("delete_file", 1.0), ("listFiles", 0.5)]);
    assert_eq!(rank("delete file", &tools, 1).len(), 1);
    assert!(rank("hello there", &tools, 20).is_empty());
    assert!(rank("", &tools, 20).is_empty());
}

#[test]
fn an_index_ranks_as_the_scorer_scores() {
    let tools = golden();
    let index = KeywordIndex::new(&tools);
    let all = FilterOptions {
        max_candidates: 20,
        min_score: f64::MIN_POSITIVE,
        allow_unsafe: true,
        ..default()
    };
    for query in [
        "list files on disk",
        "fetch a page",
        "weather",
        "x",
        "files files fs",
    ] {
        assert_eq!(
            index.rank(query, 20),
            filter_tools(query, &tools, &all),
            "{query}"
        );
    }
}
