//! The commands of Concerto: what their command lines may say.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::FromConfiguration;
use super::value::at_least_one;

/// What stands for everything where something could be named.
pub(crate) const EVERYTHING: &str = "*";

pub(super) const RUN_HELP: &str = "\
Examples:
  haft run app.conc                       what its model calls need is in Concerto.toml or haft.toml
  haft run app.conc --mock                models answer offline, always the same
  haft run                                the entry of this folder's Concerto.toml
  haft run app.conc --allow-fs=data --allow-net=api.example.com
  haft run app.conc --emit json | jq .payload

Ends with 0, with 1 after `runtime error: …` or errors in the program, with 2 if the command line is \
wrong. What a program prints and emits goes to standard output, everything else to standard error.";

pub(super) const TEST_HELP: &str = "\
Examples:
  haft test app.conc
  haft test . --filter refund             those with this in their names
  haft test app.conc --live               models without a `mock` are asked

Ends with 1 if a test failed or none was found.";

pub(super) const FMT_HELP: &str = "\
Examples:
  haft fmt                                every .conc file below this folder
  haft fmt app.conc lib                   a file, and those below a folder
  haft fmt --check                        name those that are not in their usual form; end with 1
  haft fmt - < app.conc                   from standard input to standard output";

pub(super) const REPL_HELP: &str = "\
Examples:
  haft repl                               with the connections of this folder
  haft repl --mock                        models answer offline
  echo '1 + 2' | haft repl                line by line from a pipe

What is declared stays, and so do the names that `let` makes. `:help` shows the commands.";

/// A program.
#[derive(Debug, Args)]
pub(crate) struct Program {
    /// The program: `.conc`, `.conc-ir`, or the folder of a `Concerto.toml` with an `entry`
    #[arg(value_name = "FILE", default_value = ".")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) program: Program,
    /// Take every connection that a model names to be there, as `haft run --mock` does
    #[arg(long)]
    pub(crate) mock: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArguments {
    #[command(flatten)]
    pub(crate) program: Program,
    /// Where to write it; FILE with the extension `.conc-ir` where nothing is said
    #[arg(long, short, value_name = "OUT", conflicts_with = "emit_ir")]
    pub(crate) output: Option<PathBuf>,
    /// Write it to standard output
    #[arg(long)]
    pub(crate) emit_ir: bool,
    /// Take every connection that a model names to be there, as `haft run --mock` does
    #[arg(long)]
    pub(crate) mock: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FmtArguments {
    /// Files, folders with all `.conc` files below them, or `-` for standard input; this folder where
    /// nothing is said
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing: name the files that are not in their usual form, and end with 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) program: Program,
    /// Say where a runtime error happened: function, line and column
    #[arg(long)]
    pub(crate) debug: bool,
    /// Show neither emits nor warnings
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// How emits are shown: as `[emit:channel] payload`, or as one JSON object per line
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) emit: EmitForm,
    #[command(flatten)]
    pub(crate) surroundings: SurroundingsArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    #[command(flatten)]
    pub(crate) program: Program,
    /// Only tests with this in their names
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Ask the models that a test does not mock; offline they answer always the same
    #[arg(long)]
    pub(crate) live: bool,
    /// Show what tests print and emit, and where they failed
    #[arg(long)]
    pub(crate) debug: bool,
    /// Show only the result and what failed
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) permissions: PermissionArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReplArguments {
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
    #[command(flatten)]
    pub(crate) surroundings: SurroundingsArguments,
}

/// What is around a program that runs.
#[derive(Debug, Args)]
pub(crate) struct SurroundingsArguments {
    /// Let every model answer offline, always the same; no MCP server is started (also `HAFT_MOCK=1`)
    #[arg(long)]
    pub(crate) mock: bool,
    #[command(flatten)]
    pub(crate) permissions: PermissionArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// What a program may reach, beside what its manifest grants.
#[derive(Debug, Default, Clone, Args)]
#[allow(
    clippy::struct_field_names,
    reason = "each is the name of its flag on the command line"
)]
#[command(next_help_heading = "What the program may reach, beside what Concerto.toml grants")]
pub(crate) struct PermissionArguments {
    /// Read and write files, of this folder if one is named; may be repeated
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true,
        default_missing_value = EVERYTHING, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) allow_fs: Vec<String>,
    /// Send HTTP requests, to this host if one is named; may be repeated
    #[arg(long, value_name = "HOST", num_args = 0..=1, require_equals = true,
        default_missing_value = EVERYTHING, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) allow_net: Vec<String>,
    /// Read environment variables, this one if one is named; may be repeated
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        default_missing_value = EVERYTHING, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) allow_env: Vec<String>,
    /// Start the programs that `mcp` blocks of the source name
    #[arg(long)]
    pub(crate) allow_process: bool,
}

/// How much a program may use.
#[derive(Debug, Default, Clone, Copy, Args)]
#[allow(
    clippy::struct_field_names,
    reason = "each is the name of its flag on the command line"
)]
#[command(next_help_heading = "How much it may use")]
pub(crate) struct LimitArguments {
    /// How deep calls may nest; 10000 where nothing is said
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_depth: Option<NonZeroU32>,
    /// How many steps it may make; as many as it likes where nothing is said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_steps: Option<u64>,
    /// How much memory its values may take, in MiB; 1024 where nothing is said
    #[arg(long, value_name = "MIB", value_parser = at_least_one)]
    pub(crate) max_memory: Option<NonZeroU32>,
}

/// Programs whose tools are there beside haft's own.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct ScriptArguments {
    /// A Concerto program whose tools are there, too; may be repeated
    #[arg(long = "concerto", value_name = "FILE")]
    pub(crate) scripts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) permissions: PermissionArguments,
}

/// How emits are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum EmitForm {
    /// `[emit:channel] payload`
    #[default]
    Text,
    /// `{"channel":…,"payload":…}`
    Json,
}
