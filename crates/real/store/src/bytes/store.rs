//! A volume's bytes: requests come in, media change.

use crate::buffers::extent_of;
use crate::bytes::StoreError;
use crate::bytes::checkpoints::Checkpoints;
use crate::bytes::lock::Lock;
use crate::bytes::loss::LostData;
use crate::bytes::media::Media;
use crate::bytes::member::Member as _;
use crate::bytes::node::StoreNode;
use crate::bytes::records::Records;
use crate::bytes::redo::RecordingResult;
use crate::bytes::states;
use crate::bytes::verify::Verifier;
use crate::comparison::RedundancyCheck;
use crate::judge::Repair;
use fullstroke_contract::Extent;
use fullstroke_units::{Bytes, Lbn, SECTOR_BYTES, Sectors};
use std::ops::ControlFlow;

/// Largest part of a request in one journal record: 1 MiB. The limit bounds the size of the
/// journal.
const JOURNALLED_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
/// Size of a step of a scrub without pauses: 64 MiB.
const SCRUBBED_SECTORS: Sectors = Sectors((64 << 20) / SECTOR_BYTES);
/// Size of a step of [`Store::allocated`]: 16 MiB.
const ALLOCATION_SECTORS: u64 = (16 << 20) / SECTOR_BYTES;

/// The bytes of a volume, on the media of its drives.
///
/// - **Requests**: [`read`](Store::read), [`write`](Store::write),
///   [`write_zeroes`](Store::write_zeroes), [`discard`](Store::discard),
///   [`allocated`](Store::allocated). Each request is carried out wholly before the call returns.
///   Parity and copies are right between any two requests.
/// - **Durability**: [`sync`](Store::sync), or [`sync_job`](Store::sync_job) and
///   [`note_synced`](Store::note_synced); [`tidy`](Store::tidy) from time to time;
///   [`close`](Store::close) at the end.
/// - **Members**: [`status`](Store::status), [`fail_member`](Store::fail_member),
///   [`restore_member`](Store::restore_member), [`rebuild_member`](Store::rebuild_member),
///   [`scrub`](Store::scrub).
/// - **Lost data**: [`has_failed`](Store::has_failed),
///   [`accept_data_loss`](Store::accept_data_loss), [`has_lost_data`](Store::has_lost_data).
///
/// # When too many members fail
/// A volume that has lost more members than its redundancy covers has failed. The remaining data
/// can be read. The volume refuses changes, fills no member, and accepts no empty member in the
/// place of a failed one, so failed members may come back with their data. After
/// [`accept_data_loss`](Store::accept_data_loss) the volume is filled again. Data without a source
/// is [`Lost`](StoreError::Lost) until the next write; a read never returns zeros or garbage
/// instead.
///
/// # When the host fails
/// - **A read**: the store computes the unreadable sectors from the other members and writes them
///   again. If this write or a second read fails, the member has failed.
/// - **A change**: the member has failed, if the volume survives that. The change is made on all
///   other members, and is whole without the failed one. Otherwise the change is an error, and may
///   be made in part.
/// - **Room**: a change that finds no room on the host is an error, and may be made in part.
///   Redundancy is made to follow from the data before the error is returned. If there is no room
///   for this either, the next [`tidy`](Store::tidy) does so; until then no other member can be
///   failed. In a degraded parity volume the whole change is in the journal: reads return the new
///   data, and the change is made before the next one.
/// - **A sync**: the member has failed, if the volume survives that. Otherwise the store [has
///   stopped](StoreError::Stopped), and serves no requests any more.
///
/// [`take_dropped`](Store::take_dropped) returns the members that have failed because of the host.
pub struct Store {
    pub(crate) root: StoreNode,
    pub(crate) media: Media,
    /// Records of the folder beside the media; `None` in memory.
    pub(crate) records: Option<Records>,
    /// True while changes go through the journal.
    pub(crate) journalled: bool,
    /// True if the changes of the latest journal record were not all made.
    pub(crate) pending: bool,
    /// True if some volume of the tree keeps copies.
    pub(crate) has_copies: bool,
    /// Extents whose redundancy may not follow from the data.
    pub(crate) unsettled: Vec<DoubtfulExtent>,
    pub(crate) checkpoints: Checkpoints,
    /// Lost data, which may not be read before it is written.
    pub(crate) losses: Vec<LostData>,
    /// Reason why no requests are served any more.
    pub(crate) stopped: Option<String>,
    /// Members that failed because of the host, not by a call of [`Store::fail_member`].
    pub(crate) dropped: Vec<HostFailedMember>,
    /// Failed members whose bytes are still right: [`Store::fail_member`] failed the member, and
    /// nothing was changed since.
    pub(crate) missed_nothing: Vec<Vec<usize>>,
    /// Media of members about to fail.
    pub(crate) dying: Vec<usize>,
    /// Number of changes of members' states, without the progress of rebuilds.
    pub(crate) state_changes: u64,
    /// Lock of a read-only folder against writers. Changes stay in memory then.
    pub(crate) read_only: Option<Lock>,
}

/// State of a comparison of all redundancy with the data.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    /// First address not compared yet.
    pub next: Lbn,
    /// Which wrong sectors are written again.
    pub repair: Repair,
    /// Results so far.
    pub found: RedundancyCheck,
}

/// An extent whose redundancy may not follow from the data.
pub(crate) struct DoubtfulExtent {
    pub(crate) extent: Extent,
    /// Media that lack a change. The redundancy of the other media follows from the data. Empty
    /// after a kill, because these media are not known.
    pub(crate) media: Vec<usize>,
}

/// A member that has failed because of an error of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFailedMember {
    /// Indices of the member from the top of the tree.
    pub path: Vec<usize>,
    /// Description of the error, for people.
    pub why: String,
}

impl Store {
    /// Addresses `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        self.root.capacity()
    }

    /// The volume in words: `raid0 of 2 x raid5 of 4`.
    pub fn describe(&self) -> String {
        states::describe(&self.root)
    }

    /// Reads the sectors from `lbn` on.
    ///
    /// # Errors
    /// Out of range, lost, or the host's; the buffer holds anything then.
    ///
    /// # Panics
    /// If the buffer is no whole number of sectors.
    #[inline]
    pub fn read(&mut self, lbn: Lbn, into: &mut [u8]) -> Result<(), StoreError> {
        self.check_range(extent_of(lbn, into.len()))?;
        if !self.unsettled.is_empty() {
            self.compare_before_reading(extent_of(lbn, into.len()))?;
        }
        if let Err(error) = self.root.read(lbn, into, &self.media) {
            self.read_again(lbn, into, error)?;
        }
        if self.losses.is_empty() {
            Ok(())
        } else {
            self.check_known(extent_of(lbn, into.len()))
        }
    }

    /// Writes the sectors from `lbn` on. After a successful return the bytes survive the death of
    /// the process. After a [`sync`](Store::sync) the bytes also survive a power loss.
    ///
    /// # Errors
    /// Out of range, lost, or the host's; the type's documentation describes the state after each.
    ///
    /// # Panics
    /// If the buffer is no whole number of sectors.
    #[inline]
    pub fn write(&mut self, lbn: Lbn, from: &[u8]) -> Result<(), StoreError> {
        let all = extent_of(lbn, from.len());
        self.change(all, |root, part, media| {
            let begin = part.start.since(lbn).bytes().0 as usize;
            root.write(
                part.start,
                &from[begin..][..part.sectors.bytes().0 as usize],
                media,
            )
        })?;
        if self.losses.is_empty() {
            Ok(())
        } else {
            self.note_known(all)
        }
    }

    /// Makes the sectors read as zeros. With `may_punch` their room is given back. Without it the
    /// room is kept, so a later write there cannot run out of room.
    ///
    /// # Errors
    /// As [`write`](Store::write).
    pub fn write_zeroes(
        &mut self,
        lbn: Lbn,
        sectors: Sectors,
        may_punch: bool,
    ) -> Result<(), StoreError> {
        let all = Extent {
            start: lbn,
            sectors,
        };
        self.change(all, |root, part, media| root.zero(part, may_punch, media))?;
        self.note_known(all)
    }

    /// Gives back the room of the sectors as far as possible; in a parity volume only the room of
    /// whole rows. Discarded sectors read as zeros, the others as before.
    ///
    /// # Errors
    /// As [`write`](Store::write).
    pub fn discard(&mut self, lbn: Lbn, sectors: Sectors) -> Result<(), StoreError> {
        let all = Extent {
            start: lbn,
            sectors,
        };
        self.change(all, |root, part, media| root.discard(part, media))
    }

    /// Calls `visit` for each run of sectors, with true if the run takes room. The other runs read
    /// as zeros. In doubt a run takes room. Neighbouring runs differ. `visit` may end the search.
    ///
    /// # Errors
    /// Out of range, or the host's.
    pub fn allocated(
        &mut self,
        lbn: Lbn,
        sectors: Sectors,
        visit: &mut dyn FnMut(Extent, bool) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.check_range(Extent {
            start: lbn,
            sectors,
        })?;
        self.finish_pending()?;
        if !self.losses.is_empty() {
            // Clients take a run without room for zeros. Lost sectors are not zeros.
            let _ = visit(
                Extent {
                    start: lbn,
                    sectors,
                },
                true,
            );
            return Ok(());
        }
        let end = lbn + sectors;
        let mut last: Option<(Extent, bool)> = None;
        let mut merged = |run: Extent, takes_room| match &mut last {
            Some((extent, same)) if *same == takes_room => {
                extent.sectors += run.sectors;
                ControlFlow::Continue(())
            }
            last => match last.replace((run, takes_room)) {
                Some((extent, takes_room)) => visit(extent, takes_room),
                None => ControlFlow::Continue(()),
            },
        };
        for start in (lbn.0..end.0).step_by(ALLOCATION_SECTORS as usize) {
            let part = Extent::new(start, ALLOCATION_SECTORS.min(end.0 - start));
            if self
                .root
                .allocated(part, &self.media, &mut merged)?
                .is_break()
            {
                return Ok(());
            }
        }
        if let Some((extent, takes_room)) = last {
            // This is the last run, so the answer of `visit` has no effect.
            let _ = visit(extent, takes_room);
        }
        Ok(())
    }

    /// Compares all parity and all copies with the data. Changes nothing.
    ///
    /// # Errors
    /// Lost, or the host's.
    pub fn scrub(&mut self) -> Result<RedundancyCheck, StoreError> {
        let mut scrub = Scrub::default();
        while self.scrub_step(&mut scrub, SCRUBBED_SECTORS)? {}
        Ok(scrub.found)
    }

    /// Continues a comparison over about `most` addresses. Requests may be served between two
    /// calls. Unreadable sectors are mended as for reads. Unsettled regions of a kill are settled
    /// first, and their differences do not count as found. Returns true if something is left to
    /// compare.
    ///
    /// # Errors
    /// As [`scrub`](Store::scrub); the compared part stays compared. Nothing is mended if the
    /// volume [has failed](Store::has_failed).
    pub fn scrub_step(&mut self, scrub: &mut Scrub, most: Sectors) -> Result<bool, StoreError> {
        self.check_running()?;
        self.finish_pending()?;
        if scrub.repair.changes() {
            self.check_changes()?;
            self.check_loss()?;
        }
        if self.left_to_compare() > Bytes(0) && self.settle_or_give_up_lacking()? {
            return Ok(true);
        }
        let capacity = self.capacity();
        let sectors = most
            .max(Sectors(1))
            .min(Sectors(capacity.0.saturating_sub(scrub.next.0)));
        let part = Extent {
            start: scrub.next,
            sectors,
        };
        let rows = if let StoreNode::Volume(array) = &self.root {
            array.layout.rows()
        } else {
            None
        };
        let part = rows.map_or(part, |rows| rows.around(part));
        if sectors > Sectors::ZERO {
            self.attempt(scrub.repair.changes().then_some(part), |store| {
                let found = if scrub.repair.changes() {
                    store.compare_and_mend(part, scrub.repair)
                } else {
                    store.compare(part)
                };
                found.map(|found| scrub.found.add(found))
            })?;
            scrub.next = part.end();
        }
        Ok(scrub.next.0 < capacity.0)
    }

    fn compare(&mut self, part: Extent) -> Result<RedundancyCheck, StoreError> {
        let mut verifier = Verifier::scrubbing(&mut self.media, Repair::Nothing);
        verifier.check(&mut self.root, "", part)?;
        Ok(verifier.found)
    }

    /// Compares and mends `part`. Mending goes through [`Store::change_once`], because a kill may
    /// interrupt any change.
    fn compare_and_mend(
        &mut self,
        part: Extent,
        repair: Repair,
    ) -> Result<RedundancyCheck, StoreError> {
        let mut found = RedundancyCheck::default();
        let within = Extent {
            sectors: part.end().min(Lbn(self.capacity().0)).since(part.start),
            ..part
        };
        self.change_once(within, &mut |root, part, media| {
            let mut verifier = Verifier::scrubbing(media, repair);
            verifier.check(root, "", part)?;
            found.add(std::mem::take(&mut verifier.found));
            Ok(())
        })?;
        Ok(found)
    }

    /// Number of data sectors of a row of the outermost volume; 1 without parity. A discard of less
    /// than a row gives no room back.
    pub fn row_sectors(&self) -> u64 {
        match &self.root {
            StoreNode::Volume(array) => array.layout.rows().map_or(1, |rows| rows.data.0),
            StoreNode::Drive { .. } => 1,
        }
    }

    #[inline]
    fn check_range(&self, extent: Extent) -> Result<(), StoreError> {
        let capacity = self.capacity();
        if extent.sectors > Sectors::ZERO && extent.within(capacity) {
            return self.check_running();
        }
        Err(StoreError::OutOfRange { extent, capacity })
    }

    /// Carries out a change of `extent`: in parts if the changes go through the journal.
    #[inline]
    fn change(
        &mut self,
        extent: Extent,
        mut make: impl FnMut(&mut StoreNode, Extent, &mut Media) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.check_range(extent)?;
        self.check_changes()?;
        if !self.root.answers() {
            return Err(StoreError::Lost { extent });
        }
        // A change may be repeated after a member fails in the middle. The second attempt may go
        // through the journal, because the volume is degraded by then.
        let made = self.attempt(Some(extent), |store| store.change_once(extent, &mut make));
        if made.is_err() {
            self.distrust_copies();
        }
        made
    }

    #[inline]
    fn change_once(
        &mut self,
        extent: Extent,
        make: &mut impl FnMut(&mut StoreNode, Extent, &mut Media) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        debug_assert!(
            extent.within(self.capacity()),
            "{extent:?} is changed and was not checked"
        );
        self.finish_pending()?;
        // A failed member misses this change, so its bytes are no longer right.
        self.missed_nothing.clear();
        if let Some(marks) = self.records.as_mut().and_then(Records::marks_mut) {
            // The marks are on the device before the first write, as in md: raid1.c calls
            // `md_bitmap_unplug` before it submits pending writes.
            let marked = marks.mark(extent, self.media.epoch);
            marked.map_err(|error| self.stop_unless_told_apart(error))?;
        }
        // A record in the journal is repeated at the next opening. It would overwrite a later
        // change that is made without a record. So changes go through the journal until the journal
        // is empty.
        let redo = self.records.as_ref().and_then(Records::redo);
        if !self.journalled && redo.is_none_or(|redo| redo.is_empty()) {
            return make(&mut self.root, extent, &mut self.media);
        }
        let (mut at, end) = (extent.start.0, extent.end().0);
        let mut step = JOURNALLED_SECTORS;
        while at < end {
            let next = (at / step + 1) * step;
            let part = Extent::new(at, end.min(next) - at);
            match self.change_at_once(&mut |root, media| make(root, part, media))? {
                // A record also holds the parity or copies of the part, so it can be longer than
                // the part.
                RecordingResult::TooLong if part.sectors > Sectors(1) => {
                    step = part.sectors.0.div_ceil(2)
                }
                RecordingResult::TooLong => return Err(self.too_long(part)),
                _ => at = part.end().0,
            }
        }
        Ok(())
    }

    /// Makes copies within `extent` equal before a read. Copies may differ after a kill during
    /// their write; without this step two reads of a sector could return different data.
    #[cold]
    fn compare_before_reading(&mut self, extent: Extent) -> Result<(), StoreError> {
        let touches = |unsettled: &DoubtfulExtent| {
            let (start, end) = (unsettled.extent.start, unsettled.extent.end());
            unsettled.media.is_empty() && start < extent.end() && extent.start < end
        };
        if self.has_copies && self.root.answers() && self.unsettled.iter().any(touches) {
            self.finish_pending()?;
            Verifier::mending(&mut self.media).check(&mut self.root, "", extent)?;
        }
        Ok(())
    }

    /// True if a volume with parity lacks a member, or part of one. Its parity cannot be computed
    /// from the data then, because the missing data follows from the parity.
    pub fn has_impaired_parity(&self) -> bool {
        states::any_impaired_parity(&self.root)
    }

    /// Number of bytes still to be compared since a kill.
    pub fn left_to_compare(&self) -> Bytes {
        let left = self
            .unsettled
            .iter()
            .filter(|unsettled| unsettled.media.is_empty());
        left.map(|unsettled| unsettled.extent.sectors)
            .fold(Sectors::ZERO, |sum, more| sum + more)
            .bytes()
    }

    /// Returns an error if some of `extent` was given up and not written since.
    #[cold]
    fn check_known(&mut self, extent: Extent) -> Result<(), StoreError> {
        let StoreNode::Volume(array) = &mut self.root else {
            return Ok(());
        };
        for loss in &mut self.losses {
            if let Some(lost) = loss.first_lost(array, extent)? {
                return Err(StoreError::Lost {
                    extent: Extent {
                        start: lost,
                        sectors: Sectors(1),
                    },
                });
            }
        }
        Ok(())
    }

    /// Notes a write of `extent`: its sectors are no longer lost.
    fn note_known(&mut self, extent: Extent) -> Result<(), StoreError> {
        let epoch = self.media.epoch;
        self.losses
            .iter_mut()
            .try_for_each(|loss| loss.note_written(extent, epoch))
    }

    /// Makes changes through the journal. If the process dies or power is lost, either all changes
    /// or none are made. Changes that are too long for the journal are not made.
    pub(crate) fn change_at_once(
        &mut self,
        make: &mut impl FnMut(&mut StoreNode, &mut Media) -> Result<(), StoreError>,
    ) -> Result<RecordingResult, StoreError> {
        // The media hold one transaction at a time, so the pending one must be made before the
        // next.
        self.finish_pending()?;
        let mut recorded = self.write_down(make)?;
        if recorded == RecordingResult::Full {
            // The first sync makes the changes durable and writes the marker that gives their
            // records up. The second makes the marker durable. Only then the room of these records
            // is free.
            self.sync()?;
            self.sync()?;
            recorded = self.write_down(make)?;
        }
        match recorded {
            RecordingResult::Done => {}
            RecordingResult::Full => return Ok(RecordingResult::TooLong),
            RecordingResult::TooLong => return Ok(recorded),
        }
        // From here on a kill would repeat the record. So reads must see the change even if the
        // following writes fail.
        self.pending = true;
        self.media.overlaid = true;
        self.finish_pending()?;
        Ok(recorded)
    }

    /// Collects the changes of `make` in the journal.
    fn write_down(
        &mut self,
        make: &mut impl FnMut(&mut StoreNode, &mut Media) -> Result<(), StoreError>,
    ) -> Result<RecordingResult, StoreError> {
        self.media.begin();
        let made = make(&mut self.root, &mut self.media);
        self.media.end();
        made?;
        let Some(redo) = self.records.as_mut().and_then(Records::redo_mut) else {
            return Ok(RecordingResult::Done);
        };
        let recorded = redo.record(self.media.transaction.change(), self.media.epoch);
        recorded.map_err(|error| self.stop_unless_told_apart(error))
    }

    pub(crate) fn too_long(&self, extent: Extent) -> StoreError {
        StoreError::Refused(format!(
            "a change of {extent:?} takes more room than the journal has"
        ))
    }

    /// Makes the changes of the pending journal record.
    #[inline]
    pub(crate) fn finish_pending(&mut self) -> Result<(), StoreError> {
        if self.pending {
            self.finish_pending_without(&[])
        } else {
            Ok(())
        }
    }

    /// Makes the changes of the pending journal record, without the changes of the media `without`.
    #[cold]
    pub(crate) fn finish_pending_without(&mut self, without: &[usize]) -> Result<(), StoreError> {
        if self.pending {
            assert!(
                self.media.overlaid,
                "reads do not see a change that is in the journal"
            );
            self.media.apply(without)?;
            self.pending = false;
            self.media.overlaid = false;
            if let Some(redo) = self.records.as_mut().and_then(Records::redo_mut) {
                redo.carried_out();
            }
        }
        Ok(())
    }
}
