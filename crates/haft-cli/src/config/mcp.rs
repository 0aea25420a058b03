//! `[mcp.NAME]`: the MCP servers in the order of the file, then those of files that other programs read as well.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use haft_mcp::{HostRules, Label, ServerConfig, ServerSettings, SettingsError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::client_file::{ClientFile, ClientServer, ClientServers, Scope};
use super::complaint::Complaint;
use super::document::{Document, Step};

/// The servers that a file describes, in its order.
#[derive(Debug, Default)]
pub(super) struct McpTable(pub(super) Vec<(String, ServerConfig)>);

impl<'de> Deserialize<'de> for McpTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = McpTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tables of servers, such as `[mcp.files]`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut servers: A) -> Result<McpTable, A::Error> {
        let mut table = Vec::new();
        while let Some(server) = servers.next_entry()? {
            table.push(server);
        }
        Ok(McpTable(table))
    }
}

impl JsonSchema for McpTable {
    fn schema_name() -> Cow<'static, str> {
        "McpTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let server = generator.subschema_for::<ServerConfig>();
        json_schema!({"type": "object", "additionalProperties": server})
    }
}

/// A server of the configuration.
#[derive(Debug, Clone)]
pub(crate) struct McpServer {
    pub(crate) label: Label,
    /// What follows from what was said, or what is missing in the environment.
    pub(crate) settings: Result<ServerSettings, SettingsError>,
    /// The table in the configuration, or the file, that it stands in.
    pub(crate) from: String,
}

/// What becomes of a server whose variables or files are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is a complaint: nothing starts.
    Complain,
    /// It is noted with the server, for others are of use without it.
    Note,
}

/// The servers, and what there is to say about them.
#[derive(Debug, Default)]
pub(super) struct Servers {
    pub(super) servers: Vec<McpServer>,
    pub(super) notes: Vec<String>,
}

impl Servers {
    /// Adds the servers of another client's file. What is wrong with one of them costs only that one: the file
    /// belongs to another program.
    fn add_client_file(
        &mut self,
        file: &Path,
        read: ClientServers,
        lookup: haft_mcp::VariableLookup<'_>,
    ) {
        let file = file.display();
        self.notes.extend(read.notes);
        let mut skipped = read.skipped;
        for ClientServer {
            name,
            label,
            config,
        } in read.servers
        {
            if let Some(other) = self.servers.iter().find(|it| it.label == label) {
                skipped.push((
                    name,
                    format!("`{}` describes a server `{label}`", other.from),
                ));
                continue;
            }
            self.servers.push(McpServer {
                settings: config.resolve(label.clone(), lookup),
                from: file.to_string(),
                label,
            });
        }
        let skipped = skipped.into_iter();
        let skipped =
            skipped.map(|(name, reason)| format!("skipped `{name}` of `{file}`: {reason}"));
        self.notes.extend(skipped);
    }
}

/// One file or several.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Files {
    /// One.
    One(PathBuf),
    /// Several, in their order.
    Several(Vec<PathBuf>),
}

impl Files {
    fn into_paths(self) -> Vec<PathBuf> {
        match self {
            Self::One(path) => vec![path],
            Self::Several(paths) => paths,
        }
    }
}

/// All servers of a configuration.
pub(super) fn servers(
    document: &Document<'_>,
    table: McpTable,
    files: Option<Files>,
    missing: Missing,
    lookup: haft_mcp::VariableLookup<'_>,
) -> Result<Servers, Complaint> {
    let mut all = Servers::default();
    let is_list = matches!(files, Some(Files::Several(_)));
    let files = files.map_or_else(Vec::new, Files::into_paths);
    for (name, mut config) in table.0 {
        let path = [Step::Key("mcp"), Step::Key(&name)];
        let label = Label::new(&name).map_err(|_| bad_label(document, &path, &name))?;
        let folder = document.folder_of(&path);
        for file in [&mut config.cwd, &mut config.bearer_file] {
            *file = file.take().map(|it| folder.join(it));
        }
        for tenant in config.tenants.values_mut() {
            tenant.bearer_file = tenant.bearer_file.take().map(|it| folder.join(it));
        }
        if let Some(oauth) = &mut config.oauth {
            for file in [&mut oauth.client_secret_file, &mut oauth.private_key_file] {
                *file = file.take().map(|it| folder.join(it));
            }
        }
        // What is wrong whatever the environment holds is wrong for everybody.
        let complain = |error: SettingsError| about(document, &name, &error);
        check_form(&label, &config).map_err(complain)?;
        let settings = config.resolve(label.clone(), lookup);
        if missing == Missing::Complain
            && let Err(error) = &settings
        {
            return Err(about(document, &name, error));
        }
        all.servers.push(McpServer {
            from: format!("[mcp.{name}]"),
            label,
            settings,
        });
    }
    for (at, file) in files.into_iter().enumerate() {
        let path = [
            Step::Key("server"),
            Step::Key("mcp_servers"),
            Step::Entry(at),
        ];
        let path = if is_list { &path[..] } else { &path[..2] };
        let file = document.folder_of(path).join(at_home(file, lookup));
        let read = ClientFile::read(&file).and_then(|read| read.servers(Scope::User));
        let read = read.map_err(|text| {
            document.complain(path, text).remedy(
                "name a file of another MCP client, such as `{\"mcpServers\": {…}}` or the `config.toml` of Codex",
            )
        })?;
        all.add_client_file(&file, read, lookup);
    }
    Ok(all)
}

/// The path with `~` replaced: files of other clients are mostly at home.
fn at_home(file: PathBuf, lookup: haft_mcp::VariableLookup<'_>) -> PathBuf {
    match (file.strip_prefix("~"), lookup("HOME")) {
        (Ok(below), Some(home)) => PathBuf::from(home).join(below),
        _ => file,
    }
}

/// The hosts that requests may name under this key of `[server]`, each of them one.
pub(super) fn hosts(
    document: &Document<'_>,
    key: &'static str,
    said: Option<Vec<String>>,
) -> Result<Vec<String>, Complaint> {
    let hosts = said.unwrap_or_else(|| vec![String::from("*")]);
    for (at, host) in hosts.iter().enumerate() {
        if let Err(error) = HostRules::new([host]) {
            let path = [Step::Key("server"), Step::Key(key), Step::Entry(at)];
            return Err(document.complain(&path, error.to_string()));
        }
    }
    Ok(hosts)
}

/// Whether it could be a server, if every variable were set and every file there.
pub(crate) fn check_form(label: &Label, config: &ServerConfig) -> Result<(), SettingsError> {
    let mut config = config.clone();
    // An address of variables has its form only once they are known.
    if let Some(url) = config.url.as_mut().filter(|url| url.contains("${")) {
        *url = String::from("https://localhost/");
    }
    let has_both = config.bearer_env.is_some() && config.bearer_file.is_some();
    if config.url.is_some() && !has_both {
        config.bearer_file = None;
    }
    for tenant in config.tenants.values_mut() {
        // Both are an error of their own; otherwise any one token is as good as another.
        if tenant.bearer_env.is_none() && tenant.bearer_file.take().is_some() {
            tenant.bearer_env = Some(String::from("SET"));
        }
    }
    if let Some(oauth) = &mut config.oauth {
        // Any one proof is as good as another as long as nobody looks at it.
        let files = [&mut oauth.client_secret_file, &mut oauth.private_key_file];
        let has_file = files.into_iter().filter_map(Option::take).count() > 0;
        if has_file && oauth.client_secret_env.is_none() {
            oauth.client_secret_env = Some(String::from("SET"));
        }
    }
    let set = |_: &str| Some(String::from("set"));
    config.resolve(label.clone(), &set).map(drop)
}

fn bad_label(document: &Document<'_>, path: &[Step<'_>], name: &str) -> Complaint {
    let message = if name == "haft" {
        String::from("`haft` is haft's own name")
    } else {
        format!("`{name}` cannot be the name of a server")
    };
    document.complain(path, message).remedy(
        "write a letter, then letters, digits, `-` and single `_`, at most 24 in all, such as \
         `[mcp.my-files]`",
    )
}

/// What is wrong with a server, at the place of the key.
fn about(document: &Document<'_>, name: &str, error: &SettingsError) -> Complaint {
    let key = match error {
        SettingsError::Misplaced { key, .. } => key,
        SettingsError::Invalid { key, .. } => key.as_str(),
        _ => "",
    };
    let mut path = vec![Step::Key("mcp"), Step::Key(name)];
    // Only the tables of texts have keys of their own, which may have points in them.
    let steps = key.split_once('.').map_or(vec![key], |(a, b)| vec![a, b]);
    path.extend(steps.into_iter().filter(|it| !it.is_empty()).map(Step::Key));
    let complaint = document.complain(&path, error.to_string());
    match error {
        SettingsError::Transport { .. } => complaint.remedy(
            "a program is started with `command = \"npx\"` and `args`, a server elsewhere is reached at \
             `url = \"https://…\"`",
        ),
        _ => complaint,
    }
}
