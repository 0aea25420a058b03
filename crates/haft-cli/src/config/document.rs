//! The text of a file and the variables above it: parsed, and able to say where each key stands.

use std::io::{ErrorKind, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::de::{DeTable, DeValue};

use super::bare_numbers;
use super::complaint::{Complaint, Place};
use super::file::{FileConfig, adapters, tables};
use super::layered::{Fault, Layered, Spot as SpotOfFault};
use super::prompt::Spot;
use super::serde_words::{Kind, NO_WORD, Unknown, reworded, unknown};
use super::variables::Variables;
use crate::text::nearest;
use crate::user_dirs;

/// The file that is read where no other is named.
const USUAL_FILE: &str = "haft.toml";

/// How large a file may be.
const MAX_BYTES: u64 = 1 << 20;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Source {
    /// As it is called in messages.
    pub(crate) name: String,
    /// Where its relative paths begin.
    pub(crate) folder: PathBuf,
    /// What it holds.
    pub(crate) text: String,
    /// Whether there is such a file.
    pub(crate) is_there: bool,
    /// Whether it is the user's own, not a project's: its data is in the user's data folder.
    pub(crate) is_of_user: bool,
}

impl Source {
    /// Reads a file that must be there.
    pub(crate) fn read(path: &Path) -> Result<Self, Complaint> {
        let name = path.display().to_string();
        let refused = |message: &str| {
            let name = name.clone();
            Complaint::new(Place::WholeFile { name }, message)
        };
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => refused("there is no such file")
                    .remedy(format!("write one with `haft init {name}`")),
                _ => refused(&format!("the file cannot be read: {error}")),
            })?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(refused("the file is too large for a configuration"));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| refused("the file is not UTF-8").remedy("save it as UTF-8"))?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let is_same = |user: PathBuf| {
            let paths = (user.canonicalize(), path.canonicalize());
            matches!(paths, (Ok(user), Ok(path)) if user == path)
        };
        Ok(Self {
            name,
            folder,
            text,
            is_there: true,
            is_of_user: user_dirs::config_file().is_some_and(is_same),
        })
    }

    /// The file that is named, which must exist; else `haft.toml` of this folder, else the user's own, if they exist.
    pub(crate) fn named_or_usual(named: Option<&Path>) -> Result<Self, Complaint> {
        if let Some(path) = named {
            return Self::read(path);
        }
        let here = Path::new(USUAL_FILE);
        let user = user_dirs::config_file().filter(|it| it.is_file());
        match user.filter(|_| matches!(here.try_exists(), Ok(false))) {
            Some(user) => Self::read(&user),
            None => Self::read_if_there(here),
        }
    }

    /// The same where it need not be there: then it says nothing.
    fn read_if_there(path: &Path) -> Result<Self, Complaint> {
        match path.try_exists() {
            Ok(false) => Ok(Self {
                name: path.display().to_string(),
                ..Self::default()
            }),
            _ => Self::read(path),
        }
    }
}

/// The layers of a configuration.
pub(super) struct Document<'d> {
    source: &'d Source,
    root: DeTable<'d>,
    variables: &'d Variables,
}

/// One step on the way to a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'s> {
    Key(&'s str),
    Entry(usize),
}

impl<'d> Document<'d> {
    pub(super) fn parse(source: &'d Source, variables: &'d Variables) -> Result<Self, Complaint> {
        let root = DeTable::parse(&source.text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let place = Place::in_file(&source.name, &source.text, &span);
            about_syntax(place, error.message())
        })?;
        Ok(Self {
            source,
            root: root.into_inner(),
            variables,
        })
    }

    /// Whether the file is the user's own.
    pub(super) fn is_of_user(&self) -> bool {
        self.source.is_of_user
    }

    /// What it says.
    pub(super) fn read(&self) -> Result<FileConfig, Complaint> {
        self.refuse_lists_in_variables()?;
        self.refuse_clear_keys()?;
        let layers = Layered {
            file: Some(&self.root),
            variables: Some(self.variables),
        };
        let said = FileConfig::deserialize(layers).map_err(|fault| self.complaint(&fault))?;
        bare_numbers::refuse(self)?;
        Ok(said)
    }

    fn refuse_lists_in_variables(&self) -> Result<(), Complaint> {
        match self.variables.get("model") {
            Some(variables) => {
                let name = variables.some_name().to_owned();
                let message = "models are a list, which variables cannot change";
                Err(Complaint::new(Place::Variable { name }, message)
                    .remedy("write a `[[model]]` entry, or use `haft serve --model ADAPTER:NAME`"))
            }
            None => Ok(()),
        }
    }

    /// Keys do not belong into the file, nor into messages about it.
    fn refuse_clear_keys(&self) -> Result<(), Complaint> {
        let models = self
            .root
            .get("model")
            .and_then(|it| it.get_ref().as_array());
        let models = models.map_or(0, |models| models.len());
        let tables = (0..models).map(|at| vec![Step::Key("model"), Step::Entry(at)]);
        for mut path in tables.chain([vec![Step::Key("server")]]) {
            path.push(Step::Key("api_key"));
            let Some(place) = self.find_key(&path) else {
                continue;
            };
            let message = "a key does not belong into the configuration";
            return Err(Complaint::new(place, message).remedy(
                "put it into an environment variable and name that: `api_key_env = \"MY_KEY\"`, or \
                 into a file: `api_key_file = \"path\"`",
            ));
        }
        Ok(())
    }

    /// Where relative paths of this value begin: at the file's folder, or here if a variable
    /// gives it.
    pub(super) fn folder_of(&self, path: &[Step<'_>]) -> &Path {
        match self.variable(path) {
            Some(_) => Path::new(""),
            None => &self.source.folder,
        }
    }

    /// The digits of the value at this path, if it is a whole number.
    pub(super) fn number_at(&self, path: &[Step<'_>]) -> Option<String> {
        match self.variable(path) {
            Some(Variables::Value { text, .. }) => {
                let text = text.trim();
                text.parse::<u64>().is_ok().then(|| text.to_owned())
            }
            Some(_) => None,
            None => match self.walk(path)?.1.get_ref() {
                DeValue::Integer(number) => Some(number.to_string()),
                _ => None,
            },
        }
    }

    /// How many entries the list at this path has.
    pub(super) fn entries_at(&self, path: &[Step<'_>]) -> usize {
        let list = self.walk(path).and_then(|it| it.1.get_ref().as_array());
        list.map_or(0, |list| list.len())
    }

    /// A complaint about the value at this path, or about the nearest thing around it.
    pub(super) fn complain(&self, path: &[Step<'_>], message: impl Into<String>) -> Complaint {
        Complaint::new(self.place_near(path), message)
    }

    /// Where the value at this path stands, or the nearest thing around it.
    pub(super) fn place_near(&self, path: &[Step<'_>]) -> Place {
        let around = (0..=path.len()).rev().map(|length| &path[..length]);
        let place = around
            .filter(|it| !it.is_empty())
            .find_map(|it| self.find(it));
        place.unwrap_or_else(|| Place::WholeFile {
            name: self.source.name.clone(),
        })
    }

    /// The whole file.
    pub(super) fn whole(&self) -> Spot {
        Spot::of_file(&self.source.name, &self.source.text)
    }

    /// Where the value at this path stands.
    fn find(&self, path: &[Step<'_>]) -> Option<Place> {
        let in_variables = self.variable(path).map(|variables| Place::Variable {
            name: variables.some_name().to_owned(),
        });
        in_variables.or_else(|| Some(self.place(&self.walk(path)?.1.span())))
    }

    /// Where the last key of this path stands.
    fn find_key(&self, path: &[Step<'_>]) -> Option<Place> {
        match self.variable(path) {
            Some(_) => self.find(path),
            None => Some(self.place(&self.walk(path)?.0)),
        }
    }

    /// The value at this path of the file, and where its key stands; an entry is its own key.
    fn walk(&self, path: &[Step<'_>]) -> Option<(Range<usize>, &toml::Spanned<DeValue<'d>>)> {
        let mut table = Some(&self.root);
        let mut found = None;
        for step in path {
            let (key, value) = match step {
                Step::Key(key) => {
                    let (key, value) = table?.get_key_value(*key)?;
                    (key.span(), value)
                }
                Step::Entry(at) => {
                    let (_, list): (_, &toml::Spanned<DeValue<'d>>) = found?;
                    let value = list.get_ref().get(*at)?;
                    (value.span(), value)
                }
            };
            table = value.get_ref().as_table();
            found = Some((key, value));
        }
        found
    }

    fn variable(&self, path: &[Step<'_>]) -> Option<&Variables> {
        path.iter()
            .try_fold(self.variables, |variables, step| match step {
                Step::Key(key) => variables.get(key),
                Step::Entry(_) => None,
            })
    }

    fn place(&self, span: &Range<usize>) -> Place {
        Place::in_file(&self.source.name, &self.source.text, span)
    }

    fn complaint(&self, fault: &Fault) -> Complaint {
        let place = match &fault.at {
            Some(SpotOfFault::File(span)) => self.place(span),
            Some(SpotOfFault::Variable(name)) => Place::Variable { name: name.clone() },
            None => Place::WholeFile {
                name: self.source.name.clone(),
            },
        };
        let complaint = about_words(place, &fault.message);
        match &fault.at {
            Some(SpotOfFault::File(span)) if fault.message == NO_WORD => {
                match self.words_at(span) {
                    Some(words) => complaint.remedy(format!("there is {}", listed(&words))),
                    None => complaint,
                }
            }
            _ => complaint,
        }
    }

    /// The words that may stand at this place of the file: serde lists them only where it finds another.
    fn words_at(&self, span: &Range<usize>) -> Option<Vec<String>> {
        const NOBODYS: &str = "?";
        let mut source = self.source.clone();
        source
            .text
            .replace_range(span.clone(), &format!("\"{NOBODYS}\""));
        let root = DeTable::parse(&source.text).ok()?.into_inner();
        let layers = Layered {
            file: Some(&root),
            variables: Some(self.variables),
        };
        let fault = FileConfig::deserialize(layers).err()?;
        let unknown = unknown(&fault.message)?;
        (unknown.name == NOBODYS).then_some(unknown.known)
    }
}

/// What serde says.
pub(super) fn about_words(place: Place, message: &str) -> Complaint {
    match unknown(message) {
        Some(unknown) => about_unknown(place, &unknown),
        None => about_value(place, message),
    }
}

/// What the parser of TOML says.
pub(super) fn about_syntax(place: Place, message: &str) -> Complaint {
    let told = message.trim_end_matches(", expected nothing");
    let complaint = match told {
        "duplicate key" => Complaint::new(place, "this key was given before"),
        _ => Complaint::new(place, format!("this is no TOML: {told}")),
    };
    let is_bare = ["invalid float", "invalid integer", "invalid number"];
    let is_bare = is_bare.iter().any(|it| message.contains(it)) || message.contains("quoted");
    if is_bare {
        complaint.remedy("text stands in quotes: `key = \"value\"`")
    } else {
        complaint
    }
}

/// What was meant by a name that nobody knows.
fn about_unknown(place: Place, unknown: &Unknown) -> Complaint {
    let Unknown { kind, name, known } = unknown;
    let what = match kind {
        Kind::Key => "key",
        Kind::Value => "value",
    };
    let complaint = Complaint::new(place, format!("unknown {what} `{name}`"));
    // One of many or many of one: nearer than whatever another table calls the same.
    let mut known_here = known.iter();
    let is_other_number = |it: &&String| {
        it.strip_suffix('s') == Some(name) || name.strip_suffix('s') == Some(it.as_str())
    };
    if let Some(meant) = known_here.find(is_other_number) {
        return complaint.remedy(format!("did you mean `{meant}`?"));
    }
    let mut elsewhere = tables().into_iter();
    let elsewhere = elsewhere.find(|(_, keys)| *kind == Kind::Key && keys.contains(name));
    if let Some((table, _)) = elsewhere {
        return complaint.remedy(format!("`{name}` belongs to {table}"));
    }
    if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
        return complaint.remedy(format!("did you mean `{near}`?"));
    }
    complaint.remedy(format!("there is {}", listed(known)))
}

/// What is wrong with a value that is there, or missing.
fn about_value(place: Place, message: &str) -> Complaint {
    let told = reworded(message);
    let complaint = Complaint::new(place, told.as_str());
    if told.starts_with("expected a whole number") && told.ends_with("found text") {
        return complaint.remedy("write it without quotes");
    }
    match message {
        "missing field `adapter`" => {
            complaint.remedy(format!("say which one: {}", listed(&adapters())))
        }
        "invalid type: map, expected a sequence" => complaint
            .remedy("every entry of a list of tables begins with its name in `[[` and `]]`"),
        _ => complaint,
    }
}

/// `a`, `b` and `c`.
fn listed(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::from("nothing"),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
