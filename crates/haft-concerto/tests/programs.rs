//! The programs of the language's reference compile without a word.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use haft_concerto::{Connections, Options, Source, compile};
use serde_json::json;

fn options() -> Options {
    Options {
        connections: Connections::Known(vec!["desk".to_owned()]),
        ..Options::default()
    }
}

fn ir(name: &str, text: &str) -> haft_concerto::ir::Module {
    let compiled = compile(&Source::new(name, text), &options());
    assert_eq!(compiled.render(), "", "{name}");
    compiled.ir.expect("a program without errors is written")
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let name = concat!(stringify!($name), ".conc");
            ir(name, include_str!(concat!("programs/", stringify!($name), ".conc")));
        }
    )*};
}

programs! { a b c d e f h i j }

#[test]
fn g() {
    let ir = ir("g.conc", include_str!("programs/g.conc"));
    assert_eq!(ir.tools[0].tool_schemas.len(), 1);
    let schema = serde_json::to_value(&ir.tools[0].tool_schemas[0]).unwrap();
    let expected = json!({
        "method_name": "Units::length",
        "description": "Convert a length",
        "parameters": {
            "type": "object",
            "properties": {
                "value": {"type": "number", "description": "Amount to convert"},
                "unit": {"type": "string", "enum": ["m", "ft"], "description": "Target unit"},
                "digits": {"type": "integer", "description": "Decimals to keep"},
                "labels": {"type": "array", "items": {"type": "string"}, "description": "Extra labels"}
            },
            "required": ["value", "unit"]
        }
    });
    assert_eq!(schema.to_string(), expected.to_string());
}
