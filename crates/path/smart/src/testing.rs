//! A small array for tests, and loads for the array.

use crate::SmartArray;
use crate::config::SmartSettings;
use crate::discipline::XorDiscipline;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::{DriveConfig, DriveModel};
use fullstroke_link::{DeliveredTransfer, Link, LinkStatistics, LinkTransfer, Payload, Station};
use fullstroke_units::{Duration, Time};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A drive of 1,400 sectors, 10,000 rpm, two surfaces.
pub(crate) fn model() -> DriveModel {
    let config: DriveConfig = serde_json::from_value(json!({
        "title": "a small drive",
        "capacity_sectors": 1400,
        "rpm": 10_000.0,
        "surfaces": 2,
        "zones": [
            { "first_cylinder": 0, "last_cylinder": 9, "sectors_per_track": 40, "track_skew": 3, "cylinder_skew": 5 },
            { "first_cylinder": 10, "last_cylinder": 19, "sectors_per_track": 30, "track_skew": 3, "cylinder_skew": 5 },
        ],
        "seek": { "form": "points", "points": [[1, 0.8], [19, 2.6]] },
        "head_switch_ms": 0.5,
        "write_settle_ms": 0.1,
        "command_overhead_ms": 0.2,
        "sources": {},
    }))
    .unwrap();
    DriveModel::new(config).unwrap()
}

/// Returns an array of four such drives with chunks and segments of 8 sectors.
pub(crate) fn array(more: &Value) -> SmartArray {
    SmartArray::new(&keys(more), &vec![model(); 4], link()).unwrap()
}

/// Returns the same array with another discipline.
pub(crate) fn obeying(more: &Value, discipline: impl Fn() -> Box<dyn XorDiscipline>) -> SmartArray {
    let settings = SmartSettings::new(&keys(more)).unwrap();
    SmartArray::obeying(&settings, &vec![model(); 4], link(), || Ok(discipline())).unwrap()
}

fn keys(more: &Value) -> Keys {
    let mut keys: Keys =
        serde_json::from_value(json!({ "chunk": "4KiB", "segment": "4KiB", "segments": 2 }))
            .unwrap();
    keys.extend(serde_json::from_value::<Keys>(more.clone()).unwrap());
    keys
}

/// Returns the simplest link. Each sender has a separate line to each receiver, and only data take
/// time.
pub(crate) fn link() -> (&'static str, Box<dyn Link>) {
    link_of(Duration::from_nanos(10))
}

/// Returns the same link with `byte` as the time of one byte.
pub(crate) fn link_of(byte: Duration) -> (&'static str, Box<dyn Link>) {
    let lines = LinkLines {
        byte,
        free: vec![Time::ZERO; 5],
        under_way: BTreeMap::new(),
        offers: 0,
    };
    ("lines", Box::new(lines))
}

struct LinkLines {
    byte: Duration,
    /// Time when the line of each sender is free.
    free: Vec<Time>,
    /// Transfers in flight, by arrival and number.
    under_way: BTreeMap<(Time, u64), DeliveredTransfer>,
    offers: u64,
}

impl Link for LinkLines {
    fn offer(
        &mut self,
        now: Time,
        LinkTransfer {
            token,
            from: Station(from),
            payload,
            ..
        }: LinkTransfer,
    ) {
        let bytes = if let Payload::Data(bytes) = payload {
            bytes.0
        } else {
            0
        };
        let began = self.free[from as usize].max(now);
        let finished = began + self.byte * bytes;
        self.free[from as usize] = finished;
        let delivered = DeliveredTransfer {
            token,
            offered: now,
            began,
            finished,
        };
        self.under_way.insert((finished, self.offers), delivered);
        self.offers += 1;
    }

    fn next_wake(&self) -> Time {
        self.under_way
            .first_key_value()
            .map_or(Time::NEVER, |((finished, _), _)| *finished)
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<DeliveredTransfer>) {
        while self.next_wake() <= now
            && let Some((_, first)) = self.under_way.pop_first()
        {
            delivered.push(first);
        }
    }

    fn statistics(&self) -> LinkStatistics {
        LinkStatistics::default()
    }
}

/// Time, address, sectors, and true for a write.
pub(crate) type Arrival = (u64, u64, u64, bool);

/// Arrivals with at most `gap` nanoseconds between them.
pub(crate) fn arrivals(gap: u64) -> impl Strategy<Value = Vec<Arrival>> {
    let one = (0..gap, 0u64..4000, 1u64..40, prop::bool::weighted(0.8));
    prop::collection::vec(one, 1..80).prop_map(|gaps| {
        let mut now = 0;
        let at = |(gap, lbn, sectors, write)| {
            now += gap;
            (now, lbn, sectors, write)
        };
        gaps.into_iter().map(at).collect()
    })
}

pub(crate) fn request(id: u64, lbn: u64, sectors: u64, write: bool) -> Request {
    let operation = if write {
        Operation::Write
    } else {
        Operation::Read
    };
    Request {
        id: RequestId(id),
        operation,
        extent: Extent::new(lbn, sectors),
        ..Request::default()
    }
}

pub(crate) fn completions(out: &mut Effects) -> Vec<Completion> {
    let completion = |effect| match effect {
        Effect::Complete { completion, .. } => completion,
        other => panic!("an array only completes: {other:?}"),
    };
    out.drain().map(completion).collect()
}

/// Runs arrivals through an array. Each wake-up comes `late` ns after the due time.
pub(crate) fn run(array: &mut SmartArray, arrivals: &[Arrival], late: u64) -> Vec<Completion> {
    let mut out = Effects::new();
    let mut done = Vec::new();
    let late = Duration::from_nanos(late);
    for (id, &(at, lbn, sectors, write)) in arrivals.iter().enumerate() {
        let at = Time::from_nanos(at);
        while array.next_wake().at().saturating_add(late) < at {
            array.wake(
                array.next_wake().at().saturating_add(late),
                &mut NodeContext::alone(&mut out),
            );
            done.extend(completions(&mut out));
        }
        array.submit(
            at,
            Port::FIRST,
            request(id as u64, lbn, sectors, write),
            &mut NodeContext::alone(&mut out),
        );
        done.extend(completions(&mut out));
    }
    while array.next_wake().at() != Time::NEVER {
        array.wake(
            array.next_wake().at().saturating_add(late),
            &mut NodeContext::alone(&mut out),
        );
        done.extend(completions(&mut out));
    }
    done
}
