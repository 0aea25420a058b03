//! Four real tools, as a user of haft would write them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use haft::{ToolContext, ToolError, tool};

/// The host's state. It reaches the tools through their context; no model can name it.
pub(crate) struct Notes(Mutex<BTreeMap<String, String>>);

impl Default for Notes {
    fn default() -> Self {
        let notes = [
            ("groceries", "oat milk, rye bread, cloudberries"),
            ("trip", "Oslo in March: pack wool"),
        ];
        Self(Mutex::new(
            notes
                .map(|(title, text)| (title.to_owned(), text.to_owned()))
                .into(),
        ))
    }
}

impl Notes {
    fn with<T>(&self, use_them: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        use_them(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Celsius,
    Fahrenheit,
}

/// Convert a temperature.
#[tool(read_only, tags = ["weather"])]
pub(crate) fn convert_temperature(
    /// The temperature, in the other unit
    degrees: f64,
    /// The unit to convert to
    to: Unit,
) -> String {
    match to {
        Unit::Celsius => format!("{degrees} °F are {:.1} °C", (degrees - 32.0) / 1.8),
        Unit::Fahrenheit => format!("{degrees} °C are {:.1} °F", degrees * 1.8 + 32.0),
    }
}

/// Find notes that contain a word.
#[tool(read_only, tags = ["notes"])]
pub(crate) fn find_notes(
    /// The word to look for
    word: String,
    /// How many notes to return at most
    #[tool(default = 5_u8)]
    limit: u8,
    ctx: &ToolContext,
) -> Result<Vec<String>, ToolError> {
    Ok(ctx.state::<Notes>()?.with(|notes| {
        notes
            .iter()
            .filter(|(title, text)| title.contains(&word) || text.contains(&word))
            .map(|(title, text)| format!("{title}: {text}"))
            .take(limit.into())
            .collect()
    }))
}

/// Write a note, replacing one of the same title.
#[tool(tags = ["notes"])]
pub(crate) fn write_note(
    /// Title of the note
    title: String,
    /// What to write
    text: String,
    ctx: &ToolContext,
) -> Result<String, ToolError> {
    let replaced = ctx
        .state::<Notes>()?
        .with(|notes| notes.insert(title.clone(), text));
    Ok(match replaced {
        Some(_) => format!("replaced `{title}`"),
        None => format!("wrote `{title}`"),
    })
}

/// Delete a note for good.
#[tool(destructive, tags = ["notes"])]
pub(crate) fn delete_note(
    /// Title of the note
    title: String,
    ctx: &ToolContext,
) -> Result<(), ToolError> {
    let removed = ctx.state::<Notes>()?.with(|notes| notes.remove(&title));
    removed
        .map(drop)
        .ok_or_else(|| ToolError::new(format!("there is no note `{title}`")))
}
