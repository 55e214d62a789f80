use super::*;
use crate::testing::site;
use fullstroke_contract::Gauge;
use serde_json::{Value, json};

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// An opportunity above tracks of 80 sectors.
struct TrackPushTrial {
    push: Box<dyn Opportunity>,
    now: Time,
    offered: Vec<u64>,
}

impl TrackPushTrial {
    fn new(keys: Value) -> TrackPushTrial {
        TrackPushTrial {
            push: build(keys.as_object().unwrap(), &site()).unwrap(),
            now: at(0),
            offered: Vec::new(),
        }
    }

    /// Reads tracks 50 and 51 repeatedly for a while, so that the buffer has hits.
    fn warm(keys: Value) -> TrackPushTrial {
        let mut trial = TrackPushTrial::new(keys);
        for ms in 0..12 {
            trial.now = at(100 * ms);
            trial.read(50 * 80 + ms * 24 % 72, 8);
        }
        trial
    }

    /// Sends a request. Returns true if the request has to wait.
    fn request(&mut self, operation: Operation, start: u64, sectors: u64) -> bool {
        let request = Request {
            operation,
            extent: Extent::new(start, sectors),
            ..Request::default()
        };
        let waits = self.push.arrived(
            OpportunityView {
                now: self.now,
                inside: 1,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            },
            &request,
        );
        self.look();
        waits
    }

    fn read(&mut self, start: u64, sectors: u64) -> bool {
        self.request(Operation::Read, start, sectors)
    }

    fn look(&mut self) {
        if self.push.next_look() <= self.now {
            let offered = &mut self.offered;
            self.push.look(
                OpportunityView {
                    now: self.now,
                    inside: 1,
                    arm: Gauge::default(),
                    standing: 0,
                    cleaning: 0,
                },
                &mut |signal| match signal {
                    Signal::Push(track) => offered.push(track.start.0 / 80),
                    other => panic!("{other:?}"),
                },
            );
        }
    }
}

fn four(when: &str) -> Value {
    json!({ "tracks": 4, "transfer_window": 2, "when": when })
}

#[test]
fn a_track_in_use_is_offered_as_it_comes_near_its_end() {
    let mut trial = TrackPushTrial::warm(four("window"));
    // Two reads of track 3, not in order; then others come.
    trial.read(3 * 80 + 40, 8);
    trial.read(3 * 80 + 8, 8);
    trial.read(10 * 80, 8);
    assert_eq!(
        trial.offered,
        [50],
        "with three of four, the oldest goes before two others come"
    );
    trial.read(11 * 80, 8);
    assert_eq!(trial.offered, [50, 3]);
    trial.read(12 * 80, 8);
    trial.read(13 * 80, 8);
    assert_eq!(trial.offered, [50, 3], "10 and 11 were read once");
}

#[test]
fn what_is_read_in_order_is_not_offered() {
    let mut trial = TrackPushTrial::warm(four("window"));
    for track in 3..9 {
        (0..10).for_each(|step| _ = trial.read(track * 80 + 8 * step, 8));
    }
    // Long reads across tracks give the same result.
    (0..6).for_each(|step| _ = trial.read(20 * 80 + 60 * step, 60));
    assert_eq!(trial.offered, [50]);
}

#[test]
fn a_track_is_given_up_once_it_was_fetched_and_fetching_is_no_use_of_it() {
    let mut trial = TrackPushTrial::warm(four("window"));
    for track in 3..5 {
        trial.read(track * 80 + 40, 8);
        trial.read(track * 80 + 8, 8);
    }
    assert_eq!(trial.offered, [50]);
    // Fetched in two pieces.
    trial.read(50 * 80, 48);
    trial.read(50 * 80 + 48, 32);
    trial.read(5 * 80, 8);
    assert_eq!(
        trial.offered,
        [50, 3],
        "three are there, and the oldest stands in the window"
    );
    trial.read(50 * 80, 8);
    trial.read(3 * 80 + 1, 72);
    trial.read(6 * 80, 8);
    assert_eq!(
        trial.offered,
        [50, 3, 4],
        "50 came anew, and has had no hit"
    );
}

#[test]
fn without_hits_of_late_nothing_is_offered() {
    let mut trial = TrackPushTrial::new(four("window"));
    trial.read(3 * 80 + 40, 8);
    trial.read(3 * 80 + 8, 8);
    (10..20).for_each(|track| _ = trial.read(track * 80, 8));
    assert!(trial.offered.is_empty());
    let mut trial = TrackPushTrial::warm(four("window"));
    trial.now = at(30_000);
    (10..20).for_each(|track| _ = trial.read(track * 80, 8));
    assert!(trial.offered.is_empty(), "the hits are too long ago");
}

#[test]
fn what_is_written_is_not_offered() {
    let mut trial = TrackPushTrial::warm(four("window"));
    trial.request(Operation::Write, 50 * 80 + 76, 8);
    (10..20).for_each(|track| _ = trial.read(track * 80, 8));
    assert!(trial.offered.is_empty());
}

#[test]
fn at_eviction_it_is_offered_when_another_has_its_place() {
    let mut trial = TrackPushTrial::warm(four("eviction"));
    (10..13).for_each(|track| _ = trial.read(track * 80, 8));
    assert!(trial.offered.is_empty());
    assert!(!trial.read(13 * 80, 8), "nothing waits");
    assert_eq!(trial.offered, [50]);
}

#[test]
fn a_request_that_would_evict_waits_until_the_track_was_fetched() {
    let mut trial = TrackPushTrial::warm(four("blocking"));
    (10..13).for_each(|track| assert!(!trial.read(track * 80, 8)));
    assert!(trial.read(13 * 80, 8));
    assert!(trial.read(14 * 80, 8), "others wait as well");
    assert!(trial.push.holding());
    assert!(
        !trial.read(50 * 80, 80),
        "what fetches the track does not wait"
    );
    assert!(!trial.push.holding());
    assert_eq!(trial.offered, [50]);
}

#[test]
fn nobody_waits_for_long_where_nobody_fetches() {
    let mut trial = TrackPushTrial::warm(four("blocking"));
    (10..14).for_each(|track| _ = trial.read(track * 80, 8));
    assert_eq!(
        trial.push.next_look(),
        trial.now + Duration::from_millis(100)
    );
    trial.now = trial.push.next_look();
    trial.look();
    assert!(!trial.push.holding());
    assert_eq!(trial.push.next_look(), Time::NEVER);
}

#[test]
fn what_came_nearest_to_the_thresholds_is_told() {
    let mut trial = TrackPushTrial::warm(json!({ "tracks": 4, "transfer_window": 2, "hits": 40 }));
    (10..14).for_each(|track| _ = trial.read(track * 80, 8));
    assert!(trial.offered.is_empty());
    let readings = trial.push.readings();
    let of = |name: &str| readings.iter().find(|reading| reading.0 == name).unwrap().1;
    assert_eq!(
        (of("track_hits_max"), of("track_hit_share_max")),
        (11.0, 0.9)
    );
}

#[test]
fn thresholds_that_never_hold_are_refused() {
    for (keys, key) in [
        (json!({ "tracks": 0 }), "tracks"),
        (
            json!({ "tracks": 4, "transfer_window": 5 }),
            "transfer_window",
        ),
        (json!({ "transfer_window": 0 }), "transfer_window"),
        (json!({ "hit_ratio": 1.5 }), "hit_ratio"),
        (json!({ "hit_ratio": 0.0 }), "hit_ratio"),
        (json!({ "span": "1500ms" }), "span"),
        (json!({ "when": "later" }), "when"),
        (json!({ "block": "0s" }), "block"),
        (json!({ "hits": 81 }), "hits"),
    ] {
        let error = build(keys.as_object().unwrap(), &site()).err().unwrap();
        assert_eq!(error.key, key, "{keys}");
    }
    let nowhere = OpportunitySite {
        tracks: Err(fullstroke_tracks::UnknownTracks::BehindController),
        ..site()
    };
    let error = build(&Keys::new(), &nowhere).err().unwrap();
    assert!(
        error.to_string().contains("there are no tracks to offer"),
        "{error}"
    );
}
