//! `haft responses wait`.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use haft::Value;

use super::{show, text};
use crate::arguments::WaitArguments;
use crate::failure::Failure;
use crate::remote::{Remote, RemoteError};
use crate::terminal::{Spinner, print_json};
use crate::text::{counted, spoken};

/// The pauses between two questions: a short one first, then longer ones.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// How often in a row the server may not be there: it may be starting anew.
const MAX_ABSENCES: u32 = 10;

pub(super) async fn wait(arguments: &WaitArguments) -> Result<ExitCode, Box<dyn Error>> {
    let remote = Remote::connect(&arguments.remote)?;
    let spinner = Spinner::new("asking for the response");
    let ended = until_ended(&remote, &arguments.id, &spinner);
    let ended = match arguments.timeout {
        Some(limit) => {
            let timed = tokio::time::timeout(limit, spinner.during(ended)).await;
            timed.map_err(|_| too_long(&arguments.id, limit))?
        }
        None => spinner.during(ended).await,
    };
    let response = ended?;
    if arguments.json {
        print_json(&response)?;
    } else {
        show::print(&response, &[], false)?;
    }
    Ok(match text(&response, "status") {
        "completed" | "requires_action" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn too_long(id: &str, limit: Duration) -> Failure {
    let limit = spoken(limit);
    Failure::new(format!("`{id}` has not ended after {limit}"))
        .remedy("it goes on: wait again, or give it more time with `--timeout`")
}

/// Asks until the response has ended.
async fn until_ended(remote: &Remote, id: &str, spinner: &Spinner) -> Result<Value, RemoteError> {
    let mut pause = FIRST_PAUSE;
    let mut absences = 0;
    loop {
        match remote.get(&["responses", id], &[]).await {
            Ok(response) => {
                absences = 0;
                let status = text(&response, "status");
                if !matches!(status, "queued" | "in_progress") {
                    return Ok(response);
                }
                let items = response["output"].as_array().map_or(0, Vec::len);
                let items = counted(items as u64, "item");
                spinner.say(&format!("{id}: {status}, {items}"));
            }
            Err(error) if error.status.is_none() && absences < MAX_ABSENCES => {
                // A wrong address is no absence: somebody must have been there once.
                if absences == 0 && pause == FIRST_PAUSE {
                    return Err(error);
                }
                absences += 1;
                spinner.say(&format!("{id}: the server is not there, waiting for it"));
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
