//! Where the browser comes back to: a port of this machine that is open during a login, or text that the user pastes.

use std::io;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How much of a request is read, and how long.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const HEAD: Duration = Duration::from_secs(10);

const PATH: &str = "/callback";

/// A port that waits for one browser.
pub(super) struct Redirects {
    listener: TcpListener,
    address: Url,
}

impl Redirects {
    /// Opens this port, or any free one.
    pub(super) async fn open(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
        let address = format!("http://{}{PATH}", listener.local_addr()?);
        let address = Url::parse(&address).map_err(io::Error::other)?;
        Ok(Self { listener, address })
    }

    /// Where the browser is to be sent.
    pub(super) fn address(&self) -> &str {
        self.address.as_str()
    }

    /// The address that a user pasted, as the browser shows it after the login, or the code alone.
    pub(super) fn pasted(address: &str, text: &str, state: &str) -> Result<Url, &'static str> {
        let text = text.trim();
        let mut url = Url::parse(address).map_err(|_| "the callback address is not valid")?;
        let query = match text.split_once('?') {
            Some((_, query)) => Some(query),
            None if text.contains("code=") || text.contains("error=") => Some(text),
            None => None,
        };
        let Some(query) = query else {
            let is_code = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_code || text.contains("://") {
                return Err("it holds no code");
            }
            url.query_pairs_mut()
                .append_pair("code", text)
                .append_pair("state", state);
            return Ok(url);
        };
        url.set_query(Some(query.split('#').next().unwrap_or(query)));
        let states: Vec<_> = url
            .query_pairs()
            .filter(|(key, _)| key == "state")
            .collect();
        match states.as_slice() {
            [(_, found)] if found == state => Ok(url.clone()),
            _ => Err("it belongs to another login"),
        }
    }

    /// Waits for the browser that brings this state; requests with another one are rejected.
    pub(super) async fn wait(self, state: &str) -> io::Result<Url> {
        let mut visitors = JoinSet::new();
        loop {
            // Browsers open connections that they do not use, so that none may hold up the next.
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (socket, _) = accepted?;
                    let (address, state) = (self.address.clone(), state.to_owned());
                    visitors.spawn(async move {
                        let visit = receive(socket, &address, &state);
                        tokio::time::timeout(HEAD, visit).await.ok()?.ok()?
                    });
                }
                Some(Ok(Some(url))) = visitors.join_next() => return Ok(url),
            }
        }
    }
}

/// Reads one request and answers it; gives its address if it is the one that is waited for.
async fn receive(mut socket: TcpStream, address: &Url, state: &str) -> io::Result<Option<Url>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        if head.len() > MAX_HEAD_BYTES || socket.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    let url = target(&head, address).filter(|url| {
        let mut states = url.query_pairs().filter(|(key, _)| key == "state");
        states.next().is_some_and(|(_, value)| value == state) && states.next().is_none()
    });
    let (status, text) = match &url {
        Some(_) => ("200 OK", "You can close this page and go back to haft."),
        None => ("404 Not Found", "Nothing is waited for here."),
    };
    // The address holds the code: nobody else is to hear of it.
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>haft</title><p>{text}</p>\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\ncontent-security-policy: default-src 'none'\r\n\
         referrer-policy: no-referrer\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await?;
    Ok(url)
}

/// The address that a request asks for, if it is one of ours.
fn target(head: &[u8], address: &Url) -> Option<Url> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let url = address.join(target).ok()?;
    let is_ours = method == "GET" && url.origin() == address.origin() && url.path() == PATH;
    is_ours.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn visit(address: &Url, target: &str) -> String {
        let host = (address.host_str().unwrap(), address.port().unwrap());
        let mut socket = TcpStream::connect(host).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[test]
    fn a_pasted_address_or_code_is_read() {
        let address = "http://127.0.0.1:7/callback";
        for text in [
            "http://127.0.0.1:7/callback?code=abc&state=s1",
            " http://localhost:9/callback?state=s1&code=abc#_ \n",
            "code=abc&state=s1",
            "abc",
        ] {
            let url = Redirects::pasted(address, text, "s1").unwrap();
            let code = url
                .query_pairs()
                .find(|(key, _)| key == "code")
                .unwrap()
                .1
                .into_owned();
            assert_eq!((code.as_str(), url.path()), ("abc", "/callback"), "{text}");
        }
        for text in [
            "",
            "http://127.0.0.1:7/callback",
            "?code=abc&state=s2",
            "?code=abc",
            "a b",
        ] {
            assert!(Redirects::pasted(address, text, "s1").is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn only_the_browser_with_the_state_is_heard() {
        let redirects = Redirects::open(None).await.unwrap();
        let address = redirects.address.clone();
        assert!(redirects.address().starts_with("http://127.0.0.1:"));
        let waiting = tokio::spawn(async move { redirects.wait("s1").await });
        // One that says nothing holds nobody up.
        let host = (address.host_str().unwrap(), address.port().unwrap());
        let _silent = TcpStream::connect(host).await.unwrap();
        for stranger in [
            "/callback?code=evil&state=s2",
            "/callback?code=evil",
            "/callback?code=evil&state=s1&state=s2",
            "/callback?code=evil&state=s2&state=s1",
            "/other?code=evil&state=s1",
            "http://evil.example/callback?code=evil&state=s1",
            "/favicon.ico",
        ] {
            let answer = visit(&address, stranger).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{stranger}: {answer}");
        }
        let answer = visit(&address, "/callback?code=good%3D&state=s1&iss=i").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!answer.contains("good"), "{answer}");
        let url = waiting.await.unwrap().unwrap();
        assert_eq!(url.query(), Some("code=good%3D&state=s1&iss=i"));
    }
}
