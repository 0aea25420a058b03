//! Runs slow work without blocking an async runtime.
//!
//! Schemas and values come from clients and models. Validating one value is bounded, but the bound is hundreds of
//! milliseconds. On a worker thread of an async runtime that is long enough to delay every other connection.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};

/// Limits slow work to as many threads as there are cores, so that the async workers keep their share of the CPU.
static SLOTS: LazyLock<Slots> = LazyLock::new(|| Slots {
    free: Mutex::new(available_parallelism().map_or(1, usize::from)),
    released: Condvar::new(),
});

thread_local! {
    /// Whether this thread has a slot already: nested work waiting for another one could wait for ever.
    static HAS_SLOT: Cell<bool> = const { Cell::new(false) };
}

struct Slots {
    free: Mutex<usize>,
    released: Condvar,
}

/// One of the slots; returned when dropped, also by a panic.
struct Slot<'s>(&'s Slots);

impl Slots {
    fn acquire(&self) -> Slot<'_> {
        HAS_SLOT.set(true);
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let has_none = |free: &mut usize| *free == 0;
        let waited = self.released.wait_while(free, has_none);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        HAS_SLOT.set(false);
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free += 1;
        drop(free);
        self.0.released.notify_one();
    }
}

/// Runs `work` on this thread. On a worker of a multi-threaded tokio runtime, the other tasks of the worker move to
/// another thread first.
pub(crate) fn offload<T>(work: impl FnOnce() -> T) -> T {
    let is_multi_thread = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if !is_multi_thread || HAS_SLOT.get() {
        return work();
    }
    let mut work = Some(work);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        tokio::task::block_in_place(|| {
            let _slot = SLOTS.acquire();
            work.take().map(|work| work())
        })
    }));
    match (ran, work) {
        (Ok(Some(result)), _) => result,
        // Inside a `LocalSet`, tokio panics before it calls the closure: there is no other thread to move tasks to.
        (_, Some(work)) => work(),
        (Err(panic), None) => resume_unwind(panic),
        (Ok(None), None) => unreachable!("the closure is called at most once"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_the_only_worker_is_busy() {
        let (sender, receiver) = mpsc::channel();
        // Nested, as compiling inside of a validation is.
        let busy =
            tokio::spawn(async move { offload(|| offload(|| receiver.recv_timeout(PATIENCE))) });
        let other = tokio::spawn(async move { sender.send(()) });
        assert_eq!(busy.await.unwrap(), Ok(()));
        other.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn work_runs_on_a_single_threaded_runtime() {
        assert_eq!(offload(|| 1), 1);
    }

    #[test]
    fn work_runs_without_a_runtime_and_in_a_local_set() {
        assert_eq!(offload(|| 1), 1);
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let local = tokio::task::LocalSet::new();
        let result = local.block_on(&runtime, async { offload(|| 2) });
        assert_eq!(result, 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_panic_passes_through_and_gives_its_slot_back() {
        let slots = available_parallelism().map_or(1, usize::from);
        for _ in 0..=slots {
            let panicked = tokio::spawn(async { offload(|| panic!("broken")) }).await;
            assert!(panicked.unwrap_err().is_panic());
        }
        assert_eq!(tokio::spawn(async { offload(|| 3) }).await.unwrap(), 3);
    }
}
