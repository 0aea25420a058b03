//! Everybody below this process.

use rustix::process::Pid;

/// The processes below this one, the nearest first. Those who have ended and wait to be taken in by a
/// parent among them do not count.
#[cfg(target_os = "linux")]
pub(super) fn descendants() -> Vec<Pid> {
    let all = processes();
    let mut found = vec![rustix::process::getpid().as_raw_pid()];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        let children = all.iter().filter(|it| it.parent == parent);
        found.extend(children.map(|it| it.pid));
        at += 1;
    }
    let is_over = |pid: &i32| all.iter().any(|it| it.pid == *pid && it.is_over);
    found.remove(0);
    found.retain(|pid| !is_over(pid));
    found.into_iter().filter_map(Pid::from_raw).collect()
}

/// Elsewhere nobody knows more than the group, which haft itself ends.
#[cfg(not(target_os = "linux"))]
pub(super) fn descendants() -> Vec<Pid> {
    Vec::new()
}

#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    is_over: bool,
}

#[cfg(target_os = "linux")]
fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Who has gone meanwhile has no such file.
    let read = |pid: i32| {
        process(
            pid,
            &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
        )
    };
    numbers.filter_map(read).collect()
}

/// Reads `12 (name) S 1 …`; the name may hold anything.
#[cfg(target_os = "linux")]
fn process(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    Some(Process {
        pid,
        parent: fields.next()?.parse().ok()?,
        is_over: matches!(state, "Z" | "X"),
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_do_not_hide_a_parent() {
        let read = process(7, "7 (a) S 1 (b) ) S 3 7 7 0").unwrap();
        assert_eq!(
            read,
            Process {
                pid: 7,
                parent: 3,
                is_over: false
            }
        );
        assert!(process(7, "7 (a) Z 3").unwrap().is_over);
        assert_eq!(process(7, "nonsense"), None);
    }
}
