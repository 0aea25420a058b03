//! What MCP servers ask in the middle of a call, on its way to the person at the desk.

use std::io::{self, Write as _};

use haft::{BoxFuture, RunStream};
use haft_mcp::{Answer, Asker, Question};
use tokio::sync::{mpsc, oneshot};

use super::desk::Desk;
use super::engine::{go_on, meanwhile};
use super::input::Typed;
use crate::inquiry::{Heard, Inquiry, Step};

/// Questions that wait at the same time; servers may ask no more of them.
const MAX_QUESTIONS: usize = 64;

/// A question that waits for its answer.
pub(super) struct Inquired {
    question: Question,
    reply: oneshot::Sender<Answer>,
}

/// Passes questions on to whoever holds the conversation.
pub(super) struct Inquirer(mpsc::Sender<Inquired>);

impl Inquirer {
    pub(super) fn new() -> (Self, mpsc::Receiver<Inquired>) {
        let (sender, receiver) = mpsc::channel(MAX_QUESTIONS);
        (Self(sender), receiver)
    }
}

impl Asker for Inquirer {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let sent = self.0.send(Inquired { question, reply }).await;
            match sent {
                Ok(()) => answer.await.unwrap_or(Answer::Cancel),
                Err(_) => Answer::Cancel,
            }
        })
    }

    /// The same person in every answer of the conversation.
    fn caller(&self) -> Option<&str> {
        Some("the person at the terminal")
    }
}

/// Puts a question to the person. Meanwhile the run goes on.
pub(super) async fn inquire(
    desk: &mut Desk,
    stream: &mut RunStream,
    asked: Inquired,
) -> io::Result<()> {
    let Inquired { question, reply } = asked;
    let (answer, held) = meanwhile(stream, desk.put(&question, &reply)).await;
    let is_late = match answer? {
        Some(answer) => reply.send(answer).is_err(),
        None => true,
    };
    go_on(desk, is_late, held)
}

impl Desk {
    /// Asks until there is an answer; none if nobody waits for it any more.
    async fn put(
        &mut self,
        question: &Question,
        reply: &oneshot::Sender<Answer>,
    ) -> io::Result<Option<Answer>> {
        self.vigil.end();
        let mut inquiry = Inquiry::new(question);
        while !reply.is_closed() {
            let (told, prompt) = match inquiry.step() {
                Step::Ask { told, prompt } => (told, prompt),
                Step::Done(answer) => return Ok(Some(answer)),
            };
            let out = self.screen.lines()?;
            for line in told {
                writeln!(out, "  {line}")?;
            }
            out.flush()?;
            inquiry.hear(&match self.input.answer(&prompt).await? {
                Typed::Line(line) => Heard::Line(line),
                Typed::Interrupted | Typed::End => Heard::Enough,
            });
        }
        Ok(None)
    }
}
