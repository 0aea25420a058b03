//! `haft check` and `haft compile`.

use serde_json::{Value, json};

use crate::kit::{folder, printed, program, say};

const GOOD: &str = "fn main() { println(\"hi\"); }\n";

#[test]
fn every_error_is_told_with_its_place_a_mark_and_a_hint() {
    let text = "fn main() {\n    let total = 1;\n    println(totl);\n    total = 2;\n}\n";
    let folder = folder(&[("app.conc", text)]);
    let (code, out, aside) = say(folder.path(), &["check", "app.conc"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        aside.contains(
            "app.conc:3:13: error[E010]: `totl` is not defined\n 3 |     println(totl);\n   \
             |             ^^^^\n  = help: did you mean `total`?\n"
        ),
        "{aside}"
    );
    assert!(aside.contains("app.conc:4:5: error[E012]: "), "{aside}");
    assert!(!aside.contains('\u{1b}'), "no colours in a pipe: {aside:?}");
    let (_, _, coloured) = say(folder.path(), &["check", "app.conc", "--color", "always"]);
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
}

#[test]
fn a_good_program_is_checked_without_a_word_and_nothing_is_written() {
    let folder = folder(&[("app.conc", GOOD)]);
    assert_eq!(printed(folder.path(), &["check", "app.conc"]), "");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_warning_is_no_error() {
    let folder = folder(&[("app.conc", "fn main() { let unused = 1; }\n")]);
    let (code, out, aside) = say(folder.path(), &["check", "app.conc"]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(aside.contains("warning[W001]"), "{aside}");
    let (code, _, aside) = say(folder.path(), &["run", "app.conc", "-q"]);
    assert_eq!((code, aside.as_str()), (Some(0), ""));
}

#[test]
fn files_that_are_none_end_with_two() {
    let folder = folder(&[("app.txt", GOOD), ("empty/x", "")]);
    for (arguments, words) in [
        (
            &["check", "nowhere.conc"][..],
            "there is no file `nowhere.conc`",
        ),
        (&["check", "app.txt"], "`app.txt` is no Concerto program"),
        (
            &["check", "empty"],
            "the folder `empty` has no `Concerto.toml`",
        ),
        (&["run", "nowhere.conc"], "there is no file"),
        (&["test", "empty"], "haft init --concerto"),
    ] {
        let (code, out, aside) = say(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{aside}");
        assert!(aside.contains(words), "{aside}");
    }
}

#[test]
fn a_compiled_program_lies_beside_its_source_and_runs_the_same() {
    let folder = folder(&[("app.conc", GOOD)]);
    let (code, out, aside) = say(folder.path(), &["compile", "app.conc"]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert_eq!(aside, "wrote app.conc-ir\n");
    assert_eq!(printed(folder.path(), &["run", "app.conc-ir"]), "hi\n");
    assert_eq!(printed(folder.path(), &["check", "app.conc-ir"]), "");
    let other = ["compile", "app.conc", "-q", "-o", "other.conc-ir"];
    assert_eq!(printed(folder.path(), &other), "");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("app.conc-ir"), read("other.conc-ir"));
    let shown = printed(folder.path(), &["compile", "app.conc", "--emit-ir"]);
    assert_eq!(shown.as_bytes(), read("app.conc-ir"));
    let (code, _, aside) = say(folder.path(), &["compile", "app.conc-ir"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("is compiled already"), "{aside}");
    let (code, ..) = say(
        folder.path(),
        &["compile", "app.conc", "--emit-ir", "-o", "x"],
    );
    assert_eq!(code, Some(2));
}

#[test]
fn a_program_with_errors_is_not_compiled() {
    let folder = folder(&[("app.conc", "println(nobody);\n"), ("app.conc-ir", "old")]);
    let (code, out, aside) = say(folder.path(), &["compile", "app.conc"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(aside.contains("error[E010]"), "{aside}");
    let old = std::fs::read_to_string(folder.path().join("app.conc-ir")).unwrap();
    assert_eq!(old, "old");
    let (code, out, _) = say(folder.path(), &["compile", "app.conc", "--emit-ir"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
}

#[test]
fn program_g_has_the_schema_of_its_tool() {
    let folder = folder(&[]);
    let ir = printed(folder.path(), &["compile", &program("g.conc"), "--emit-ir"]);
    let ir: Value = serde_json::from_str(&ir).unwrap();
    let expected = json!({
        "method_name": "Units::length", "description": "Convert a length", "parameters": {
            "type": "object", "properties": {
                "value": {"type": "number", "description": "Amount to convert"},
                "unit": {"type": "string", "enum": ["m", "ft"], "description": "Target unit"},
                "digits": {"type": "integer", "description": "Decimals to keep"},
                "labels": {"type": "array", "items": {"type": "string"}, "description": "Extra labels"},
            },
            "required": ["value", "unit"],
        },
    });
    assert_eq!(ir["tools"][0]["tool_schemas"], json!([expected]));
}

#[test]
fn ir_that_cannot_be_loaded_is_told_and_never_crashes() {
    let bad = json!({"version": "0.1.0", "module": "m", "source_file": "m.conc", "functions": [{
        "name": "main", "module": "m", "visibility": "private", "params": [], "return_type": "nil",
        "is_async": false, "locals": [], "instructions": [{"op": "ADD"}, {"op": "RETURN"}]}]});
    let folder = folder(&[
        ("bad.conc-ir", &bad.to_string()),
        ("none.conc-ir", "{"),
        ("later.conc-ir", "{\"version\": \"0.9.0\"}"),
    ]);
    for file in ["bad.conc-ir", "none.conc-ir", "later.conc-ir"] {
        for command in ["check", "run", "test"] {
            let (code, out, aside) = say(folder.path(), &[command, file]);
            assert_eq!(
                (code, out.as_str()),
                (Some(1), ""),
                "{command} {file}: {aside}"
            );
            assert!(aside.starts_with(&format!("haft: `{file}`: ")), "{aside}");
        }
    }
}

/// As the other implementation writes it.
#[test]
fn ir_of_others_runs() {
    let ir = json!({
        "version": "0.1.0", "module": "hello", "source_file": "hello.conc",
        "constants": [{"index": 0, "type": "string", "value": "greeting"},
            {"index": 1, "type": "string", "value": "hello"}, {"index": 2, "type": "nil", "value": null}],
        "functions": [{"name": "main", "module": "hello", "visibility": "private", "params": [],
            "return_type": "nil", "is_async": false, "locals": [], "instructions": [
                {"op": "LOAD_CONST", "arg": 0, "span": [1, 1]}, {"op": "LOAD_CONST", "arg": 1},
                {"op": "EMIT"}, {"op": "LOAD_CONST", "arg": 2}, {"op": "RETURN"}]}],
        "metadata": {"compiler_version": "0.1.0", "compiled_at": "", "optimization_level": 0,
            "debug_info": true, "entry_point": "main"}});
    let folder = folder(&[("hello.conc-ir", &ir.to_string())]);
    let out = printed(folder.path(), &["run", "hello.conc-ir"]);
    assert_eq!(out, "[emit:greeting] hello\n");
}

#[test]
fn modules_beside_the_file_are_read_and_told_if_they_are_wrong() {
    let folder = folder(&[
        (
            "src/main.conc",
            "mod units;\nmod deep;\nprintln(units::double(4), deep::one());\n",
        ),
        ("src/units.conc", "pub fn double(n: Int) -> Int { n * 2 }\n"),
        ("src/deep/mod.conc", "pub fn one() -> Int { 1 }\n"),
        ("bad.conc", "mod gone;\n"),
    ]);
    assert_eq!(printed(folder.path(), &["run", "src/main.conc"]), "8 1\n");
    let (code, _, aside) = say(folder.path(), &["check", "bad.conc"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("the module `gone` is not there"), "{aside}");
    std::fs::write(
        folder.path().join("src/units.conc"),
        "pub fn double(n) {}\n",
    )
    .unwrap();
    let (code, _, aside) = say(folder.path(), &["check", "src/main.conc"]);
    assert_eq!(code, Some(1));
    assert!(
        aside.contains("src/units.conc:1:15: error[E021]"),
        "{aside}"
    );
}

#[test]
fn manifests_are_found_above_and_say_what_is_wrong_with_them() {
    let model = "model M { provider: desk, base: \"b\" }\nfn main() {}\n";
    let manifest = "[project]\nname = \"p\"\nentry = \"a/b/app.conc\"\nodd = 1\n\
                    [connections.desk]\nprovider = \"mock\"\n";
    let folder = folder(&[("a/b/app.conc", model)]);
    let (code, _, aside) = say(folder.path(), &["check", "a/b/app.conc"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("error[E022]"), "{aside}");
    std::fs::write(folder.path().join("Concerto.toml"), manifest).unwrap();
    for place in ["a/b/app.conc", "."] {
        let (code, _, aside) = say(folder.path(), &["check", place]);
        assert_eq!(code, Some(0), "{aside}");
        assert!(aside.contains("unknown key `project.odd`"), "{aside}");
    }
    for (text, words) in [
        ("[project]\nname = 1\n", ":2:8: `project.name` is a string"),
        ("[connections.desk]\n", ":1:1: `[project]` is missing"),
        (
            "[project]\nname = \"p\"\n[connections.d]\nprovider = \"x\"\n",
            ":4:12: `connections.d.provider` is none of openai",
        ),
        ("project = [", ":1:12: this is no TOML"),
    ] {
        std::fs::write(folder.path().join("a/Concerto.toml"), text).unwrap();
        for command in ["check", "run", "test", "compile"] {
            let (code, out, aside) = say(folder.path(), &[command, "a/b/app.conc"]);
            assert_eq!((code, out.as_str()), (Some(2), ""), "{aside}");
            let place = format!("a/Concerto.toml{words}");
            assert!(aside.contains(&place), "{aside}");
        }
    }
}

#[test]
fn a_source_is_never_overwritten_with_ir() {
    let folder = folder(&[("app.conc", GOOD), ("other.conc", "fn main() {}\n")]);
    for out in ["app.conc", "other.conc"] {
        let (code, _, aside) = say(folder.path(), &["compile", "app.conc", "-o", out]);
        assert_eq!(code, Some(2), "{aside}");
        assert!(aside.contains("would be overwritten with IR"), "{aside}");
    }
    let kept = std::fs::read_to_string(folder.path().join("app.conc")).unwrap();
    assert_eq!(kept, GOOD);
}

#[test]
fn a_program_without_an_entry_is_told_what_it_is_good_for() {
    let tool = "tool T { @describe(\"Adds\") pub fn add(@param(\"a\") a: Int) -> Int { a } }\n";
    let test = "@test fn t() { assert(true); }\n";
    let folder = folder(&[("tool.conc", tool), ("test.conc", test), ("empty.conc", "")]);
    for (file, words) in [
        ("tool.conc", "`haft serve --concerto tool.conc`"),
        ("test.conc", "`haft test test.conc`"),
        ("empty.conc", "write `fn main()"),
    ] {
        let (code, _, aside) = say(folder.path(), &["run", file]);
        assert_eq!(code, Some(1), "{aside}");
        assert!(aside.contains(words), "{aside}");
    }
}
