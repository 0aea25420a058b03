//! `load`: what a server in front of a model costs.
//!
//! What comes in: addresses and process ids of servers that `scripts/load` has started. What goes out: a
//! table of requests per second, latencies and processor time, each server beside the bare backend and
//! beside a minimal proxy. The scripted backend and that proxy live here too, as processes of their own.
//! It must never count an answer that is not the right one.

mod backend;
mod case;
mod check;
mod generator;
mod idle;
mod measure;
mod process;
mod proxy;
mod script;
mod table;
mod target;
mod wire;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use tokio::runtime::Builder;

use crate::case::Kind;
use crate::measure::Plan;
use crate::target::{Target, TargetArgument};

/// Load figures of servers that stand in front of a model.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answer as a model would, from a script, at almost no cost.
    Backend,
    /// Pass requests on to a backend and its answers back.
    Proxy {
        /// Where the backend is.
        #[arg(long)]
        backend: SocketAddr,
    },
    /// Send requests to servers in turn and print what came of it.
    Run(Box<RunArguments>),
    /// Open streams that wait for a stalled backend, and print what each takes of a server's memory.
    Idle {
        /// The server: its address, a comma, its process id.
        #[arg(long)]
        server: TargetArgument,
        /// How many streams.
        #[arg(long, default_value_t = 5000)]
        streams: usize,
    },
    /// Print what a process takes of memory, in MB.
    Memory {
        /// Its id.
        process: u32,
    },
}

#[derive(Args)]
struct RunArguments {
    /// The backend itself: its address, a comma, its process id.
    #[arg(long)]
    bare: TargetArgument,
    /// The minimal proxy.
    #[arg(long)]
    proxy: TargetArgument,
    /// `haft serve`.
    #[arg(long)]
    haft: TargetArgument,
    /// Another `haft serve`, to compare two builds.
    #[arg(long)]
    beside: Option<TargetArgument>,
    /// Another server, measured at 8 connections and without tools.
    #[arg(long)]
    peer: Option<TargetArgument>,
    /// Also measure responses that are stored.
    #[arg(long)]
    store: bool,
    /// Also measure haft in front of a backend that speaks Chat Completions.
    #[arg(long)]
    chat: bool,
    /// How many connections there are at the same time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 256])]
    connections: Vec<usize>,
    /// What kinds of requests are sent.
    #[arg(long, value_delimiter = ',', default_values_t = Kind::ALL)]
    kinds: Vec<Kind>,
    /// How often each server gets its turn.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many milliseconds a turn takes.
    #[arg(long, default_value_t = 1000)]
    turn: u64,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        // One thread is what costs least; the proxy has as many as a real one would.
        Command::Backend => on_one_thread(backend::serve()),
        Command::Proxy { backend } => {
            let runtime = Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(proxy::serve(backend))
        }
        Command::Run(arguments) => on_one_thread(run(*arguments)),
        Command::Idle { server, streams } => on_one_thread(idle::measure(server, streams)),
        Command::Memory { process } => idle::print_memory(process),
    }
}

fn on_one_thread(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work)
}

async fn run(arguments: RunArguments) -> Result<()> {
    let mut targets = vec![
        Target::bare(arguments.bare),
        Target::proxy(arguments.proxy),
        Target::haft(arguments.haft),
    ];
    if let Some(beside) = arguments.beside {
        targets.push(Target::haft(beside).beside());
        if arguments.store {
            targets.push(Target::haft(beside).beside().stored());
        }
    }
    if arguments.chat {
        targets.push(Target::haft(arguments.haft).over_chat());
    }
    if arguments.store {
        targets.push(Target::haft(arguments.haft).stored());
    }
    if let Some(peer) = arguments.peer {
        targets.push(Target::peer(peer));
        if arguments.store {
            targets.push(Target::peer(peer).stored());
        }
    }
    let plan = Plan {
        targets,
        rounds: arguments.rounds,
        turn: Duration::from_millis(arguments.turn),
    };
    for kind in arguments.kinds {
        for &connections in &arguments.connections {
            let figures = plan.measure(kind, connections).await?;
            table::print(kind, connections, &figures)?;
        }
    }
    Ok(())
}
