//! A collector of spans on loopback, and what it was sent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Told;
use prost::Message as _;
use serde_json::Value;

/// How long whoever is connected may say nothing.
const PATIENCE: Duration = Duration::from_mins(1);

/// A collector that takes everything.
pub(crate) struct Collector {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Export>>>,
}

/// One request to it.
#[derive(Debug, Clone)]
pub(crate) struct Export {
    /// Its first line and its headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// One span.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) id: Vec<u8>,
    pub(crate) parent: Vec<u8>,
    pub(crate) attributes: BTreeMap<String, Value>,
    pub(crate) resource: BTreeMap<String, Value>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Export>>>::default();
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || take(&stream.unwrap(), &kept));
            }
        });
        Self { url, received }
    }

    /// What came until now: all there is, of a server that has ended.
    pub(crate) fn received(&self) -> Vec<Export> {
        self.received.lock().unwrap().clone()
    }

    /// The spans in it.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for export in self.received() {
            let request = ExportTraceServiceRequest::decode(export.body.as_slice()).unwrap();
            for resource in request.resource_spans {
                let of_resource = attributes(resource.resource.unwrap().attributes);
                let told = resource.scope_spans.into_iter().flat_map(|it| it.spans);
                spans.extend(told.map(|span| Span {
                    name: span.name,
                    id: span.span_id,
                    parent: span.parent_span_id,
                    attributes: attributes(span.attributes),
                    resource: of_resource.clone(),
                }));
            }
        }
        spans
    }
}

/// Answers one connection until it is closed.
fn take(stream: &TcpStream, kept: &Mutex<Vec<Export>>) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|it| it.lines().next()?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        kept.lock().unwrap().push(Export { head, body });
        let mut writer = stream;
        if write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, Value> {
    fn value(told: Option<Told>) -> Value {
        match told.unwrap() {
            Told::StringValue(text) => text.into(),
            Told::IntValue(number) => number.into(),
            Told::DoubleValue(number) => number.into(),
            Told::ArrayValue(list) => {
                let values = list.values.into_iter();
                values.map(|it| value(it.value)).collect()
            }
            other => panic!("{other:?}"),
        }
    }
    let pairs = pairs.into_iter();
    pairs
        .map(|pair| (pair.key, value(pair.value.unwrap().value)))
        .collect()
}
