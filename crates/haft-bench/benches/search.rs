//! What a search costs: a query and a build, at 4,076 and at 50,000 tools.
//!
//! The tools are those of the public sets if they are there (`HAFT_TOOLSEL`, or beside the repository),
//! else made up; more of them are made by varying their words. Beside criterion's figures it prints the
//! median and the 99th percentile over all queries, the memory, and what a change of one tool costs.

#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot start has nothing to say, and figures are for people"
)]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use haft::search::{Detail, SearchIndex, SearchRequest, Searchable};
use haft::{ToolDefinition, ToolName, Value, json};

const SIZES: [usize; 2] = [4_076, 50_000];
const QUERIES: usize = 700;

type Tools = Vec<Arc<dyn Searchable>>;

fn folder() -> PathBuf {
    let given = std::env::var_os("HAFT_TOOLSEL").map(PathBuf::from);
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/toolsel");
    given
        .unwrap_or_else(|| usual.into())
        .join("selection/sealtools")
}

fn lines(name: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(folder().join(name)).ok()?;
    text.lines()
        .map(|line| serde_json::from_str(line).ok())
        .collect()
}

const VERBS: [&str; 12] = [
    "create",
    "list",
    "delete",
    "update",
    "find",
    "send",
    "compute",
    "convert",
    "translate",
    "book",
    "track",
    "rate",
];
const OBJECTS: [&str; 16] = [
    "invoice",
    "flight",
    "patient",
    "image",
    "recipe",
    "ticket",
    "shipment",
    "contract",
    "sensor",
    "lesson",
    "playlist",
    "garden",
    "genome",
    "satellite",
    "budget",
    "bridge",
];
const FIELDS: [&str; 10] = [
    "identifier",
    "date",
    "country",
    "currency",
    "owner",
    "priority",
    "language",
    "distance",
    "threshold",
    "format",
];

/// Tools that nobody has, for where there are no sets.
fn made_up() -> Vec<Value> {
    (0..SIZES[0])
        .map(|n| {
            let (verb, object) = (VERBS[n % 12], OBJECTS[n / 12 % 16]);
            let (one, other) = (FIELDS[n / 192 % 10], FIELDS[(n / 7 + 3) % 10]);
            json!({
                "name": format!("{verb}_{object}_by_{one}_{n}"),
                "description": format!("{verb} the {object} of a customer by its {one} and {other}"),
                "parameters": {"type": "object", "properties": {
                    one: {"type": "string", "description": format!("the {one} of the {object}")},
                    other: {"type": "string", "description": format!("which {other} is wanted")}
                }}
            })
        })
        .collect()
}

fn tools(count: usize) -> Tools {
    let given = lines("tools.jsonl").unwrap_or_else(made_up);
    (0..count)
        .map(|n| tool(&given[n % given.len()], n / given.len()) as Arc<dyn Searchable>)
        .collect()
}

/// A tool of the set; further rounds get other words, the same in every run.
fn tool(given: &Value, round: usize) -> Arc<ToolDefinition> {
    let varied = |text: &str| {
        if round == 0 {
            return text.to_owned();
        }
        let words = text.split(' ').enumerate();
        let words = words.map(|(at, word)| {
            let is_other = (at + word.len()) % 3 == round % 3;
            if is_other {
                format!("{word}{}", OBJECTS[(round + at) % 16])
            } else {
                word.to_owned()
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let name = given["name"].as_str().unwrap();
    let name = if round == 0 {
        name.to_owned()
    } else {
        format!("{name}_{}_{round}", OBJECTS[round % 16])
    };
    let build = |schema: Value| {
        ToolDefinition::builder(String::from(ToolName::import(&name)))
            .description(varied(given["description"].as_str().unwrap_or_default()))
            .parameters(schema)
            .build()
    };
    build(given["parameters"].clone())
        .or_else(|_| build(json!({"type": "object"})))
        .unwrap()
}

fn queries() -> Vec<SearchRequest> {
    let made_up = || {
        let words = |n: usize| {
            format!(
                "{} the {} with the {}",
                VERBS[n % 12],
                OBJECTS[n % 16],
                FIELDS[n % 10]
            )
        };
        (0..QUERIES).map(words).collect()
    };
    let given = lines("queries.jsonl").map(|lines| {
        let texts = lines.iter().filter_map(|line| line["query"].as_str());
        texts
            .map(|text| text.chars().take(1_000).collect())
            .collect()
    });
    let texts: Vec<String> = given.unwrap_or_else(made_up);
    texts
        .into_iter()
        .map(|text| SearchRequest::new(text).detail(Detail::Names))
        .collect()
}

fn percentiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

fn search(criterion: &mut Criterion) {
    let requests = queries();
    for size in SIZES {
        let tools = tools(size);
        let build = || SearchIndex::default().following(tools.iter().cloned());
        let (index, first) = timed(build);
        let builds = (0..5).map(|_| timed(build).1).collect();
        let megabytes = index.bytes() / 1_048_576;
        println!(
            "{size} tools: build p50 {:?} (first {first:?}), {megabytes} MiB",
            percentiles(builds).0
        );
        let run = |request: &SearchRequest| black_box(index.search(request).unwrap());
        // Once around to warm up; then the fastest of three, as others run here too.
        requests.iter().for_each(|request| drop(run(request)));
        let once =
            |request: &SearchRequest| (0..3).map(|_| timed(|| run(request)).1).min().unwrap();
        let (p50, p99) = percentiles(requests.iter().map(once).collect());
        println!(
            "{size} tools: query p50 {p50:?}, p99 {p99:?} over {} queries",
            requests.len()
        );
        let without_one = || index.following(tools[1..].iter().cloned());
        let (smaller, removed) = timed(without_one);
        let (_, added) = timed(|| smaller.following(tools.iter().cloned()));
        println!("{size} tools: one removed {removed:?}, one added {added:?}");

        let mut group = criterion.benchmark_group(format!("search/{size}"));
        group.sample_size(10);
        let mut next = requests.iter().cycle();
        group.bench_function("query", |bencher| {
            bencher.iter_batched(|| next.next().unwrap(), run, BatchSize::SmallInput);
        });
        if size == SIZES[0] {
            group.bench_function("build", |bencher| bencher.iter(|| black_box(build())));
        }
        group.finish();
    }
}

criterion_group!(benches, search);
criterion_main!(benches);
