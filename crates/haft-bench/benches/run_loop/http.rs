//! Two turns with one tool over loopback HTTP, beside a bare loop that sends the same bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haft::engine::Run;
use haft::models::OpenAiChat;

use crate::{cpu_time, median, microseconds, runtime};

/// Get the weather for a city.
#[haft::tool(read_only)]
fn get_weather(
    /// The city
    city: String,
) -> String {
    format!("4 degrees and rain in {city}")
}

/// A stream that calls the tool.
const CALL: &[&str] = &[
    r#"{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}]},"finish_reason":null}]}"#,
    r#"{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}]}"#,
    r#"{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]},"finish_reason":null}]}"#,
    r#"{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":60,"completion_tokens":12,"total_tokens":72}}"#,
    "[DONE]",
];

/// A stream that answers.
const ANSWER: &[&str] = &[
    r#"{"id":"c2","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"It is"},"finish_reason":null}]}"#,
    r#"{"id":"c2","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":" 4 degrees"},"finish_reason":null}]}"#,
    r#"{"id":"c2","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":" in Oslo."},"finish_reason":null}]}"#,
    r#"{"id":"c2","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"id":"c2","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":90,"completion_tokens":9,"total_tokens":99}}"#,
    "[DONE]",
];

/// A canned server on threads of its own; it keeps the bodies that it gets.
struct Canned {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Canned {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bodies = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let kept = Arc::clone(&bodies);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(&stream.unwrap(), &kept));
            }
        });
        Self { address, bodies }
    }

    fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

fn serve(mut stream: &TcpStream, kept: &Mutex<Vec<Vec<u8>>>) {
    stream.set_nodelay(true).unwrap();
    let (call, answer) = (response(CALL), response(ANSWER));
    let mut received = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        received.extend_from_slice(&buffer[..read]);
        while let Some((body, length)) = whole_request(&received) {
            // The second turn carries the tool's result.
            let is_second = body.windows(12).any(|bytes| bytes == b"tool_call_id");
            stream
                .write_all(if is_second { &answer } else { &call })
                .unwrap();
            let mut kept = kept.lock().unwrap();
            if kept.len() < 2 {
                kept.push(body.to_vec());
            }
            drop(kept);
            received.drain(..length);
        }
    }
}

/// The body of the request at the beginning of `bytes`, and the length of all of it.
fn whole_request(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let head = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head])
        .unwrap()
        .to_ascii_lowercase();
    let length: usize = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |length| length.trim().parse().unwrap());
    Some((bytes.get(head..head + length)?, head + length))
}

fn response(events: &[&str]) -> Vec<u8> {
    let body = format!("data: {}\n\n", events.join("\n\ndata: "));
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub(crate) fn print(quick: bool) {
    let server = Canned::start();
    let model = OpenAiChat::new("m")
        .base_url(&server.base_url())
        .api_key("k");
    let model = Arc::new(model);
    // The bare client needs some provider to be built at all, although nothing here is encrypted.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().build().unwrap();
    let url = format!("{}/chat/completions", server.base_url());
    let runtime = runtime();
    let catalog = haft::Catalog::new();
    catalog
        .register_all(haft::tools![get_weather])
        .into_result()
        .unwrap();
    let binding = catalog.snapshot().bind().build().unwrap();
    let ours = |bound: bool| {
        let model = Arc::clone(&model);
        let before = cpu_time();
        let outcome = runtime.block_on(async {
            let run = Run::new(model).user("Weather in Oslo?");
            let run = if bound {
                run.binding(binding.clone())
            } else {
                run.tools([get_weather])
            };
            run.await.unwrap()
        });
        let spent = cpu_time().saturating_sub(before);
        assert_eq!(
            outcome.text, "It is 4 degrees in Oslo.",
            "{:?}",
            outcome.end
        );
        spent
    };
    ours(true);
    let bodies = server.bodies.lock().unwrap().clone();
    assert_eq!(bodies.len(), 2);
    let bare = || {
        let before = cpu_time();
        runtime.block_on(async {
            for body in &bodies {
                let request = client
                    .post(&url)
                    .header("content-type", "application/json")
                    .header("authorization", "Bearer k")
                    .body(body.clone());
                let mut response = request.send().await.unwrap();
                while let Some(chunk) = response.chunk().await.unwrap() {
                    std::hint::black_box(chunk);
                }
            }
        });
        cpu_time().saturating_sub(before)
    };
    bare();
    let rounds = if quick { 2 } else { 500 };
    let (mut bound, mut unbound, mut without) = (Vec::new(), Vec::new(), Vec::new());
    // One after the other, so that all see the same machine.
    for _ in 0..rounds {
        bound.push(ours(true));
        without.push(bare());
        unbound.push(ours(false));
    }
    let (haft, unbound, bare) = (median(bound), median(unbound), median(without));
    let above = haft.saturating_sub(bare) / 2;
    println!(
        "\nover loopback HTTP, two turns with one tool, CPU per run in µs (median of {rounds})"
    );
    println!("{:>24} {:>10.1}", "haft", microseconds(haft));
    println!(
        "{:>24} {:>10.1}",
        "bare loop, same bytes",
        microseconds(bare)
    );
    println!("{:>24} {:>10.1}", "above it, per turn", microseconds(above));
    println!(
        "{:>24} {:>10.1}",
        "haft, tools bound anew",
        microseconds(unbound)
    );
    // The server's threads are idle now and end with the process.
    thread::sleep(Duration::from_millis(1));
}
