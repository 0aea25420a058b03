use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;

#[derive(Default)]
struct Disk(Mutex<BTreeSet<&'static str>>);

impl Disk {
    fn create(&self, path: &'static str) {
        self.0.lock().unwrap().insert(path);
    }

    fn delete(&self, path: &str) {
        self.0.lock().unwrap().remove(path);
    }
}

impl FileSystem for Disk {
    fn exists(&self, path: &str) -> bool {
        self.0.lock().unwrap().contains(path)
    }
}

/// The blocks after each of the calls at these seconds; the memory is stored in between.
fn said(feedback: &Feedback, seconds: &[u64]) -> Vec<Vec<String>> {
    let mut memory = FeedbackMemory::default();
    feedback.begin(&mut memory, Duration::from_secs(seconds[0]));
    let call = |second: &u64| {
        let stored = serde_json::to_string(&memory).unwrap();
        memory = serde_json::from_str(&stored).unwrap();
        feedback.after_call(&mut memory, "t", "c", true, Duration::from_secs(*second))
    };
    seconds.iter().map(call).collect()
}

fn which(said: &[Vec<String>]) -> Vec<usize> {
    let spoken = said
        .iter()
        .enumerate()
        .filter(|(_, blocks)| !blocks.is_empty());
    spoken.map(|(at, _)| at + 1).collect()
}

#[test]
fn a_provider_speaks_after_every_so_many_calls() {
    let reminder = Reminder::new("a", "x").when(FeedbackTrigger::EveryNCalls(3));
    let said = said(&Feedback::new().provider(reminder), &[0; 10]);
    assert_eq!(which(&said), [3, 6, 9]);
}

#[test]
fn a_provider_speaks_after_so_many_seconds() {
    let reminder = Reminder::new("a", "x").when(FeedbackTrigger::EveryNSeconds(60));
    let feedback = Feedback::new().provider(reminder);
    let said = said(&feedback, &[1000, 1059, 1060, 1061, 1119, 1200, 1259, 5]);
    assert_eq!(which(&said), [3, 6]);
}

#[test]
fn triggers_of_one_provider_are_ored_and_it_speaks_once_per_call() {
    let reminder = Reminder::new("a", "x")
        .when(FeedbackTrigger::EveryNCalls(2))
        .when(FeedbackTrigger::EveryNCalls(3))
        .when(FeedbackTrigger::EveryNSeconds(10));
    let feedback = Feedback::new().provider(reminder);
    let said = said(&feedback, &[0, 0, 0, 0, 10, 10, 10]);
    assert_eq!(which(&said), [2, 3, 4, 5, 6]);
    assert!(said.iter().all(|blocks| blocks.len() <= 1));
}

#[test]
fn a_created_file_is_spoken_of_once() {
    let disk = Arc::new(Disk::default());
    disk.create("old.txt");
    let watching = |name: &str, path: &str| {
        Reminder::new(name, name).when(FeedbackTrigger::OnFileCreated(path.into()))
    };
    let feedback = Feedback::new()
        .files(disk.clone())
        .provider(watching("new", "./new.txt"))
        .provider(watching("old", "old.txt"));
    let mut memory = FeedbackMemory::default();
    feedback.begin(&mut memory, Duration::ZERO);
    let mut call = || feedback.after_call(&mut memory, "t", "c", true, Duration::ZERO);
    assert!(call().is_empty());
    disk.create("new.txt");
    assert_eq!(call(), ["new"]);
    disk.delete("new.txt");
    assert!(call().is_empty());
    disk.create("new.txt");
    disk.delete("old.txt");
    assert!(call().is_empty());
    disk.create("old.txt");
    assert_eq!(call(), ["old"]);
}

#[test]
fn nothing_fires_by_zero_or_without_a_file_system() {
    let reminder = Reminder::new("a", "x")
        .when(FeedbackTrigger::EveryNCalls(0))
        .when(FeedbackTrigger::EveryNSeconds(0))
        .when(FeedbackTrigger::OnFileCreated("a".into()));
    let said = said(&Feedback::new().provider(reminder), &[0, 5, 100]);
    assert!(which(&said).is_empty());
}

struct Broken;

impl FeedbackProvider for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn triggers(&self) -> &[FeedbackTrigger] {
        &[FeedbackTrigger::EveryNCalls(1)]
    }

    fn block(&self, _: &FeedbackMoment<'_>) -> Option<String> {
        panic!("boom")
    }
}

#[test]
fn all_blocks_follow_the_message_each_after_a_blank_line() {
    let always = |name: &str| Reminder::new(name, name).when(FeedbackTrigger::EveryNCalls(1));
    let feedback = Feedback::new()
        .provider(always("one"))
        .provider(Broken)
        .provider(always("two"));
    let blocks = said(&feedback, &[0]).remove(0);
    assert_eq!(with_feedback("Done.", &blocks), "Done.\n\none\n\ntwo");
    assert_eq!(with_feedback("", &blocks), "one\n\ntwo");
    assert_eq!(with_feedback("Done.", &[]), "Done.");
}
