//! The index follows the files, lasts, and is made anew where it cannot.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use haft_core::Cancel;
use haft_hosted::{FileSearch, FileSearchConfig, FileSearchError, Folder, SearchRequest};

use super::{Site, ask, finds_nothing, places};

/// Refreshes until nothing is new any more: what was changed just now is read twice.
fn settle(search: &FileSearch) {
    for _ in 0..200 {
        let report = search.refresh(&Cancel::new()).unwrap();
        if report.is_complete && report.read == 0 && report.removed == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the index does not settle");
}

#[test]
fn files_that_come_change_move_and_go_are_followed() {
    let site = Site::with(&[("a.md", "alpha"), ("b.md", "beta")]);
    let search = site.open();
    assert_eq!(places(&search, "alpha"), ["docs/a.md:1"]);

    site.put("docs/c.md", "gamma");
    assert_eq!(places(&search, "gamma"), ["docs/c.md:1"]);

    site.put("docs/a.md", "first\ndelta");
    assert_eq!(places(&search, "delta"), ["docs/a.md:2"]);
    assert!(finds_nothing(&search, "alpha"));

    fs::rename(site.path("docs/b.md"), site.path("docs/moved.md")).unwrap();
    assert_eq!(places(&search, "beta"), ["docs/moved.md:1"]);

    fs::remove_file(site.path("docs/c.md")).unwrap();
    assert!(finds_nothing(&search, "gamma"));

    site.put("docs/deep/er/d.md", "epsilon");
    assert_eq!(places(&search, "epsilon"), ["docs/deep/er/d.md:1"]);
    fs::remove_dir_all(site.path("docs/deep")).unwrap();
    assert!(finds_nothing(&search, "epsilon"));
}

#[test]
fn only_what_is_new_is_read() {
    let site = Site::with(&[("a.md", "alpha"), ("b.md", "beta"), ("c.bin", "\0")]);
    let search = site.open();
    settle(&search);
    site.put("docs/b.md", "other");
    fs::remove_file(site.path("docs/a.md")).unwrap();
    let report = search.refresh(&Cancel::new()).unwrap();
    assert_eq!((report.read, report.removed), (1, 1));
}

#[test]
fn a_change_is_seen_though_size_and_time_are_as_before() {
    let site = Site::with(&[("a.md", "alpha")]);
    let search = site.open();
    settle(&search);
    let file = site.path("docs/a.md");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    site.put("docs/a.md", "omega");
    let changed = OpenOptions::new().write(true).open(&file).unwrap();
    changed.set_modified(time).unwrap();
    assert_eq!(places(&search, "omega"), ["docs/a.md:1"]);
    assert!(finds_nothing(&search, "alpha"));
}

#[test]
fn files_are_not_looked_at_again_before_it_is_time() {
    let site = Site::with(&[("a.md", "alpha")]);
    let config = FileSearchConfig {
        refresh_seconds: 1_000_000,
        ..site.config()
    };
    let search = site.open_with(&config);
    assert_eq!(places(&search, "alpha"), ["docs/a.md:1"]);
    site.put("docs/b.md", "beta");
    assert!(finds_nothing(&search, "beta"));
    search.refresh(&Cancel::new()).unwrap();
    assert_eq!(places(&search, "beta"), ["docs/b.md:1"]);
}

#[test]
fn a_large_folder_is_answered_from_piece_by_piece() {
    let site = Site::new();
    for number in 0..25 {
        site.put(
            &format!("docs/{number:02}.md"),
            format!("word{number:02} common"),
        );
    }
    let config = FileSearchConfig {
        files_per_refresh: 10,
        refresh_seconds: 1_000_000,
        ..site.config()
    };
    let search = site.open_with(&config);
    let request = SearchRequest {
        limit: Some(50),
        ..SearchRequest::new("common")
    };
    let partly = ["not all files are in the index yet: search again for the rest"];
    let mut counts = Vec::new();
    let notes = loop {
        let found = ask(&search, &request);
        counts.push(found.results.len());
        if found.notes != partly {
            break found.notes;
        }
        assert!(counts.len() < 10);
    };
    assert_eq!(counts, [10, 20, 25]);
    assert!(notes.is_empty());
}

#[test]
fn the_index_lasts() {
    let site = Site::with(&[("a.md", "alpha")]);
    let search = site.open();
    settle(&search);
    drop(search);
    let search = site.open();
    let report = search.refresh(&Cancel::new()).unwrap();
    assert_eq!((report.read, report.removed), (0, 0));
    assert_eq!(places(&search, "alpha"), ["docs/a.md:1"]);
}

#[test]
fn nobody_else_may_read_the_index() {
    let site = Site::with(&[("a.md", "alpha")]);
    let search = site.open();
    assert_eq!(places(&search, "alpha").len(), 1);
    for entry in fs::read_dir(site.path("data")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.file_name());
    }
}

#[test]
fn a_folder_that_is_no_longer_listed_is_forgotten() {
    let site = Site::with(&[("a.md", "alpha")]);
    site.put("wiki/w.md", "wisdom");
    let both = FileSearchConfig {
        folders: vec![site.path("docs").into(), site.path("wiki").into()],
        ..site.config()
    };
    let search = site.open_with(&both);
    assert_eq!(places(&search, "wisdom"), ["wiki/w.md:1"]);
    drop(search);

    // Not even before its files are removed.
    let slow = FileSearchConfig {
        files_per_refresh: 1,
        refresh_seconds: 1_000_000,
        ..site.config()
    };
    let search = site.open_with(&slow);
    let cancelled = Cancel::new();
    cancelled.cancel();
    let found = search.search(&SearchRequest::new("wisdom"), &cancelled);
    assert!(found.map_or(true, |found| found.results.is_empty()));
    drop(search);

    let search = site.open();
    let report = search.refresh(&Cancel::new()).unwrap();
    assert_eq!((report.removed, report.is_complete), (1, true));
    assert!(finds_nothing(&search, "wisdom"));
    assert_eq!(places(&search, "alpha"), ["docs/a.md:1"]);
}

#[test]
fn another_folder_under_the_same_name_shares_nothing_with_the_former() {
    let site = Site::with(&[("a.md", "alpha")]);
    site.put("wiki/w.md", "wisdom");
    let named = |path: &str| FileSearchConfig {
        folders: vec![Folder::from(site.path(path)).named("notes")],
        ..site.config()
    };
    assert_eq!(
        places(&site.open_with(&named("docs")), "alpha"),
        ["notes/a.md:1"]
    );
    let search = site.open_with(&named("wiki"));
    assert!(finds_nothing(&search, "alpha"));
    assert_eq!(places(&search, "wisdom"), ["notes/w.md:1"]);
}

#[test]
fn what_the_operator_ignores_now_is_found_no_more() {
    let site = Site::with(&[("a.md", "alpha"), ("drafts/a.md", "alpha")]);
    assert_eq!(places(&site.open(), "alpha").len(), 2);
    let config = FileSearchConfig {
        ignore: vec!["drafts/**".into()],
        ..site.config()
    };
    assert_eq!(places(&site.open_with(&config), "alpha"), ["docs/a.md:1"]);
}

#[test]
fn a_folder_that_went_away_is_said_to_be_unreadable() {
    let site = Site::with(&[("a.md", "alpha")]);
    site.put("wiki/w.md", "wisdom");
    let both = FileSearchConfig {
        folders: vec![site.path("docs").into(), site.path("wiki").into()],
        ..site.config()
    };
    let search = site.open_with(&both);
    assert_eq!(places(&search, "wisdom").len(), 1);
    fs::remove_dir_all(site.path("wiki")).unwrap();
    let found = ask(&search, &SearchRequest::new("wisdom"));
    assert!(found.results.is_empty());
    assert_eq!(found.notes, ["the folder `wiki` cannot be read now"]);
}

#[test]
fn a_file_that_is_no_index_is_put_aside() {
    let site = Site::with(&[("a.md", "alpha")]);
    site.put(
        "data/search.db",
        "this is no database, and longer than its header would be".repeat(9),
    );
    assert_eq!(places(&site.open(), "alpha"), ["docs/a.md:1"]);
    let aside = fs::read(site.path("data/search.db.damaged")).unwrap();
    assert!(aside.starts_with(b"this is no database"));
}

#[test]
fn an_index_that_is_damaged_inside_is_made_anew() {
    let site = Site::new();
    for number in 0..50 {
        site.put(
            &format!("docs/{number}.md"),
            format!("alpha number{number}\n").repeat(50),
        );
    }
    let search = site.open();
    let before = places(&search, "number7");
    assert_eq!(before, ["docs/7.md:1", "docs/7.md:31"]);
    drop(search);
    // Everything behind the first page.
    let mut file = OpenOptions::new().write(true).open(site.index()).unwrap();
    let length = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(length - 4096).unwrap()])
        .unwrap();
    drop(file);
    let search = site.open();
    assert_eq!(places(&search, "number7"), before);
}

#[test]
fn an_index_that_is_damaged_meanwhile_is_made_anew() {
    let site = Site::with(&[("a.md", "alpha")]);
    let config = FileSearchConfig {
        refresh_seconds: 1_000_000,
        ..site.config()
    };
    let search = site.open_with(&config);
    assert_eq!(places(&search, "alpha").len(), 1);
    let database = rusqlite::Connection::open(site.index()).unwrap();
    // What the index finds its words by.
    let damage = "UPDATE texts_data SET block = x'a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5'";
    assert!(database.execute(damage, []).unwrap() > 0);
    drop(database);
    assert_eq!(places(&search, "alpha"), ["docs/a.md:1"]);
}

#[test]
fn an_index_of_another_version_is_made_anew() {
    let site = Site::with(&[("a.md", "alpha")]);
    for difference in [
        "PRAGMA user_version = 999",
        "DROP TABLE files",
        "ALTER TABLE passages RENAME COLUMN first_line TO line",
    ] {
        drop(site.open());
        let database = rusqlite::Connection::open(site.index()).unwrap();
        database.execute_batch(difference).unwrap();
        drop(database);
        assert_eq!(
            places(&site.open(), "alpha"),
            ["docs/a.md:1"],
            "{difference}"
        );
    }
}

#[test]
fn a_database_of_somebody_else_is_not_touched() {
    let site = Site::with(&[("a.md", "alpha")]);
    fs::create_dir(site.path("data")).unwrap();
    let database = rusqlite::Connection::open(site.index()).unwrap();
    database
        .execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
        .unwrap();
    drop(database);
    let error = FileSearch::open(site.index(), &site.config()).unwrap_err();
    assert!(matches!(error, FileSearchError::Foreign { .. }), "{error}");
    let database = rusqlite::Connection::open(site.index()).unwrap();
    let count: i64 = database
        .query_row("SELECT count(*) FROM theirs", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 1);
}

#[test]
fn many_search_while_files_change() {
    let site = Site::new();
    for number in 0..40 {
        site.put(&format!("docs/{number}.md"), "steady one");
    }
    let search = site.open();
    settle(&search);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..30 {
                site.put(
                    &format!("docs/new{}.md", round % 5),
                    format!("moving{round}"),
                );
                if round % 3 == 0 {
                    let _ = fs::remove_file(site.path("docs/new1.md"));
                }
            }
        });
        for _ in 0..4 {
            scope.spawn(|| {
                let request = SearchRequest {
                    limit: Some(50),
                    ..SearchRequest::new("steady")
                };
                for _ in 0..25 {
                    // What does not change is found always, and all of it.
                    assert_eq!(ask(&search, &request).results.len(), 40);
                }
            });
        }
        writer.join().unwrap();
    });
    // Written in the last round; and written in round 26, removed in round 27.
    assert_eq!(places(&search, "moving29"), ["docs/new4.md:1"]);
    assert!(finds_nothing(&search, "moving26"));
}
