//! The names of OpenTelemetry's semantic conventions that are used here, as of version 1.41 of the
//! conventions for generative AI, and the few of haft's own.

pub(super) const ERROR_TYPE: &str = "error.type";

pub(super) const CLIENT_ADDRESS: &str = "client.address";
pub(super) const HTTP_METHOD: &str = "http.request.method";
pub(super) const HTTP_ROUTE: &str = "http.route";
pub(super) const HTTP_STATUS: &str = "http.response.status_code";
pub(super) const HTTP_BODY_SIZE: &str = "http.response.body.size";

pub(super) const SERVICE_NAME: &str = "service.name";
pub(super) const SERVICE_VERSION: &str = "service.version";
pub(super) const SERVICE_INSTANCE: &str = "service.instance.id";

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";

/// Content: only where the operator wants it.
pub(super) const INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const CHAT: &str = "chat";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";

/// Those of the conventions for MCP.
pub(super) const MCP_METHOD: &str = "mcp.method.name";

/// haft's own: the MCP server's label and the gateway's endpoint.
pub(super) const MCP_SERVER: &str = "haft.mcp.server";
pub(super) const MCP_ENDPOINT: &str = "haft.mcp.endpoint";

/// haft's own: the request, the tenant, the model as requests call it, and how a run ended.
pub(super) const REQUEST: &str = "haft.request.id";
pub(super) const TENANT: &str = "haft.tenant";
pub(super) const MODEL: &str = "haft.model";
pub(super) const OUTCOME: &str = "haft.outcome";
pub(super) const TOOL_KIND: &str = "haft.tool.kind";
