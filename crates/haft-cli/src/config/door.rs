//! What a client must know of a configuration: where its server listens, and where its key is.

use super::complaint::Complaint;
use super::document::{Document, Source, Step};
use super::keys::KeySource;
use super::values::Listen;
use super::variables::Variables;

/// The way in to the server of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) listen: Listen,
    /// Where the key is that the server asks for. It need not be there for a client.
    pub(crate) key: Option<KeySource>,
}

/// The door of a configuration. No key is looked up, and no model.
pub(crate) fn door(source: &Source, variables: &Variables) -> Result<Door, Complaint> {
    let document = Document::parse(source, variables)?;
    let server = document.read()?.server;
    let file = server.api_key_file.map(|file| {
        let path = [Step::Key("server"), Step::Key("api_key_file")];
        KeySource::File(document.folder_of(&path).join(file))
    });
    Ok(Door {
        listen: server.listen.unwrap_or_default(),
        key: server.api_key_env.map(KeySource::Variable).or(file),
    })
}
