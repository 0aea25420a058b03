//! `std::time`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Native, count_of, give};
use crate::value::Value;
use crate::vm::{Continuation, Effect, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::time::now", (0, 0), |_, _| {
        give(
            jiff::Timestamp::now()
                .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
                .to_string(),
        )
    }),
    Native::new("std::time::now_ms", (0, 0), |_, _| {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        give(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }),
    Native::new("std::time::sleep", (1, 1), |_, a| {
        let milliseconds = count_of("sleep", &a[0])?;
        let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
        Ok(Reply::Effect(Effect::Sleep(Duration::from_millis(
            milliseconds,
        ))))
    }),
    Native::new("std::time::measure", (1, 1), |_, a| {
        Ok(Reply::Call {
            function: a[0].clone(),
            arguments: Vec::<Value>::new(),
            then: Continuation::Measure(Instant::now()),
        })
    }),
];
