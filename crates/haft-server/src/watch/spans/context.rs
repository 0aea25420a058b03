//! Where in a distributed trace something happens, as the W3C writes it in `traceparent`.

use axum::http::HeaderMap;

/// A span's place: its trace, its own id, and whether anybody records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanContext {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    pub(crate) is_sampled: bool,
}

impl SpanContext {
    /// What a client says about the span that its request is part of. What cannot be read says
    /// nothing.
    ///
    /// Versions behind `00` may add members at the end; `ff` is none.
    pub(crate) fn of_client(headers: &HeaderMap) -> Option<Self> {
        let mut given = headers.get_all("traceparent").iter();
        let text = given.next()?.to_str().ok()?;
        if given.next().is_some() {
            return None;
        }
        Self::parse(text)
    }

    /// Reads the value of a `traceparent`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version: [u8; 1] = hex(parts.next()?)?;
        let trace_id: [u8; 16] = hex(parts.next()?)?;
        let span_id: [u8; 8] = hex(parts.next()?)?;
        let flags: [u8; 1] = hex(parts.next()?)?;
        let has_more = parts.next().is_some();
        let is_sound = version[0] != 0xff
            && !(version[0] == 0 && has_more)
            && trace_id != [0; 16]
            && span_id != [0; 8];
        is_sound.then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags[0] & 1 == 1,
        })
    }

    /// A span below this one.
    pub(crate) fn child(self) -> Self {
        Self {
            span_id: new_span_id(),
            ..self
        }
    }

    /// The first span of a trace of its own.
    pub(crate) fn root() -> Self {
        Self {
            // All zeros would be none; that is as likely as never.
            trace_id: fastrand::u128(1..).to_be_bytes(),
            span_id: new_span_id(),
            is_sampled: true,
        }
    }
}

/// The value of a `traceparent`.
impl std::fmt::Display for SpanContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let trace_id = u128::from_be_bytes(self.trace_id);
        let span_id = u64::from_be_bytes(self.span_id);
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

fn new_span_id() -> [u8; 8] {
    fastrand::u64(1..).to_be_bytes()
}

/// Bytes from lower-case hexadecimal digits, exactly so many.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<SpanContext> {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", text.parse().unwrap());
        SpanContext::of_client(&headers)
    }

    #[test]
    fn what_the_client_says_is_read_by_the_letter() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = of(text).unwrap();
        assert_eq!(context.trace_id[..2], [0x0a, 0xf7]);
        assert_eq!(context.span_id[7], 0x31);
        assert!(context.is_sampled);
        assert!(!of(&text.replace("-01", "-00")).unwrap().is_sampled);
        assert!(of(&format!("01{}-more", &text[2..])).is_some());
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-01",
        ] {
            let mut headers = HeaderMap::new();
            let value = axum::http::HeaderValue::from_bytes(bad.as_bytes()).unwrap();
            headers.insert("traceparent", value);
            assert_eq!(SpanContext::of_client(&headers), None, "{bad}");
        }
        let mut twice = HeaderMap::new();
        twice.append("traceparent", text.parse().unwrap());
        twice.append("traceparent", text.parse().unwrap());
        assert_eq!(SpanContext::of_client(&twice), None);
    }

    #[test]
    fn a_child_stays_in_its_trace() {
        let root = SpanContext::root();
        let child = root.child();
        assert_eq!(child.trace_id, root.trace_id);
        assert_ne!(child.span_id, root.span_id);
        assert!(child.is_sampled);
    }
}
