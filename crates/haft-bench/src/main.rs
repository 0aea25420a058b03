//! `haft-bench`: runs haft over files of cases and writes what came out, for scorers to read.

mod dense;
mod hydrate;
mod jsonl;
mod many;
mod select;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::hydrate::Policy;

/// Runs haft over files of cases; one JSON line per case on standard output.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Hydrate each case's arguments with repair on: {"id", "status": "ok|repaired|error", "value"}.
    Hydrate {
        /// Cases, one JSON object per line: `id`, `input` or `arguments`, optional `schema`, `tool`.
        cases: PathBuf,
        /// What a repair may do: `arguments` (what may be executed) or `preview` (display only).
        #[arg(long, value_enum, default_value_t = Policy::Arguments)]
        policy: Policy,
    },
    /// Time the same over and over: median and 99th percentile, by outcome.
    Time {
        /// Cases as for `hydrate`.
        cases: PathBuf,
        /// How often each case is run; its fastest run counts.
        #[arg(long, default_value_t = 30)]
        rounds: usize,
    },
    /// Rank a set's tools for each of its queries: {"id", "ranked": […]}.
    Select {
        /// A folder with tools.jsonl (or a META.json that names it) and queries.jsonl.
        set: PathBuf,
        #[command(flatten)]
        options: select::Options,
    },
    /// Time search: {"tools", "build_p50_ms", "query_p50_ms", "query_p99_ms", …} for each number of tools.
    Search {
        /// A folder with tools.jsonl and queries.jsonl; where there is none, tools are made up.
        set: PathBuf,
        /// How many tools; more than the set has are made by varying them.
        #[arg(long, value_delimiter = ',', default_value = "4076,50000")]
        tools: Vec<usize>,
    },
    /// Validate each case's data: {"id", "valid"}; `id` is the line number if a case has none.
    Validate {
        /// Cases, one JSON object per line: `schema`, `data`, optional `id`.
        cases: PathBuf,
        /// The `$schema` of schemas that name none.
        #[arg(long)]
        dialect: Option<String>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Hydrate { cases, policy } => hydrate::run(&cases, policy),
        Command::Time { cases, rounds } => hydrate::time(&cases, rounds),
        Command::Select { set, options } => select::run(&set, &options),
        Command::Search { set, tools } => {
            let mut out = jsonl::Writer::new();
            for count in tools {
                out.row(&many::cost(&set, count)?)?;
            }
            out.finish()
        }
        Command::Validate { cases, dialect } => hydrate::validate(&cases, dialect.as_deref()),
    }
}
