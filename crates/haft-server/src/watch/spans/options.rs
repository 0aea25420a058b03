//! Where spans go, and which.

use haft_models::http::{Endpoint, EndpointError, Secret};

/// A collector that takes OTLP over HTTP, and what it gets.
///
/// ```
/// use haft_server::OtlpOptions;
/// let options = OtlpOptions::new("http://127.0.0.1:4318")?;
/// assert!(!options.captures_content);
/// # Ok::<(), haft_models::http::EndpointError>(())
/// ```
#[derive(Debug, Clone)]
pub struct OtlpOptions {
    pub(super) endpoint: Endpoint,
    /// What this server calls itself.
    pub service_name: String,
    /// How many of the traces that begin here are recorded, from 0 to 1. Those that a client began
    /// are recorded as it says.
    pub sample_ratio: f64,
    /// Whether prompts, answers, arguments and results go along. Those of responses that are not to
    /// be stored never do.
    pub captures_content: bool,
}

impl OtlpOptions {
    /// The collector at this base address: spans go to `v1/traces` below it.
    pub fn new(base_url: &str) -> Result<Self, EndpointError> {
        let base = base_url.trim().trim_end_matches('/');
        let base = base.strip_suffix("/v1/traces").unwrap_or(base);
        Ok(Self {
            endpoint: Endpoint::new(base)?.header("content-type", CONTENT_TYPE.into())?,
            service_name: "haft".to_owned(),
            sample_ratio: 1.0,
            captures_content: false,
        })
    }

    /// Adds a header to every export.
    pub fn header(mut self, name: &str, value: Secret) -> Result<Self, EndpointError> {
        self.endpoint = self.endpoint.header(name, value)?;
        Ok(self)
    }
}

const CONTENT_TYPE: &str = "application/x-protobuf";
