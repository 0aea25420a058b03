//! The Model Context Protocol: servers whose tools haft calls, and haft's tools as a server.
//!
//! What comes in: servers from configuration, from code or from a request, and clients of the gateway.
//! What goes out: tool definitions and outcomes in haft's own words. Nothing of the protocol library
//! leaves this crate, and nothing waits for ever: every request has an idle limit and a hard one, every
//! list and every message its size. One bad thing stays one bad thing: a malformed tool costs that tool,
//! an unknown block that block, a dead server that server.

mod connection;
mod custom;
mod error;
pub mod gateway;
mod guard;
mod header;
mod http;
mod item_list;
mod lenient;
mod line;
mod listing;
mod log_message;
mod names;
mod oauth;
mod offered;
mod outcome;
mod pins;
mod pool;
mod process;
mod question;
mod render;
mod schema_repair;
mod schema_text;
mod secret;
mod settings;
mod sse;
mod stdio;
mod text;
mod tool;
mod traffic;
mod wired;

pub use connection::{
    CallOptions, Changes, Completed, ConnectOptions, Connection, OnLog, ServerCapabilities,
    ServerIdentity, TraceContext,
};
pub use custom::{McpTransport, Notice, TransportError};
pub use error::{Cause, Era, McpError, Phase, TransportKind};
pub use guard::{Admitted, HostRuleError, HostRules, NotAllowed, Resolver, SystemResolver};
pub use http::HttpOptions;
pub use item_list::ServerList;
pub use listing::ToolList;
pub use log_message::{LogLevel, LogMessage};
pub use names::{Label, exposed_name, exposed_name_hashed};
pub use oauth::{
    LoggedIn, LoginError, OAuthOptions, Opener, PastedLines, TokenStore, TokenStoreError, login,
    login_with,
};
pub use offered::{PromptArgumentDef, PromptDef, ResourceDef};
pub use outcome::{Audience, Block, BlockBody, Media, ToolOutcome};
pub use pins::{Compared, Difference, PinError, PinFile, Standing, differences};
pub use pool::{
    CallLog, CallRecord, Guest, HeldTool, LabelTaken, McpTool, Offering, Pool, PoolBuilder,
    PoolEvent, ResourceSubscription, Server, ServerResources, ServerState, ServerStatus,
    ServerTools, State,
};
pub use process::{Launcher, Pipes, Process};
pub use question::{Answer, Asker, AskerSlot, Question, QuestionKind, Questions, Takes};
pub use render::{RenderOptions, Rendered, capped};
pub use secret::Secret;
pub use settings::{
    Approve, Defer, Grant, HttpKind, HttpSettings, Limits, OAuthClient, OAuthConfig, OAuthSettings,
    Pin, Prefer, Proof, ServerConfig, ServerSettings, SettingsError, StdioSettings, TenantConfig,
    TenantCredentials, Timeouts, ToolConfig, ToolSettings, TransportSettings, VariableLookup,
    is_tenant_name,
};
pub use text::visible;
pub use tool::{Diagnostic, ToolDef, ToolHints};
pub use traffic::ServerEvent;

pub use reqwest::Url;
