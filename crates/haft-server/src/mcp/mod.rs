//! Tools of MCP servers in a request (`open-responses.md` §5.6).
//!
//! What comes in: what a request says about servers, and what servers say. What goes out: servers with
//! the tools that the request may use (`servers`), and the parts of the wire that are theirs alone:
//! lists of tools (`listing`), ends of calls (`call_end`), questions that only this server can have
//! asked (`question_ids`). A server that is down costs its own tools and nothing else.

mod call_end;
mod listing;
mod question_ids;
mod servers;

pub(crate) use call_end::{call_end, output_of};
pub(crate) use listing::Listing;
pub(crate) use question_ids::QuestionIds;
pub(crate) use servers::{ListedServer, OfferedTool, Patience, ToolSource};
