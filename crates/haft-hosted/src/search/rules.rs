//! Which names are passed over.

use std::sync::LazyLock;

use glob::{MatchOptions, Pattern};

use super::config::FileSearchConfig;
use super::error::FileSearchError;
use super::path_glob::PathGlob;

/// Directories of version control and of what programs fetch or make, which nobody wrote.
const MADE: [&str; 6] = [
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "target",
    "__pycache__",
];

/// Names that are likely to hold keys and passwords. Never searched, whatever is configured.
const SECRETS: [&str; 38] = [
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.p8",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.kdb",
    "*.ppk",
    "*.gpg",
    "*.pgp",
    "*.age",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*_rsa",
    "*_ed25519",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".htpasswd",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "credentials",
    "credentials.*",
    "secrets",
    "secrets.*",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    ".ssh",
];

static SECRET_PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    // Each is a pattern, as a test shows.
    let patterns = SECRETS.iter().filter_map(|name| Pattern::new(name).ok());
    patterns.collect()
});

/// What is passed over in the folders.
#[derive(Debug)]
pub(super) struct Rules {
    hidden: bool,
    ignored: Vec<PathGlob>,
}

impl Rules {
    pub(super) fn of(config: &FileSearchConfig) -> Result<Self, FileSearchError> {
        let ignored = config.ignore.iter().map(|pattern| {
            PathGlob::new(pattern).map_err(|error| FileSearchError::Pattern {
                pattern: pattern.clone(),
                reason: error.to_string(),
            })
        });
        Ok(Self {
            hidden: config.hidden,
            ignored: ignored.collect::<Result<_, _>>()?,
        })
    }

    /// Whether a file or directory is passed over, by its own name. What is below a directory that
    /// is passed over is never asked about.
    pub(super) fn skip(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        (name.starts_with('.') && !self.hidden)
            || MADE.contains(&name)
            || is_secret(name)
            || self.ignored.iter().any(|pattern| pattern.matches(path))
    }

    /// Whether it, or a directory above it, is passed over.
    pub(super) fn skip_within(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at);
        ends.chain([path.len()]).any(|end| self.skip(&path[..end]))
    }
}

fn is_secret(name: &str) -> bool {
    let options = MatchOptions {
        case_sensitive: false,
        ..MatchOptions::default()
    };
    let mut patterns = SECRET_PATTERNS.iter();
    patterns.any(|pattern| pattern.matches_with(name, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(ignore: &[&str], hidden: bool) -> Rules {
        Rules::of(&FileSearchConfig {
            ignore: ignore.iter().map(|&pattern| pattern.to_owned()).collect(),
            hidden,
            ..FileSearchConfig::default()
        })
        .unwrap()
    }

    #[test]
    fn every_name_of_a_secret_is_a_pattern() {
        assert_eq!(SECRET_PATTERNS.len(), SECRETS.len());
    }

    #[test]
    fn hidden_made_and_secret_names_are_passed_over() {
        let rules = rules(&[], false);
        for path in [
            ".hidden",
            "a/.hidden",
            ".git",
            "node_modules",
            "a/target",
            ".env",
            "prod.env",
            "x/server.PEM",
            "id_rsa",
            "id_rsa.pub",
            "Credentials.json",
            "secrets.yaml",
        ] {
            assert!(rules.skip(path), "{path}");
        }
        for path in [
            "readme.md",
            "environment.md",
            "a/keys.md",
            "targets",
            "secretary.txt",
        ] {
            assert!(!rules.skip(path), "{path}");
        }
    }

    #[test]
    fn hidden_files_can_be_asked_for_and_secrets_cannot() {
        let rules = rules(&[], true);
        assert!(!rules.skip(".github"));
        assert!(rules.skip(".env") && rules.skip(".ssh") && rules.skip(".git"));
    }

    #[test]
    fn what_the_operator_ignores_is_passed_over_with_all_below() {
        let rules = rules(&["*.log", "drafts/old"], false);
        assert!(rules.skip("a/b.log") && rules.skip("drafts/old"));
        assert!(rules.skip_within("drafts/old/deep/a.md"));
        assert!(!rules.skip_within("drafts/new/a.md"));
    }
}
