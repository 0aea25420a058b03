//! Secrets that a description of a server holds as literal text.
//!
//! A configuration is often readable for others and checked in. So a literal secret becomes a reference to a variable,
//! unless the user asks for a copy.

use std::collections::BTreeMap;

use haft_mcp::{Label, Secret, ServerConfig};

use crate::config::client_entry::variable_name;

/// Beginnings of tokens that well-known services give out.
const PREFIXES: [&str; 17] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_live",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
];

/// A secret that was replaced by a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The variable that has to hold it.
    pub(super) variable: String,
    /// The server that uses it.
    pub(super) server: Label,
    /// The key that it stood in.
    pub(super) key: String,
}

/// Replaces secrets of several servers by references to variables.
#[derive(Debug, Default)]
pub(super) struct Replacer {
    values: BTreeMap<String, String>,
    pub(super) replaced: Vec<Replaced>,
}

impl Replacer {
    /// Replaces the literal secrets of a server.
    pub(super) fn replace(&mut self, label: &Label, config: &mut ServerConfig) {
        for (name, value) in &mut config.env {
            if is_secret(name, value.expose()) {
                let variable = self.variable(label, name, &format!("env.{name}"), value.expose());
                *value = reference(&variable);
            }
        }
        let bearer = config.headers.iter().find_map(|(name, value)| {
            let token = value.expose().strip_prefix("Bearer ")?;
            let is_bearer = name.eq_ignore_ascii_case("authorization") && !token.contains("${");
            is_bearer.then(|| (name.clone(), token.to_owned()))
        });
        if let Some((name, token)) = bearer.filter(|_| config.bearer_env.is_none()) {
            let variable = format!("{label}_TOKEN");
            config.bearer_env =
                Some(self.variable(label, &variable, "headers.Authorization", &token));
            config.headers.remove(&name);
        }
        for (name, value) in &mut config.headers {
            if is_secret(name, value.expose()) {
                let variable = format!("{label}_{name}");
                let key = format!("headers.{name}");
                let variable = self.variable(label, &variable, &key, value.expose());
                *value = reference(&variable);
            }
        }
        self.replace_in_args(label, &mut config.args);
        if let Some(url) = &mut config.url {
            self.replace_in_url(label, url);
        }
    }

    fn replace_in_args(&mut self, label: &Label, args: &mut [String]) {
        let mut flag: Option<String> = None;
        for arg in args {
            let before = flag.take();
            let name_of = |text: &str| text.trim_start_matches('-').to_owned();
            let (keep, name, value) = if let Some((name, value)) = arg.split_once('=') {
                (format!("{name}="), name_of(name), value.to_owned())
            } else if let Some((name, value)) = arg.split_once(": ") {
                // A header, as `mcp-remote --header` takes it.
                (format!("{name}: "), name.to_owned(), value.to_owned())
            } else if arg.starts_with('-') {
                flag = Some(name_of(arg));
                continue;
            } else {
                (
                    String::new(),
                    before.unwrap_or_else(|| String::from("secret")),
                    arg.clone(),
                )
            };
            let is_bare = keep.is_empty() && name == "secret";
            if looks_secret(&value) || (!is_bare && is_secret(&name, &value)) {
                let variable = self.variable(label, &format!("{label}_{name}"), "args", &value);
                *arg = format!("{keep}${{{variable}}}");
            }
        }
    }

    fn replace_in_url(&mut self, label: &Label, url: &mut String) {
        if let Some((scheme, rest)) = url.clone().split_once("://") {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            if let Some((user, _)) = authority.rsplit_once('@')
                && let Some((name, password)) = user.split_once(':')
                && !password.contains("${")
                && !password.is_empty()
            {
                let variable = self.variable(label, &format!("{label}_PASSWORD"), "url", password);
                let behind = &rest[user.len()..];
                *url = format!("{scheme}://{name}:${{{variable}}}{behind}");
            }
        }
        let whole = url.clone();
        let Some((before, query)) = whole.split_once('?') else {
            return;
        };
        let (query, fragment) = match query.split_once('#') {
            Some((query, fragment)) => (query, format!("#{fragment}")),
            None => (query, String::new()),
        };
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if is_secret(name, value) => {
                    let variable = self.variable(label, &format!("{label}_{name}"), "url", value);
                    format!("{name}=${{{variable}}}")
                }
                _ => pair.to_owned(),
            })
            .collect();
        *url = format!("{before}?{}{fragment}", pairs.join("&"));
    }

    /// A variable for this value. One that holds another value already gets the server's name in front.
    fn variable(&mut self, label: &Label, name: &str, key: &str, value: &str) -> String {
        let mut variable = variable_name(name);
        let is_taken = |variable: &str| {
            let there = self.values.get(variable).cloned();
            let there = there.or_else(|| std::env::var(variable).ok());
            there.is_some_and(|there| there != value)
        };
        if is_taken(&variable) {
            variable = variable_name(&format!("{label}_{name}"));
        }
        let mut number = 2;
        let base = variable.clone();
        while self
            .values
            .get(&variable)
            .is_some_and(|there| there != value)
        {
            variable = format!("{base}_{number}");
            number += 1;
        }
        self.values.insert(variable.clone(), value.to_owned());
        self.replaced.push(Replaced {
            variable: variable.clone(),
            server: label.clone(),
            key: key.to_owned(),
        });
        variable
    }
}

fn reference(variable: &str) -> Secret {
    Secret::new(format!("${{{variable}}}"))
}

/// Whether a text is a secret, by the name that it has or by itself.
fn is_secret(name: &str, value: &str) -> bool {
    if value.trim().is_empty() || value.contains("${") {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let mut parts = name
        .split(|it: char| !it.is_ascii_alphanumeric())
        .filter(|it| !it.is_empty());
    let is_location = parts.clone().next_back().is_some_and(|it| {
        matches!(
            it,
            "file" | "path" | "dir" | "url" | "uri" | "name" | "id" | "endpoint" | "host"
        )
    });
    let names = [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "credential",
        "authorization",
        "cookie",
    ];
    let is_named = parts.any(|part| {
        matches!(part, "key" | "pat" | "pass" | "auth" | "dsn")
            || names.iter().any(|it| part.contains(it))
    });
    (is_named && !is_location && !matches!(value, "true" | "false" | "0" | "1"))
        || looks_secret(value)
}

fn looks_secret(value: &str) -> bool {
    if value.contains("${") {
        return false;
    }
    let begins = PREFIXES.iter().any(|it| value.starts_with(it)) && value.len() >= 16;
    let has_password = value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    });
    begins || has_password || value.starts_with("Bearer ") || value.starts_with("Basic ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> (ServerConfig, Vec<String>) {
        let mut config: ServerConfig = toml::from_str(text).unwrap();
        let mut replacer = Replacer::default();
        replacer.replace(&Label::new("my-hub").unwrap(), &mut config);
        let names = replacer.replaced.into_iter().map(|it| it.variable);
        (config, names.collect())
    }

    #[test]
    fn secrets_become_references_and_the_rest_stays() {
        let (config, names) = replaced(
            "command = 'x'\nargs = ['-y', '--api-key', 'abc', '--token=def', '--level=info', 'ghp_0123456789abcdef', '--header', 'Authorization: Bearer q']\n\
             env = { GH_TOKEN = 'hunter2', LOG = 'debug', KEY_FILE = '/x', PASSED = '${Q}', DB = 'pg://u:p@h/x' }",
        );
        let env = |name: &str| config.env[name].expose().to_owned();
        assert_eq!(env("GH_TOKEN"), "${GH_TOKEN}");
        assert_eq!(
            (env("LOG").as_str(), env("KEY_FILE").as_str()),
            ("debug", "/x")
        );
        assert_eq!(
            (env("PASSED").as_str(), env("DB").as_str()),
            ("${Q}", "${DB}")
        );
        assert_eq!(
            config.args,
            [
                "-y",
                "--api-key",
                "${MY_HUB_API_KEY}",
                "--token=${MY_HUB_TOKEN}",
                "--level=info",
                "${MY_HUB_SECRET}",
                "--header",
                "Authorization: ${MY_HUB_AUTHORIZATION}",
            ]
        );
        assert_eq!(names.len(), 6);
    }

    #[test]
    fn a_bearer_token_becomes_bearer_env_and_addresses_lose_their_keys() {
        let (config, names) = replaced(
            "url = 'https://u:pw@x.example/mcp?api_key=abc&page=1'\n\
             headers = { Authorization = 'Bearer abc', X-Api-Key = 'def', Accept = 'text/plain' }",
        );
        assert_eq!(config.bearer_env.as_deref(), Some("MY_HUB_TOKEN"));
        assert_eq!(config.headers["X-Api-Key"].expose(), "${MY_HUB_X_API_KEY}");
        assert_eq!(config.headers["Accept"].expose(), "text/plain");
        assert_eq!(
            config.url.as_deref(),
            Some("https://u:${MY_HUB_PASSWORD}@x.example/mcp?api_key=${MY_HUB_API_KEY}&page=1")
        );
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn one_variable_never_stands_for_two_values() {
        let mut replacer = Replacer::default();
        let mut texts = Vec::new();
        for (label, value) in [("a", "one"), ("b", "one"), ("c", "two")] {
            let text = format!("command = 'x'\nenv = {{ TOKEN_OF_TESTS = '{value}' }}");
            let mut config: ServerConfig = toml::from_str(&text).unwrap();
            replacer.replace(&Label::new(label).unwrap(), &mut config);
            texts.push(config.env["TOKEN_OF_TESTS"].expose().to_owned());
        }
        assert_eq!(
            texts,
            [
                "${TOKEN_OF_TESTS}",
                "${TOKEN_OF_TESTS}",
                "${C_TOKEN_OF_TESTS}"
            ]
        );
    }
}
