//! Tools for a working directory.
