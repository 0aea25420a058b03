//! `haft prompt`: what a model would see of the prompt that this folder's configuration describes.
//!
//! What comes in: the sections of a configuration, the tools that `haft serve` would have, and what the
//! command line says of a conversation. What goes out: the text byte for byte, or what reading one section
//! gives, and beside it what is offered and what that costs. No model is asked.

mod page;

use std::error::Error;
use std::process::ExitCode;

use haft::prompt::{Context, Prompt, RenderError};

use crate::arguments::{PromptCommand, RenderArguments, ScriptArguments};
use crate::config::{Complaint, PromptConfig, build_prompt, not_rendered, without_models};
use crate::failure::Failure;
use crate::text::{nearest, one_line};
use crate::toolbox::{Toolbox, note};

/// Performs it.
pub(crate) async fn perform(command: PromptCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        PromptCommand::Render(arguments) => render(&arguments).await,
    }
}

async fn render(arguments: &RenderArguments) -> Result<ExitCode, Box<dyn Error>> {
    let mut resolved = without_models(arguments.from.config.as_deref())?;
    let config = resolved.prompt.take().ok_or_else(no_prompt)?;
    let toolbox = Toolbox::of(resolved)?;
    let of_configuration = ScriptArguments::default();
    let toolbox = toolbox
        .with_scripts(arguments.from.config.as_deref(), &of_configuration)
        .await?;
    let prompt = built(&config, toolbox).await?;
    let context = context(&prompt, &config, arguments)?;
    let placeholders = prompt.placeholders();
    let given = arguments.param.iter().map(|(name, _)| name.as_str());
    for name in given.filter(|name| !placeholders.contains(name)) {
        let shown = one_line(name, 64);
        note(&match nearest(name, placeholders.iter().copied()) {
            Some(near) => format!("nothing uses `--param {shown}`: did you mean `{near}`?"),
            None => format!("nothing uses `--param {shown}`: no text has a placeholder `${shown}`"),
        });
    }
    if let Some(key) = &arguments.section {
        let read = prompt.read(key, &context);
        let read = read.map_err(|it| refused(&config, &it))?;
        page::read(&read, arguments.json)?;
        return Ok(if read.is_success {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let rendered = prompt.render(&context);
    let rendered = rendered.map_err(|it| refused(&config, &it))?;
    page::rendered(&prompt, &rendered, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The prompt with its tools. MCP servers are asked only if it has tools of theirs.
async fn built(config: &PromptConfig, toolbox: Toolbox) -> Result<Prompt, Box<dyn Error>> {
    let own = toolbox.catalog().snapshot();
    let is_missing = |name: &str| {
        let bare = name.strip_prefix(crate::catalogue::PREFIX).unwrap_or(name);
        own.get(bare).is_none()
    };
    let toolbox = if config.has_servers() || config.tool_names().any(is_missing) {
        toolbox.with_tools_of(None).await?
    } else {
        toolbox
    };
    toolbox.close().await;
    Ok(build_prompt(config, Some(&toolbox.catalog().snapshot()))?)
}

fn context(
    prompt: &Prompt,
    config: &PromptConfig,
    arguments: &RenderArguments,
) -> Result<Context<'static>, Failure> {
    let mut context = Context::new().params(config.params.clone());
    for (name, value) in &arguments.param {
        context.params.set(name, value);
    }
    for (path, visibility) in &arguments.visibility {
        known(prompt, path)?;
        context.passed.set(path, *visibility);
    }
    for path in &arguments.open {
        known(prompt, path)?;
        context = context.opened(path);
    }
    Ok(context)
}

fn known(prompt: &Prompt, path: &str) -> Result<(), Failure> {
    if prompt.contains(path) {
        return Ok(());
    }
    let paths: Vec<&str> = prompt.sections().map(|it| it.path()).collect();
    let failure = Failure::mistake(format!("there is no section `{}`", one_line(path, 128)));
    Err(failure.remedy(match nearest(path, paths.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is `{}`", paths.join("`, `")),
    }))
}

fn no_prompt() -> Failure {
    Failure::mistake("the configuration has no prompt").remedy(
        "write `[[prompt.section]]` entries with `key`, `title` and `body`, or name a folder of Markdown \
         files as `folder` of `[prompt]`",
    )
}

/// Why it is not rendered, at its place.
fn refused(config: &PromptConfig, error: &RenderError) -> Complaint {
    let complaint = not_rendered(config, error);
    match error {
        RenderError::UnknownPlaceholder { name, .. } => complaint.remedy(format!(
            "say it with `--param {name}=VALUE`, or in `[prompt.params]` of the configuration: \
             `{name} = \"…\"`"
        )),
        _ => complaint,
    }
}
