//! The servers behind a gateway in a few words each, for models.
//!
//! Nothing that a server wrote is in these texts but names of tools: labels and descriptions are the
//! operator's, reasons are haft's own.

use haft_core::cut;
use serde_json::{Value, json};

use crate::pool::{ServerState, ServerStatus};
use crate::text::visible;

/// How many bytes the servers take in the instructions, and in the description of `search_tools`.
const INSTRUCTION_BYTES: usize = 2_000;
const DESCRIPTION_BYTES: usize = 400;
/// How much of an operator's description is shown.
const LINE_BYTES: usize = 160;
const SHORT_LINE_BYTES: usize = 60;
/// How many held tools of one server are named.
const MAX_HELD: usize = 10;

/// The instructions for clients: what the backend says, then one line for each server.
pub(super) fn instructions(own: Option<String>, servers: &[ServerStatus]) -> Option<String> {
    if servers.is_empty() {
        return own;
    }
    let head =
        "Tools of these MCP servers are available (where `search_tools` is listed, it finds them):";
    let lines = servers.iter().map(|server| {
        let about = about(server, LINE_BYTES);
        let count = match server.tools {
            Some(count) if server.description.is_some() => format!(" ({})", counted(count)),
            _ => String::new(),
        };
        format!("- {}{about}{count}", server.label)
    });
    let text = bounded(lines.collect(), INSTRUCTION_BYTES, "\n", "- ");
    let text = format!("{head}\n{text}");
    Some(match own {
        Some(own) => format!("{own}\n\n{text}"),
        None => text,
    })
}

/// The servers for the description of `search_tools`; empty if there are none.
///
/// A server with a description of the operator has the same text whatever its state: the definition of a
/// tool should change as rarely as possible, for it is a part of every prompt.
pub(super) fn for_description(servers: &[ServerStatus]) -> String {
    if servers.is_empty() {
        return String::new();
    }
    let lines = servers
        .iter()
        .map(|server| format!("{}{}", server.label, about(server, SHORT_LINE_BYTES)));
    let text = bounded(lines.collect(), DESCRIPTION_BYTES, "; ", "");
    format!(" Servers: {text}")
}

/// What a server is for, beginning with `: `, or nothing.
fn about(server: &ServerStatus, limit: usize) -> String {
    let described = server.description.as_deref().map(str::trim);
    if let Some(text) = described.filter(|text| !text.is_empty()) {
        let line = visible(text.lines().next().unwrap_or_default());
        return format!(": {}", shortened(&line, limit));
    }
    match server.tools {
        None | Some(0) => String::new(),
        Some(count) if server.samples.is_empty() => format!(": {}", counted(count)),
        Some(count) => {
            let more = if count > server.samples.len() {
                ", …"
            } else {
                ""
            };
            let names = shortened(&server.samples.join(", "), limit);
            format!(": {} ({names}{more})", counted(count))
        }
    }
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 tool".into(),
        count => format!("{count} tools"),
    }
}

/// The beginning of a text, at most so many bytes and an ellipsis.
fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}…", text[..end].trim_end())
}

/// As many of the lines as fit, and how many are left out.
fn bounded(lines: Vec<String>, limit: usize, separator: &str, bullet: &str) -> String {
    let all = lines.len();
    let mut text = String::new();
    for (at, line) in lines.into_iter().enumerate() {
        if text.len() + separator.len() + line.len() > limit {
            return format!("{text}{separator}{bullet}… and {} more", all - at);
        }
        if at > 0 {
            text.push_str(separator);
        }
        text.push_str(&line);
    }
    text
}

/// The servers whose tools are missing or cannot be called now, for a model; empty if there are none.
pub(super) fn problems(servers: &[ServerStatus]) -> String {
    let mut lines = Vec::new();
    let failed: Vec<_> = servers.iter().filter_map(problem).collect();
    if !failed.is_empty() {
        lines.push(format!("Unavailable servers: {}.", failed.join("; ")));
    }
    let held = servers.iter().filter(|it| !it.held.is_empty());
    let held: Vec<_> = held
        .map(|it| format!("`{}`: {}", it.label, held_names(it).join(", ")))
        .collect();
    if !held.is_empty() {
        lines.push(format!(
            "New or changed tools that are held back until the operator runs `haft mcp accept`: {}.",
            held.join("; ")
        ));
    }
    lines.join("\n")
}

/// Why a server cannot be used, if it cannot.
pub(super) fn problem(server: &ServerStatus) -> Option<String> {
    let label = &server.label;
    match &server.state {
        ServerState::Unavailable {
            reason, retry_in, ..
        } => {
            let retry = match retry_in {
                Some(wait) if wait.as_secs() > 0 => {
                    format!(" (next attempt in {} s)", wait.as_secs())
                }
                _ => String::new(),
            };
            Some(format!("`{label}`: {reason}{retry}"))
        }
        ServerState::Starting { .. } if server.tools.is_none() => Some(format!(
            "`{label}`: still starting, search again in a few seconds"
        )),
        _ => None,
    }
}

/// The same for programs, put into the structured result of a search.
pub(super) fn add_problems(structured: &mut Value, servers: &[ServerStatus]) {
    let unavailable: Vec<Value> = servers.iter().filter_map(problem_json).collect();
    if !unavailable.is_empty() {
        structured["unavailable"] = unavailable.into();
    }
    let held = servers.iter().filter(|it| !it.held.is_empty());
    let held: Vec<Value> = held
        .map(|it| json!({"server": it.label, "tools": held_names(it)}))
        .collect();
    if !held.is_empty() {
        structured["held"] = held.into();
    }
}

fn problem_json(server: &ServerStatus) -> Option<Value> {
    let mut json = json!({"server": server.label, "state": server.state.as_str()});
    match &server.state {
        ServerState::Unavailable {
            reason, retry_in, ..
        } => {
            json["reason"] = reason.as_str().into();
            json["retry_in_seconds"] = retry_in.map(|it| it.as_secs()).into();
        }
        ServerState::Starting { .. } if server.tools.is_none() => {
            json["reason"] = "still starting".into();
        }
        _ => return None,
    }
    Some(json)
}

fn held_names(server: &ServerStatus) -> Vec<String> {
    let names = server.held.iter().take(MAX_HELD);
    let mut names: Vec<String> = names.map(|name| cut(&visible(name))).collect();
    let more = server.held.len() - names.len();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(label: &str, description: Option<&str>, tools: Option<usize>) -> ServerStatus {
        ServerStatus {
            description: description.map(str::to_owned),
            tools,
            state: ServerState::Connected,
            ..ServerStatus::unusable(label, "")
        }
    }

    #[test]
    fn each_server_has_a_line_with_the_operators_words_or_its_tools() {
        let mut git = server("git", None, Some(12));
        git.samples = vec!["log".into(), "diff".into(), "show".into()];
        let servers = [
            server("files", Some("The documents.\nMore."), Some(3)),
            git,
            server("new", None, None),
        ];
        assert_eq!(
            for_description(&servers),
            " Servers: files: The documents.; git: 12 tools (log, diff, show, …); new"
        );
        let text = instructions(Some("Be brief.".into()), &servers).unwrap();
        assert!(text.starts_with("Be brief.\n\nTools of"), "{text}");
        assert!(
            text.ends_with(
                "\n- files: The documents. (3 tools)\n- git: 12 tools (log, diff, show, …)\n- new"
            ),
            "{text}"
        );
        assert_eq!(instructions(None, &[]), None);
    }

    #[test]
    fn many_servers_with_long_descriptions_stay_small() {
        let text = "é".repeat(5_000);
        let servers: Vec<_> = (0..500)
            .map(|n| server(&format!("server-{n}"), Some(&text), Some(n)))
            .collect();
        let short = for_description(&servers);
        assert!(short.len() < DESCRIPTION_BYTES + 60, "{}", short.len());
        assert!(short.ends_with(" more"), "{short}");
        let long = instructions(None, &servers).unwrap();
        assert!(long.len() < INSTRUCTION_BYTES + 200, "{}", long.len());
    }
}
