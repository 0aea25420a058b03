//! Embeddings of any server that speaks `OpenAI`'s `/v1/embeddings`.

use bytes::Bytes;
use haft_core::{BoxFuture, Embedder, ModelError, ModelErrorKind};
use serde::{Deserialize, Serialize};

use crate::http::{Connection, Http, Secret, Timeouts};

const BASE_URL: &str = "https://api.openai.com/v1";
const PATH: &str = "embeddings";

/// How many texts one request has if nobody says; what every server takes.
const BATCH: usize = 64;

/// An embedding model behind `/v1/embeddings`: `OpenAI` itself, vLLM, llama.cpp, Ollama and all the
/// others.
///
/// ```
/// use haft_core::Embedder;
/// use haft_models::OpenAiEmbeddings;
/// let embedder = OpenAiEmbeddings::new("all-minilm").base_url("http://127.0.0.1:11434/v1");
/// assert_eq!(embedder.name(), "all-minilm");
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiEmbeddings {
    model: String,
    connection: Connection,
    batch: usize,
}

impl OpenAiEmbeddings {
    /// This model at `OpenAI`, without a key.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            connection: Connection::new(BASE_URL),
            batch: BATCH,
        }
    }

    /// Sets the address, `/v1` included.
    #[must_use]
    pub fn base_url(mut self, base_url: &str) -> Self {
        self.connection = self.connection.base_url(base_url);
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.connection = self.connection.bearer(key.into());
        self
    }

    /// Sets how many texts one request has.
    #[must_use]
    pub fn batch(mut self, texts: usize) -> Self {
        self.batch = texts.max(1);
        self
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<Secret>) -> Self {
        self.connection = self.connection.header(name, value.into());
        self
    }

    /// Sets how long each wait may take.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.connection = self.connection.timeouts(timeouts);
        self
    }

    /// Shares connections with models.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.connection = self.connection.http(http);
        self
    }

    /// One request.
    async fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        let wanted = Wanted {
            model: &self.model,
            input: texts,
            encoding_format: "float",
        };
        let body = serde_json::to_vec(&wanted).map_err(|error| broken(error.to_string()))?;
        let answer = self
            .connection
            .post(PATH, Bytes::from(body), "application/json");
        let answer = answer.await?.whole().await?;
        let answer: Answer = serde_json::from_slice(&answer)
            .map_err(|error| broken(format!("the answer is no list of embeddings: {error}")))?;
        in_order(answer.data, texts.len())
    }
}

impl Embedder for OpenAiEmbeddings {
    fn name(&self) -> &str {
        &self.model
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for batch in texts.chunks(self.batch) {
                vectors.extend(self.ask(batch).await?);
            }
            Ok(vectors)
        })
    }
}

/// A request on the wire.
#[derive(Serialize)]
struct Wanted<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
}

/// An answer on the wire, as far as it is read.
#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: Option<usize>,
    embedding: Vec<f32>,
}

fn broken(words: String) -> ModelError {
    ModelError::new(ModelErrorKind::Protocol, words)
}

/// The vectors by the order of the texts; servers say where each belongs, or send them in order.
fn in_order(data: Vec<Embedding>, count: usize) -> Result<Vec<Vec<f32>>, ModelError> {
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    let length = data.first().map_or(0, |first| first.embedding.len());
    for (at, embedding) in data.into_iter().enumerate() {
        let index = embedding.index.unwrap_or(at);
        let place = vectors.get_mut(index).filter(|place| place.is_none());
        let Some(place) = place else {
            return Err(broken(format!(
                "no text or a second embedding has the index {index}"
            )));
        };
        if embedding.embedding.is_empty() || embedding.embedding.len() != length {
            return Err(broken(format!(
                "the embedding with the index {index} has another length"
            )));
        }
        *place = Some(embedding.embedding);
    }
    let vectors: Option<Vec<_>> = vectors.into_iter().collect();
    vectors.ok_or_else(|| {
        broken(format!(
            "fewer embeddings came than the {count} texts that were sent"
        ))
    })
}
