//! What rmcp calls when a server asks something of haft: little is offered.

#![allow(deprecated, reason = "servers of the legacy era still ask for roots")]

use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, Implementation,
    ListRootsResult, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient};

/// haft as a client. Pings are answered; input, samples and roots are not declared and refused.
#[derive(Debug, Clone)]
pub(super) struct Client {
    config: ClientConfig,
}

impl Client {
    /// `legacy`: the version that a handshake offers.
    pub(super) fn new(name: &str, version: &str, legacy: ProtocolVersion) -> Self {
        let identity = Implementation::new(name, version);
        let config = ClientConfig::new(ClientCapabilities::default(), identity);
        Self {
            config: config.with_protocol_version(legacy),
        }
    }
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

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(not_offered("elicitation"))
    }
}
