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

/// Counts the haft processes above a child that started each other as MCP servers.
const DEPTH_VARIABLE: &str = "HAFT_MCP_DEPTH";

/// How deep haft processes may start each other: a gateway behind a gateway is of use, a third level never was meant.
const MAX_DEPTH: u32 = 2;

/// How many haft processes are above this one.
fn depth() -> u32 {
    let depth = std::env::var(DEPTH_VARIABLE).ok();
    depth.and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// Why this process must not start servers. A configuration that starts haft again, by whatever route, would double the
/// processes with every level.
pub(super) fn why_nested() -> Option<&'static str> {
    (depth() >= MAX_DEPTH).then_some(
        "this haft was started by a haft that was started by haft; remove the server that starts haft itself",
    )
}

/// Those of haft's own variables that every child gets, then the configured ones.
pub(super) fn environment(configured: &BTreeMap<String, Secret>) -> BTreeMap<OsString, OsString> {
    let inherited = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let configured = configured
        .iter()
        .map(|(name, value)| (name.into(), value.expose().into()));
    let depth = depth().saturating_add(1).to_string();
    // Last: a configured value must not reset it.
    let depth = std::iter::once((DEPTH_VARIABLE.into(), depth.into()));
    inherited.chain(configured).chain(depth).collect()
}
