//! What must last.
