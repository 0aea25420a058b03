//! Nothing of a server is left when haft is gone, however that came.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::kit::{LONG, LineClient, all_gone, fake, folder, mcp, signal, with_argument};
use crate::support::{Running, haft};

/// How long everything may take to be gone.
const GONE: Duration = Duration::from_secs(6);

/// A server that has started programs in every way: in its group, in a session of their own, and out of a
/// shell that has gone. They all sleep this long.
fn with_children(mark: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let own = own.display();
    let script = format!(
        "sleep {mark} & setsid sleep {mark} & (setsid sh -c 'sleep {mark} & sleep {mark} &' &); \
         exec {own} --exact fake::server --ignored --nocapture"
    );
    format!("[mcp.files]\ncommand = \"sh\"\nargs = [\"-c\", \"{script}\"]\n")
}

/// How long everything may take to be gone where many do not want to go.
const CROWD_GONE: Duration = Duration::from_secs(8);

/// How many servers a crowd has, and how many processes each of them is: the supervisor, the server, and
/// four programs that it started.
const CROWD: usize = 20;
const EACH: usize = 6;

/// A server that heeds no signal and has started programs in every way that do not either. It becomes the
/// given program in the end; all of its processes have the mark among their arguments.
fn stubborn(label: &str, mark: &str, becomes: &str, keys: &str) -> String {
    let script = format!(
        "trap '' TERM INT HUP; sleep {mark} & setsid sleep {mark} & \
         (setsid sh -c 'sleep {mark} & exec sleep {mark}' &); exec {becomes}"
    );
    let words = "env = { FAKE_WORDS = \"legacy deaf\" }";
    format!(
        "[mcp.{label}]\ncommand = \"sh\"\nargs = [\"-c\", \"{script}\", \"{mark}\"]\n{words}\n{keys}\n"
    )
}

/// Many stubborn servers behind one haft, all of them connected.
fn crowd(mark: &str, count: usize) -> (tempfile::TempDir, LineClient) {
    let own = std::env::current_exe().unwrap();
    // The mark is one more test that there is not.
    let fake = format!(
        "{} --exact fake::server {mark} --ignored --nocapture",
        own.display()
    );
    let labels: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
    let servers = labels
        .iter()
        .map(|label| stubborn(label, mark, &fake, "allow = [\"echo\"]"));
    let folder = folder(&servers.collect::<String>());
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    let begin = Instant::now();
    while client.names().len() < count {
        assert!(begin.elapsed() < 2 * LONG, "{:?}", client.names());
        std::thread::sleep(Duration::from_millis(100));
    }
    wait_for(mark, count * EACH);
    (folder, client)
}

/// A time to sleep that nobody else sleeps.
fn mark(of: u32) -> String {
    format!("1000.{}{of}", std::process::id())
}

fn wait_for(mark: &str, count: usize) {
    let begin = Instant::now();
    while with_argument(mark).len() != count {
        let found = with_argument(mark);
        assert!(begin.elapsed() < GONE, "{found:?} in place of {count}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nobody_is_left_however_haft_ends() {
    for (at, how) in ["KILL", "ABRT", "TERM", "INT", "the client leaves"]
        .into_iter()
        .enumerate()
    {
        let mark = mark(u32::try_from(at).unwrap());
        let folder = folder(&with_children(&mark));
        let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
        assert!(client.names().contains(&"files__echo".into()), "{how}");
        wait_for(&mark, 4);
        if how == "the client leaves" {
            assert_eq!(client.leave(), Some(0));
        } else {
            client.signal(how);
        }
        assert!(all_gone(&mark, GONE), "{how}: {:?}", with_argument(&mark));
    }
}

#[test]
fn of_many_that_heed_no_signal_nobody_is_left_either() {
    for (at, how) in ["TERM", "KILL"].into_iter().enumerate() {
        let mark = mark(50 + u32::try_from(at).unwrap());
        let (_folder, client) = crowd(&mark, CROWD);
        client.signal(how);
        let left = || with_argument(&mark);
        assert!(all_gone(&mark, CROWD_GONE), "{how}: {} left", left().len());
    }
}

#[test]
fn a_supervisor_that_gets_no_time_is_not_killed_before_the_others() {
    let mark = mark(55);
    let (_folder, mut client) = crowd(&mark, 3);
    let supervisors = with_argument("supervise");
    let own = with_argument(&mark);
    for id in supervisors.iter().filter(|id| own.contains(id)) {
        signal(id.parse().unwrap(), "STOP");
    }
    client.signal("TERM");
    crate::kit::ended(&mut client.child);
    let left = with_argument(&mark).len();
    assert!(all_gone(&mark, CROWD_GONE), "{left} left");
}

#[test]
fn a_server_that_never_answers_is_ended_with_all_that_it_started() {
    for (at, how) in ["", "INT", "TERM", "KILL"].into_iter().enumerate() {
        let mark = mark(60 + u32::try_from(at).unwrap());
        let timeout = if how.is_empty() { 2 } else { 30 };
        let keys = format!("connect_timeout = {timeout}");
        let folder = folder(&stubborn("mute", &mark, &format!("sleep {mark}"), &keys));
        let mut child = haft(folder.path(), &["mcp", "test"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        wait_for(&mark, EACH);
        if !how.is_empty() {
            signal(child.id(), how);
        }
        crate::kit::ended(&mut child);
        assert!(
            all_gone(&mark, CROWD_GONE),
            "{how}: {:?}",
            with_argument(&mark)
        );
    }
}

#[test]
fn a_call_by_hand_leaves_nobody_either() {
    let mark = mark(10);
    let folder = folder(&with_children(&mark));
    let (code, out, aside) = mcp(folder.path(), &["call", "files", "echo", "a=1"]);
    assert_eq!((code, out.as_str()), (Some(0), "{\"a\":1}\n"), "{aside}");
    assert!(all_gone(&mark, Duration::from_secs(1)), "after a call");
}

#[test]
fn a_server_that_is_told_to_stop_takes_its_children_along() {
    let mark = mark(20);
    let warm = format!("{}warm = true\n", with_children(&mark));
    let folder = folder(&warm);
    let arguments = ["serve", "--listen", "127.0.0.1:0"];
    let (mut running, _) = Running::start_with(haft(folder.path(), &arguments));
    wait_for(&mark, 4);
    running.signal("TERM");
    assert_eq!(crate::kit::ended(&mut running.0), Some(0));
    assert!(all_gone(&mark, Duration::from_secs(1)), "after SIGTERM");
}

#[test]
fn the_code_of_a_program_is_passed_on_and_so_are_signals() {
    let parent = std::process::id().to_string();
    let supervise = |command: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let mut all = vec!["mcp", "supervise", "--parent", &parent, "--"];
        all.extend(command);
        haft(folder.path(), &all).spawn().unwrap()
    };
    for (script, code) in [("exit 3", 3), ("kill -9 $$", 137)] {
        let mut child = supervise(&["sh", "-c", script]);
        assert_eq!(crate::kit::ended(&mut child), Some(code), "{script}");
    }
    let mut child = supervise(&["/no/such/program"]);
    assert_eq!(crate::kit::ended(&mut child), Some(127));
    let mark = mark(30);
    let script = format!("trap 'exit 5' TERM; sleep {mark} & wait");
    let mut child = supervise(&["sh", "-c", &script]);
    wait_for(&mark, 1);
    signal(child.id(), "TERM");
    assert_eq!(crate::kit::ended(&mut child), Some(5));
    assert!(all_gone(&mark, Duration::from_secs(1)));
    // One that does not want to go is made to.
    let script = format!("trap '' TERM; sleep {mark} & wait; sleep {mark}");
    let mut child = supervise(&["sh", "-c", &script]);
    wait_for(&mark, 1);
    signal(child.id(), "TERM");
    assert_eq!(crate::kit::ended(&mut child), Some(137));
    assert!(all_gone(&mark, Duration::from_secs(1)));
}

#[test]
fn a_supervisor_of_nobody_starts_nothing() {
    let mark = mark(40);
    let folder = tempfile::tempdir().unwrap();
    // Number 1 is everybody's parent but this one's.
    let all = ["mcp", "supervise", "--parent", "1", "--", "sleep", &mark];
    let mut child = haft(folder.path(), &all).spawn().unwrap();
    assert_eq!(crate::kit::ended(&mut child), Some(1));
    assert!(with_argument(&mark).is_empty());
}

#[test]
fn a_program_that_is_not_there_is_told_at_once() {
    let folder = folder("[mcp.files]\ncommand = \"no-such-program-of-haft\"\n");
    let begin = Instant::now();
    let (code, out, _) = mcp(folder.path(), &["test"]);
    assert_eq!(code, Some(1));
    assert!(begin.elapsed() < Duration::from_secs(5));
    let words = "`no-such-program-of-haft` cannot be started";
    assert!(out.contains(words), "{out}");
}

#[test]
fn a_server_gets_the_listed_variables_and_no_other() {
    let folder = folder(&fake("files", "legacy", ""));
    let mut command = haft(folder.path(), &["mcp", "call", "files", "environment"]);
    command.env("SECRET_OF_HAFT", "hunter2");
    let (code, out, aside) = crate::support::told(command, "");
    assert_eq!(code, Some(0), "{aside}");
    assert!(
        out.contains("FAKE_WORDS") && !out.contains("hunter2"),
        "{out}"
    );
}
