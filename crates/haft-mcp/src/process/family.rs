//! A child and everybody whom it started, and how they are ended.

use std::time::Duration;

use tokio::process::Child;

use super::group::Group;

/// How often a group is looked at that shall end.
const LOOK: Duration = Duration::from_millis(20);

/// How long a supervisor may take that was told to end everybody at once. It gives up itself before that.
const LAST_RESORT: Duration = Duration::from_secs(15);

/// Who knows all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nobody: what has left the group is out of reach.
    Group,
    /// The child itself, which ends the others and then leaves. Whoever kills it saves those outside of
    /// the group.
    Supervisor,
}

/// A child and everybody whom it started.
#[derive(Debug)]
pub(super) struct Family {
    child: Child,
    group: Group,
    watch: Watch,
}

impl Family {
    pub(super) fn of(child: Child, watch: Watch) -> Self {
        Self {
            group: Group::of(&child),
            child,
            watch,
        }
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(super) fn watch(&self) -> Watch {
        self.watch
    }

    /// Whether anybody is left in the group.
    pub(super) fn lives(&self) -> bool {
        self.group.lives()
    }

    /// Asks everybody to end.
    pub(super) fn ask(&self) {
        self.group.ask();
    }

    /// Has everybody killed: by the supervisor, while there is one, and otherwise here.
    pub(super) fn force(&mut self) {
        // Once the child was waited for it has no number any more, so that nobody else is told.
        match self.child.id() {
            Some(id) if self.watch == Watch::Supervisor => super::group::tell_supervisor(id),
            _ => self.kill(),
        }
    }

    /// Kills the group, and the child with it.
    fn kill(&mut self) {
        self.group.kill();
        // It may have ended already.
        let _ = self.child.start_kill();
    }

    /// Waits until nobody is left in the group.
    pub(super) async fn gone(&mut self) {
        // One that cannot be waited for is gone.
        let _ = self.child.wait().await;
        while self.lives() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for a supervisor that was told to end everybody. If this is cut short, as at the end of
    /// haft, the supervisor still does it.
    pub(super) async fn see_out(mut self) {
        let _ = tokio::time::timeout(LAST_RESORT, self.child.wait()).await;
        self.kill();
        let _ = self.child.wait().await;
    }
}
