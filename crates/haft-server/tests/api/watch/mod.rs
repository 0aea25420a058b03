//! What operators see: metrics, the access log, spans, and how each run went.

mod access;
mod exposition;
mod metrics;
mod otlp;
mod secrets;
pub(crate) mod traces;

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::Served;
use exposition::Scrape;

/// What is logged while this is held, by everything on this thread.
pub(crate) struct Log {
    lines: Lines,
    _guard: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    pub(crate) fn of(filter: &str) -> Self {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .compact()
            .with_env_filter(EnvFilter::new(filter))
            .with_writer(lines.clone())
            .with_ansi(false)
            .without_time()
            .finish();
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }

    /// Waits until a line holds this, and gives it.
    pub(crate) async fn line(&self, part: &str) -> String {
        for _ in 0..200 {
            let text = self.text();
            if let Some(line) = text.lines().find(|line| line.contains(part)) {
                return line.to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no line holds `{part}`:\n{}", self.text());
    }
}

impl Served {
    /// The address of something beside the API.
    pub(crate) fn beside(&self, path: &str) -> String {
        format!("{}{path}", self.base.trim_end_matches("/v1"))
    }

    pub(crate) async fn metrics_text(&self) -> String {
        let answer = crate::support::client()
            .get(self.beside("/metrics"))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        assert_eq!(answer.headers()["content-type"], kind);
        answer.text().await.unwrap()
    }

    /// The metrics, read strictly.
    pub(crate) async fn scrape(&self) -> Scrape {
        Scrape::read(&self.metrics_text().await)
    }

    /// Waits until a sample has this value.
    pub(crate) async fn until(&self, sample: &str, value: f64) -> Scrape {
        for _ in 0..200 {
            let scrape = self.scrape().await;
            if scrape.get(sample) == Some(value) {
                return scrape;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let text = self.metrics_text().await;
        panic!("`{sample}` does not become {value}:\n{text}");
    }
}
