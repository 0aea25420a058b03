//! MCP servers that programs use: of the manifest, of `haft.toml`, and of the source. The server is haft
//! itself.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::kit::{folder, say};
use crate::support::{haft, told};

const HAFT: &str = env!("CARGO_BIN_EXE_haft");

const PROGRAM: &str = "match Own::calculate(expression: \"6*7\") { Ok(v) => println(\"it is\", \
                       std::json::stringify(v)), Err(e) => println(\"no:\", e) }\n";

fn in_manifest() -> String {
    format!(
        "[project]\nname = \"p\"\n[mcp.Own]\ntransport = \"stdio\"\ncommand = \"{HAFT} mcp serve --mode \
         passthrough\"\n"
    )
}

fn in_config(folder: &std::path::Path) -> String {
    // A folder of its own, or the server would find this configuration and start itself again.
    let elsewhere = folder.join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let elsewhere = elsewhere.display();
    format!(
        "[mcp.Own]\ncommand = \"{HAFT}\"\nargs = [\"mcp\", \"serve\", \"--mode\", \"passthrough\"]\n\
         cwd = \"{elsewhere}\"\n"
    )
}

#[test]
fn servers_of_the_manifest_and_of_the_configuration_are_called() {
    let both = folder(&[("app.conc", PROGRAM)]);
    let (code, _, aside) = say(both.path(), &["check", "app.conc"]);
    assert_eq!(code, Some(1), "nobody knows it: {aside}");
    std::fs::write(both.path().join("Concerto.toml"), in_manifest()).unwrap();
    let (code, out, aside) = say(both.path(), &["run", "app.conc"]);
    assert_eq!((code, aside.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("it is ") && out.contains("42"), "{out}");
    let other = folder(&[("app.conc", PROGRAM)]);
    std::fs::write(other.path().join("haft.toml"), in_config(other.path())).unwrap();
    let (code, out, aside) = say(other.path(), &["run", "app.conc"]);
    assert_eq!((code, aside.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("it is ") && out.contains("42"), "{out}");
    // Offline nothing is started.
    let (_, out, _) = say(other.path(), &["run", "--mock", "app.conc"]);
    assert!(out.starts_with("no: "), "{out}");
}

#[test]
fn a_program_of_the_source_is_started_only_with_permission() {
    let block =
        format!("mcp Own {{ transport: \"stdio\", command: \"{HAFT} mcp serve\" }}\n{PROGRAM}");
    let folder = folder(&[("app.conc", &block)]);
    let (_, out, aside) = say(folder.path(), &["run", "app.conc"]);
    assert!(out.starts_with("no: "), "{out}{aside}");
    let (code, out, _) = say(folder.path(), &["run", "app.conc", "--allow-process"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("it is "), "{out}");
}

/// Processes with this in their command lines.
fn running(words: &str) -> usize {
    let listed = std::fs::read_dir("/proc").unwrap();
    let lines = listed.filter_map(|it| std::fs::read(it.ok()?.path().join("cmdline")).ok());
    lines
        .filter(|it| String::from_utf8_lossy(it).contains(words))
        .count()
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_leaves_no_process_behind() {
    let text = format!("{PROGRAM}std::time::sleep(60000);\n");
    let folder = folder(&[("app.conc", &text)]);
    let data = folder.path().join("mark");
    let mark = data.to_str().unwrap();
    let manifest = in_manifest().replace("--mode", &format!("--data-dir {mark} --mode"));
    std::fs::write(folder.path().join("Concerto.toml"), manifest).unwrap();
    let mut child = haft(folder.path(), &["run", "app.conc"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut out, &mut [0; 5]).unwrap();
    assert!(running(mark) > 0, "the server runs");
    let id = child.id().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-s", "INT", &id])
        .status();
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let begun = Instant::now();
    while running(mark) > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "it is still there"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn pieces_of_a_session_share_a_server() {
    use std::os::unix::fs::PermissionsExt as _;
    let script =
        format!("#!/bin/sh\necho started >> started\nexec {HAFT} mcp serve --mode passthrough\n");
    let folder = folder(&[("server.sh", &script)]);
    let path = folder.path().join("server.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let manifest =
        "[project]\nname = \"p\"\n[mcp.Own]\ntransport = \"stdio\"\ncommand = \"./server.sh\"\n";
    std::fs::write(folder.path().join("Concerto.toml"), manifest).unwrap();
    let call = "Own::calculate(expression: \"6*7\").is_ok()\n";
    let lines = format!("{call}let x = 1;\n{call}fn f() {{}}\n{call}:reset\n{call}");
    let (code, out, aside) = told(haft(folder.path(), &["repl"]), &lines);
    assert_eq!((code, aside.as_str()), (Some(0), ""));
    assert_eq!(out, "true\ntrue\ntrue\ntrue\n");
    let started = std::fs::read_to_string(folder.path().join("started")).unwrap();
    assert_eq!(started.lines().count(), 2, "once, and once after `:reset`");
}
