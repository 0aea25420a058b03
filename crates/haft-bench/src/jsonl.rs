//! Files of one JSON object per line.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, StdoutLock, Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads every line that is not blank.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let file = File::open(path).with_context(|| format!("cannot open `{}`", path.display()))?;
    let mut rows = Vec::new();
    for (at, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| format!("cannot read `{}`", path.display()))?;
        if !line.trim().is_empty() {
            let row = serde_json::from_str(&line)
                .with_context(|| format!("`{}`, line {}", path.display(), at + 1))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Writes rows to standard output.
pub(crate) struct Writer(BufWriter<StdoutLock<'static>>);

impl Writer {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(stdout().lock()))
    }

    pub(crate) fn row<T: Serialize>(&mut self, row: &T) -> Result<()> {
        serde_json::to_writer(&mut self.0, row)?;
        self.0.write_all(b"\n")?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}
