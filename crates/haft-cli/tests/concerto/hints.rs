//! What people meet who make a slip: words that say what to do.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use crate::kit::{folder, printed, say};
use crate::support::haft;

const TOOL: &str = "tool T { @describe(\"Reads\") pub fn read(@param(\"p\") path: String) -> \
                    Result<String, String> { std::fs::read_file(path) } }\n";

const UNCONNECTED: &str = "model M { provider: nowhere, base: \"x\" }\n";

#[test]
fn without_a_file_the_project_of_this_folder_is_meant() {
    let manifest = "[project]\nname = \"p\"\nentry = \"app.conc\"\n";
    let here = folder(&[
        ("Concerto.toml", manifest),
        (
            "app.conc",
            "println(1);\n@test fn holds() { assert(true); }\n",
        ),
    ]);
    assert_eq!(printed(here.path(), &["run"]), "1\n");
    assert_eq!(printed(here.path(), &["check"]), "");
    assert!(printed(here.path(), &["test"]).contains("1 passed"));
    let empty = folder(&[]);
    let (code, _, aside) = say(empty.path(), &["run"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("has no `Concerto.toml`"), "{aside}");
}

#[test]
fn connections_that_are_not_there_yet_can_be_taken_for_granted() {
    let here = folder(&[("app.conc", UNCONNECTED)]);
    let (code, _, aside) = say(here.path(), &["check", "app.conc"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("E022"), "{aside}");
    assert_eq!(printed(here.path(), &["check", "--mock", "app.conc"]), "");
    printed(here.path(), &["compile", "--mock", "-q", "app.conc"]);
    assert!(here.path().join("app.conc-ir").is_file());
}

#[test]
fn a_value_of_a_permission_behind_a_space_is_told_how_to_be_written() {
    let here = folder(&[("app.conc", "println(1);\n")]);
    let line = ["run", "--allow-net", "api.example.com", "app.conc"];
    let (code, _, aside) = say(here.path(), &line);
    assert_eq!(code, Some(2));
    assert!(aside.contains("`--allow-net=api.example.com`"), "{aside}");
}

#[test]
fn what_is_denied_says_what_is_allowed_and_where_to_allow_more() {
    let config = "[concerto]\nfiles = [\"tools.conc\"]\nallow_fs = [\"data\"]\n";
    let here = folder(&[
        ("haft.toml", config),
        ("tools.conc", TOOL),
        ("data/a.txt", "A"),
        ("b.txt", "B"),
    ]);
    let call = ["tools", "call", "T__read"];
    let (code, out, _) = say(here.path(), &[&call[..], &["path=data/a.txt"]].concat());
    assert_eq!((code, out.as_str()), (Some(0), "A\n"));
    let (code, _, aside) = say(here.path(), &[&call[..], &["path=b.txt"]].concat());
    assert_eq!(code, Some(1));
    assert!(aside.contains("b.txt is not in "), "{aside}");
    let remedy = "`allow_fs = [\"DIR\"]` in `[concerto]`";
    assert!(aside.contains(remedy), "{aside}");
    fs::remove_file(here.path().join("haft.toml")).unwrap();
    let flags = ["--concerto", "tools.conc", "--allow-fs=data"];
    let (_, _, aside) = say(here.path(), &[&call[..], &flags, &["path=b.txt"]].concat());
    assert!(aside.contains("b.txt is not in data: "), "{aside}");
    assert!(aside.contains("--allow-fs=DIR"), "{aside}");
}

#[test]
fn a_configuration_is_right_only_if_its_programs_are() {
    let config = "[concerto]\nfiles = [\"tools.conc\"]\n";
    let here = folder(&[("haft.toml", config), ("tools.conc", TOOL)]);
    let out = printed(here.path(), &["config", "check"]);
    assert!(out.contains("tools.conc, 1 tool"), "{out}");
    let out = printed(here.path(), &["config", "check", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["programs"][0]["tools"], 1, "{shown}");
    fs::write(here.path().join("tools.conc"), "tool T { pub fn f() {} }\n").unwrap();
    let (code, _, aside) = say(here.path(), &["config", "check"]);
    assert_eq!(code, Some(1));
    assert!(
        aside.contains("E024") && aside.contains("tools.conc` has errors"),
        "{aside}"
    );
}

#[test]
fn a_key_that_nobody_knows_is_told_beside_what_is_missing_for_it() {
    let wrong = "[project]\nname = \"p\"\nentyr = \"app.conc\"\n";
    let here = folder(&[("app.conc", "println(1);\n"), ("Concerto.toml", wrong)]);
    let (code, _, aside) = say(here.path(), &["run"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("did you mean `entry`?"), "{aside}");
    assert!(aside.contains("`src/main.conc`"), "{aside}");
    let desk = format!("{wrong}[connections.desk]\nprovder = \"openai\"\n");
    fs::write(here.path().join("Concerto.toml"), desk).unwrap();
    let (code, _, aside) = say(here.path(), &["run", "app.conc"]);
    assert_eq!(code, Some(2));
    assert!(
        aside.contains("Concerto.toml:4:14: `connections.desk.provider` is missing"),
        "{aside}"
    );
    assert!(aside.contains("did you mean `provider`?"), "{aside}");
}

#[test]
fn a_program_of_the_configuration_that_is_not_there_is_told_with_its_key() {
    let here = folder(&[("haft.toml", "[concerto]\nfiles = [\"nope.conc\"]\n")]);
    let (code, _, aside) = say(here.path(), &["config", "check"]);
    assert_eq!(code, Some(2));
    assert!(
        aside.contains("`files` of `[concerto]`: there is no file `nope.conc`"),
        "{aside}"
    );
}

/// The table that the guide shows.
#[test]
fn the_guides_configuration_is_right() {
    let guide = include_str!("../../../../docs/concerto.md");
    let begin = guide.find("[concerto]\nfiles").unwrap();
    let table = guide[begin..].split("```").next().unwrap();
    let here = folder(&[("haft.toml", table), ("tools.conc", TOOL), ("data/a", "")]);
    assert!(printed(here.path(), &["config", "check"]).contains("tools.conc, 1 tool"));
}

#[test]
fn a_program_that_is_named_twice_is_there_once_and_two_tools_of_one_name_are_told() {
    let config = "[concerto]\nfiles = [\"tools.conc\"]\n";
    let here = folder(&[
        ("haft.toml", config),
        ("tools.conc", TOOL),
        ("other.conc", TOOL),
    ]);
    let list = ["tools", "list", "--concerto"];
    let (_, out, _) = say(here.path(), &[&list[..], &["./tools.conc"]].concat());
    assert_eq!(out.matches("haft:T__read").count(), 1, "{out}");
    let (code, _, aside) = say(here.path(), &[&list[..], &["other.conc"]].concat());
    assert_eq!(code, Some(1));
    assert!(aside.contains("two tools are named `T__read`"), "{aside}");
    assert!(
        aside.contains("`other.conc`") && !aside.contains("replace"),
        "{aside}"
    );
}

#[test]
fn tools_that_need_no_model_are_offered_whether_or_not_it_is_connected() {
    let here = folder(&[
        ("tools.conc", &format!("{UNCONNECTED}{TOOL}")),
        ("a.txt", "A"),
    ]);
    let line = [
        "tools",
        "call",
        "--concerto",
        "tools.conc",
        "--allow-fs",
        "T__read",
        "path=a.txt",
    ];
    let (code, out, aside) = say(here.path(), &line);
    assert_eq!((code, out.as_str()), (Some(0), "A\n"), "{aside}");
    assert!(aside.contains("its calls will fail"), "{aside}");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let here = folder(&[("a.conc", "println(1);\n")]);
    let pipe = here.path().join("pipe.conc");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for line in [
        ["run", "pipe.conc"],
        ["check", "pipe.conc"],
        ["fmt", "pipe.conc"],
    ] {
        let mut child = haft(here.path(), &line).spawn().unwrap();
        let code = (0..600).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            child.try_wait().unwrap()
        });
        let _ = child.kill();
        assert_eq!(code.and_then(|it| it.code()), Some(2), "{line:?}");
    }
}

#[test]
fn formatting_says_what_it_wrote_keeps_other_names_and_leaves_the_read_only_alone() {
    let ugly = "let  a=1 ;\nprintln( a );\n";
    let here = folder(&[("a.conc", ugly), ("locked.conc", ugly)]);
    let path = |name: &str| here.path().join(name);
    fs::hard_link(path("a.conc"), path("b.txt")).unwrap();
    let (code, out, aside) = say(here.path(), &["fmt", "a.conc"]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert_eq!(aside, "formatted a.conc\n");
    assert_eq!(
        fs::read(path("a.conc")).unwrap(),
        fs::read(path("b.txt")).unwrap()
    );
    assert_eq!(path("a.conc").metadata().unwrap().nlink(), 2);
    fs::set_permissions(path("locked.conc"), fs::Permissions::from_mode(0o444)).unwrap();
    let (code, _, aside) = say(here.path(), &["fmt", "locked.conc"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("`locked.conc`: it is read-only"), "{aside}");
    assert_eq!(fs::read_to_string(path("locked.conc")).unwrap(), ugly);
}

#[test]
fn places_that_are_not_there_are_named_as_they_were_written() {
    let here = folder(&[("a.conc", "println(1);\n"), ("taken", "")]);
    let (code, _, aside) = say(
        here.path(),
        &["compile", "a.conc", "-o", "nowhere/a.conc-ir"],
    );
    assert_eq!(code, Some(2));
    assert!(aside.contains("there is no folder `nowhere`"), "{aside}");
    let (code, _, aside) = say(here.path(), &["init", "--concerto", "taken"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("`taken` is a file"), "{aside}");
    let out = printed(here.path(), &["init", "--concerto", "my shop"]);
    assert!(out.contains("haft run --mock 'my shop'"), "{out}");
}
