//! Requests that count: refused when a key has sent too many, and told how many are left.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use haft_core::BoxFuture;

use crate::access::RateReport;
use crate::app::{App, Caller};

/// A handler whose requests count, before anything of their bodies is read.
#[derive(Clone)]
pub(super) struct Metered<H>(pub(super) H);

impl<H, T> Handler<T, Arc<App>> for Metered<H>
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, app: Arc<App>) -> Self::Future {
        let caller = request.extensions().get::<Caller>();
        let report = caller.and_then(|caller| caller.pass.count());
        let Some(report) = report else {
            return Box::pin(self.0.call(request, app));
        };
        Box::pin(async move {
            let mut response = match report.refusal() {
                Some(error) => error.into_response(),
                None => self.0.call(request, app).await,
            };
            mark(response.headers_mut(), report);
            response
        })
    }
}

/// The headers by which `OpenAI` tells the same.
fn mark(headers: &mut HeaderMap, report: RateReport) {
    let limit = HeaderValue::from(report.limit);
    headers.insert("x-ratelimit-limit-requests", limit);
    let remaining = HeaderValue::from(report.remaining);
    headers.insert("x-ratelimit-remaining-requests", remaining);
    if let Ok(reset) = HeaderValue::from_str(&written(report.full_in)) {
        headers.insert("x-ratelimit-reset-requests", reset);
    }
}

/// A time as `OpenAI` writes it: `120ms`, `8.64s`, `1m0s`.
fn written(time: Duration) -> String {
    let milliseconds = time.as_nanos().div_ceil(1_000_000);
    let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000);
    let (seconds, thousandths) = (rest / 1_000, rest % 1_000);
    if milliseconds < 1_000 {
        return format!("{milliseconds}ms");
    }
    let fraction = format!("{thousandths:03}");
    let seconds = match fraction.trim_end_matches('0') {
        "" => seconds.to_string(),
        digits => format!("{seconds}.{digits}"),
    };
    match minutes {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_clients_read_them() {
        for (milliseconds, text) in [
            (0, "0ms"),
            (120, "120ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (8_640, "8.64s"),
            (59_999, "59.999s"),
            (60_000, "1m0s"),
            (366_005, "6m6.005s"),
        ] {
            assert_eq!(written(Duration::from_millis(milliseconds)), text);
        }
        assert_eq!(written(Duration::from_nanos(1)), "1ms");
    }
}
