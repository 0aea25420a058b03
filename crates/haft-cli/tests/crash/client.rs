//! A client that says exactly what it was told, and whether that was all.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// No answer takes so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Who asks a server at this address.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: String,
}

/// An answer whose head has come.
struct Answer {
    status: u16,
    from: BufReader<TcpStream>,
    length: Option<usize>,
}

impl Client {
    /// Asks, and reads the answer to its end. An error is one of the connection: nothing was told.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<(u16, Value)> {
        let answer = self.send(method, path, body)?;
        let status = answer.status;
        Ok((status, parsed(&answer.whole()?)?))
    }

    pub(crate) fn get(&self, path: &str) -> io::Result<(u16, Value)> {
        self.ask("GET", path, None)
    }

    /// Asks for events.
    pub(crate) fn follow(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<Result<Events, (u16, Value)>> {
        let answer = self.send(method, path, body)?;
        if answer.status == 200 {
            let come = Vec::new();
            return Ok(Ok(Events { answer, come }));
        }
        let status = answer.status;
        Ok(Err((status, parsed(&answer.whole()?)?)))
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} /v1{path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all((head + &body).as_bytes())?;
        Answer::begin(BufReader::new(stream))
    }
}

impl Answer {
    fn begin(mut from: BufReader<TcpStream>) -> io::Result<Self> {
        let first = line(&mut from)?;
        let status = first.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status = status.ok_or_else(cut)?;
        let mut length = None;
        loop {
            let header = line(&mut from)?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
        }
        Ok(Self {
            status,
            from,
            length,
        })
    }

    /// The body, if it is whole.
    fn whole(mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if let Some(length) = self.length {
            body.resize(length, 0);
            self.from.read_exact(&mut body)?;
            return Ok(body);
        }
        while let Some(chunk) = self.chunk()? {
            body.extend(chunk);
        }
        Ok(body)
    }

    /// The next chunk; none behind the last one.
    fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = line(&mut self.from)?;
        let size = usize::from_str_radix(&size, 16).map_err(|_| cut())?;
        let mut chunk = vec![0; size];
        self.from.read_exact(&mut chunk)?;
        line(&mut self.from)?;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }
}

/// The events of a stream, as they come.
pub(crate) struct Events {
    answer: Answer,
    /// What has come of the next frames.
    come: Vec<u8>,
}

impl Events {
    /// The next event; none when the stream has ended as it should. One that has not come wholly has
    /// not come.
    pub(crate) fn next(&mut self) -> io::Result<Option<Value>> {
        loop {
            let end = self.come.windows(2).position(|pair| pair == b"\n\n");
            let Some(end) = end else {
                let chunk = self.answer.chunk()?.ok_or_else(cut)?;
                self.come.extend(chunk);
                continue;
            };
            let frame: Vec<u8> = self.come.drain(..end + 2).collect();
            let frame = String::from_utf8(frame).map_err(io::Error::other)?;
            let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
            match data {
                None => {}
                Some("[DONE]") => return Ok(None),
                Some(data) => return parsed(data.as_bytes()).map(Some),
            }
        }
    }

    /// All that are left.
    pub(crate) fn rest(mut self) -> io::Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) = self.next()? {
            events.push(event);
        }
        Ok(events)
    }
}

fn parsed(text: &[u8]) -> io::Result<Value> {
    serde_json::from_slice(text).map_err(io::Error::other)
}

fn line(from: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let line = line.strip_suffix("\r\n").ok_or_else(cut)?;
    Ok(line.to_owned())
}

fn cut() -> io::Error {
    io::Error::from(io::ErrorKind::UnexpectedEof)
}
