//! Tests of the layer under every elevator.

use super::originals::HostTime;
use super::{BlockLayer, Flushing, LayerSettings, Plugging, Tags};
use crate::TickClock;
use crate::elevator::testing::{CAPACITY, ModelTracks, build, settings};
use crate::elevator::{Elevator, REGISTRY};
use fullstroke_contract::registry::find;
use fullstroke_contract::{
    Breakdown, Completion, Counters, Effect, Effects, Extent, Hints, Node, NodeContext, Operation,
    Port, PriorityClass, Request, RequestId, RequestStatus, Stripes, Wake,
};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Lbn, Sectors, Time};

/// A layer, with its dispatched and completed requests.
struct LayerTrial {
    layer: BlockLayer,
    out: Effects,
    now: Time,
    sent: Vec<Request>,
    done: Vec<Completion>,
}

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

fn elevator(name: &str) -> Box<dyn Elevator> {
    build(find("elevator", REGISTRY, "", name).unwrap(), "{}", 1)
}

fn unplugged(queue_depth: u32) -> LayerSettings {
    LayerSettings {
        plug: Plugging::None,
        ..settings(queue_depth)
    }
}

fn plugged_queue() -> LayerSettings {
    let delay = Duration::from_millis(3);
    LayerSettings {
        plug: Plugging::Queue,
        unplug_threshold: 4,
        unplug_delay: delay,
        ..settings(8)
    }
}

impl LayerTrial {
    fn new(name: &str, settings: LayerSettings) -> LayerTrial {
        LayerTrial::over(name, settings, None)
    }

    fn over(name: &str, settings: LayerSettings, stripes: Option<Box<dyn Stripes>>) -> LayerTrial {
        let layer = BlockLayer::new(elevator(name), &settings, stripes);
        LayerTrial {
            layer,
            out: Effects::new(),
            now: Time::ZERO,
            sent: Vec::new(),
            done: Vec::new(),
        }
    }

    fn at(&mut self, now: Time) -> &mut LayerTrial {
        while self.layer.next_wake().at() <= now {
            let due = self.layer.next_wake().at();
            self.layer.wake(due, &mut NodeContext::alone(&mut self.out));
            self.collect();
        }
        self.now = now;
        self
    }

    fn submit(
        &mut self,
        id: u64,
        operation: Operation,
        start: u64,
        sectors: u64,
    ) -> &mut LayerTrial {
        let request = Request {
            operation,
            extent: Extent::new(start, sectors),
            ..Request::default()
        };
        self.submit_request(Request {
            id: RequestId(id),
            origin: id,
            ..request
        })
    }

    fn submit_request(&mut self, request: Request) -> &mut LayerTrial {
        self.layer.submit(
            self.now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect();
        self
    }

    /// Completes the request with the dispatch number `index`.
    fn complete(
        &mut self,
        index: usize,
        submitted: Time,
        status: RequestStatus,
    ) -> &mut LayerTrial {
        let breakdown = Breakdown {
            transfer: self.now.since(submitted),
            ..Breakdown::default()
        };
        let id = self.sent[index].id;
        let completion = Completion {
            id,
            submitted,
            finished: self.now,
            status,
            breakdown,
        };
        self.layer.completed(
            self.now,
            Port::FIRST,
            completion,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect();
        self
    }

    fn collect(&mut self) {
        for effect in self.out.drain() {
            match effect {
                Effect::Issue { request, .. } => self.sent.push(request),
                Effect::Complete { completion, .. } => {
                    let response = completion.finished.since(completion.submitted);
                    assert_eq!(completion.breakdown.response(), response);
                    self.done.push(completion);
                }
                Effect::Notice { notice, .. } => panic!("{notice:?}"),
            }
        }
    }

    fn extents(&self) -> Vec<(u64, u64)> {
        self.sent
            .iter()
            .map(|request| (request.extent.start.0, request.extent.sectors.0))
            .collect()
    }

    fn ids(&self) -> Vec<u64> {
        self.done.iter().map(|completion| completion.id.0).collect()
    }
}

use Operation::{Discard, Flush, Read, Standby, Start, Write};

#[test]
fn a_merged_request_completes_each_part_with_its_own_time() {
    let mut trial = LayerTrial::new("sstf", unplugged(1));
    trial.submit(70, Read, 5000, 8);
    trial.at(ms(1)).submit(71, Read, 100, 8);
    trial.at(ms(2)).submit(72, Read, 108, 8);
    trial.at(ms(3)).submit(73, Read, 92, 8);
    trial.at(ms(5)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!(trial.extents(), [(5000, 8), (92, 24)]);
    trial.at(ms(9)).complete(1, ms(5), RequestStatus::Done);
    let responses: Vec<(u64, Duration, Duration)> = trial
        .done
        .iter()
        .map(|done| {
            (
                done.id.0,
                done.finished.since(done.submitted),
                done.breakdown.queue,
            )
        })
        .collect();
    let of = Duration::from_millis;
    assert_eq!(
        responses,
        [
            (70, of(5), of(0)),
            (73, of(6), of(2)),
            (71, of(8), of(4)),
            (72, of(7), of(3))
        ]
    );
}

#[test]
fn two_waiting_requests_coalesce_when_a_third_closes_the_gap() {
    let mut trial = LayerTrial::new("sstf", unplugged(1));
    trial
        .submit(0, Read, 5000, 8)
        .submit(1, Read, 100, 8)
        .submit(2, Read, 116, 8)
        .submit(3, Read, 108, 8);
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!(trial.extents(), [(5000, 8), (100, 24)]);
    trial.at(ms(2)).complete(1, ms(1), RequestStatus::Done);
    assert_eq!(trial.ids(), [0, 1, 3, 2]);
}

#[test]
fn what_differs_in_kind_or_priority_is_not_merged() {
    let mut trial = LayerTrial::new("sstf", unplugged(1));
    trial
        .submit(0, Read, 5000, 8)
        .submit(1, Read, 100, 8)
        .submit(2, Write, 108, 8)
        .submit(3, Discard, 92, 8);
    let real_time = Hints {
        class: PriorityClass::RealTime,
        ..Hints::default()
    };
    let forced = Hints {
        force_unit_access: true,
        ..Hints::default()
    };
    for (id, operation, start, hints) in [(4, Read, 108, real_time), (5, Write, 116, forced)] {
        let request = Request {
            id: RequestId(id),
            operation,
            hints,
            ..Request::default()
        };
        trial.submit_request(Request {
            extent: Extent::new(start, 8),
            ..request
        });
    }
    for index in 0..6 {
        trial
            .at(ms(index as u64 + 1))
            .complete(index, ms(index as u64), RequestStatus::Done);
    }
    assert!(
        trial.extents().iter().all(|&(_, sectors)| sectors == 8),
        "{:?}",
        trial.extents()
    );
}

#[test]
fn a_request_that_is_too_long_is_cut_and_completes_once() {
    let mut trial = LayerTrial::new("noop", unplugged(8));
    trial.submit(7, Read, 1000, 2500);
    assert_eq!(trial.extents(), [(1000, 1024), (2024, 1024), (3048, 452)]);
    trial.at(ms(1)).complete(1, ms(0), RequestStatus::Done);
    trial.at(ms(2)).complete(0, ms(0), RequestStatus::Lost);
    assert!(trial.done.is_empty());
    trial.at(ms(3)).complete(2, ms(0), RequestStatus::Done);
    assert_eq!(
        (trial.ids(), trial.done[0].status),
        (vec![7], RequestStatus::Lost)
    );
    assert_eq!(
        (trial.done[0].submitted, trial.done[0].finished),
        (ms(0), ms(3))
    );
}

#[test]
fn merging_ends_at_the_longest_request_and_at_the_end_of_the_device() {
    let mut trial = LayerTrial::new("noop", unplugged(1));
    trial
        .submit(0, Read, 0, 8)
        .submit(1, Read, 5000, 1020)
        .submit(2, Read, 6020, 8);
    let end = CAPACITY.0;
    trial
        .submit(3, Read, end - 8, 8)
        .submit(4, Read, end, 8)
        .submit(5, Read, end + 8, 1 << 40);
    for index in 0..6 {
        trial
            .at(ms(index as u64 + 1))
            .complete(index, ms(index as u64), RequestStatus::Done);
    }
    let expected = [
        (0, 8),
        (5000, 1020),
        (6020, 8),
        (end - 8, 8),
        (end, 8),
        (end + 8, 1 << 40),
    ];
    assert_eq!(trial.extents(), expected);
}

struct Units;

impl Stripes for Units {
    fn unit(&self) -> Sectors {
        Sectors(128)
    }
    fn member_of(&self, lbn: Lbn) -> u32 {
        (lbn.0 / 128 % 4) as u32
    }
}

/// Returns a layer above tracks of a thousand sectors.
fn aligned(settings: LayerSettings) -> LayerTrial {
    let trial = LayerTrial::new("noop", settings);
    let tracks = std::sync::Arc::new(Boundaries::of(&ModelTracks, "the model").unwrap());
    LayerTrial {
        layer: trial.layer.aligned_to(Some(tracks)),
        ..trial
    }
}

#[test]
fn requests_end_with_tracks_where_they_are_aligned() {
    let mut trial = aligned(unplugged(8));
    trial.submit(0, Read, 900, 1300);
    assert_eq!(trial.extents(), [(900, 100), (1000, 1000), (2000, 200)]);
    let mut trial = aligned(unplugged(1));
    trial
        .submit(0, Read, 5000, 8)
        .submit(1, Read, 984, 8)
        .submit(2, Read, 992, 8)
        .submit(3, Read, 1000, 8);
    for index in 0..3 {
        trial
            .at(ms(index + 1))
            .complete(index as usize, ms(index), RequestStatus::Done);
    }
    assert_eq!(
        trial.extents()[1..],
        [(984, 16), (1000, 8)],
        "none is merged across"
    );
}

#[test]
fn the_end_of_a_track_pulls_the_plug() {
    let write = |trial: &mut LayerTrial, id: u64, start: u64| {
        let hints = Hints {
            synchronous: false,
            ..Hints::default()
        };
        let request = Request {
            operation: Write,
            extent: Extent::new(start, 8),
            hints,
            ..Request::default()
        };
        trial.submit_request(Request {
            id: RequestId(id),
            origin: id,
            ..request
        });
    };
    for (make, expected) in [
        (aligned as fn(LayerSettings) -> LayerTrial, vec![(984, 16)]),
        (|settings| LayerTrial::new("noop", settings), vec![]),
    ] {
        let mut trial = make(plugged_queue());
        write(&mut trial, 0, 984);
        assert!(trial.sent.is_empty());
        write(&mut trial, 1, 992);
        assert_eq!(trial.extents(), expected);
    }
}

#[test]
fn stripe_aware_merging_keeps_units_apart() {
    for (stripe_aware_merging, expected) in
        [(true, vec![(64, 64), (128, 64)]), (false, vec![(64, 128)])]
    {
        let settings = LayerSettings {
            stripe_aware_merging,
            ..unplugged(1)
        };
        let mut trial = LayerTrial::over("noop", settings, Some(Box::new(Units)));
        trial.submit(0, Read, 5000, 8);
        trial
            .submit(1, Read, 64, 32)
            .submit(2, Read, 96, 32)
            .submit(3, Read, 128, 64);
        for index in 0..=expected.len() {
            trial
                .at(ms(index as u64 + 1))
                .complete(index, ms(index as u64), RequestStatus::Done);
        }
        assert_eq!(trial.extents()[1..], expected);
    }
}

#[test]
fn submitters_wait_for_a_free_request_of_their_direction_in_order() {
    let mut trial = LayerTrial::new(
        "fifo",
        LayerSettings {
            tags: Tags::PerDirection(2),
            ..unplugged(1)
        },
    );
    for id in 0..5 {
        trial.submit(id, Read, id * 1000, 8);
    }
    trial.submit(5, Write, 90_000, 8);
    assert_eq!(trial.layer.gauge().queue_length, 6);
    for index in 0..6 {
        trial
            .at(ms(index as u64 + 1))
            .complete(index, ms(index as u64), RequestStatus::Done);
    }
    // The write had a free request of its own direction. The reads 2 to 4 had to wait.
    assert_eq!(trial.ids(), [0, 1, 5, 2, 3, 4]);
    assert_eq!(trial.done[5].breakdown.queue, Duration::from_millis(5));
}

#[test]
fn a_waiting_submitter_is_let_in_by_a_merge_that_it_fits() {
    let mut trial = LayerTrial::new(
        "noop",
        LayerSettings {
            tags: Tags::PerDirection(2),
            ..unplugged(1)
        },
    );
    trial
        .submit(0, Read, 5000, 8)
        .submit(1, Read, 100, 8)
        .submit(2, Read, 9000, 8)
        .submit(3, Read, 9008, 8);
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    // Request 2 has taken the freed request of 0. Request 3 begins where request 2 ends, and was
    // merged into 2.
    trial.at(ms(2)).complete(1, ms(1), RequestStatus::Done);
    assert_eq!(trial.extents(), [(5000, 8), (100, 8), (9000, 16)]);
}

#[test]
fn blocked_processes_are_woken_in_the_order_of_the_wait_queues() {
    let mut trial = LayerTrial::new(
        "none",
        LayerSettings {
            tags: Tags::Shared(1),
            ..unplugged(1)
        },
    );
    for process in 1..6 {
        let request = Request {
            id: RequestId(process),
            extent: Extent::new(process * 1000, 8),
            hints: Hints {
                process: process as u32,
                ..Hints::default()
            },
            ..Request::default()
        };
        trial.submit_request(request);
    }
    for index in 0..5 {
        let began = ms(index as u64);
        trial
            .at(ms(index as u64 + 1))
            .complete(index, began, RequestStatus::Done);
    }
    // The ring of queues is woken from the third queue on, whatever the order of the waits.
    assert_eq!(trial.ids(), [1, 4, 5, 2, 3]);
}

#[test]
fn without_a_budget_one_request_leaves_the_elevator_before_the_device_has_room() {
    for (ahead, order) in [(false, [0, 2, 1]), (true, [0, 1, 2])] {
        let settings = LayerSettings {
            ahead,
            ..unplugged(1)
        };
        let mut trial = LayerTrial::new("sstf", settings);
        trial
            .submit(0, Read, 0, 8)
            .submit(1, Read, 9000, 8)
            // Nearer to the arm, but request 1 has been chosen already if it went ahead.
            .submit(2, Read, 100, 8);
        for index in 0..3 {
            let began = ms(index as u64);
            trial
                .at(ms(index as u64 + 1))
                .complete(index, began, RequestStatus::Done);
        }
        assert_eq!(trial.ids(), order, "ahead = {ahead}");
    }
}

#[test]
fn a_flush_drains_and_nothing_passes_it() {
    let mut trial = LayerTrial::new("sstf", unplugged(4));
    trial
        .submit(0, Write, 0, 8)
        .submit(1, Write, 5000, 8)
        .submit(2, Flush, 0, 0)
        .submit(3, Read, 64, 8);
    assert_eq!(trial.sent.len(), 2);
    trial.at(ms(1)).complete(1, ms(0), RequestStatus::Done);
    assert_eq!(trial.sent.len(), 2);
    trial.at(ms(2)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!(trial.sent.last().unwrap().operation, Flush);
    assert_eq!(trial.sent.len(), 3);
    trial.at(ms(4)).complete(2, ms(2), RequestStatus::Done);
    assert_eq!(trial.sent.len(), 4);
    trial.at(ms(5)).complete(3, ms(4), RequestStatus::Done);
    assert_eq!(trial.ids(), [1, 0, 2, 3]);
}

fn sequence(queue_depth: u32) -> LayerSettings {
    LayerSettings {
        flush: Flushing::Sequence,
        ..unplugged(queue_depth)
    }
}

/// Returns a forced write.
fn forced(id: u64, start: u64, sectors: u64) -> Request {
    let hints = Hints {
        force_unit_access: true,
        ..Hints::default()
    };
    let extent = Extent::new(start, sectors);
    Request {
        id: RequestId(id),
        origin: id,
        operation: Write,
        extent,
        hints,
        ..Request::default()
    }
}

#[test]
fn a_flush_of_today_makes_nobody_wait() {
    let mut trial = LayerTrial::new("sstf", sequence(4));
    trial
        .submit(0, Write, 0, 8)
        .submit(1, Flush, 0, 0)
        .submit(2, Read, 64, 8);
    let operations: Vec<Operation> = trial.sent.iter().map(|request| request.operation).collect();
    assert_eq!(operations, [Write, Flush, Read]);
    trial.at(ms(1)).complete(2, ms(0), RequestStatus::Done);
    trial.at(ms(2)).complete(1, ms(0), RequestStatus::Done);
    trial.at(ms(3)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!(trial.ids(), [2, 1, 0]);
}

#[test]
fn what_stops_the_platters_passes_the_elevator_by() {
    let mut trial = LayerTrial::new("noop", unplugged(1));
    trial
        .submit(0, Read, 0, 8)
        .submit(1, Read, 64, 8)
        .submit(2, Standby, 0, 0)
        .submit(3, Start, 0, 0);
    let operations: Vec<Operation> = trial.sent.iter().map(|request| request.operation).collect();
    assert_eq!(operations, [Read, Standby, Start]);
    trial.at(ms(1)).complete(2, ms(0), RequestStatus::Done);
    trial.at(ms(2)).complete(1, ms(0), RequestStatus::Done);
    assert_eq!(trial.sent.len(), 3, "the read is still with the device");
    trial.at(ms(3)).complete(0, ms(0), RequestStatus::Done);
    trial.at(ms(4)).complete(3, ms(3), RequestStatus::Done);
    assert_eq!(
        (trial.ids(), trial.layer.gauge().queue_length),
        (vec![3, 2, 0, 1], 0)
    );
}

#[test]
fn flushes_that_wait_for_another_become_one() {
    let mut trial = LayerTrial::new("noop", sequence(4));
    trial.submit(0, Flush, 0, 0);
    trial.at(ms(1)).submit(1, Flush, 0, 0);
    trial.at(ms(2)).submit(2, Flush, 0, 0);
    assert_eq!(trial.sent.len(), 1, "one flush is under way at a time");
    trial.at(ms(3)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!((trial.sent.len(), trial.ids()), (2, vec![0]));
    trial.at(ms(7)).complete(1, ms(3), RequestStatus::Lost);
    assert_eq!((trial.sent.len(), trial.ids()), (2, vec![0, 1, 2]));
    let ends: Vec<(Duration, RequestStatus)> = trial
        .done
        .iter()
        .map(|done| (done.breakdown.queue, done.status))
        .collect();
    let of = Duration::from_millis;
    assert_eq!(
        ends,
        [
            (of(0), RequestStatus::Done),
            (of(2), RequestStatus::Lost),
            (of(1), RequestStatus::Lost)
        ]
    );
    assert_eq!(trial.layer.gauge().queue_length, 0);
}

/// `blk_insert_flush` sends the first flush before it returns. XFS on Linux 6.18: after one log
/// write three processes flush, and the device gets two flushes.
#[test]
fn of_flushes_of_one_instant_the_first_goes_alone_and_the_others_share_the_next() {
    let time = HostTime {
        submission: Duration::from_micros(13),
        ..HostTime::default()
    };
    let settings = LayerSettings {
        time,
        ..sequence(4)
    };
    let mut trial = LayerTrial::new("noop", settings);
    for id in 0..3 {
        trial.submit(id, Flush, 0, 0);
    }
    trial.at(ms(2)).complete(0, ms(1), RequestStatus::Done);
    assert_eq!((trial.sent.len(), trial.ids()), (2, vec![0]));
    trial.at(ms(3)).complete(1, ms(2), RequestStatus::Done);
    assert_eq!((trial.sent.len(), trial.ids()), (2, vec![0, 1, 2]));
}

/// A log write is a flush and a forced write. In Linux both are one request, so that a flush that
/// arrives during the first shares the flush behind the second.
#[test]
fn a_flush_waits_for_the_forced_write_that_the_flush_before_announces() {
    let before = Request {
        id: RequestId(0),
        operation: Flush,
        hints: Hints {
            before_forced_write: true,
            ..Hints::default()
        },
        ..Request::default()
    };
    let settings = || LayerSettings {
        fua: false,
        ..sequence(4)
    };
    let mut trial = LayerTrial::new("noop", settings());
    trial.submit_request(before).submit(1, Flush, 0, 0);
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    trial.submit_request(forced(2, 100, 8));
    assert_eq!(trial.sent.len(), 2, "the first flush and the write");
    trial.at(ms(2)).complete(1, ms(1), RequestStatus::Done);
    assert_eq!((trial.sent.len(), trial.ids()), (3, vec![0]));
    trial.at(ms(3)).complete(2, ms(2), RequestStatus::Done);
    assert_eq!((trial.sent.len(), trial.ids()), (3, vec![0, 1, 2]));
    // A device that does not get the write does not wait for it.
    let mut trial = LayerTrial::new("noop", settings());
    trial.submit_request(before).submit(1, Flush, 0, 0);
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    trial.at(ms(2));
    assert_eq!(trial.sent.len(), 2, "the second flush goes alone");
}

#[test]
fn a_flush_counts_in_the_depth_and_goes_before_what_waits() {
    for flush in [Flushing::Sequence, Flushing::Drain] {
        let mut trial = LayerTrial::new(
            "noop",
            LayerSettings {
                flush,
                ..unplugged(1)
            },
        );
        trial
            .submit(0, Read, 5000, 8)
            .submit(1, Read, 100, 8)
            .submit(2, Flush, 0, 0);
        assert_eq!(trial.sent.len(), 1);
        trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
        assert_eq!(
            trial.sent[1].operation,
            if flush == Flushing::Drain {
                Read
            } else {
                Flush
            }
        );
        trial.at(ms(2)).complete(1, ms(1), RequestStatus::Done);
        trial.at(ms(3)).complete(2, ms(2), RequestStatus::Done);
        assert_eq!((trial.sent.len(), trial.done.len()), (3, 3));
    }
}

#[test]
fn a_flush_takes_one_of_the_requests_and_gives_it_back() {
    let mut trial = LayerTrial::new(
        "noop",
        LayerSettings {
            tags: Tags::PerDirection(1),
            ..sequence(4)
        },
    );
    trial
        .submit(0, Flush, 0, 0)
        .submit(1, Write, 0, 8)
        .submit(2, Flush, 0, 0)
        .submit(3, Read, 100, 8);
    assert_eq!(trial.sent.len(), 2, "the flush and the read");
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    trial.at(ms(2)).complete(2, ms(1), RequestStatus::Done);
    trial.at(ms(3)).complete(3, ms(2), RequestStatus::Done);
    assert_eq!(trial.ids(), [0, 1, 2]);
}

#[test]
fn a_forced_write_is_the_devices_or_a_write_and_a_flush() {
    let mut trial = LayerTrial::new("noop", sequence(4));
    trial.submit_request(forced(0, 0, 8));
    assert!(trial.sent[0].hints.force_unit_access);
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!((trial.sent.len(), trial.ids()), (1, vec![0]));

    let mut trial = LayerTrial::new(
        "noop",
        LayerSettings {
            fua: false,
            ..sequence(4)
        },
    );
    trial
        .submit_request(forced(0, 0, 1100))
        .submit_request(forced(1, 5000, 8));
    assert!(
        trial
            .sent
            .iter()
            .all(|request| !request.hints.force_unit_access)
    );
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    trial.at(ms(2)).complete(1, ms(0), RequestStatus::Done);
    assert_eq!(
        trial.sent.len(),
        3,
        "the flush waits for the other forced write, to serve both"
    );
    trial.at(ms(3)).complete(2, ms(0), RequestStatus::Done);
    assert_eq!(trial.sent[3].operation, Flush);
    assert!(trial.done.is_empty());
    trial.at(ms(4)).complete(3, ms(3), RequestStatus::Done);
    assert_eq!((trial.sent.len(), trial.ids()), (4, vec![0, 1]));
    assert_eq!(trial.layer.gauge().queue_length, 0);
    let mut counters = Counters::default();
    trial.layer.count(ms(4), &mut counters);
    let readings = counters.layers.iter().flat_map(|layer| &layer.readings);
    let counted: Vec<f64> = readings.map(|reading| reading.value).collect();
    assert_eq!(counted, [1.0], "one flush for both");
}

#[test]
fn a_flush_waits_five_seconds_for_forced_writes_and_no_longer() {
    let mut trial = LayerTrial::new(
        "noop",
        LayerSettings {
            fua: false,
            ..sequence(4)
        },
    );
    trial.submit_request(forced(0, 0, 8)).submit(1, Flush, 0, 0);
    assert_eq!(trial.sent.len(), 1);
    trial.at(ms(5001)).submit(2, Read, 100, 8);
    assert_eq!(trial.sent[1].operation, Flush);
}

#[test]
fn a_run_waits_for_a_completion_that_arrives_after_the_end_of_a_throttles_window() {
    let settings = LayerSettings {
        read_target: Some(Duration::from_millis(75)),
        time: HostTime {
            submission: Duration::ZERO,
            completion: Duration::from_nanos(14_000),
            ..HostTime::default()
        },
        ..unplugged(32)
    };
    let mut trial = LayerTrial::new("deadline", settings);
    // A write in the background opens a window of 100 ms.
    let write = Request {
        id: RequestId(1),
        operation: Write,
        extent: Extent::new(0, 8),
        hints: Hints {
            synchronous: false,
            ..Hints::default()
        },
        ..Request::default()
    };
    trial.submit_request(write).at(ms(50));
    trial.complete(0, ms(0), RequestStatus::Done).at(ms(90));
    assert_eq!(trial.ids(), [1]);
    assert_eq!(
        trial.layer.next_wake(),
        Wake::Chore(ms(100)),
        "nothing waits for the end of the window"
    );
    trial.submit(2, Read, 800, 8);
    let just_before = Time::from_nanos(99_990_000);
    trial
        .at(just_before)
        .complete(1, ms(90), RequestStatus::Done);
    assert_eq!(trial.ids(), [1], "the completion is on its way");
    assert_eq!(trial.layer.next_wake(), Wake::Work(ms(100)));
    trial.at(ms(101));
    assert_eq!(trial.ids(), [1, 2]);
}

#[test]
fn a_queue_plug_waits_for_the_threshold_or_the_delay() {
    let asynchronous = Hints {
        synchronous: false,
        ..Hints::default()
    };
    let write = |trial: &mut LayerTrial, id: u64| {
        let extent = Extent::new(id * 1000, 8);
        let request = Request {
            operation: Write,
            extent,
            hints: asynchronous,
            ..Request::default()
        };
        trial.submit_request(Request {
            id: RequestId(id),
            ..request
        });
    };
    let mut trial = LayerTrial::new("noop", plugged_queue());
    (0..3).for_each(|id| write(&mut trial, id));
    assert_eq!((trial.sent.len(), trial.layer.next_wake().at()), (0, ms(3)));
    write(&mut trial, 3);
    assert_eq!(trial.sent.len(), 4);

    let mut trial = LayerTrial::new("noop", plugged_queue());
    write(&mut trial, 0);
    trial.at(ms(2));
    assert_eq!(trial.sent.len(), 0);
    trial.at(ms(3));
    assert_eq!(trial.sent.len(), 1);

    // 3 ms are one tick of 4 ms.
    let clock = TickClock::new(Some(250)).unwrap();
    let mut trial = LayerTrial::new(
        "noop",
        LayerSettings {
            clock,
            ..plugged_queue()
        },
    );
    trial.at(ms(7));
    write(&mut trial, 0);
    assert_eq!(trial.layer.next_wake().at(), ms(8));
}

#[test]
fn a_submitter_that_must_wait_pulls_the_plug() {
    let mut trial = LayerTrial::new(
        "fifo",
        LayerSettings {
            tags: Tags::PerDirection(2),
            ..settings(8)
        },
    );
    trial.submit(0, Read, 100, 8).submit(1, Read, 200, 8);
    assert_eq!(trial.sent.len(), 0);
    trial.submit(2, Read, 300, 8);
    assert_eq!(trial.extents(), [(100, 8), (200, 8)]);
}

#[test]
fn who_waits_pulls_the_queue_plug_when_all_of_the_instant_is_there() {
    let mut trial = LayerTrial::new("noop", plugged_queue());
    trial.submit(0, Read, 100, 8);
    assert_eq!((trial.sent.len(), trial.layer.next_wake().at()), (0, ms(0)));
    trial.submit(1, Read, 108, 8).at(ms(0));
    assert_eq!(trial.extents(), [(100, 16)]);
}

#[test]
fn a_task_plug_holds_what_comes_in_one_go() {
    let mut trial = LayerTrial::new(
        "noop",
        LayerSettings {
            unplug_threshold: 3,
            ..settings(8)
        },
    );
    trial.submit(0, Write, 100, 8).submit(1, Write, 108, 8);
    assert_eq!(trial.sent.len(), 0);
    trial.at(ms(0));
    assert_eq!(trial.extents(), [(100, 16)]);
    trial
        .at(ms(1))
        .submit(2, Write, 1000, 8)
        .submit(3, Write, 2000, 8)
        .submit(4, Write, 3000, 8);
    assert_eq!(
        trial.sent.len(),
        4,
        "as many as the threshold are not held back"
    );
}

#[test]
fn hints_of_parts_are_joined() {
    let mut trial = LayerTrial::new("noop", unplugged(1));
    trial.submit(0, Read, 0, 8);
    for (id, start, stripe) in [(1, 100, Some(4)), (2, 108, Some(5))] {
        let hints = Hints {
            stripe,
            process: id,
            ..Hints::default()
        };
        let extent = Extent::new(start, 8);
        let request = Request {
            extent,
            hints,
            origin: u64::from(id) + 10,
            ..Request::default()
        };
        trial.submit_request(Request {
            id: RequestId(u64::from(id)),
            ..request
        });
    }
    trial.at(ms(1)).complete(0, ms(0), RequestStatus::Done);
    let sent = trial.sent[1];
    assert_eq!((sent.hints.stripe, sent.hints.process), (None, 1));
    assert_eq!(sent.origin, 11);
}

/// Submits a synchronous write of a process.
fn write_of(trial: &mut LayerTrial, process: u32, id: u64, start: u64, direct: bool) {
    let hints = Hints {
        process,
        direct,
        ..Hints::default()
    };
    trial.submit_request(Request {
        id: RequestId(id),
        origin: id,
        operation: Write,
        extent: Extent::new(start, 8),
        hints,
        ..Request::default()
    });
}

#[test]
fn each_direct_request_ends_its_plug_and_joins_no_later_one() {
    for (direct, sent) in [(true, 3), (false, 1)] {
        let mut trial = LayerTrial::new("noop", settings(8));
        (0..3).for_each(|id| write_of(&mut trial, 1, id, 8 * id, direct));
        trial.at(ms(0));
        assert_eq!(trial.sent.len(), sent, "direct {direct}");
    }
}

#[test]
fn requests_of_a_process_go_before_another_process_submits() {
    let mut trial = LayerTrial::new("sstf", settings(1));
    write_of(&mut trial, 1, 0, 9000, false);
    write_of(&mut trial, 1, 1, 5000, false);
    assert_eq!(trial.sent.len(), 0, "the plug of process 1 holds");
    write_of(&mut trial, 2, 2, 100, false);
    assert_eq!(trial.sent[0].extent.start, Lbn(5000));
}

/// Linux 6.18, a real-time reader beside a reader without priority, mq-deadline: after a completion
/// of the first, its next request goes to the device, although the second has waiting requests and
/// the device is not full (`dd_finish_request` runs no queue).
#[test]
fn a_completion_runs_the_queue_only_if_the_device_was_full() {
    let settings = LayerSettings {
        time: HostTime {
            dispatch: Duration::from_micros(35),
            ..HostTime::default()
        },
        ..unplugged(4)
    };
    let urgent = |id, start| Request {
        id: RequestId(id),
        operation: Read,
        extent: Extent::new(start, 8),
        hints: Hints {
            class: fullstroke_contract::PriorityClass::RealTime,
            ..Hints::default()
        },
        ..Request::default()
    };
    let mut trial = LayerTrial::new("mq-deadline", settings);
    trial.submit_request(urgent(1, 0)).submit(2, Read, 800, 8);
    assert_eq!(trial.sent.len(), 1, "a lower class waits");
    trial.at(ms(10)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!(trial.sent.len(), 1, "the completion runs no queue");
    trial.submit_request(urgent(3, 400));
    assert_eq!(trial.sent.len(), 2);
    assert_eq!(trial.sent[1].extent.start.0, 400);
    // The worker asks again 3 ms after the last refusal.
    trial.at(ms(11)).complete(1, ms(10), RequestStatus::Done);
    trial.at(ms(14));
    assert_eq!(trial.sent.len(), 3);
    assert_eq!(trial.sent[2].extent.start.0, 800);
}

#[test]
fn a_full_device_is_filled_by_the_worker() {
    let settings = LayerSettings {
        time: HostTime {
            dispatch: Duration::from_micros(35),
            ..HostTime::default()
        },
        ..unplugged(1)
    };
    let mut trial = LayerTrial::new("mq-deadline", settings);
    trial.submit(1, Read, 0, 8).submit(2, Read, 800, 8);
    trial.at(ms(10)).complete(0, ms(0), RequestStatus::Done);
    assert_eq!(trial.sent.len(), 1, "the worker has not run yet");
    assert_eq!(
        trial.layer.next_wake().at(),
        ms(10) + Duration::from_micros(35)
    );
    trial.at(ms(11));
    assert_eq!(trial.sent.len(), 2);
}

/// Linux 6.18, two sequential writers whose queue may use one request: each request at the device
/// has the length of one write.
#[test]
fn a_direct_request_of_a_blocked_submitter_goes_before_its_next_request_can_join() {
    let settings = LayerSettings {
        tags: Tags::Shared(2),
        ..unplugged(2)
    };
    let direct = |id, start| Request {
        id: RequestId(id),
        operation: Write,
        extent: Extent::new(start, 8),
        hints: Hints {
            direct: true,
            synchronous: true,
            ..Hints::default()
        },
        ..Request::default()
    };
    let mut trial = LayerTrial::new("mq-deadline", settings);
    for (id, start) in [(1, 0), (2, 800), (3, 8), (4, 16)] {
        trial.submit_request(direct(id, start));
    }
    assert_eq!(trial.sent.len(), 2, "two are blocked");
    trial.at(ms(10)).complete(0, ms(0), RequestStatus::Done);
    trial.at(ms(11));
    assert_eq!(trial.sent.len(), 3);
    assert_eq!(trial.sent[2].extent, Extent::new(8, 8));
}
