//! Values with a form of their own: addresses, sizes, ages, origins.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Where to listen: a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    host: String,
    port: u16,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            host: String::from("127.0.0.1"),
            port: 4141,
        }
    }
}

impl Listen {
    /// The host without brackets.
    pub(crate) fn host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "`{text}` is no address to listen on: {why}; write a host and a port, such as \
                 `127.0.0.1:4141`"
            )
        };
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| refused("the port is missing"))?;
        let port = port
            .parse()
            .map_err(|_| refused("the port must be a number from 0 to 65535"))?;
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let plain = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
        match host {
            "" => Err(refused("the host is missing")),
            _ if is_bracketed
                && host[1..host.len() - 1]
                    .parse::<std::net::Ipv6Addr>()
                    .is_ok() =>
            {
                Ok(())
            }
            _ if host.contains("//") => Err(refused("it is a URL")),
            _ if host.contains(':') => {
                Err(refused("an IPv6 address stands in brackets, as in `[::1]`"))
            }
            _ if host.chars().all(plain) => Ok(()),
            _ => Err(refused("the host is none")),
        }?;
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

/// A number of bytes: `10485760`, `"10MiB"`, `"1.5 GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is no size: write bytes, or a size such as `10GiB`");
        let trimmed = text.trim();
        let at = trimmed
            .find(|it: char| !it.is_ascii_digit() && it != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(at);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            "tib" => 1 << 40,
            _ => return Err(refused()),
        };
        // Whole numbers stay exact; a fraction is given its digits in units of the factor.
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let whole: u64 = whole.parse().map_err(|_| refused())?;
        let digits = u32::try_from(fraction.len()).map_err(|_| refused())?;
        let fraction: u64 = fraction.parse().map_err(|_| refused())?;
        let scale = 10_u64.checked_pow(digits).ok_or_else(refused)?;
        let part = u128::from(factor) * u128::from(fraction) / u128::from(scale);
        let part = u64::try_from(part).map_err(|_| refused())?;
        let bytes = whole
            .checked_mul(factor)
            .and_then(|it| it.checked_add(part));
        bytes.map(Self).ok_or_else(refused)
    }
}

/// A time: `"30d"`, `"12h"`, or whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text) {
            Ok(duration) => Ok(Self(duration)),
            Err(error) => Err(format!(
                "`{text}` is no duration: {error}; write a number and a unit, such as `30d`"
            )),
        }
    }
}

/// A limit, or `"none"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit<T> {
    At(T),
    None,
}

impl<T> Limit<T> {
    pub(crate) fn get(self) -> Option<T> {
        match self {
            Self::At(limit) => Some(limit),
            Self::None => None,
        }
    }
}

impl<T: FromStr<Err = String>> FromStr for Limit<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            text => text.parse().map(Self::At),
        }
    }
}

/// A browser's origin: scheme, host and perhaps a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(String);

impl Origin {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "`{text}` is no origin: {why}; write it as browsers send it, such as \
                 `https://app.example.com` or `http://localhost:3000`"
            )
        };
        if text == "*" {
            return Err(refused("every page of the web would be let in"));
        }
        let host = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"))
            .ok_or_else(|| refused("it must begin with `https://` or `http://`"))?;
        let plain = |it: char| it.is_ascii_alphanumeric() || ".-_:[]".contains(it);
        match host {
            "" => Err(refused("the host is missing")),
            _ if host.contains('/') => Err(refused("it has no path, and no `/` at its end")),
            _ if !host.chars().all(plain) => Err(refused("the host is none")),
            // Browsers send it so, and are compared with it.
            _ => Ok(Self(text.to_ascii_lowercase())),
        }
    }
}

/// Reads text by `FromStr`, and numbers where the type takes them.
struct Written<T> {
    expected: &'static str,
    number: Option<fn(u64) -> T>,
    made: PhantomData<T>,
}

impl<T: FromStr<Err = String>> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        match self.number {
            Some(make) => Ok(make(number)),
            None => Err(E::invalid_type(de::Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(format!("`{number}` is less than nothing"))),
        }
    }
}

macro_rules! written {
    ($($type:ty, $kind:literal, $expected:literal, $number:expr;)*) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let number: Option<fn(u64) -> Self> = $number;
                match number {
                    Some(_) => json_schema!({ "title": $kind, "type": ["string", "integer"] }),
                    None => json_schema!({ "title": $kind, "type": "string" }),
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let written = Written { expected: $expected, number: $number, made: PhantomData };
                match written.number {
                    Some(_) => deserializer.deserialize_any(written),
                    None => deserializer.deserialize_str(written),
                }
            }
        }
    )*};
}

written! {
    Listen, "address", "a host and a port such as \"127.0.0.1:4141\"", None;
    Origin, "origin", "an origin such as \"https://app.example.com\"", None;
    Bytes, "size", "bytes, or a size such as \"64MiB\"", Some(Bytes);
    Age, "duration", "a duration such as \"10s\", or whole milliseconds",
        Some(|it| Age(Duration::from_millis(it)));
    Limit<Bytes>, "size or `\"none\"`", "bytes, a size such as \"10GiB\", or \"none\"",
        Some(|it| Limit::At(Bytes(it)));
    Limit<Age>, "duration or `\"none\"`", "a duration such as \"30d\", whole milliseconds, or \"none\"",
        Some(|it| Limit::At(Age(Duration::from_millis(it))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_back() {
        for text in ["127.0.0.1:4141", "[::1]:0", "localhost:80", "0.0.0.0:65535"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        for (text, why) in [
            ("4141", "the port is missing"),
            (":4141", "the host is missing"),
            ("::1:4141", "in brackets"),
            ("[x]:1", "the host is none"),
            ("localhost:x", "from 0 to 65535"),
            ("localhost:70000", "from 0 to 65535"),
            ("http://localhost:80", "it is a URL"),
            ("a b:80", "the host is none"),
            ("", "the port is missing"),
        ] {
            let error = text.parse::<Listen>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn sizes_are_exact() {
        for (text, bytes) in [
            ("0", 0),
            ("10485760", 10 << 20),
            ("10GiB", 10 << 30),
            ("1.5 kb", 1500),
            ("2MB", 2_000_000),
            ("16777216TiB", 0),
            ("-1", 0),
            ("1.GiB", 0),
            ("1.2.3", 0),
            ("ten", 0),
            ("", 0),
            ("0.00000000000000000000001GiB", 0),
        ] {
            let read = text.parse::<Bytes>();
            let expected = (bytes > 0 || text == "0").then_some(Bytes(bytes));
            assert_eq!(read.ok(), expected, "{text}");
        }
    }

    #[test]
    fn limits_can_be_lifted() {
        assert_eq!("none".parse(), Ok(Limit::<Bytes>::None));
        let month = Duration::from_hours(30 * 24);
        assert_eq!("30d".parse(), Ok(Limit::At(Age(month))));
        assert!("forever".parse::<Limit<Age>>().is_err());
    }

    #[test]
    fn origins_are_compared_as_browsers_send_them() {
        let origin: Origin = "https://App.example.com:8443".parse().unwrap();
        assert_eq!(origin.as_str(), "https://app.example.com:8443");
        for text in [
            "*",
            "app.example.com",
            "https://",
            "https://a/",
            "https://a?b",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
