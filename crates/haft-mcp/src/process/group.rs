//! The process group of a child.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::process::Child;

/// The group of a child, by the child's number.
#[derive(Debug)]
pub(super) struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
    is_gone: AtomicBool,
}

#[cfg(unix)]
impl Group {
    pub(super) fn of(child: &Child) -> Self {
        Self {
            id: child.id().and_then(pid),
            is_gone: AtomicBool::new(false),
        }
    }

    /// Whether anybody is left. Once nobody is, the number may become somebody else's, so that it is
    /// not used again.
    pub(super) fn lives(&self) -> bool {
        let Some(id) = self.id.filter(|_| !self.is_gone.load(Ordering::Relaxed)) else {
            return false;
        };
        let nobody = rustix::process::test_kill_process_group(id) == Err(rustix::io::Errno::SRCH);
        self.is_gone.fetch_or(nobody, Ordering::Relaxed);
        !nobody
    }

    pub(super) fn ask(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id.filter(|_| self.lives()) {
            // That nobody is left is no failure.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }
}

#[cfg(unix)]
fn pid(id: u32) -> Option<rustix::process::Pid> {
    i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
}

/// Tells a supervisor that was not waited for yet to kill everybody at once.
#[cfg(unix)]
pub(super) fn tell_supervisor(id: u32) {
    use rustix::process::{Signal, kill_process};
    let Some(id) = pid(id) else { return };
    // The second wakes one that its server has put to sleep. That it has ended is no failure.
    for signal in [Signal::USR2, Signal::CONT] {
        let _ = kill_process(id, signal);
    }
}

/// Without signals nobody can be told.
#[cfg(not(unix))]
pub(super) fn tell_supervisor(_: u32) {}

/// Without process groups only the child itself can be ended, by whoever holds it.
#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_: &Child) -> Self {
        Self {
            is_gone: AtomicBool::new(false),
        }
    }

    pub(super) fn lives(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    pub(super) fn ask(&self) {}

    pub(super) fn kill(&self) {}
}
