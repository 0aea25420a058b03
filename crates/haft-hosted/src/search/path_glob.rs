//! Patterns of paths.
//!
//! `*` and `?` stay within a name, `**` is any number of directories. Each name is matched by
//! itself: a pattern over a whole path can be written so that trying it takes for ever.

use glob::{Pattern, PatternError};

/// A pattern of names or paths.
#[derive(Debug, Clone)]
pub(super) struct PathGlob {
    parts: Vec<Part>,
    /// Whether it has no `/` and so is a pattern of names, wherever they are.
    is_name: bool,
}

#[derive(Debug, Clone)]
enum Part {
    Directories,
    Name(Pattern),
}

impl PathGlob {
    pub(super) fn new(pattern: &str) -> Result<Self, PatternError> {
        let is_name = !pattern.trim_end_matches('/').contains('/');
        let names = pattern.split('/').filter(|name| !matches!(*name, "" | "."));
        let parts = names.map(|name| match name {
            "**" => Ok(Part::Directories),
            name => Pattern::new(name).map(Part::Name),
        });
        Ok(Self {
            parts: parts.collect::<Result<_, _>>()?,
            is_name,
        })
    }

    /// Whether it is the pattern of this path, or of its last name.
    pub(super) fn matches(&self, path: &str) -> bool {
        let path = match path.rsplit_once('/') {
            Some((_, name)) if self.is_name => name,
            _ => path,
        };
        // How many names are matched by the parts so far: every way at once, none twice.
        let names: Vec<&str> = path.split('/').collect();
        let mut reached = vec![false; names.len() + 1];
        reached[0] = true;
        for part in &self.parts {
            reached = part.step(&names, &reached);
        }
        reached[names.len()]
    }
}

impl Part {
    fn step(&self, names: &[&str], reached: &[bool]) -> Vec<bool> {
        let mut next = vec![false; reached.len()];
        match self {
            Self::Directories => {
                let mut is_reached = false;
                for (at, before) in reached.iter().enumerate() {
                    is_reached |= before;
                    next[at] = is_reached;
                }
            }
            Self::Name(pattern) => {
                for (at, name) in names.iter().enumerate() {
                    next[at + 1] = reached[at] && pattern.matches(name);
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::PathGlob;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let pattern = PathGlob::new(pattern).unwrap();
        for path in matching {
            assert!(pattern.matches(path), "{path}");
        }
        for path in others {
            assert!(!pattern.matches(path), "{path}");
        }
    }

    #[test]
    fn a_pattern_without_slash_is_one_of_names() {
        check("*.md", &["a.md", "x/y/a.md"], &["a.mdx", "a.md/b"]);
        check("build/", &["build", "x/build"], &["builds"]);
    }

    #[test]
    fn a_pattern_with_slash_is_one_of_paths() {
        check("docs/*.md", &["docs/a.md"], &["docs/x/a.md", "x/docs/a.md"]);
        check("/docs", &["docs"], &["x/docs"]);
        check(
            "docs/**/*.md",
            &["docs/a.md", "docs/x/y/a.md"],
            &["a.md", "docs"],
        );
        check("**/x/**", &["x/a", "a/b/x/c", "x"], &["a/b"]);
        check("docs/?.md", &["docs/ä.md"], &["docs/ab.md"]);
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern = PathGlob::new(&format!("{}b/c", "*a".repeat(100))).unwrap();
        assert!(!pattern.matches(&format!("{}/c", "a".repeat(250))));
        let pattern = PathGlob::new(&format!("{}c", "**/a/".repeat(40))).unwrap();
        assert!(!pattern.matches(&format!("{}b", "a/".repeat(100))));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!(PathGlob::new("a[").is_err());
        assert!(PathGlob::new("a**").is_err());
    }
}
