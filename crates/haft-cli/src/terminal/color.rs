//! When there are colours.

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::ValueEnum;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    // On a terminal, unless `NO_COLOR` is set; elsewhere only with `CLICOLOR_FORCE`.
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// Makes it hold for everything that is printed from now on.
    pub(crate) fn apply(self) {
        self.choice().write_global();
    }

    fn choice(self) -> ColorChoice {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
    }

    /// What these arguments say about colours. Help and complaints about arguments are printed while
    /// those are read, so this looks by itself; what is no choice is complained about later.
    pub(crate) fn of_arguments(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut arguments = arguments.into_iter().skip(1);
        let mut color = Self::Auto;
        while let Some(argument) = arguments.next() {
            let argument = argument.to_string_lossy();
            let said = match argument.as_ref() {
                "--" => break,
                "--color" => arguments.next().map(|it| it.to_string_lossy().into_owned()),
                other => other.strip_prefix("--color=").map(str::to_owned),
            };
            let said = said.and_then(|it| <Self as ValueEnum>::from_str(&it, false).ok());
            color = said.unwrap_or(color);
        }
        color
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_colours_counts() {
        let said = |words: &str| Color::of_arguments(words.split(' ').map(OsString::from));
        assert_eq!(said("haft"), Color::Auto);
        assert_eq!(said("haft --color never --help"), Color::Never);
        assert_eq!(said("haft serve --color=always"), Color::Always);
        assert_eq!(said("haft --color=always --color never"), Color::Never);
        assert_eq!(said("haft --color --help"), Color::Auto);
        assert_eq!(said("haft ask -- --color=never"), Color::Auto);
    }
}
