//! A smart disk: its queues, its segments, its arm.

use crate::choices::{Choice, Choices, Class, Queues, Segments};
use crate::discipline::XorDiscipline;
use crate::piece::{Kind, Piece};
use crate::statistics::{DiskStatistics, Statistics};
use fullstroke_contract::Slots;
use fullstroke_drive::queue::{ArmView, Waiting};
use fullstroke_drive::{Access, Feed, Head, Meter, Model, Position};
use fullstroke_units::{Cylinder, Duration, Sectors, Time};

/// One disk. Of a drive's description it is arm, platter and command overhead;
/// its buffer and its queue are those of the array's keys.
///
/// What a command costs: its overhead, seek, rotation, transfer; of an XDW or
/// XPW, then, the turn until the first of the same sectors comes round, or a
/// whole one more where the data have not come by then, and the transfer
/// again. Exclusive or takes no time. All that is written must be in the buffer
/// before the heads begin.
///
/// Segments: an XDW takes two; when it is done one is free and the other keeps
/// its result until [`result_fetched`](Disk::result_fetched). An XPW and an
/// ordinary write take one while they are served; a read takes one until
/// [`read_sent`](Disk::read_sent).
pub(crate) struct Disk {
    model: Model,
    overhead: Duration,
    head: Head,
    queues: Queues,
    segments: Segments,
    discipline: Box<dyn XorDiscipline>,
    service: Option<Service>,
    /// Since when commands have waited for segments.
    starved: Option<Time>,
    statistics: Statistics,
    /// What its time costs, if its description says what it draws.
    meter: Option<Meter>,
}

/// The command under the heads.
#[derive(Clone, Copy, Debug)]
struct Service {
    piece: u32,
    class: Class,
    reads: bool,
    position: Position,
    began: Time,
    sectors: Sectors,
    /// When the arm can move to write: it has read what it must.
    ready: Time,
    /// [`Time::NEVER`] until that is known.
    finish: Time,
}

impl Disk {
    pub(crate) fn new(model: Model, segments: u32, discipline: Box<dyn XorDiscipline>) -> Disk {
        Disk {
            overhead: Duration::from_millis_f64(model.config().command_overhead_ms),
            meter: model.meter(),
            model,
            head: Head::default(),
            queues: Queues::default(),
            segments: Segments {
                total: segments,
                working: 0,
                results: 0,
            },
            discipline,
            service: None,
            starved: None,
            statistics: Statistics::default(),
        }
    }

    /// When the command in service will be finished, if that is known.
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

    /// What was counted until `now`.
    pub(crate) fn statistics(&self, now: Time) -> DiskStatistics {
        let mut statistics = self.statistics;
        statistics.integrate(now, self.segments, self.queues.of(Class::Xpw).len());
        if let Some(since) = self.starved {
            statistics.was_idle(now.since(since));
        }
        let mut so_far = statistics.so_far();
        so_far.drive.power = self.meter.as_ref().map(|meter| meter.reading(now, None));
        so_far
    }

    fn integrate(&mut self, now: Time) {
        self.statistics
            .integrate(now, self.segments, self.queues.of(Class::Xpw).len());
    }

    /// A command has come: it waits.
    pub(crate) fn enqueue(&mut self, now: Time, slot: u32, piece: &Piece) {
        self.integrate(now);
        let mechanics = self.model.mechanics();
        let position = mechanics.geometry().locate(piece.extent.start);
        let first_track = piece.extent.sectors.min(position.sectors_left);
        let waiting = Waiting {
            slot,
            lbn: piece.extent.start,
            position,
            span: mechanics.span(&position, first_track),
            write: piece.kind == Kind::Write,
            arrived: now,
        };
        self.statistics.arrived();
        self.queues.insert(piece.class(), waiting);
    }

    /// Takes a command into service, if the arm is free and one may begin; which
    /// piece it is of. One that writes waits for [`fed`](Disk::fed).
    pub(crate) fn begin(&mut self, now: Time, pieces: &mut Slots<Piece>) -> Option<u32> {
        if self.service.is_some() || self.queues.is_empty() {
            return None;
        }
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
            self.starved.get_or_insert(now);
            return None;
        };
        self.integrate(now);
        if let Some(since) = self.starved.take() {
            self.statistics.was_idle(now.since(since));
        }
        let Choice { class, access, .. } = choice;
        let waiting = self.queues.take(choice);
        let barred =
            self.segments.free() < Class::Xdw.segments() && !self.queues.of(Class::Xdw).is_empty();
        let piece = &mut pieces[waiting.slot];
        self.statistics
            .begun(class, now.since(piece.queued), access, barred);
        self.segments.working += class.segments();
        self.service = Some(self.serve(now, &waiting, class, piece));
        Some(waiting.slot)
    }

    fn serve(&mut self, now: Time, waiting: &Waiting, class: Class, piece: &mut Piece) -> Service {
        if let Some(meter) = &mut self.meter {
            meter.passed(now);
            meter.taken(now, now + self.overhead);
        }
        let mut service = Service {
            piece: waiting.slot,
            class,
            reads: piece.kind == Kind::Read,
            position: waiting.position,
            began: now,
            sectors: piece.extent.sectors,
            ready: now + self.overhead,
            finish: Time::NEVER,
        };
        let waited = now.since(piece.queued);
        match class {
            Class::Xpw => piece.parts.parity_queue = waited,
            Class::Xdw | Class::Plain => piece.parts.queue = waited,
        }
        if piece.kind != Kind::Write {
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
        if piece.kind == Kind::Read {
            service.finish = service.ready;
        }
        service
    }

    /// What the command in service writes has come: the data, or the result of
    /// the XDW.
    pub(crate) fn fed(&mut self, now: Time, piece: &mut Piece) {
        let Some(service) = &mut self.service else {
            return;
        };
        let feed = Feed {
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
        self.statistics.accessed(&access, piece.kind == Kind::Write);
        if let Some(meter) = &mut self.meter {
            meter.accessed(service.ready, &access, true);
        }
        service.finish = service.ready + access.duration();
        add(piece, service.class, &access);
    }

    /// The command in service is finished: which piece it is of.
    pub(crate) fn finish(&mut self, now: Time) -> Option<u32> {
        let service = self.service.take()?;
        self.integrate(now);
        match service.class {
            Class::Plain if service.reads => {}
            class => self.segments.working -= class.segments(),
        }
        self.segments.results += u32::from(service.class == Class::Xdw);
        let Service {
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

    /// The parity disk is done with a result: its segment is free.
    pub(crate) fn result_fetched(&mut self, now: Time) {
        self.integrate(now);
        self.segments.results -= 1;
    }

    /// The host has what was read: its segment is free.
    pub(crate) fn read_sent(&mut self, now: Time) {
        self.integrate(now);
        self.segments.working -= 1;
    }
}

/// An access of the first command of a piece counts in its breakdown; that of
/// an XPW is part of the time behind the XDW.
fn add(piece: &mut Piece, class: Class, access: &Access) {
    if class == Class::Xpw {
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
