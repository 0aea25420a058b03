//! `haft fmt`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::kit::{folder, printed, say};
use crate::support::{haft, told};

const UGLY: &str = "let  a=1 ; // one\nprintln( a );\n";
const PRETTY: &str = "let a = 1; // one\nprintln(a);\n";

#[test]
fn files_become_what_they_should_be_in_place_and_keep_their_rights() {
    let folder = folder(&[("a.conc", UGLY), ("b.conc", PRETTY), ("a.txt", UGLY)]);
    let path = folder.path().join("a.conc");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let (code, _, aside) = say(folder.path(), &["fmt", "a.conc", "b.conc"]);
    assert_eq!((code, aside.as_str()), (Some(0), "formatted a.conc\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), PRETTY);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        3,
        "nothing else is there"
    );
    let (code, _, aside) = say(folder.path(), &["fmt", "a.txt"]);
    assert_eq!(code, Some(2), "{aside}");
    assert_eq!(
        fs::read_to_string(folder.path().join("a.txt")).unwrap(),
        UGLY
    );
}

#[test]
fn a_check_names_what_would_change_and_changes_nothing() {
    let folder = folder(&[
        ("a.conc", UGLY),
        ("src/b.conc", UGLY),
        ("src/c.conc", PRETTY),
        (".hidden/d.conc", UGLY),
        ("target/e.conc", UGLY),
    ]);
    let (code, out, aside) = say(folder.path(), &["fmt", "--check"]);
    assert_eq!((code, aside.as_str()), (Some(1), ""));
    assert_eq!(out, "a.conc\nsrc/b.conc\n");
    assert_eq!(
        fs::read_to_string(folder.path().join("a.conc")).unwrap(),
        UGLY
    );
    assert_eq!(say(folder.path(), &["fmt"]).0, Some(0));
    assert_eq!(printed(folder.path(), &["fmt", "--check"]), "");
    assert_eq!(
        fs::read_to_string(folder.path().join("target/e.conc")).unwrap(),
        UGLY
    );
}

#[test]
fn a_file_with_syntax_errors_is_left_alone_and_told() {
    let broken = "let  a = ;\n";
    let folder = folder(&[("a.conc", broken), ("b.conc", UGLY)]);
    let (code, out, aside) = say(folder.path(), &["fmt", "a.conc", "b.conc"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(aside.starts_with("a.conc:1:10: error[E002]"), "{aside}");
    assert_eq!(
        fs::read_to_string(folder.path().join("a.conc")).unwrap(),
        broken
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("b.conc")).unwrap(),
        PRETTY
    );
}

#[test]
fn standard_input_becomes_standard_output() {
    let folder = folder(&[]);
    let through = |arguments: &[&str], text: &str| told(haft(folder.path(), arguments), text);
    let (code, out, aside) = through(&["fmt", "-"], UGLY);
    assert_eq!((code, out.as_str(), aside.as_str()), (Some(0), PRETTY, ""));
    let (code, out, aside) = through(&["fmt", "-"], "let = 1;");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(aside.starts_with("<stdin>:1:5: error[E002]"), "{aside}");
    assert_eq!(through(&["fmt", "-", "--check"], UGLY).0, Some(1));
    assert_eq!(through(&["fmt", "-", "--check"], PRETTY).0, Some(0));
    assert_eq!(through(&["fmt", "-", "a.conc"], UGLY).0, Some(2));
}

#[test]
fn a_link_stays_one() {
    let folder = folder(&[("real.conc", UGLY)]);
    let link = folder.path().join("link.conc");
    std::os::unix::fs::symlink("real.conc", &link).unwrap();
    assert_eq!(say(folder.path(), &["fmt", "link.conc"]).0, Some(0));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(
        fs::read_to_string(folder.path().join("real.conc")).unwrap(),
        PRETTY
    );
}
