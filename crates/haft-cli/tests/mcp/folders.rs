//! Where data goes: to a project's folder, to the user's, or nowhere.

use serde_json::json;

use crate::kit::{FAKE_TOOLS, LineClient, fake, folder, mcp_json};
use crate::support::haft;

#[test]
fn data_of_the_users_configuration_goes_to_the_users_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join(".config/haft/haft.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, fake("zeta", "modern", "")).unwrap();
    mcp_json(folder.path(), &["test"]);
    assert!(
        !folder.path().join("haft-data").exists(),
        "the current folder stays clean"
    );
    let data = folder.path().join(".data/haft");
    assert!(std::fs::read_dir(&data).unwrap().count() > 0);
    // The same by its name, as clients start it.
    let config = config.display().to_string();
    mcp_json(folder.path(), &["list", "--config", &config]);
    assert_eq!(
        mcp_json(folder.path(), &["list", "--config", &config])[0]["tools"],
        FAKE_TOOLS
    );
    assert!(!folder.path().join(".config/haft/haft-data").exists());
}

#[test]
fn data_of_a_project_stays_there_and_out_of_its_repository() {
    let folder = folder(&fake("zeta", "modern", ""));
    mcp_json(folder.path(), &["test"]);
    let ignored = std::fs::read_to_string(folder.path().join("haft-data/.gitignore"));
    assert_eq!(ignored.unwrap(), "*\n");
    assert!(!folder.path().join(".data").exists());
}

#[test]
fn the_gateway_serves_without_a_folder_to_write_to() {
    let folder = folder(&fake("zeta", "modern", ""));
    // A file in the way, which stops a privileged user, too.
    std::fs::write(folder.path().join("haft-data"), "").unwrap();
    let log = folder.path().join("log");
    let mut command = haft(folder.path(), &["mcp", "serve"]);
    command.stderr(std::fs::File::create(&log).unwrap());
    let mut client = LineClient::greeting(command, json!({}));
    assert_eq!(client.text("zeta__echo", json!({"a": 1})), "{\"a\":1}");
    client.leave();
    let log = std::fs::read_to_string(log).unwrap();
    assert!(
        log.contains("cannot write to the data folder") && log.contains("pin = "),
        "{log}"
    );
}
