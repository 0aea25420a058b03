use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> BreakerSettings {
    BreakerSettings {
        enabled: true,
        failures: 3,
        open: 10 * SECOND,
        longest: 60 * SECOND,
    }
}

/// A breaker and a clock that only moves when it is told to.
struct Bench {
    breaker: Breaker,
    now: Instant,
}

impl Bench {
    fn new(settings: BreakerSettings) -> Self {
        Self {
            breaker: Breaker::new(settings),
            now: Instant::now(),
        }
    }

    fn open() -> Self {
        let mut bench = Self::new(settings());
        for _ in 0..3 {
            bench.fail();
        }
        bench
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    #[track_caller]
    fn pass(&mut self) -> Pass {
        self.breaker.admit(self.now).unwrap()
    }

    #[track_caller]
    fn fail(&mut self) -> Change {
        self.fail_for(None)
    }

    #[track_caller]
    fn fail_for(&mut self, wait: Option<Duration>) -> Change {
        let pass = self.pass();
        self.breaker.failed(pass, self.now, wait)
    }

    #[track_caller]
    fn succeed(&mut self) -> Change {
        let pass = self.pass();
        self.breaker.succeeded(pass)
    }

    fn standing(&self) -> Standing {
        self.breaker.standing(self.now)
    }

    fn blocked(&mut self) -> Duration {
        self.breaker.admit(self.now).unwrap_err().wait
    }
}

#[test]
fn it_opens_at_the_last_of_so_many_failures_in_a_row() {
    let mut bench = Bench::new(settings());
    assert_eq!(bench.fail(), Change::Nothing);
    assert_eq!(bench.fail(), Change::Nothing);
    assert_eq!(bench.standing(), Standing::Ready);
    assert_eq!(bench.fail(), Change::Opened(10 * SECOND));
    assert_eq!(bench.standing(), Standing::Open(10 * SECOND));
    bench.wait(4 * SECOND);
    assert_eq!(bench.blocked(), 6 * SECOND, "the true rest of it");
}

#[test]
fn a_success_between_them_starts_the_count_again() {
    let mut bench = Bench::new(settings());
    for _ in 0..10 {
        bench.fail();
        bench.fail();
        bench.succeed();
    }
    assert_eq!(bench.standing(), Standing::Ready);
}

#[test]
fn one_trial_is_let_through_when_the_time_is_over() {
    let mut bench = Bench::open();
    bench.wait(10 * SECOND);
    assert_eq!(bench.standing(), Standing::Due);
    let trial = bench.pass();
    assert_eq!(bench.standing(), Standing::Trying);
    assert_eq!(bench.blocked(), TRIAL_WAIT, "only one");
    assert_eq!(bench.breaker.began(&trial), Change::Closed);
    assert!(
        bench.breaker.admit(bench.now).is_ok(),
        "others may ask again"
    );
    assert_eq!(
        bench.breaker.succeeded(trial),
        Change::Nothing,
        "it is known"
    );
    assert_eq!(bench.fail(), Change::Nothing, "the count begins again");
}

#[test]
fn a_trial_that_fails_opens_it_for_longer_up_to_a_bound() {
    let mut bench = Bench::open();
    let mut waits = Vec::new();
    for _ in 0..6 {
        let Standing::Open(wait) = bench.standing() else {
            panic!("{:?}", bench.standing());
        };
        waits.push(wait.as_secs());
        bench.wait(wait);
        bench.fail();
    }
    assert_eq!(waits, [10, 20, 40, 60, 60, 60]);
}

#[test]
fn a_trial_that_breaks_off_after_its_beginning_opens_it_for_longer() {
    let mut bench = Bench::open();
    bench.wait(10 * SECOND);
    let trial = bench.pass();
    assert_eq!(bench.breaker.began(&trial), Change::Closed);
    let change = bench.breaker.failed(trial, bench.now, None);
    assert_eq!(change, Change::Opened(20 * SECOND));
}

#[test]
fn a_whole_success_makes_the_next_opening_a_short_one() {
    let mut bench = Bench::open();
    bench.wait(10 * SECOND);
    assert_eq!(bench.succeed(), Change::Closed);
    bench.fail();
    bench.fail();
    assert_eq!(bench.fail(), Change::Opened(10 * SECOND));
}

#[test]
fn a_trial_that_nobody_waits_for_leaves_the_place_to_the_next() {
    let mut bench = Bench::open();
    bench.wait(10 * SECOND);
    let trial = bench.pass();
    bench.breaker.abandoned(trial);
    assert_eq!(bench.standing(), Standing::Due);
    assert_eq!(bench.succeed(), Change::Closed);
}

#[test]
fn what_comes_of_requests_from_before_it_opened_is_old_news() {
    let mut bench = Bench::new(settings());
    let (slow_success, slow_failure) = (bench.pass(), bench.pass());
    for _ in 0..3 {
        bench.fail();
    }
    assert_eq!(bench.breaker.succeeded(slow_success), Change::Nothing);
    assert_eq!(bench.standing(), Standing::Open(10 * SECOND));
    bench.wait(10 * SECOND);
    let trial = bench.pass();
    let late = bench.breaker.failed(slow_failure, bench.now, None);
    assert_eq!(
        (late, bench.standing()),
        (Change::Nothing, Standing::Trying)
    );
    assert_eq!(bench.breaker.succeeded(trial), Change::Closed);
}

#[test]
fn it_stays_open_for_as_long_as_the_backend_asks_within_the_bound() {
    let mut bench = Bench::new(settings());
    bench.fail();
    bench.fail();
    assert_eq!(
        bench.fail_for(Some(25 * SECOND)),
        Change::Opened(25 * SECOND)
    );
    bench.wait(25 * SECOND);
    let change = bench.fail_for(Some(3600 * SECOND));
    assert_eq!(change, Change::Opened(60 * SECOND));
    bench.wait(60 * SECOND);
    let change = bench.fail_for(Some(SECOND));
    assert_eq!(
        change,
        Change::Opened(40 * SECOND),
        "never sooner than by itself"
    );
}

#[test]
fn a_backend_that_rests_is_alive_and_may_be_asked() {
    let mut bench = Bench::new(settings());
    bench.fail();
    bench.fail();
    let pass = bench.pass();
    bench.breaker.rests(pass, bench.now, Some(7 * SECOND));
    assert_eq!(bench.standing(), Standing::Resting(7 * SECOND));
    assert_eq!(bench.fail(), Change::Nothing, "the row was broken");
    bench.wait(7 * SECOND);
    assert_eq!(bench.standing(), Standing::Ready);
    let pass = bench.pass();
    bench.breaker.rests(pass, bench.now, Some(3600 * SECOND));
    assert_eq!(bench.standing(), Standing::Resting(60 * SECOND), "bounded");
    bench.succeed();
    assert_eq!(bench.standing(), Standing::Ready, "it does work after all");
}

#[test]
fn a_probe_closes_it_early_and_on_probation() {
    let mut bench = Bench::open();
    assert_eq!(bench.breaker.found_well(), Change::Closed);
    assert_eq!(bench.standing(), Standing::Ready);
    assert_eq!(bench.fail(), Change::Opened(20 * SECOND), "one is enough");
    assert_eq!(bench.breaker.found_well(), Change::Closed);
    assert_eq!(bench.breaker.found_well(), Change::Nothing);
    bench.succeed();
    assert_eq!(bench.fail(), Change::Nothing);
}

#[test]
fn probes_that_fail_open_it_and_keep_it_open() {
    let mut bench = Bench::new(settings());
    let again = 30 * SECOND;
    for _ in 0..2 {
        assert_eq!(
            bench.breaker.found_unwell(bench.now, again),
            Change::Nothing
        );
    }
    let opened = bench.breaker.found_unwell(bench.now, again);
    assert_eq!(opened, Change::Opened(10 * SECOND));
    bench.wait(9 * SECOND);
    bench.breaker.found_unwell(bench.now, again);
    assert_eq!(
        bench.standing(),
        Standing::Open(again),
        "no request must try"
    );
}

#[test]
fn one_that_is_switched_off_never_opens() {
    let mut bench = Bench::new(BreakerSettings::off());
    for _ in 0..100 {
        assert_eq!(bench.fail(), Change::Nothing);
        assert_eq!(
            bench.breaker.found_unwell(bench.now, SECOND),
            Change::Nothing
        );
    }
    assert_eq!(bench.standing(), Standing::Ready);
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let fault = |change: fn(&mut BreakerSettings)| {
        let mut settings = BreakerSettings::default();
        change(&mut settings);
        settings.fault().map(|(key, _)| key)
    };
    assert_eq!(fault(|_| ()), None);
    assert_eq!(fault(|it| it.failures = 0), Some("failures"));
    assert_eq!(fault(|it| it.open = Duration::ZERO), Some("open"));
    assert_eq!(fault(|it| it.longest = SECOND), Some("longest"));
    assert_eq!(fault(|it| it.longest = Duration::MAX), Some("longest"));
}

/// Whatever happens in whatever order, somebody is let through again after the longest time, and
/// never more than one at once while nobody knows how the backend is.
#[test]
fn nobody_is_shut_out_for_good() {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;
    let steps = proptest::collection::vec((0_u8..9, 0_u32..70), 1..80);
    let mut runner = TestRunner::default();
    runner
        .run(&steps, |steps| {
            let mut bench = Bench::new(settings());
            let mut passes = Vec::new();
            for (step, seconds) in steps {
                bench.wait(seconds * SECOND / 4);
                let wait = Some(seconds * SECOND);
                match (step, passes.pop()) {
                    (0 | 1, last) => {
                        passes.extend(last);
                        let was = bench.standing();
                        let admitted = bench.breaker.admit(bench.now);
                        prop_assert_eq!(admitted.is_ok(), was.is_usable());
                        passes.extend(admitted);
                    }
                    (2, Some(pass)) => drop(bench.breaker.failed(pass, bench.now, wait)),
                    (3, Some(pass)) => drop(bench.breaker.failed(pass, bench.now, None)),
                    (4, Some(pass)) => drop(bench.breaker.succeeded(pass)),
                    (5, Some(pass)) => drop(bench.breaker.rests(pass, bench.now, wait)),
                    (6, Some(pass)) => bench.breaker.abandoned(pass),
                    (7, Some(pass)) => {
                        bench.breaker.began(&pass);
                        passes.push(pass);
                    }
                    (_, last) => {
                        passes.extend(last);
                        bench.breaker.found_well();
                    }
                }
                let trials = passes.iter().filter(|pass| {
                    pass.is_trial
                        && pass.epoch == bench.breaker.epoch
                        && bench.standing() == Standing::Trying
                });
                prop_assert!(trials.count() <= 1);
            }
            for pass in passes {
                bench.breaker.abandoned(pass);
            }
            bench.wait(60 * SECOND);
            prop_assert!(bench.standing().is_usable());
            Ok(())
        })
        .unwrap();
}
