//! Nothing outside the folders, no secrets, nothing that is no text.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use haft_hosted::FileSearch;
use haft_hosted::{FileSearchConfig, FileSearchError, Folder};

use super::{Site, finds_nothing, places};

#[test]
fn links_lead_nowhere() {
    let site = Site::with(&[("inside.md", "needle")]);
    site.put("outside/secret.md", "needle hunter2");
    symlink(site.path("outside/secret.md"), site.path("docs/file.md")).unwrap();
    symlink(site.path("outside"), site.path("docs/directory")).unwrap();
    symlink("../outside", site.path("docs/relative")).unwrap();
    symlink(".", site.path("docs/circle")).unwrap();
    symlink("/", site.path("docs/everything")).unwrap();
    symlink("nowhere", site.path("docs/dangling")).unwrap();
    let search = site.open();
    assert_eq!(places(&search, "needle"), ["docs/inside.md:1"]);
    assert!(finds_nothing(&search, "hunter2"));
}

#[test]
fn a_file_or_directory_that_becomes_a_link_is_forgotten() {
    let site = Site::with(&[("a.md", "hunter2"), ("sub/b.md", "hunter2")]);
    let search = site.open();
    assert_eq!(places(&search, "hunter2").len(), 2);
    fs::rename(site.path("docs/a.md"), site.path("a.md")).unwrap();
    symlink(site.path("a.md"), site.path("docs/a.md")).unwrap();
    fs::rename(site.path("docs/sub"), site.path("sub")).unwrap();
    symlink(site.path("sub"), site.path("docs/sub")).unwrap();
    assert!(finds_nothing(&search, "hunter2"));
}

#[test]
fn a_listed_folder_may_itself_be_a_link() {
    let site = Site::with(&[("a.md", "needle")]);
    symlink(site.path("docs"), site.path("link")).unwrap();
    let config = FileSearchConfig {
        folders: vec![Folder::from(site.path("link")).named("linked")],
        ..site.config()
    };
    assert_eq!(
        places(&site.open_with(&config), "needle"),
        ["linked/a.md:1"]
    );
}

#[test]
fn pipes_and_sockets_are_passed_over() {
    let site = Site::with(&[("a.md", "needle")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        site.path("docs/pipe.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(site.path("docs/socket.md")).unwrap();
    assert_eq!(places(&site.open(), "needle"), ["docs/a.md:1"]);
}

#[test]
fn what_is_no_text_or_too_large_is_passed_over() {
    let site = Site::with(&[("a.md", "needle")]);
    site.put("docs/binary.md", b"needle\0needle");
    site.put("docs/latin.md", b"needle caf\xe9");
    site.put("docs/large.md", "needle ".repeat(400));
    let config = FileSearchConfig {
        max_file_bytes: 2_000,
        ..site.config()
    };
    let search = site.open_with(&config);
    assert_eq!(places(&search, "needle"), ["docs/a.md:1"]);
    // What becomes text is found, and what grows too large no more.
    site.put("docs/binary.md", "needle");
    site.put("docs/a.md", "needle ".repeat(400));
    assert_eq!(places(&search, "needle"), ["docs/binary.md:1"]);
}

#[test]
fn hidden_made_secret_and_ignored_files_are_passed_over() {
    let site = Site::with(&[("a.md", "needle")]);
    for path in [
        ".hidden.md",
        ".git/config",
        "sub/.cache/a.md",
        "node_modules/x/a.js",
        "sub/target/a.md",
        ".env",
        "prod.env",
        "server.pem",
        "keys/id_rsa",
        "credentials.json",
        "a.log",
        "tmp/x/a.md",
    ] {
        site.put(&format!("docs/{path}"), "needle");
    }
    site.put(
        "docs/key.txt",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nneedle\n",
    );
    let config = FileSearchConfig {
        ignore: vec!["*.log".into(), "tmp/**".into()],
        ..site.config()
    };
    assert_eq!(places(&site.open_with(&config), "needle"), ["docs/a.md:1"]);
    let hidden = FileSearchConfig {
        hidden: true,
        ..config
    };
    let found = places(&site.open_with(&hidden), "needle");
    assert_eq!(
        found,
        ["docs/.hidden.md:1", "docs/a.md:1", "docs/sub/.cache/a.md:1"]
    );
}

#[test]
fn control_characters_do_not_get_out() {
    let site = Site::with(&[("a.md", "needle \u{1}\u{2}\u{1b}[31mred\u{7} \u{9b}x\r\nend")]);
    let request = haft_hosted::SearchRequest::new("needle");
    let found = super::ask(&site.open(), &request);
    assert_eq!(found.results[0].snippet, "1: needle    [31mred   x\n2: end");
}

#[test]
fn a_file_that_may_no_longer_be_read_is_forgotten() {
    let site = Site::with(&[("a.md", "needle"), ("b.md", "needle")]);
    let search = site.open();
    assert_eq!(places(&search, "needle").len(), 2);
    let closed = fs::Permissions::from_mode(0o000);
    fs::set_permissions(site.path("docs/a.md"), closed).unwrap();
    if fs::read(site.path("docs/a.md")).is_ok() {
        // The administrator may read everything.
        return;
    }
    assert_eq!(places(&search, "needle"), ["docs/b.md:1"]);
}

#[test]
fn folders_that_cannot_be_searched_are_refused_by_name() {
    let site = Site::with(&[("a.md", "needle")]);
    let refused = |folders: Vec<Folder>| {
        let config = FileSearchConfig {
            folders,
            ..site.config()
        };
        FileSearch::open(site.index(), &config).unwrap_err()
    };
    assert!(matches!(refused(vec![]), FileSearchError::NoFolders));
    let missing = refused(vec![site.path("missing").into()]).to_string();
    assert!(missing.contains("missing` cannot be searched"), "{missing}");
    assert!(matches!(
        refused(vec![site.path("docs/a.md").into()]),
        FileSearchError::Folder { .. }
    ));
    assert!(matches!(
        refused(vec!["/".into()]),
        FileSearchError::Name { .. }
    ));
    for name in ["", "a/b", "a\nb"] {
        let folder = Folder::from(site.path("docs")).named(name);
        assert!(matches!(
            refused(vec![folder]),
            FileSearchError::Name { .. }
        ));
    }
    let twice = vec![site.path("docs").into(), site.path("docs").into()];
    let error = refused(twice).to_string();
    assert_eq!(
        error,
        "two folders are called `docs`: give one of them another `name`"
    );
    let config = FileSearchConfig {
        ignore: vec!["[".into()],
        ..site.config()
    };
    let error = FileSearch::open(site.index(), &config).unwrap_err();
    assert!(matches!(error, FileSearchError::Pattern { .. }));
}
