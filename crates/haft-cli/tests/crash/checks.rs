//! What must hold after a restart, asked of the server as any client can ask.

use std::collections::BTreeSet;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::backend::{Asked, text};
use crate::client::Client;
use crate::ledger::{
    Ask, Expected, Known, Ledger, Outcome, Pending, Shared, Talk, is_final, is_last,
};
use crate::talking::is_item;

/// No response needs so long to come to its end after a restart.
const SETTLING: Duration = Duration::from_mins(1);

/// Checks the responses that one client knows, and brings what it knows up to date. `is_old` says which
/// of those that were checked before are looked at again.
pub(crate) fn check_responses(
    client: &Client,
    ledger: &mut Ledger,
    is_old: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut problems = std::mem::take(&mut ledger.problems);
    let mut gone = Vec::new();
    for (id, known) in &mut ledger.responses {
        if !known.is_new && !is_old(id) {
            continue;
        }
        match response(client, id, known) {
            Ok(true) => known.is_new = false,
            Ok(false) => gone.push(id.clone()),
            Err(problem) => problems.push(format!("`{id}` ({:?}): {problem}", known.asked)),
        }
    }
    for id in gone {
        ledger.responses.remove(&id);
    }
    for id in ledger.unstored.drain(..) {
        expect_gone(client, &format!("/responses/{id}"), &mut problems);
    }
    problems
}

/// Checks the conversations that one client knows. Nothing is worked on any more.
pub(crate) fn check_talks(client: &Client, ledger: &mut Ledger) -> Vec<String> {
    let mut problems = Vec::new();
    for id in ledger.talks_gone.drain(..) {
        expect_gone(client, &format!("/conversations/{id}"), &mut problems);
    }
    if let Some(known) = ledger.talk.take() {
        let id = known.id.clone();
        match talk(client, known) {
            Ok(talk) => ledger.talk = talk,
            Err(problem) => problems.push(format!("conversation `{id}`: {problem}")),
        }
    }
    problems
}

fn expect_gone(client: &Client, path: &str, problems: &mut Vec<String>) {
    match client.get(path) {
        Ok((404, _)) => {}
        other => problems.push(format!("{path} must not be there: {other:?}")),
    }
}

fn told(error: &io::Error) -> String {
    format!("the restarted server does not answer: {error}")
}

/// Whether the response is still there; an error if it is not as it must be.
fn response(client: &Client, id: &str, known: &mut Known) -> Result<bool, String> {
    let path = format!("/responses/{id}");
    let (status, first) = client.get(&path).map_err(|error| told(&error))?;
    if status == 404 {
        // Only what a client that is not in the background was never told the end of may be absent.
        let is_absent = known.whole.is_none() && !known.is_background;
        return match known.deletion {
            Ask::Never if !is_absent => Err("it is lost".to_owned()),
            _ => Ok(false),
        };
    }
    if status != 200 {
        return Err(format!("{status} {first}"));
    }
    if known.deletion == Ask::Acknowledged {
        return Err("it was deleted, but is there again".to_owned());
    }
    if known.deletion == Ask::InFlight {
        // Whoever deletes what is being worked on stops it first.
        known.cancelling = Ask::InFlight;
    }
    known.deletion = Ask::Never;
    if known.has_log && known.is_new {
        follow_to_the_end(client, &path, known)?;
    }
    let last = settled(client, &path, first)?;
    if let Some(whole) = &known.whole
        && *whole != last
    {
        return Err(format!("it was {whole}, but is {last}"));
    }
    let allowed = Allowed {
        cancelled: known.cancelling != Ask::Never,
        told_in_part: known.has_log,
    };
    is_whole(&last, &known.asked, allowed)?;
    if known.is_new {
        has_its_input(client, &path, &known.asked)?;
        if known.has_log {
            check_log(client, &path, known, &last)?;
        }
    }
    known.whole = Some(last);
    known.events.clear();
    Ok(true)
}

/// The last state of a response that may still be worked on.
fn settled(client: &Client, path: &str, first: Value) -> Result<Value, String> {
    let deadline = Instant::now() + SETTLING;
    let mut last = first;
    while !is_final(&last) {
        if Instant::now() > deadline {
            return Err(format!("nobody works on it: {last}"));
        }
        thread::sleep(Duration::from_millis(20));
        last = client.get(path).map_err(|error| told(&error))?.1;
    }
    Ok(last)
}

/// Goes on where a client's stream broke off, to the end.
fn follow_to_the_end(client: &Client, path: &str, known: &mut Known) -> Result<(), String> {
    let after = match known.events.last() {
        Some(last) if is_last(last) => return Ok(()),
        Some(last) => format!("&starting_after={}", last["sequence_number"]),
        None => String::new(),
    };
    let path = format!("{path}?stream=true{after}");
    let events = client
        .follow("GET", &path, None)
        .map_err(|error| told(&error))?;
    let events = events.map_err(|(status, answer)| format!("its stream: {status} {answer}"))?;
    known
        .events
        .extend(events.rest().map_err(|error| told(&error))?);
    Ok(())
}

/// The log must be what was received of it, without a gap or a repetition, and end once.
fn check_log(client: &Client, path: &str, known: &Known, last: &Value) -> Result<(), String> {
    let events = client.follow("GET", &format!("{path}?stream=true"), None);
    let events = events.map_err(|error| told(&error))?;
    let events = events.map_err(|(status, answer)| format!("its log: {status} {answer}"))?;
    let events = events.rest().map_err(|error| told(&error))?;
    for (number, event) in events.iter().enumerate() {
        if event["sequence_number"] != number {
            return Err(format!("event {number} of the log is {event}"));
        }
        if is_last(event) != (number + 1 == events.len()) {
            return Err(format!("the log ends at the wrong place: {event}"));
        }
    }
    if known.events != events {
        let common = known.events.iter().zip(&events);
        let equal = common.take_while(|(left, right)| left == right).count();
        return Err(format!(
            "of {} events that were received and {} in the log, {equal} are equal, then {:?} is {:?}",
            known.events.len(),
            events.len(),
            known.events.get(equal),
            events.get(equal),
        ));
    }
    match events.last() {
        Some(event) if event["response"] == *last => Ok(()),
        other => Err(format!("the log ends with {other:?}, but it is {last}")),
    }
}

/// What a response may be like besides whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    /// Somebody wanted it to stop.
    pub(crate) cancelled: bool,
    /// Somebody was told the beginning of an answer when the server was killed. That stays, and a whole
    /// answer follows.
    pub(crate) told_in_part: bool,
}

/// Whether a response that is over has everything that it must have.
pub(crate) fn is_whole(response: &Value, asked: &Asked, allowed: Allowed) -> Result<(), String> {
    let problem = |what: &str| Err(format!("{what}: {response}"));
    let output = response["output"].as_array();
    let output: Vec<&Value> = output.into_iter().flatten().collect();
    let is_over = |item: &&Value| matches!(item["status"].as_str(), Some("completed" | "failed"));
    if !output.iter().all(is_over) {
        return problem("an item is not whole");
    }
    match response["status"].as_str() {
        Some("completed") => {}
        Some("cancelled") if allowed.cancelled => return Ok(()),
        _ => return problem("it ended wrongly"),
    }
    let Some((calls, messages)) = output.split_at_checked(asked.calls) else {
        return problem("it has too few items");
    };
    let is_done = |item: &&Value| item["status"] == "completed";
    let is_call = |item: &&Value| item["type"] == "haft:clock" && is_done(item);
    if !calls.iter().all(is_call) || !messages.iter().all(is_done) {
        return problem("its calls are not those that were to be made");
    }
    let texts: Vec<String> = messages.iter().map(|item| text(&item["content"])).collect();
    let answer = asked.answer();
    let Some((last, cut)) = texts.split_last().filter(|(last, _)| **last == answer) else {
        return problem("its text is not the answer");
    };
    let is_beginning = |text: &String| !text.is_empty() && last.starts_with(text.as_str());
    if !cut.iter().all(is_beginning) || !(cut.is_empty() || allowed.told_in_part) {
        return problem("it says more than the answer");
    }
    if response["usage"].is_null() {
        return problem("it has no usage");
    }
    Ok(())
}

fn has_its_input(client: &Client, path: &str, asked: &Asked) -> Result<(), String> {
    let (status, answer) = client
        .get(&format!("{path}/input_items?order=desc&limit=1"))
        .map_err(|error| told(&error))?;
    if text(&answer["data"][0]["content"]) == asked.question() {
        return Ok(());
    }
    Err(format!("its input is {status} {answer}"))
}

/// All items of a conversation; none if it is not there.
fn items_of(client: &Client, id: &str) -> Result<Option<Vec<Value>>, String> {
    let mut items: Vec<Value> = Vec::new();
    loop {
        let after = match items.last().and_then(|last| last["id"].as_str()) {
            Some(last) => format!("&after={last}"),
            None => String::new(),
        };
        let path = format!("/conversations/{id}/items?order=asc&limit=100{after}");
        let (status, page) = client.get(&path).map_err(|error| told(&error))?;
        match (status, page["data"].as_array()) {
            (404, _) => return Ok(None),
            (200, Some(data)) => items.extend(data.iter().cloned()),
            _ => return Err(format!("{status} {page}")),
        }
        if page["has_more"] != true {
            return Ok(Some(items));
        }
    }
}

/// What is there of a conversation now, if that is what must be there.
fn talk(client: &Client, mut known: Talk) -> Result<Option<Talk>, String> {
    let pending = known.pending.take();
    let Some(items) = items_of(client, &known.id)? else {
        return match pending {
            Some(Pending::Gone) => Ok(None),
            _ => Err("it is lost".to_owned()),
        };
    };
    if let Some(Pending::ItemGone(id)) = &pending
        && !items.iter().any(|item| item["id"] == **id)
    {
        known.items.retain(|item| !is_item(item, id));
    }
    let (before, added) = items
        .split_at_checked(known.items.len())
        .ok_or_else(|| format!("it has {} of {} items", items.len(), known.items.len()))?;
    for (expected, item) in known.items.iter().zip(before) {
        let is_same = match expected {
            Expected::Item(expected) => expected == item,
            Expected::Said(said) => is_said(item, said),
        };
        if !is_same {
            return Err(format!("it has {item} where {expected:?} belongs"));
        }
    }
    let is_right = match &pending {
        Some(Pending::Items(texts)) => added.is_empty() || are_said(added, texts),
        Some(Pending::Exchange(asked, id)) => exchange(client, added, asked, id.as_deref())?,
        _ => added.is_empty(),
    };
    if !is_right {
        return Err(format!("after {pending:?} it has {added:?} at its end"));
    }
    known.items = items.into_iter().map(Expected::Item).collect();
    Ok(Some(known))
}

fn is_said(item: &Value, said: &str) -> bool {
    item["role"] == "user" && text(&item["content"]) == said
}

fn are_said(items: &[Value], texts: &[String]) -> bool {
    let is_same = |(item, said): (&Value, &String)| is_said(item, said);
    items.len() == texts.len() && items.iter().zip(texts).all(is_same)
}

/// Whether these items are what a response added that may or may not have come to its end.
fn exchange(
    client: &Client,
    added: &[Value],
    asked: &Asked,
    id: Option<&str>,
) -> Result<bool, String> {
    // Whether it was to be added, if anybody can say.
    let response = match id {
        Some(id) => client
            .get(&format!("/responses/{id}"))
            .map_err(|error| told(&error))?,
        None => (404, Value::Null),
    };
    match (response, added) {
        ((200, response), []) => Ok(response["status"] != "completed"),
        ((_, _), []) => Ok(true),
        ((200, response), [said, output @ ..]) => {
            let is_output = response["output"].as_array().map(Vec::as_slice) == Some(output);
            Ok(is_said(said, &asked.question()) && is_output)
        }
        ((_, _), [said, calls @ .., message]) => {
            let is_answer = text(&message["content"]) == asked.answer();
            let is_question = is_said(said, &asked.question());
            Ok(is_question && is_answer && calls.len() == asked.calls)
        }
        _ => Ok(false),
    }
}

/// Checks the conversation that all use: what was added at once stands together, once, and nothing that was
/// acknowledged is missing.
pub(crate) fn check_shared<'a>(
    client: &Client,
    id: &str,
    parts: impl Iterator<Item = &'a Shared>,
) -> Vec<String> {
    let items = match items_of(client, id) {
        Ok(Some(items)) => items,
        other => return vec![format!("the shared conversation: {other:?}")],
    };
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    let mut rest = items.as_slice();
    while let Some(first) = rest.first() {
        let first = text(&first["content"]);
        let (tag, place) = first.split_once(' ').unwrap_or_default();
        let count = place
            .strip_prefix("0/")
            .and_then(|count| count.parse().ok());
        let count: usize = count.unwrap_or(0);
        let texts: Vec<String> = (0..count)
            .map(|number| format!("{tag} {number}/{count}"))
            .collect();
        let these = rest.get(..count).unwrap_or_default();
        if count == 0 || !are_said(these, &texts) {
            problems.push(format!("the shared conversation has a part of `{first}`"));
            break;
        }
        if !seen.insert(texts) {
            problems.push(format!("the shared conversation has `{first}` twice"));
        }
        rest = &rest[count..];
    }
    for part in parts {
        let is_right = match &part.outcome {
            Outcome::Unknown => true,
            Outcome::Refused => !seen.contains(&part.texts),
            Outcome::Added(told) => items.windows(told.len()).any(|window| window == told),
        };
        if !is_right {
            problems.push(format!("the shared conversation is wrong about {part:?}"));
        }
    }
    problems
}
