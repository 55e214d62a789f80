use super::*;
use crate::testing::site;
use fullstroke_contract::Gauge;
use serde_json::{Value, json};

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// A scrub above members with a fixed service time and given answers. The members may stand.
struct ScrubTrial {
    scrub: Box<dyn Opportunity>,
    service: Duration,
    /// Reads in flight, with their ends.
    reads: Vec<(Time, OwnRequest)>,
    /// All begun reads, with their begins in ms.
    begun: Vec<(u64, OwnRequest)>,
    /// Addresses at which members differ.
    wrong: Vec<u64>,
    /// End times of the requests inside.
    inside: Vec<Time>,
    standing: u32,
}

impl ScrubTrial {
    fn new(keys: Value, depth: u64) -> ScrubTrial {
        let site = OpportunitySite {
            members: Ok(Sectors(depth)),
            ..site()
        };
        ScrubTrial {
            scrub: build(keys.as_object().unwrap(), &site).unwrap(),
            service: Duration::from_millis(10),
            reads: Vec::new(),
            begun: Vec::new(),
            wrong: Vec::new(),
            inside: Vec::new(),
            standing: 0,
        }
    }

    fn seen(&self, now: Time) -> OpportunityView {
        OpportunityView {
            now,
            inside: self.inside.len() as u32,
            arm: Gauge::default(),
            standing: self.standing,
            cleaning: 0,
        }
    }

    /// Runs the clock. Requests come at `requests` in ms and stay 30 ms.
    fn run(&mut self, ms: std::ops::Range<u64>, requests: &[u64]) {
        for now in ms {
            let request = Request::default();
            while let Some(place) = self.inside.iter().position(|leaves| *leaves <= at(now)) {
                self.inside.remove(place);
                self.scrub
                    .left(self.seen(at(now)), &request, RequestStatus::Done);
            }
            while let Some(place) = self.reads.iter().position(|(ends, _)| *ends <= at(now)) {
                let (_, own) = self.reads.remove(place);
                let within = |lbn: &u64| (own.extent.start.0..own.extent.end().0).contains(lbn);
                let status = if self.wrong.iter().any(within) {
                    RequestStatus::Differs
                } else {
                    RequestStatus::Done
                };
                self.scrub.served(self.seen(at(now)), &own, status);
            }
            if requests.contains(&now) {
                self.inside.push(at(now + 30));
                assert!(
                    !self.scrub.arrived(self.seen(at(now)), &request),
                    "nobody is held"
                );
            }
            // Reads follow each other after one nanosecond, which counts as no time here.
            let then = at(now) + GAP;
            if self.scrub.next_look() <= then {
                self.scrub
                    .look(self.seen(then), &mut |signal| panic!("{signal:?}"));
                while let Some(own) = self.scrub.next_request(self.seen(then)) {
                    assert!(own.members && own.verify && own.operation == Operation::Read);
                    self.reads.push((at(now) + self.service, own));
                    self.begun.push((now, own));
                }
            }
        }
    }

    fn times(&self) -> Vec<u64> {
        self.begun.iter().map(|(ms, _)| *ms).collect()
    }

    fn reading(&self, name: &str) -> Option<f64> {
        self.scrub
            .readings()
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

fn keys(more: Value) -> Value {
    let mut keys = json!({ "wait": "50ms", "at_a_time": "4KiB" });
    keys.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    keys
}

#[test]
fn a_quiet_array_is_read_from_end_to_end_once() {
    let mut trial = ScrubTrial::new(keys(json!({})), 36);
    trial.run(0..1000, &[]);
    let places: Vec<_> = trial
        .begun
        .iter()
        .map(|(ms, own)| (*ms, own.extent.start.0, own.extent.sectors.0))
        .collect();
    assert_eq!(
        places,
        [
            (50, 0, 8),
            (60, 8, 8),
            (70, 16, 8),
            (80, 24, 8),
            (90, 32, 4)
        ]
    );
    assert_eq!(trial.reading("scrub_passes"), Some(1.0));
    let hours = trial.reading("scrub_pass_h").unwrap();
    assert!((hours * 3600.0 - 0.05).abs() < 1e-9, "{hours}");
}

#[test]
fn it_pauses_for_whoever_comes_until_nothing_has_come_for_a_time() {
    let mut trial = ScrubTrial::new(keys(json!({})), 8000);
    trial.run(0..300, &[75, 140]);
    assert_eq!(
        trial.times(),
        [
            50, 60, 70, 125, 135, 190, 200, 210, 220, 230, 240, 250, 260, 270, 280, 290
        ]
    );
    assert_eq!(
        (
            trial.reading("scrub_met"),
            trial.reading("scrub_met_ms_mean")
        ),
        (Some(2.0), Some(5.0))
    );
}

#[test]
fn passes_begin_so_far_apart_and_reads_come_at_a_rate() {
    let mut trial = ScrubTrial::new(keys(json!({ "every": "200ms" })), 16);
    trial.run(0..500, &[]);
    assert_eq!(trial.times(), [50, 60, 250, 260, 450, 460]);
    let mut trial = ScrubTrial::new(keys(json!({ "rate": 40960 })), 8000);
    trial.run(0..400, &[]);
    assert_eq!(trial.times(), [50, 150, 250, 350]);
}

#[test]
fn what_is_wrong_is_counted() {
    let mut trial = ScrubTrial::new(keys(json!({})), 80);
    trial.wrong = vec![3, 21, 22];
    trial.run(0..1000, &[]);
    assert_eq!(trial.reading("scrub_found"), Some(2.0));
    assert_eq!(trial.reading("scrub_read_mb"), Some(80.0 * 512.0 / 1e6));
}

#[test]
fn drives_that_stand_are_left_alone_until_somebody_starts_them() {
    let mut trial = ScrubTrial::new(keys(json!({})), 8000);
    trial.standing = 1;
    trial.run(0..200, &[]);
    assert!(trial.begun.is_empty());
    trial.standing = 0;
    trial.run(200..300, &[210]);
    assert_eq!(trial.times(), [260, 270, 280, 290]);
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    for (keys, key) in [
        (json!({ "wait": "0s" }), "wait"),
        (json!({ "at_a_time": "100B" }), "at_a_time"),
        (json!({ "rate": 0 }), "rate"),
        (json!({ "every": "0s" }), "every"),
    ] {
        assert_eq!(
            build(keys.as_object().unwrap(), &site()).err().unwrap().key,
            key,
            "{keys}"
        );
    }
    let closed = OpportunitySite {
        members: Err("a controller stands before them"),
        ..site()
    };
    assert!(
        build(&Keys::new(), &closed)
            .err()
            .unwrap()
            .to_string()
            .contains("a controller")
    );
}
