//! What rmcp calls when a server asks something of haft: little is offered.

#![allow(deprecated, reason = "servers of the legacy era still ask for roots")]

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitationCapability,
    ErrorCode, FormElicitationCapability, Implementation, JsonObject, ListRootsResult,
    ProtocolVersion, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::Value;

use super::desk::{Desk, Unasked};
use crate::question::Takes;
use crate::traffic::QUESTION;

/// haft as a client. Pings are answered, and questions where somebody can answer them; samples and
/// roots are not declared and refused.
#[derive(Clone)]
pub(super) struct Client {
    config: ClientConfig,
    desk: Arc<Desk>,
}

impl Client {
    /// `legacy`: the version that a handshake offers; `tasks`: whether calls may be answered with tasks.
    pub(super) fn new(
        identity: Implementation,
        legacy: ProtocolVersion,
        desk: Arc<Desk>,
        tasks: bool,
    ) -> Self {
        let takes = if desk.is_open() {
            Takes::ALL
        } else {
            Takes::NOTHING
        };
        let config = ClientConfig::new(capabilities(takes, tasks), identity);
        Self {
            config: config.with_protocol_version(legacy),
            desk,
        }
    }
}

/// What a client declares that can answer these questions, and poll tasks or not.
pub(super) fn capabilities(takes: Takes, tasks: bool) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    if tasks {
        let tasks = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        capabilities.extensions = Some([tasks].into());
    }
    if takes == Takes::NOTHING {
        return capabilities;
    }
    let mut elicitation = ElicitationCapability::new();
    if takes.forms {
        elicitation = elicitation.with_form(FormElicitationCapability::default());
    }
    if takes.pages {
        elicitation = elicitation.with_url(UrlElicitationCapability::default());
    }
    capabilities.elicitation = Some(elicitation);
    capabilities
}

fn not_offered(what: &str) -> ErrorData {
    ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("this client offers no {what}"),
        None,
    )
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(not_offered("roots"))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != QUESTION {
            return Err(not_offered("such method"));
        }
        let params = request.params.unwrap_or(Value::Null);
        tokio::select! {
            asked = self.desk.asked(&params) => match asked {
                Ok(answer) => Ok(CustomResult::new(answer)),
                Err(Unasked::Nobody) => Err(not_offered("elicitation")),
                Err(Unasked::Refused(reason) | Unasked::Unaskable(reason)) => Err(ErrorData::invalid_params(reason, None)),
            },
            // The server does not want to know any more.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}
