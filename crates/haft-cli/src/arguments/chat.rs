//! `haft chat`: what its command line may say.

use clap::Args;

use super::{RemoteArguments, ScriptArguments};

#[derive(Debug, Args)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub(crate) struct ChatArguments {
    /// Who answers: with a server the name of one of its models; without one a `[[model]]` entry of
    /// the configuration, `offline`, or one of `openai-chat:NAME`, `openai-responses:NAME`,
    /// `anthropic:NAME`, `ollama:NAME`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// What the model is told before everything else
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// The tools that the model may use, with commas between them, or `none`
    ///
    /// Without a server all that `haft tools list` shows, if nothing is said; with a haft server those
    /// that every one has.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// Show what the model thinks, where it lets that be known
    #[arg(long)]
    pub(crate) show_reasoning: bool,
    /// Ask before every call of a tool; without a server
    #[arg(long)]
    pub(crate) ask: bool,
    /// Let calls run that would be asked about
    #[arg(long, short, conflicts_with = "ask")]
    pub(crate) yes: bool,
    /// Print one line of JSON per answer
    #[arg(long)]
    pub(crate) json: bool,
    /// Use the engine of this process, even if `HAFT_SERVER` is set
    #[arg(long, conflicts_with_all = ["server", "continue", "response", "conversation"])]
    pub(crate) local: bool,
    /// Go on where the last conversation with the server ended that was held from here
    ///
    /// Where none is remembered, or it is gone, it is the newest response of the tenant, whoever made
    /// it. What is continued is said on standard error.
    #[arg(long, short, conflicts_with_all = ["response", "conversation"])]
    pub(crate) r#continue: bool,
    /// Go on from this stored response of the server
    #[arg(long, value_name = "ID", conflicts_with = "conversation")]
    pub(crate) response: Option<String>,
    /// Go on in this conversation of the server; `new` makes one
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Messages come from standard input; whoever writes one here is told so.
    #[arg(hide = true, value_name = "MESSAGE")]
    pub(crate) messages: Vec<String>,
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

impl ChatArguments {
    /// Whether a server answers: one was named, or something that only a server has.
    pub(crate) fn is_with_server(&self) -> bool {
        let is_named = self.remote.is_named(&haft::models::process_environment);
        let is_its = self.r#continue || self.response.is_some() || self.conversation.is_some();
        !self.local && (is_named || is_its)
    }
}
