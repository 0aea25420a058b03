//! Clients that do everything that can be done with stored responses, at random, until the server dies.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use serde_json::{Value, json};

use crate::backend::Asked;
use crate::client::{Client, Events};
use crate::ledger::{Ask, Known, Ledger, Pending, is_final, is_last};

/// One client. What it knows outlives the server.
pub(crate) struct Worker {
    name: String,
    pub(crate) rng: Rng,
    /// So many questions were asked.
    asked: usize,
    pub(crate) ledger: Ledger,
}

impl Worker {
    pub(crate) fn new(number: usize, seed: u64) -> Self {
        Self {
            name: format!("w{number}"),
            rng: Rng::with_seed(seed.wrapping_add(number as u64)),
            asked: 0,
            ledger: Ledger::default(),
        }
    }

    /// Uses the server until it does not answer any more, which must be because it was killed.
    pub(crate) fn work(&mut self, client: &Client, shared: &str, is_killed: &AtomicBool) {
        loop {
            if let Err(error) = self.step(client, shared) {
                if !is_killed.load(Ordering::SeqCst) {
                    self.complain(format!("the server hung up, but nobody killed it: {error}"));
                }
                return;
            }
        }
    }

    pub(crate) fn complain(&mut self, problem: String) {
        self.ledger.problems.push(problem);
    }

    fn step(&mut self, client: &Client, shared: &str) -> io::Result<()> {
        match self.rng.u32(..20) {
            0..10 => self.create(client),
            10..12 => self.poll(client),
            12 => self.follow(client),
            13 => self.cancel(client),
            14 => self.delete(client),
            15..17 => self.talk(client),
            17 => self.poll_talk(client),
            _ => self.share(client, shared),
        }
    }

    pub(crate) fn tag(&mut self) -> String {
        self.asked += 1;
        format!("{}-{}", self.name, self.asked)
    }

    fn question(&mut self) -> Asked {
        let tag = self.tag();
        let calls = [0, 0, 1, 2][self.rng.usize(..4)];
        Asked::new(tag, self.rng.usize(1..15), calls, self.rng.u64(..8))
    }

    /// One of the responses that are like this.
    fn pick(&mut self, is_wanted: impl Fn(&Known) -> bool) -> Option<String> {
        let wanted = self.ledger.responses.iter();
        let wanted: Vec<_> = wanted.filter(|(_, known)| is_wanted(known)).collect();
        let chosen = wanted.get(self.rng.usize(..wanted.len().max(1)))?;
        Some(chosen.0.clone())
    }

    fn known(&mut self, id: &str, asked: &Asked) -> &mut Known {
        let known = self.ledger.responses.entry(id.to_owned());
        let known = known.or_insert_with(|| Known::new(asked.clone()));
        known.is_new = true;
        known
    }

    /// Asks for a response of any kind.
    fn create(&mut self, client: &Client) -> io::Result<()> {
        let asked = self.question();
        let mut body = json!({"input": asked.question()});
        if asked.calls > 0 {
            body["tools"] = json!([{"type": "haft:clock"}]);
        }
        let talk = self.ledger.talk.as_ref();
        let talk = talk.filter(|talk| talk.pending.is_none());
        let in_talk = match talk {
            Some(talk) if self.rng.u32(..4) == 0 => {
                body["conversation"] = json!(talk.id);
                true
            }
            _ => false,
        };
        if !in_talk
            && self.rng.bool()
            && let Some(previous) = self.pick(can_be_continued)
        {
            body["previous_response_id"] = json!(previous);
        }
        let is_background = self.rng.u32(..3) == 0;
        let is_stream = self.rng.bool();
        let is_unstored = !is_background && !in_talk && self.rng.u32(..16) == 0;
        if is_background {
            body["background"] = json!(true);
        }
        if is_unstored {
            body["store"] = json!(false);
        }
        if in_talk {
            self.pend(Pending::Exchange(asked.clone(), None));
        }
        let sent = Sent {
            asked,
            is_background,
            is_unstored,
            in_talk,
        };
        if is_stream {
            body["stream"] = json!(true);
            self.create_streamed(client, &body, &sent)
        } else {
            self.create_whole(client, &body, &sent)
        }
    }

    fn create_whole(&mut self, client: &Client, body: &Value, sent: &Sent) -> io::Result<()> {
        let (status, answer) = client.ask("POST", "/responses", Some(body))?;
        let id = answer["id"].as_str().unwrap_or_default().to_owned();
        if status != 200 || id.is_empty() {
            self.refused("a response", status, &answer);
            return Ok(());
        }
        if sent.is_background {
            self.known(&id, &sent.asked).is_background = true;
            if sent.in_talk {
                self.pend(Pending::Exchange(sent.asked.clone(), Some(id)));
            }
        } else {
            self.ended(&id, sent, answer);
        }
        Ok(())
    }

    fn create_streamed(&mut self, client: &Client, body: &Value, sent: &Sent) -> io::Result<()> {
        let mut events = match client.follow("POST", "/responses", Some(body))? {
            Ok(events) => events,
            Err((status, answer)) => {
                self.refused("a stream", status, &answer);
                return Ok(());
            }
        };
        // Some go away in between, and come back later; a run that is not in the background ends then.
        let patience = if sent.is_background && self.rng.bool() {
            self.rng.usize(1..30)
        } else {
            usize::MAX
        };
        let mut id = String::new();
        for _ in 0..patience {
            let Some(event) = events.next()? else {
                return Ok(());
            };
            if event["type"] == "response.created" {
                event["response"]["id"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut id);
                if sent.in_talk {
                    self.pend(Pending::Exchange(sent.asked.clone(), Some(id.clone())));
                }
            }
            if !sent.is_unstored {
                self.received(&id, sent, event);
            } else if is_last(&event) {
                self.ledger.unstored.push(id.clone());
            }
        }
        Ok(())
    }

    /// Notes down an event of a stored response.
    fn received(&mut self, id: &str, sent: &Sent, event: Value) {
        let last = is_last(&event).then(|| event["response"].clone());
        let known = self.known(id, &sent.asked);
        known.is_background = sent.is_background;
        known.has_log = sent.is_background;
        let expected = known.events.len();
        known.events.push(event);
        let number = known.events[expected]["sequence_number"].as_u64();
        if number != Some(expected as u64) {
            self.complain(format!("event {number:?} of `{id}` came as {expected}."));
        }
        if let Some(response) = last {
            self.ended(id, sent, response);
        }
    }

    /// A response was told to be over.
    fn ended(&mut self, id: &str, sent: &Sent, response: Value) {
        if sent.is_unstored {
            self.ledger.unstored.push(id.to_owned());
            return;
        }
        if sent.in_talk
            && let Some(talk) = &mut self.ledger.talk
        {
            talk.exchanged(&sent.asked, &response);
        }
        self.known(id, &sent.asked).whole = Some(response);
    }

    pub(crate) fn refused(&mut self, what: &str, status: u16, answer: &Value) {
        self.complain(format!("{what} was refused with {status}: {answer}"));
        // Nothing came of it.
        if let Some(talk) = &mut self.ledger.talk {
            talk.pending = None;
        }
    }

    pub(crate) fn pend(&mut self, pending: Pending) {
        if let Some(talk) = &mut self.ledger.talk {
            talk.pending = Some(pending);
        }
    }

    /// The response that the conversation waits for.
    fn awaited(&self) -> Option<(String, Asked)> {
        match self.ledger.talk.as_ref()?.pending.as_ref()? {
            Pending::Exchange(asked, Some(id)) => Some((id.clone(), asked.clone())),
            _ => None,
        }
    }

    /// Looks how a response in the background is getting on.
    fn poll(&mut self, client: &Client) -> io::Result<()> {
        match self.pick(|known| known.is_background && !known.is_over()) {
            Some(id) => self.look_at(client, &id),
            None => Ok(()),
        }
    }

    fn poll_talk(&mut self, client: &Client) -> io::Result<()> {
        match self.awaited() {
            Some((id, _)) => self.look_at(client, &id),
            None => Ok(()),
        }
    }

    fn look_at(&mut self, client: &Client, id: &str) -> io::Result<()> {
        let (status, answer) = client.get(&format!("/responses/{id}"))?;
        if status != 200 {
            self.complain(format!("`{id}` was not found: {status} {answer}"));
        } else if is_final(&answer) {
            self.found_final(id, answer);
        }
        Ok(())
    }

    /// A response in the background turned out to be over.
    fn found_final(&mut self, id: &str, response: Value) {
        if let Some((awaited, asked)) = self.awaited()
            && awaited == id
            && let Some(talk) = &mut self.ledger.talk
        {
            talk.exchanged(&asked, &response);
        }
        if let Some(known) = self.ledger.responses.get_mut(id) {
            known.is_new = true;
            known.whole = Some(response);
        }
    }

    /// Goes on with a stream that was left.
    fn follow(&mut self, client: &Client) -> io::Result<()> {
        let Some(id) = self.pick(|known| known.has_log && !known.is_over()) else {
            return Ok(());
        };
        let known = &self.ledger.responses[&id];
        let asked = known.asked.clone();
        let path = match known.events.last() {
            Some(last) => {
                let number = &last["sequence_number"];
                format!("/responses/{id}?stream=true&starting_after={number}")
            }
            None => format!("/responses/{id}?stream=true"),
        };
        let events = client.follow("GET", &path, None)?;
        let mut events: Events = match events {
            Ok(events) => events,
            Err((status, answer)) => {
                self.complain(format!(
                    "the stream of `{id}` was refused: {status} {answer}"
                ));
                return Ok(());
            }
        };
        let awaited = self.awaited();
        let sent = Sent {
            asked,
            is_background: true,
            is_unstored: false,
            in_talk: awaited.is_some_and(|(awaited, _)| awaited == id),
        };
        while let Some(event) = events.next()? {
            self.received(&id, &sent, event);
        }
        Ok(())
    }

    fn cancel(&mut self, client: &Client) -> io::Result<()> {
        let Some(id) = self.pick(|known| known.is_background && !known.is_over()) else {
            return Ok(());
        };
        self.ask_of(&id, |known| known.cancelling = Ask::InFlight);
        let (status, answer) = client.ask("POST", &format!("/responses/{id}/cancel"), None)?;
        if status != 200 {
            self.complain(format!("`{id}` was not cancelled: {status} {answer}"));
            return Ok(());
        }
        self.ask_of(&id, |known| known.cancelling = Ask::Acknowledged);
        if is_final(&answer) {
            self.found_final(&id, answer);
        }
        Ok(())
    }

    fn delete(&mut self, client: &Client) -> io::Result<()> {
        let awaited = self.awaited().map(|(id, _)| id);
        let is_left = |known: &Known| known.deletion == Ask::Never;
        let Some(id) = self.pick(is_left).filter(|id| Some(id) != awaited.as_ref()) else {
            return Ok(());
        };
        self.ask_of(&id, |known| known.deletion = Ask::InFlight);
        let (status, answer) = client.ask("DELETE", &format!("/responses/{id}"), None)?;
        if status != 200 {
            self.complain(format!("`{id}` was not deleted: {status} {answer}"));
        }
        self.ask_of(&id, |known| known.deletion = Ask::Acknowledged);
        Ok(())
    }

    fn ask_of(&mut self, id: &str, note: impl FnOnce(&mut Known)) {
        if let Some(known) = self.ledger.responses.get_mut(id) {
            known.is_new = true;
            note(known);
        }
    }
}

/// What was asked for.
struct Sent {
    asked: Asked,
    is_background: bool,
    is_unstored: bool,
    in_talk: bool,
}

fn can_be_continued(known: &Known) -> bool {
    known.whole.is_some() && known.deletion == Ask::Never
}
