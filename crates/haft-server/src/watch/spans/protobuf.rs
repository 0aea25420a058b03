//! The body of an export, in the binary form of protocol buffers: `ExportTraceServiceRequest` of
//! OTLP 1, of which this writes what spans here consist of. The form is frozen; numbers of fields are
//! those of the protocol's `trace.proto`, `common.proto` and `resource.proto`.

use super::span::{Attributes, Span, Value};

/// How a value stands in the bytes.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// The body that tells of these spans.
pub(super) fn export(resource: &Attributes, spans: &[Span]) -> Vec<u8> {
    let mut body = Message::default();
    body.message(1, |resource_spans| {
        resource_spans.message(1, |message| message.attributes(1, resource));
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, b"haft");
                scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            for span in spans {
                scope_spans.message(2, |message| message.span(span));
            }
        });
    });
    body.0
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn span(&mut self, span: &Span) {
        self.bytes(1, &span.context.trace_id);
        self.bytes(2, &span.context.span_id);
        if let Some(parent) = &span.parent {
            self.bytes(4, parent);
        }
        self.bytes(5, span.name.as_bytes());
        self.integer(6, span.kind as u64);
        self.fixed64(7, nanoseconds(span.start));
        self.fixed64(8, nanoseconds(span.end.max(span.start)));
        self.attributes(9, &span.attributes);
        if span.is_error {
            self.message(15, |status| status.integer(3, 2));
        }
        // Sampled, by the flags of the W3C.
        self.tag(16, FIXED32);
        self.0.extend_from_slice(&1_u32.to_le_bytes());
    }

    fn attributes(&mut self, field: u32, attributes: &Attributes) {
        for (name, value) in &attributes.0 {
            self.message(field, |pair| {
                pair.bytes(1, name.as_bytes());
                pair.message(2, |message| message.value(value));
            });
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Text(text) => self.bytes(1, text.as_bytes()),
            // Negative numbers are written as the same bits without a sign.
            Value::Integer(number) => self.integer(3, number.cast_unsigned()),
            Value::Number(number) => self.fixed64(4, number.to_bits()),
            Value::Texts(texts) => self.message(5, |list| {
                for text in texts {
                    list.message(1, |message| message.bytes(1, text.as_bytes()));
                }
            }),
        }
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn integer(&mut self, field: u32, number: u64) {
        self.tag(field, VARINT);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn tag(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn varint(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    let since = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
