use super::*;
use fullstroke_contract::{
    Breakdown, Effect, Extent, Hints, NodeContext, Port, RequestId, RequestStatus,
};
use serde_json::{Value, json};

const CAPACITY: Sectors = Sectors(1 << 20);

/// A controller above an array that answers on demand.
struct ControllerBench {
    controller: Controller,
    out: Effects,
    asked: Vec<(Time, Request)>,
    completed: Vec<Completion>,
    next: u64,
}

fn at(microseconds: u64) -> Time {
    Time::ZERO + Duration::from_micros(microseconds)
}

impl ControllerBench {
    fn new(keys: Value) -> ControllerBench {
        let config: ControllerConfig = serde_json::from_value(keys).unwrap();
        ControllerBench {
            controller: Controller::new(&config, CAPACITY, None).unwrap(),
            out: Effects::new(),
            asked: Vec::new(),
            completed: Vec::new(),
            next: 0,
        }
    }

    fn collect(&mut self, now: Time) {
        for effect in self.out.drain() {
            match effect {
                Effect::Issue { request, .. } => self.asked.push((now, request)),
                Effect::Complete { completion, .. } => {
                    let span = completion.finished.since(completion.submitted);
                    assert_eq!(completion.breakdown.response(), span, "{completion:?}");
                    self.completed.push(completion);
                }
                Effect::Notice { .. } => {}
            }
        }
    }

    /// Carries out the due steps, and then submits a request.
    fn submit(
        &mut self,
        microseconds: u64,
        operation: Operation,
        start: u64,
        sectors: u64,
    ) -> RequestId {
        self.submit_with(microseconds, operation, start, sectors, Hints::default())
    }

    fn submit_with(
        &mut self,
        microseconds: u64,
        operation: Operation,
        start: u64,
        sectors: u64,
        hints: Hints,
    ) -> RequestId {
        self.until(microseconds);
        self.next += 1;
        let id = RequestId(self.next);
        let extent = Extent::new(start, sectors);
        let request = Request {
            id,
            operation,
            extent,
            hints,
            origin: self.next,
            ..Request::default()
        };
        self.controller.submit(
            at(microseconds),
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect(at(microseconds));
        id
    }

    fn until(&mut self, microseconds: u64) {
        while self.controller.next_wake().at() <= at(microseconds) {
            let now = self.controller.next_wake().at();
            self.controller
                .wake(now, &mut NodeContext::alone(&mut self.out));
            self.collect(now);
        }
    }

    /// The array answers the oldest I/O.
    fn answer(&mut self, microseconds: u64) -> Extent {
        self.answer_with(microseconds, RequestStatus::Done)
    }

    fn answer_with(&mut self, microseconds: u64, status: RequestStatus) -> Extent {
        self.until(microseconds);
        let (submitted, request) = self.asked.remove(0);
        let finished = at(microseconds);
        let breakdown = Breakdown {
            transfer: finished.since(submitted),
            ..Breakdown::default()
        };
        let completion = Completion {
            id: request.id,
            submitted,
            finished,
            status,
            breakdown,
        };
        self.controller.completed(
            finished,
            Port::FIRST,
            completion,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect(finished);
        request.extent
    }

    fn finished(&self, id: RequestId) -> Option<Completion> {
        self.completed
            .iter()
            .find(|completion| completion.id == id)
            .copied()
    }

    fn asked(&self) -> Vec<(Operation, u64, u64)> {
        let each = |(_, request): &(Time, Request)| {
            (
                request.operation,
                request.extent.start.0,
                request.extent.sectors.0,
            )
        };
        self.asked.iter().map(each).collect()
    }
}

use Operation::{Discard, Flush, Read, Standby, Start, Write};

#[test]
fn a_write_completes_when_it_is_in_memory_and_is_destaged_when_the_host_is_idle() {
    // 8 sectors at 4.096 MB/s take one millisecond.
    let mut bench =
        ControllerBench::new(json!({ "command_overhead": "100us", "link_mb_per_s": 4.096 }));
    let write = bench.submit(0, Write, 0, 8);
    bench.until(2_000);
    let done = bench.finished(write).unwrap();
    assert_eq!(done.finished, at(1_100));
    assert_eq!(done.breakdown.overhead, Duration::from_micros(1_100));
    assert!(bench.asked().is_empty());
    assert_eq!(bench.controller.next_wake().at(), at(51_100));
    bench.until(51_100);
    assert_eq!(bench.asked(), [(Write, 0, 8)]);
    bench.answer(60_000);
    assert_eq!(
        (
            bench.controller.next_wake().at(),
            bench.controller.memory.buffered()
        ),
        (Time::NEVER, 0)
    );
}

#[test]
fn a_read_of_what_memory_holds_does_not_ask_the_array() {
    let mut bench = ControllerBench::new(json!({}));
    let miss = bench.submit(0, Read, 64, 32);
    assert_eq!(bench.answer(5_000), Extent::new(64, 32));
    let hit = bench.submit(6_000, Read, 64, 16);
    assert_eq!(bench.finished(miss).unwrap().finished, at(5_000));
    assert_eq!(bench.finished(hit).unwrap().finished, at(6_000));
    bench.submit(7_000, Write, 200, 8);
    let own = bench.submit(7_000, Read, 200, 8);
    assert!(bench.finished(own).is_some() && bench.asked().is_empty());
    // The write is destaged after the host has been idle.
    bench.until(60_000);
    let counts = bench.controller.counts;
    assert_eq!(
        (
            counts.reads,
            counts.hits,
            counts.absorbed,
            counts.read_aheads
        ),
        (3, 2, 1, 0)
    );
    assert_eq!((counts.destages, counts.destaged), (1, Sectors(8)));
    let mut counters = Counters::default();
    bench.controller.count(at(60_000), &mut counters);
    assert_eq!(counters.layers, [counts.readings()]);
}

#[test]
fn a_read_asks_only_for_what_is_missing() {
    let mut bench = ControllerBench::new(json!({}));
    bench.submit(0, Write, 0, 40);
    bench.submit(0, Write, 72, 8);
    bench.submit(1, Read, 32, 48);
    assert_eq!(bench.asked(), [(Read, 40, 32)]);
}

#[test]
fn reads_of_the_same_data_share_one_fetch() {
    let mut bench = ControllerBench::new(json!({}));
    let reads = [
        bench.submit(0, Read, 0, 32),
        bench.submit(10, Read, 0, 32),
        bench.submit(20, Read, 8, 8),
    ];
    assert_eq!(bench.asked(), [(Read, 0, 32)]);
    bench.answer(5_000);
    for (read, queued) in reads.into_iter().zip([0, 4_990, 4_980]) {
        let done = bench.finished(read).unwrap();
        assert_eq!(
            (done.finished, done.breakdown.queue),
            (at(5_000), Duration::from_micros(queued))
        );
    }
}

#[test]
fn without_a_battery_writes_go_through_and_flushes_go_on() {
    let mut bench = ControllerBench::new(json!({ "battery": false }));
    let write = bench.submit(0, Write, 0, 8);
    assert_eq!(
        (bench.asked(), bench.finished(write)),
        (vec![(Write, 0, 8)], None)
    );
    let flush = bench.submit(10, Flush, 0, 0);
    bench.answer(3_000);
    assert_eq!(bench.finished(write).unwrap().finished, at(3_000));
    assert_eq!(
        (bench.asked(), bench.finished(flush)),
        (vec![(Flush, 0, 0)], None)
    );
    bench.answer(4_000);
    assert!(bench.finished(flush).is_some());
}

#[test]
fn a_write_that_goes_through_drops_what_memory_holds_of_it() {
    let mut bench = ControllerBench::new(json!({ "battery": false }));
    bench.submit(0, Read, 0, 32);
    bench.answer(1_000);
    bench.submit(2_000, Write, 8, 8);
    bench.answer(3_000);
    bench.submit(4_000, Read, 0, 32);
    assert_eq!(bench.asked(), [(Read, 8, 8)]);
}

#[test]
fn what_was_fetched_beside_a_write_that_goes_through_is_not_kept() {
    for fetch_ends_first in [true, false] {
        let mut bench = ControllerBench::new(json!({ "battery": false }));
        bench.submit(0, Write, 8, 8);
        bench.submit(10, Read, 8, 8);
        assert_eq!(bench.asked(), [(Write, 8, 8), (Read, 8, 8)]);
        if fetch_ends_first {
            bench.asked.swap(0, 1);
        }
        bench.answer(1_000);
        bench.answer(2_000);
        bench.submit(3_000, Read, 8, 8);
        assert_eq!(bench.asked(), [(Read, 8, 8)]);
    }
}

#[test]
fn a_flush_is_immediate_with_a_battery() {
    let mut bench = ControllerBench::new(json!({}));
    bench.submit(0, Write, 0, 8);
    let flush = bench.submit(5, Flush, 0, 0);
    assert_eq!(bench.finished(flush).unwrap().finished, at(5));
    assert!(bench.asked().is_empty());
}

#[test]
fn without_a_battery_a_flush_drains_what_completed_before_it() {
    let mut bench = ControllerBench::new(
        json!({ "battery": false, "write_back": true, "destage": { "depth": 1 } }),
    );
    bench.submit(0, Write, 0, 8);
    bench.submit(0, Write, 4096, 8);
    let flush = bench.submit(1, Flush, 0, 0);
    let later = bench.submit(2, Write, 8192, 8);
    assert!(bench.finished(later).is_some());
    assert_eq!(bench.answer(1_000), Extent::new(0, 8));
    assert_eq!(bench.answer(2_000), Extent::new(4096, 8));
    // The flush need not wait for later writes, and nothing presses the later write any more.
    assert_eq!(
        (bench.asked(), bench.finished(flush)),
        (vec![(Flush, 0, 0)], None)
    );
    bench.answer(3_000);
    assert_eq!(bench.finished(flush).unwrap().finished, at(3_000));
}

#[test]
fn platters_are_stopped_when_nothing_is_left_for_them() {
    for battery in [true, false] {
        let mut bench = ControllerBench::new(json!({ "battery": battery, "write_back": true }));
        bench.submit(0, Write, 0, 8);
        let stop = bench.submit(1, Standby, 0, 0);
        assert_eq!(bench.asked(), [(Write, 0, 8)]);
        bench.answer(1_000);
        assert_eq!(
            (bench.asked(), bench.finished(stop)),
            (vec![(Standby, 0, 0)], None)
        );
        bench.answer(6_000);
        assert_eq!(bench.finished(stop).unwrap().finished, at(6_000));
        let start = bench.submit(7_000, Start, 0, 0);
        assert_eq!(bench.asked(), [(Start, 0, 0)]);
        bench.answer(9_000);
        assert_eq!(bench.finished(start).unwrap().finished, at(9_000));
    }
}

#[test]
fn a_write_with_force_unit_access_is_on_the_medium_when_it_completes() {
    let hints = Hints {
        force_unit_access: true,
        ..Hints::default()
    };
    let mut bench = ControllerBench::new(json!({ "battery": false, "write_back": true }));
    let write = bench.submit_with(0, Write, 0, 8, hints);
    assert_eq!(bench.answer(1_000), Extent::new(0, 8));
    assert_eq!(
        (bench.asked(), bench.finished(write)),
        (vec![(Flush, 0, 0)], None)
    );
    bench.answer(2_000);
    assert!(bench.finished(write).is_some());
    let mut bench = ControllerBench::new(json!({}));
    let write = bench.submit_with(0, Write, 0, 8, hints);
    assert!(bench.finished(write).is_some());
}

#[test]
fn neighbouring_writes_are_destaged_as_full_stripes() {
    let mut bench = ControllerBench::new(json!({ "destage": { "unit": "64KiB" } }));
    for start in [160, 96, 128, 32, 64] {
        bench.submit(0, Write, start, 32);
    }
    bench.until(60_000);
    // Two units of 128 sectors: the rest of the second unit, and the end of the first.
    assert_eq!(bench.asked(), [(Write, 128, 64), (Write, 32, 96)]);
}

/// The oldest block of a unit is the first, the last or a middle block. The destage ends with the
/// unit in each case.
#[test]
fn a_destage_does_not_reach_into_the_next_unit() {
    // Units of 64 KiB are 128 sectors. The first three units are dirty.
    for oldest in [0, 64, 96, 128, 224] {
        let mut bench = ControllerBench::new(json!({ "destage": { "unit": "64KiB", "depth": 1 } }));
        bench.submit(0, Write, oldest, 32);
        for start in (0..384).step_by(32).filter(|&start| start != oldest) {
            bench.submit(0, Write, start, 32);
        }
        bench.until(60_000);
        assert_eq!(bench.asked(), [(Write, oldest / 128 * 128, 128)]);
    }
}

#[test]
fn above_the_high_watermark_destaging_begins_and_ends_at_the_low_one() {
    let keys = json!({
        "memory": "320KiB", "destage": { "high_watermark": 0.8, "low_watermark": 0.5, "depth": 2 },
    });
    let mut bench = ControllerBench::new(keys);
    // The write buffer has ten blocks of 32 sectors. One command stays inside, so the host is never
    // idle.
    bench.submit(0, Read, 100_000, 8);
    bench.asked.clear();
    for block in 0..8 {
        bench.submit(1, Write, block * 3_200, 32);
    }
    assert!(bench.asked().is_empty());
    bench.submit(2, Write, 777_216, 32);
    assert_eq!(bench.asked().len(), 2);
    let mut destaged = 0;
    while !bench.asked.is_empty() {
        destaged += 1;
        bench.answer(1_000 * destaged);
    }
    assert_eq!((destaged, bench.controller.memory.writable()), (4, 5));
}

#[test]
fn a_write_waits_while_the_buffer_is_full() {
    let mut bench = ControllerBench::new(json!({ "memory": "32KiB" }));
    let first = bench.submit(0, Write, 0, 32);
    let second = bench.submit(1, Write, 1_000, 64);
    assert!(bench.finished(first).is_some() && bench.finished(second).is_none());
    assert_eq!(bench.answer(4_000), Extent::new(0, 32));
    // One block at a time: 24 sectors to the first boundary, then 32, then 8.
    assert_eq!(bench.answer(5_000), Extent::new(1_000, 24));
    assert_eq!(bench.answer(6_000), Extent::new(1_024, 32));
    let done = bench.finished(second).unwrap();
    assert_eq!(
        (done.finished, done.breakdown.queue),
        (at(6_000), Duration::from_micros(5_999))
    );
}

#[test]
fn a_sequential_reader_is_read_ahead_of() {
    let mut bench = ControllerBench::new(json!({ "read_ahead": "64KiB" }));
    bench.submit(0, Read, 0, 32);
    bench.answer(1_000);
    bench.submit(1_000, Read, 32, 32);
    assert_eq!(bench.asked(), [(Read, 32, 32), (Read, 64, 128)]);
    bench.answer(2_000);
    // The next read waits for the running read-ahead.
    let third = bench.submit(2_000, Read, 64, 32);
    bench.answer(2_500);
    assert_eq!(bench.finished(third).unwrap().finished, at(2_500));
    let fourth = bench.submit(2_600, Read, 96, 32);
    assert_eq!(bench.finished(fourth).unwrap().finished, at(2_600));
    assert_eq!(bench.controller.counts.read_aheads, 1);
}

#[test]
fn commands_beyond_the_depth_wait_in_front() {
    let mut bench = ControllerBench::new(json!({ "queue_depth": 1 }));
    let first = bench.submit(0, Read, 0, 8);
    let second = bench.submit(0, Read, 1_000, 8);
    assert_eq!(bench.asked().len(), 1);
    bench.answer(4_000);
    bench.answer(5_000);
    assert_eq!(bench.finished(first).unwrap().finished, at(4_000));
    assert_eq!(
        bench.finished(second).unwrap().breakdown.queue,
        Duration::from_micros(4_000)
    );
}

#[test]
fn the_discipline_orders_what_waits_for_the_array() {
    let order = |discipline: &str| -> Vec<u64> {
        let mut bench = ControllerBench::new(json!({ "array_depth": 1, "discipline": discipline }));
        for start in [500, 900, 100, 600] {
            bench.submit(0, Read, start * 32, 32);
        }
        (1..=4)
            .map(|answer| bench.answer(1_000 * answer).start.0 / 32)
            .collect()
    };
    assert_eq!(order("fcfs"), [500, 900, 100, 600]);
    assert_eq!(order("sstf"), [500, 600, 900, 100]);
    assert_eq!(order("c-look"), [500, 600, 900, 100]);
}

#[test]
fn the_link_carries_one_command_after_another() {
    let mut bench = ControllerBench::new(json!({ "link_mb_per_s": 4.096 }));
    let writes = [bench.submit(0, Write, 0, 8), bench.submit(0, Write, 64, 8)];
    bench.until(10_000);
    let finished = writes.map(|write| bench.finished(write).unwrap());
    assert_eq!(finished.map(|done| done.finished), [at(1_000), at(2_000)]);
    assert_eq!(finished[1].breakdown.queue, Duration::from_micros(1_000));
}

#[test]
fn what_lies_outside_or_is_discarded_is_the_arrays_affair() {
    let mut bench = ControllerBench::new(json!({}));
    bench.submit(0, Read, CAPACITY.0 - 4, 8);
    assert_eq!(bench.asked(), [(Read, CAPACITY.0 - 4, 8)]);
    bench.answer(1);
    bench.submit(2, Write, 0, 64);
    bench.submit(3, Discard, 0, 64);
    bench.answer(10);
    bench.until(100_000);
    // Discarded data are not destaged.
    assert!(bench.asked().is_empty());
    assert_eq!(bench.controller.memory.buffered(), 0);
}

#[test]
fn late_wake_ups_do_not_move_the_timeline() {
    let mut bench =
        ControllerBench::new(json!({ "command_overhead": "100us", "link_mb_per_s": 4.096 }));
    let request = Request {
        operation: Write,
        extent: Extent::new(0, 8),
        ..Request::default()
    };
    bench.controller.submit(
        Time::ZERO,
        Port::FIRST,
        request,
        &mut NodeContext::alone(&mut bench.out),
    );
    bench
        .controller
        .wake(at(9_000), &mut NodeContext::alone(&mut bench.out));
    bench.collect(at(9_000));
    assert_eq!(bench.completed[0].finished, at(1_100));
}

#[test]
fn what_the_array_has_lost_is_not_kept_and_those_that_wait_ask_again() {
    let mut bench = ControllerBench::new(json!({}));
    let [first, second] = [0, 1].map(|instant| bench.submit(instant, Read, 0, 32));
    bench.answer_with(1_000, RequestStatus::Lost);
    assert_eq!(bench.finished(first).unwrap().status, RequestStatus::Lost);
    assert_eq!(bench.asked(), [(Read, 0, 32)]);
    bench.answer(2_000);
    assert_eq!(bench.finished(second).unwrap().status, RequestStatus::Done);
    bench.submit(3_000, Write, 0, 32);
    bench.until(60_000);
    bench.answer_with(61_000, RequestStatus::Lost);
    bench.submit(62_000, Read, 0, 32);
    assert_eq!(bench.asked(), [(Read, 0, 32)]);
}
