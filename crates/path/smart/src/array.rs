//! The layer: messages over the link, and their effects.

use crate::config::SmartSettings;
use crate::discipline::XorDiscipline;
use crate::disk::ArrayDisk;
use crate::map::Map;
use crate::message::TransferMeaning;
use crate::piece::{CommandPiece, PendingRequest, PieceKind, ResponseParts};
use crate::readings;
use crate::rows::{RequestPart, RowHold, RowLocks};
use crate::statistics::DiskStatistics;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Alarms, Completion, ConfigError, Counters, Effects, Extent, Gauge, LayerOrder, Node,
    NodeContext, Operation, Port, Refusal, Request, RequestStatus, Slots, Wake,
};
use fullstroke_drive::DriveModel;
use fullstroke_link::{DeliveredTransfer, Link, LinkTransfer, Payload, Station};
use fullstroke_units::{Sectors, Time};

/// An array of smart disks on a link.
///
/// - **Events in**: `submit`, `wake`.
/// - **Effects out**: `complete`.
/// - **Getters**: `next_wake`, `gauge`, `count`, [`disk_statistics`](SmartArray::disk_statistics).
///
/// Disks and link are parts of this layer, not layers below. The array wakes each part when an
/// event is due. At one instant, the link comes first, then the disks in order. A request is cut at
/// the ends of chunks and segments. A write of part of a row becomes updates (XDWRITE EXTENDED). A
/// write of a whole row becomes ordinary writes, for which the host has computed the parity. The
/// number of commands at a disk has no limit. Buffers hold no dirty data, so a flush completes at
/// once.
///
/// An update has a data disk d and a parity disk p. These messages go over the link:
///
/// | message | from | to | when |
/// |---|---|---|---|
/// | command | host | d | the update comes |
/// | transfer ready | d | host | d begins the XDW |
/// | data | host | d | transfer ready has come |
/// | command | d | p | the XDW is finished |
/// | transfer ready | p | d | p begins the XPW |
/// | data: the result | d | p | transfer ready has come |
/// | status | p | d | the XPW is finished |
/// | status | d | host | the status of p has come |
pub struct SmartArray {
    map: Map,
    disks: Vec<ArrayDisk>,
    link: Box<dyn Link>,
    /// Name of the kind of link, for reports.
    link_kind: &'static str,
    /// Time of the next event of the link.
    link_due: Time,
    /// Times of the next events of the disks.
    alarms: Alarms,
    jobs: Slots<PendingRequest>,
    rows: RowLocks,
    pieces: Slots<CommandPiece>,
    /// Scratch space; empty between events.
    delivered: Vec<DeliveredTransfer>,
    /// Scratch space; empty between events.
    granted: Vec<u32>,
    /// Time of the last event.
    latest: Time,
}

impl SmartArray {
    /// Creates an array of disks of these models, at rest at time 0. The link was built for as many
    /// members as there are models. `keys` are the keys of [`XorConfig`](crate::XorConfig) and of
    /// the discipline.
    ///
    /// # Errors
    /// Names the invalid key, or `members` if the disks are not suitable.
    pub fn new(
        keys: &Keys,
        models: &[DriveModel],
        link: (&'static str, Box<dyn Link>),
    ) -> Result<SmartArray, ConfigError> {
        let settings = SmartSettings::new(keys)?;
        SmartArray::obeying(&settings, models, link, || {
            (settings.discipline.build)(&settings.keys, settings.config.segments)
        })
    }

    /// Creates an array in which `discipline` builds the discipline of each disk.
    pub(crate) fn obeying(
        settings: &SmartSettings,
        models: &[DriveModel],
        (link_kind, link): (&'static str, Box<dyn Link>),
        discipline: impl Fn() -> Result<Box<dyn XorDiscipline>, ConfigError>,
    ) -> Result<SmartArray, ConfigError> {
        if let Some(index) = models.iter().position(|model| model.config().actuators > 1) {
            let message =
                format!("disk {index} has several arms; the disks of an xor array have one each");
            return Err(ConfigError::new("members", message));
        }
        if let Some(index) = models
            .iter()
            .position(|model| model.config().spin_down.is_some())
        {
            let message = format!(
                "disk {index} has [spin_down]; disks of an xor array must not stop by themselves"
            );
            return Err(ConfigError::new("members", message));
        }
        let capacities: Vec<Sectors> = models
            .iter()
            .map(|model| model.config().capacity_sectors)
            .collect();
        let map = Map::new(settings, &capacities)?;
        let segments = settings.config.segments;
        let disk = |model: &DriveModel| Ok(ArrayDisk::new(model.clone(), segments, discipline()?));
        Ok(SmartArray {
            map,
            disks: models
                .iter()
                .map(disk)
                .collect::<Result<_, ConfigError>>()?,
            alarms: Alarms::new(models.len()),
            link,
            link_kind,
            link_due: Time::NEVER,
            jobs: Slots::default(),
            rows: RowLocks::default(),
            pieces: Slots::default(),
            delivered: Vec::new(),
            granted: Vec::new(),
            latest: Time::ZERO,
        })
    }

    /// Number of disks.
    pub fn disks(&self) -> usize {
        self.disks.len()
    }

    /// Returns the counters of a disk until the last event.
    ///
    /// # Panics
    /// Panics if there is no such disk.
    pub fn disk_statistics(&self, disk: usize) -> DiskStatistics {
        self.disks[disk].statistics(self.latest)
    }

    /// Time of the last event.
    #[cfg(test)]
    pub(crate) fn latest(&self) -> Time {
        self.latest
    }

    #[cfg(test)]
    pub(crate) fn segments(&self, disk: usize) -> crate::choices::Segments {
        self.disks[disk].segments()
    }

    /// Carries out all due events up to `now`, each at the right instant.
    fn catch_up(&mut self, now: Time, out: &mut Effects) {
        loop {
            let (disk, finished) = self.alarms.first();
            let due = finished.min(self.link_due);
            if due > now || due == Time::NEVER {
                return;
            }
            self.latest = self.latest.max(due);
            debug_assert!(
                due >= self.latest,
                "something was due at {due:?}, before {:?}",
                self.latest
            );
            // At one instant the link goes before the disks.
            if self.link_due == due {
                self.deliver(due, out);
            } else {
                self.finish_command(due, disk as u32);
            }
            self.link_due = self.link.next_wake();
        }
    }

    /// Sends a message about a piece.
    fn send(&mut self, now: Time, message: TransferMeaning, slot: u32) {
        let CommandPiece {
            kind, disk, extent, ..
        } = self.pieces[slot];
        let own = Station::of_member(disk as usize);
        // An ordinary command sends no message about parity, so its station here is a placeholder.
        let parity = match kind {
            PieceKind::Update { parity } => Station::of_member(parity as usize),
            PieceKind::Read | PieceKind::Write => Station::HOST,
        };
        let data = Payload::Data(extent.sectors.bytes());
        let (from, to, payload) = match message {
            TransferMeaning::Command => (Station::HOST, own, Payload::Command),
            TransferMeaning::Ready => (own, Station::HOST, Payload::TransferReady),
            TransferMeaning::Data if kind == PieceKind::Read => (own, Station::HOST, data),
            TransferMeaning::Data => (Station::HOST, own, data),
            TransferMeaning::Status => (own, Station::HOST, Payload::Status),
            TransferMeaning::ParityCommand => (own, parity, Payload::Command),
            TransferMeaning::ParityReady => (parity, own, Payload::TransferReady),
            TransferMeaning::Result => (own, parity, data),
            TransferMeaning::ParityStatus => (parity, own, Payload::Status),
        };
        self.link.offer(
            now,
            LinkTransfer {
                token: message.about(slot),
                from,
                to,
                payload,
            },
        );
    }

    /// Handles the messages that have arrived by `now`.
    fn deliver(&mut self, now: Time, out: &mut Effects) {
        let mut delivered = std::mem::take(&mut self.delivered);
        self.link.advance(now, &mut delivered);
        for DeliveredTransfer {
            token, finished, ..
        } in delivered.drain(..)
        {
            let (message, slot) = TransferMeaning::of(token);
            self.received(finished, message, slot, out);
        }
        self.delivered = delivered;
    }

    fn received(&mut self, now: Time, message: TransferMeaning, slot: u32, out: &mut Effects) {
        let CommandPiece { kind, disk, .. } = self.pieces[slot];
        // Only updates have a parity disk. The messages of other pieces never use `parity`.
        let parity = if let PieceKind::Update { parity } = kind {
            parity
        } else {
            disk
        };
        match message {
            TransferMeaning::Command => self.enqueue(now, disk, slot),
            TransferMeaning::Ready => self.send(now, TransferMeaning::Data, slot),
            TransferMeaning::Data if kind == PieceKind::Read => {
                self.disks[disk as usize].read_sent(now);
                self.begin(now, disk);
            }
            TransferMeaning::Data => self.note_data(now, disk, slot),
            TransferMeaning::Status => self.finish_piece(now, slot, out),
            TransferMeaning::ParityCommand => self.enqueue(now, parity, slot),
            TransferMeaning::ParityReady => self.send(now, TransferMeaning::Result, slot),
            TransferMeaning::Result => self.note_data(now, parity, slot),
            TransferMeaning::ParityStatus => {
                // The status is offered before the next command begins, because the disk's messages
                // go in the order of the offers.
                self.send(now, TransferMeaning::Status, slot);
                self.disks[disk as usize].result_fetched(now);
                self.begin(now, disk);
            }
        }
    }

    fn enqueue(&mut self, now: Time, disk: u32, slot: u32) {
        self.pieces[slot].queued = now;
        self.disks[disk as usize].enqueue(now, slot, &self.pieces[slot]);
        self.begin(now, disk);
    }

    /// Lets a disk begin the next command, if possible.
    fn begin(&mut self, now: Time, disk: u32) {
        let Some(slot) = self.disks[disk as usize].begin(now, &mut self.pieces) else {
            return;
        };
        let piece = &self.pieces[slot];
        match (piece.kind, piece.updated) {
            (PieceKind::Read, _) => {}
            (PieceKind::Write, _) | (PieceKind::Update { .. }, None) => {
                self.send(now, TransferMeaning::Ready, slot)
            }
            (PieceKind::Update { .. }, Some(_)) => {
                self.send(now, TransferMeaning::ParityReady, slot)
            }
        }
        self.set_alarm(disk);
    }

    /// Records that the data for the command in service have come.
    fn note_data(&mut self, now: Time, disk: u32, slot: u32) {
        self.disks[disk as usize].note_data(now, &mut self.pieces[slot]);
        self.set_alarm(disk);
    }

    fn set_alarm(&mut self, disk: u32) {
        self.alarms
            .set(disk as usize, self.disks[disk as usize].due());
    }

    /// Finishes the command in service at a disk.
    fn finish_command(&mut self, now: Time, disk: u32) {
        if let Some(slot) = self.disks[disk as usize].finish(now) {
            let piece = &mut self.pieces[slot];
            match (piece.kind, piece.updated) {
                (PieceKind::Read, _) => {
                    // The status comes behind the data, as FCP_RSP comes behind FCP_DATA.
                    self.send(now, TransferMeaning::Data, slot);
                    self.send(now, TransferMeaning::Status, slot);
                }
                (PieceKind::Write, _) => self.send(now, TransferMeaning::Status, slot),
                (PieceKind::Update { .. }, None) => {
                    piece.updated = Some(now);
                    self.send(now, TransferMeaning::ParityCommand, slot);
                }
                (PieceKind::Update { .. }, Some(_)) => {
                    self.send(now, TransferMeaning::ParityStatus, slot)
                }
            }
        }
        self.begin(now, disk);
        self.set_alarm(disk);
    }

    /// Finishes a piece, because the host has received the status.
    fn finish_piece(&mut self, now: Time, slot: u32, out: &mut Effects) {
        let piece = self.pieces.take(slot);
        let part = &mut self.rows.parts[piece.part];
        assert!(
            part.pieces_left > 0 && piece.queued <= now,
            "a piece queued at {:?} ends at {now:?}; {} are left",
            piece.queued,
            part.pieces_left
        );
        part.pieces_left -= 1;
        if part.pieces_left > 0 {
            return;
        }
        // Taken out because `issue` borrows the array, and put back below, so that no event
        // allocates.
        let mut granted = std::mem::take(&mut self.granted);
        let part = self.rows.release(piece.part, &mut granted);
        for waiting in granted.drain(..) {
            self.issue(now, waiting);
        }
        self.granted = granted;
        let job = &mut self.jobs[part.job];
        assert!(
            job.parts_left > 0,
            "a part of a request that has none left ends"
        );
        job.parts_left -= 1;
        if job.parts_left == 0 {
            let job = self.jobs.take(part.job);
            out.complete(piece.completion(&job, part.issued, now));
        }
    }

    /// Splits a request into parts. A write is split by rows, and a read is one part.
    fn accept(&mut self, now: Time, request: &Request) {
        let (mut begin, end) = (request.extent.start.0, request.extent.end().0);
        let job = self.jobs.keep(PendingRequest {
            id: request.id,
            submitted: now,
            parts_left: 0,
        });
        // A read holds no row, so a read is not cut at the ends of rows.
        while begin < end {
            let (row, end, hold) = match request.operation {
                Operation::Write => self.map.part(begin, end),
                _ => (0, end, RowHold::Nothing),
            };
            assert!(
                begin < end,
                "a part of {:?} from {begin} on ends at {end}",
                request.extent
            );
            let part = RequestPart {
                job,
                row,
                hold,
                begin,
                end,
                issued: now,
                pieces_left: 0,
                next: None,
            };
            self.jobs[job].parts_left += 1;
            let (part, free) = self.rows.acquire(part);
            if free {
                self.issue(now, part);
            }
            begin = end;
        }
    }

    /// Sends the commands of a part.
    fn issue(&mut self, now: Time, slot: u32) {
        let RequestPart {
            row,
            hold,
            mut begin,
            end,
            ..
        } = self.rows.parts[slot];
        self.rows.parts[slot].issued = now;
        let kind = match hold {
            RowHold::Nothing => PieceKind::Read,
            RowHold::Shared => PieceKind::Update {
                parity: self.map.parity_disk(row),
            },
            RowHold::Alone => PieceKind::Write,
        };
        while begin < end {
            let (disk, extent) = self.map.piece(begin, end);
            assert!(
                extent.sectors > Sectors::ZERO && (disk as usize) < self.disks.len(),
                "sector {begin} lies in {extent:?} of disk {disk}"
            );
            self.command(now, slot, kind, disk, extent);
            begin += extent.sectors.0;
        }
        let mut within = 0;
        // Only for a whole row does the host know the new parity. Updates leave the parity to the
        // disks.
        while hold == RowHold::Alone
            && let Some((disk, extent)) = self.map.parity_piece(row, within)
        {
            self.command(now, slot, kind, disk, extent);
            within += extent.sectors.0;
        }
    }

    fn command(&mut self, now: Time, part: u32, kind: PieceKind, disk: u32, extent: Extent) {
        let piece = CommandPiece {
            part,
            kind,
            disk,
            extent,
            queued: now,
            updated: None,
            parts: ResponseParts::default(),
        };
        self.rows.parts[part].pieces_left += 1;
        let slot = self.pieces.keep(piece);
        self.send(now, TransferMeaning::Command, slot);
    }
}

impl Node for SmartArray {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let out = &mut *cx.out;
        // Earlier events come first: they may free the arm or the row that this request needs.
        self.catch_up(now, out);
        self.latest = self.latest.max(now);
        let status = match request.operation {
            // The disks cache no writes, and the platters always turn.
            Operation::Flush
            | Operation::Discard
            | Operation::Standby
            | Operation::Start
            | Operation::Answer => Some(RequestStatus::Done),
            _ if request.extent.sectors == Sectors::ZERO => Some(RequestStatus::OutOfRange),
            _ => (!request.extent.within(self.map.capacity())).then_some(RequestStatus::OutOfRange),
        };
        if let Some(status) = status {
            return out.complete(Completion::at_once(request.id, now, status));
        }
        self.accept(now, &request);
        // The request has put commands on the link, so the link may be due earlier than before.
        self.link_due = self.link.next_wake();
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let out = &mut *cx.out;
        self.catch_up(now, out);
    }

    fn ordered(&mut self, _: Time, _: LayerOrder, _: &mut NodeContext<'_>) -> Result<(), Refusal> {
        Err(Refusal(
            "disk-based XOR arrays support neither failed nor restored disks".into(),
        ))
    }

    fn next_wake(&self) -> Wake {
        self.alarms.first().1.min(self.link_due).into()
    }

    /// The gauge shows the arm of the first disk.
    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.jobs.len() as u32,
            head: self.disks[0].head(),
            // Without a request in flight, the latest event was the end of the last request.
            idle_since: self.jobs.is_empty().then_some(self.latest),
            ..Gauge::default()
        }
    }

    /// The counters cover the whole run, including the warm-up.
    fn count(&self, now: Time, counters: &mut Counters) {
        counters
            .drives
            .extend((0..self.disks.len()).map(|disk| self.disk_statistics(disk).drive));
        let disks: Vec<_> = (0..self.disks())
            .map(|disk| self.disk_statistics(disk))
            .collect();
        counters.layers.push(readings::of(&disks, now));
        counters.layers.push(
            self.link
                .statistics()
                .readings(self.link_kind, now.since(Time::ZERO)),
        );
    }
}
