//! A model server that answers after a while, always the same, or in pieces without end.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The text of one piece of an endless answer.
const PIECE: usize = 2 * 1024;

/// What is asked for by whoever wants an answer without an end, as fast as it is read.
pub(crate) const ENDLESS: &str = "an endless answer";

/// Starts one that answers after so long; its address.
pub(crate) async fn start(latency: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // Whoever hangs up has what he wanted.
                let _ = serve(stream, latency).await;
            });
        }
    });
    address
}

async fn serve(mut stream: TcpStream, latency: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let body = read(&mut stream, &mut buffer).await?;
        if body.contains(ENDLESS) {
            return endless(&mut stream).await;
        }
        tokio::time::sleep(latency).await;
        let body = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
    }
}

/// The body of the next request.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<String> {
    loop {
        if let Some(end) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|it| it.split("\r\n").next()?.parse().ok());
            let whole = end + 4 + length.unwrap_or(0);
            if buffer.len() >= whole {
                let body = String::from_utf8_lossy(&buffer[end + 4..whole]).into_owned();
                buffer.drain(..whole);
                return Ok(body);
            }
        }
        buffer.reserve(64 * 1024);
        if stream.read_buf(buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn endless(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let text = "x".repeat(PIECE);
    let piece = format!(
        "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\
         \"finish_reason\":null}}]}}\n\n"
    );
    loop {
        stream.write_all(piece.as_bytes()).await?;
    }
}
