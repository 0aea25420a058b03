//! The lists of a server's prompts, resources and resource templates.

use haft_core::Cancel;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams,
};
use rmcp::service::PeerRequestOptions;
use tokio::time::Instant;

use super::request::{Waits, later};
use super::{Connection, LOGINS};
use crate::error::{Cause, McpError, Phase};
use crate::item_list::{ItemListing, ServerList};
use crate::listing::Next;
use crate::offered::{ListItem, PromptDef, ResourceDef, TemplateItem};

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

impl Connection {
    /// Reads all pages of the list of prompts, within the limits of the settings. The list of a server
    /// that declares no prompts is empty. An item that cannot be used is left out with a diagnostic.
    pub async fn list_prompts(&self) -> Result<ServerList<PromptDef>, McpError> {
        if !self.identity.capabilities.prompts {
            return Ok(ServerList::default());
        }
        let request = |params| {
            ClientRequest::ListPromptsRequest(ListPromptsRequest {
                params,
                ..ListPromptsRequest::default()
            })
        };
        self.list_items(request).await
    }

    /// Reads all pages of the list of resources, as [`list_prompts`](Self::list_prompts) does.
    pub async fn list_resources(&self) -> Result<ServerList<ResourceDef>, McpError> {
        if !self.identity.capabilities.resources {
            return Ok(ServerList::default());
        }
        let request = |params| {
            ClientRequest::ListResourcesRequest(ListResourcesRequest {
                params,
                ..ListResourcesRequest::default()
            })
        };
        self.list_items(request).await
    }

    /// Reads all pages of the list of resource templates, as [`list_prompts`](Self::list_prompts) does.
    pub async fn list_resource_templates(&self) -> Result<ServerList<ResourceDef>, McpError> {
        if !self.identity.capabilities.resources {
            return Ok(ServerList::default());
        }
        let request = |params| {
            ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                params,
                ..ListResourceTemplatesRequest::default()
            })
        };
        let list = self.list_items::<TemplateItem>(request).await?;
        Ok(list.map(|template| template.0))
    }

    async fn list_items<T: ListItem>(
        &self,
        request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
    ) -> Result<ServerList<T>, McpError> {
        let started = Instant::now();
        match self.item_pages(started, request).await {
            Ok(list) => Ok(list),
            Err(cause) => Err(self.failed(Phase::List, started, cause).await),
        }
    }

    async fn item_pages<T: ListItem>(
        &self,
        started: Instant,
        request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
    ) -> Result<ServerList<T>, Cause> {
        let limit = self.settings.timeouts.list;
        let cancel = Cancel::new();
        let mut waits = Waits {
            idle: limit.min(self.settings.timeouts.idle),
            until: later(started, limit),
            total: (limit, "timeouts.list"),
            cancel: &cancel,
            asking: None,
        };
        let mut listing = ItemListing::<T>::new(self.settings.limits);
        let mut cursor: Option<String> = None;
        let (mut may_restart, mut logins) = (true, 0);
        loop {
            let params = cursor.clone();
            let params = params.map(|it| PaginatedRequestParams::default().with_cursor(Some(it)));
            let options = PeerRequestOptions::no_options();
            let line = self.line();
            let page = line.request(request(params), options, &waits, None).await;
            let next = match page {
                Ok((page, bytes)) => listing.page(&page, bytes),
                // Servers that have resources do not all know templates.
                Err(Cause::Protocol {
                    code: METHOD_NOT_FOUND,
                    ..
                }) if listing.pages() == 0 => return Ok(listing.finish()),
                Err(Cause::Protocol {
                    code: INVALID_PARAMS,
                    ..
                }) if cursor.is_some() && may_restart => {
                    // The list changed under the cursor.
                    may_restart = false;
                    listing = ItemListing::new(self.settings.limits);
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
                Err(cause) if listing.pages() > 0 => listing.cut(&cause.to_string()),
                Err(cause) => return Err(cause),
            };
            match next {
                Next::Page(next) => cursor = Some(next),
                Next::End => return Ok(listing.finish()),
            }
        }
    }
}
