//! `haft test`.

use crate::kit::{expected, folder, printed, program, say};

#[test]
fn program_e_ends_as_the_reference_says() {
    let folder = folder(&[]);
    let (code, out, aside) = say(folder.path(), &["test", &program("e.conc")]);
    assert_eq!((code, aside.as_str()), (Some(1), ""));
    assert_eq!(out, expected("e.out"));
}

#[test]
fn tests_are_chosen_by_their_names_and_shown_as_much_as_is_wanted() {
    let folder = folder(&[("none.conc", "fn main() {}\n")]);
    let program = program("e.conc");
    let out = printed(folder.path(), &["test", &program, "--filter", "judge"]);
    let lines = "running 2 tests\n\n  PASS  judge :: provider down\n  PASS  judge :: wrong shape\n";
    assert_eq!(
        out,
        format!("{lines}\ntest result: ok. 2 passed, 0 failed\n")
    );
    let out = printed(
        folder.path(),
        &["test", &program, "--filter", "judge", "-q"],
    );
    assert_eq!(out, "test result: ok. 2 passed, 0 failed\n");
    for (arguments, words) in [
        (
            &["test", &program, "--filter", "zzz"][..],
            "no tests matching filter\n",
        ),
        (&["test", "none.conc"], "no tests found\n"),
    ] {
        let (code, out, aside) = say(folder.path(), arguments);
        assert_eq!((code, out.as_str(), aside.as_str()), (Some(1), "", words));
    }
}

#[test]
fn emits_of_tests_are_shown_only_when_debugging() {
    let folder = folder(&[]);
    let program = program("e.conc");
    let arguments = ["test", &program, "--filter", "passing", "--debug"];
    let out = printed(folder.path(), &arguments);
    assert!(
        out.contains("[emit:verdict] clear\n  PASS  passing_review\n"),
        "{out}"
    );
    let out = printed(folder.path(), &arguments[..4]);
    assert!(!out.contains("[emit:"), "{out}");
}

#[test]
fn tests_are_offline_unless_they_are_live() {
    let manifest = "[project]\nname = \"p\"\n[connections.desk]\nprovider = \"openai\"\n\
                    api_key_env = \"DESK_KEY\"\ndefault_model = \"small\"\n";
    let text =
        "model M { provider: desk }\n@test\nfn answers() { assert(M.execute(\"hi\").is_ok()); }\n";
    let folder = folder(&[("Concerto.toml", manifest), ("app.conc", text)]);
    let out = printed(folder.path(), &["test", "app.conc"]);
    assert!(out.contains("  PASS  answers\n"), "{out}");
    let (code, out, _) = say(folder.path(), &["test", "app.conc", "--live"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("  FAIL  answers\n"), "{out}");
}

#[test]
fn a_test_that_never_ends_meets_its_limit_and_the_others_run() {
    let text = "@test\nfn endless() { while true { } }\n@test\nfn fine() { assert(true); }\n";
    let folder = folder(&[("app.conc", text)]);
    let (code, out, _) = say(
        folder.path(),
        &["test", "app.conc", "--max-steps", "100000"],
    );
    assert_eq!(code, Some(1));
    assert!(out.contains("  PASS  fine\n"), "{out}");
    assert!(
        out.ends_with("  endless -- max steps exceeded (100000)\n"),
        "{out}"
    );
}
