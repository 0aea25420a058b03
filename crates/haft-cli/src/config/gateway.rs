//! `[gateway]` and `[gateway.NAME]`: haft's tools as an MCP server, at one endpoint or several.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use haft_mcp::gateway::{AccessRule, CallerFilter, Mode, Subset, Threshold};
use haft_server::GatewayOptions;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, Visitor};

use super::complaint::Complaint;
use super::document::{Document, Step};
use super::mcp::McpServer;

/// An endpoint: `[gateway]` itself, or `[gateway.NAME]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EndpointTable {
    /// What clients see.
    pub(super) mode: Option<GatewayMode>,
    /// The labels of the only MCP servers whose tools are offered; haft's own tools then are not. Others are not
    /// started for this endpoint.
    pub(super) servers: Option<Vec<String>>,
    /// The names of the only tools that are offered, beside those of `servers`; `*` stands for any text.
    pub(super) tools: Option<Vec<String>>,
    /// The names of tools that are not offered, whatever else is; `*` stands for any text.
    pub(super) deny: Option<Vec<String>>,
    /// What these tools are for, as clients give it to their models.
    pub(super) description: Option<String>,
    /// The names or ids of the API keys that may use the endpoint. Where any of `keys`, `tenants` and `roles` is
    /// given, a caller needs one of them; to others the endpoint does not exist.
    pub(super) keys: Option<Vec<String>>,
    /// The tenants that may use it.
    pub(super) tenants: Option<Vec<String>>,
    /// The roles that may use it (`haft keys add --role`).
    pub(super) roles: Option<Vec<String>>,
    /// What single callers may use of it. The first rule that is for a caller decides; a caller without one may use
    /// everything that the endpoint offers.
    pub(super) rule: Vec<RuleTable>,
}

/// The keys of [`EndpointTable`]; a test compares them.
const ENDPOINT_KEYS: &[&str] = &[
    "mode",
    "servers",
    "tools",
    "deny",
    "description",
    "keys",
    "tenants",
    "roles",
    "rule",
];

/// `[[gateway.rule]]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RuleTable {
    /// The names or ids of the API keys that it is for. Where none of `keys`, `tenants` and `roles` is given, it is
    /// for everybody; otherwise for callers with any of them.
    pub(super) keys: Option<Vec<String>>,
    /// The tenants that it is for.
    pub(super) tenants: Option<Vec<String>>,
    /// The roles that it is for.
    pub(super) roles: Option<Vec<String>>,
    /// The names of the only tools that these callers see and may call; `*` stands for any text. Prompts and
    /// resources of a server are matched as `SERVER__NAME` and `SERVER__URI`.
    pub(super) allow: Option<Vec<String>>,
    /// The names of tools that they neither see nor may call. It wins over `allow`.
    pub(super) deny: Option<Vec<String>>,
}

/// `[gateway]` with its own keys and the tables of endpoints below it.
#[derive(Debug, Default)]
pub(super) struct GatewayTable {
    /// The endpoint `/mcp`. None where there are only tables of other endpoints.
    own: Option<EndpointTable>,
    /// The others, in the order of the file.
    endpoints: Vec<(String, EndpointTable)>,
}

impl<'de> Deserialize<'de> for GatewayTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(GatewayVisitor)
    }
}

struct GatewayVisitor;

impl<'de> Visitor<'de> for GatewayVisitor {
    type Value = GatewayTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table `[gateway]`")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GatewayTable, A::Error> {
        let mut keys = OwnKeys {
            map,
            has_own: false,
            endpoints: Vec::new(),
        };
        let own = EndpointTable::deserialize(MapAccessDeserializer::new(&mut keys))?;
        // A table without any key means the endpoint with all its defaults, unless it is only there because of the
        // tables below it.
        let is_there = keys.has_own || keys.endpoints.is_empty();
        Ok(GatewayTable {
            own: is_there.then_some(own),
            endpoints: keys.endpoints,
        })
    }
}

/// The keys of `[gateway]` itself; the tables below it are taken out on the way.
struct OwnKeys<A> {
    map: A,
    has_own: bool,
    endpoints: Vec<(String, EndpointTable)>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for &mut OwnKeys<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if ENDPOINT_KEYS.contains(&key.as_str()) {
                self.has_own = true;
                let key: StrDeserializer<'_, A::Error> = key.as_str().into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            let endpoint = self.map.next_value_seed(EndpointSeed(&key))?;
            self.endpoints.push((key, endpoint));
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Reads the table of an endpoint. Anything but a table is a key that `[gateway]` does not have.
struct EndpointSeed<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for EndpointSeed<'_> {
    type Value = EndpointTable;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<EndpointTable, D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! unknown_key {
    ($($visit:ident: $kind:ty),*) => {$(
        fn $visit<E: Error>(self, _: $kind) -> Result<EndpointTable, E> {
            Err(E::unknown_field(self.0, ENDPOINT_KEYS))
        }
    )*};
}

impl<'de> Visitor<'de> for EndpointSeed<'_> {
    type Value = EndpointTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table `[gateway.{}]`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EndpointTable, A::Error> {
        EndpointTable::deserialize(MapAccessDeserializer::new(map))
    }

    unknown_key!(visit_str: &str, visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, _: A) -> Result<EndpointTable, A::Error> {
        Err(A::Error::unknown_field(self.0, ENDPOINT_KEYS))
    }
}

impl JsonSchema for GatewayTable {
    fn schema_name() -> Cow<'static, str> {
        "GatewayTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = EndpointTable::json_schema(generator);
        let mut named = EndpointTable::json_schema(generator);
        named.insert(
            "description".into(),
            "A further endpoint at `/mcp/NAME`, with its own part of the tools and its own callers. Where `[gateway]` \
             itself has no keys, there is no `/mcp` beside it."
                .into(),
        );
        schema.insert("additionalProperties".into(), named.into());
        schema
    }
}

/// What a client of the gateway sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GatewayMode {
    /// Every tool as long as they are few, else three that find, describe and call the others.
    #[default]
    Auto,
    /// Every tool.
    Passthrough,
    /// Three tools that find, describe and call the others.
    Facade,
}

impl GatewayMode {
    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::Auto => Mode::Auto(Threshold::default()),
            Self::Passthrough => Mode::Passthrough,
            Self::Facade => Mode::Facade,
        }
    }
}

/// What an endpoint offers, and to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GatewayConfig {
    pub(crate) mode: GatewayMode,
    pub(crate) servers: Vec<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) description: Option<String>,
    pub(crate) callers: CallerFilter,
    pub(crate) rules: Vec<AccessRule>,
}

impl GatewayConfig {
    fn of(table: EndpointTable) -> Self {
        let rules = table.rule.into_iter().map(|rule| AccessRule {
            callers: callers(rule.keys, rule.tenants, rule.roles),
            allow: rule.allow.map(BTreeSet::from_iter),
            deny: BTreeSet::from_iter(rule.deny.unwrap_or_default()),
        });
        Self {
            mode: table.mode.unwrap_or_default(),
            servers: table.servers.unwrap_or_default(),
            tools: table.tools.unwrap_or_default(),
            deny: table.deny.unwrap_or_default(),
            description: table.description,
            callers: callers(table.keys, table.tenants, table.roles),
            rules: rules.collect(),
        }
    }

    /// The options of a gateway.
    pub(crate) fn options(&self) -> GatewayOptions {
        GatewayOptions {
            mode: self.mode.mode(),
            subset: self.subset(),
            callers: self.callers.clone(),
            rules: self.rules.clone(),
            instructions: self.description.clone(),
            ..GatewayOptions::default()
        }
    }

    /// The part of all tools that is offered; none where it is everything.
    pub(crate) fn subset(&self) -> Option<Subset> {
        if self.servers.is_empty() && self.tools.is_empty() && self.deny.is_empty() {
            return None;
        }
        let subset = self
            .servers
            .iter()
            .fold(Subset::default(), Subset::with_server);
        let subset = self.tools.iter().fold(subset, Subset::with_tool);
        Some(self.deny.iter().fold(subset, Subset::without))
    }
}

fn callers(
    keys: Option<Vec<String>>,
    tenants: Option<Vec<String>>,
    roles: Option<Vec<String>>,
) -> CallerFilter {
    let filter = CallerFilter::default();
    let filter = keys
        .into_iter()
        .flatten()
        .fold(filter, CallerFilter::with_key);
    let filter = tenants
        .into_iter()
        .flatten()
        .fold(filter, CallerFilter::with_tenant);
    roles
        .into_iter()
        .flatten()
        .fold(filter, CallerFilter::with_role)
}

/// All endpoints of a configuration.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    /// `/mcp`.
    pub(super) own: Option<GatewayConfig>,
    /// `/mcp/NAME`.
    pub(super) named: Vec<(String, GatewayConfig)>,
}

/// Checks the tables of the gateway.
pub(super) fn endpoints(
    document: &Document<'_>,
    table: Option<GatewayTable>,
    servers: &[McpServer],
) -> Result<Endpoints, Complaint> {
    let GatewayTable { own, endpoints } = table.unwrap_or_else(|| GatewayTable {
        own: None,
        endpoints: Vec::new(),
    });
    let mut all = Endpoints::default();
    if let Some(table) = own {
        check(document, &[Step::Key("gateway")], &table, servers)?;
        all.own = Some(GatewayConfig::of(table));
    }
    for (name, table) in endpoints {
        let path = [Step::Key("gateway"), Step::Key(&name)];
        if !haft_server::is_endpoint_name(&name) {
            let text = format!("`{name}` cannot be the name of an endpoint");
            return Err(document.complain(&path, text).remedy(
                "write 1 to 64 lower-case letters, digits, `-` and `_`, a letter or a digit first",
            ));
        }
        check(document, &path, &table, servers)?;
        all.named.push((name, GatewayConfig::of(table)));
    }
    Ok(all)
}

fn check(
    document: &Document<'_>,
    path: &[Step<'_>],
    table: &EndpointTable,
    servers: &[McpServer],
) -> Result<(), Complaint> {
    let below = |steps: &[Step<'static>]| [path, steps].concat();
    check_servers(document, path, table.servers.as_deref(), servers)?;
    let lists = [
        ("keys", &table.keys),
        ("tenants", &table.tenants),
        ("roles", &table.roles),
    ];
    for (key, list) in lists {
        refuse_empty(document, &below(&[Step::Key(key)]), key, list.as_deref())?;
    }
    let patterns = [("tools", &table.tools), ("deny", &table.deny)];
    for (key, list) in patterns {
        check_patterns(
            document,
            &below(&[Step::Key(key)]),
            list.as_deref(),
            servers,
        )?;
    }
    for (at, rule) in table.rule.iter().enumerate() {
        let of_rule = |key| below(&[Step::Key("rule"), Step::Entry(at), Step::Key(key)]);
        let lists = [
            ("keys", &rule.keys),
            ("tenants", &rule.tenants),
            ("roles", &rule.roles),
        ];
        for (key, list) in lists {
            refuse_empty(document, &of_rule(key), key, list.as_deref())?;
        }
        for (key, list) in [("allow", &rule.allow), ("deny", &rule.deny)] {
            check_patterns(document, &of_rule(key), list.as_deref(), servers)?;
        }
    }
    Ok(())
}

/// The servers that an endpoint is narrowed to exist.
fn check_servers(
    document: &Document<'_>,
    path: &[Step<'_>],
    named: Option<&[String]>,
    servers: &[McpServer],
) -> Result<(), Complaint> {
    let is_there = |name: &str| servers.iter().any(|it| it.label.as_str() == name);
    let mut named = named.into_iter().flatten().enumerate();
    let Some((at, name)) = named.find(|(_, name)| !is_there(name)) else {
        return Ok(());
    };
    let path = [path, &[Step::Key("servers"), Step::Entry(at)]].concat();
    Err(unknown_server(document, &path, name, servers))
}

fn unknown_server(
    document: &Document<'_>,
    path: &[Step<'_>],
    name: &str,
    servers: &[McpServer],
) -> Complaint {
    let complaint = document.complain(path, format!("there is no MCP server `{name}`"));
    let known: Vec<_> = servers.iter().map(|it| format!("`{}`", it.label)).collect();
    complaint.remedy(match known.as_slice() {
        [] => format!("describe it in `[mcp.{name}]`"),
        known => format!("there is {}", known.join(", ")),
    })
}

/// Rejects an empty list and an empty name: neither says which callers are meant.
fn refuse_empty(
    document: &Document<'_>,
    path: &[Step<'_>],
    key: &str,
    list: Option<&[String]>,
) -> Result<(), Complaint> {
    if list.is_some_and(|list| list.is_empty() || list.iter().any(String::is_empty)) {
        let complaint = document.complain(path, format!("`{key}` has no names, or an empty one"));
        return Err(complaint.remedy(format!("name some, or remove `{key}`")));
    }
    Ok(())
}

/// Every pattern that names a server names one that exists: a rule with a typing error would not restrict anything.
fn check_patterns(
    document: &Document<'_>,
    path: &[Step<'_>],
    patterns: Option<&[String]>,
    servers: &[McpServer],
) -> Result<(), Complaint> {
    for (at, pattern) in patterns.into_iter().flatten().enumerate() {
        let path = [path, &[Step::Entry(at)]].concat();
        if pattern.is_empty() {
            return Err(document.complain(&path, "a name is empty"));
        }
        let label = pattern.split_once("__").map(|(label, _)| label);
        let Some(label) = label.filter(|label| !label.contains('*')) else {
            continue;
        };
        if !servers.iter().any(|it| it.label.as_str() == label) {
            return Err(unknown_server(document, &path, label, servers));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_an_endpoint_are_those_of_its_table() {
        let error = serde_json::from_str::<EndpointTable>(r#"{"": 0}"#).unwrap_err();
        let known = super::super::serde_words::unknown(&error.to_string()).unwrap();
        assert_eq!(known.known, ENDPOINT_KEYS);
    }

    #[test]
    fn tables_below_are_endpoints_and_other_values_are_unknown_keys() {
        let read = |text: &str| serde_json::from_str::<GatewayTable>(text);
        let bare = read("{}").unwrap();
        assert!(bare.own.is_some() && bare.endpoints.is_empty());
        let both = read(r#"{"mode": "facade", "coding": {"servers": ["a"]}}"#).unwrap();
        assert!(both.own.is_some() && both.endpoints[0].0 == "coding");
        let only = read(r#"{"coding": {}}"#).unwrap();
        assert!(only.own.is_none() && only.endpoints.len() == 1);
        for wrong in [
            r#"{"mod": "facade"}"#,
            r#"{"mod": 1}"#,
            r#"{"tool": ["a"]}"#,
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.starts_with("unknown field"), "{error}");
        }
        let error = read(r#"{"coding": {"server": []}}"#)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("unknown field `server`"), "{error}");
    }
}
