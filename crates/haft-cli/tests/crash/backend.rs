//! A provider that outlives the server: its answer follows from the question alone, so that whoever
//! asks again gets the same, and everybody can say what a response must hold.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What a question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// What makes it different from all others.
    tag: String,
    /// So many words are answered.
    words: usize,
    /// So often the tool is called before.
    pub(crate) calls: usize,
    /// So many milliseconds are waited between two words.
    pause: u64,
}

impl Asked {
    pub(crate) fn new(tag: String, words: usize, calls: usize, pause: u64) -> Self {
        Self {
            tag,
            words,
            calls,
            pause,
        }
    }

    /// The question.
    pub(crate) fn question(&self) -> String {
        let Self {
            tag,
            words,
            calls,
            pause,
        } = self;
        format!("{tag} {words} {calls} {pause}")
    }

    /// What a question asks for; none if it is no question of these tests.
    pub(crate) fn read(question: &str) -> Option<Self> {
        let mut parts = question.split(' ');
        let tag = parts.next()?.to_owned();
        let mut number = || parts.next()?.parse().ok();
        let (words, calls, pause) = (number()?, number()?, number()?);
        Some(Self {
            tag,
            words: usize::try_from(words).ok()?,
            calls: usize::try_from(calls).ok()?,
            pause,
        })
    }

    /// The answer, word by word.
    fn answer_in_words(&self) -> impl Iterator<Item = String> {
        let word = |number| format!("{}.{number} ", self.tag);
        (0..self.words).map(word)
    }

    /// The answer.
    pub(crate) fn answer(&self) -> String {
        self.answer_in_words().collect()
    }
}

/// Starts it; it ends with this process.
pub(crate) fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A server that was killed hangs up in the middle of an answer.
            thread::spawn(move || drop(serve(stream)));
        }
    });
    address
}

fn serve(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    let mut from = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    answer(stream, &serde_json::from_slice(&body).unwrap_or_default())
}

fn answer(mut to: TcpStream, request: &Value) -> std::io::Result<()> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let asked = messages
        .iter()
        .rposition(|message| message["role"] == "user");
    let question = asked.map(|at| text(&messages[at]["content"]));
    let Some(question) = question.as_deref().and_then(Asked::read) else {
        let sorry = r#"{"error":{"message":"no question"}}"#;
        let length = sorry.len();
        return write!(
            to,
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{sorry}"
        );
    };
    let later = messages.iter().skip(asked.unwrap_or_default());
    let results = later.filter(|message| message["role"] == "tool").count();
    write!(
        to,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    )?;
    let pause = Duration::from_millis(question.pause);
    if results < question.calls {
        let tool = &request["tools"][0]["function"]["name"];
        let call = json!({
            "index": 0, "id": format!("call_{results}"), "type": "function",
            "function": {"name": tool, "arguments": "{}"},
        });
        thread::sleep(pause);
        send(
            &mut to,
            &json!({"role": "assistant", "tool_calls": [call]}),
            None,
        )?;
        send(&mut to, &json!({}), Some("tool_calls"))?;
    } else {
        for word in question.answer_in_words() {
            thread::sleep(pause);
            send(&mut to, &json!({"content": word}), None)?;
        }
        send(&mut to, &json!({}), Some("stop"))?;
    }
    to.write_all(b"data: [DONE]\n\n")
}

fn send(to: &mut TcpStream, delta: &Value, finish: Option<&str>) -> std::io::Result<()> {
    let chunk = json!({
        "id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        "usage": finish.map(|_| json!({
            "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2,
        })),
    });
    to.write_all(format!("data: {chunk}\n\n").as_bytes())
}

/// The text of a message, whether it is one or several.
pub(crate) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}
