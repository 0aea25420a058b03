//! Many tools and requests for them, to see what a search costs.
//!
//! The tools are those of a public set if it is there, else made up; more of them are made by varying
//! their words.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use haft::search::{Detail, SearchIndex, SearchRequest, Searchable};
use haft::{ToolDefinition, ToolName, Value, json};
use rustix::time::{ClockId, clock_gettime};

/// How many tools there are if there is no set.
const MADE_UP: usize = 4_076;

/// Tools, behind the seam by which search reads them.
pub(crate) type Tools = Vec<Arc<dyn Searchable>>;

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

fn lines(set: &Path, name: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(set.join(name)).ok()?;
    text.lines()
        .map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Tools that nobody has, for where there is no set.
fn made_up() -> Vec<Value> {
    (0..MADE_UP)
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

/// So many tools, the same in every run.
pub(crate) fn tools(set: &Path, count: usize) -> Tools {
    let given = lines(set, "tools.jsonl").unwrap_or_else(made_up);
    (0..count)
        .filter_map(
            |n| Some(tool(&given[n % given.len()], n / given.len())? as Arc<dyn Searchable>),
        )
        .collect()
}

/// A tool of the set; further rounds get other words.
fn tool(given: &Value, round: usize) -> Option<Arc<ToolDefinition>> {
    let name = given["name"].as_str()?;
    let name = match round {
        0 => name.to_owned(),
        round => format!("{name}_{}_{round}", OBJECTS[round % 16]),
    };
    let build = |schema: Value| {
        ToolDefinition::builder(String::from(ToolName::import(&name)))
            .description(varied(
                given["description"].as_str().unwrap_or_default(),
                round,
            ))
            .parameters(schema)
            .build()
    };
    let own = build(given["parameters"].clone());
    own.or_else(|_| build(json!({"type": "object"}))).ok()
}

fn varied(text: &str, round: usize) -> String {
    if round == 0 {
        return text.to_owned();
    }
    let words = text.split(' ').enumerate().map(|(at, word)| {
        if (at + word.len()) % 3 == round % 3 {
            format!("{word}{}", OBJECTS[(round + at) % 16])
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What is searched for.
pub(crate) fn requests(set: &Path) -> Vec<SearchRequest> {
    let made_up = || {
        let words = |n: usize| {
            let (verb, object, field) = (VERBS[n % 12], OBJECTS[n % 16], FIELDS[n % 10]);
            format!("{verb} the {object} with the {field}")
        };
        (0..700).map(words).collect()
    };
    let given = lines(set, "queries.jsonl").map(|lines| {
        let texts = lines.iter().filter_map(|line| line["query"].as_str());
        texts
            .map(|text| text.chars().take(1_000).collect())
            .collect()
    });
    let texts: Vec<String> = given.unwrap_or_else(made_up);
    let request = |text| SearchRequest::new(text).detail(Detail::Names);
    texts.into_iter().map(request).collect()
}

/// What an index of so many tools costs, in milliseconds of this thread and in bytes.
pub(crate) fn cost(set: &Path, count: usize) -> Result<Value> {
    let (tools, requests) = (tools(set, count), requests(set));
    let build = || SearchIndex::default().following(tools.iter().cloned());
    let index = build();
    let builds = (0..5).map(|_| timed(build).1).collect();
    for request in &requests {
        index.search(request)?;
    }
    // The fastest of three: who runs beside it shows in the caches too.
    let once = |request| (0..3).map(|_| timed(|| index.search(request)).1).min();
    let queries: Vec<Duration> = requests.iter().filter_map(once).collect();
    let (smaller, removed) = timed(|| index.following(tools[1..].iter().cloned()));
    let (_, added) = timed(|| smaller.following(tools.iter().cloned()));
    Ok(json!({
        "tools": tools.len(),
        "queries": queries.len(),
        "build_p50_ms": percentile(builds, 50),
        "query_p50_ms": percentile(queries.clone(), 50),
        "query_p99_ms": percentile(queries, 99),
        "one_removed_ms": milliseconds(removed),
        "one_added_ms": milliseconds(added),
        "bytes": index.bytes(),
    }))
}

fn percentile(mut times: Vec<Duration>, percent: usize) -> f64 {
    times.sort_unstable();
    times
        .get(times.len() * percent / 100)
        .copied()
        .map_or(0.0, milliseconds)
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// What it costs this thread: others run on this machine too.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = own_time();
    let done = work();
    (done, own_time().saturating_sub(start))
}

fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}
