//! The README's code works as it stands.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Compiles and runs the Rust of the README as a program of its own, as a new user would.
#[test]
fn the_code_in_the_readme_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let code = readme
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a block of Rust");

    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(home.join("src")).unwrap();
    fs::write(home.join("src/main.rs"), code).unwrap();
    let manifest = format!(
        "[package]\nname = \"readme\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\nhaft = {{ path = {:?} }}\n\
         tokio = {{ version = \"1\", features = [\"rt-multi-thread\", \"macros\"] }}\n",
        env!("CARGO_MANIFEST_DIR")
    );
    fs::write(home.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), home.join("Cargo.lock")).unwrap();

    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet"])
        .current_dir(&home)
        .env("CARGO_TARGET_DIR", home.join("target"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
