//! The list of responses, of one owner or of all.
//!
//! Its order is that of the times, then of the ids, then of the owners; descending is exactly the
//! reverse. Two owners may have the same id: a page behind it begins behind the last of them in the
//! page's order, so that paging always ends.

use haft_core::{ListedResponse, Owner, PageQuery, ResponsePage, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter, types::Value};

use super::failure::Outcome;
use super::items;

/// Goes from owner to owner, by the index.
const OWNERS: &str = "WITH RECURSIVE owners (owner) AS (
         SELECT min(owner) FROM responses
         UNION ALL
         SELECT (SELECT min(r.owner) FROM responses AS r WHERE r.owner > o.owner)
         FROM owners AS o WHERE o.owner IS NOT NULL
     )";

/// A piece of the list.
pub(super) fn list(
    connection: &Connection,
    owner: Option<&Owner>,
    query: &PageQuery,
) -> Outcome<ResponsePage> {
    // All statements see the same state.
    let transaction = connection.unchecked_transaction()?;
    // One more than asked for says whether there are more.
    let limit = i64::try_from(query.limit).map_or(i64::MAX, |limit| limit.saturating_add(1));
    let mut values = vec![Value::from(limit)];
    if let Some(after) = &query.after {
        let time = edge(&transaction, owner, after, query.is_descending)?;
        values.push(time.into());
        values.push(after.clone().into());
    }
    let sql = statement(owner.is_some(), query);
    if let Some(owner) = owner {
        values.push(owner.as_str().to_owned().into());
    }
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut responses = Vec::new();
    while let Some(row) = rows.next()? {
        responses.push(listed(row)?);
    }
    let has_more = responses.len() > query.limit;
    responses.truncate(query.limit);
    Ok(ResponsePage {
        responses,
        has_more,
    })
}

/// The statement for a list. The limit is the first value, then the time and the id of the edge where
/// there is one, then the owner where there is one.
pub(super) fn statement(is_of_one: bool, query: &PageQuery) -> String {
    let (order, behind) = if query.is_descending {
        ("DESC", "<")
    } else {
        ("ASC", ">")
    };
    let (edge, owner) = match &query.after {
        None => (String::new(), "?2"),
        Some(_) => (format!("AND (created_at, id) {behind} (?2, ?3)"), "?4"),
    };
    if is_of_one {
        return format!(
            "SELECT owner, id, created_at, is_finished, resource FROM responses
             WHERE owner = {owner} AND is_deleted = 0 {edge}
             ORDER BY created_at {order}, id {order} LIMIT ?1"
        );
    }
    // As many of each owner as could be wanted, and then the first of these.
    format!(
        "{OWNERS}, wanted (seq) AS MATERIALIZED (
             SELECT r.seq FROM owners AS o CROSS JOIN responses AS r ON r.seq IN (
                 SELECT seq FROM responses
                 WHERE owner = o.owner AND is_deleted = 0 {edge}
                 ORDER BY created_at {order}, id {order} LIMIT ?1
             )
             ORDER BY r.created_at {order}, r.id {order}, r.owner {order} LIMIT ?1
         )
         SELECT r.owner, r.id, r.created_at, r.is_finished, r.resource
         FROM wanted AS w CROSS JOIN responses AS r ON r.seq = w.seq
         ORDER BY r.created_at {order}, r.id {order}, r.owner {order}"
    )
}

/// When the response was made that a page is to begin behind: the last one in this order, if several
/// owners have one of this id.
fn edge(
    connection: &Connection,
    owner: Option<&Owner>,
    id: &str,
    is_descending: bool,
) -> Outcome<i64> {
    let time = if let Some(owner) = owner {
        connection
            .prepare_cached(
                "SELECT created_at FROM responses
                 WHERE owner = ?1 AND id = ?2 AND is_deleted = 0",
            )?
            .query_row(params![owner.as_str(), id], |row| row.get(0))
            .optional()?
    } else {
        let (first, last): (Option<i64>, Option<i64>) = connection
            .prepare_cached(&format!(
                "{OWNERS}
                 SELECT min(r.created_at), max(r.created_at)
                 FROM owners AS o CROSS JOIN responses AS r ON r.owner = o.owner AND r.id = ?1
                 WHERE r.is_deleted = 0"
            ))?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if is_descending { first } else { last }
    };
    let unknown = || StoreError::UnknownItem { id: id.to_owned() };
    Ok(time.ok_or_else(unknown)?)
}

fn listed(row: &Row<'_>) -> Outcome<ListedResponse> {
    Ok(ListedResponse {
        owner: Owner::new(row.get::<_, String>(0)?),
        id: row.get(1)?,
        created_at: row.get(2)?,
        is_finished: row.get(3)?,
        resource: items::json(row.get(4)?)?,
    })
}
