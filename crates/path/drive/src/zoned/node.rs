//! The node around a drive with zones.

use super::config::Zones;
use super::plug::{RequestAbove, ZonePlug};
use super::pointers::ZonePointers;
use crate::shingled::ShingledDrive;
use fullstroke_contract::{
    Breakdown, Completion, Counters, Effect, Effects, Gauge, LayerOrder, LayerReadings, Node,
    NodeContext, Operation, Port, Refusal, Request, RequestId, RequestStatus, Wake,
};
use fullstroke_units::{Sectors, Time};
use std::collections::VecDeque;

/// The drive behind the zones.
pub(crate) enum DriveInside {
    /// A drive without an interest in write pointers.
    Plain(Box<dyn Node>),
    /// A drive that writes shingled bands.
    Shingled(Box<ShingledDrive>),
}

impl DriveInside {
    /// Returns the drive without zones.
    pub(crate) fn into_node(self) -> Box<dyn Node> {
        match self {
            DriveInside::Plain(drive) => drive,
            DriveInside::Shingled(drive) => drive,
        }
    }

    fn node(&self) -> &dyn Node {
        match self {
            DriveInside::Plain(drive) => &**drive,
            DriveInside::Shingled(drive) => &**drive,
        }
    }

    fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            DriveInside::Plain(drive) => &mut **drive,
            DriveInside::Shingled(drive) => &mut **drive,
        }
    }

    fn submit(&mut self, now: Time, request: Request, in_order: bool, cx: &mut NodeContext<'_>) {
        match self {
            DriveInside::Plain(drive) => drive.submit(now, Port::FIRST, request, cx),
            DriveInside::Shingled(drive) => drive.arrive(now, request, in_order, cx),
        }
    }
}

/// A drive with zones that the host knows of.
///
/// - **Events in**: `submit`, `wake`.
/// - **Effects out**: the effects of the drive inside, and the answers to refused requests and to
///   resets of zones.
pub(crate) struct ZonedDrive {
    drive: DriveInside,
    pointers: ZonePointers,
    /// Completions of requests that the zones answer, in the order of their ends.
    held: VecDeque<Completion>,
    /// Writes that wait in the host; `None` if each write goes to the drive as it comes.
    plug: Option<ZonePlug>,
}

impl ZonedDrive {
    pub(crate) fn new(drive: DriveInside, zones: &Zones) -> ZonedDrive {
        ZonedDrive {
            drive,
            pointers: ZonePointers::new(zones),
            held: VecDeque::new(),
            plug: ZonePlug::new(zones.host_writes),
        }
    }

    /// Answers a request without the drive inside.
    fn answer(&mut self, now: Time, id: RequestId, status: RequestStatus) {
        let overhead = self.pointers.zones().answer;
        self.held.push_back(Completion {
            id,
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
            let answer = *answer;
            self.held.pop_front();
            self.ended(now, answer, cx.out);
        }
    }

    /// Sends a completion up, and the next write of the zone down.
    fn ended(&mut self, now: Time, ended: Completion, out: &mut Effects) {
        let Some(plug) = &mut self.plug else {
            return out.complete(ended);
        };
        let (zone, above) = plug.ended(ended);
        for completion in above {
            out.complete(completion);
        }
        let zone_sectors = self.pointers.zones().zone;
        if let Some(zone) = zone
            && let Some((request, parts)) = plug.next_write(zone, zone_sectors)
        {
            self.goes(now, request, Some(zone), parts);
        }
    }

    /// Sends a request to the drive under an id of the plug. `zone` is the zone of a plugged write.
    fn goes(
        &mut self,
        now: Time,
        mut request: Request,
        zone: Option<u64>,
        parts: Vec<(RequestId, Time)>,
    ) {
        let Some(plug) = &mut self.plug else {
            unreachable!("requests keep their ids without a plug")
        };
        request.id = plug.goes(zone, parts);
        let place = match zone.filter(|_| plug.appends) {
            Some(zone) => self.pointers.append_at(zone, request.extent),
            None => Ok(request.extent),
        };
        let Ok(place) = place else {
            return self.answer(now, request.id, RequestStatus::Refused);
        };
        request.extent = place;
        // The plug gives its effects away for the call, because the call borrows the whole drive.
        let mut inside = std::mem::take(&mut plug.inside);
        self.send_down(now, request, &mut NodeContext::alone(&mut inside));
        if let Some(plug) = &mut self.plug {
            plug.inside = inside;
        }
    }

    /// Checks a request by the rules of the zones, and sends it to the drive.
    fn send_down(&mut self, now: Time, request: Request, cx: &mut NodeContext<'_>) {
        let zones = self.pointers.zones();
        let capacity = Sectors(zones.zone * u64::from(zones.count));
        let extent = request.extent;
        // The drive inside refuses requests outside of the drive.
        if !extent.within(capacity) || extent.sectors == Sectors::ZERO {
            return self.drive.submit(now, request, false, cx);
        }
        let checked = match request.operation {
            Operation::Read => self.pointers.read(extent).map(|()| false),
            Operation::Write => self.pointers.write(extent),
            Operation::Discard => {
                if self.pointers.reset(extent) && self.pointers.zones().host_managed {
                    return self.answer(now, request.id, RequestStatus::Done);
                }
                Ok(false)
            }
            _ => Ok(false),
        };
        match checked {
            Ok(in_order) => self.drive.submit(now, request, in_order, cx),
            Err(_) => self.answer(now, request.id, RequestStatus::Refused),
        }
    }

    /// Takes the effects that the drive inside has given to the plug.
    fn take(&mut self, now: Time, out: &mut Effects) {
        // A completion may send the next write, which may complete at once.
        while let Some(plug) = self.plug.as_mut().filter(|plug| !plug.inside.is_empty()) {
            let mut inside = std::mem::take(&mut plug.inside);
            for effect in inside.drain() {
                match effect {
                    Effect::Complete { completion, .. } => self.ended(now, completion, out),
                    Effect::Notice { port, notice } => out.notice(port, notice),
                    Effect::Issue { .. } => unreachable!("a drive has no lower port"),
                }
            }
        }
    }

    /// Calls the drive inside. Its effects go to the plug, or up if there is none.
    fn with_drive<T>(
        &mut self,
        now: Time,
        cx: &mut NodeContext<'_>,
        call: impl FnOnce(&mut dyn Node, &mut NodeContext<'_>) -> T,
    ) -> T {
        let Some(plug) = &mut self.plug else {
            return call(self.drive.node_mut(), cx);
        };
        let called = call(
            self.drive.node_mut(),
            &mut NodeContext::alone(&mut plug.inside),
        );
        self.take(now, cx.out);
        called
    }
}

impl Node for ZonedDrive {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.send(now, cx);
        let Some(plug) = &mut self.plug else {
            return self.send_down(now, request, cx);
        };
        let is_write = request.operation == Operation::Write && request.extent.sectors.0 > 0;
        let zone = self.pointers.zone_of(request.extent).filter(|_| is_write);
        let above = RequestAbove {
            request,
            submitted: now,
        };
        let goes = match zone {
            Some(zone) => plug.take_write(zone, above),
            None => Some(above),
        };
        if let Some(RequestAbove { request, .. }) = goes {
            self.goes(now, request, zone, vec![(request.id, now)]);
        }
        self.take(now, cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.send(now, cx);
        self.with_drive(now, cx, |drive, cx| drive.wake(now, cx));
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        self.with_drive(now, cx, |drive, cx| drive.ordered(now, order, cx))
    }

    fn next_wake(&self) -> Wake {
        let inside = self.drive.node().next_wake();
        match self.held.front() {
            Some(answer) => Wake::Work(inside.at().min(answer.finished)),
            None => inside,
        }
    }

    fn gauge(&self) -> Gauge {
        let inside = self.drive.node().gauge();
        let waiting = self.plug.as_ref().map_or(0, ZonePlug::waiting);
        match self.held.len() + waiting {
            0 => inside,
            more => Gauge {
                queue_length: inside.queue_length + more as u32,
                idle_since: None,
                ..inside
            },
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        self.drive.node().count(now, counters);
        let counts = &self.pointers.counts;
        let mut readings = vec![
            ("zoned_unaligned_writes", counts.unaligned as f64),
            ("zoned_boundary_requests", counts.boundary as f64),
            ("zoned_no_resources", counts.no_resources as f64),
            ("zoned_invalid_reads", counts.invalid_reads as f64),
            ("zoned_random_writes", counts.random_writes as f64),
        ];
        if let Some(plug) = &self.plug {
            readings.push(("zoned_plugged_writes", plug.waits as f64));
            readings.push(("zoned_joined_writes", plug.joined as f64));
        }
        readings.extend([
            ("zoned_closed", counts.closed as f64),
            ("zoned_resets", counts.resets as f64),
            ("zoned_open", self.pointers.open() as f64),
        ]);
        counters.layers.push(LayerReadings::new("zoned", &readings));
    }
}
