//! What a server says when it is ready: where it is, who answers, with which tools, and how to try.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use haft::json;
use haft::models::{Adapter, ModelConfig};

use super::choice::{Choice, Reason};
use crate::config::{KeySource, Resolved};
use crate::text::{printable, quoted, quoted_if_needed, without_password};

/// A tool that answers without a network, for the first question.
const FIRST_TOOL: &str = "haft:clock";

/// The page. Its first line is for programs that wait for it.
pub(super) struct Welcome<'w> {
    pub(super) address: SocketAddr,
    pub(super) config: &'w Resolved,
    pub(super) choice: &'w Choice,
    pub(super) tools: &'w [String],
    /// Those of programs among them.
    pub(super) own: &'w [String],
    pub(super) data_dir: &'w Path,
    pub(super) needs_key: bool,
}

impl Display for Welcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "listening on http://{}\n", self.address)?;
        for (at, model) in self.choice.models.iter().enumerate() {
            let label = if at == 0 { "model" } else { "" };
            line(f, label, self.model(model))?;
        }
        line(f, "", self.reason())?;
        line(
            f,
            "tools",
            match self.tools {
                [] => String::from("none here; requests bring their own functions"),
                tools => tools.join(", "),
            },
        )?;
        if !self.config.mcp.is_empty() {
            let servers = self.config.mcp.iter().map(|it| it.label.as_str());
            let servers = servers.collect::<Vec<_>>().join(", ");
            line(
                f,
                "mcp",
                format!("{servers} (`haft mcp test` says whether they work)"),
            )?;
        }
        let own = self.config.gateway.as_ref().map(|_| String::from("/mcp"));
        let named = self.config.endpoints.iter();
        let named = named.map(|(name, _)| format!("/mcp/{name}"));
        for (at, path) in own.into_iter().chain(named).enumerate() {
            let label = if at == 0 { "gateway" } else { "" };
            let address = format!("http://{}{path}", self.address);
            line(f, label, format!(" MCP clients connect to {address}"))?;
        }
        line(f, "data", self.data_dir.display())?;
        if self.needs_key {
            let folder = quoted_if_needed(&self.data_dir.display().to_string());
            let list = format!("haft keys list --data-dir {folder}");
            line(
                f,
                "keys",
                format!("needed; `{list}` shows those that there are"),
            )?;
        } else if !self.address.ip().is_loopback() {
            let folder = quoted_if_needed(&self.data_dir.display().to_string());
            let add = format!("haft keys add NAME --data-dir {folder}");
            let note = format!("whoever reaches this address can use it: make a key with `{add}`");
            line(f, "note", note)?;
        }
        line(f, "stop", "ctrl-c")?;
        writeln!(f, "\n{}\n", self.curl())
    }
}

impl Welcome<'_> {
    /// One model: the name for requests, and who is behind it.
    fn model(&self, model: &ModelConfig) -> String {
        let mut text = model.name.clone();
        for alias in &model.aliases {
            text = format!("{text}, {alias}");
        }
        text = match model.adapter {
            Adapter::Offline => format!("{text}: rules in this process, no language model"),
            adapter => format!("{text}: {} by {}", model.model(), adapter.as_str()),
        };
        if let Some(base_url) = &model.base_url {
            text = format!("{text} at {}", without_password(base_url));
        }
        let is_default = model.name == self.choice.default_model;
        if is_default && self.choice.models.len() > 1 {
            format!("{text} (where a request names none)")
        } else {
            text
        }
    }

    fn reason(&self) -> String {
        match &self.choice.reason {
            Reason::Flag => String::from("as `--model` says"),
            Reason::File(name) => format!("as `{name}` says"),
            Reason::Variable(name) => format!("because `{name}` is set"),
            Reason::Answers { base_url } => format!("because it answers at {base_url}"),
            Reason::Nothing => String::from(
                "because no other was named or found: set `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`, \
                 start Ollama, or write a `[[model]]` entry (`haft init`)",
            ),
        }
    }

    /// A command that works as it stands.
    fn curl(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let address = SocketAddr::new(ip, self.address.port());
        let mut body = json!({
            "model": self.choice.default_model,
            "input": "What time is it?",
            "stream": true,
        });
        if let Some(own) = self.own.first() {
            body["input"] = json!("What can you do with your tool?");
            body["tools"] = json!([{"type": own}]);
        } else if self.tools.iter().any(|tool| tool == FIRST_TOOL) {
            body["tools"] = json!([{"type": FIRST_TOOL}]);
        }
        let key = match self.config.api_key.as_ref().map(|key| &key.source) {
            None if self.needs_key => String::from(" -H \"Authorization: Bearer $HAFT_API_KEY\""),
            None => String::new(),
            Some(KeySource::Variable(name)) => {
                format!(" -H \"Authorization: Bearer ${name}\"")
            }
            Some(KeySource::File(path)) => {
                let path = quoted(&path.display().to_string());
                format!(" -H \"Authorization: Bearer $(cat {path})\"")
            }
        };
        let body = quoted(&body.to_string());
        format!(
            "curl -N http://{address}/v1/responses -H 'Content-Type: application/json'{key} -d \
             {body}"
        )
    }
}

fn line(f: &mut fmt::Formatter<'_>, label: &str, text: impl Display) -> fmt::Result {
    writeln!(f, "  {label:<7}{}", printable(&text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, Source, Variables, resolve};

    fn page(text: &str, address: &str, reason: Option<Reason>) -> String {
        let source = Source {
            text: text.to_owned(),
            ..Source::default()
        };
        let lookup = |_: &str| Some(String::from("hunter2"));
        let resolved = resolve(&source, &Variables::none(), Flags::default(), &lookup);
        let config = resolved.unwrap_or_else(|complaint| panic!("{complaint}"));
        let mut models = config.models.clone();
        if models.is_empty() {
            models.push(ModelConfig::new("default", Adapter::Offline));
        }
        let reason = reason.unwrap_or_else(|| Reason::File(String::from("haft.toml")));
        let choice = Choice::new(models, reason).with_default(config.default_model.clone());
        let page = Welcome {
            address: address.parse().unwrap(),
            config: &config,
            choice: &choice,
            tools: &[String::from("haft:calculate"), String::from("haft:clock")],
            own: &[],
            data_dir: Path::new("/srv/haft-data"),
            needs_key: config.api_key.is_some() || address.starts_with("192."),
        };
        page.to_string()
    }

    #[test]
    fn the_first_page_says_where_it_is_and_how_to_try_it() {
        let page = page("", "127.0.0.1:4141", Some(Reason::Nothing));
        assert!(page.starts_with("listening on http://127.0.0.1:4141\n"));
        insta::assert_snapshot!(page);
    }

    #[test]
    fn models_keys_and_open_doors_are_told_without_secrets() {
        let models = r#"
            [server]
            default_model = "two"
            [[model]]
            name = "one"
            adapter = "openai-chat"
            base_url = "http://box:8080/v1?key=hunter2"
            model = "qwen3"
            [[model]]
            name = "two"
            aliases = ["quick"]
            adapter = "anthropic"
            api_key_env = "MY_KEY"
        "#;
        let open = page(models, "0.0.0.0:80", None);
        let asking = models.replace("[server]", "[server]\napi_key_env = \"DOOR_KEY\"");
        let asking = page(&asking, "[::]:80", Some(Reason::Flag));
        // Keys that are in the data folder.
        let kept = page(models, "192.0.2.1:80", None);
        let told = format!("{open}\n{asking}\n{kept}");
        assert!(!told.contains("hunter2"), "{told}");
        insta::assert_snapshot!(told);
    }

    #[test]
    fn what_goes_to_a_shell_is_quoted() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted_if_needed("/var/lib/haft"), "/var/lib/haft");
        assert_eq!(quoted_if_needed("/a b"), "'/a b'");
        let text = "[[model]]\nname = \"it's $HOME\"\nadapter = \"offline\"\n";
        let page = page(text, "127.0.0.1:1", None);
        assert!(page.contains(r#"-d '{"model":"it'\''s $HOME","#), "{page}");
    }
}
