//! `haft responses delete`.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft::{Value, json};

use crate::arguments::DeleteArguments;
use crate::remote::Remote;
use crate::terminal::{confirm, print_json};
use crate::text::{counted, printable};

pub(super) async fn delete(arguments: &DeleteArguments) -> Result<ExitCode, Box<dyn Error>> {
    let remote = Remote::connect(&arguments.remote)?;
    let number = arguments.ids.len() as u64;
    let question = format!("delete {} for good", counted(number, "response"));
    if !arguments.yes && !confirm(&question)? {
        writeln!(io::stderr(), "haft: nothing was deleted")?;
        return Ok(ExitCode::FAILURE);
    }
    let mut told: Vec<Value> = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for id in &arguments.ids {
        match remote.delete(&["responses", id]).await {
            Ok(deleted) => {
                if !arguments.json {
                    writeln!(io::stdout(), "deleted {id}")?;
                }
                told.push(deleted);
            }
            Err(error) => {
                code = ExitCode::FAILURE;
                writeln!(io::stderr(), "haft: {}", printable(&error.to_string()))?;
                told.push(json!({"id": id, "deleted": false, "error": error.to_string()}));
                // Whoever is not there will not be for the others either.
                if error.status.is_none() {
                    break;
                }
            }
        }
    }
    if arguments.json {
        print_json(&told)?;
    }
    Ok(code)
}
