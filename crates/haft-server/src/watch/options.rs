//! What the operator decides about watching.

/// What of a server is watched, and by whom.
///
/// ```
/// use haft_server::WatchOptions;
/// let options = WatchOptions::default();
/// assert!(options.access_log && !options.public_metrics);
/// ```
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// Whether each request leaves a line on the log's target `haft::access`.
    pub access_log: bool,
    /// Whether there is a `/metrics`.
    pub metrics: bool,
    /// What the record of gateway calls holds.
    pub call_record: CallRecord,
    /// Whether everybody may read `/metrics`; else those on this machine and those with a key.
    pub public_metrics: bool,
    /// Who gets spans, if anybody.
    #[cfg(feature = "otlp")]
    pub otlp: Option<super::OtlpOptions>,
}

/// What the record of gateway calls in the data folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallRecord {
    /// Nothing: there is no record.
    Off,
    /// Who called what and when, how it ended, how long it took and how large it was.
    #[default]
    Metadata,
    /// The arguments as well.
    Arguments,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            access_log: true,
            metrics: true,
            call_record: CallRecord::default(),
            public_metrics: false,
            #[cfg(feature = "otlp")]
            otlp: None,
        }
    }
}
