//! Reading responses with their items, however many, in one statement.

use std::collections::BTreeMap;

use haft_core::{Owner, StoreError, StoredItem, StoredResponse};
use rusqlite::{Connection, Params, Row, params};
use serde_json::value::RawValue;

use super::failure::Outcome;
use super::items;
use crate::refusals::{self, LONGEST_CHAIN};

/// The statement that reads the responses which `$wanted` names, `place` being unique among them, and
/// their items. A resource is read once and not with each item; the order is made afterwards,
/// because sorting here would copy everything.
macro_rules! with_items {
    ($wanted:literal) => {
        concat!(
            "WITH RECURSIVE wanted (seq, previous, place) AS MATERIALIZED (",
            $wanted,
            ")
             SELECT w.place, 0, 0, r.id, r.resource,
                    r.owner, r.previous, r.created_at, r.is_finished
             FROM wanted AS w CROSS JOIN responses AS r ON r.seq = w.seq
             UNION ALL
             SELECT w.place, 1 + i.is_output, i.seq, i.item_id, i.json, NULL, NULL, NULL, NULL
             FROM wanted AS w CROSS JOIN items AS i ON i.response = w.seq"
        )
    };
}

/// A response that was not deleted.
pub(super) fn one(
    connection: &Connection,
    owner: &Owner,
    id: &str,
) -> Outcome<Option<StoredResponse>> {
    let found = read(
        connection,
        with_items!(
            "SELECT seq, previous, 0 FROM responses
             WHERE owner = ?1 AND id = ?2 AND is_deleted = 0"
        ),
        params![owner.as_str(), id],
    )?;
    Ok(found.into_iter().map(|(_, response)| response).next())
}

/// A response and what it continues, the oldest first.
pub(super) fn chain(
    connection: &Connection,
    owner: &Owner,
    id: &str,
) -> Outcome<Option<Vec<StoredResponse>>> {
    let found = read(
        connection,
        with_items!(
            "SELECT seq, previous, 0 FROM responses
             WHERE owner = ?1 AND id = ?2 AND is_deleted = 0
             UNION ALL
             SELECT r.seq, r.previous, w.place - 1
             FROM wanted AS w CROSS JOIN responses AS r ON r.owner = ?1 AND r.id = w.previous
             WHERE w.place > -?3"
        ),
        params![owner.as_str(), id, LONGEST_CHAIN],
    )?;
    refusals::check_length(id, found.len())?;
    let chain: Vec<_> = found.into_iter().map(|(_, response)| response).collect();
    Ok(Some(chain).filter(|chain| !chain.is_empty()))
}

/// What was not finished, in the order of writing.
pub(super) fn unfinished(connection: &Connection) -> Outcome<Vec<(Owner, StoredResponse)>> {
    read(
        connection,
        with_items!(
            "SELECT seq, previous, seq FROM responses WHERE is_finished = 0 AND is_deleted = 0"
        ),
        [],
    )
}

/// Reads the responses, in the order of their places.
fn read(
    connection: &Connection,
    sql: &'static str,
    params: impl Params,
) -> Outcome<Vec<(Owner, StoredResponse)>> {
    let mut parts: BTreeMap<i64, Parts> = BTreeMap::new();
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query(params)?;
    while let Some(row) = rows.next()? {
        parts.entry(row.get(0)?).or_default().take(row)?;
    }
    parts.into_values().map(Parts::join).collect()
}

/// What was read of a response.
#[derive(Default)]
struct Parts {
    response: Option<(Owner, StoredResponse)>,
    input: Vec<(i64, StoredItem)>,
    output: Vec<(i64, StoredItem)>,
}

impl Parts {
    fn take(&mut self, row: &Row<'_>) -> Outcome<()> {
        let seq: i64 = row.get(2)?;
        match row.get::<_, i64>(1)? {
            0 => self.response = Some(response_of(row)?),
            1 => self.input.push((seq, items::item_of(row, 3, 4)?)),
            _ => self.output.push((seq, items::item_of(row, 3, 4)?)),
        }
        Ok(())
    }

    fn join(self) -> Outcome<(Owner, StoredResponse)> {
        let Some((owner, mut response)) = self.response else {
            let reason = "an item's response is gone, so the file is damaged";
            return Err(StoreError::Failed(reason.to_owned()).into());
        };
        response.input = in_order(self.input);
        response.output = in_order(self.output);
        Ok((owner, response))
    }
}

fn response_of(row: &Row<'_>) -> Outcome<(Owner, StoredResponse)> {
    let resource = match row.get::<_, Option<String>>(4)? {
        Some(text) => items::json(text)?,
        None => RawValue::NULL.to_owned(),
    };
    let response = StoredResponse {
        id: row.get(3)?,
        previous: row.get(6)?,
        created_at: row.get(7)?,
        is_finished: row.get(8)?,
        resource,
        input: Vec::new(),
        output: Vec::new(),
    };
    Ok((Owner::new(row.get::<_, String>(5)?), response))
}

fn in_order(mut items: Vec<(i64, StoredItem)>) -> Vec<StoredItem> {
    items.sort_by_key(|(seq, _)| *seq);
    items.into_iter().map(|(_, item)| item).collect()
}
