//! The seam to the server: the one place that knows how it is made.

use std::future::Future;
use std::path::Path;

use tokio::net::TcpListener;

use super::choice::Choice;
use super::failure::Failure;
use crate::config::Resolved;

/// A server that is ready to listen.
pub(super) struct Server {
    tools: Vec<String>,
}

/// Makes the server: its store in the data folder, its models, its tools.
pub(super) fn build(
    _config: &Resolved,
    _choice: &Choice,
    _data_dir: &Path,
) -> Result<Server, Failure> {
    Err(Failure::new("this version of haft has no server yet")
        .remedy("`haft demo` shows the loop, `haft ask` puts a question to a model"))
}

impl Server {
    /// The types of the tools that requests can name.
    pub(super) fn tools(&self) -> &[String] {
        &self.tools
    }

    /// Answers until `stop` is done, then ends what runs.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Failure> {
        stop.await;
        drop(listener);
        Ok(())
    }
}
