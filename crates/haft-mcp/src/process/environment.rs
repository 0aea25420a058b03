//! The variables that a child gets.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::secret::Secret;

/// What a program cannot do without: where things are, who it runs for, how to write.
const INHERITED: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    // Windows.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
];

/// Those of haft's own variables that every child gets, then the configured ones.
pub(super) fn environment(configured: &BTreeMap<String, Secret>) -> BTreeMap<OsString, OsString> {
    let inherited = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let configured = configured
        .iter()
        .map(|(name, value)| (name.into(), value.expose().into()));
    inherited.chain(configured).collect()
}
