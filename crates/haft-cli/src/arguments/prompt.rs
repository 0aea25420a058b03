//! `haft prompt`: what its command line may say.

use clap::{Args, Subcommand};
use haft::prompt::Visibility;

use super::tools::FromConfiguration;

#[derive(Debug, Subcommand)]
pub(crate) enum PromptCommand {
    /// Print the text and the tools that a model would get, and what they cost
    #[command(after_help = "\
Examples:
  haft prompt render                          at the beginning of a conversation
  haft prompt render --open ref               after the model has read the section `ref`
  haft prompt render --section ref            what the model is told when it reads it
  haft prompt render --visibility ref=full    with `ref` in full from the start
  haft prompt render --param product=haft --json | jq .tokens

The text goes to standard output, tools and costs to standard error. Sections stand in `[[prompt.section]]` \
and in the Markdown files of `folder` in `[prompt]`. Ends with 1 if there is no such section for the model, \
with 2 if the prompt is not right.")]
    Render(RenderArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RenderArguments {
    /// Show a section in `full` or as its `summary`, for this once; may be repeated
    #[arg(long, value_name = "PATH=HOW", value_parser = path_and_visibility)]
    pub(crate) visibility: Vec<(String, Visibility)>,
    /// Take a section as one that the model has read before; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) open: Vec<String>,
    /// What stands for `$NAME` in the texts, over what `[prompt.params]` says; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) param: Vec<(String, String)>,
    /// Print what `read_section` answers for this key, in place of the prompt
    #[arg(long, value_name = "KEY")]
    pub(crate) section: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: FromConfiguration,
}

fn path_and_visibility(text: &str) -> Result<(String, Visibility), String> {
    let (path, how) = text
        .split_once('=')
        .ok_or("write `PATH=full` or `PATH=summary`")?;
    let how: Visibility = how.parse().map_err(|error| format!("{error}"))?;
    Ok((path.to_owned(), how))
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write `NAME=VALUE`")?;
    Ok((name.to_owned(), value.to_owned()))
}
