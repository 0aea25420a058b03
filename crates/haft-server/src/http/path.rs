//! What stands in a path.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, ErrorCode};

/// The parts of the path that are named in the route. What cannot be read is nowhere.
pub(super) struct Path<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        match read {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(_) => {
                let message = format!(
                    "there is nothing at `{}`: the path is not UTF-8",
                    haft_core::cut(parts.uri.path())
                );
                Err(ApiError::new(ErrorCode::RouteNotFound, message))
            }
        }
    }
}
