//! The list of a server's tools.

use haft_core::Cancel;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::PeerRequestOptions;
use tokio::time::Instant;

use super::request::{Waits, later};
use super::{Connection, LOGINS};
use crate::error::{Cause, Era, McpError, Phase, TransportKind};
use crate::listing::{Listing, Next, ToolList};

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

impl Connection {
    /// Reads the tools, all pages, within the limits of the settings.
    ///
    /// A tool that cannot be used is left out with a diagnostic, and a list that does not end is cut;
    /// only a server that gives no list at all is an error.
    pub async fn list_tools(&self) -> Result<ToolList, McpError> {
        let started = Instant::now();
        match self.list(started).await {
            Ok(list) => Ok(list),
            Err(cause) => Err(self.failed(Phase::List, started, cause).await),
        }
    }

    pub(super) async fn list(&self, started: Instant) -> Result<ToolList, Cause> {
        let limit = self.settings.timeouts.list;
        let cancel = Cancel::new();
        let mut waits = Waits {
            idle: limit.min(self.settings.timeouts.idle),
            until: later(started, limit),
            total: (limit, "timeouts.list"),
            cancel: &cancel,
            asking: None,
        };
        let mirrors = self.transport == TransportKind::Http && self.era == Era::Modern;
        let mut listing = Listing::new(&self.settings, mirrors);
        let mut cursor = None;
        let mut may_restart = true;
        let mut logins = 0;
        loop {
            let page = self.page(cursor.clone(), &waits).await;
            let next = match page {
                Ok((page, bytes)) => listing.page(&page, bytes),
                Err(Cause::Protocol {
                    code: METHOD_NOT_FOUND,
                    ..
                }) if listing.pages() == 0 => {
                    listing.cut_short("the server knows no `tools/list`".into())
                }
                Err(Cause::Protocol {
                    code: INVALID_PARAMS,
                    ..
                }) if cursor.is_some() && may_restart => {
                    // The list changed under the cursor.
                    may_restart = false;
                    listing = Listing::new(&self.settings, mirrors);
                    cursor = None;
                    continue;
                }
                Err(cause @ Cause::LoginRequired { .. }) if logins < LOGINS => {
                    logins += 1;
                    let began = Instant::now();
                    self.log_in(cause).await?;
                    waits.until = later(waits.until, began.elapsed());
                    continue;
                }
                Err(cause @ Cause::ConnectionLost { .. }) => return Err(cause),
                Err(cause) if listing.pages() > 0 => {
                    listing.cut_short(format!("the rest of the list is left out: {cause}"))
                }
                Err(cause) => return Err(cause),
            };
            match next {
                Next::Page(next) => cursor = Some(next),
                Next::End => {
                    let list = listing.finish();
                    self.outputs.learn(&list);
                    return Ok(list);
                }
            }
        }
    }

    async fn page(
        &self,
        cursor: Option<String>,
        waits: &Waits<'_>,
    ) -> Result<(serde_json::Value, usize), Cause> {
        let params =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest {
            params,
            ..ListToolsRequest::default()
        };
        let request = ClientRequest::ListToolsRequest(request);
        self.line()
            .request(request, PeerRequestOptions::no_options(), waits, None)
            .await
    }
}
