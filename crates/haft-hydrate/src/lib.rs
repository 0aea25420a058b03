//! placeholder

pub mod text;
