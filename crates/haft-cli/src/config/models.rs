//! The `[[model]]` entries: whether they can be told apart, and whether each can be made.

use std::collections::HashMap;
use std::path::PathBuf;

use haft::models::http::Http;
use haft::models::{ConfigError, HeaderSource, Lookup, ModelConfig, from_config_with, pools};

use super::complaint::Complaint;
use super::document::{Document, Step};
use super::keys::unset_variable;

/// The entries with their paths made absolute, every one of them usable.
pub(super) fn checked(
    document: &Document<'_>,
    models: Vec<ModelConfig>,
    lookup: Lookup<'_>,
) -> Result<Vec<ModelConfig>, Complaint> {
    let models = described(document, models)?;
    for (at, model) in models.iter().enumerate() {
        from_config_with(model, lookup, &Http::default())
            .map_err(|error| complaint(document, at, model, &error))?;
    }
    // Each can be made; what is left is who stands in for whom.
    match pools(&models, lookup, &Http::default()) {
        Ok(_) => Ok(models),
        Err(error) => Err(about_failover(document, &models, &error)),
    }
}

/// The entries with their paths made absolute, whether they can be used or not.
pub(super) fn described(
    document: &Document<'_>,
    mut models: Vec<ModelConfig>,
) -> Result<Vec<ModelConfig>, Complaint> {
    check_names(document, &models)?;
    for (at, model) in models.iter_mut().enumerate() {
        let entry = [Step::Key("model"), Step::Entry(at)];
        let folder = document.folder_of(&entry);
        let from_folder = |path: &mut PathBuf| *path = folder.join(&*path);
        model.api_key_file.as_mut().map(from_folder);
        model.script.as_mut().map(from_folder);
    }
    Ok(models)
}

/// What is wrong with those who are to stand in.
fn about_failover(
    document: &Document<'_>,
    models: &[ModelConfig],
    error: &ConfigError,
) -> Complaint {
    let at = models.iter().position(|it| match error {
        ConfigError::Invalid { model, .. } => it.name == *model,
        _ => false,
    });
    let at = at.unwrap_or_default();
    let complaint = complaint(document, at, &models[at], error);
    let others = models.iter().filter(|it| it.name != models[at].name);
    let others: Vec<_> = others.map(|it| format!("`{}`", it.name)).collect();
    complaint.remedy(match others.as_slice() {
        [] => String::from("there is no other `[[model]]` entry: write one, or remove `failover`"),
        _ if error.to_string().contains("stand in for each other") => {
            String::from("remove one of these from its `failover`")
        }
        others => format!("name other `[[model]]` entries: {}", others.join(", ")),
    })
}

/// The model for requests that name none: as the file says, else the first.
pub(super) fn default_model(
    document: &Document<'_>,
    models: &[ModelConfig],
    said: Option<String>,
) -> Result<Option<String>, Complaint> {
    let Some(said) = said else {
        return Ok(models.first().map(|model| model.name.clone()));
    };
    let is_said = |model: &&ModelConfig| model.name == said || model.aliases.contains(&said);
    if let Some(model) = models.iter().find(is_said) {
        return Ok(Some(model.name.clone()));
    }
    let path = [Step::Key("server"), Step::Key("default_model")];
    let complaint = document.complain(&path, format!("there is no model `{said}`"));
    let names: Vec<_> = models.iter().map(|it| format!("`{}`", it.name)).collect();
    Err(complaint.remedy(match names.as_slice() {
        [] => String::from("write a `[[model]]` entry of this name, or remove `default_model`"),
        names => format!("name one of the `[[model]]` entries: {}", names.join(", ")),
    }))
}

/// No two entries answer to the same name.
fn check_names(document: &Document<'_>, models: &[ModelConfig]) -> Result<(), Complaint> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for (at, model) in models.iter().enumerate() {
        let entry = [Step::Key("model"), Step::Entry(at)];
        let name = entry.into_iter().chain([Step::Key("name")]);
        let names = std::iter::once((model.name.as_str(), name.collect::<Vec<_>>()));
        let aliases = model.aliases.iter().enumerate().map(|(number, alias)| {
            let path = entry.into_iter();
            let path = path.chain([Step::Key("aliases"), Step::Entry(number)]);
            (alias.as_str(), path.collect())
        });
        for (name, path) in names.chain(aliases) {
            if name.trim().is_empty() {
                return Err(document
                    .complain(&path, "the name is empty")
                    .remedy("give the name that requests will use"));
            }
            let Some(owner) = owners.insert(name, at) else {
                continue;
            };
            let message = if owner == at {
                format!("the entry is called `{name}` twice")
            } else {
                format!("another model is called `{name}` already")
            };
            let remedy = "every name and alias belongs to one `[[model]]` entry";
            return Err(document.complain(&path, message).remedy(remedy));
        }
    }
    Ok(())
}

/// What an adapter says of its entry, with the place.
fn complaint(
    document: &Document<'_>,
    at: usize,
    model: &ModelConfig,
    error: &ConfigError,
) -> Complaint {
    let entry = [Step::Key("model"), Step::Entry(at)];
    let key = |key| [entry[0], entry[1], Step::Key(key)];
    match error {
        ConfigError::MissingVariable { variable } => {
            if model.api_key_env.as_ref() == Some(variable) {
                return unset_variable(document, &key("api_key_env"), variable);
            }
            let named = |(_, source): &(&String, &HeaderSource)| matches!(source, HeaderSource::Variable { env } if env == variable);
            if let Some((header, _)) = model.headers.iter().find(named) {
                let path = [entry[0], entry[1], Step::Key("headers"), Step::Key(header)];
                return unset_variable(document, &path, variable);
            }
            let message = format!(
                "model `{}` needs a key, and the environment variable `{variable}` is not set",
                model.name
            );
            document
                .complain(&entry, message)
                .remedy("set it, or name another one with `api_key_env`")
        }
        ConfigError::Invalid {
            key: at_fault,
            reason,
            ..
        } => {
            let message = match (at_fault.as_str(), &model.api_key_file) {
                ("api_key_file", Some(_)) => api_key_file(reason),
                _ => format!("`{at_fault}`: {reason}"),
            };
            document.complain(&key(at_fault), message)
        }
        other => document.complain(&entry, other.to_string()),
    }
}

/// What is wrong with the file of a key, without its name: somebody may have written the key there.
fn api_key_file(reason: &str) -> String {
    match reason.rsplit_once("`: ") {
        Some((_, reason)) => format!("the file of the key cannot be read: {reason}"),
        None if reason.ends_with("is empty") => String::from("the file of the key is empty"),
        None => reason.to_owned(),
    }
}
