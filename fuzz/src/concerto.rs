//! Compiles and formats arbitrary text as a Concerto program.
//!
//! It must not panic, hang or overflow the stack; what it writes the machine must load; and the usual
//! form of what it can read must be readable, and its own usual form.

#![no_main]

use haft_concerto::load::load;
use haft_concerto::{Connections, Options, Source, compile, format};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(&Source::new("fuzzed.conc", text), &options);
    let _ = compiled.render();
    if let Some(ir) = compiled.ir {
        if let Err(error) = load(ir) {
            panic!("what was written is refused: {error}");
        }
    }
    if let Ok(once) = format(text) {
        let twice = format(&once).expect("a formatted program can be read");
        assert_eq!(twice, once);
    }
});
