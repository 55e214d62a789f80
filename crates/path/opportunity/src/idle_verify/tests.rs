use super::*;
use crate::OpportunityLayer;
use crate::testing::site;
use fullstroke_contract::{
    Breakdown, Completion, Counters, Effect, Effects, Gauge, Node, NodeContext, Port, RequestId,
    Signal, Wake,
};
use fullstroke_units::SECTOR_BYTES;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SECTORS: usize = 64;

/// Fault of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteFault {
    None,
    Lost,
    Torn,
    Misdirected,
}

/// A watch above a disk with faulty writes. The disk knows the version in each sector.
struct VerifyTrial {
    watch: OpportunityLayer,
    out: Effects,
    now: Time,
    device: BTreeMap<(Time, u64), (Request, Vec<u32>)>,
    issued: u64,
    service_us: Vec<u64>,
    faults: Vec<WriteFault>,
    writes: usize,
    /// For each sector, the intended version, the last sent version, and the version on the disk.
    meant: Vec<u32>,
    sent: Vec<u32>,
    holds: Vec<u32>,
    /// True for sectors struck by a write to another address. Only a write to the sector repairs
    /// the sector.
    struck: Vec<bool>,
    /// Writes in flight from above, by number.
    writing: BTreeMap<u64, Extent>,
    done: u64,
}

impl VerifyTrial {
    fn new(keys: Value, faults: Vec<WriteFault>, service_us: Vec<u64>) -> VerifyTrial {
        VerifyTrial {
            watch: OpportunityLayer::new(vec![build(keys.as_object().unwrap(), &site()).unwrap()]),
            out: Effects::new(),
            now: Time::ZERO,
            device: BTreeMap::new(),
            issued: 0,
            service_us,
            faults,
            writes: 0,
            meant: vec![0; SECTORS],
            sent: vec![0; SECTORS],
            holds: vec![0; SECTORS],
            struck: vec![false; SECTORS],
            writing: BTreeMap::new(),
            done: 0,
        }
    }

    fn collect(&mut self) {
        for effect in std::mem::take(&mut self.out).drain() {
            match effect {
                Effect::Issue { request, .. } => {
                    let service = self.service_us[self.issued as usize % self.service_us.len()];
                    let carried = sectors(request.extent)
                        .map(|at| self.meant[at])
                        .collect::<Vec<_>>();
                    if request.operation == Operation::Write {
                        for at in sectors(request.extent) {
                            assert!(
                                self.meant[at] >= self.sent[at],
                                "sector {at}: older over newer"
                            );
                            self.sent[at] = self.meant[at];
                        }
                    }
                    let ends = self.now + Duration::from_micros(service);
                    self.device.insert((ends, self.issued), (request, carried));
                    self.issued += 1;
                }
                Effect::Complete { completion, .. } => {
                    self.done += 1;
                    self.writing.remove(&completion.id.0);
                    assert_eq!(
                        completion.breakdown.response(),
                        completion.finished.since(completion.submitted)
                    );
                }
                Effect::Notice { .. } => {}
            }
        }
    }

    /// Carries out a write, possibly with a fault.
    fn apply(&mut self, extent: Extent, carried: &[u32]) {
        // After the listed faults all writes are good. Two writes that strike each other in turns
        // would never end.
        let fault = self
            .faults
            .get(self.writes)
            .copied()
            .unwrap_or(WriteFault::None);
        self.writes += 1;
        let whole = match fault {
            WriteFault::None => carried.len(),
            WriteFault::Torn => carried.len() / 2,
            WriteFault::Lost | WriteFault::Misdirected => 0,
        };
        for (at, version) in sectors(extent).zip(carried).take(whole) {
            self.holds[at] = *version;
        }
        sectors(extent).for_each(|at| self.struck[at] = false);
        if fault == WriteFault::Misdirected {
            for at in sectors(extent) {
                let elsewhere = (at + 21) % SECTORS;
                (self.holds[elsewhere], self.struck[elsewhere]) = (u32::MAX, true);
            }
        }
    }

    fn submit(&mut self, id: u64, operation: Operation, extent: Extent) {
        let overlaps = |other: &Extent| other.start < extent.end() && extent.start < other.end();
        if operation == Operation::Write {
            // A page cache writes a page once at a time.
            if self.writing.values().any(overlaps) {
                return;
            }
            self.writing.insert(id, extent);
            sectors(extent).for_each(|at| self.meant[at] = id as u32 + 1);
        }
        let request = Request {
            id: RequestId(id),
            operation,
            extent,
            ..Request::default()
        };
        self.watch.submit(
            self.now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect();
    }

    fn run(&mut self, until: Time) {
        loop {
            let ends = self
                .device
                .first_key_value()
                .map_or(Time::NEVER, |((at, _), _)| *at);
            let wakes = self.watch.next_wake().at();
            if ends.min(wakes) > until || ends.min(wakes) == Time::NEVER {
                self.now = self.now.max(until);
                return;
            }
            self.now = ends.min(wakes).max(self.now);
            if wakes < ends {
                self.watch
                    .wake(self.now, &mut NodeContext::alone(&mut self.out));
            } else if let Some((_, (request, carried))) = self.device.pop_first() {
                let Request { id, extent, .. } = request;
                let mut status = RequestStatus::Done;
                if request.operation == Operation::Write {
                    self.apply(extent, &carried);
                } else if request.hints.verify
                    && sectors(extent).any(|at| self.holds[at] != self.sent[at])
                {
                    status = RequestStatus::Differs;
                }
                let breakdown = Breakdown::default();
                let completion = Completion {
                    id,
                    submitted: self.now,
                    finished: self.now,
                    status,
                    breakdown,
                };
                self.watch.completed(
                    self.now,
                    Port::FIRST,
                    completion,
                    &mut NodeContext::alone(&mut self.out),
                );
            }
            self.collect();
        }
    }

    fn pass(&mut self, ms: u64) {
        self.run(self.now + Duration::from_millis(ms));
    }

    fn reading(&self, name: &str) -> f64 {
        let mut counters = Counters::default();
        self.watch.count(self.now, &mut counters);
        let readings = counters.layers.iter().flat_map(|layer| &layer.readings);
        readings
            .filter(|reading| reading.name == name)
            .map(|reading| reading.value)
            .sum()
    }

    /// Returns a reading in sectors.
    fn sectors_of(&self, name: &str) -> u64 {
        (self.reading(name) * 1e6 / SECTOR_BYTES as f64).round() as u64
    }
}

fn sectors(extent: Extent) -> std::ops::Range<usize> {
    extent.start.0 as usize..extent.end().0 as usize
}

fn write(trial: &mut VerifyTrial, id: u64, start: u64, sectors: u64) {
    trial.submit(id, Operation::Write, Extent::new(start, sectors));
}

#[test]
fn what_was_written_is_read_again_when_nothing_has_come_for_a_time() {
    let mut trial = VerifyTrial::new(json!({}), vec![WriteFault::None], vec![1000]);
    write(&mut trial, 0, 0, 8);
    trial.pass(100);
    assert_eq!(trial.issued, 1);
    trial.pass(100);
    assert_eq!(
        (trial.issued, trial.sectors_of("verify_verified_mb")),
        (2, 8)
    );
    assert_eq!(
        trial.watch.next_wake(),
        Wake::Chore(Time::NEVER),
        "nothing is left to verify"
    );
    assert_eq!(trial.done, 1, "nobody above hears of it");
}

#[test]
fn what_differs_is_written_again_until_it_does_not() {
    for fault in [WriteFault::Lost, WriteFault::Torn, WriteFault::Misdirected] {
        let faults = vec![fault, fault, WriteFault::None, WriteFault::None];
        let mut trial = VerifyTrial::new(json!({}), faults, vec![1000]);
        write(&mut trial, 0, 0, 8);
        trial.pass(1000);
        assert_eq!(trial.holds[..8], [1; 8], "{fault:?}");
        assert_eq!(trial.reading("verify_found"), 2.0);
        assert_eq!(
            (
                trial.sectors_of("verify_mended_mb"),
                trial.sectors_of("verify_verified_mb")
            ),
            (16, 8)
        );
    }
}

#[test]
fn a_newer_version_takes_the_place_of_the_older_one() {
    let mut trial = VerifyTrial::new(
        json!({}),
        vec![WriteFault::Lost, WriteFault::None],
        vec![1000],
    );
    write(&mut trial, 0, 0, 8);
    trial.pass(10);
    write(&mut trial, 1, 4, 8);
    trial.pass(1000);
    assert_eq!(trial.holds[..12], [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
    assert_eq!(trial.sectors_of("verify_overwritten_mb"), 4);
}

/// The second write lands on the first, which was verified already.
#[test]
fn what_a_misdirected_write_has_struck_is_found_once_something_differs() {
    for (doubt, holds, doubted) in [("never", u32::MAX, 0), ("found", 1, 16), ("unseen", 1, 16)] {
        let faults = vec![WriteFault::None, WriteFault::Misdirected];
        let mut trial = VerifyTrial::new(json!({ "doubt": doubt }), faults, vec![1000]);
        write(&mut trial, 0, 0, 8);
        trial.pass(1000);
        write(&mut trial, 1, SECTORS as u64 - 21, 8);
        trial.pass(1000);
        assert_eq!(trial.holds[..8], [holds; 8], "{doubt}");
        assert_eq!(trial.holds[SECTORS - 21..][..8], [2; 8], "{doubt}");
        assert_eq!(
            (
                trial.sectors_of("verify_doubted_mb"),
                trial.sectors_of("verify_verified_mb")
            ),
            (doubted, 16)
        );
        assert_eq!(
            trial.watch.next_wake(),
            Wake::Chore(Time::NEVER),
            "{doubt}: nothing is left to verify"
        );
    }
}

/// The third write comes before a verification of the second, so the second is never read.
#[test]
fn what_was_struck_by_a_write_that_nobody_has_seen_is_found_only_if_such_make_doubt() {
    for (doubt, holds) in [("found", u32::MAX), ("unseen", 1)] {
        let faults = vec![WriteFault::None, WriteFault::Misdirected];
        let mut trial = VerifyTrial::new(json!({ "doubt": doubt }), faults, vec![1000]);
        write(&mut trial, 0, 0, 8);
        trial.pass(1000);
        write(&mut trial, 1, SECTORS as u64 - 21, 8);
        trial.pass(10);
        write(&mut trial, 2, SECTORS as u64 - 21, 8);
        trial.pass(1000);
        assert_eq!(trial.holds[..8], [holds; 8], "{doubt}");
    }
}

#[test]
fn what_was_verified_is_kept_as_long_as_there_is_room() {
    let faults = vec![
        WriteFault::None,
        WriteFault::None,
        WriteFault::None,
        WriteFault::Misdirected,
    ];
    let mut trial = VerifyTrial::new(
        json!({ "keep": "12KiB", "at_a_time": "4KiB" }),
        faults,
        vec![1000],
    );
    for (id, start) in [(0, 0), (1, 8), (2, 16), (3, SECTORS as u64 - 13)] {
        write(&mut trial, id, start, 8);
        trial.pass(1000);
    }
    assert_eq!(
        trial.holds[8..16],
        [2; 8],
        "the strike is found, for its place was kept"
    );
    assert_eq!(
        trial.sectors_of("verify_doubted_mb"),
        24,
        "all but the first, which has made room"
    );
}

#[test]
fn when_no_more_can_be_kept_the_oldest_are_forgotten_or_verified_first() {
    let keys =
        |when_full: &str| json!({ "keep": "8KiB", "at_a_time": "4KiB", "when_full": when_full });
    let mut trial = VerifyTrial::new(keys("forget"), vec![WriteFault::None], vec![1000]);
    (0..6).for_each(|step| {
        write(&mut trial, step, 8 * step, 8);
        trial.pass(2);
    });
    assert_eq!(
        (trial.sectors_of("verify_forgotten_mb"), trial.issued),
        (32, 6)
    );
    trial.pass(1000);
    assert_eq!(trial.sectors_of("verify_verified_mb"), 16);
    let mut trial = VerifyTrial::new(keys("verify"), vec![WriteFault::None], vec![1000]);
    (0..6).for_each(|step| {
        write(&mut trial, step, 8 * step, 8);
        trial.pass(2);
    });
    trial.pass(50);
    assert_eq!(
        trial.sectors_of("verify_verified_mb"),
        32,
        "without an idle period"
    );
    trial.pass(1000);
    assert_eq!(trial.sectors_of("verify_verified_mb"), 48);
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    for (keys, key) in [
        (json!({ "wait": "0s" }), "wait"),
        (json!({ "at_a_time": "100B" }), "at_a_time"),
        (json!({ "keep": "0B" }), "keep"),
        (json!({ "keep": "4KiB" }), "at_a_time"),
        (json!({ "when_full": "wait" }), "when_full"),
        (json!({ "doubt": "always" }), "doubt"),
    ] {
        assert_eq!(
            build(keys.as_object().unwrap(), &site()).err().unwrap().key,
            key,
            "{keys}"
        );
    }
    let unverifiable = OpportunitySite {
        unverifiable: Some("there are copies"),
        ..site()
    };
    assert!(
        build(&Keys::new(), &unverifiable)
            .err()
            .unwrap()
            .to_string()
            .contains("there are copies")
    );
}

fn fault() -> impl Strategy<Value = WriteFault> {
    prop_oneof![
        4 => Just(WriteFault::None), 1 => Just(WriteFault::Lost), 1 => Just(WriteFault::Torn), 1 => Just(WriteFault::Misdirected),
    ]
}

proptest! {
    /// Checks a random sequence of requests. No older version is written over a newer one. Each
    /// request is answered once. All written data are verified, overwritten, forgotten or left.
    ///
    /// If nothing was forgotten, each bad write is found and repaired. Sectors struck by
    /// misdirected writes are also repaired under two conditions. There is room for all data ever
    /// written, and each write was verified or unverified writes make doubt.
    #[test]
    fn each_verified_write_that_is_bad_is_found_and_none_is_made_older(
        steps in prop::collection::vec((any::<bool>(), 0u64..56, 1u64..8, 0u64..400), 1..60),
        faults in prop::collection::vec(fault(), 1..40),
        service_us in prop::collection::vec(1u64..30_000, 1..6),
        keep in prop_oneof![4u64..64, SECTORS as u64..100],
        at_a_time in 1u64..4,
        verify in any::<bool>(),
        doubt in prop::sample::select(vec!["never", "found", "unseen"]),
    ) {
        let when_full = if verify { "verify" } else { "forget" };
        let keys = json!({
            "keep": keep * 512, "at_a_time": at_a_time * 512, "when_full": when_full, "wait": "50ms",
            "doubt": doubt,
        });
        let mut trial = VerifyTrial::new(keys, faults, service_us);
        let mut submitted = 0;
        for (id, &(is_write, start, sectors, gap_ms)) in (0u64..).zip(&steps) {
            let operation = if is_write { Operation::Write } else { Operation::Read };
            let before = trial.writing.len();
            trial.submit(id, operation, Extent::new(start, sectors));
            submitted += u64::from(!is_write || trial.writing.len() > before);
            trial.pass(gap_ms);
        }
        (0..2000).for_each(|_| trial.pass(100));
        prop_assert_eq!(trial.done, submitted);
        let of = |name: &str| trial.sectors_of(name);
        let ends = of("verify_verified_mb") + of("verify_overwritten_mb") + of("verify_forgotten_mb");
        prop_assert_eq!((of("verify_written_mb"), of("verify_left_mb")), (ends, 0));
        if verify {
            prop_assert_eq!(of("verify_forgotten_mb"), 0);
        }
        if of("verify_forgotten_mb") == 0 {
            let seen = of("verify_overwritten_mb") == 0;
            let all = keep >= SECTORS as u64 && (doubt == "unseen" || doubt == "found" && seen);
            let known = |at: &usize| if all { trial.meant[*at] > 0 } else { !trial.struck[*at] };
            for at in (0..SECTORS).filter(known) {
                prop_assert_eq!(trial.holds[at], trial.meant[at], "sector {}", at);
            }
        }
    }
}

/// The opportunity sends no signal.
#[test]
fn it_sends_no_signals() {
    let mut verify = build(&Keys::new(), &site()).unwrap();
    let seen = OpportunityView {
        now: Time::ZERO + Duration::from_secs(1),
        inside: 0,
        arm: Gauge::default(),
        standing: 0,
        cleaning: 0,
    };
    verify.look(seen, &mut |signal: Signal| panic!("{signal:?}"));
}
