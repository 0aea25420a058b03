//! The folders of the user who runs haft: settings and data that belong to no project.

use std::path::PathBuf;

/// The name of haft's folder in each of them.
const NAME: &str = "haft";

/// The home folder.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|it| it.is_absolute())
}

/// The folder of all programs' settings: `$XDG_CONFIG_HOME` or `~/.config`, `~/Library/Application Support` on macOS,
/// `%APPDATA%` on Windows.
pub(crate) fn settings() -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Application Support"))
    } else if cfg!(windows) {
        variable("APPDATA")
    } else {
        variable("XDG_CONFIG_HOME").or_else(|| home().map(|home| home.join(".config")))
    }
}

/// The configuration of haft that is used where no other one is named and the current folder has none.
pub(crate) fn config_file() -> Option<PathBuf> {
    let settings = variable("XDG_CONFIG_HOME").or_else(settings)?;
    Some(settings.join(NAME).join("haft.toml"))
}

/// The data folder of that configuration: `$XDG_DATA_HOME/haft` or `~/.local/share/haft`, `~/Library/Application
/// Support/haft` on macOS, `%LOCALAPPDATA%\haft` on Windows.
pub(crate) fn data() -> Option<PathBuf> {
    let data = variable("XDG_DATA_HOME");
    let data = data.or_else(|| {
        if cfg!(target_os = "macos") {
            settings()
        } else if cfg!(windows) {
            variable("LOCALAPPDATA")
        } else {
            home().map(|home| home.join(".local/share"))
        }
    });
    data.map(|data| data.join(NAME))
}

/// The absolute path in a variable.
fn variable(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}
