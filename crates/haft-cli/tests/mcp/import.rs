//! `haft mcp import|add|remove|cost`, and files of other clients that are not as they should be.

use std::path::Path;

use serde_json::{Value, json};

use crate::fake::WORDS;
use crate::kit::{FAKE_TOOLS, folder, mcp, mcp_json};
use crate::support::{haft, told};

/// The fake server, as clients describe it.
fn server(words: &str) -> Value {
    let own = std::env::current_exe().unwrap();
    json!({
        "command": own,
        "args": ["--exact", "fake::server", "--ignored", "--nocapture"],
        "env": {WORDS: words},
    })
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(folder: &Path, path: &str) -> String {
    std::fs::read_to_string(folder.join(path)).unwrap()
}

/// `haft mcp …` of a user whose home is this folder.
fn at_home(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["mcp"];
    all.extend(arguments);
    let mut command = haft(folder, &all);
    command
        .env("HOME", folder)
        .env_remove("CODEX_HOME")
        .env_remove("CLAUDE_CONFIG_DIR");
    told(command, "")
}

#[test]
fn servers_of_every_client_are_imported_and_work() {
    for (client, path, key) in [
        ("claude", ".claude.json", "mcpServers"),
        ("claude", ".mcp.json", "mcpServers"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "mcpServers",
        ),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
        ("vscode", ".vscode/mcp.json", "servers"),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            "mcpServers",
        ),
        ("gemini", ".gemini/settings.json", "mcpServers"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "// {client}\n{}",
            json!({key: {"My Files": server("modern")}})
        );
        write(folder.path(), path, &text);
        let (code, out, aside) = at_home(folder.path(), &["import", client]);
        assert_eq!(code, Some(0), "{client}: {aside}");
        assert!(
            out.contains("(new)") && out.contains("added    My-Files"),
            "{out}"
        );
        // Neither is there a configuration in this folder, so that the user's is read.
        let (code, out, aside) = at_home(folder.path(), &["call", "My-Files", "echo", "a=1"]);
        assert_eq!(
            (code, out.as_str()),
            (Some(0), "{\"a\":1}\n"),
            "{client}: {aside}"
        );
        let before = read(folder.path(), ".config/haft/haft.toml");
        let (code, out, _) = at_home(folder.path(), &["import", client]);
        assert_eq!(code, Some(0));
        assert!(
            out.contains("is unchanged") && out.contains("kept"),
            "{out}"
        );
        assert_eq!(read(folder.path(), ".config/haft/haft.toml"), before);
    }
}

#[test]
fn codex_and_the_projects_of_claude_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let codex = format!(
        "model = \"x\"\n[mcp_servers.files]\ncommand = \"{}\"\nargs = [\"--exact\", \"fake::server\", \"--ignored\", \
         \"--nocapture\"]\nenv_vars = [\"{WORDS}\"]\nstartup_timeout_sec = 20\n",
        own.display()
    );
    write(folder.path(), ".codex/config.toml", &codex);
    let here = folder.path().canonicalize().unwrap();
    let claude = json!({"projects": {
        here.display().to_string(): {"mcpServers": {"local": server("modern")}},
        "/elsewhere": {"mcpServers": {"other": server("modern")}},
    }});
    write(folder.path(), ".claude.json", &claude.to_string());
    let (code, _, aside) = at_home(folder.path(), &["import", "codex"]);
    assert_eq!(code, Some(0), "{aside}");
    let (code, out, aside) = at_home(folder.path(), &["import", "claude"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        out.contains("added    local") && !out.contains("other"),
        "{out}"
    );
    assert!(aside.contains("1 server of other projects"), "{aside}");
    let config = read(folder.path(), ".config/haft/haft.toml");
    assert!(
        config.contains(&format!("{WORDS} = \"${{{WORDS}}}\"")),
        "{config}"
    );
    assert!(config.contains("connect_timeout = 20\n"), "{config}");
}

#[test]
fn secrets_are_not_copied_unless_asked_for() {
    let folder = folder("# mine\n[server] # stays\n");
    let file = json!({"mcpServers": {
        "hub": {"command": "hub", "args": ["--token", "hunter2"], "env": {"HUB_TOKEN": "hunter2", "LEVEL": "info"}},
        "web": {"url": "https://w.example/mcp", "headers": {"Authorization": "Bearer hunter2"}},
        "broken": {"command": 3},
        "off": {"command": "x", "disabled": true},
    }});
    write(folder.path(), "client.json", &file.to_string());
    let before = read(folder.path(), "haft.toml");
    let (code, out, aside) = mcp(folder.path(), &["import", "client.json", "--dry-run"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        out.contains("[mcp.hub]") && !out.contains("hunter2"),
        "{out}"
    );
    assert_eq!(
        read(folder.path(), "haft.toml"),
        before,
        "nothing is written"
    );

    let (code, out, aside) = mcp(folder.path(), &["import", "client.json"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        out.contains("skipped  broken") && out.contains("`command` is not a text"),
        "{out}"
    );
    for variable in ["HUB_TOKEN", "WEB_TOKEN"] {
        assert!(aside.contains(variable), "{aside}");
    }
    let config = read(folder.path(), "haft.toml");
    assert!(
        config.starts_with(&before) && !config.contains("hunter2"),
        "{config}"
    );
    assert!(
        config.contains("LEVEL = \"info\"") && config.contains("bearer_env = \"WEB_TOKEN\""),
        "{config}"
    );
    assert!(!(out + &aside).contains("hunter2"));

    let arguments = ["import", "client.json", "--copy-secrets", "--replace"];
    let report = mcp_json(folder.path(), &arguments);
    assert_eq!(report["servers"][0]["outcome"], "replaced");
    assert!(!report.to_string().contains("hunter2"), "{report}");
    assert!(read(folder.path(), "haft.toml").contains("hunter2"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.path().join("haft.toml"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn what_cannot_be_imported_says_why() {
    let folder = folder("");
    write(folder.path(), "bad.json", "{\"mcpServers\": hunter2}");
    write(folder.path(), "none.json", "{}");
    for (source, expected) in [
        ("emacs", "name a client, one of `claude`"),
        ("bad.json", "not valid JSON at line 1"),
        ("none.json", "has no object `mcpServers`"),
        ("cursor", "Cursor has no settings here"),
    ] {
        let (code, _, aside) = at_home(folder.path(), &["import", source]);
        assert_eq!(code, Some(2), "{source}: {aside}");
        assert!(
            aside.contains(expected) && !aside.contains("hunter2"),
            "{source}: {aside}"
        );
    }
}

#[test]
fn several_files_of_clients_are_read_and_a_bad_entry_costs_only_itself() {
    let config = "[server]\nmcp_servers = [\"one.json\", \"two.json\"]\n";
    let folder = folder(config);
    let one = json!({"mcpServers": {"good": server("modern"), "bad": {"command": 3}, "worse": 7}});
    write(folder.path(), "one.json", &format!("{one} // a comment"));
    let two = json!({"servers": {"good": server("legacy"), "more": server("legacy")}});
    write(folder.path(), "two.json", &two.to_string());
    let (code, out, aside) = mcp(folder.path(), &["test"]);
    assert_eq!(code, Some(0), "{out}{aside}");
    assert!(
        out.contains("ok     good") && out.contains("ok     more"),
        "{out}"
    );
    let (_, _, aside) = mcp(folder.path(), &["list"]);
    for text in ["skipped `bad`", "skipped `worse`", "skipped `good`"] {
        assert!(aside.contains(text), "{aside}");
    }
}

#[test]
fn a_server_is_added_and_removed_and_the_rest_stays_byte_for_byte() {
    let folder = folder("# mine\n[gateway] # here\nmode = \"auto\"\n");
    let before = read(folder.path(), "haft.toml");
    let own = std::env::current_exe().unwrap().display().to_string();
    let (words, level) = (format!("{WORDS}=modern"), "LEVEL=${NOT_SET:-info}");
    let (code, out, aside) = mcp(
        folder.path(),
        &[
            "add",
            "files",
            "--env",
            &words,
            "--env",
            level,
            "--description",
            "The \"files\"",
            "--",
            &own,
            "--exact",
            "fake::server",
            "--ignored",
            "--nocapture",
        ],
    );
    assert_eq!(code, Some(0), "{aside}");
    assert!(out.contains("added `files`"), "{out}");
    let (code, out, aside) = mcp(folder.path(), &["call", "files", "echo", "a=1"]);
    assert_eq!((code, out.as_str()), (Some(0), "{\"a\":1}\n"), "{aside}");
    let (code, _, aside) = mcp(folder.path(), &["add", "files", "https://x.example/mcp"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("`--replace`"), "{aside}");
    let arguments = [
        "add",
        "web",
        "https://x.example/mcp",
        "--header",
        "X-Key: hunter2",
        "--bearer-env",
        "T",
    ];
    let (code, _, aside) = mcp(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{aside}");
    assert!(aside.contains("WEB_X_KEY"), "{aside}");
    let config = read(folder.path(), "haft.toml");
    assert!(
        config.starts_with(&before) && !config.contains("hunter2"),
        "{config}"
    );
    for name in ["files", "web"] {
        let (code, _, aside) = mcp(folder.path(), &["remove", name]);
        assert_eq!(code, Some(0), "{aside}");
    }
    assert_eq!(read(folder.path(), "haft.toml"), before);
    for (arguments, expected) in [
        (&["remove", "files"][..], "has no table `[mcp.files]`"),
        (&["add", "haft", "https://x.example"], "cannot be the name"),
        (&["add", "a", "npx"], "`haft mcp add a -- npx …`"),
        (&["add", "a", "ftp://x"], "only `http://`"),
        (&["add", "a"], "required"),
    ] {
        let (code, _, aside) = mcp(folder.path(), arguments);
        assert_eq!(code, Some(2), "{aside}");
        assert!(aside.contains(expected), "{arguments:?}: {aside}");
    }
    assert_eq!(read(folder.path(), "haft.toml"), before);
}

#[test]
fn cost_counts_every_server_and_the_facade() {
    let config = format!(
        "{}{}",
        crate::kit::fake("zeta", "modern", ""),
        crate::kit::fake("dead", "exits-at-once", "")
    );
    let folder = folder(&config);
    let cost = mcp_json(folder.path(), &["cost", "--model", "gpt-5-mini"]);
    assert_eq!(cost["context_window"], 400_000);
    assert_eq!(
        (&cost["servers"][0]["server"], &cost["servers"][0]["tools"]),
        (&"zeta".into(), &FAKE_TOOLS.into())
    );
    assert!(
        cost["servers"][1]["error"]
            .as_str()
            .unwrap()
            .contains("no license found"),
        "{cost}"
    );
    assert_eq!(cost["facade"]["tools"], 3);
    let tokens = |value: &Value| value["tokens"].as_u64().unwrap();
    assert!(
        tokens(&cost["facade"]) > 100 && tokens(&cost["without_gateway"]) > 300,
        "{cost}"
    );
    let (code, out, aside) = mcp(folder.path(), &["cost"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        out.contains("with it (facade)") && aside.contains("`dead` is not counted"),
        "{out}{aside}"
    );
    let empty = crate::kit::folder("");
    let (code, _, aside) = mcp(empty.path(), &["cost"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("haft mcp import"), "{aside}");
}
