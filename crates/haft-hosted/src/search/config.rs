//! What the operator says about the search.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Which folders are searched, and how.
///
/// ```
/// use haft_hosted::FileSearchConfig;
///
/// let config: FileSearchConfig = toml::from_str(
///     r#"
///     folders = ["docs", { path = "/srv/wiki", name = "wiki" }]
///     ignore = ["drafts/**", "*.log"]
///     "#,
/// )?;
/// assert_eq!(config.folders[1].name.as_deref(), Some("wiki"));
/// assert_eq!(config.max_file_bytes, 2 * 1024 * 1024);
///
/// assert!(toml::from_str::<FileSearchConfig>("folder = []").is_err());
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileSearchConfig {
    /// The folders. Without any, nothing is searched.
    pub folders: Vec<Folder>,
    /// Patterns of what is left out beside hidden files, version control, dependencies and secrets:
    /// `*.log` is any name, `drafts/**` a path in a folder.
    pub ignore: Vec<String>,
    /// Whether hidden files are searched too. Those of version control and secrets never are.
    pub hidden: bool,
    /// Larger files are left out.
    pub max_file_bytes: u64,
    /// The files are looked at again before a search, when they were not for so long.
    pub refresh_seconds: u64,
    /// How many new or changed files are read before one search; the rest follow with the next.
    pub files_per_refresh: usize,
}

impl Default for FileSearchConfig {
    fn default() -> Self {
        Self {
            folders: Vec::new(),
            ignore: Vec::new(),
            hidden: false,
            max_file_bytes: 2 * 1024 * 1024,
            refresh_seconds: 10,
            files_per_refresh: 2_000,
        }
    }
}

impl FileSearchConfig {
    /// These folders, and everything else as it is by default.
    pub fn of_folders<F: Into<Folder>>(folders: impl IntoIterator<Item = F>) -> Self {
        Self {
            folders: folders.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The same, with relative paths taken from this directory: that of the configuration file.
    #[must_use]
    pub fn relative_to(mut self, directory: impl AsRef<Path>) -> Self {
        for folder in &mut self.folders {
            folder.path = directory.as_ref().join(&folder.path);
        }
        self
    }
}

/// A folder that is searched. In a configuration a path, or a table with `path` and `name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// What it is called in results; the last part of its path if nothing is said.
    pub name: Option<String>,
}

impl<P: Into<PathBuf>> From<P> for Folder {
    fn from(path: P) -> Self {
        Self {
            path: path.into(),
            name: None,
        }
    }
}

impl Folder {
    /// The folder under this name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl JsonSchema for Folder {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Folder".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<Table>();
        json_schema!({ "anyOf": [{ "type": "string" }, table] })
    }
}

impl<'de> Deserialize<'de> for Folder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FolderVisitor)
    }
}

struct FolderVisitor;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Where it is.
    path: PathBuf,
    /// What it is called in results; the last part of its path if nothing is said.
    name: Option<String>,
}

impl<'de> Visitor<'de> for FolderVisitor {
    type Value = Folder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path, or a table with `path` and `name`")
    }

    fn visit_str<E: de::Error>(self, path: &str) -> Result<Folder, E> {
        Ok(Folder::from(path))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Folder, A::Error> {
        let Table { path, name } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Folder { path, name })
    }
}
