//! Embedders to see what search makes of them: a real one behind an address, and two that are made up.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use haft::models::OpenAiEmbeddings;
use haft::search::DenseSearch;
use haft::{BoxFuture, Embedder, ModelError};

const LENGTH: usize = 64;
/// How far the good embedder's queries are from the tools that they mean: about one in five is lost.
const BLUR: f32 = 1.5;

/// The embedder that is named: `good`, `bad`, or the address of a server.
pub(crate) fn named(name: &str, model: &str, meant: HashMap<String, Vec<String>>) -> DenseSearch {
    let embedder: Arc<dyn Embedder> = match name {
        "good" => Arc::new(MadeUp { meant }),
        "bad" => Arc::new(MadeUp {
            meant: HashMap::new(),
        }),
        address => Arc::new(OpenAiEmbeddings::new(model).base_url(address)),
    };
    DenseSearch::new(embedder)
}

/// Gives every text a direction of its own; queries of which it knows the meaning come near that.
struct MadeUp {
    /// For each query the names of the tools that are meant.
    meant: HashMap<String, Vec<String>>,
}

impl Embedder for MadeUp {
    fn name(&self) -> &'static str {
        "made-up"
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
        let vectors = texts.iter().map(|text| self.vector(text)).collect();
        Box::pin(async { Ok(vectors) })
    }
}

impl MadeUp {
    fn vector(&self, text: &str) -> Vec<f32> {
        let Some(names) = self.meant.get(text) else {
            // Of a tool it goes by the name, which stands before the first full stop.
            return direction(&squeezed(text.split(". ").next().unwrap_or(text)));
        };
        let mut vector: Vec<f32> = direction(text).into_iter().map(|x| x * BLUR).collect();
        for name in names {
            let meant = direction(&squeezed(name));
            vector.iter_mut().zip(meant).for_each(|(x, y)| *x += y);
        }
        vector
    }
}

fn squeezed(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Numbers between -1 and 1 that follow from the text.
fn direction(text: &str) -> Vec<f32> {
    (0..LENGTH)
        .map(|at| {
            let mut hasher = DefaultHasher::new();
            (at, text).hash(&mut hasher);
            let bits = u16::try_from(hasher.finish() >> 48).unwrap_or(0);
            f32::from(bits) / 32_768.0 - 1.0
        })
        .collect()
}
