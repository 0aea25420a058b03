//! A server that does what it is told, well or badly: by words when it starts, and by tools.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::asking::rounds;
use super::offers::Offers;
use super::tasks::Tasks;
use super::words::{answer, first_line, malformed, mirrors, refuse, say, text, tool};

/// Where messages go, one at a time.
pub type Sink = Arc<dyn Fn(Vec<u8>) + Send + Sync>;

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

#[derive(Clone)]
pub struct Brain {
    words: Arc<HashSet<String>>,
    state: Arc<Mutex<State>>,
    offers: Arc<Mutex<Offers>>,
}

#[derive(Default)]
struct State {
    is_locked_modern: bool,
    extra_tools: usize,
    registered: usize,
    cancelled: Vec<Value>,
    listening: Vec<Value>,
    /// What each listener wants to be notified of.
    filters: Vec<Value>,
    pages: usize,
    refused_cursor: bool,
    calls: usize,
    initialized: Value,
    replies: Vec<Value>,
    tasks: Tasks,
}

impl Brain {
    /// `words`: `legacy` or `modern`, and whatever else it shall do.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            words: Arc::new(words.into_iter().map(Into::into).collect()),
            state: Arc::default(),
            offers: Arc::default(),
        }
    }

    pub fn has(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    fn number(&self, word: &str) -> Option<usize> {
        let prefix = format!("{word}=");
        self.words
            .iter()
            .find_map(|it| it.strip_prefix(&prefix)?.parse().ok())
    }

    /// What follows a word and `=`.
    pub fn said(&self, word: &str) -> Option<&str> {
        let prefix = format!("{word}=");
        self.words.iter().find_map(|it| it.strip_prefix(&prefix))
    }

    /// How much was answered.
    pub fn replies(&self) -> usize {
        self.state().replies.len()
    }

    pub fn take_replies(&self) -> Vec<Value> {
        std::mem::take(&mut self.state().replies)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Takes one message in; what it has to say goes to `sink`, now or later.
    pub fn hear(&self, message: &Value, sink: &Sink) {
        let method = message["method"].as_str().unwrap_or_default();
        let id = message["id"].clone();
        let params = &message["params"];
        match method {
            "server/discover" => self.discover(&id, sink),
            "initialize" => self.initialize(&id, params, sink),
            "tools/list" => self.list(&id, params, sink),
            "tools/call" => self.call(&id, params, sink),
            "subscriptions/listen" => {
                self.state().listening.push(id.clone());
                self.state().filters.push(params["notifications"].clone());
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                let params = json!({"_meta": meta, "notifications": params["notifications"]});
                say(
                    sink,
                    &json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}),
                );
                self.register_late(sink);
            }
            "notifications/cancelled" => self.state().cancelled.push(params["requestId"].clone()),
            "tasks/get" | "tasks/update" | "tasks/cancel" => {
                self.state().tasks.hear(method, &id, params, sink);
            }
            "" => self.state().replies.push(message.clone()),
            "notifications/initialized" => self.register_late(sink),
            _ if self.offer(method, &id, params, sink) => {}
            _ if id.is_null() => {}
            _ => refuse(sink, &id, -32601, "no such method"),
        }
    }

    fn capabilities(&self) -> Value {
        if self.has("tells-no-changes") {
            return json!({"tools": {}});
        }
        if self.has("odd-capabilities") {
            return json!({"tools": {"listChanged": true}, "logging": "yes", "prompts": 3});
        }
        if self.has("offers") {
            return Self::offered_capabilities();
        }
        json!({"tools": {"listChanged": true}})
    }

    /// The listeners of the modern era and what each wants to be notified of.
    pub fn listeners(&self) -> Vec<(Value, Value)> {
        let state = self.state();
        let listening = state.listening.iter().cloned();
        listening.zip(state.filters.iter().cloned()).collect()
    }

    pub fn offers(&self) -> std::sync::MutexGuard<'_, Offers> {
        self.offers.lock().unwrap()
    }

    fn discover(&self, id: &Value, sink: &Sink) {
        if self.has("dies-on-discover") {
            eprintln!("unknown method, giving up");
            std::process::exit(3);
        }
        if self.has("silent-on-discover") {
            return;
        }
        if self.has("late-discover") {
            // Read now, answered much later: and from now on nothing else is spoken.
            self.state().is_locked_modern = true;
            let (brain, id, sink) = (self.clone(), id.clone(), Arc::clone(sink));
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(700));
                brain.discovered(&id, &sink);
            });
            return;
        }
        if self.has("nonsense-on-discover") {
            return answer(sink, id, &json!({"hello": "there"}));
        }
        if self.has("error-without-id-on-discover") {
            return refuse(sink, &Value::Null, -32600, "what?");
        }
        if self.has("newer-on-discover") {
            let error = json!({"code": -32022, "message": "too old", "data": {"supported": ["2099-01-01"]}});
            return say(sink, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        if self.has("capability-on-discover") {
            return refuse(sink, id, -32021, "sampling is needed");
        }
        if self.has("modern") {
            self.discovered(id, sink);
        } else if self.has("python") {
            refuse(sink, id, -32602, "Invalid request parameters");
        } else {
            refuse(sink, id, -32601, "Method not found");
        }
    }

    fn discovered(&self, id: &Value, sink: &Sink) {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "instructions": "Be\u{200b} kind.",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1"}},
        });
        if self.has("bare-discover") {
            result
                .as_object_mut()
                .unwrap()
                .retain(|key, _| matches!(key.as_str(), "supportedVersions" | "capabilities"));
        }
        answer(sink, id, &result);
    }

    fn initialize(&self, id: &Value, params: &Value, sink: &Sink) {
        if self.has("silent") {
            return;
        }
        if self.state().is_locked_modern || self.has("modern") {
            let error = json!({"code": -32022, "message": "no handshake here", "data": {"supported": [MODERN]}});
            return say(sink, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        self.state().initialized = params.clone();
        if self.has("late-strangers") {
            answer(sink, &json!(999), &json!({}));
            refuse(sink, &json!("nobody"), -1, "a stranger");
        }
        let mut result = json!({
            "protocolVersion": if self.has("ancient") { "2024-11-05" } else { LEGACY },
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "fake", "version": "1"},
            "instructions": "Be kind.",
        });
        if self.has("bare-initialize") {
            result["serverInfo"] = json!({"name": 7});
        }
        answer(sink, id, &result);
    }

    /// Registers the tools later, by `late-tools=MS`: none is listed before, and each half is announced.
    pub fn register_late(&self, sink: &Sink) {
        self.announce_file_changes(sink);
        let Some(wait) = self.number("late-tools") else {
            return;
        };
        let (brain, sink) = (self.clone(), Arc::clone(sink));
        let wait = Duration::from_millis(wait.try_into().unwrap());
        thread::spawn(move || {
            for _ in 0..2 {
                thread::sleep(wait);
                brain.state().registered += 1;
                if !brain.has("tells-no-changes") {
                    brain.tell_change(&sink);
                }
            }
        });
    }

    /// Announces changes of the file of `tools-in=FILE`, by `announces-file`.
    fn announce_file_changes(&self, sink: &Sink) {
        let Some(file) = self.said("tools-in").filter(|_| self.has("announces-file")) else {
            return;
        };
        let (brain, sink, file) = (self.clone(), Arc::clone(sink), file.to_owned());
        thread::spawn(move || {
            let read = || std::fs::read_to_string(&file).unwrap_or_default();
            let mut seen = read();
            loop {
                thread::sleep(Duration::from_millis(50));
                let now = read();
                if now != seen {
                    seen = now;
                    brain.tell_change(&sink);
                }
            }
        });
    }

    /// The tools that are registered by now.
    fn late_tools(&self) -> Vec<Value> {
        let early = ["early"].iter().filter(|_| self.has("one-early"));
        let late = ["late_one", "late_two"].iter();
        let names = early.chain(late.take(self.state().registered));
        names.map(|name| tool(name)).collect()
    }

    fn tool_names(&self) -> Vec<String> {
        let own = [
            "echo",
            "raw",
            "verbatim",
            "image",
            "sleep",
            "silent",
            "die",
            "huge",
            "progress",
            "cancelled",
            "refuse",
            "twice",
            "string_id",
            "noise",
            "environment",
            "spawn",
            "change",
            "storm",
            "state",
            "meta",
            "ask",
            "stderr",
            "calls",
            "pages",
        ];
        let extra = self.state().extra_tools;
        own.into_iter()
            .chain(self.offer_tools().iter().copied())
            .map(str::to_owned)
            .chain((0..extra).map(|index| format!("extra_{index}")))
            .collect()
    }

    fn list(&self, id: &Value, params: &Value, sink: &Sink) {
        let page = {
            let mut state = self.state();
            state.pages += 1;
            state.pages
        };
        let cursor = params["cursor"].as_str();
        let listed = |tools: Vec<Value>, next: Option<&str>| {
            let mut result = json!({"resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "public"});
            if let Some(next) = next {
                result["nextCursor"] = next.into();
            }
            answer(sink, id, &result);
        };
        if self.has("no-list") {
            refuse(sink, id, -32601, "Method not found");
        } else if self.has("endless-pages") {
            listed(
                vec![tool(&format!("t{page}"))],
                Some(&format!("page {page}")),
            );
        } else if self.has("slow-pages") {
            thread::sleep(Duration::from_millis(300));
            listed(
                vec![tool(&format!("t{page}"))],
                Some(&format!("page {page}")),
            );
        } else if self.has("circle") {
            listed(vec![tool(&format!("t{page}"))], Some("same"));
        } else if self.has("empty-cursor") {
            match cursor {
                None => listed(vec![tool("first")], Some("")),
                Some("") => listed(vec![tool("second"), tool("first")], None),
                Some(_) => refuse(sink, id, -32602, "bad cursor"),
            }
        } else if self.has("forgets-cursors") {
            match cursor {
                None => listed(vec![tool(&format!("t{page}"))], Some("next")),
                Some(_) if std::mem::replace(&mut self.state().refused_cursor, true) => {
                    listed(vec![tool("last")], None);
                }
                Some(_) => refuse(sink, id, -32602, "bad cursor"),
            }
        } else if let Some(file) = self.said("tools-in") {
            let tools = std::fs::read_to_string(file).unwrap();
            listed(serde_json::from_str(&tools).unwrap(), None);
        } else if self.number("late-tools").is_some() {
            listed(self.late_tools(), None);
        } else if self.has("surrogate-list") {
            let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
            let schema = r#"{"type":"object"}"#;
            let tools = format!(
                r#"[{{"name":"good","inputSchema":{schema}}},
                {{"name":"surrogate","description":"a\ud800b","inputSchema":{schema}}},
                {{"name":"endless","_meta":{{"a":{deep},"b":NaN}},"inputSchema":{schema}}}]"#
            );
            let tools = tools.replace('\n', " ");
            sink(
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":{tools}}}}}"#)
                    .into_bytes(),
            );
        } else if self.has("malformed-tools") {
            listed(malformed(), None);
        } else if let Some(count) = self.number("tools") {
            listed(
                (0..count).map(|index| tool(&format!("t{index}"))).collect(),
                None,
            );
        } else if self.has("huge-list") {
            let mut tool = tool("t");
            tool["description"] = "x".repeat(2 * 1024 * 1024).into();
            listed(vec![tool], None);
        } else if self.has("promises") {
            let mut promising = tool("raw");
            let count = json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
            promising["outputSchema"] = count;
            listed(vec![promising, tool("echo")], None);
        } else if self.has("mirror") {
            listed(mirrors(), None);
        } else {
            listed(
                self.tool_names().iter().map(|name| tool(name)).collect(),
                None,
            );
        }
    }

    #[allow(clippy::too_many_lines, reason = "one arm per tool")]
    fn call(&self, id: &Value, params: &Value, sink: &Sink) {
        self.state().calls += 1;
        if self.call_offer(id, params, sink) {
            return;
        }
        let arguments = &params["arguments"];
        let number = |key: &str| arguments[key].as_u64().unwrap_or(0);
        match params["name"].as_str().unwrap_or_default() {
            "echo" => text(sink, id, &arguments.to_string()),
            "raw" => answer(sink, id, &arguments["result"]),
            "verbatim" => {
                // `%FF` stands for that byte.
                let result = arguments["result"].as_str().unwrap_or("{}");
                let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                let mut parts = line.split("%FF");
                let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
                for part in parts {
                    bytes.push(0xff);
                    bytes.extend(part.as_bytes());
                }
                sink(bytes);
            }
            "image" => {
                let data = "A".repeat(usize::try_from(number("bytes")).unwrap());
                let image = json!({"type": "image", "data": data, "mimeType": "image/png"});
                answer(sink, id, &json!({"content": [image]}));
            }
            "sleep" => {
                let (id, sink, wait) = (
                    id.clone(),
                    Arc::clone(sink),
                    Duration::from_millis(number("ms")),
                );
                thread::spawn(move || {
                    thread::sleep(wait);
                    text(&sink, &id, "slept");
                });
            }
            "silent" => {}
            "die" => {
                eprintln!("out of cheese, token hunter2-token");
                std::process::exit(3);
            }
            "huge" => {
                let filler = "x".repeat(usize::try_from(number("bytes")).unwrap());
                let result = json!({"content": [{"type": "text", "text": filler}]});
                // With the `id` in front, or behind.
                let line = if arguments["id_last"] == true {
                    format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#)
                } else {
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
                };
                sink(line.into_bytes());
            }
            "progress" => Self::progress(id, params, sink),
            "cancelled" => text(
                sink,
                id,
                &Value::from(self.state().cancelled.clone()).to_string(),
            ),
            "refuse" => {
                let code = arguments["code"].as_i64().unwrap_or(-32000);
                refuse(sink, id, code, "not today, token hunter2-token");
            }
            "twice" => {
                text(sink, id, "first");
                text(sink, id, "second");
                text(sink, &json!(123_456), "nobody asked");
            }
            "string_id" => text(sink, &Value::from(id.to_string()), "as text"),
            "noise" => {
                for noise in [
                    "hello",
                    "{\"level\":\"info\"}",
                    "[1,2]",
                    "{",
                    "\u{1b}[31mred",
                    "",
                    "{\"jsonrpc\":\"2.0\"}",
                    "{\"jsonrpc\":\"2.0\",\"method\":7}",
                ] {
                    sink(noise.as_bytes().to_vec());
                }
                sink(vec![0xff, 0xfe, 0x00]);
                text(sink, id, "through the noise");
            }
            "environment" => {
                let variables: serde_json::Map<_, _> = std::env::vars()
                    .map(|(name, value)| (name, value.into()))
                    .collect();
                let cwd = std::env::current_dir().unwrap();
                text(sink, id, &json!({"env": variables, "cwd": cwd}).to_string());
            }
            "spawn" => {
                // Started by a shell that goes away: nobody's child but the group's.
                let script = "sleep 1000 & echo $!";
                let mut shell = std::process::Command::new("sh");
                shell
                    .args(["-c", script])
                    .stdin(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null());
                text(sink, id, &first_line(&mut shell));
            }
            "change" => {
                self.state().extra_tools += 1;
                self.tell_change(sink);
                text(sink, id, "changed");
            }
            "storm" => {
                for _ in 0..10_000 {
                    self.tell_change(sink);
                }
                text(sink, id, "stormed");
            }
            "unreadable" => {
                let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).into_bytes();
                if arguments["how"] == "deep" {
                    line.extend([[b'['; 300], [b']'; 300]].concat());
                } else {
                    line.extend(b"\"\xff\"");
                }
                line.push(b'}');
                sink(line);
            }
            "question" => self.question(id, arguments, sink),
            "state" => Self::rounds(id, params, sink),
            "ask" if self.has("modern") => rounds(id, params, sink),
            "ask" | "interrogate" => self.interrogate(id, arguments, sink),
            "meta" => {
                text(
                    sink,
                    id,
                    &json!({"meta": params["_meta"], "initialize": self.state().initialized})
                        .to_string(),
                );
            }
            "stderr" => {
                eprintln!("{}", "y".repeat(usize::try_from(number("bytes")).unwrap()));
                text(sink, id, "complained");
            }
            "task" => self.state().tasks.start(id, params, sink),
            "cancelled_tasks" => {
                let cancelled = self.state().tasks.cancelled();
                text(sink, id, &cancelled.to_string());
            }
            "calls" => text(sink, id, &self.state().calls.to_string()),
            "pages" => text(sink, id, &self.state().pages.to_string()),
            "mirrored" => text(sink, id, "mirrored"),
            name => refuse(sink, id, -32602, &format!("unknown tool: {name}")),
        }
    }

    fn progress(id: &Value, params: &Value, sink: &Sink) {
        let arguments = params["arguments"].clone();
        let token = params["_meta"]["progressToken"].clone();
        let (id, sink) = (id.clone(), Arc::clone(sink));
        let beat = move || {
            let count = arguments["count"].as_u64().unwrap_or(0);
            for step in 1..=count {
                thread::sleep(Duration::from_millis(
                    arguments["every_ms"].as_u64().unwrap_or(0),
                ));
                let params = json!({"progressToken": token, "progress": step, "total": count, "message": format!("step {step}")});
                say(
                    &sink,
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                );
            }
            if arguments["then"] != "silence" {
                text(&sink, &id, "done");
            }
        };
        thread::spawn(beat);
    }

    /// Asks the client something, and tells what it answered.
    fn question(&self, id: &Value, arguments: &Value, sink: &Sink) {
        say(
            sink,
            &json!({"jsonrpc": "2.0", "id": "q", "method": arguments["method"], "params": arguments["params"]}),
        );
        let (brain, id, sink) = (self.clone(), id.clone(), Arc::clone(sink));
        thread::spawn(move || {
            let mut waits = 0;
            while brain.replies() == 0 && waits < 20 {
                thread::sleep(Duration::from_millis(10));
                waits += 1;
            }
            text(&sink, &id, &Value::from(brain.take_replies()).to_string());
        });
    }

    fn tell_change(&self, sink: &Sink) {
        let method = "notifications/tools/list_changed";
        let listening = self.state().listening.clone();
        if !self.has("modern") {
            return say(sink, &json!({"jsonrpc": "2.0", "method": method}));
        }
        for id in listening {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            say(
                sink,
                &json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}),
            );
        }
    }

    /// Wants to be asked again until it has been often enough.
    fn rounds(id: &Value, params: &Value, sink: &Sink) {
        let wanted = params["arguments"]["rounds"].as_u64().unwrap_or(0);
        let state = params["requestState"].as_str().map_or(0, |state| {
            state
                .strip_prefix("\u{e9}/+= round ")
                .unwrap()
                .parse::<u64>()
                .unwrap()
        });
        if state < wanted {
            let state = format!("\u{e9}/+= round {}", state + 1);
            answer(
                sink,
                id,
                &json!({"resultType": "input_required", "requestState": state}),
            );
        } else {
            text(sink, id, &format!("after {state} rounds"));
        }
    }
}
