//! What a search costs: a query and a build, at 4,076 and at 50,000 tools.
//!
//! The tools are those of the public sets if they are there (`HAFT_TOOLSEL`, or beside the repository),
//! else made up. Beside criterion's figures it prints the median and the 99th percentile over all
//! queries, the memory, and what a change of one tool costs.

#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot start has nothing to say, and figures are for people"
)]

#[path = "../src/many.rs"]
mod many;

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use haft::search::SearchIndex;

fn set() -> PathBuf {
    let given = std::env::var_os("HAFT_TOOLSEL").map(PathBuf::from);
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/toolsel");
    let folder = given.unwrap_or_else(|| usual.into());
    folder.join("selection/sealtools")
}

fn search(criterion: &mut Criterion) {
    let requests = many::requests(&set());
    for size in [4_076, 50_000] {
        println!("{}", many::cost(&set(), size).unwrap());
        let tools = many::tools(&set(), size);
        let build = || SearchIndex::default().following(tools.iter().cloned());
        let index = build();
        let mut group = criterion.benchmark_group(format!("search/{size}"));
        group.sample_size(10);
        let mut next = requests.iter().cycle();
        group.bench_function("query", |bencher| {
            let run = |request| black_box(index.search(request).unwrap());
            bencher.iter_batched(|| next.next().unwrap(), run, BatchSize::SmallInput);
        });
        group.bench_function("build", |bencher| bencher.iter(|| black_box(build())));
        group.finish();
    }
}

criterion_group!(benches, search);
criterion_main!(benches);
