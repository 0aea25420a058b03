//! `haft mcp list|test|tools|call`, bad configurations, and the tools of servers elsewhere.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::{FAKE_TOOLS, configure, fake, folder, mcp, mcp_json, signal};
use crate::support::{haft, told};

/// Two servers whose tools have the same names, in an order that is not that of the alphabet.
fn two() -> String {
    let first = fake("zeta", "modern", "description = \"The first\"");
    format!("{first}{}", fake("alpha", "legacy", "approve = \"always\""))
}

#[test]
fn a_hanging_server_delays_a_list_of_all_tools_by_seconds_only() {
    let mute = fake("mute", "silent silent-on-discover", "");
    let folder = folder(&format!("{mute}{}", fake("zeta", "modern", "")));
    let begin = Instant::now();
    let (code, out, aside) = told(haft(folder.path(), &["tools", "list"]), "");
    assert_eq!(code, Some(0), "{out}{aside}");
    assert!(out.contains("zeta__echo"), "{out}");
    assert!(
        aside.contains("`mute` has not listed its tools within 5 s"),
        "{aside}"
    );
    let elapsed = begin.elapsed();
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
}

#[test]
fn without_a_word_it_says_what_there_is() {
    let folder = folder("");
    let (code, _, aside) = mcp(folder.path(), &[]);
    assert_eq!(code, Some(2));
    for command in [
        "import", "add", "remove", "install", "list", "test", "tools", "call", "accept", "login",
        "cost", "serve",
    ] {
        assert!(aside.contains(&format!("\n  {command} ")), "{aside}");
    }
    assert!(!aside.contains("supervise"), "{aside}");
    let (code, _, aside) = mcp(folder.path(), &["list"]);
    assert_eq!(code, Some(0));
    assert!(aside.contains("there is no MCP server"), "{aside}");
    let (code, _, aside) = mcp(folder.path(), &["test"]);
    assert_eq!(code, Some(2), "{aside}");
}

#[test]
fn a_list_starts_nothing_and_shows_what_is_known() {
    let folder = folder(&two());
    let (code, out, _) = mcp(folder.path(), &["list"]);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("zeta ") && lines[0].ends_with("The first"));
    assert!(lines[1].starts_with("alpha ") && lines[1].contains("not seen yet"));
    assert!(!folder.path().join("haft-data").exists(), "nothing is kept");

    mcp_json(folder.path(), &["test", "zeta"]);
    let list = mcp_json(folder.path(), &["list"]);
    assert_eq!(
        (&list[0]["name"], &list[0]["state"]),
        (&"zeta".into(), &"known".into())
    );
    assert_eq!(
        (&list[0]["era"], &list[0]["tools"]),
        (&"modern".into(), &FAKE_TOOLS.into())
    );
    assert_eq!(list[1]["state"], "configured");
    assert_eq!(list[1]["transport"], "stdio");
}

#[test]
fn a_test_asks_all_at_once_and_tells_what_is_wrong() {
    let dead = fake("dead", "exits-at-once", "");
    let silent = fake("mute", "silent silent-on-discover", "connect_timeout = 2");
    let missing = "[mcp.lacking]\ncommand = \"x\"\nenv = { KEY = \"${NOT_SET_ANYWHERE}\" }\n";
    let odd = fake("odd", "legacy malformed-tools", "");
    let folder = folder(&format!("{}{dead}{silent}{odd}{missing}", two()));
    let begin = Instant::now();
    let (code, out, _) = mcp(folder.path(), &["test"]);
    assert_eq!(code, Some(1));
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "one after the other"
    );
    for words in [
        format!("ok     zeta  fake 1, stdio, modern 2026-07-28, {FAKE_TOOLS} tools, ").as_str(),
        format!("ok     alpha  fake 1, stdio, legacy 2025-11-25, {FAKE_TOOLS} tools, ").as_str(),
        "failed dead  ",
        "no license found",
        "failed mute  ",
        "tool `null_schema` is left out",
        "`NOT_SET_ANYWHERE` is not set",
    ] {
        assert!(out.contains(words), "{words} is not in\n{out}");
    }
    let (code, out, _) = mcp(folder.path(), &["test", "zeta", "dead", "--json"]);
    assert_eq!(code, Some(1));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&told[0]["ok"], &told[1]["ok"]),
        (&true.into(), &false.into())
    );
    assert_eq!(told[0]["protocol"], "2026-07-28");
    assert!(told[1]["stderr"].as_str().unwrap().contains("no license"));
    let (code, _, aside) = mcp(folder.path(), &["test", "zetta"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("did you mean `zeta`?"), "{aside}");
}

#[test]
fn tools_are_shown_with_both_names() {
    let folder = folder(&two());
    let (code, out, _) = mcp(folder.path(), &["tools", "alpha"]);
    assert_eq!(code, Some(0));
    let line = out.lines().find(|it| it.starts_with("echo ")).unwrap();
    assert!(line.contains(" alpha__echo ") && line.contains("The tool echo."));
    assert!(line.ends_with("(asked about)"), "{line}");
    let told = mcp_json(folder.path(), &["tools", "zeta"]);
    assert_eq!(told["tools"][0]["exposed_name"], "zeta__echo");
    assert_eq!(told["tools"][0]["input_schema"], json!({"type": "object"}));
    assert_eq!(
        (&told["is_live"], &told["held"]),
        (&true.into(), &json!([]))
    );
    let (code, _, aside) = mcp(folder.path(), &["tools"]);
    assert_eq!(code, Some(2), "{aside}");
}

#[test]
fn a_tool_is_called_like_any_other() {
    let folder = folder(&two());
    let echo = |arguments: &[&str], input: &str| {
        let mut all = vec!["mcp", "call", "zeta", "echo"];
        all.extend(arguments);
        told(haft(folder.path(), &all), input)
    };
    let expected = (Some(0), "{\"a\":1,\"b\":\"x\"}\n".to_owned(), String::new());
    assert_eq!(echo(&["a=1", "b=x"], ""), expected);
    assert_eq!(echo(&["{\"a\": 1, \"b\": \"x\"}"], ""), expected);
    assert_eq!(echo(&["-"], "{\"a\": 1, \"b\": \"x\"}"), expected);
    let (code, out, _) = mcp(folder.path(), &["call", "zeta", "zeta__echo"]);
    assert_eq!((code, out.as_str()), (Some(0), "{}\n"));
    for (arguments, ends, words) in [
        (&["zeta", "ecko"][..], 2, "did you mean `echo`?"),
        (
            &["zeta", "echo", "{\"a\":"],
            2,
            "haft mcp tools zeta --json",
        ),
        (&["zeta"], 2, "no tool is named"),
        (&["nobody", "echo"], 2, "there is no MCP server `nobody`"),
        (&["zeta", "refuse"], 1, "not today"),
        (
            &["zeta", "die"],
            1,
            "connection lost, the action may have happened: the process ended with exit status: 3",
        ),
        (&["zeta", "die"], 1, "out of cheese"),
        // Somebody must be asked.
        (&["alpha", "echo"], 1, "nobody is there to be asked"),
    ] {
        let mut all = vec!["call"];
        all.extend(arguments);
        let (code, out, aside) = mcp(folder.path(), &all);
        assert_eq!(
            (code, out.as_str()),
            (Some(ends), ""),
            "{arguments:?}: {aside}"
        );
        assert!(aside.contains(words), "{arguments:?}: {aside}");
    }
    let (code, out, _) = mcp(folder.path(), &["call", "alpha", "echo", "--yes"]);
    assert_eq!((code, out.as_str()), (Some(0), "{}\n"));
    let structured = json!({"content": [{"type": "text", "text": "hi"}], "structuredContent": [1]});
    let arguments = json!({ "result": structured }).to_string();
    let told = mcp_json(folder.path(), &["call", "zeta", "raw", &arguments]);
    assert_eq!(
        (&told["output"], &told["status"]),
        (&"hi".into(), &"succeeded".into())
    );
    assert_eq!(told["result"]["structuredContent"], json!([1]));
}

#[test]
fn progress_is_told_aside_and_ctrl_c_cancels() {
    let folder = folder(&two());
    let (code, out, aside) = mcp(
        folder.path(),
        &["call", "zeta", "progress", "count=2", "every_ms=300"],
    );
    assert_eq!((code, out.as_str()), (Some(0), "done\n"));
    assert!(aside.contains("progress: 1 of 2: step 1"), "{aside}");
    let arguments = [
        "mcp",
        "call",
        "zeta",
        "progress",
        "count=1000",
        "every_ms=100",
    ];
    let mut command = haft(folder.path(), &arguments);
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut aside = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut aside, &mut line).unwrap();
    assert!(line.starts_with("progress: "), "{line}");
    signal(child.id(), "INT");
    let begin = Instant::now();
    assert_eq!(crate::kit::ended(&mut child), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(6));
}

#[test]
fn a_server_needs_no_configuration() {
    let folder = folder("");
    let own = std::env::current_exe().unwrap();
    let own = own.display();
    let command = format!("'{own}' --exact fake::server --ignored --nocapture");
    let all = [
        "call",
        "--command",
        &command,
        "--env",
        "FAKE_WORDS=modern",
        "echo",
        "a=1",
    ];
    let (code, out, aside) = mcp(folder.path(), &all);
    assert_eq!((code, out.as_str()), (Some(0), "{\"a\":1}\n"), "{aside}");
    let (code, out, _) = mcp(folder.path(), &["tools", "--command", &command]);
    assert_eq!(code, Some(0));
    assert!(out.contains("server__echo"), "{out}");
    let told = mcp_json(folder.path(), &["test", "--command", &command]);
    assert_eq!(told[0]["era"], "legacy");
    assert!(!folder.path().join("haft-data").exists(), "nothing is kept");
    let (code, out, _) = mcp(folder.path(), &["test", "--url", "http://127.0.0.1:9/mcp"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("the server cannot be reached"), "{out}");
    for wrong in [
        &["test", "--url", "ftp://a"][..],
        &["test", "--command", "'open"],
        &["test", "--command", ""],
        &["test", "--url", "http://a", "--command", "b"],
    ] {
        let (code, _, aside) = mcp(folder.path(), wrong);
        assert_eq!(code, Some(2), "{wrong:?}: {aside}");
    }
}

#[test]
fn there_is_nothing_to_log_in_to_without_an_address() {
    let config = format!("{}[mcp.web]\nurl = \"http://127.0.0.1:9/mcp\"\n", two());
    let folder = folder(&config);
    let (code, _, aside) = mcp(folder.path(), &["login", "zeta"]);
    assert_eq!(code, Some(2), "{aside}");
    assert!(aside.contains("there is nothing to log in to"), "{aside}");
    let (code, _, aside) = mcp(folder.path(), &["login", "web"]);
    assert_eq!(code, Some(1), "{aside}");
    let told = mcp_json(folder.path(), &["login", "web", "--forget"]);
    assert_eq!(told["forgotten"], false);
}

#[test]
fn a_wrong_configuration_is_one_clear_complaint() {
    let folder = folder("");
    for (config, words) in [
        ("[mcp.a]\n", "needs either `command` or `url`"),
        ("[mcp.a]\ncomand = \"x\"\n", "did you mean `command`?"),
        (
            "[mcp.a_]\ncommand = \"x\"\n",
            "cannot be the name of a server",
        ),
        ("[mcp.a]\nurl = \"x\"\n", "write `https://…`"),
    ] {
        configure(folder.path(), config);
        for command in [
            &["mcp", "list"][..],
            &["mcp", "serve"],
            &["config", "check"],
            &["serve"],
        ] {
            let (code, _, aside) = told(haft(folder.path(), command), "");
            assert_eq!(code, Some(2), "{command:?}: {aside}");
            assert!(aside.starts_with("haft.toml:"), "{aside}");
            assert!(aside.contains(words), "{aside}");
        }
    }
    // What only the environment lacks keeps a server from starting, and nobody from looking.
    configure(
        folder.path(),
        "[mcp.a]\nurl = \"https://a\"\nbearer_env = \"GONE_TOKEN\"\n",
    );
    let (code, _, aside) = told(haft(folder.path(), &["serve"]), "");
    assert_eq!(code, Some(2), "{aside}");
    assert!(aside.contains("`GONE_TOKEN` is not set"), "{aside}");
    let (code, out, _) = mcp(folder.path(), &["list"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("cannot be used"), "{out}");
}

#[test]
fn servers_of_other_clients_are_there_too() {
    let folder = folder(&format!("[server]\nmcp_servers = \"mcp.json\"\n{}", two()));
    let own = std::env::current_exe().unwrap();
    let servers = json!({"mcpServers": {"My Files": {
        "command": own, "args": ["--exact", "fake::server", "--ignored", "--nocapture"],
        "env": {"FAKE_WORDS": "modern"}, "autoApprove": ["echo"],
    }}});
    std::fs::write(folder.path().join("mcp.json"), servers.to_string()).unwrap();
    let (code, out, aside) = mcp(folder.path(), &["list"]);
    assert_eq!(code, Some(0), "{aside}");
    let labels: Vec<&str> = out.lines().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(labels, ["zeta", "alpha", "My-Files"]);
    assert!(aside.contains("`autoApprove` has no meaning"), "{aside}");
    let (code, out, aside) = mcp(folder.path(), &["call", "My-Files", "echo"]);
    assert_eq!((code, out.as_str()), (Some(0), "{}\n"), "{aside}");
    let twice = json!({"mcpServers": {"zeta": {"command": "x"}}});
    std::fs::write(folder.path().join("mcp.json"), twice.to_string()).unwrap();
    let (code, _, aside) = mcp(folder.path(), &["list"]);
    assert_eq!(code, Some(0));
    assert!(aside.contains("skipped `zeta` of"), "{aside}");
}

#[test]
fn a_configuration_is_shown_without_the_secrets_of_its_servers() {
    let config = "[gateway]\nmode = \"facade\"\n[mcp.zeta]\ncommand = \"npx\"\n\
                  args = [\"--token=hunter2\"]\nenv = { A = \"hunter2\" }\n\
                  [mcp.alpha]\nurl = \"https://me:hunter2@a.example/mcp?key=hunter2\"\n\
                  headers = { x-key = \"hunter2\" }\n";
    let folder = folder(config);
    for command in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "check"],
        &["config", "check", "--json"],
        &["mcp", "list", "--json"],
    ] {
        let (code, out, aside) = told(haft(folder.path(), command), "");
        assert_eq!(code, Some(0), "{aside}");
        assert!(
            !out.contains("hunter2") && !aside.contains("hunter2"),
            "{out}"
        );
        let (zeta, alpha) = (out.find("zeta"), out.find("alpha"));
        assert!(zeta.is_some() && zeta < alpha, "{out}");
    }
    let (_, out, _) = told(haft(folder.path(), &["config", "show"]), "");
    assert!(
        out.contains("[mcp.zeta]\n") && out.contains("mode = \"facade\""),
        "{out}"
    );
}

#[test]
fn tools_and_chat_have_the_tools_of_servers() {
    let folder = folder(&two());
    let run = |arguments: &[&str]| told(haft(folder.path(), arguments), "");
    let (code, out, aside) = run(&["tools", "list"]);
    assert_eq!(code, Some(0), "{aside}");
    let names: Vec<&str> = out.lines().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(names[..3], ["calculate", "clock", "zeta__echo"]);
    assert_eq!(names.len(), 2 + 2 * FAKE_TOOLS);
    let (code, out, _) = run(&["tools", "show", "alpha__echo"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("on an MCP server"), "{out}");
    let (code, out, aside) = run(&["tools", "call", "zeta__echo", "a=1"]);
    assert_eq!((code, out.as_str()), (Some(0), "{\"a\":1}\n"), "{aside}");
    let (code, _, aside) = run(&["tools", "call", "alpha__echo"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("nobody is there to be asked"), "{aside}");
    let script = [
        json!({"calls": [{"name": "zeta__echo", "arguments": {"said": "hello"}}]}),
        json!({"text": "done"}),
    ];
    crate::support::scripted(folder.path(), &two(), &script);
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), "go\n");
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        out.contains("done") && (out + &aside).contains("hello"),
        "{aside}"
    );
}
