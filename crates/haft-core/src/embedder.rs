//! The embedder seam: texts as points, near where they mean the same.

use crate::model_error::ModelError;
use crate::tool::BoxFuture;

/// Turns texts into vectors. Off unless somebody plugs one in: haft brings no weights.
///
/// ```
/// use haft_core::{BoxFuture, Embedder, ModelError};
///
/// /// Knows nothing but lengths.
/// struct ByLength;
///
/// impl Embedder for ByLength {
///     fn name(&self) -> &str {
///         "by-length"
///     }
///
///     fn embed<'a>(
///         &'a self,
///         texts: &'a [&'a str],
///     ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
///         let vectors = texts.iter().map(|text| vec![1.0, text.len() as f32]).collect();
///         Box::pin(async { Ok(vectors) })
///     }
/// }
/// ```
pub trait Embedder: Send + Sync + 'static {
    /// What it is called in logs.
    fn name(&self) -> &str;

    /// One vector for each text, in order, all of one length.
    fn embed<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>>;
}
