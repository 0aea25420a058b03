use std::path::Path;
use std::time::Duration;

use haft_mcp::{Approve, TransportSettings};

use super::tests::{resolved, resolved_with, source};
use super::*;

#[test]
fn mcp_servers_are_in_the_order_of_the_file() {
    let file = r#"
        [server]
        mcp_hosts = ["*.example.com"]
        [mcp.zeta]
        command = "npx"
        cwd = "work"
        call_timeout = 1.5
        env = { TOKEN = "${SOME_KEY}" }
        [mcp.zeta.tools."read.all"]
        approve = "always"
        [mcp.alpha]
        url = "https://a.example/mcp"
        bearer_env = "SOME_KEY"
    "#;
    let resolved = resolved(file).unwrap();
    let labels: Vec<_> = resolved.mcp.iter().map(|it| it.label.as_str()).collect();
    assert_eq!(labels, ["zeta", "alpha"]);
    let settings = resolved.mcp[0].settings.as_ref().unwrap();
    let TransportSettings::Stdio(stdio) = &settings.transport else {
        panic!()
    };
    assert_eq!(stdio.cwd.as_deref(), Some(Path::new("/etc/haft/work")));
    assert_eq!(stdio.env["TOKEN"].expose(), "hunter2");
    assert_eq!(settings.timeouts.call, Duration::from_millis(1500));
    assert_eq!(settings.tools["read.all"].approve, Some(Approve::Always));
    assert_eq!(resolved.mcp_hosts, ["*.example.com"]);
    assert!(!format!("{resolved:?}").contains("hunter2"));
}

#[test]
fn a_server_that_lacks_its_variable_does_not_keep_others_from_being_used() {
    let file = "[mcp.a]\ncommand = \"a\"\nenv = { K = \"${GONE}\" }\n[mcp.b]\ncommand = \"b\"\n";
    assert!(
        resolved(file).is_err(),
        "a server does not start without it"
    );
    let resolved = check_without_models(&source(file), &Variables::none()).unwrap();
    assert!(resolved.mcp[0].settings.is_err() && resolved.mcp[1].settings.is_ok());
}

#[test]
fn a_gateway_is_there_if_its_table_is_or_a_flag_says_so() {
    assert!(resolved("").unwrap().gateway.is_none());
    let table = resolved("[gateway]\nmode = \"facade\"\n").unwrap();
    assert_eq!(table.gateway.unwrap().mode, GatewayMode::Facade);
    let flags = Flags {
        has_gateway: true,
        ..Flags::default()
    };
    let flagged = resolved_with("", &[], flags).unwrap();
    assert_eq!(flagged.gateway, Some(GatewayConfig::default()));
}

#[test]
fn a_file_of_other_clients_may_be_at_home() {
    let home = tempfile::tempdir().unwrap();
    let servers = r#"{"mcpServers": {"files": {"command": "x"}}}"#;
    std::fs::write(home.path().join("mcp.json"), servers).unwrap();
    let folder = home.path().display().to_string();
    let lookup = move |name: &str| (name == "HOME").then(|| folder.clone());
    let file = source("[server]\nmcp_servers = \"~/mcp.json\"\n");
    let resolved = resolve(&file, &Variables::none(), Flags::default(), &lookup);
    let resolved = resolved.unwrap_or_else(|complaint| panic!("{complaint}"));
    assert_eq!(resolved.mcp[0].label.as_str(), "files");
}
