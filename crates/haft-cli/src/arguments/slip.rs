//! Command lines that nearly say what was meant.

use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags whose value stands behind a `=`, because it can be left out.
const WITH_EQUALS: [&str; 3] = ["--allow-fs", "--allow-net", "--allow-env"];

/// Says why a command line is none, and ends the process.
pub(crate) fn refuse(mut error: clap::Error) -> ! {
    let words = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(tip) = tip(&words.collect::<Vec<_>>())
    {
        let tip = StyledStr::from(tip);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error.exit()
}

/// What to write for `--allow-net HOST`.
fn tip(words: &[String]) -> Option<String> {
    let pair = words.windows(2).find(|pair| {
        WITH_EQUALS.contains(&pair[0].as_str())
            && !pair[1].starts_with('-')
            && Path::new(&pair[1])
                .extension()
                .is_none_or(|it| it != "conc")
    })?;
    Some(format!(
        "to allow that one only, write `{}={}`",
        pair[0], pair[1]
    ))
}

#[cfg(test)]
mod tests {
    use super::tip;

    #[test]
    fn a_value_behind_a_space_gets_its_equals_sign() {
        let tip = |line: &str| {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            tip(&words)
        };
        let told = tip("haft run --allow-net api.example.com app.conc").unwrap();
        assert_eq!(
            told,
            "to allow that one only, write `--allow-net=api.example.com`"
        );
        assert_eq!(tip("haft run --allow-net app.conc more"), None);
        assert_eq!(tip("haft run app.conc more --allow-fs"), None);
    }
}
