//! Many threads, one catalogue.

use std::sync::atomic::{AtomicBool, Ordering};

use haft_catalog::Catalog;

use crate::common::*;

fn assert_shareable<T: Send + Sync + Clone>(_: &T) {}

#[test]
fn registration_from_many_threads_while_others_take_snapshots() {
    const WRITERS: usize = 8;
    const TOOLS: usize = 25;
    let catalog = Catalog::new();
    assert_shareable(&catalog);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut seen = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let snapshot = catalog.snapshot();
                    let now = (snapshot.version(), snapshot.len());
                    assert!(now.0 >= seen.0 && now.1 >= seen.1, "{seen:?} then {now:?}");
                    assert!(names(&snapshot).len() == snapshot.len());
                    let binding = snapshot.bind().build().unwrap();
                    assert_eq!(binding.len(), snapshot.len());
                    // A group is there as a whole or not at all.
                    let group = snapshot.in_namespace("srv").map_or(0, |tools| tools.len());
                    assert!(group == 0 || group == 3, "{group}");
                    seen = now;
                }
            });
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let catalog = catalog.clone();
                scope.spawn(move || {
                    for tool in 0..TOOLS {
                        let name = format!("t{writer}_{tool}");
                        catalog.register(definition(&name)).unwrap();
                        catalog.set_group(&namespace("srv"), ["x", "y", "z"].map(definition));
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(catalog.len(), WRITERS * TOOLS + 3);
}

#[test]
fn of_many_registrations_of_one_name_exactly_one_wins() {
    let catalog = Catalog::new();
    let won: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| usize::from(catalog.register(definition("one")).is_ok())))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(won, 1);
    assert_eq!(catalog.len(), 1);
}

#[tokio::test]
async fn start_and_shutdown_may_run_on_any_thread() {
    let catalog = Catalog::new();
    let task = tokio::spawn(async move {
        let failed = catalog.start().await.len() + catalog.shutdown().await.len();
        (failed, catalog.len())
    });
    assert_eq!(task.await.unwrap(), (0, 0));
}
