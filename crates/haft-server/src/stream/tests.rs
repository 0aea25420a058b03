//! Whole runs as streams: golden transcripts, and random ones that must be legal.

mod golden;
mod random;
mod stage;
