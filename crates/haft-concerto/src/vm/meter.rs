//! What a program has used: steps, the work that one step does, memory.
//!
//! Steps of the loop are counted by the fiber, which settles them here. What a single instruction does
//! beyond its one step (comparing, showing, copying, searching) is charged here as work, in steps too:
//! about one for each value that is looked at, and one for some bytes of text. Whoever walks over
//! something long charges as it goes, so that limits and cancelling are heeded in the middle of it.

use super::{Canceller, Failure, Limits, Outcome, Stop};
use crate::value::{Sizer, Value};

/// How much work one instruction may do, in steps: some seconds. Values that are shared
/// within themselves can be longer than any memory when they are walked over.
pub(crate) const MOST: u64 = 1_000_000_000;

/// After how much work the limits are looked at again.
const OFTEN: u64 = 50_000;

/// Asked in the middle of long work, with the steps that are not settled yet: whether to stop.
pub(crate) type Watch = Box<dyn Fn(u64) -> Option<Stop> + Send>;

/// What a program has used.
pub(crate) struct Meter {
    steps: u64,
    most_steps: Option<u64>,
    /// Work that no fiber has settled yet, and when to look next.
    work: u64,
    next: u64,
    canceller: Canceller,
    watch: Option<Watch>,
    /// What was allocated since the last look at what is still held. Counting each release would
    /// cost more than to look now and then.
    since: usize,
    /// What was held then.
    held: usize,
    threshold: usize,
    /// The threshold, or zero to be looked at as soon as possible.
    look_at: usize,
    limit: usize,
    /// What of it was shared by all fibers when it was measured, and how much stores may make of that.
    shared: usize,
    most_shared: usize,
    /// Whether something was refused that may fit when it is known what is still held.
    is_short: bool,
    /// Whether the instruction at hand can be done again.
    repeats: bool,
    /// Whether something is put back, which must not fail.
    forgives: bool,
}

impl Meter {
    pub(crate) fn new(limits: &Limits, canceller: Canceller) -> Self {
        let limit = limits.memory.saturating_mul(1 << 20);
        Self {
            steps: 0,
            most_steps: limits.steps,
            work: 0,
            next: OFTEN,
            canceller,
            watch: None,
            since: 0,
            held: 0,
            threshold: limit / 2,
            look_at: limit / 2,
            limit,
            shared: 0,
            most_shared: usize::MAX,
            is_short: false,
            repeats: true,
            forgives: false,
        }
    }

    /// Notes work, in steps; more than one instruction may do is refused before it is done.
    #[inline]
    pub(crate) fn work(&mut self, steps: usize) -> Outcome<()> {
        self.work = self.work.saturating_add(steps as u64);
        if self.work < self.next {
            Ok(())
        } else {
            self.look()
        }
    }

    #[cold]
    fn look(&mut self) -> Outcome<()> {
        self.next = self.work.saturating_add(OFTEN);
        // The fiber settles it as soon as it can.
        self.look_at = 0;
        if self.forgives {
            return Ok(());
        }
        self.tick()?;
        if self.work > MOST {
            return Err(Failure::stop(Stop::Work(MOST)));
        }
        Ok(())
    }

    /// Whether it may go on.
    pub(crate) fn tick(&self) -> Outcome<()> {
        if self.canceller.is_cancelled() {
            return Err(Failure::stop(Stop::Cancelled));
        }
        if let Some(stop) = self.watch.as_ref().and_then(|watch| watch(self.work)) {
            return Err(Failure::stop(stop));
        }
        match self.most_steps {
            Some(limit) if self.steps.saturating_add(self.work) >= limit => {
                Err(Failure::stop(Stop::Steps(limit)))
            }
            _ => Ok(()),
        }
    }

    /// How many steps may pass until the next tick.
    pub(crate) fn allowance(&self) -> i64 {
        let left = self
            .most_steps
            .map_or(OFTEN, |limit| limit.saturating_sub(self.steps));
        i64::try_from(left.min(OFTEN)).unwrap_or(0)
    }

    /// Adds steps of the loop, and the work; gives both.
    pub(crate) fn settle(&mut self, steps: u64) -> u64 {
        let all = steps.saturating_add(self.work);
        self.steps = self.steps.saturating_add(all);
        self.work = 0;
        self.next = OFTEN;
        all
    }

    /// The steps of all that was settled.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether there is work to settle.
    pub(crate) fn has_work(&self) -> bool {
        self.work > 0
    }

    /// Who is asked in the middle of long work; gives who was before.
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "for the host"))]
    pub(crate) fn watched(&mut self, watch: Option<Watch>) -> Option<Watch> {
        std::mem::replace(&mut self.watch, watch)
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Notes an allocation; one that alone is too much is refused before it is made.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Outcome<()> {
        self.since = self.since.saturating_add(bytes);
        if bytes > self.limit {
            Err(self.exceeded())
        } else {
            Ok(())
        }
    }

    /// Notes an allocation that may be large, before it is made. What does not fit beside all that may
    /// still be held is refused; the fiber then looks what is, and does its instruction again. So this
    /// is asked before an instruction has changed anything.
    #[inline]
    pub(crate) fn ask(&mut self, bytes: usize) -> Outcome<()> {
        if !self.fits(bytes) {
            self.refuse(bytes)?;
        }
        self.since = self.since.saturating_add(bytes);
        Ok(())
    }

    /// Keeps a quarter of the memory for calls: what stores hold stays below the rest. Otherwise one caller who
    /// fills a store would leave no memory for the calls of all others, not even for one that deletes something.
    pub(crate) fn keep_room_for_calls(&mut self) {
        self.most_shared = self.limit / 4 * 3;
    }

    /// Notes a value that goes into a store, with so many bytes for its entry. What does not fit is refused like
    /// [`ask`](Self::ask) does, so this is asked before anything has changed.
    pub(crate) fn ask_stored(&mut self, value: &Value, bytes: usize) -> Outcome<()> {
        if self.most_shared < usize::MAX {
            let mut sizer = Sizer::default();
            sizer.add([value]);
            self.work(sizer.looks())?;
            self.ask_shared(sizer.total().saturating_add(bytes))?;
        }
        self.ask(bytes)
    }

    /// Whether stores may hold so much more. What was allocated since the last look may be theirs.
    pub(crate) fn ask_shared(&mut self, bytes: usize) -> Outcome<()> {
        let shared = self.shared.saturating_add(self.since);
        if shared.saturating_add(bytes) <= self.most_shared || self.forgives {
            return Ok(());
        }
        self.is_short = self.repeats && bytes <= self.most_shared;
        Err(Failure::stop(Stop::Stores(self.most_shared >> 20)))
    }

    /// What all fibers share was measured.
    pub(crate) fn measured_shared(&mut self, shared: usize) {
        self.shared = shared;
    }

    /// Refuses what does not fit, unless it must not.
    #[cold]
    fn refuse(&mut self, bytes: usize) -> Outcome<()> {
        if self.forgives {
            return Ok(());
        }
        self.is_short = self.repeats && bytes <= self.limit;
        Err(self.exceeded())
    }

    /// Whether so much fits beside all that may be held.
    #[inline]
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        let held = self.held.saturating_add(self.since);
        held.saturating_add(bytes) <= self.limit
    }

    /// Asks for a list of so many values, which are copied into it.
    pub(crate) fn copy(&mut self, count: usize) -> Outcome<()> {
        self.ask(count.saturating_mul(16).saturating_add(40))?;
        self.work(count / 2)
    }

    /// Charges for reading text.
    #[inline]
    pub(crate) fn read(&mut self, bytes: usize) -> Outcome<()> {
        self.work(bytes / 16)
    }

    /// Whether so much may be there at all.
    #[inline]
    pub(crate) fn room(&self, bytes: usize) -> Outcome<()> {
        if bytes > self.limit {
            Err(self.exceeded())
        } else {
            Ok(())
        }
    }

    /// Whether something was refused that may fit when it is known what is held.
    pub(crate) fn was_short(&mut self) -> bool {
        std::mem::take(&mut self.is_short)
    }

    /// While something is done that cannot be done again: gives what was before.
    pub(crate) fn repeating(&mut self, repeats: bool) -> bool {
        std::mem::replace(&mut self.repeats, repeats)
    }

    /// While something is put back to its place, which must not be lost: nothing is refused.
    pub(crate) fn forgiving(&mut self, forgives: bool) {
        self.forgives = forgives;
    }

    /// Notes what a new value takes whose parts were asked for, or are another's.
    #[inline]
    pub(crate) fn note_shell(&mut self, value: &Value) {
        let bytes = match value {
            Value::Ok(_) | Value::Err(_) | Value::Some(_) => 32,
            Value::Struct(object) => 64 + 16 * object.values().len(),
            _ => 0,
        };
        self.since = self.since.saturating_add(bytes);
    }

    /// Notes what a new value holds.
    #[inline]
    pub(crate) fn note(&mut self, value: &Value) {
        let bytes = match value {
            Value::Text(text) => text.heap().map_or(0, |(_, size)| size),
            Value::Array(array) => 40 + 16 * array.items().len(),
            Value::Map(map) => 80 + 48 * map.capacity(),
            Value::Ok(_) | Value::Err(_) | Value::Some(_) => 32,
            _ => 0,
        };
        self.since = self.since.saturating_add(bytes);
    }

    /// Whether it is time to look, at memory or at anything else.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.since >= self.look_at
    }

    /// Whether it is time to measure what is held; asks to be called again when it is next.
    pub(crate) fn is_full(&mut self) -> bool {
        self.look_at = self.threshold;
        self.since >= self.threshold
    }

    /// Whether it is time to measure what is held.
    pub(crate) fn is_filled(&self) -> bool {
        self.since >= self.threshold
    }

    /// What is still held was measured, with so many looks, which took time. The last bit of memory is not
    /// given away: whoever needs it would be measured again and again.
    pub(crate) fn measured(&mut self, held: usize, looks: u64) -> Outcome<()> {
        self.steps = self.steps.saturating_add(looks / 4);
        if held > self.limit - self.limit / 128 {
            return Err(self.exceeded());
        }
        self.since = 0;
        self.held = held;
        self.threshold = ((self.limit - held) / 2).max(self.limit / 64).max(1);
        // Work waits to be settled.
        self.look_at = if self.work > 0 { 0 } else { self.threshold };
        Ok(())
    }

    fn exceeded(&self) -> Box<Failure> {
        Failure::stop(Stop::Memory(self.limit >> 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(steps: Option<u64>) -> Meter {
        let limits = Limits {
            steps,
            memory: 1,
            ..Limits::default()
        };
        Meter::new(&limits, Canceller::default())
    }

    fn stop(outcome: Outcome<()>) -> Option<Stop> {
        match *outcome.err()? {
            Failure::Stop(stop) => Some(stop),
            _ => None,
        }
    }

    #[test]
    fn work_ends_at_the_first_limit_that_it_meets() {
        let most = usize::try_from(MOST).unwrap();
        assert_eq!(stop(meter(None).work(most)), None);
        assert_eq!(stop(meter(None).work(most + 1)), Some(Stop::Work(MOST)));
        let limited = stop(meter(Some(70_000)).work(70_000));
        assert_eq!(limited, Some(Stop::Steps(70_000)));
        let mut watched = meter(None);
        watched.watched(Some(Box::new(|steps| {
            (steps > 90_000).then_some(Stop::Cancelled)
        })));
        assert_eq!(stop(watched.work(80_000)), None);
        assert_eq!(stop(watched.work(60_000)), Some(Stop::Cancelled));
        // What is settled is no longer the instruction's.
        assert_eq!(watched.settle(5), 140_005);
        assert_eq!(stop(watched.work(80_000)), None);
    }

    #[test]
    fn stores_leave_a_quarter_of_the_memory_for_calls() {
        let mut meter = meter(None);
        meter.keep_room_for_calls();
        assert_eq!(stop(meter.ask_stored(&Value::Nil, 500 << 10)), None);
        // What is not known to be released counts as stored, until it is measured.
        assert_eq!(
            stop(meter.ask_stored(&Value::Nil, 500 << 10)),
            Some(Stop::Stores(0))
        );
        assert!(meter.was_short());
        meter.measured_shared(0);
        assert_eq!(stop(meter.measured(0, 0)), None);
        assert_eq!(stop(meter.ask_stored(&Value::Nil, 500 << 10)), None);
        meter.measured_shared(760 << 10);
        assert_eq!(stop(meter.measured(760 << 10, 0)), None);
        assert_eq!(
            stop(meter.ask_stored(&Value::Nil, 10 << 10)),
            Some(Stop::Stores(0))
        );
        // A call still has memory of its own.
        assert_eq!(stop(meter.ask(100 << 10)), None);
    }

    #[test]
    fn what_may_fit_is_asked_again_and_what_cannot_is_final() {
        let mut meter = meter(None);
        assert_eq!(stop(meter.ask(600 << 10)), None);
        assert_eq!(stop(meter.ask(600 << 10)), Some(Stop::Memory(1)));
        assert!(meter.was_short());
        assert_eq!(stop(meter.measured(100 << 10, 0)), None);
        assert_eq!(stop(meter.ask(600 << 10)), None);
        assert_eq!(stop(meter.ask(2 << 20)), Some(Stop::Memory(1)));
        assert!(!meter.was_short());
        // What cannot be done again is refused for good.
        meter.repeating(false);
        assert_eq!(stop(meter.ask(600 << 10)), Some(Stop::Memory(1)));
        assert!(!meter.was_short());
    }

    #[test]
    fn measuring_takes_steps_and_the_last_bit_is_not_given_away() {
        let mut meter = meter(None);
        assert_eq!(stop(meter.measured(1000 << 10, 4000)), None);
        assert_eq!(meter.steps(), 1000);
        assert_eq!(stop(meter.measured(1020 << 10, 0)), Some(Stop::Memory(1)));
    }
}
