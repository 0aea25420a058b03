//! Where provenance goes: the log, a file of JSON lines, a callback.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use haft_core::HydrationResult;

/// Receives every result, good or bad, before anything is executed.
///
/// Any `Fn(&HydrationResult)` is one.
pub trait ProvenanceSink: Send + Sync + 'static {
    /// Keeps one result.
    fn record(&self, result: &HydrationResult);
}

impl<F: Fn(&HydrationResult) + Send + Sync + 'static> ProvenanceSink for F {
    fn record(&self, result: &HydrationResult) {
        self(result);
    }
}

/// Writes one line per call to the log: what became of it, without its arguments.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogSink;

impl ProvenanceSink for LogSink {
    fn record(&self, result: &HydrationResult) {
        let provenance = &result.provenance;
        tracing::info!(
            tool = provenance.provider_tool_id,
            call_id = provenance.call_id,
            success = result.success(),
            repaired = provenance.repaired,
            unvalidated = provenance.unvalidated,
            errors = result.errors.len(),
            "hydrated"
        );
    }
}

/// Writes one JSON object per call, as [`HydrationResult::to_json`] gives it.
///
/// The arguments are in it: keep the file where they may be kept.
#[derive(Debug)]
pub struct JsonLinesSink<W>(Mutex<W>);

impl JsonLinesSink<File> {
    /// Appends to a file, which is made if it is not there.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self::new(file))
    }
}

impl<W: Write> JsonLinesSink<W> {
    /// Writes to `writer`.
    pub fn new(writer: W) -> Self {
        Self(Mutex::new(writer))
    }

    /// The writer back.
    pub fn into_inner(self) -> W {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write + Send + 'static> ProvenanceSink for JsonLinesSink<W> {
    fn record(&self, result: &HydrationResult) {
        let line = format!("{}\n", result.to_json());
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One write per line: lines of several processes do not mix.
        let written = writer
            .write_all(line.as_bytes())
            .and_then(|()| writer.flush());
        if let Err(error) = written {
            tracing::error!(%error, "a provenance line could not be written");
        }
    }
}
