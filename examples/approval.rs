//! A tool that destroys something, and who is asked first: somebody at the terminal, a rule where
//! there is no terminal, and nobody now, so that the run waits until `.approve` or `.deny`.
//!
//! `cargo run -p haft-examples --example approval`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use haft::models::OfflineModel;
use haft::{
    ApprovalRequest, Approver, BoxFuture, CallStatus, Decision, End, SuspendAlways, TrustPolicy,
    tool, tools,
};

/// Delete a file for good.
#[tool(destructive)]
fn delete_file(path: String) -> String {
    format!("deleted {path}")
}

/// Asks on the terminal; where there is none, allows what lies in `tmp/`.
struct Terminal;

impl Approver for Terminal {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            println!("  {} {}", request.definition.name(), request.arguments);
            println!("  {}", request.reason);
            if !io::stdin().is_terminal() {
                return by_rule(&request);
            }
            // Reading blocks, so it gets a thread of its own: the run's limits go on counting.
            let answer = tokio::task::spawn_blocking(yes_or_no).await;
            match answer {
                Ok(Ok(true)) => Decision::Allow,
                _ => Decision::Deny(Some("the user said no".into())),
            }
        })
    }
}

fn by_rule(request: &ApprovalRequest) -> Decision {
    match request.arguments["path"].as_str() {
        Some(path) if path.starts_with("tmp/") => Decision::Allow,
        _ => Decision::Deny(Some("only files in tmp/ may be deleted".into())),
    }
}

fn yes_or_no() -> io::Result<bool> {
    print!("  May it run? [y/N] ");
    io::stdout().flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim().eq_ignore_ascii_case("y"))
}

/// Validated calls of destructive tools run unasked unless this says otherwise.
fn run() -> haft::RunBuilder {
    let trust = TrustPolicy {
        approve_destructive: true,
        ..TrustPolicy::default()
    };
    // A real one: `haft::models::Anthropic::from_env("claude-sonnet-5")`, which gives a `Result`.
    haft::run(OfflineModel::new())
        .tools(tools![delete_file])
        .trust(trust)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for path in ["tmp/cache.bin", "etc/passwd"] {
        println!("asked at once, {path}:");
        let question = format!("Delete the file \"{path}\".");
        let outcome = run().approver(Terminal).user(question).await?;
        let call = &outcome.tool_calls[0];
        println!("  {}\n", call.result.as_ref().map_or("", |it| &it.output));
        assert!(outcome.is_completed(), "a refusal never ends a run");
        if !io::stdin().is_terminal() {
            let allowed = path.starts_with("tmp/");
            assert_eq!(call.status == CallStatus::Succeeded, allowed);
        }
    }

    // Nobody is there now: the run ends as waiting, and its session can be stored.
    println!("asked later:");
    let question = "Delete the file \"report.pdf\".";
    let outcome = run().approver(SuspendAlways).user(question).await?;
    let End::Waiting(waiting) = &outcome.end else {
        return Err(format!("expected a waiting run, got {:?}", outcome.end).into());
    };
    let request = &waiting.approvals[0];
    println!("  waits: {} ({})", request.arguments, request.reason);

    // Hours later, exactly what was shown runs. `.deny(call_id, reason)` is the other answer.
    let resumed = run()
        .session(outcome.session)
        .approve(&request.call_id)
        .await?;
    println!("  {}", resumed.text);
    assert!(resumed.is_completed() && resumed.text.contains("deleted report.pdf"));
    Ok(())
}
