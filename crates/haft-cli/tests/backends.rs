//! `haft serve` in front of several backends: names, stand-ins, breakers and probes, as a process.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Running, haft};

const PATIENCE: Duration = Duration::from_mins(1);
const KEY: &str = "sk-hunter2-hunter2";

/// A server of Chat Completions that says its name. It can be killed and come back at its address.
struct Backend {
    name: &'static str,
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    is_broken: Arc<AtomicBool>,
    listening: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Backend {
    fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut backend = Self {
            name,
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            is_broken: Arc::default(),
            listening: None,
        };
        backend.listen(listener);
        backend
    }

    fn listen(&mut self, listener: TcpListener) {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (name, asked) = (self.name, Arc::clone(&self.asked));
        let is_broken = Arc::clone(&self.is_broken);
        let thread = std::thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let _gone = answer(socket, name, &asked, &is_broken);
            }
        });
        self.listening = Some((is_over, thread));
    }

    /// Nobody answers at its address from now on.
    fn kill(&mut self) {
        let (is_over, thread) = self.listening.take().unwrap();
        is_over.store(true, Ordering::SeqCst);
        // The last one that is let in finds nobody.
        drop(TcpStream::connect(self.address));
        thread.join().unwrap();
    }

    fn come_back(&mut self) {
        self.listen(TcpListener::bind(self.address).unwrap());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Fails from now on, or not any more.
    fn breaks(&self, is_broken: bool) {
        self.is_broken.store(is_broken, Ordering::SeqCst);
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        if self.listening.is_some() {
            self.kill();
        }
    }
}

fn answer(
    socket: TcpStream,
    name: &str,
    asked: &AtomicUsize,
    is_broken: &AtomicBool,
) -> std::io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| {
        let line = line.to_ascii_lowercase();
        line.strip_prefix("content-length: ")?.parse().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let is_question = head.starts_with("POST ");
    asked.fetch_add(usize::from(is_question), Ordering::SeqCst);
    let (status, kind, said) = if is_question && is_broken.load(Ordering::SeqCst) {
        let said = json!({"error": {"message": format!("I am {KEY}")}});
        (500, "application/json", said.to_string())
    } else if !is_question {
        (200, "application/json", json!({"data": []}).to_string())
    } else if body.contains("\"stream\":true") {
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}))
        };
        let words = chunk(json!({"role": "assistant", "content": name}), Value::Null);
        let end = chunk(json!({}), "stop".into());
        let said = format!("{words}{end}data: [DONE]\n\n");
        (200, "text/event-stream", said)
    } else {
        let message = json!({"role": "assistant", "content": name});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let said = json!({"id": "c", "choices": [choice]}).to_string();
        (200, "application/json", said)
    };
    write!(
        reader.into_inner(),
        "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{said}",
        said.len()
    )
}

/// A server with this configuration, its address, and where its log goes.
fn serve(folder: &Path, config: &str) -> (Running, String) {
    fs::write(folder.join("haft.toml"), config).unwrap();
    let mut command = haft(folder, &["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("BACKEND_KEY", KEY)
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join("log")).unwrap());
    let mut child = command.spawn().unwrap();
    let mut page = BufReader::new(child.stdout.take().unwrap());
    let running = Running(child);
    let mut line = String::new();
    page.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://");
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    (running, address)
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    /// Who stood in, by the header.
    stand_in: Option<String>,
    body: Value,
}

impl Answer {
    /// Who answered, in his own words.
    fn said(&self) -> &str {
        let response = self.body["output"][0]["content"][0]["text"].as_str();
        let chat = self.body["choices"][0]["message"]["content"].as_str();
        response.or(chat).unwrap_or_else(|| panic!("{self:#?}"))
    }
}

fn request(address: &str, method: &str, path: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let named = head
        .lines()
        .find_map(|line| line.strip_prefix("haft-model: "));
    Answer {
        status,
        stand_in: named.map(str::to_owned),
        body: serde_json::from_str(body).unwrap_or_else(|_| panic!("{text}")),
    }
}

/// Asks for a response of a model, or of the one for requests that name none.
fn ask(address: &str, model: Option<&str>) -> Answer {
    let mut body = json!({"input": "who are you?", "store": false});
    if let Some(model) = model {
        body["model"] = model.into();
    }
    request(address, "POST", "/v1/responses", &body.to_string())
}

fn ask_chat(address: &str) -> Answer {
    let body = json!({"messages": [{"role": "user", "content": "who are you?"}]});
    request(address, "POST", "/v1/chat/completions", &body.to_string())
}

/// Who was asked and who answered: his words, and the header.
fn told(answer: &Answer) -> (&str, Option<&str>) {
    (answer.said(), answer.stand_in.as_deref())
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two entries; the first has other names, and the second stands in for it.
fn config(near: &Backend, far: &Backend, rest: &str) -> String {
    format!(
        "[server]\ndefault_model = \"main\"\n[loop.retry]\nattempts = 1\n\
         [[model]]\nname = \"near\"\naliases = [\"main\", \"quick\"]\nadapter = \"openai-chat\"\n\
         api_key_env = \"BACKEND_KEY\"\nbase_url = \"http://{}/v1\"\nfailover = [\"far\"]\n{rest}\n\
         [[model]]\nname = \"far\"\nadapter = \"openai-chat\"\nbase_url = \"http://{}/v1\"\n",
        near.address, far.address
    )
}

#[test]
fn requests_choose_by_name_and_another_answers_for_one_that_fails() {
    let (mut near, far) = (Backend::start("I am near"), Backend::start("I am far"));
    let folder = tempfile::tempdir().unwrap();
    let breaker = "breaker = { failures = 2, open = \"1h\", longest = \"1h\" }";
    let (running, address) = serve(folder.path(), &config(&near, &far, breaker));
    let listed = request(&address, "GET", "/v1/models", "");
    let names: Vec<_> = listed.body["data"].as_array().unwrap().iter().collect();
    let names: Vec<_> = names.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["near", "main", "quick", "far"]);
    for model in [
        None,
        Some("near"),
        Some("main"),
        Some("quick"),
        Some("default"),
    ] {
        assert_eq!(
            told(&ask(&address, model)),
            ("I am near", None),
            "{model:?}"
        );
    }
    assert_eq!(told(&ask(&address, Some("far"))), ("I am far", None));
    let unknown = ask(&address, Some("nobody"));
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.body["error"]["code"], "model_not_found");

    // It fails: two find out, nobody else has to.
    let before = near.asked();
    near.breaks(true);
    for _ in 0..6 {
        assert_eq!(told(&ask(&address, None)), ("I am far", Some("far")));
        assert_eq!(told(&ask_chat(&address)), ("I am far", Some("far")));
    }
    assert_eq!(near.asked(), before + 2, "it is left alone");
    let ready = request(&address, "GET", "/readyz", "");
    assert_eq!(
        (ready.status, &ready.body["status"]),
        (200, &json!("ready"))
    );
    let parts = &ready.body["parts"];
    assert_eq!(parts["backends"]["far"], "ok");
    let near_is = parts["backends"]["near"].as_str().unwrap();
    assert!(near_is.starts_with("left alone"), "{near_is}");
    near.breaks(false);
    assert_eq!(told(&ask(&address, None)), ("I am far", Some("far")));
    near.kill();
    assert_eq!(told(&ask(&address, None)), ("I am far", Some("far")));

    assert_eq!(request(&address, "GET", "/healthz", "").status, 200);
    running.signal("TERM");
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(
        log.contains("another backend answers") && log.contains("far"),
        "{log}"
    );
    assert!(log.contains("it is left alone"), "{log}");
    assert!(!log.contains("hunter2") && !ready.body.to_string().contains("hunter2"));
}

#[test]
fn a_probe_finds_out_who_is_gone_and_brings_back_who_returns() {
    let (mut near, mut far) = (Backend::start("I am near"), Backend::start("I am far"));
    let folder = tempfile::tempdir().unwrap();
    let rest = "breaker = { failures = 2, open = \"1h\", longest = \"1h\" }\n\
                health = { every = \"100ms\", timeout = \"30s\" }";
    let (_running, address) = serve(folder.path(), &config(&near, &far, rest));
    assert_eq!(told(&ask(&address, None)), ("I am near", None));
    near.kill();
    let near_is = |wanted: &str| {
        let ready = request(&address, "GET", "/readyz", "");
        let is = &ready.body["parts"]["backends"]["near"];
        is.as_str().unwrap().starts_with(wanted)
    };
    until("nobody finds out", || near_is("left alone"));
    assert_eq!(told(&ask(&address, None)), ("I am far", Some("far")));
    // Both are gone: the truth is told at once, and the server is not ready.
    far.kill();
    for _ in 0..5 {
        assert_eq!(ask(&address, None).status, 502);
    }
    let gone = ask(&address, None);
    let words = gone.body["error"]["message"].as_str().unwrap();
    assert!(words.contains("try again in"), "{words}");
    assert_eq!(request(&address, "GET", "/readyz", "").status, 503);
    assert_eq!(request(&address, "GET", "/healthz", "").status, 200);

    near.come_back();
    until("nobody brings it back", || near_is("ok"));
    assert_eq!(request(&address, "GET", "/readyz", "").status, 200);
    assert_eq!(told(&ask(&address, None)), ("I am near", None));
    assert_eq!(told(&ask_chat(&address)), ("I am near", None));
}
