//! Where the servers are.

use std::path::PathBuf;

/// The folder that `scripts/mcp-servers` filled.
pub(crate) fn folder() -> PathBuf {
    let folder = std::env::var_os("HAFT_MCP_SERVERS");
    PathBuf::from(folder.expect("run `scripts/mcp-servers`, which sets HAFT_MCP_SERVERS"))
}

/// A program from npm.
pub(crate) fn node(name: &str) -> String {
    program(&["node_modules", ".bin", name])
}

/// A program from `PyPI`.
pub(crate) fn python(name: &str) -> String {
    program(&["python", "bin", name])
}

/// A program from `PyPI` that needs the older SDK.
pub(crate) fn older_python(name: &str) -> String {
    program(&["older-python", "bin", name])
}

/// A server on `FastMCP`.
pub(crate) fn toy() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/toy.py").into()
}

fn program(parts: &[&str]) -> String {
    let path = parts.iter().fold(folder(), |path, part| path.join(part));
    assert!(path.exists(), "{} is missing", path.display());
    path.to_str().unwrap().to_owned()
}
