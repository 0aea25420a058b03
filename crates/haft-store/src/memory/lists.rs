//! The list of responses, of one owner or of all.

use haft_core::{ListedResponse, Owner, PageQuery, ResponsePage, StoreError};

use super::State;
use super::records::ResponseRecord;

/// A response at its place: when it was made, its id, whose it is.
type Place<'a> = (i64, &'a str, &'a Owner, &'a ResponseRecord);

impl State {
    /// A piece of the list.
    pub(super) fn list(
        &self,
        owner: Option<&Owner>,
        query: &PageQuery,
    ) -> Result<ResponsePage, StoreError> {
        let mut places: Vec<Place<'_>> = self
            .owners
            .iter()
            .filter(|(name, _)| owner.is_none_or(|owner| *name == owner))
            .flat_map(|(name, records)| {
                let living = records.responses.iter();
                let living = living.filter(|(_, response)| !response.is_deleted());
                living.map(move |(id, response)| (response.created_at, id.as_str(), name, response))
            })
            .collect();
        places.sort_unstable_by_key(|(created_at, id, owner, _)| (*created_at, *id, *owner));
        if query.is_descending {
            places.reverse();
        }
        let begin = match &query.after {
            None => 0,
            Some(after) => places
                .iter()
                .rposition(|(_, id, ..)| id == after)
                .map(|position| position + 1)
                .ok_or_else(|| StoreError::UnknownItem { id: after.clone() })?,
        };
        let behind = places.get(begin..).unwrap_or_default();
        Ok(ResponsePage {
            responses: behind.iter().take(query.limit).filter_map(listed).collect(),
            has_more: behind.len() > query.limit,
        })
    }
}

/// The response as it is given out; none if it is deleted.
fn listed((created_at, id, owner, response): &Place<'_>) -> Option<ListedResponse> {
    Some(ListedResponse {
        owner: (*owner).clone(),
        id: (*id).to_owned(),
        created_at: *created_at,
        is_finished: response.is_finished,
        resource: response.resource.clone()?,
    })
}
