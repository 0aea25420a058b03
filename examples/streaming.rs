//! A run as it happens: one ordered stream of events, shown line by line. Text arrives in pieces,
//! calls start and finish, and a long call says how far it is.
//!
//! `cargo run -p haft-examples --example streaming`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use haft::models::OfflineModel;
use haft::{EventKind, ToolContext, ToolProgress, tool, tools};

/// Count the words of a book.
#[tool(read_only)]
async fn count_words(title: String, ctx: &ToolContext) -> String {
    for chapter in 1..=3 {
        // Real work would go here. More than five reports a second are merged into one.
        tokio::time::sleep(Duration::from_millis(250)).await;
        let message = format!("chapter {chapter}");
        ctx.progress(ToolProgress::at(chapter.into()).of(3.0).saying(message));
    }
    ctx.output_chunk(format!("{title}: done\n"));
    format!("{title} has 160,945 words")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A real one: `haft::models::OpenAiResponses::from_env("gpt-5.2")?`.
    let mut events = haft::run(OfflineModel::new())
        .tools(tools![count_words])
        .user("Count the words of the book \"Emma\".")
        .start()?;

    let (mut text, mut progress) = (String::new(), 0);
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::TurnStarted { turn, .. } => println!("turn {turn}"),
            EventKind::TextDelta { text: piece, .. } => {
                print!("{piece}");
                io::stdout().flush()?;
                text.push_str(&piece);
            }
            EventKind::ToolStarted { tool_name, .. } => println!("  {tool_name} started"),
            EventKind::ToolProgress { progress: it, .. } => {
                progress += 1;
                if let (Some(at), Some(total)) = (it.progress, it.total) {
                    println!("  {at} of {total}: {}", it.message.unwrap_or_default());
                }
                if let Some(chunk) = it.chunk {
                    print!("  | {chunk}");
                }
            }
            EventKind::ToolInvoked {
                tool_name,
                success,
                duration_ms,
                ..
            } => println!("  {tool_name} finished after {duration_ms} ms, success: {success}"),
            EventKind::RunFinished { outcome, usage, .. } => {
                println!("\n{}, {} tokens", outcome.end, usage.total_tokens());
            }
            // There are more, and there will be more: read what you need.
            _ => {}
        }
    }

    // The outcome holds everything that the events told, and the session to go on with.
    let outcome = events.finish().await;
    assert_eq!(text, outcome.text);
    assert!(progress > 0 && outcome.text.contains("160,945"));
    Ok(())
}
