//! Every key of a configuration with the value that holds.
//!
//! Which keys there are and what holds where nobody says anything stands in the template of
//! `haft init`, which a test keeps complete and true.

use haft::{LoopOptions, Value};
use serde_json::Map;
use toml::Table;

use crate::config::Variables;
use crate::init::TEMPLATE;
use crate::text::without_password;

/// One key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// The table that it stands in, such as `loop.retry`.
    pub(super) table: String,
    pub(super) key: String,
    pub(super) value: toml::Value,
    pub(super) origin: Origin,
}

/// Where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Default,
    File(String),
    Variable(String),
}

impl Origin {
    pub(super) fn told(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::File(name) | Self::Variable(name) => name,
        }
    }
}

/// A key of the template.
struct Known {
    table: String,
    key: String,
    /// None where the template has an example only.
    default: Option<toml::Value>,
}

/// All settings outside of lists of tables, in the order of the template. The configuration was
/// checked before.
pub(super) fn settings(file: &Table, name: &str, variables: &Variables) -> Vec<Setting> {
    // Endpoints have names of the operator's choice, which the template can only give an example of.
    let known = known().into_iter();
    let known = known.filter(|it| !it.table.starts_with("gateway."));
    let settings = known.filter_map(|known| {
        let path: Vec<&str> = known.table.split('.').chain([known.key.as_str()]).collect();
        let (value, origin) = if let Some((value, variable)) = of_variable(variables, &path) {
            (value, Origin::Variable(variable))
        } else if let Some(value) = of_file(file, &path) {
            (value, Origin::File(name.to_owned()))
        } else {
            let default = known
                .default
                .or_else(|| dependent(file, variables, &path))?;
            (default, Origin::Default)
        };
        Some(Setting {
            value: harmless(&known.key, value),
            table: known.table,
            key: known.key,
            origin,
        })
    });
    settings.collect()
}

/// What holds where nobody says anything, if that depends on another key.
fn dependent(file: &Table, variables: &Variables, path: &[&str]) -> Option<toml::Value> {
    if path != ["loop", "max_result_bytes"] {
        return None;
    }
    let spills = ["loop", "spill_bytes"];
    let spills = of_variable(variables, &spills).is_some() || of_file(file, &spills).is_some();
    let options = LoopOptions {
        spill_bytes: spills.then_some(1),
        ..LoopOptions::default()
    };
    let limit = i64::try_from(options.result_limit()).ok()?;
    Some(toml::Value::Integer(limit))
}

/// The `[[prompt.section]]` entries of the file.
pub(super) fn sections(file: &Table) -> Vec<Table> {
    let prompt = file.get("prompt").and_then(toml::Value::as_table);
    let sections = prompt.and_then(|it| it.get("section"));
    let sections = sections.and_then(toml::Value::as_array);
    let sections = sections.into_iter().flatten();
    let sections = sections.filter_map(toml::Value::as_table);
    sections.cloned().collect()
}

/// The `[[gateway.rule]]` and `[gateway.NAME]` tables of the file, with their headings.
pub(super) fn endpoints(file: &Table) -> Vec<(String, Table)> {
    let gateway = file.get("gateway").and_then(toml::Value::as_table);
    let Some(gateway) = gateway else {
        return Vec::new();
    };
    let rules = |table: &Table| {
        let rules = table.get("rule").and_then(toml::Value::as_array);
        let rules = rules.into_iter().flatten();
        let rules = rules.filter_map(toml::Value::as_table).cloned();
        rules.collect::<Vec<_>>()
    };
    let own = rules(gateway).into_iter();
    let mut all: Vec<_> = own
        .map(|rule| (String::from("[[gateway.rule]]"), rule))
        .collect();
    for (name, endpoint) in gateway {
        let Some(endpoint) = endpoint.as_table() else {
            continue;
        };
        let mut keys = endpoint.clone();
        keys.remove("rule");
        all.push((format!("[gateway.{name}]"), keys));
        let heading = format!("[[gateway.{name}.rule]]");
        all.extend(
            rules(endpoint)
                .into_iter()
                .map(|rule| (heading.clone(), rule)),
        );
    }
    all
}

/// Whether the file has this table and nothing in it, which means something all the same.
pub(super) fn is_bare(file: &Table, name: &str) -> bool {
    let table = file.get(name).and_then(toml::Value::as_table);
    table.is_some_and(Table::is_empty)
}

/// The `[[model]]` entries of the file, without what may be secret.
pub(super) fn models(file: &Table) -> Vec<Table> {
    let models = file.get("model").and_then(toml::Value::as_array);
    let models = models
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_table);
    models
        .map(|model| {
            let keys = model.iter();
            keys.map(|(key, value)| (key.clone(), harmless(key, with_unit(key, value))))
                .collect()
        })
        .collect()
}

/// The MCP server of this label, without what may be secret; none if it stands in another file.
pub(super) fn server(file: &Table, label: &str) -> Option<Table> {
    let table = file.get("mcp")?.as_table()?.get(label)?.as_table()?;
    let keys = table.iter().map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("args", toml::Value::Array(arguments)) => harmless_arguments(arguments),
            _ => harmless(key, value.clone()),
        };
        (key.clone(), value)
    });
    Some(keys.collect())
}

/// What a program is started with, without what follows a word for a secret.
fn harmless_arguments(arguments: &[toml::Value]) -> toml::Value {
    const WORDS: [&str; 6] = ["key", "token", "secret", "password", "auth", "bearer"];
    let names_secret = |text: &str| {
        let text = text.to_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    };
    let mut hides_next = false;
    let shown = arguments.iter().map(|argument| {
        let text = argument.as_str().unwrap_or_default();
        let hides = std::mem::take(&mut hides_next);
        let shown = match text.split_once(['=', ':']) {
            _ if hides => String::from("…"),
            Some((name, _)) if names_secret(name) => format!("{name}=…"),
            _ if text.contains("://") => without_password(text),
            _ => {
                hides_next = text.starts_with('-') && names_secret(text);
                text.to_owned()
            }
        };
        toml::Value::String(shown)
    });
    toml::Value::Array(shown.collect())
}

/// The keys of a model that take bare numbers, which are seconds.
const SECONDS: [&str; 3] = ["connect_timeout", "header_timeout", "idle_timeout"];

/// The value with its unit, if it is a duration without one.
fn with_unit(key: &str, value: &toml::Value) -> toml::Value {
    match value {
        toml::Value::Integer(_) | toml::Value::Float(_) if SECONDS.contains(&key) => {
            format!("{}s", written(value)).into()
        }
        value => value.clone(),
    }
}

/// The keys of the template, up to the models.
fn known() -> Vec<Known> {
    let mut table = String::new();
    let mut known = Vec::new();
    for line in TEMPLATE.lines() {
        if line.starts_with("# ---- ") {
            break;
        }
        let is_example = line.ends_with("# example");
        let line = line.strip_prefix('#').unwrap_or(line);
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.split(']').next()) {
            name.clone_into(&mut table);
            continue;
        }
        let Some((key, _)) = line.split_once(" = ") else {
            continue;
        };
        // Prose may have an equals sign, too; a key has no spaces.
        let is_key = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
        if key.is_empty() || !key.chars().all(is_key) {
            continue;
        }
        let default = toml::from_str::<Table>(line).ok();
        let default = default.and_then(|mut it| it.remove(key));
        known.push(Known {
            table: table.clone(),
            key: key.to_owned(),
            default: default.filter(|_| !is_example),
        });
    }
    known
}

fn of_file(file: &Table, path: &[&str]) -> Option<toml::Value> {
    let (last, tables) = path.split_last()?;
    let table = tables
        .iter()
        .try_fold(file, |table, name| table.get(*name)?.as_table())?;
    table.get(*last).cloned()
}

fn of_variable(variables: &Variables, path: &[&str]) -> Option<(toml::Value, String)> {
    let found = path.iter().try_fold(variables, |it, name| it.get(name))?;
    let Variables::Value { name, text } = found else {
        return None;
    };
    // As the file would have it, if it can be read so.
    let value = toml::from_str::<Table>(&format!("value = {text}"));
    let value = value.ok().and_then(|mut it| it.remove("value"));
    let value = value.unwrap_or_else(|| toml::Value::String(text.clone()));
    Some((value, name.clone()))
}

/// The value without what may be a key: passwords and queries of addresses, and headers, whose values
/// nobody but their receiver needs to know.
fn harmless(key: &str, value: toml::Value) -> toml::Value {
    match value {
        toml::Value::String(text) if text.contains("://") => without_password(&text).into(),
        toml::Value::Table(table) => {
            let hides = key == "headers" || key == "env";
            let members = table.into_iter().map(|(name, value)| {
                let value = match value {
                    toml::Value::String(_) if hides => String::from("…").into(),
                    value => harmless(&name, value),
                };
                (name, value)
            });
            toml::Value::Table(members.collect())
        }
        toml::Value::Array(values) => {
            let values = values.into_iter().map(|value| harmless(key, value));
            toml::Value::Array(values.collect())
        }
        value => value,
    }
}

/// The value as TOML writes it, in one line.
pub(super) fn written(value: &toml::Value) -> String {
    match value {
        // What JSON escapes, TOML reads.
        toml::Value::String(text) => Value::from(text.as_str()).to_string(),
        toml::Value::Array(values) => {
            let values: Vec<_> = values.iter().map(written).collect();
            format!("[{}]", values.join(", "))
        }
        toml::Value::Table(table) => {
            let members = table.iter();
            let members: Vec<_> = members
                .map(|(key, value)| format!("{} = {}", written_key(key), written(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => format!("{number:?}"),
        toml::Value::Boolean(flag) => flag.to_string(),
        toml::Value::Datetime(moment) => moment.to_string(),
    }
}

fn written_key(key: &str) -> String {
    let is_bare = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    }
}

/// The value as JSON.
pub(super) fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(moment) => moment.to_string().into(),
        toml::Value::Array(values) => values.iter().map(json).collect(),
        toml::Value::Table(table) => {
            let members = table.iter();
            let members = members.map(|(key, value)| (key.clone(), json(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys_of_tables;

    fn shown(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let variables = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let variables = Variables::from_environment(variables).unwrap();
        let file = toml::from_str(file).unwrap();
        let settings = settings(&file, "haft.toml", &variables);
        let told = settings.iter().filter(|it| it.origin != Origin::Default);
        told.map(|it| {
            let (table, key, from) = (&it.table, &it.key, it.origin.told());
            format!("{table}.{key} = {} from {from}", written(&it.value))
        })
        .collect()
    }

    #[test]
    fn every_key_of_the_template_is_known() {
        let mut known: Vec<String> = known().into_iter().map(|it| it.key).collect();
        let all = keys_of_tables();
        known.retain(|key| !all.contains(key));
        // Tables within tables have keys of their own.
        let nested = ["attempts", "base", "cap", "total"];
        assert!(
            nested.iter().all(|it| known.iter().any(|key| key == it)),
            "{known:?}"
        );
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
        let file = "[server]\nmax_runs = 3\ndata_dir = \"a\"\n[loop.retry]\nattempts = 2\n";
        let variables = [
            ("HAFT_SERVER__MAX_RUNS", "7"),
            ("HAFT_LOOP__DEADLINE", "5m"),
        ];
        assert_eq!(
            shown(file, &variables),
            [
                "server.data_dir = \"a\" from haft.toml",
                "server.max_runs = 7 from HAFT_SERVER__MAX_RUNS",
                "loop.deadline = \"5m\" from HAFT_LOOP__DEADLINE",
                "loop.retry.attempts = 2 from haft.toml",
            ]
        );
        assert_eq!(shown("", &[]), Vec::<String>::new());
    }

    /// What has no value at all is not there: none of these has an effect then.
    #[test]
    fn every_option_of_the_loop_that_has_an_effect_is_shown() {
        let settings = settings(&Table::new(), "haft.toml", &Variables::none());
        let shown = |table: &str, key: &str| {
            let mut settings = settings.iter();
            settings.any(|it| it.table == table && it.key == key)
        };
        let options = serde_json::to_value(LoopOptions::default()).unwrap();
        for (key, value) in options.as_object().unwrap() {
            match value {
                Value::Null => {}
                Value::Object(nested) => {
                    let table = format!("loop.{key}");
                    for key in nested.keys() {
                        assert!(shown(&table, key), "{table}.{key}");
                    }
                }
                _ => assert!(shown("loop", key), "loop.{key}"),
            }
        }
        assert!(shown("loop", "max_result_bytes") && shown("loop", "defer"));
        let file = "[loop]\nspill_bytes = 10\ndefer_above = 3\n";
        let told = self::settings(
            &toml::from_str(file).unwrap(),
            "haft.toml",
            &Variables::none(),
        );
        let limit = told.iter().find(|it| it.key == "max_result_bytes").unwrap();
        assert_eq!(limit.value.as_integer(), Some(64 << 20));
        assert!(told.iter().any(|it| it.key == "defer_above"));
    }

    #[test]
    fn durations_are_shown_with_their_units() {
        let file = "[[model]]\nname = \"a\"\nheader_timeout = 30\nidle_timeout = \"2m\"\n";
        let models = models(&toml::from_str(file).unwrap());
        assert_eq!(
            written(&toml::Value::Table(models[0].clone())),
            "{ header_timeout = \"30s\", idle_timeout = \"2m\", name = \"a\" }"
        );
    }

    #[test]
    fn nothing_that_may_be_secret_is_shown() {
        let file = "[[model]]\nname = \"a\"\nbase_url = \"https://me:hunter2@h/v1?key=hunter2\"\n\
                    headers = { x-key = \"hunter2\", x-other = { env = \"KEY\" } }\n";
        let models = models(&toml::from_str(file).unwrap());
        let told = written(&toml::Value::Table(models[0].clone()));
        assert!(!told.contains("hunter2"), "{told}");
        assert!(
            told.contains("https://h/v1") && told.contains("\"KEY\""),
            "{told}"
        );
        let file = "[mcp.a]\ncommand = \"a\"\nargs = [\"--api-key\", \"hunter2\", \"--token=hunter2\", \
                    \"Authorization: hunter2\", \"postgres://me:hunter2@h/d\", \"plain\"]\n\
                    env = { A = \"hunter2\" }\nheaders = { B = \"hunter2\" }\n";
        let server = server(&toml::from_str(file).unwrap(), "a").unwrap();
        let told = written(&toml::Value::Table(server));
        assert!(!told.contains("hunter2"), "{told}");
        assert!(
            told.contains("plain") && told.contains("postgres://h/d"),
            "{told}"
        );
        let file = "[otlp]\nendpoint = \"http://me:hunter2@c/v1?key=hunter2\"\n\
                    headers = { x-key = \"hunter2\", x-other = { env = \"KEY\" } }\n";
        assert_eq!(
            shown(file, &[]),
            [
                "otlp.endpoint = \"http://c/v1\" from haft.toml",
                "otlp.headers = { x-key = \"…\", x-other = { env = \"KEY\" } } from haft.toml",
            ]
        );
    }
}
