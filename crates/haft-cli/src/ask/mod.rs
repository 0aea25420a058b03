//! A question to a model with two tools, watched as it happens.

mod screen;

use std::error::Error;
use std::io;
use std::process::ExitCode;

use haft::{ToolContext, tools};

use self::screen::Screen;
use crate::arguments::ModelChoice;
use crate::tools::{Notes, convert_temperature, find_notes};

/// What the demonstration asks.
pub(crate) const QUESTION: &str =
    "Find the notes that contain \"Oslo\" and convert 21.5 degrees to fahrenheit.";

/// Runs the loop over one question and shows it. The code says whether the model gave its answer.
pub(crate) async fn ask(question: &str, model: &ModelChoice) -> Result<ExitCode, Box<dyn Error>> {
    let run = haft::run(model.model()?)
        .tools(tools![find_notes, convert_temperature])
        .context(ToolContext::builder().state(Notes::default()).build())
        .user(question);
    let mut screen = Screen::open(question, model)?;
    let mut events = run.start()?;
    while let Some(event) = events.next().await {
        screen.show(&event)?;
    }
    let outcome = events.finish().await;
    screen.close(&outcome)?;
    Ok(if outcome.is_completed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where a person goes from the demonstration.
pub(crate) fn what_next() -> io::Result<()> {
    screen::what_next()
}
