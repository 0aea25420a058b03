//! Tools for a working directory: list, read, write and edit files, and a shell where it is allowed.
//!
//! What comes in: a [`Workspace`], that is a directory and what may be done there. What goes out:
//! tools for a catalogue. No path that a model writes leads out of the directory, by `..`, by an
//! absolute path or by a symbolic link; a shell is offered only where the host switched it on, and
//! a person is asked before each of its commands unless the run says otherwise.
//!
//! The workspace is also a [`Resource`](haft_core::Resource): register it with the session's state,
//! and what `write_file` and `edit_file` did is undone with a call that fails. And it is the
//! [`FileSystem`](haft_core::FileSystem) of policies that ask which files exist.
//!
//! ```
//! use haft_builtin::{RegisterBuiltin, Workspace};
//! use haft_catalog::Catalog;
//!
//! let catalog = Catalog::new();
//! let names = catalog.register_all_builtin(Workspace::new("project")).into_result()?;
//! let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
//! assert_eq!(names, ["list_files", "read_file", "write_file", "edit_file"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(unix))]
compile_error!("haft-builtin needs a Unix system: it opens files relative to directories");

mod history;
mod place;
mod refusal;
mod register;
mod tools;
mod workspace;

pub use register::RegisterBuiltin;
pub use workspace::Workspace;
