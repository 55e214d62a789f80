//! A smart disk: queues, segments and arm.

use crate::choices::{Choices, CommandClass, CommandQueues, NextCommand, Segments};
use crate::discipline::XorDiscipline;
use crate::piece::{CommandPiece, PieceKind};
use crate::statistics::{DiskStatistics, SmartCounters};
use fullstroke_contract::Slots;
use fullstroke_drive::queue::{ArmView, WaitingRequest};
use fullstroke_drive::{AccessTimes, BusArrival, DriveModel, HeadPosition, Meter, Position};
use fullstroke_units::{Cylinder, Duration, Sectors, Time};

/// One disk. The drive description supplies arm, platters and command overhead. The keys of the
/// array supply buffer and queue.
///
/// The cost of a command is overhead, seek, rotation and transfer. An XDW or XPW then waits until
/// the first of the same sectors comes round, and transfers again. If the data have not come by
/// then, the command waits for further whole revolutions. The exclusive or takes no time. All
/// written data must be in the buffer before the heads begin.
///
/// An XDW takes two segments. At the end of the XDW, one segment is freed, and the other keeps the
/// result until [`result_fetched`](ArrayDisk::result_fetched). An XPW and an ordinary write take
/// one segment during service. A read takes one segment until [`read_sent`](ArrayDisk::read_sent).
pub(crate) struct ArrayDisk {
    model: DriveModel,
    overhead: Duration,
    head: HeadPosition,
    queues: CommandQueues,
    segments: Segments,
    discipline: Box<dyn XorDiscipline>,
    service: Option<CommandInService>,
    /// Start of the time in which commands wait for segments. `None` if the disk does not starve.
    starved: Option<Time>,
    statistics: SmartCounters,
    /// Energy meter. `None` if the description has no watts.
    meter: Option<Meter>,
}

/// The command in service.
#[derive(Clone, Copy, Debug)]
struct CommandInService {
    piece: u32,
    class: CommandClass,
    reads: bool,
    position: Position,
    began: Time,
    sectors: Sectors,
    /// Time when the arm can move for the write, after all reading.
    ready: Time,
    /// End of the service; [`Time::NEVER`] until known.
    finish: Time,
}

impl ArrayDisk {
    pub(crate) fn new(
        model: DriveModel,
        segments: u32,
        discipline: Box<dyn XorDiscipline>,
    ) -> ArrayDisk {
        ArrayDisk {
            overhead: Duration::from_millis_f64(model.config().command_overhead_ms),
            meter: model.meter(),
            model,
            head: HeadPosition::default(),
            queues: CommandQueues::default(),
            segments: Segments {
                total: segments,
                working: 0,
                results: 0,
            },
            discipline,
            service: None,
            starved: None,
            statistics: SmartCounters::default(),
        }
    }

    /// End of the command in service; [`Time::NEVER`] if not known.
    pub(crate) fn due(&self) -> Time {
        self.service.map_or(Time::NEVER, |service| service.finish)
    }

    pub(crate) fn head(&self) -> Cylinder {
        self.head.cylinder
    }

    #[cfg(test)]
    pub(crate) fn segments(&self) -> Segments {
        self.segments
    }

    /// Returns the counters until `now`.
    pub(crate) fn statistics(&self, now: Time) -> DiskStatistics {
        let mut statistics = self.statistics;
        statistics.integrate(now, self.segments, self.queues.of(CommandClass::Xpw).len());
        if let Some(since) = self.starved {
            statistics.was_idle(now.since(since));
        }
        let mut so_far = statistics.so_far();
        so_far.drive.power = self.meter.as_ref().map(|meter| meter.reading(now, None));
        so_far
    }

    fn integrate(&mut self, now: Time) {
        self.statistics
            .integrate(now, self.segments, self.queues.of(CommandClass::Xpw).len());
    }

    /// Adds a command to the queue.
    pub(crate) fn enqueue(&mut self, now: Time, slot: u32, piece: &CommandPiece) {
        self.integrate(now);
        let mechanics = self.model.mechanics();
        let position = mechanics.geometry().locate(piece.extent.start);
        let first_track = piece.extent.sectors.min(position.sectors_left);
        let waiting = WaitingRequest {
            slot,
            lbn: piece.extent.start,
            position,
            span: mechanics.span(&position, first_track),
            write: piece.kind == PieceKind::Write,
            arrived: now,
        };
        self.statistics.arrived();
        self.queues.insert(piece.class(), waiting);
    }

    /// Takes a command into service, if the arm is free and a command may begin. Returns the piece
    /// of the command. A command with a write part waits for [`note_data`](ArrayDisk::note_data).
    pub(crate) fn begin(&mut self, now: Time, pieces: &mut Slots<CommandPiece>) -> Option<u32> {
        if self.service.is_some() || self.queues.is_empty() {
            return None;
        }
        // The discipline compares access times from the instant at which the arm can move, not from
        // now.
        let moves = now + self.overhead;
        let mechanics = self.model.mechanics();
        let arm = ArmView {
            now: moves,
            head: self.head,
            next_lbn: Default::default(),
            mechanics,
        };
        let choices = Choices {
            arm,
            queues: &self.queues,
            segments: self.segments,
        };
        let Some(choice) = self.discipline.choose(&choices) else {
            // Keeps the first instant: later attempts belong to the same forced idle time.
            self.starved.get_or_insert(now);
            return None;
        };
        self.integrate(now);
        if let Some(since) = self.starved.take() {
            self.statistics.was_idle(now.since(since));
        }
        let NextCommand { class, access, .. } = choice;
        let waiting = self.queues.take(choice);
        // Judged before the command takes its segments, because the chosen command must not bar
        // others itself.
        let barred = self.segments.free() < CommandClass::Xdw.segments()
            && !self.queues.of(CommandClass::Xdw).is_empty();
        let piece = &mut pieces[waiting.slot];
        self.statistics
            .begun(class, now.since(piece.queued), access, barred);
        self.segments.working += class.segments();
        self.service = Some(self.serve(now, &waiting, class, piece));
        Some(waiting.slot)
    }

    fn serve(
        &mut self,
        now: Time,
        waiting: &WaitingRequest,
        class: CommandClass,
        piece: &mut CommandPiece,
    ) -> CommandInService {
        if let Some(meter) = &mut self.meter {
            meter.passed(now);
            meter.taken(now, now + self.overhead);
        }
        let mut service = CommandInService {
            piece: waiting.slot,
            class,
            reads: piece.kind == PieceKind::Read,
            position: waiting.position,
            began: now,
            sectors: piece.extent.sectors,
            ready: now + self.overhead,
            finish: Time::NEVER,
        };
        let waited = now.since(piece.queued);
        // The queue of an XPW is a time after the XDW. The completion subtracts it from the parity
        // time.
        match class {
            CommandClass::Xpw => piece.parts.parity_queue = waited,
            CommandClass::Xdw | CommandClass::Plain => piece.parts.queue = waited,
        }
        // An ordinary write reads nothing. Its access begins when the data have come.
        if piece.kind != PieceKind::Write {
            let mechanics = self.model.mechanics();
            let (start, sectors) = (piece.extent.start, piece.extent.sectors);
            let access = mechanics.access(
                &mut self.head,
                service.ready,
                start,
                sectors,
                &service.position,
                false,
            );
            self.statistics.accessed(&access, true);
            if let Some(meter) = &mut self.meter {
                meter.accessed(service.ready, &access, false);
            }
            service.ready += access.duration();
            add(piece, class, &access);
        }
        if piece.kind == PieceKind::Read {
            service.finish = service.ready;
        }
        service
    }

    /// Records that the data for the command in service have come: the data of the host, or the
    /// result of the XDW.
    pub(crate) fn note_data(&mut self, now: Time, piece: &mut CommandPiece) {
        let Some(service) = &mut self.service else {
            return;
        };
        // The link delivers the data as a whole, so the last sector is there at the same instant as
        // the first.
        let feed = BusArrival {
            first: now,
            each: Duration::ZERO,
            marked: 0,
        };
        let access = self.model.mechanics().access_fed(
            &mut self.head,
            service.ready,
            piece.extent,
            &service.position,
            true,
            Some(feed),
            |_| {},
        );
        self.statistics
            .accessed(&access, piece.kind == PieceKind::Write);
        if let Some(meter) = &mut self.meter {
            meter.accessed(service.ready, &access, true);
        }
        service.finish = service.ready + access.duration();
        add(piece, service.class, &access);
    }

    /// Finishes the command in service and returns its piece.
    pub(crate) fn finish(&mut self, now: Time) -> Option<u32> {
        let service = self.service.take()?;
        self.integrate(now);
        match service.class {
            CommandClass::Plain if service.reads => {}
            class => self.segments.working -= class.segments(),
        }
        self.segments.results += u32::from(service.class == CommandClass::Xdw);
        let CommandInService {
            class,
            reads,
            sectors,
            began,
            ..
        } = service;
        self.statistics
            .finished(class, reads, sectors, now.since(began), self.overhead);
        Some(service.piece)
    }

    /// Frees the segment of a result, because the parity disk is done with the result.
    pub(crate) fn result_fetched(&mut self, now: Time) {
        self.integrate(now);
        self.segments.results -= 1;
    }

    /// Frees the segment of a read, because the host has the data.
    pub(crate) fn read_sent(&mut self, now: Time) {
        self.integrate(now);
        self.segments.working -= 1;
    }
}

/// Adds an access to the breakdown of a piece. The access of an XPW is not added, because this time
/// is part of the time after the XDW.
fn add(piece: &mut CommandPiece, class: CommandClass, access: &AccessTimes) {
    if class == CommandClass::Xpw {
        return;
    }
    let parts = &mut piece.parts;
    parts.seek += access.seek;
    parts.rotation += access.rotation;
    parts.transfer += access.transfer;
    if parts.seek_cylinders == 0 {
        parts.seek_cylinders = access.seek_cylinders;
    }
}
