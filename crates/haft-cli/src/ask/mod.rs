//! A question to a model with two tools, watched as it happens.

mod page;

use std::error::Error;
use std::process::ExitCode;

use haft::{ToolContext, tools};

use crate::arguments::ModelChoice;
use crate::screen::{Layout, Screen};
use crate::tools::{Notes, convert_temperature, find_notes};

pub(crate) use self::page::what_next;

/// What the demonstration asks.
pub(crate) const QUESTION: &str =
    "Find the notes that contain \"Oslo\" and convert 21.5 degrees to fahrenheit.";

/// Runs the loop over one question and shows it. The code says whether the model gave its answer.
pub(crate) async fn ask(question: &str, model: &ModelChoice) -> Result<ExitCode, Box<dyn Error>> {
    let run = haft::run(model.model()?)
        .tools(tools![find_notes, convert_temperature])
        .context(ToolContext::builder().state(Notes::default()).build())
        .user(question);
    let mut screen = Screen::new(Layout::Framed);
    let began = std::time::Instant::now();
    page::open(&mut screen, question, model)?;
    let mut events = run.start()?;
    while let Some(event) = events.next().await {
        screen.show(&event)?;
    }
    let outcome = events.finish().await;
    page::close(&mut screen, &outcome, began.elapsed())?;
    Ok(if outcome.is_completed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
