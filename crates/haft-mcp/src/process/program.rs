//! Whether there is such a program, for when somebody else is to start it and could not say.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Why this command cannot be started there with these variables, if that is so.
pub(super) fn why_not(
    command: &str,
    cwd: Option<&Path>,
    variables: &BTreeMap<OsString, OsString>,
) -> Option<&'static str> {
    const NOWHERE: &str = "there is no such program";
    if command.contains('/') {
        let file = cwd.unwrap_or(Path::new("")).join(command);
        return match can_run(&file) {
            _ if !file.exists() => Some("there is no such file"),
            false => Some("it may not be run"),
            true => None,
        };
    }
    let path = variables.get(OsStr::new("PATH"))?;
    let is_found = std::env::split_paths(path).any(|folder| can_run(&folder.join(command)));
    (!is_found).then_some(NOWHERE)
}

#[cfg(unix)]
fn can_run(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let found = file.metadata();
    found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Programs have endings there, and who starts them knows which.
#[cfg(not(unix))]
fn can_run(_: &Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_the_child_would_look() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, "").unwrap();
        let path = |folder: &Path| BTreeMap::from([("PATH".into(), folder.as_os_str().to_owned())]);
        let usual = BTreeMap::from([("PATH".into(), "/bin:/usr/bin".into())]);
        assert_eq!(why_not("sh", None, &usual), None);
        assert!(why_not("sh", None, &path(folder.path())).is_some());
        assert!(why_not("plain", None, &path(folder.path())).is_some());
        let reason = why_not("./plain", Some(folder.path()), &usual);
        assert_eq!(reason, Some("it may not be run"));
        let reason = why_not("./gone", Some(folder.path()), &usual);
        assert_eq!(reason, Some("there is no such file"));
    }
}
