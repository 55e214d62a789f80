//! The events of a pool, and its readings.

use super::{Pool, UpperRequest};
use crate::io::Purpose;
use crate::keys::Sync;
use fullstroke_contract::{
    Completion, Counters, Extent, Gauge, LayerOrder, LayerReadings, Node, NodeContext, Operation,
    Port, Refusal, Request, RequestStatus, Wake,
};
use fullstroke_units::Time;

impl Pool {
    /// Returns the share of the records that a scrub has read in this run, the data read in 10^6
    /// bytes a second, and the hours for all records at this pace; not a number without a scrub.
    fn scrub_readings(&self) -> (f64, f64, f64) {
        // NaN is left out of the readings: a pool without a scrub has no rate of 0.
        let Some((read, at)) = self.resilver.scrubbed() else {
            return (f64::NAN, f64::NAN, f64::NAN);
        };
        let seconds = at.as_nanos() as f64 / 1e9;
        let share = read as f64 / self.resilver.records() as f64;
        let rate = read as f64 * self.settings.record as f64 / 1e6 / seconds;
        (share, rate, seconds / share / 3600.0)
    }
}

impl Node for Pool {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        if let Some(status) = self.refusal(&request) {
            return cx
                .out
                .complete(Completion::at_once(request.id, now, status));
        }
        let asked = self.asked.keep(UpperRequest {
            request,
            submitted: now,
            remaining: 0,
            known: Default::default(),
            status: RequestStatus::Done,
            last: Completion::default(),
        });
        match request.operation {
            Operation::Read => {
                self.read(now, asked);
                if self.asked[asked].remaining == 0 && !self.calls(now, asked) {
                    self.finish(now, asked);
                }
            }
            Operation::Write => self.write(now, asked),
            Operation::Flush => {
                if self.settings.sync == Sync::Disabled {
                    self.finish(now, asked);
                } else {
                    self.zil.waiting.push_back(asked);
                }
            }
            // The space of discarded records of a volume is not freed: the volume stays as large.
            Operation::Discard | Operation::Answer => {
                self.free_extent(request.extent);
                self.finish(now, asked);
            }
            Operation::Standby | Operation::Start => {
                self.io
                    .command(request.operation, None, Purpose::Whole { asked }, cx.out);
            }
        }
        self.settle(now, cx.out);
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        self.io.completed(from.index(), &completion);
        // `vdev_queue_io_done` sends the next I/O of the drive before the blocks that this end frees
        // get their places, so that a write does not wait for those to join. The queues of the other
        // drives, and the limit of writes, are as the last event left them.
        self.io.send(from.index(), cx.out);
        self.settle(now, cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.settle(now, cx.out);
    }

    /// Records move, so that an address of a drive has no fixed owner.
    fn owners(&self, _: Port, _: Extent, _: &mut dyn FnMut(Port, Extent)) {}

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        self.carry_out(order)?;
        self.settle(now, cx.out);
        Ok(())
    }

    fn next_wake(&self) -> Wake {
        // A scan must start without a request, because a run may consist of the scan alone.
        if self.resilver.waits_for_start() {
            return Wake::Work(Time::ZERO);
        }
        let writer = self.delayed.front().map_or(Time::NEVER, |(at, _)| *at);
        let writer = writer.min(self.processor.next());
        let feed = self.l2arc.next().min(self.trim.next());
        let wake = match (self.txg.scan_ends(), self.due()) {
            // Writers may wait for the group behind the turn of a scan.
            (Some(ends), _) if !self.asked.is_empty() => Wake::Work(ends.min(writer)),
            (Some(ends), _) => Wake::Chore(ends.min(writer)),
            (None, due) if writer < Time::NEVER => {
                Wake::Work(due.map_or(writer, |due| due.min(writer)))
            }
            // Nobody waits for a group that is not full.
            (None, Some(due)) => Wake::Chore(due),
            (None, None) => Wake::NEVER,
        };
        match wake {
            // A run does not go on for the caches.
            Wake::NEVER if feed < Time::NEVER => Wake::Chore(feed),
            Wake::Work(at) => Wake::Work(at.min(feed)),
            Wake::Chore(at) => Wake::Chore(at.min(feed)),
        }
    }

    fn gauge(&self) -> Gauge {
        let waiting = self.asked.len() as u32;
        Gauge {
            queue_length: waiting,
            idle_since: (waiting == 0).then_some(self.idle_since),
            alive: self.io.answers(),
            ..Gauge::default()
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        let counts = &self.counts;
        let (issued, joined) = self
            .io
            .leaves
            .iter()
            .fold((0, 0), |(issued, joined), leaf| {
                (issued + leaf.counts.0, joined + leaf.counts.1)
            });
        let (runs, free) = self.space.fragments();
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let of_cache = |bytes: u64| match self.settings.caches {
            0 => f64::NAN,
            _ => mb(bytes),
        };
        let of_trim = |count: f64| match self.trim.is_used() {
            true => count,
            false => f64::NAN,
        };
        let scrub = self.scrub_readings();
        let all = [
            ("pool_hit_share", counts.hits as f64 / counts.reads as f64),
            (
                "pool_read_ahead_mb",
                mb(counts.fetched * self.settings.record),
            ),
            ("pool_reads_for_writes", counts.read_for_writes as f64),
            ("pool_groups", self.txg.groups as f64),
            ("pool_group_written_mb", mb(counts.written)),
            ("pool_metadata_written_mb", mb(counts.metadata)),
            (
                "pool_metadata_hit_share",
                (counts.metadata_asked - counts.metadata_read) as f64
                    / counts.metadata_asked as f64,
            ),
            (
                "pool_metadata_read_mb",
                match counts.metadata_asked {
                    0 => f64::NAN,
                    _ => mb(counts.metadata_bytes),
                },
            ),
            ("pool_delayed_ms", counts.delayed.as_millis_f64()),
            ("pool_log_commits", self.zil.commits as f64),
            (
                "pool_l2arc_hit_share",
                self.l2arc.hits as f64 / self.l2arc.misses as f64,
            ),
            ("pool_l2arc_written_mb", of_cache(self.l2arc.fed)),
            ("pool_l2arc_headers_mb", of_cache(self.l2arc.headers())),
            ("pool_processor_ms", self.processor.worked.as_millis_f64()),
            ("pool_trims", of_trim(self.trim.counts.0 as f64)),
            ("pool_trimmed_mb", of_trim(mb(self.trim.counts.1))),
            ("pool_drive_ios", issued as f64),
            ("pool_joined_ios", joined as f64),
            ("pool_drive_read_mb", mb(self.io.moved.0)),
            ("pool_drive_written_mb", mb(self.io.moved.1)),
            ("pool_free_run_mb_mean", mb(free) / runs as f64),
            ("pool_written_in_place", counts.in_place as f64),
            ("pool_scrub_share", scrub.0),
            ("pool_scrub_mb_per_s", scrub.1),
            ("pool_scrub_hours", scrub.2),
        ];
        let counted: Vec<(&'static str, f64)> = all
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .collect();
        counters
            .layers
            .push(LayerReadings::new(format!("pool {}", self.name), &counted));
    }
}
