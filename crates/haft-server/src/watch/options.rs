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
    /// Whether everybody may read `/metrics`; else those on this machine and those with a key.
    pub public_metrics: bool,
    /// Who gets spans, if anybody.
    #[cfg(feature = "otlp")]
    pub otlp: Option<super::OtlpOptions>,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            access_log: true,
            metrics: true,
            public_metrics: false,
            #[cfg(feature = "otlp")]
            otlp: None,
        }
    }
}
