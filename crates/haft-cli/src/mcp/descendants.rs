//! Everybody below this process.

#[cfg(target_os = "linux")]
pub(super) use self::linux::tell;

/// Sends everybody below this process a signal. Elsewhere nobody knows more than the group, of which this
/// process is a part: a signal that it does not catch ends it as well.
#[cfg(not(target_os = "linux"))]
pub(super) fn tell(signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process_group(rustix::process::getpgrp(), signal);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{read_dir, read_to_string};

    use rustix::process::{Pid, Signal, getpid, kill_process};

    /// Sends everybody below this process a signal, the nearest first. Somebody who starts and loses
    /// parents meanwhile can be missed, so that this alone never tells that nobody is left.
    pub(in crate::mcp) fn tell(signal: Signal) {
        for pid in descendants().into_iter().filter_map(Pid::from_raw) {
            // Who has gone meanwhile needs no signal, and whoever may not be sent one is let be.
            let _ = kill_process(pid, signal);
        }
    }

    fn descendants() -> Vec<i32> {
        let own = getpid().as_raw_pid();
        if children(own).is_some() {
            return below(own, |pid| children(pid).unwrap_or_default());
        }
        let all = processes();
        let of = |parent| all.iter().filter(move |it| it.parent == parent);
        below(own, |parent| of(parent).map(|it| it.pid).collect())
    }

    fn below(own: i32, children: impl Fn(i32) -> Vec<i32>) -> Vec<i32> {
        let mut found = children(own);
        let mut at = 0;
        while let Some(parent) = found.get(at) {
            // Numbers that are given anew while this looks could lead in a circle.
            let new = children(*parent);
            let new: Vec<i32> = new.into_iter().filter(|pid| !found.contains(pid)).collect();
            found.extend(new);
            at += 1;
        }
        found
    }

    /// The children of all threads of a process, if it is there and the system keeps such a list. Much
    /// cheaper than to look at everybody, which counts when many servers end at the same time.
    fn children(pid: i32) -> Option<Vec<i32>> {
        let mut found = Vec::new();
        for thread in read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let list = read_to_string(thread.path().join("children")).ok()?;
            let numbers = list.split_whitespace();
            found.extend(numbers.filter_map(|it| it.parse::<i32>().ok()));
        }
        Some(found)
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Process {
        pid: i32,
        parent: i32,
    }

    fn processes() -> Vec<Process> {
        let entries = read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // Who has gone meanwhile has no such file.
        let read = |pid: i32| process(pid, &read_to_string(format!("/proc/{pid}/stat")).ok()?);
        numbers.filter_map(read).collect()
    }

    /// Reads `12 (name) S 1 …`; the name may hold anything.
    fn process(pid: i32, stat: &str) -> Option<Process> {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        Some(Process { pid, parent })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn names_with_brackets_do_not_hide_a_parent() {
            let read = process(7, "7 (a) S 1 (b) ) S 3 7 7 0");
            assert_eq!(read, Some(Process { pid: 7, parent: 3 }));
            assert_eq!(process(7, "nonsense"), None);
        }

        #[test]
        fn both_ways_to_look_find_children_and_theirs() {
            let script = "sleep 100 & wait";
            let mut child = std::process::Command::new("sh")
                .args(["-c", script])
                .spawn()
                .unwrap();
            let id = i32::try_from(child.id()).unwrap();
            let grandchildren = || processes().iter().filter(|it| it.parent == id).count();
            while grandchildren() == 0 {
                std::thread::yield_now();
            }
            let all = processes();
            let of = |parent| all.iter().filter(move |it| it.parent == parent);
            let looked = below(id, |parent| of(parent).map(|it| it.pid).collect());
            let listed = below(id, |pid| children(pid).unwrap_or_default());
            assert!(descendants().contains(&id));
            for pid in looked.iter().copied().filter_map(Pid::from_raw) {
                kill_process(pid, Signal::KILL).unwrap();
            }
            child.wait().unwrap();
            assert_eq!(looked.len(), 1);
            assert!(listed.is_empty() || listed == looked, "{listed:?}");
        }
    }
}
