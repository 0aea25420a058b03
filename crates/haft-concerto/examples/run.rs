//! Compiles a program and runs it offline, with the mock provider in the place of models:
//! `cargo run -p haft-concerto --example run -- FILE`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program for a terminal

use std::io::Write;
use std::process::ExitCode;

use haft_concerto::host::Offline;
use haft_concerto::natives::Permissions;
use haft_concerto::vm::{Limits, Machine, Output};
use haft_concerto::{Connections, Options, Source, compile, load};

struct Terminal(std::io::BufWriter<std::io::Stdout>);

impl Output for Terminal {
    fn print(&mut self, text: &str) {
        // Nobody reads any more: the program goes on for what else it does.
        let _ = self.0.write_all(text.as_bytes());
    }

    fn log(&mut self, line: &str) {
        eprintln!("{line}");
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("usage: run FILE")?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(&Source::new(&path, &text), &options);
    eprint!("{}", compiled.render());
    let ir = compiled.ir.ok_or("not compiled")?;
    let program = load::load(ir).map_err(|error| error.to_string())?;
    let output = Box::new(Terminal(std::io::BufWriter::new(std::io::stdout())));
    let mut machine = Machine::new(program, Permissions::default(), Limits::default(), output);
    let ended = Offline::new(&mut machine, |machine, channel, payload| {
        machine
            .output()
            .print(&format!("[emit:{channel}] {payload}\n"));
    })
    .run();
    ended
        .map(drop)
        .map_err(|text| format!("runtime error: {text}"))
}
