//! Files of a program, and places in them.

/// Where the text of a program's files comes from.
pub trait Sources {
    /// The text of this file, or `None` if there is none.
    fn read(&self, path: &str) -> Option<String>;
}
