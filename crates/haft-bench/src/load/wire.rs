//! HTTP/1.1 by hand, on one connection: as little as both ends of a measurement need, so that they cost
//! next to nothing themselves.

use std::io;

use anyhow::{Context, Result, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// More is not read of one message.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A connection that is kept open.
pub(crate) struct Wire {
    stream: TcpStream,
    /// What has arrived; messages are cut from its front.
    received: Vec<u8>,
    message: Message,
}

/// A request or an answer.
#[derive(Default)]
pub(crate) struct Message {
    /// The first line.
    pub(crate) line: String,
    pub(crate) body: Vec<u8>,
}

/// How the end of a body is found.
enum Extent {
    Length(usize),
    Chunked,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
            message: Message::default(),
        })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next whole message; none if the other end has hung up.
    pub(crate) async fn receive(&mut self) -> Result<Option<&Message>> {
        let end = loop {
            if let Some(end) = memmem::find(&self.received, b"\r\n\r\n") {
                break end;
            }
            if !self.more().await? {
                if self.received.is_empty() {
                    return Ok(None);
                }
                bail!("the connection ended within a message");
            }
        };
        let head = std::str::from_utf8(&self.received[..end])?;
        let line = head.lines().next().unwrap_or_default();
        self.message.line.clear();
        self.message.line.push_str(line);
        let extent = extent(head)?;
        self.message.body.clear();
        let end = self.body(end + 4, extent).await?;
        self.received.drain(..end);
        Ok(Some(&self.message))
    }

    /// Reads a body that begins at a place; where it ends.
    async fn body(&mut self, start: usize, extent: Extent) -> Result<usize> {
        match extent {
            Extent::Length(length) => {
                let end = start + length;
                self.at_least(end).await?;
                let body = &self.received[start..end];
                self.message.body.extend_from_slice(body);
                Ok(end)
            }
            Extent::Chunked => {
                let mut at = start;
                loop {
                    let line = loop {
                        match memmem::find(&self.received[at..], b"\r\n") {
                            Some(length) => break at + length,
                            None => self.at_least(self.received.len() + 1).await?,
                        }
                    };
                    let size = std::str::from_utf8(&self.received[at..line])?;
                    let size = size.split(';').next().unwrap_or_default().trim();
                    let size = usize::from_str_radix(size, 16).context("the size of a chunk")?;
                    let (from, to) = (line + 2, line + 2 + size);
                    self.at_least(to + 2).await?;
                    let chunk = &self.received[from..to];
                    self.message.body.extend_from_slice(chunk);
                    at = to + 2;
                    if size == 0 {
                        return Ok(at);
                    }
                }
            }
        }
    }

    /// Waits until so many bytes have arrived.
    async fn at_least(&mut self, count: usize) -> Result<()> {
        while self.received.len() < count {
            if !self.more().await? {
                bail!("the connection ended within a body");
            }
        }
        Ok(())
    }

    /// Waits until these bytes have arrived somewhere.
    pub(crate) async fn wait_for(&mut self, bytes: &[u8]) -> Result<()> {
        while memmem::find(&self.received, bytes).is_none() {
            if !self.more().await? {
                let received = String::from_utf8_lossy(&self.received);
                bail!("the connection ended before what was awaited: {received}");
            }
        }
        Ok(())
    }

    /// Waits until the other end hangs up.
    pub(crate) async fn closed(&mut self) -> Result<()> {
        while self.more().await? {
            self.received.clear();
        }
        Ok(())
    }

    async fn more(&mut self) -> Result<bool> {
        if self.received.len() > MAX_BYTES {
            bail!("a message has more than {MAX_BYTES} bytes");
        }
        Ok(self.stream.read_buf(&mut self.received).await? > 0)
    }
}

fn extent(head: &str) -> Result<Extent> {
    for line in head.lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else {
            bail!("`{line}` is no header");
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            return Ok(Extent::Length(value.parse().context("`content-length`")?));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") && value.ends_with("chunked") {
            return Ok(Extent::Chunked);
        }
    }
    Ok(Extent::Length(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn pair() -> (Wire, Wire) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap());
        let (near, far) = tokio::join!(near, listener.accept());
        let (near, far) = (near.unwrap(), far.unwrap().0);
        (Wire::new(near).unwrap(), Wire::new(far).unwrap())
    }

    #[tokio::test]
    async fn messages_of_both_kinds_are_cut_wherever_they_arrive() {
        let (mut near, mut far) = pair().await;
        let all: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
            HTTP/1.1 201 Y\r\ntransfer-encoding: chunked\r\n\r\n2\r\nde\r\n1;x=y\r\nf\r\n0\r\n\r\n\
            GET / HTTP/1.1\r\nhost: h\r\n\r\n";
        let writing = tokio::spawn(async move {
            for byte in all {
                far.send(&[*byte]).await.unwrap();
            }
        });
        for (line, body) in [
            ("HTTP/1.1 200 OK", "abc"),
            ("HTTP/1.1 201 Y", "def"),
            ("GET / HTTP/1.1", ""),
        ] {
            let message = near.receive().await.unwrap().unwrap();
            assert_eq!(message.line, line);
            assert_eq!(message.body, body.as_bytes());
        }
        writing.await.unwrap();
        assert!(near.receive().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_message_that_breaks_off_is_an_error() {
        for part in [
            "HTTP/1.1 200 OK\r\ncontent-le",
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
        ] {
            let (mut near, mut far) = pair().await;
            far.send(part.as_bytes()).await.unwrap();
            drop(far);
            assert!(near.receive().await.is_err(), "{part}");
        }
    }
}
