//! Clients and their conversations.

use std::io;

use serde_json::{Value, json};

use crate::client::Client;
use crate::ledger::{Expected, Outcome, Pending, Shared, Talk};
use crate::load::Worker;

impl Worker {
    /// Begins, changes or ends the conversation of this client.
    pub(crate) fn talk(&mut self, client: &Client) -> io::Result<()> {
        let Some(talk) = &self.ledger.talk else {
            let (status, answer) = client.ask("POST", "/conversations", Some(&json!({})))?;
            match answer["id"].as_str() {
                Some(id) if status == 200 => self.ledger.talk = Some(Talk::new(id.to_owned())),
                _ => self.refused("a conversation", status, &answer),
            }
            return Ok(());
        };
        if talk.pending.is_some() {
            return Ok(());
        }
        let path = format!("/conversations/{}", talk.id);
        match self.rng.u32(..12) {
            0 => self.end_talk(client, &path),
            1 | 2 => self.remove_item(client, &path),
            _ => self.add_items(client, &path),
        }
    }

    fn add_items(&mut self, client: &Client, path: &str) -> io::Result<()> {
        let texts: Vec<String> = (0..self.rng.usize(1..4)).map(|_| self.tag()).collect();
        self.pend(Pending::Items(texts.clone()));
        let body = json!({"items": messages(&texts)});
        let (status, answer) = client.ask("POST", &format!("{path}/items"), Some(&body))?;
        if status != 200 {
            self.refused("items", status, &answer);
        } else if let Some(talk) = &mut self.ledger.talk {
            talk.pending = None;
            let added = answer["data"].as_array().into_iter().flatten();
            talk.items.extend(added.cloned().map(Expected::Item));
        }
        Ok(())
    }

    fn remove_item(&mut self, client: &Client, path: &str) -> io::Result<()> {
        let items = self.ledger.talk.iter().flat_map(|talk| &talk.items);
        let ids: Vec<String> = items
            .filter_map(|item| match item {
                Expected::Item(item) => Some(item["id"].as_str()?.to_owned()),
                Expected::Said(_) => None,
            })
            .collect();
        let Some(id) = ids.get(self.rng.usize(..ids.len().max(1))) else {
            return Ok(());
        };
        self.pend(Pending::ItemGone(id.clone()));
        let (status, answer) = client.ask("DELETE", &format!("{path}/items/{id}"), None)?;
        if status != 200 {
            self.refused("deleting an item", status, &answer);
        } else if let Some(talk) = &mut self.ledger.talk {
            talk.pending = None;
            talk.items.retain(|item| !is_item(item, id));
        }
        Ok(())
    }

    fn end_talk(&mut self, client: &Client, path: &str) -> io::Result<()> {
        self.pend(Pending::Gone);
        let (status, answer) = client.ask("DELETE", path, None)?;
        if status != 200 {
            self.refused("deleting a conversation", status, &answer);
        } else if let Some(talk) = self.ledger.talk.take() {
            self.ledger.talks_gone.push(talk.id);
        }
        Ok(())
    }

    /// Adds to the conversation that all use.
    pub(crate) fn share(&mut self, client: &Client, shared: &str) -> io::Result<()> {
        let count = self.rng.usize(1..4);
        let tag = self.tag();
        let texts: Vec<String> = (0..count)
            .map(|number| format!("{tag} {number}/{count}"))
            .collect();
        let body = json!({"items": messages(&texts)});
        self.ledger.shared.push(Shared {
            texts,
            outcome: Outcome::Unknown,
        });
        let path = format!("/conversations/{shared}/items");
        let (status, answer) = client.ask("POST", &path, Some(&body))?;
        let outcome = match (status, answer["data"].as_array()) {
            (200, Some(items)) => Outcome::Added(items.clone()),
            (409, _) if answer["error"]["code"] == "conversation_locked" => Outcome::Refused,
            _ => {
                self.complain(format!("shared items were refused: {status} {answer}"));
                Outcome::Unknown
            }
        };
        if let Some(last) = self.ledger.shared.last_mut() {
            last.outcome = outcome;
        }
        Ok(())
    }
}

pub(crate) fn is_item(expected: &Expected, id: &str) -> bool {
    matches!(expected, Expected::Item(item) if item["id"] == *id)
}

fn messages(texts: &[String]) -> Vec<Value> {
    texts
        .iter()
        .map(|text| json!({"type": "message", "role": "user", "content": text}))
        .collect()
}
