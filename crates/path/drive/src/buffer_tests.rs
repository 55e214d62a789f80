//! Behaviour of a drive with a buffer, seen from outside.
//!
//! The test drive turns in 6 ms and has tracks of 40 sectors (0.15 ms each). Overheads and bus
//! times are 0 unless a test sets them. An answer from the buffer therefore takes no time.

use crate::config::tests::small_drive;
use crate::config::{
    BufferConfig, DriveConfig, FlushCommand, IdleConfig, PowerConfig, QueueConfig,
};
use crate::drive::{Drive, DriveModel};
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Gauge, Hints, Node as _, NodeContext, Operation,
    Port, PowerState, PowerStatistics, Request, RequestId, RequestStatus, Signal, Wake,
};
use fullstroke_units::{Duration, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A buffer of 4 segments of 80 sectors, with changes.
fn buffer(changes: Value) -> BufferConfig {
    let mut keys = json!({ "segments": 4, "segment_sectors": 80 });
    keys.as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    serde_json::from_value(keys).unwrap()
}

fn queue(depth: u32) -> QueueConfig {
    QueueConfig {
        depth,
        discipline: "fcfs".into(),
        ..QueueConfig::default()
    }
}

/// A drive with a clock.
struct BufferBench {
    drive: Drive,
    out: Effects,
    now: Time,
    submitted: u64,
    /// Delay of each wake-up.
    late: Duration,
    done: Vec<Completion>,
    told: Vec<(Time, Signal)>,
}

impl BufferBench {
    fn new(changes: Value) -> BufferBench {
        BufferBench::of(DriveConfig {
            buffer: Some(buffer(changes)),
            queue: queue(32),
            ..small_drive()
        })
    }

    fn of(config: DriveConfig) -> BufferBench {
        let drive = DriveModel::new(config).unwrap().drive().unwrap();
        let (out, done, told) = (Effects::new(), Vec::new(), Vec::new());
        BufferBench {
            drive,
            out,
            now: Time::ZERO,
            submitted: 0,
            late: Duration::ZERO,
            done,
            told,
        }
    }

    /// Collects the effects of the drive until `at`. A notice may only report the past.
    fn collect(&mut self, at: Time) {
        for effect in self.out.drain() {
            match effect {
                Effect::Complete { completion, .. } => self.done.push(completion),
                Effect::Notice { notice, .. } => {
                    assert!(notice.at <= at, "{notice:?} is told at {at:?}");
                    self.told.push((notice.at, notice.signal));
                }
                Effect::Issue { .. } => unreachable!("nothing is below a drive"),
            }
        }
    }

    fn run_until(&mut self, until: Time) {
        while self.drive.next_wake().at() < until && self.drive.next_wake().at() + self.late < until
        {
            let at = self.drive.next_wake().at() + self.late;
            self.drive.wake(at, &mut NodeContext::alone(&mut self.out));
            self.collect(at);
        }
    }

    /// Lets `ms` pass.
    fn pass(&mut self, ms: f64) {
        self.now += Duration::from_millis_f64(ms);
        self.run_until(self.now);
    }

    fn submit(&mut self, operation: Operation, start: u64, sectors: u64, forced: bool) -> u64 {
        let id = self.submitted;
        self.submitted += 1;
        let hints = Hints {
            force_unit_access: forced,
            ..Hints::default()
        };
        let extent = Extent::new(start, sectors);
        let request = Request {
            id: RequestId(id),
            operation,
            extent,
            hints,
            ..Request::default()
        };
        self.drive.submit(
            self.now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect(self.now);
        id
    }

    fn submit_read(&mut self, start: u64, sectors: u64) -> u64 {
        self.submit(Operation::Read, start, sectors, false)
    }

    fn submit_write(&mut self, start: u64, sectors: u64) -> u64 {
        self.submit(Operation::Write, start, sectors, false)
    }

    /// Runs the clock until a request completes, and returns the completion.
    fn completion(&mut self, id: u64) -> Completion {
        while !self.done.iter().any(|done| done.id.0 == id) {
            assert_ne!(
                self.drive.next_wake().at(),
                Time::NEVER,
                "request {id} is never answered"
            );
            self.run_until(self.drive.next_wake().at() + Duration::from_nanos(1));
        }
        let done = *self.done.iter().find(|done| done.id.0 == id).unwrap();
        self.now = self.now.max(done.finished);
        done
    }

    fn finished(&mut self, id: u64) -> Time {
        self.completion(id).finished
    }

    /// Response time in ms.
    fn took(&mut self, id: u64) -> f64 {
        let Completion {
            submitted,
            finished,
            ..
        } = self.completion(id);
        finished.since(submitted).as_millis_f64()
    }

    fn read(&mut self, start: u64, sectors: u64) -> f64 {
        let id = self.submit_read(start, sectors);
        self.took(id)
    }

    fn write(&mut self, start: u64, sectors: u64) -> f64 {
        let id = self.submit_write(start, sectors);
        self.took(id)
    }

    /// Returns when the drive next did work by itself. The drive may wake earlier only to check the
    /// time.
    fn chore(&mut self) -> Time {
        let before = self.drive.statistics();
        loop {
            let Wake::Chore(at) = self.drive.next_wake() else {
                panic!("nobody waits, but there is work")
            };
            self.run_until(at + Duration::from_nanos(1));
            if self.drive.statistics() != before {
                return at;
            }
        }
    }

    /// Busy time of the arm until now.
    fn busy(&self) -> Duration {
        let mut counters = Counters::default();
        self.drive.count(self.now, &mut counters);
        counters.drives[0].busy
    }

    fn hits(&self) -> u64 {
        self.drive.statistics().buffer_hits
    }

    fn free(&self) -> u32 {
        self.drive.free_segments()
    }
}

#[test]
fn a_read_of_what_was_read_hits() {
    let mut bench = BufferBench::new(json!({}));
    assert!(bench.read(100, 8) > 1.0);
    assert_eq!(bench.read(102, 4), 0.0);
    let took = bench.read(106, 4);
    assert!(
        (took - 0.3).abs() < 1e-4,
        "its last two sectors were not read: {took}"
    );
    assert_eq!(bench.hits(), 1);
}

#[test]
fn read_ahead_goes_as_far_as_it_is_told() {
    // Reads sectors 0..4 of a cylinder of 80, and returns the end of the hits afterwards.
    let reach = |changes: Value| {
        let mut bench = BufferBench::new(changes);
        bench.read(0, 4);
        bench.pass(40.0);
        (4..200)
            .take_while(|&lbn| bench.drive_holds(lbn))
            .last()
            .map_or(4, |last| last + 1)
    };
    assert_eq!(reach(json!({})), 4);
    assert_eq!(
        reach(json!({ "read_ahead": "segment", "read_ahead_sectors": 10 })),
        14
    );
    assert_eq!(reach(json!({ "read_ahead": "track" })), 40);
    assert_eq!(
        reach(json!({ "read_ahead": "cylinder", "segment_sectors": 200 })),
        80
    );
    assert_eq!(
        reach(json!({ "read_ahead": "segment", "segment_sectors": 100 })),
        100
    );
    assert_eq!(reach(json!({ "read_ahead": "whole-track" })), 40);
}

impl BufferBench {
    /// True if a read of one sector is answered at once.
    fn drive_holds(&mut self, lbn: u64) -> bool {
        self.read(lbn, 1) == 0.0
    }
}

#[test]
fn a_read_that_meets_read_ahead_waits_for_the_rest_only() {
    let mut bench = BufferBench::new(json!({ "read_ahead": "track" }));
    bench.read(0, 4);
    // Three and a half sectors later.
    bench.pass(0.525);
    let took = bench.read(4, 8);
    assert!((took - (8.0 * 0.15 - 0.525)).abs() < 1e-4, "{took}");
    // The read goes on from there.
    bench.pass(0.3);
    let took = bench.read(12, 4);
    assert!((took - 0.3).abs() < 1e-4, "{took}");
}

#[test]
fn a_read_that_begins_in_a_stopped_segment_takes_its_beginning_from_there() {
    let mut bench = BufferBench::new(json!({}));
    bench.read(0, 8);
    bench.pass(40.0);
    // The buffer holds sectors 4..8 but not 8..12. The drive waits for the medium, and the request
    // ends as a request of 8..12 alone would.
    let mut alone = BufferBench::new(json!({}));
    alone.read(0, 8);
    alone.pass(40.0);
    let (joined, rest) = (bench.read(4, 8), alone.read(8, 4));
    assert!(
        (joined - rest).abs() < 1e-6 && joined > 0.6,
        "{joined} {rest}"
    );
    // From then on the segment holds all of the request.
    assert!(bench.drive_holds(2) && bench.drive_holds(11));
}

#[test]
fn a_stopped_segment_grows_by_what_is_read_behind_it() {
    let mut bench = BufferBench::new(json!({ "read_ahead": "track" }));
    bench.read(0, 4);
    bench.read(1000, 4);
    bench.read(2, 6);
    bench.pass(20.0);
    assert!(bench.drive_holds(30), "and read-ahead goes on");
}

#[test]
fn a_read_at_the_end_of_read_ahead_may_miss() {
    // The head has read 4 sectors and half of the next when a read of the next comes. Either
    // read-ahead delivers the sector, or the head has missed its beginning.
    let took = |changes: Value| {
        let mut bench = BufferBench::new(changes);
        bench.read(0, 4);
        bench.pass(0.075);
        bench.read(4, 1)
    };
    assert!((took(json!({ "read_ahead": "track" })) - 0.075).abs() < 1e-4);
    let missed = took(json!({ "read_ahead": "track", "read_ahead_misses_at_end": true }));
    assert!((missed - 6.075).abs() < 1e-4, "{missed}");
}

#[test]
fn read_ahead_by_tracks_follows_a_stream_into_the_next_one() {
    let mut bench = BufferBench::new(json!({ "read_ahead": "next-track" }));
    bench.read(10, 4);
    bench.pass(40.0);
    assert!(
        bench.drive_holds(39) && !bench.drive_holds(40),
        "a read is followed to the end of its track"
    );
    let mut bench = BufferBench::new(json!({ "read_ahead": "next-track" }));
    bench.read(36, 8);
    bench.pass(40.0);
    assert!(
        bench.drive_holds(119) && !bench.drive_holds(120),
        "one that came over, to the end of the next"
    );
    let mut short = BufferBench::new(json!({ "read_ahead": "next-track", "segment_sectors": 10 }));
    short.read(0, 4);
    short.pass(40.0);
    assert!(
        short.drive_holds(35) && !short.drive_holds(20),
        "the segment keeps the newest sectors"
    );
}

#[test]
fn read_ahead_can_wait_for_a_stream() {
    let stream = json!({ "read_ahead": "next-track", "read_ahead_waits_for_stream": true });
    let mut bench = BufferBench::new(stream);
    bench.read(0, 4);
    bench.pass(40.0);
    assert!(bench.read(4, 4) > 0.0, "a read alone is none");
    bench.pass(40.0);
    assert!(bench.drive_holds(8) && bench.drive_holds(39));
    assert!(bench.read(100, 4) > 0.0);
    bench.pass(40.0);
    assert!(!bench.drive_holds(110));
}

#[test]
fn looking_at_read_ahead_on_its_way_to_the_next_track_does_not_hurry_it() {
    // The heads arrive 0.05 ms after the first sector has passed, and wait for a revolution.
    let first_of_next_track = |looks: u32| {
        let mut bench = BufferBench::new(json!({ "read_ahead": "segment" }));
        bench.read(20, 4);
        let since = bench.now;
        for _ in 0..looks {
            bench.pass(3.0 / f64::from(looks));
            assert_eq!(bench.read(20, 1), 0.0);
        }
        bench.read(40, 1);
        bench.now.since(since)
    };
    assert_eq!(first_of_next_track(30), first_of_next_track(1));
}

#[test]
fn a_write_to_the_medium_ends_read_ahead() {
    // This also holds if dirty data wait under a discipline and the write is elsewhere.
    for order in [json!(null), json!("fcfs")] {
        let mut bench =
            BufferBench::new(json!({ "read_ahead": "track", "destage_discipline": order }));
        bench.read(0, 4);
        bench.write(1300, 4);
        bench.pass(20.0);
        assert!(
            bench.read(30, 1) > 0.0,
            "the arm was elsewhere while it passed"
        );
    }
}

#[test]
fn what_a_drive_does_by_itself_is_named_as_a_chore() {
    let mut bench = BufferBench::new(json!({ "read_ahead": "track" }));
    bench.read(0, 4);
    let end = bench.chore();
    // 36 sectors are left of the track.
    assert!((end.since(bench.now).as_millis_f64() - 36.0 * 0.15).abs() < 1e-4);
    assert_eq!(bench.drive.next_wake(), Wake::Chore(Time::NEVER));
    assert_eq!(
        bench.drive.statistics().busy,
        end.since(Time::ZERO),
        "the arm was busy all the time"
    );
}

#[test]
fn dirty_data_go_to_the_medium_when_they_are_said_to() {
    let mut bench = BufferBench::new(json!({ "write_back": true, "destage_delay": "30ms" }));
    bench.write(1300, 4);
    let before = bench.drive.statistics();
    assert_eq!((before.busy, before.seek), (Duration::ZERO, Duration::ZERO));
    let begins = bench.chore();
    assert!((begins.as_millis_f64() - 30.0).abs() < 1e-3);
    let after = bench.drive.statistics();
    assert!(after.seek.as_millis_f64() > 1.0);
    assert_eq!(after.busy, after.seek + after.rotation + after.transfer);
}

#[test]
fn another_request_ends_read_ahead() {
    let mut bench = BufferBench::new(json!({ "read_ahead": "track" }));
    bench.read(0, 4);
    bench.read(1000, 4);
    bench.pass(20.0);
    assert!(!bench.drive_holds(30));
}

#[test]
fn a_track_buffer_holds_what_has_passed_under_the_head() {
    let mut bench = BufferBench::new(json!({ "read_ahead": "whole-track" }));
    bench.read(20, 4);
    bench.pass(10.0);
    assert!(
        bench.drive_holds(0) && bench.drive_holds(39),
        "the whole track has passed"
    );
    assert!(!bench.drive_holds(40), "the next track has not");
}

#[test]
fn a_track_buffer_holds_no_more_when_the_head_has_left() {
    let mut bench = BufferBench::new(json!({ "read_ahead": "whole-track" }));
    bench.read(0, 4);
    bench.read(1000, 4);
    bench.pass(20.0);
    assert!(bench.drive_holds(2));
    assert!(!bench.drive_holds(30));
}

#[test]
fn the_least_recently_used_segment_gives_way() {
    let mut bench = BufferBench::new(json!({ "segments": 2 }));
    bench.read(0, 4);
    bench.read(100, 4);
    bench.read(0, 4);
    bench.read(200, 4);
    assert!(bench.drive_holds(0));
    assert!(!bench.drive_holds(100));
}

#[test]
fn written_data_keep_to_their_share_of_the_segments() {
    let mut bench = BufferBench::new(json!({ "write_segments": 1, "read_hits_on_written": true }));
    for lbn in [0, 100, 200] {
        bench.read(lbn, 4);
    }
    for lbn in [300, 400, 500] {
        bench.write(lbn, 4);
    }
    assert!(bench.drive_holds(0) && bench.drive_holds(100) && bench.drive_holds(200));
    assert!(bench.drive_holds(500) && !bench.drive_holds(400));
}

#[test]
fn a_ring_gives_up_what_was_delivered() {
    let ring = json!({ "read_ahead": "segment", "read_ahead_over_delivered": true });
    let mut bench = BufferBench::new(ring);
    bench.read(0, 4);
    bench.pass(40.0);
    assert!(bench.drive_holds(30));
    assert!(
        !bench.drive_holds(20),
        "it lies before the end of the last hit"
    );
}

#[test]
fn a_ring_reads_on_as_it_is_emptied() {
    let ring = json!({ "read_ahead": "segment", "read_ahead_over_delivered": true, "segment_sectors": 20 });
    let mut bench = BufferBench::new(ring);
    bench.read(0, 4);
    for lbn in (4..400).step_by(8) {
        bench.pass(20.0);
        assert_eq!(bench.read(lbn, 8), 0.0, "{lbn}");
    }
}

#[test]
fn a_write_makes_what_it_overwrites_stale() {
    let mut bench = BufferBench::new(json!({}));
    bench.read(0, 20);
    bench.write(10, 2);
    assert!(bench.drive_holds(9));
    assert!(
        !bench.drive_holds(12),
        "of what it cuts, the beginning stays"
    );
    let mut bench = BufferBench::new(json!({ "writes_drop_reads": true }));
    bench.read(0, 20);
    bench.write(100, 2);
    assert!(!bench.drive_holds(9));
}

#[test]
fn write_back_acknowledges_at_once_and_writes_when_idle() {
    let mut bench = BufferBench::new(json!({ "write_back": true }));
    assert_eq!(bench.write(1000, 4), 0.0);
    assert_eq!(bench.free(), 3);
    assert_eq!(bench.drive.gauge().head.0, 0);
    bench.pass(50.0);
    bench.read(1000, 4);
    assert_eq!(bench.free(), 4);
    assert_eq!(bench.drive.gauge().head.0, 13, "written meanwhile");
}

#[test]
fn without_write_back_and_with_forced_access_writes_go_to_the_medium() {
    let mut through = BufferBench::new(json!({}));
    assert!(through.write(1000, 4) > 1.0);
    let mut back = BufferBench::new(json!({ "write_back": true }));
    let forced = back.submit(Operation::Write, 1000, 4, true);
    assert!(back.took(forced) > 1.0);
    assert_eq!(back.free(), 4);
}

#[test]
fn dirty_data_are_read_from_the_buffer_and_afterwards_where_configured() {
    for (stays, later) in [(true, true), (false, false)] {
        let mut bench =
            BufferBench::new(json!({ "write_back": true, "read_hits_on_written": stays }));
        bench.write(1000, 4);
        assert!(bench.drive_holds(1001));
        bench.pass(50.0);
        assert_eq!(bench.drive_holds(1001), later);
    }
}

#[test]
fn a_write_waits_where_all_write_segments_are_dirty() {
    let mut bench = BufferBench::new(json!({ "write_back": true, "write_segments": 2 }));
    let ids: Vec<u64> = [300, 900, 100]
        .into_iter()
        .map(|lbn| bench.submit_write(lbn, 4))
        .collect();
    assert_eq!((bench.took(ids[0]), bench.took(ids[1])), (0.0, 0.0));
    let third = bench.completion(ids[2]);
    assert!(third.breakdown.queue.as_millis_f64() > 1.0, "{third:?}");
}

#[test]
fn sequential_writes_share_a_segment_where_configured() {
    for (combine, free) in [(true, 3), (false, 1)] {
        let mut bench = BufferBench::new(
            json!({ "write_back": true, "write_segments": 4, "combine_writes": combine }),
        );
        for start in [1000, 1004, 1008] {
            bench.submit_write(start, 4);
        }
        assert_eq!(bench.free(), free);
    }
}

#[test]
fn above_the_watermark_dirty_data_go_before_reads() {
    let read_took = |watermark: f64| {
        let keys =
            json!({ "write_back": true, "write_segments": 2, "destage_watermark": watermark });
        let mut bench = BufferBench::new(keys);
        bench.submit_write(1300, 4);
        let read = bench.submit_read(0, 4);
        bench.took(read)
    };
    assert!(read_took(0.4) > read_took(0.5) + 2.0);
}

#[test]
fn waiting_reads_go_before_dirty_data() {
    // Between the reads the arm is free but not idle.
    let electronics = serde_json::from_value(json!({ "read_completion_ms": 1.0 })).unwrap();
    let buffer = Some(buffer(json!({ "write_back": true, "write_segments": 4 })));
    let mut bench = BufferBench::of(DriveConfig {
        buffer,
        electronics,
        queue: queue(32),
        ..small_drive()
    });
    bench.submit_write(1300, 4);
    let reads: Vec<u64> = (0..20).map(|i| bench.submit_read(i * 40, 4)).collect();
    for &read in &reads[..19] {
        bench.completion(read);
    }
    assert_eq!(bench.free(), 3);
    bench.completion(reads[19]);
    bench.pass(20.0);
    assert_eq!(bench.free(), 4, "nobody waits any more");
}

#[test]
fn a_segment_is_taken_until_its_data_are_on_the_medium() {
    let mut bench = BufferBench::new(json!({ "write_back": true }));
    bench.write(1300, 4);
    bench.pass(1.0);
    assert!(
        bench.write(0, 4) > 1.0,
        "the arm is on the way to the other"
    );
    bench.pass(50.0);
    assert_eq!(bench.write(700, 4), 0.0);
}

#[test]
fn dirty_data_wait_for_the_delay() {
    let head_after = |ms: f64| {
        let keys = json!({ "write_back": true, "destage_delay": "30ms" });
        let mut bench = BufferBench::new(keys);
        bench.write(1300, 4);
        bench.pass(ms);
        bench.read(1300, 4);
        bench.free()
    };
    assert_eq!((head_after(20.0), head_after(60.0)), (3, 4));
}

#[test]
fn read_ahead_goes_on_while_dirty_data_wait_for_the_delay() {
    let keys = json!({ "write_back": true, "destage_delay": "1s", "read_ahead": "track" });
    let mut bench = BufferBench::new(keys);
    bench.write(1300, 4);
    bench.read(0, 4);
    bench.pass(20.0);
    assert!(bench.drive_holds(39));
}

/// Returns a drive with this buffer that takes a flush as `flush` says.
fn flushing(flush: FlushCommand, changes: Value) -> BufferBench {
    BufferBench::of(DriveConfig {
        buffer: Some(buffer(changes)),
        queue: QueueConfig { flush, ..queue(32) },
        ..small_drive()
    })
}

#[test]
fn a_flush_waits_for_all_dirty_data_and_is_not_passed() {
    for flush in [FlushCommand::Alone, FlushCommand::Queued] {
        let keys = json!({ "write_back": true, "write_segments": 4, "hits_pass_queue": true });
        let mut bench = flushing(flush, keys);
        let writes: Vec<u64> = [300, 900, 100]
            .into_iter()
            .map(|lbn| bench.submit_write(lbn, 4))
            .collect();
        let flush = bench.submit(Operation::Flush, 0, 0, false);
        let (read, write) = (bench.submit_read(300, 4), bench.submit_write(700, 4));
        let flushed = bench.finished(flush);
        assert!(
            writes
                .into_iter()
                .all(|write| bench.finished(write) <= flushed)
        );
        assert!(
            flushed > Time::from_nanos(6_000_000),
            "three places far apart: {flushed:?}"
        );
        assert!(bench.finished(read) >= flushed && bench.finished(write) >= flushed);
        assert_eq!(bench.submit(Operation::Flush, 0, 0, false), 6);
        bench.completion(6);
        assert_eq!(bench.free(), 4);
    }
}

#[test]
fn the_time_of_a_flush_is_that_of_the_arm() {
    let mut bench = BufferBench::new(json!({ "write_back": true, "destage_delay": "1s" }));
    bench.write(1300, 4);
    let flush = bench.submit(Operation::Flush, 0, 0, false);
    let Completion {
        submitted,
        finished,
        breakdown,
        ..
    } = bench.completion(flush);
    assert_eq!(breakdown.response(), finished.since(submitted));
    assert_eq!(breakdown.overhead, Duration::ZERO);
    assert!(
        breakdown.seek > Duration::ZERO && breakdown.transfer > Duration::ZERO,
        "{breakdown:?}"
    );
    let again = bench.submit(Operation::Flush, 0, 0, false);
    assert_eq!(bench.took(again), 0.0, "there is nothing left to write");
}

#[test]
fn a_queued_flush_goes_before_what_waits_and_another_alone_behind_it() {
    for (flush, before) in [(FlushCommand::Alone, 6), (FlushCommand::Queued, 1)] {
        let mut bench = flushing(flush, json!({ "write_back": true }));
        let reads: Vec<u64> = (0..6).map(|i| bench.submit_read(i * 200, 4)).collect();
        let flush = bench.submit(Operation::Flush, 0, 0, false);
        let late = bench.submit_read(1300, 4);
        let flushed = bench.finished(flush);
        let earlier = reads
            .into_iter()
            .filter(|&read| bench.finished(read) <= flushed)
            .count();
        assert_eq!(earlier, before);
        assert!(bench.finished(late) >= flushed);
    }
}

#[test]
fn a_flush_counts_in_the_depth() {
    let keys = json!({ "write_back": true, "destage_delay": "1s" });
    let queue = QueueConfig {
        depth: 1,
        ..queue(1)
    };
    let mut bench = BufferBench::of(DriveConfig {
        buffer: Some(buffer(keys)),
        queue,
        ..small_drive()
    });
    bench.write(1300, 4);
    let (read, flush) = (
        bench.submit_read(700, 4),
        bench.submit(Operation::Flush, 0, 0, false),
    );
    assert!(bench.finished(flush) > bench.finished(read));
}

#[test]
fn a_flush_costs_its_command_and_without_write_back_nothing() {
    let with = |keys: Value| DriveConfig {
        buffer: Some(buffer(keys)),
        queue: queue(32),
        command_overhead_ms: 0.25,
        ..small_drive()
    };
    let mut bench = BufferBench::of(with(json!({ "write_back": true })));
    let flush = bench.submit(Operation::Flush, 0, 0, false);
    assert_eq!(bench.took(flush), 0.25);
    let mut bench = BufferBench::of(with(json!({})));
    let flush = bench.submit(Operation::Flush, 0, 0, false);
    assert_eq!(bench.took(flush), 0.0);
}

#[test]
fn a_forced_write_is_on_the_medium_and_others_stay_in_the_buffer() {
    let mut bench =
        BufferBench::new(json!({ "write_back": true, "write_segments": 4, "destage_delay": "1s" }));
    assert_eq!(bench.write(1300, 4), 0.0);
    let forced = bench.submit(Operation::Write, 700, 4, true);
    assert!(bench.took(forced) > 0.5);
    assert_eq!(bench.free(), 3, "the first is still to be written");
}

#[test]
fn discards_cost_a_command_each_and_no_arm() {
    let config = DriveConfig {
        command_overhead_ms: 0.25,
        ..small_drive()
    };
    let mut bench = BufferBench::of(config);
    let read = bench.submit_read(1300, 4);
    let discards = [0, 400].map(|start| bench.submit(Operation::Discard, start, 300, false));
    assert_eq!(discards.map(|discard| bench.took(discard)), [0.25, 0.5]);
    assert!(bench.took(read) > 1.0);
    let beyond = bench.submit(Operation::Discard, 1399, 2, false);
    assert_eq!(bench.completion(beyond).status, RequestStatus::OutOfRange);
}

/// Returns a drive with a buffer that stops in 5 ms and starts in 20 ms.
fn stoppable(changes: Value) -> BufferBench {
    let power = Some(PowerConfig {
        spin_up_ms: 20.0,
        spin_down_ms: 5.0,
        ..PowerConfig::default()
    });
    BufferBench::of(DriveConfig {
        power,
        buffer: Some(buffer(changes)),
        queue: queue(32),
        ..small_drive()
    })
}

impl BufferBench {
    fn spent(&self) -> PowerStatistics {
        self.drive.power(self.now).unwrap()
    }

    fn of_all(&mut self, operation: Operation) -> u64 {
        self.submit(operation, 0, 0, false)
    }

    /// Returns the drive's notices with their times in ms.
    fn told_ms(&self) -> Vec<(f64, Signal)> {
        self.told
            .iter()
            .map(|&(at, signal)| (at.since(Time::ZERO).as_millis_f64(), signal))
            .collect()
    }
}

#[test]
fn platters_stop_on_command_and_start_for_who_needs_them() {
    let mut bench = stoppable(json!({}));
    let read = bench.read(0, 8);
    let stop = bench.of_all(Operation::Standby);
    assert_eq!(bench.took(stop), 5.0);
    let stopped = bench.now.since(Time::ZERO).as_millis_f64();
    assert_eq!(bench.read(0, 8), 0.0, "the buffer needs no platters");
    bench.pass(100.0);
    assert_eq!(bench.told_ms(), [(stopped, Signal::SpunDown)]);
    let (began, again) = (
        bench.now.since(Time::ZERO).as_millis_f64(),
        bench.read(80, 8),
    );
    assert!(
        (20.0..40.0).contains(&again),
        "{again} ms, of which 20 to start; {read} ms turning"
    );
    assert_eq!(bench.told_ms()[1..], [(began + 20.0, Signal::SpunUp)]);
}

#[test]
fn a_drive_that_is_started_is_ready_for_the_next_read() {
    let mut bench = stoppable(json!({}));
    for (operation, ms) in [
        (Operation::Start, 0.0),
        (Operation::Standby, 5.0),
        (Operation::Standby, 0.0),
        (Operation::Start, 20.0),
        (Operation::Start, 0.0),
    ] {
        let command = bench.of_all(operation);
        assert_eq!(bench.took(command), ms, "{operation:?}");
    }
    assert!(bench.read(0, 8) < 10.0);
}

#[test]
fn what_is_dirty_goes_to_the_medium_before_the_platters_stop() {
    let mut bench =
        stoppable(json!({ "write_back": true, "write_segments": 4, "destage_delay": "10s" }));
    let write = bench.submit_write(1300, 4);
    assert!(bench.took(write) < 1.0);
    assert_eq!(bench.free(), 3);
    let stop = bench.of_all(Operation::Standby);
    assert!(bench.took(stop) > 6.0, "a seek and the 5 ms");
    assert_eq!(bench.free(), 4);
    // The drive takes a write without turning platters. The platters start when the write is due to
    // be destaged.
    assert!(bench.write(0, 4) < 1.0);
    let taken = bench.now;
    bench.pass(10_100.0);
    assert_eq!(bench.free(), 4);
    let due = taken.since(Time::ZERO).as_millis_f64() + 10_000.0;
    assert_eq!(bench.told_ms().last(), Some(&(due + 20.0, Signal::SpunUp)));
}

#[test]
fn a_command_to_stop_waits_for_all_and_nothing_passes_it() {
    let mut bench = stoppable(json!({ "hits_pass_queue": true }));
    bench.read(0, 8);
    let reads = [1300, 600].map(|start| bench.submit_read(start, 4));
    let stop = bench.of_all(Operation::Standby);
    let hit = bench.submit_read(0, 4);
    let stopped = bench.finished(stop);
    assert!(reads.iter().all(|&read| bench.finished(read) < stopped));
    assert!(bench.finished(hit) >= stopped);
    assert!(
        !bench
            .told
            .iter()
            .any(|(_, signal)| *signal == Signal::SpunUp),
        "the hit needs no platters"
    );
}

#[test]
fn platters_turn_on_from_where_they_stood() {
    let angle = |bench: &BufferBench, at: Time| {
        let spindle = bench.drive.arm().mechanics().spindle();
        (spindle.angle_at(at) + bench.drive.gauge().phase).as_revolutions()
    };
    let mut bench = stoppable(json!({}));
    bench.pass(1.7);
    let before = angle(&bench, bench.now);
    for operation in [Operation::Standby, Operation::Start] {
        let command = bench.of_all(operation);
        bench.finished(command);
    }
    assert!((angle(&bench, bench.now) - before).abs() < 1e-6);
    assert_ne!(bench.drive.gauge().phase, Gauge::default().phase);
}

#[test]
fn a_drive_without_power_states_turns_always() {
    let mut bench = BufferBench::new(json!({}));
    let stop = bench.of_all(Operation::Standby);
    assert_eq!(bench.took(stop), 0.0);
    assert!(bench.read(0, 8) < 10.0);
    assert!(bench.told.is_empty());
}

#[test]
fn hits_pass_the_queue_where_configured() {
    for passes in [true, false] {
        let mut bench = BufferBench::new(json!({ "hits_pass_queue": passes }));
        bench.read(0, 8);
        let (far, near) = (bench.submit_read(1300, 4), bench.submit_read(0, 4));
        assert_eq!(bench.finished(near) < bench.finished(far), passes);
    }
}

#[test]
fn what_is_being_read_for_another_request_is_no_hit_yet() {
    let mut bench = BufferBench::new(json!({ "hits_pass_queue": true }));
    let (first, second) = (bench.submit_read(1300, 4), bench.submit_read(1300, 4));
    assert!(bench.took(first) > 1.0);
    assert!(bench.finished(second) >= bench.finished(first));
}

#[test]
fn data_overwritten_before_they_are_written_are_written_once() {
    let mut bench = BufferBench::new(json!({ "write_back": true, "write_segments": 4 }));
    for _ in 0..10 {
        bench.submit_write(1000, 4);
    }
    assert_eq!(bench.free(), 3);
}

#[test]
fn a_bad_buffer_is_refused_by_key() {
    for (changes, key) in [
        (json!({ "segments": 0 }), "buffer.segments"),
        (json!({ "segments": 4_000_000_000u32 }), "buffer.segments"),
        (json!({ "segment_sectors": 0 }), "buffer.segment_sectors"),
        (json!({ "write_segments": 5 }), "buffer.write_segments"),
        (
            json!({ "destage_watermark": 1.5 }),
            "buffer.destage_watermark",
        ),
    ] {
        let config = DriveConfig {
            buffer: Some(buffer(changes)),
            ..small_drive()
        };
        assert_eq!(DriveModel::new(config).map(|_| ()).unwrap_err().key, key);
    }
}

/// A request with the time since the previous request.
#[derive(Clone, Copy, Debug)]
struct SpacedRequest {
    gap_ns: u64,
    operation: Operation,
    start: u64,
    sectors: u64,
    forced: bool,
}

fn steps() -> impl Strategy<Value = Vec<SpacedRequest>> {
    let operation = prop_oneof![
        12 => Just(Operation::Read), 12 => Just(Operation::Write), 2 => Just(Operation::Flush),
        1 => Just(Operation::Standby), 1 => Just(Operation::Start),
    ];
    // Few addresses, so that requests meet in the buffer.
    let start = prop_oneof![0u64..60, 0u64..1360];
    let gap_ns = prop_oneof![Just(0), 0u64..500_000, 0u64..20_000_000];
    let step = (
        gap_ns,
        operation,
        start,
        1u64..40,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(gap_ns, operation, start, sectors, forced)| {
            let (start, sectors) = if operation.is_of_all() {
                (0, 0)
            } else {
                (start, sectors)
            };
            SpacedRequest {
                gap_ns,
                operation,
                start,
                sectors,
                forced,
            }
        });
    prop::collection::vec(step, 1..60)
}

fn electronics() -> impl Strategy<Value = Value> {
    (0.0..0.2f64, 0.0..1.0f64, 0.0..1.0f64, any::<bool>(), 0.0..=1.0f64).prop_map(
        |(bus, overhead, completion, disconnects, read_watermark)| {
            let overheads = json!({ "after_read_ms": overhead, "after_write_ms": overhead / 2.0 });
            let mut keys = json!({
                "bus_read_ms_per_sector": bus, "bus_write_ms_per_sector": bus,
                "read_hit": overheads, "read_miss": overheads, "write_hit": overheads, "write_miss": overheads,
                "read_completion_ms": completion, "write_completion_ms": completion / 3.0,
                "read_watermark": read_watermark, "watermark_of_segment": disconnects,
                "write_watermark": read_watermark, "partial_hits_wait": disconnects,
                "near_write_hits": disconnects, "write_underruns": !disconnects,
                "read_reselect_ms": completion, "read_in_place": overheads,
            });
            if disconnects {
                keys["write_disconnect"] = json!({ "seek_ms": overhead, "data_ms": overhead * 2.0 });
            }
            keys
        },
    )
}

fn configs() -> impl Strategy<Value = DriveConfig> {
    let modes = prop::sample::select(vec![
        "none",
        "track",
        "cylinder",
        "segment",
        "whole-track",
        "next-track",
    ]);
    let flags = prop::array::uniform10(any::<bool>());
    let power = prop::option::of((0.0..40.0, 0.0..40.0));
    let order = prop::option::of(prop::sample::select(vec!["fcfs", "satf", "c-look"]));
    let shares = (
        order,
        prop::option::of(0u32..400),
        prop::sample::select(vec![0u32, 20, 100]),
    );
    let sizes = (1u32..6, 0u32..6, 1u32..100, prop::option::of(0u32..50));
    let rules = (
        0u32..3,
        0.0..=1.0f64,
        1u32..9,
        prop::sample::select(vec!["fcfs", "satf", "look"]),
    );
    (modes, flags, sizes, rules, electronics(), shares, power).prop_map(
        |(mode, flags, sizes, rules, electronics, shares, power)| {
            let (order, sectors, stream) = shares;
            let (segments, write_segments, segment_sectors, read_ahead_sectors) = sizes;
            let (delay, watermark, depth, discipline) = rules;
            let keys = json!({
                "segments": segments, "segment_sectors": segment_sectors,
                "write_segments": write_segments.min(segments), "read_ahead": mode,
                "read_ahead_sectors": read_ahead_sectors, "read_ahead_over_delivered": flags[0],
                "read_ahead_on_hit": flags[1], "write_back": flags[2], "combine_writes": flags[3],
                "read_hits_on_written": flags[4], "writes_drop_reads": flags[5], "hits_pass_queue": flags[6],
                "destage_delay": format!("{}ms", delay * 7), "destage_watermark": watermark,
                "read_ahead_waits_for_stream": flags[8], "read_ahead_misses_at_end": flags[9],
                "buffered_first": flags[7], "stream_sectors": stream, "destage_discipline": order,
                "sectors": sectors.map(|more| segment_sectors + more),
            });
            DriveConfig {
                buffer: Some(serde_json::from_value(keys).unwrap()),
                electronics: serde_json::from_value(electronics).unwrap(),
                queue: QueueConfig { discipline: discipline.into(), ..queue(depth) },
                power: power.map(|(spin_up_ms, spin_down_ms)| PowerConfig {
                    spin_up_ms,
                    spin_down_ms,
                    ..PowerConfig::default()
                }),
                ..small_drive()
            }
        },
    )
}

/// Returns the power keys of a drive that starts and stops within these ms.
fn metered((spin_up_ms, spin_down_ms): (f64, f64), unloads: bool) -> PowerConfig {
    let idle = |w, after_ms, wake_ms| {
        unloads.then_some(IdleConfig {
            w,
            after_ms,
            wake_ms,
        })
    };
    PowerConfig {
        spin_up_ms,
        spin_down_ms,
        idle_b: idle(4.0, 100.0, 30.0),
        idle_c: idle(3.0, 400.0, 90.0),
        ..PowerConfig::assumed_for(&small_drive()).0
    }
}

/// Power in microwatts while the platters stand.
const STANDBY_UW: u64 = 700_000;

/// Powers of Idle_C, Idle_B, Idle_A, a seek, a seek for a write, a wait, a read and a write. Each
/// idle power is above the previous one.
fn microwatts() -> impl Strategy<Value = [u64; 8]> {
    let more = || 0u64..20_000_000;
    (
        more(),
        more(),
        more(),
        [more(), more(), more(), more(), more()],
    )
        .prop_map(|(c, b, a, active)| {
            let (c, b) = (STANDBY_UW + c, STANDBY_UW + c + b);
            let a = b + a;
            let [seek, write_seek, rotate, read, write] = active.map(|more| a + more);
            [c, b, a, seek, write_seek, rotate, read, write]
        })
}

/// Returns a drive with these powers, and with these energies in microjoules for a stop and a
/// start.
fn priced(microwatts: [u64; 8], microjoules: (u64, u64)) -> PowerConfig {
    let [c, b, a, seek, write_seek, rotate, read, write] = microwatts.map(|each| each as f64 / 1e6);
    PowerConfig {
        spin_up_ms: 20.0,
        spin_down_ms: 5.0,
        spin_up_j: Some(microjoules.1 as f64 / 1e6),
        spin_down_j: Some(microjoules.0 as f64 / 1e6),
        seek_w: Some(seek),
        write_seek_w: Some(write_seek),
        rotate_w: Some(rotate),
        read_w: Some(read),
        write_w: Some(write),
        idle_a_w: Some(a),
        idle_b: Some(IdleConfig {
            w: b,
            after_ms: 100.0,
            wake_ms: 30.0,
        }),
        idle_c: Some(IdleConfig {
            w: c,
            after_ms: 400.0,
            wake_ms: 90.0,
        }),
        standby_w: Some(STANDBY_UW as f64 / 1e6),
        start_stop_cycles: None,
        load_cycles: None,
    }
}

/// Runs the steps. Each wake-up comes `late` ns after the due time.
fn run(config: &DriveConfig, steps: &[SpacedRequest], late: u64) -> BufferBench {
    let mut bench = BufferBench::of(config.clone());
    bench.late = Duration::from_nanos(late);
    for step in steps {
        bench.now += Duration::from_nanos(step.gap_ns);
        bench.run_until(bench.now);
        bench.submit(step.operation, step.start, step.sectors, step.forced);
    }
    bench.run_until(Time::NEVER);
    bench
}

proptest! {
    #[test]
    fn every_request_completes_once_and_its_parts_add_up(config in configs(), steps in steps()) {
        let bench = run(&config, &steps, 0);
        let mut ids: Vec<u64> = bench.done.iter().map(|completion| completion.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..steps.len() as u64).collect::<Vec<_>>());
        for done in &bench.done {
            prop_assert_eq!(done.status, RequestStatus::Done);
            prop_assert_eq!(done.finished.since(done.submitted), done.breakdown.response());
        }
        prop_assert!(bench.done.is_sorted_by_key(|done| done.finished));
        prop_assert!(bench.free() <= config.buffer.unwrap().segments);
    }

    #[test]
    fn the_arm_does_one_thing_at_a_time(config in configs(), steps in steps()) {
        let work = run(&config, &steps, 0).drive.statistics();
        let parts = work.seek + work.rotation + work.transfer;
        prop_assert!(parts <= work.busy, "seek {}, rotation {}, transfer {}, busy {}", work.seek, work.rotation, work.transfer, work.busy);
    }

    #[test]
    fn an_arm_is_not_taken_for_longer_than_has_passed(config in configs(), steps in steps()) {
        let mut bench = BufferBench::of(config);
        let mut before = Duration::ZERO;
        for step in &steps {
            bench.now += Duration::from_nanos(step.gap_ns);
            bench.run_until(bench.now);
            for _ in 0..2 {
                let busy = bench.busy();
                prop_assert!(before <= busy && busy <= bench.now.since(Time::ZERO), "{before}, {busy}");
                before = busy;
                bench.submit(step.operation, step.start, step.sectors, step.forced);
            }
        }
        bench.run_until(Time::NEVER);
        bench.now += Duration::from_secs(100);
        prop_assert_eq!(bench.busy(), bench.drive.statistics().busy);
    }

    #[test]
    fn the_times_of_all_states_add_up_to_the_time_that_has_passed(
        mut config in configs(), steps in steps(), look in 0u64..100_000_000, unloads in any::<bool>(),
    ) {
        let power = config.power.map_or((20.0, 5.0), |power| (power.spin_up_ms, power.spin_down_ms));
        config.power = Some(metered(power, unloads));
        let buffered = config.buffer.take_if(|_| look.is_multiple_of(4)).is_none() && config.buffer.is_some();
        let mut bench = BufferBench::of(config);
        let mut before = PowerStatistics::default();
        for step in &steps {
            let rests = if step.start % 5 == 0 { 40 } else { 1 };
            bench.now += Duration::from_nanos(step.gap_ns * rests);
            bench.run_until(bench.now);
            let spent = bench.spent();
            prop_assert_eq!(spent.residency().total(), bench.now.since(Time::ZERO));
            // With a buffer, the arm's own work may be computed later than the reading.
            prop_assert!(buffered || spent.energy_fj() >= before.energy_fj());
            prop_assert!(spent.spin_downs() >= spent.spin_ups());
            before = spent;
            bench.submit(step.operation, step.start, step.sectors, step.forced);
            prop_assert_eq!(bench.spent().residency().total(), bench.now.since(Time::ZERO));
        }
        bench.run_until(Time::NEVER);
        let work = bench.drive.statistics();
        let later = bench.now + Duration::from_secs(100) + Duration::from_nanos(look);
        let spent = bench.drive.power(later).unwrap();
        prop_assert_eq!(spent.residency().total(), later.since(Time::ZERO));
        let time = |state| spent.time_in(state);
        let seeks = [PowerState::Seek, PowerState::WriteSeek];
        let active = [PowerState::Rotate, PowerState::Read, PowerState::Write].into_iter().chain(seeks);
        let active = active.map(time).sum::<Duration>();
        // The counters do not include the rest of interrupted read-ahead.
        prop_assert!(active >= work.seek + work.rotation + work.transfer, "{:?}, {:?}", spent, work);
    }

    #[test]
    fn platters_that_stop_by_themselves_do_so_in_time_however_late_they_are_woken(
        mut config in configs(), mut steps in steps(), late in 0u64..30_000_000,
    ) {
        config.power = Some(metered((20.0, 5.0), late % 2 == 0));
        config.spin_down =
            Some(serde_json::from_value(json!({ "policy": "fixed", "after": "40ms" })).unwrap());
        for step in steps.iter_mut().filter(|step| step.start % 3 == 0) {
            step.gap_ns = step.gap_ns * 10 + 31;
        }
        let mut bench = run(&config, &steps, 0);
        let other = run(&config, &steps, late);
        prop_assert_eq!(&bench.done, &other.done);
        prop_assert_eq!(&bench.told, &other.told);
        bench.now += Duration::from_secs(100);
        let spent = bench.spent();
        prop_assert_eq!(spent.residency().total(), bench.now.since(Time::ZERO));
        let told = |signal| bench.told.iter().filter(|(_, told)| *told == signal).count() as u64;
        prop_assert_eq!((spent.spin_downs(), spent.spin_ups()), (told(Signal::SpunDown), told(Signal::SpunUp)));
        prop_assert!(bench.drive.gauge().queue_length == 0 && spent.spin_downs() == spent.spin_ups() + 1);
    }

    #[test]
    fn without_a_buffer_the_times_of_the_states_are_those_of_the_arm(
        mut config in configs(), steps in steps(), unloads in any::<bool>(),
    ) {
        config.power = Some(metered((20.0, 5.0), unloads));
        config.buffer = None;
        let bench = run(&config, &steps, 0);
        let work = bench.drive.statistics();
        let spent = bench.drive.power(bench.now + Duration::from_secs(100)).unwrap();
        let time = |state| spent.time_in(state);
        let passed = time(PowerState::Read) + time(PowerState::Write);
        let seek = time(PowerState::Seek) + time(PowerState::WriteSeek);
        prop_assert_eq!((seek, passed), (work.seek, work.transfer));
    }

    #[test]
    fn energy_is_residency_times_watts_plus_transitions_times_joules_to_the_femtojoule(
        mut config in configs(), mut steps in steps(), microwatts in microwatts(), microjoules in (0u64..1_000_000_000, 0u64..1_000_000_000),
    ) {
        config.power = Some(priced(microwatts, microjoules));
        config.spin_down =
            Some(serde_json::from_value(json!({ "policy": "fixed", "after": "40ms" })).unwrap());
        for step in steps.iter_mut().filter(|step| step.start % 3 == 0) {
            step.gap_ns = step.gap_ns * 10 + 31;
        }
        let mut bench = run(&config, &steps, 0);
        // No transition is under way then.
        bench.now += Duration::from_secs(100);
        let spent = bench.spent();
        let [idle_c, idle_b, idle_a, seek, write_seek, rotate, read, write] = microwatts;
        let states = [
            (PowerState::IdleA, idle_a), (PowerState::IdleB, idle_b), (PowerState::IdleC, idle_c), (PowerState::Seek, seek),
            (PowerState::WriteSeek, write_seek), (PowerState::Rotate, rotate), (PowerState::Read, read),
            (PowerState::Write, write), (PowerState::Wake, seek), (PowerState::Standby, STANDBY_UW),
        ];
        let each = states.map(|(state, watts)| u128::from(watts) * u128::from(spent.time_in(state).as_nanos()));
        let turns = u128::from(microjoules.0 * spent.spin_downs() + microjoules.1 * spent.spin_ups());
        prop_assert!(spent.spin_downs() > 0);
        prop_assert_eq!(spent.energy_fj(), each.into_iter().sum::<u128>() + 1_000_000_000 * turns);
    }

    #[test]
    fn without_a_buffer_the_energy_is_what_the_answers_breakdowns_add_up_to(
        mut config in configs(), steps in steps(), microwatts in microwatts(),
    ) {
        let [_, _, idle, ..] = microwatts;
        let mut power = priced(microwatts, (0, 0));
        (power.rotate_w, power.idle_b, power.idle_c) = (power.idle_a_w, None, None);
        config.power = Some(power);
        config.buffer = None;
        let works = |step: &SpacedRequest| matches!(step.operation, Operation::Read | Operation::Write);
        let steps: Vec<SpacedRequest> = steps.into_iter().filter(works).collect();
        let mut bench = run(&config, &steps, 0);
        bench.now += Duration::from_secs(10);
        let [_, _, _, seek, write_seek, _, read, write] = microwatts;
        let mut expected = u128::from(idle) * u128::from(bench.now.as_nanos());
        for done in &bench.done {
            let writes = steps[done.id.0 as usize].operation == Operation::Write;
            let (seek, passes) = if writes { (write_seek, write) } else { (seek, read) };
            for (span, watts) in [(done.breakdown.seek, seek), (done.breakdown.transfer, passes)] {
                expected += u128::from(watts - idle) * u128::from(span.as_nanos());
            }
        }
        prop_assert_eq!(bench.spent().energy_fj(), expected);
    }

    #[test]
    fn late_wake_ups_do_not_move_the_timeline(config in configs(), steps in steps(), late in 0u64..30_000_000) {
        let (early, late) = (run(&config, &steps, 0), run(&config, &steps, late));
        prop_assert_eq!(early.done, late.done);
        prop_assert_eq!(early.told, late.told);
    }

    #[test]
    fn a_flush_ends_behind_what_came_before_it_and_before_what_comes_behind(
        mut config in configs(), steps in steps(),
    ) {
        config.buffer.as_mut().unwrap().write_back = true;
        config.queue.flush = FlushCommand::Alone;
        config.power.get_or_insert(PowerConfig { spin_up_ms: 20.0, spin_down_ms: 5.0, ..PowerConfig::default() });
        let mut done = run(&config, &steps, 0).done;
        done.sort_by_key(|done| done.id);
        for (at, _) in steps.iter().enumerate().filter(|(_, step)| step.operation == Operation::Flush) {
            prop_assert!(done[..at].iter().all(|before| before.finished <= done[at].finished));
            prop_assert!(done[at..].iter().all(|behind| behind.finished >= done[at].finished));
        }
    }
}
