//! What can go wrong with one server, in words that say where.

use std::fmt;
use std::time::Duration;

use crate::names::Label;

/// Which of the two families of the protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// With a handshake: up to 2025-11-25.
    Legacy,
    /// Without: from 2026-07-28.
    Modern,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportKind {
    /// A child process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// The older HTTP with an event stream.
    Sse,
    /// A transport of the library's user.
    Custom,
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::Custom => "custom",
        })
    }
}

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Starting the process or reaching the address.
    Spawn,
    /// Asking for the era.
    Probe,
    /// The handshake of the legacy era.
    Initialize,
    /// Reading the list of tools.
    List,
    /// A call.
    Call,
    /// Reading a resource.
    Read,
    /// Getting a prompt.
    Prompt,
    /// Completing an argument.
    Complete,
    /// Subscribing to a resource, or unsubscribing.
    Subscribe,
    /// Setting the log level.
    SetLevel,
    /// Taking leave.
    Close,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spawn => "spawn",
            Self::Probe => "probe",
            Self::Initialize => "initialize",
            Self::List => "list",
            Self::Call => "call",
            Self::Read => "read",
            Self::Prompt => "prompt",
            Self::Complete => "complete",
            Self::Subscribe => "subscribe",
            Self::SetLevel => "set level",
            Self::Close => "close",
        })
    }
}

/// Why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The settings cannot work. Trying again does not help.
    #[error("{0}")]
    Settings(String),
    /// There is no such program, or it may not be run. Trying again does not help.
    #[error("`{command}` cannot be started: {reason}; check `command` and `PATH`")]
    NotStarted {
        /// What was to be run.
        command: String,
        /// What the system says.
        reason: String,
    },
    /// Nobody answers at the address.
    #[error("the server cannot be reached: {0}; check `url`, and that the server runs")]
    Unreachable(String),
    /// Nothing came for too long.
    #[error("no answer and no progress for {}; raise `idle_timeout` if the server needs longer", seconds(*limit))]
    Idle {
        /// The limit.
        limit: Duration,
    },
    /// It took too long, progress or not.
    #[error("not done after {}; raise `{setting}` if the server needs longer", seconds(*limit))]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The setting that holds it.
        setting: &'static str,
    },
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// The connection ended while the answer was awaited.
    #[error("connection lost{}{detail}", if *sent { ", the action may have happened" } else { "" })]
    ConnectionLost {
        /// Whether the request may have reached the server.
        sent: bool,
        /// How it ended, as far as that is known: begins with `: ` or is empty.
        detail: String,
    },
    /// An answer that is larger than allowed.
    #[error(
        "result too large: {bytes} bytes (limit {}); raise `max_message_bytes` of the server",
        size(*limit)
    )]
    TooLarge {
        /// How large it is, as far as it was seen.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// A request that is larger than allowed. It was not sent.
    #[error(
        "request too large: {bytes} bytes (limit {}); make the arguments smaller, or raise \
         `max_message_bytes` of the server",
        size(*limit)
    )]
    RequestTooLarge {
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The server answered with an error of the protocol.
    #[error("the server says: {message} (code {code})")]
    Protocol {
        /// Its number.
        code: i64,
        /// Its words, cut.
        message: String,
    },
    /// An HTTP status that is no success.
    #[error("HTTP status {status}{detail}")]
    Status {
        /// The number.
        status: u16,
        /// The beginning of what came with it: begins with `: ` or is empty.
        detail: String,
    },
    /// Credentials are missing, wrong or not enough.
    #[error(
        "the server asks for authorization (HTTP status {status}); check `bearer_env`, `bearer_file` or `headers`"
    )]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The challenge, where one came.
        challenge: Option<String>,
    },
    /// Nobody has logged in, or what they were granted is not enough.
    #[error("{}", login_required(server, user.as_deref(), wanted.as_deref()))]
    LoginRequired {
        /// The server.
        server: Label,
        /// The tenant whose login it is, where each has its own.
        user: Option<String>,
        /// The scopes that are missing, where the server says so.
        wanted: Option<String>,
    },
    /// A tenant has no credentials of its own, and must not use those of others.
    #[error(
        "tenant `{tenant}` has no credentials for this server; the operator adds them in \
         `[mcp.{server}.tenants.{tenant}]`"
    )]
    NoCredentials {
        /// The server.
        server: Label,
        /// The tenant.
        tenant: String,
    },
    /// The authorization failed on the way.
    #[error("authorization failed: {0}")]
    Authorization(String),
    /// Both sides share no version of the protocol.
    #[error("no shared protocol version, the server knows: {}", server.join(", "))]
    NoSharedVersion {
        /// What the server knows.
        server: Vec<String>,
    },
    /// The server wants input in the middle of a call, and nobody can give it.
    #[error("the server asks for input that cannot be given here: {wanted}")]
    InputRequired {
        /// What it wants.
        wanted: String,
    },
    /// Something that the protocol does not allow.
    #[error("{0}")]
    Unexpected(String),
}

impl Cause {
    /// The same with every foreign text changed.
    pub(crate) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Settings(text) => Self::Settings(change(text)),
            Self::NotStarted { command, reason } => Self::NotStarted {
                command: change(command),
                reason: change(reason),
            },
            Self::Unreachable(text) => Self::Unreachable(change(text)),
            Self::ConnectionLost { sent, detail } => Self::ConnectionLost {
                sent,
                detail: change(detail),
            },
            Self::Protocol { code, message } => Self::Protocol {
                code,
                message: change(message),
            },
            Self::Status { status, detail } => Self::Status {
                status,
                detail: change(detail),
            },
            Self::Unauthorized { status, challenge } => Self::Unauthorized {
                status,
                challenge: challenge.map(change),
            },
            Self::InputRequired { wanted } => Self::InputRequired {
                wanted: change(wanted),
            },
            Self::Unexpected(text) => Self::Unexpected(change(text)),
            Self::Authorization(text) => Self::Authorization(change(text)),
            Self::LoginRequired {
                server,
                user,
                wanted,
            } => Self::LoginRequired {
                server,
                user,
                wanted: wanted.map(change),
            },
            Self::Idle { .. }
            | Self::TimedOut { .. }
            | Self::Cancelled
            | Self::TooLarge { .. }
            | Self::RequestTooLarge { .. }
            | Self::NoCredentials { .. }
            | Self::NoSharedVersion { .. } => self,
        }
    }

    /// The same for those who use a server and do not run it: which program it is, where it is and how it
    /// ended is the operator's.
    pub fn for_callers(&self) -> String {
        match self {
            Self::NotStarted { .. } => "the server's program cannot be started".into(),
            Self::Unreachable(_) => "the server cannot be reached".into(),
            Self::ConnectionLost { sent, .. } => {
                let detail = String::new();
                Self::ConnectionLost {
                    sent: *sent,
                    detail,
                }
                .to_string()
            }
            _ => self.to_string(),
        }
    }

    /// The reason for a status that any caller, and a model, may read: neither what the operator runs nor
    /// text that the server wrote.
    pub(crate) fn for_status(&self) -> String {
        match self {
            Self::NotStarted { .. } | Self::Unreachable(_) | Self::ConnectionLost { .. } => {
                self.for_callers()
            }
            Self::Settings(_) => "its configuration cannot be used".into(),
            Self::Authorization(_) => "authorization failed".into(),
            Self::LoginRequired { server, user, .. } => {
                login_required(server, user.as_deref(), None)
            }
            Self::NoSharedVersion { .. } => "no shared protocol version".into(),
            Self::Unauthorized { status, .. } => {
                format!("the server asks for authorization (HTTP status {status})")
            }
            _ => self.without_content(),
        }
    }

    /// The same without the texts that a server wrote in answer to a call: they may quote arguments
    /// and results.
    fn without_content(&self) -> String {
        match self {
            Self::Protocol { code, .. } => format!("the server answered with error code {code}"),
            Self::Status { status, .. } => format!("HTTP status {status}"),
            Self::InputRequired { .. } => {
                "the server asks for input that cannot be given here".into()
            }
            Self::Unexpected(_) => "the server's answer violates the protocol".into(),
            _ => self.to_string(),
        }
    }

    /// Whether another try ends the same way until somebody changes something.
    pub fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::Settings(_)
                | Self::NotStarted { .. }
                | Self::Unauthorized { .. }
                | Self::LoginRequired { .. }
                | Self::NoCredentials { .. }
                | Self::NoSharedVersion { .. }
        )
    }
}

/// A failure of one server: which, how reached, when, why.
///
/// Its text never holds a secret of the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct McpError {
    /// The server.
    pub server: Label,
    /// How it is reached.
    pub transport: TransportKind,
    /// Which era it speaks, where that is known.
    pub era: Option<Era>,
    /// What was being done.
    pub phase: Phase,
    /// For how long.
    pub elapsed: Duration,
    /// Why it failed.
    pub cause: Box<Cause>,
    /// The last lines that the process wrote to its standard error; may be empty.
    pub stderr: String,
}

impl McpError {
    /// Whether the request may have reached the server, so that what it asks for may have happened.
    pub fn may_have_happened(&self) -> bool {
        match &*self.cause {
            Cause::ConnectionLost { sent, .. } => *sent,
            Cause::Idle { .. }
            | Cause::TimedOut { .. }
            | Cause::Cancelled
            | Cause::TooLarge { .. }
            | Cause::Unexpected(_)
            | Cause::InputRequired { .. } => true,
            Cause::Status { status, .. } => *status >= 500,
            _ => false,
        }
    }
}

impl McpError {
    /// The text for a log. Of a call it leaves out what the server wrote, on its standard error too: that
    /// may quote arguments and results, which are never logged.
    pub fn for_log(&self) -> String {
        let has_content = matches!(
            self.phase,
            Phase::Call | Phase::Read | Phase::Prompt | Phase::Complete
        );
        if has_content {
            format!("{}: {}", self.situation(), self.cause.without_content())
        } else {
            self.to_string()
        }
    }

    /// The server, how it is reached, what was being done and for how long.
    fn situation(&self) -> String {
        let Self {
            server,
            transport,
            phase,
            ..
        } = self;
        let era = self.era.map(|era| format!(", {era}")).unwrap_or_default();
        let elapsed = seconds(self.elapsed);
        format!("server `{server}` ({transport}{era}), {phase} after {elapsed}")
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.situation(), self.cause)?;
        if !self.stderr.is_empty() {
            write!(
                f,
                "\nthe last lines of its standard error:\n{}",
                self.stderr
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for McpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

fn login_required(server: &Label, user: Option<&str>, wanted: Option<&str>) -> String {
    let user = user.map_or_else(String::new, |user| format!(" --user {user}"));
    match wanted {
        None => format!("the server asks for authorization: run `haft mcp login {server}{user}`"),
        Some(wanted) => format!(
            "the server asks for more rights: add {wanted} to `scopes` of `[mcp.{server}.oauth]` and run `haft mcp login {server}{user}`"
        ),
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..0x10_0000 => format!("{} KiB", bytes / KIB),
        _ => format!("{} MiB", bytes / KIB / KIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_who_where_when_and_why() {
        let error = McpError {
            server: Label::new("files").unwrap(),
            transport: TransportKind::Stdio,
            era: Some(Era::Legacy),
            phase: Phase::Call,
            elapsed: Duration::from_millis(1234),
            cause: Box::new(Cause::ConnectionLost {
                sent: true,
                detail: ": exit status: 3".into(),
            }),
            stderr: "disk full".into(),
        };
        assert_eq!(
            error.to_string(),
            "server `files` (stdio, legacy), call after 1.2 s: connection lost, the action may have \
             happened: exit status: 3\nthe last lines of its standard error:\ndisk full"
        );
        assert!(error.may_have_happened());
    }

    #[test]
    fn log_text_of_a_call_leaves_out_what_the_server_wrote() {
        let causes = [
            Cause::Protocol {
                code: -32000,
                message: "secret".into(),
            },
            Cause::Status {
                status: 500,
                detail: ": secret".into(),
            },
            Cause::InputRequired {
                wanted: "secret".into(),
            },
            Cause::Unexpected("secret".into()),
        ];
        for cause in causes {
            let mut error = McpError {
                server: Label::new("files").unwrap(),
                transport: TransportKind::Http,
                era: None,
                phase: Phase::Call,
                elapsed: Duration::from_millis(100),
                cause: Box::new(cause),
                stderr: "secret".into(),
            };
            let text = error.for_log();
            assert!(!text.contains("secret"), "{text}");
            assert!(text.contains("server `files` (http), call after"), "{text}");
            error.phase = Phase::Initialize;
            assert!(error.for_log().contains("secret"), "no content yet");
        }
    }

    #[test]
    fn callers_do_not_learn_what_the_operator_runs_and_where() {
        let causes = [
            Cause::NotStarted {
                command: "secret-tool".into(),
                reason: "not found".into(),
            },
            Cause::Unreachable("http://10.0.0.7: secret".into()),
            Cause::ConnectionLost {
                sent: true,
                detail: ": secret".into(),
            },
        ];
        for cause in causes {
            let text = cause.for_callers();
            assert!(!text.contains("secret") && !text.is_empty(), "{text}");
        }
    }

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        let cause = Cause::TooLarge {
            bytes: 50 << 20,
            limit: 16 << 20,
        };
        assert_eq!(
            cause.to_string(),
            "result too large: 52428800 bytes (limit 16 MiB); raise `max_message_bytes` of the server"
        );
        assert_eq!(size(2048), "2 KiB");
    }
}
