use super::*;

fn read(head: &str) -> Result<Head, WireError> {
    let mut buffer = BytesMut::from(head.as_bytes());
    Head::take(&mut buffer).map(|head| head.expect("the head is whole"))
}

fn framing_of(headers: &str) -> Framing {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n");
    read(&head).unwrap().framing
}

#[test]
fn a_head_is_read_when_it_is_whole_and_what_follows_stays() {
    let whole = "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\ncontent-length: 2\r\n\r\n{}";
    for there in 0..whole.len() - 2 {
        let mut buffer = BytesMut::from(&whole[..there]);
        assert!(Head::take(&mut buffer).unwrap().is_none(), "{there}");
        assert_eq!(buffer, &whole[..there]);
    }
    let mut buffer = BytesMut::from(whole);
    let head = Head::take(&mut buffer).unwrap().unwrap();
    assert_eq!(head.status, 429);
    assert_eq!(head.headers["retry-after"], "7");
    assert_eq!(head.framing, Framing::Length(2));
    assert!(head.keeps_open);
    assert_eq!(&*buffer, b"{}");
}

#[test]
fn what_comes_before_the_answer_is_passed_over() {
    let head =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    let head = read(head).unwrap();
    assert_eq!(head.status, 200);
    assert!(head.headers.is_empty());
}

#[test]
fn a_body_ends_where_the_head_says() {
    let chunked = Framing::Chunked(Chunk::Size);
    assert_eq!(framing_of("content-length: 5"), Framing::Length(5));
    assert_eq!(framing_of("content-length: 5, 5"), Framing::Length(5));
    assert_eq!(framing_of("transfer-encoding: Chunked"), chunked);
    assert_eq!(
        framing_of("transfer-encoding: chunked\r\ncontent-length: 5"),
        chunked
    );
    assert_eq!(
        framing_of("transfer-encoding: identity"),
        Framing::UntilClosed
    );
    assert_eq!(framing_of("a: b"), Framing::UntilClosed);
    let empty = read("HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\n").unwrap();
    assert_eq!(empty.framing, Framing::Length(0));
}

#[test]
fn only_a_connection_that_stays_open_is_kept() {
    let keeps = |head: &str| read(head).unwrap().keeps_open;
    assert!(keeps("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    assert!(!keeps(
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: x, Close\r\n\r\n"
    ));
    assert!(!keeps("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"));
    assert!(keeps(
        "HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n"
    ));
    assert!(
        !keeps("HTTP/1.1 200 OK\r\n\r\n"),
        "it ends when it is closed"
    );
    assert!(
        !keeps("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n"),
        "nobody knows where it ends"
    );
    assert!(
        !keeps("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n"),
        "there are no chunks in that version"
    );
    assert!(
        !keeps("HTTP/1.1 101 Other\r\n\r\n"),
        "it speaks something else"
    );
}

#[test]
fn what_is_no_answer_is_refused() {
    let many = "a: b\r\n".repeat(MAX_HEADERS + 1);
    for bad in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length : 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        &format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
    ] {
        assert!(matches!(read(bad), Err(WireError::NotHttp(_))), "{bad}");
    }
}

#[test]
fn a_request_says_where_what_and_how_much() {
    let mut headers = HeaderMap::new();
    headers.insert("x-key", HeaderValue::from_static("k"));
    headers.insert("host", HeaderValue::from_static("elsewhere"));
    headers.insert("content-length", HeaderValue::from_static("1"));
    headers.insert("user-agent", HeaderValue::from_static("me"));
    let letter = Letter {
        headers: &headers,
        accept: "text/plain",
    };
    let url = Url::parse("http://host:8080/v1/a b?c=d").unwrap();
    let head = String::from_utf8(letter.head(&url, 12)).unwrap();
    assert_eq!(
        head,
        "POST /v1/a%20b?c=d HTTP/1.1\r\nhost: host:8080\r\nx-key: k\r\nuser-agent: me\r\n\
         content-type: application/json\r\naccept: text/plain\r\ncontent-length: 12\r\n\r\n"
    );
}
