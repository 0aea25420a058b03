//! Tools that haft serves by itself.
