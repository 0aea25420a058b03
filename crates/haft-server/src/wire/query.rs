//! What stands behind the `?` of an address.

use axum::extract::Query;
use axum::http::Uri;
use haft_core::{PageQuery, cut};
use serde_json::Value;

use super::read::Read;
use super::request::Include;
use crate::error::{ApiError, ErrorCode};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

/// Which items of a list, and what of them.
#[derive(Debug, Clone)]
pub(crate) struct ItemsQuery {
    pub(crate) page: PageQuery,
    pub(crate) include: Include,
}

impl ItemsQuery {
    /// Reads a query string; unknown parameters are ignored.
    pub(crate) fn read(query: Option<&str>) -> Read<Self> {
        let parameters = Parameters::read(query)?;
        Ok(Self {
            page: PageQuery {
                after: parameters.last("after").map(str::to_owned),
                limit: limit(&parameters)?,
                is_descending: match parameters.last("order") {
                    None | Some("desc") => true,
                    Some("asc") => false,
                    Some(other) => {
                        return Err(refuse(
                            ErrorCode::InvalidValue,
                            "order",
                            other,
                            "`asc` or `desc`",
                        ));
                    }
                },
            },
            include: parameters.include()?,
        })
    }
}

/// How a stored response is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetrieveQuery {
    pub(crate) include: Include,
    /// As the events that it was made of.
    pub(crate) stream: bool,
    /// Only the events behind this number.
    pub(crate) starting_after: Option<u64>,
}

impl RetrieveQuery {
    /// Reads a query string; unknown parameters are ignored.
    pub(crate) fn read(query: Option<&str>) -> Read<Self> {
        let parameters = Parameters::read(query)?;
        Ok(Self {
            include: parameters.include()?,
            stream: parameters.flag("stream")?,
            starting_after: parameters.whole("starting_after")?,
        })
    }
}

fn limit(parameters: &Parameters) -> Read<usize> {
    let Some(limit) = parameters.whole("limit")? else {
        return Ok(DEFAULT_LIMIT);
    };
    match usize::try_from(limit) {
        Ok(0) => Err(refuse(
            ErrorCode::IntegerBelowMinValue,
            "limit",
            "0",
            "1 to 100",
        )),
        Ok(limit) if limit <= MAX_LIMIT => Ok(limit),
        _ => Err(refuse(
            ErrorCode::DecimalAboveMaxValue,
            "limit",
            &limit.to_string(),
            "1 to 100",
        )),
    }
}

/// Names and values, in order.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(crate) fn read(query: Option<&str>) -> Read<Self> {
        let unreadable = || {
            ApiError::new(
                ErrorCode::InvalidValue,
                "the query of this address cannot be read: write it as `name=value&name=value`",
            )
        };
        let uri =
            Uri::try_from(format!("/?{}", query.unwrap_or_default())).map_err(|_| unreadable())?;
        let Query(pairs) = Query::try_from_uri(&uri).map_err(|_| unreadable())?;
        Ok(Self(pairs))
    }

    /// The last value of this name; an empty one is none.
    pub(crate) fn last(&self, name: &str) -> Option<&str> {
        let values = self.0.iter().rev().filter(|(key, _)| key == name);
        let value = values.map(|(_, value)| value.as_str()).next();
        value.filter(|value| !value.is_empty())
    }

    fn whole(&self, name: &str) -> Read<Option<u64>> {
        let Some(text) = self.last(name) else {
            return Ok(None);
        };
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(whole) if is_number => Ok(Some(whole)),
            _ if !is_number => Err(refuse(ErrorCode::InvalidType, name, text, "a whole number")),
            _ if text.starts_with('-') => Err(refuse(
                ErrorCode::IntegerBelowMinValue,
                name,
                text,
                "a number that is not negative",
            )),
            _ => Err(refuse(
                ErrorCode::DecimalAboveMaxValue,
                name,
                text,
                "a smaller number",
            )),
        }
    }

    fn flag(&self, name: &str) -> Read<bool> {
        match self.last(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(refuse(
                ErrorCode::InvalidType,
                name,
                other,
                "`true` or `false`",
            )),
        }
    }

    /// A list comes as `include[]=a&include[]=b`, `include[0]=a` or `include=a&include=b`.
    fn include(&self) -> Read<Include> {
        let is_entry = |key: &str| {
            let index = key.strip_prefix("include").unwrap_or("no");
            let inside = index
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            index.is_empty()
                || inside.is_some_and(|inside| inside.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let words = self
            .0
            .iter()
            .filter(|(key, value)| is_entry(key) && !value.is_empty())
            .enumerate()
            .map(|(index, (_, value))| {
                Include::word(Value::from(value.as_str()), &format!("include[{index}]"))
            })
            .collect::<Read<Vec<_>>>()?;
        Ok(Include::of(&words))
    }
}

fn refuse(code: ErrorCode, name: &str, found: &str, wanted: &str) -> ApiError {
    ApiError::new(
        code,
        format!("`{name}` is `{}`: it must be {wanted}", cut(found)),
    )
    .at(name)
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
