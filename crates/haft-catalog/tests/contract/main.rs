//! The contract of the catalogue, one file per promise.

mod binding;
mod choosing;
mod common;
mod concurrency;
mod filtering;
mod groups;
mod hosting;
mod hydrating;
mod naming;
mod registering;
mod stable_bytes;
