//! What the tests share.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake::WORDS;
use crate::support::{haft, told};

/// A wait that a test never reaches unless something hangs.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// How many tools the fake server lists.
pub(crate) const FAKE_TOOLS: usize = 24;

/// A server of the configuration: the fake that was told these words, and further keys.
pub(crate) fn fake(label: &str, words: &str, keys: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let own = own.display();
    format!(
        "[mcp.{label}]\ncommand = \"{own}\"\n\
         args = [\"--exact\", \"fake::server\", \"--ignored\", \"--nocapture\"]\n\
         env = {{ {WORDS} = \"{words}\" }}\n{keys}\n"
    )
}

/// A folder with this configuration.
pub(crate) fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), config);
    folder
}

pub(crate) fn configure(folder: &Path, config: &str) {
    let model = "[[model]]\nname = \"offline\"\nadapter = \"offline\"\n";
    std::fs::write(folder.join("haft.toml"), format!("{config}\n{model}")).unwrap();
}

/// What `haft mcp …` says: its code, standard output and standard error.
pub(crate) fn mcp(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["mcp"];
    all.extend(arguments);
    told(haft(folder, &all), "")
}

/// The same, as JSON, of a command that succeeds.
pub(crate) fn mcp_json(folder: &Path, arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    let (code, out, aside) = mcp(folder, &all);
    assert_eq!(code, Some(0), "{out}{aside}");
    serde_json::from_str(&out).unwrap()
}

/// A client of the older era that speaks to a process line by line, and kills it in the end.
pub(crate) struct LineClient {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    /// The answer to `initialize`.
    pub(crate) greeting: Value,
    /// What came meanwhile and was no answer.
    pub(crate) notices: Vec<Value>,
}

impl Drop for LineClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl LineClient {
    /// `haft mcp serve`, greeted. `can` is what the client can do.
    pub(crate) fn of_haft(folder: &Path, arguments: &[&str], can: Value) -> Self {
        let mut all = vec!["mcp", "serve"];
        all.extend(arguments);
        let mut command = haft(folder, &all);
        command.stderr(Stdio::null());
        Self::greeting(command, can)
    }

    /// A command that serves MCP, greeted.
    pub(crate) fn greeting(mut command: Command, can: Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self {
            child,
            input,
            output,
            next: 0,
            greeting: Value::Null,
            notices: Vec::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": can,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.ask("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "haft", "{answer}");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.greeting = answer;
        client
    }

    pub(crate) fn say(&mut self, message: &Value) {
        let mut line = message.to_string();
        writeln!(line).unwrap();
        self.input
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    /// Sends a request; its number.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message; standard output must hold nothing else.
    pub(crate) fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "it has gone");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("`{line}` is no message"))
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.hear();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notices.push(message);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub(crate) fn names(&mut self) -> Vec<String> {
        let list = self.ask("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// The text that a call gave.
    pub(crate) fn text(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.call(name, arguments);
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Waits for a message that is no answer and of this method.
    pub(crate) fn notice(&mut self, method: &str) -> Value {
        if let Some(at) = self.notices.iter().position(|it| it["method"] == method) {
            return self.notices.remove(at);
        }
        loop {
            let message = self.hear();
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Closes its standard input and waits for its end.
    pub(crate) fn leave(&mut self) -> Option<i32> {
        self.input = None;
        ended(&mut self.child)
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }
}

pub(crate) fn signal(id: u32, name: &str) {
    let id = id.to_string();
    let status = Command::new("kill").args(["-s", name, &id]).status();
    assert!(status.unwrap().success());
}

/// Waits for the end of a process; its code.
pub(crate) fn ended(child: &mut Child) -> Option<i32> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(begin.elapsed() < LONG, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The numbers of the processes with this word among their arguments.
pub(crate) fn with_argument(word: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pids = pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let told = |pid: &String| {
        let line = std::fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        let mut arguments = line.split(|byte| *byte == 0);
        arguments.any(|argument| argument == word.as_bytes())
    };
    pids.filter(told).collect()
}

/// Whether nobody with this word is left after a while.
pub(crate) fn all_gone(word: &str, within: Duration) -> bool {
    let begin = Instant::now();
    while !with_argument(word).is_empty() {
        if begin.elapsed() > within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Posts a body to a server of HTTP: the status and the body of the answer.
pub(crate) fn post(address: &str, path: &str, headers: &[&str], body: &[u8]) -> (u16, String) {
    use std::io::Read as _;
    let address = address.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut head = format!(
        "POST {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
        body.len()
    );
    for header in headers {
        write!(head, "{header}\r\n").unwrap();
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses early does not read the rest.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    (status.unwrap_or(0), body.unwrap_or_default())
}
