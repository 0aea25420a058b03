//! `haft` as a process.

#![allow(dead_code, reason = "each test crate uses its part of it")]

use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) mod collector;
pub(crate) mod double;
#[cfg(unix)]
pub(crate) mod terminal;

/// `haft`, in a folder, with no variable that would say anything about models.
pub(crate) fn haft(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = without_variables(Command::new(env!("CARGO_BIN_EXE_haft")));
    command
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join(".state"))
        .env("XDG_CONFIG_HOME", folder.join(".config"))
        .env("XDG_DATA_HOME", folder.join(".data"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

/// The same command without the variables that would say something about models, servers or spans.
fn without_variables(mut command: Command) -> Command {
    for (name, _) in std::env::vars() {
        let providers = ["HAFT_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "OTEL_"];
        if providers.iter().any(|provider| name.starts_with(provider)) {
            command.env_remove(name);
        }
    }
    command.env_remove("CLICOLOR_FORCE");
    command
}

/// What a command says, given these lines: its code, standard output and standard error.
pub(crate) fn told(mut command: Command, lines: &str) -> (Option<i32>, String, String) {
    use std::io::Write as _;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // One that does not read to the end is no failure of this.
    let _ = stdin.write_all(lines.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Writes a configuration with one model that plays these steps.
pub(crate) fn scripted(folder: &Path, more: &str, steps: &[serde_json::Value]) {
    let model =
        "[[model]]\nname = \"scripted\"\nadapter = \"scripted\"\nscript = \"script.jsonl\"\n";
    std::fs::write(folder.join("haft.toml"), format!("{more}\n{model}")).unwrap();
    let lines: Vec<String> = steps.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("script.jsonl"), lines.join("\n")).unwrap();
}

/// A server that is killed if its test fails.
#[cfg(unix)]
pub(crate) struct Running(pub(crate) std::process::Child);

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
impl Running {
    pub(crate) fn start(folder: &Path) -> (Self, Vec<String>) {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--model", "offline"];
        Self::start_with(haft(folder, &arguments))
    }

    /// Waits for the page; its lines.
    pub(crate) fn start_with(command: Command) -> (Self, Vec<String>) {
        Self::start_logging_to(Stdio::null(), command)
    }

    /// The same with a log.
    pub(crate) fn start_logging_to(log: Stdio, mut command: Command) -> (Self, Vec<String>) {
        use std::io::{BufRead as _, BufReader};
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let running = Self(child);
        let mut lines = Vec::new();
        for line in out.lines() {
            lines.push(line.unwrap());
            if lines.last().unwrap().starts_with("curl ") {
                break;
            }
        }
        (running, lines)
    }

    /// Serves what this folder's configuration says; the address.
    pub(crate) fn configured(folder: &Path) -> (Self, String) {
        let (running, lines) =
            Self::start_with(haft(folder, &["serve", "--listen", "127.0.0.1:0"]));
        let address = lines[0].strip_prefix("listening on ").unwrap().to_owned();
        (running, address)
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.unwrap().success());
    }
}

#[cfg(unix)]
impl Running {
    /// Kills it at once, as nothing can prevent.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Sends one request and gives status and body, chunks put together.
pub(crate) fn request(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    request_with(address, method, path, "", body)
}

/// The same, with headers, each with the end of its line.
pub(crate) fn request_with(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String) {
    send(address, method, &format!("/v1{path}"), headers, body)
}

/// What is at a path beside the API.
pub(crate) fn probe(address: &str, path: &str) -> (u16, String) {
    send(address, "GET", path, "", "")
}

fn send(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let patience = std::time::Duration::from_secs(30);
    stream.set_read_timeout(Some(patience)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    // A server that was killed hangs up; what came until then counts.
    let _ = stream.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = if head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        unchunked(body)
    } else {
        body.to_owned()
    };
    (status.unwrap_or(0), body)
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        whole.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or("");
    }
    whole
}
