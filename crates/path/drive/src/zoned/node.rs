//! The node around a drive with zones.

use super::config::Zones;
use super::pointers::ZonePointers;
use fullstroke_contract::{
    Breakdown, Completion, Counters, Gauge, LayerOrder, LayerReadings, Node, NodeContext,
    Operation, Port, Refusal, Request, RequestStatus, Wake,
};
use fullstroke_units::{Sectors, Time};
use std::collections::VecDeque;

/// A drive with zones that the host knows of.
///
/// - **Events in**: `submit`, `wake`.
/// - **Effects out**: the effects of the drive inside, and the answers to refused requests and to
///   resets of zones.
pub(crate) struct ZonedDrive {
    drive: Box<dyn Node>,
    pointers: ZonePointers,
    /// Completions of requests that the zones answer, in the order of their ends.
    held: VecDeque<Completion>,
}

impl ZonedDrive {
    pub(crate) fn new(drive: Box<dyn Node>, zones: &Zones) -> ZonedDrive {
        ZonedDrive {
            drive,
            pointers: ZonePointers::new(zones),
            held: VecDeque::new(),
        }
    }

    /// Answers a request without the drive inside.
    fn answer(&mut self, now: Time, request: &Request, status: RequestStatus) {
        let overhead = self.pointers.zones().answer;
        self.held.push_back(Completion {
            id: request.id,
            submitted: now,
            finished: now + overhead,
            status,
            breakdown: Breakdown {
                overhead,
                ..Breakdown::default()
            },
        });
    }

    /// Sends the answers whose time has come.
    fn send(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(answer) = self.held.front().filter(|answer| answer.finished <= now) {
            cx.out.complete(*answer);
            self.held.pop_front();
        }
    }
}

impl Node for ZonedDrive {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.send(now, cx);
        let zones = self.pointers.zones();
        let capacity = Sectors(zones.zone * u64::from(zones.count));
        let extent = request.extent;
        // The drive inside refuses requests outside of the drive.
        if !extent.within(capacity) || extent.sectors == Sectors::ZERO {
            return self.drive.submit(now, from, request, cx);
        }
        let checked = match request.operation {
            Operation::Read => self.pointers.read(extent),
            Operation::Write => self.pointers.write(extent),
            Operation::Discard => {
                if self.pointers.reset(extent) && self.pointers.zones().host_managed {
                    return self.answer(now, &request, RequestStatus::Done);
                }
                Ok(())
            }
            _ => Ok(()),
        };
        match checked {
            Ok(()) => self.drive.submit(now, from, request, cx),
            Err(_) => self.answer(now, &request, RequestStatus::Refused),
        }
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.send(now, cx);
        self.drive.wake(now, cx);
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        self.drive.ordered(now, order, cx)
    }

    fn next_wake(&self) -> Wake {
        let inside = self.drive.next_wake();
        match self.held.front() {
            Some(answer) => Wake::Work(inside.at().min(answer.finished)),
            None => inside,
        }
    }

    fn gauge(&self) -> Gauge {
        let inside = self.drive.gauge();
        match self.held.len() {
            0 => inside,
            held => Gauge {
                queue_length: inside.queue_length + held as u32,
                idle_since: None,
                ..inside
            },
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        self.drive.count(now, counters);
        let counts = &self.pointers.counts;
        let readings = [
            ("zoned_unaligned_writes", counts.unaligned as f64),
            ("zoned_boundary_requests", counts.boundary as f64),
            ("zoned_no_resources", counts.no_resources as f64),
            ("zoned_invalid_reads", counts.invalid_reads as f64),
            ("zoned_random_writes", counts.random_writes as f64),
            ("zoned_closed", counts.closed as f64),
            ("zoned_resets", counts.resets as f64),
            ("zoned_open", self.pointers.open() as f64),
        ];
        counters.layers.push(LayerReadings::new("zoned", &readings));
    }
}
