//! Other MCP clients: where their settings are, and in which form.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::user_dirs;

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Windsurf
    Windsurf,
    /// Gemini CLI
    Gemini,
}

impl Client {
    /// The client of this name on the command line.
    pub(super) fn named(name: &str) -> Option<Self> {
        <Self as ValueEnum>::from_str(name, true).ok()
    }

    /// The names on the command line.
    pub(super) fn names() -> String {
        let names = Self::value_variants().iter();
        let names: Vec<_> = names.map(|it| format!("`{}`", it.id())).collect();
        names.join(", ")
    }

    /// Its name on the command line.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Gemini => "gemini",
        }
    }

    /// Its name for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The file with the user's servers.
    pub(super) fn user_file(self) -> Option<PathBuf> {
        let at_home = |path: &str| user_dirs::home().map(|home| home.join(path));
        let in_settings = |path: &str| user_dirs::settings().map(|it| it.join(path));
        let in_variable = |name: &str, path: &str| {
            let folder = std::env::var_os(name).map(PathBuf::from);
            folder.filter(|it| it.is_absolute()).map(|it| it.join(path))
        };
        match self {
            Self::Claude => {
                in_variable("CLAUDE_CONFIG_DIR", ".claude.json").or_else(|| at_home(".claude.json"))
            }
            Self::ClaudeDesktop => in_settings("Claude/claude_desktop_config.json"),
            Self::Codex => {
                in_variable("CODEX_HOME", "config.toml").or_else(|| at_home(".codex/config.toml"))
            }
            Self::Cursor => at_home(".cursor/mcp.json"),
            Self::Vscode => in_settings("Code/User/mcp.json"),
            Self::Windsurf => at_home(".codeium/windsurf/mcp_config.json"),
            Self::Gemini => at_home(".gemini/settings.json"),
        }
    }

    /// The file with the servers of a project, where the client has one.
    pub(super) fn project_file(self, folder: &Path) -> Option<PathBuf> {
        let path = match self {
            Self::Claude => ".mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Gemini => ".gemini/settings.json",
            Self::ClaudeDesktop | Self::Windsurf => return None,
        };
        Some(folder.join(path))
    }

    /// The key of its file that holds the servers.
    pub(super) fn servers_key(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }
}

/// The folder of the project that a file belongs to by its name, if it does.
pub(super) fn project_of(file: &Path) -> Option<PathBuf> {
    let file = std::path::absolute(file).ok()?;
    let folder = file.parent()?;
    let folder_name = folder.file_name().and_then(|it| it.to_str());
    let is_at_home = folder.parent().map(Path::to_owned) == user_dirs::home();
    match (file.file_name().and_then(|it| it.to_str()), folder_name) {
        (Some(".mcp.json"), _) => Some(folder.to_owned()),
        (_, Some(".cursor" | ".vscode" | ".gemini" | ".codex")) if !is_at_home => {
            folder.parent().map(Path::to_owned)
        }
        _ => None,
    }
}
