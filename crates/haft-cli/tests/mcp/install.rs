//! `haft mcp install`: the client's own file, which keeps everything else.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::{LineClient, fake, folder};
use crate::support::{haft, told};

/// `haft mcp install …` of a user whose home is `home`, in another folder.
fn install(home: &Path, here: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["mcp", "install"];
    all.extend(arguments);
    let mut command = haft(here, &all);
    command
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join(".config"))
        .env_remove("CODEX_HOME")
        .env_remove("CLAUDE_CONFIG_DIR");
    told(command, "")
}

const COMMENTED: &str = "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"zeta\": {\"command\": \"x\"}, // twice\n    \"other\": {\"command\": \"y\"},\n  },\n}\n";

#[test]
fn a_client_gets_a_setting_that_starts_the_gateway_from_anywhere() {
    let config = folder(&fake("zeta", "modern", ""));
    for (client, path, key) in [
        ("claude", ".claude.json", "mcpServers"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "mcpServers",
        ),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            "mcpServers",
        ),
        ("gemini", ".gemini/settings.json", "mcpServers"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let (code, out, aside) = install(home.path(), config.path(), &[client]);
        assert_eq!(code, Some(0), "{client}: {aside}");
        assert!(
            out.contains("installed haft in") && aside.contains("undo with"),
            "{out}{aside}"
        );
        let file = std::fs::read_to_string(home.path().join(path)).unwrap();
        let file: Value = serde_json::from_str(&file).unwrap();
        let entry = &file[key]["haft"];
        let args: Vec<_> = entry["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        // As the client would, from a folder that has nothing to do with it.
        let mut command = Command::new(entry["command"].as_str().unwrap());
        command.args(args).current_dir("/");
        let mut gateway = LineClient::greeting(command, json!({}));
        assert!(
            gateway.names().iter().any(|it| it == "zeta__echo"),
            "{client}"
        );
        gateway.leave();
    }
}

#[test]
fn comments_and_other_settings_survive_and_twice_is_once() {
    let config = folder(&fake("zeta", "modern", ""));
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".cursor/mcp.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, COMMENTED).unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    let (code, _, aside) = install(home.path(), config.path(), &["cursor"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(aside.contains("`zeta` still listed there"), "{aside}");
    let installed = read();
    assert!(
        installed.starts_with(COMMENTED.trim_end_matches("  },\n}\n")),
        "{installed}"
    );
    let (_, out, _) = install(home.path(), config.path(), &["cursor"]);
    assert!(out.contains("installed in Cursor already"), "{out}");
    assert_eq!(read(), installed);
    let (code, out, aside) = install(home.path(), config.path(), &["cursor", "--replace-servers"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        out.contains("removed there") && out.contains(".bak"),
        "{out}"
    );
    assert!(
        !read().contains("zeta\":") && read().contains("\"other\"") && read().contains("// twice"),
        "{}",
        read()
    );
    assert_eq!(
        std::fs::read_to_string(path.with_file_name("mcp.json.bak")).unwrap(),
        installed
    );
    std::fs::write(&path, &installed).unwrap();
    let (_, out, _) = install(home.path(), config.path(), &["cursor", "--remove"]);
    assert!(out.contains("removed haft from Cursor"), "{out}");
    assert_eq!(read(), COMMENTED);
}

#[test]
fn codex_gets_a_table_and_keeps_the_rest() {
    let config = folder(&fake("zeta", "modern", ""));
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".codex/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mine = "# mine\nmodel = \"x\"\n\n[mcp_servers.docs] # kept\nurl = \"https://d.example\"\n";
    std::fs::write(&path, mine).unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    for _ in 0..2 {
        let (code, _, aside) = install(home.path(), config.path(), &["codex"]);
        assert_eq!(code, Some(0), "{aside}");
        assert!(read().starts_with(mine), "{}", read());
        assert_eq!(read().matches("[mcp_servers.haft]").count(), 1);
    }
    let http = [
        "codex",
        "--http",
        "http://127.0.0.1:1/mcp",
        "--bearer-env",
        "KEY",
    ];
    let (code, _, aside) = install(home.path(), config.path(), &http);
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        read().contains("bearer_token_env_var = \"KEY\"") && !read().contains("\"serve\""),
        "{}",
        read()
    );
    install(home.path(), config.path(), &["codex", "--remove"]);
    assert_eq!(read(), mine);
}

#[test]
fn printing_changes_nothing_and_a_broken_file_is_left_alone() {
    let here = folder("");
    let home = tempfile::tempdir().unwrap();
    let (code, out, aside) = install(
        home.path(),
        here.path(),
        &["vscode", "--print", "--project"],
    );
    assert_eq!(code, Some(0), "{aside}");
    let printed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(printed["servers"]["haft"]["args"][1], "serve");
    assert!(
        aside.contains(".vscode/mcp.json") && !here.path().join(".vscode").exists(),
        "{aside}"
    );
    let path = home.path().join(".claude.json");
    std::fs::write(&path, "{oops").unwrap();
    let (code, _, aside) = install(home.path(), here.path(), &["claude"]);
    assert_eq!(code, Some(1));
    assert!(
        aside.contains("not valid JSON") && aside.contains("--print"),
        "{aside}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{oops");
    let (code, _, aside) = install(home.path(), here.path(), &["windsurf", "--project"]);
    assert_eq!(code, Some(2), "{aside}");
    let (_, _, aside) = install(home.path(), here.path(), &["gemini"]);
    assert!(aside.contains("haft mcp import gemini"), "{aside}");
}
