//! Chat Completions passed on as bytes, to the first backend that takes them.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use haft_core::{ModelError, Streaming};
use tokio::time::timeout;

use super::member::Visit;
use super::round::Round;
use super::{Pool, Witness, verdict};
use crate::http::{ByteStream, Forwarded};

impl Pool {
    /// Whether bodies of Chat Completions can be passed on as they are.
    pub fn passes_chat(&self) -> bool {
        self.members()[0].chat().is_some()
    }

    /// Passes a body on to those who speak Chat Completions, one after the other until one answers.
    /// `addressed` writes the body for a model of this name. What the last one says is passed on,
    /// also if it is a refusal; an answer in one piece comes whole or not at all. Of one in pieces
    /// the first is waited for, but not for longer than `patience`: from then on nobody else is asked.
    pub async fn forward(
        &self,
        streaming: Streaming,
        patience: Duration,
        addressed: impl Fn(&str) -> Bytes + Sync,
        witness: &Witness,
    ) -> Result<Forwarded, ModelError> {
        let speaks_chat = |member: &super::Member| member.chat().is_some();
        let mut round = Round::new(self.members(), None, speaks_chat);
        let mut refusal = None;
        while let Some((at, visit)) = round.next(speaks_chat) {
            let Some(chat) = visit.member().chat() else {
                continue;
            };
            let body = addressed(haft_core::Model::name(&**chat));
            let answer = match chat.forward_bytes(body, streaming).await {
                Ok(answer) => begun(answer, streaming, patience, &visit).await,
                Err(error) => Err(error),
            };
            let failure = match answer {
                Ok(answer) => match answer.failure().cloned() {
                    None => {
                        self.hear(at, Some(witness));
                        round.tell_failures(at, Some(witness));
                        return Ok(accompanied(answer, visit));
                    }
                    Some(failure) => {
                        refusal = Some(answer);
                        failure
                    }
                },
                Err(failure) => {
                    refusal = None;
                    failure
                }
            };
            if let Err(error) = round.failed(at, visit, failure) {
                return refusal.ok_or(error);
            }
        }
        refusal.ok_or_else(|| round.end())
    }

    /// Those of the backends that do not speak Chat Completions, if the others gave up over this:
    /// they can be asked in haft's own words.
    pub fn beside_chat(&self, failure: &ModelError) -> Option<Self> {
        if !verdict::is_curable(failure) {
            return None;
        }
        let others = self.members().iter();
        let mut others = others.filter(|member| member.chat().is_none()).cloned();
        let first = others.next()?;
        Some(Self::new(first, others).standing_in())
    }
}

/// Waits for the first piece of an answer in pieces, and for all of one that comes whole: until then
/// another backend may be asked.
async fn begun(
    mut answer: Forwarded,
    streaming: Streaming,
    patience: Duration,
    visit: &Visit,
) -> Result<Forwarded, ModelError> {
    if answer.failure().is_some() {
        return Ok(answer);
    }
    let rest = std::mem::replace(&mut answer.body, Box::pin(stream::empty()));
    let mut rest = rest.fuse();
    let mut first = Vec::new();
    match streaming {
        Streaming::Whole | Streaming::Either => {
            while let Some(chunk) = rest.next().await {
                first.push(Ok(chunk?));
            }
            visit.began();
        }
        Streaming::Pieces => {
            // Who is slow and not silent must not be taken for broken.
            if let Ok(chunk) = timeout(patience, rest.next()).await {
                first.extend(chunk.transpose()?.map(Ok));
                visit.began();
            }
        }
    }
    answer.body = Box::pin(stream::iter(first).chain(rest));
    Ok(answer)
}

/// Lets the breaker hear how an answer ends.
fn accompanied(mut answer: Forwarded, visit: Visit) -> Forwarded {
    let bytes = std::mem::replace(&mut answer.body, Box::pin(stream::empty()));
    answer.body = Box::pin(Accompanied { bytes, visit });
    answer
}

struct Accompanied {
    bytes: ByteStream,
    visit: Visit,
}

impl Stream for Accompanied {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.bytes.as_mut().poll_next(cx);
        match &next {
            Poll::Ready(Some(Err(error))) => self.visit.failed(error),
            Poll::Ready(None) => self.visit.succeeded(),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        next
    }
}
