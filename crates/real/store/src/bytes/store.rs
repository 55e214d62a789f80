//! A volume's bytes: requests come in, media change.

use crate::buffers::extent_of;
use crate::bytes::StoreError;
use crate::bytes::lock::Lock;
use crate::bytes::loss::Loss;
use crate::bytes::media::Media;
use crate::bytes::node::Node;
use crate::bytes::records::Records;
use crate::bytes::redo::Recorded;
use crate::bytes::states;
use crate::bytes::verify::{Comparison, Verifier};
use crate::judge::Repair;
use fullstroke_contract::Extent;
use fullstroke_units::{Bytes, Lbn, SECTOR_BYTES, Sectors};
use std::ops::ControlFlow;
use std::time::Duration;

/// What of a request is journalled at once, which bounds the journal.
const JOURNALLED_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
/// What a scrub without pauses compares at once.
const SCRUBBED_SECTORS: Sectors = Sectors((64 << 20) / SECTOR_BYTES);
/// What is asked for its allocation at once.
const ALLOCATION_SECTORS: u64 = (16 << 20) / SECTOR_BYTES;

/// The bytes of a volume, on the media of its drives.
///
/// - **Requests**: [`read`](Store::read), [`write`](Store::write),
///   [`write_zeroes`](Store::write_zeroes), [`discard`](Store::discard),
///   [`allocated`](Store::allocated). Each is carried out wholly before it
///   returns; parity and copies are right between any two of them.
/// - **Durability**: [`sync`](Store::sync), or [`sync_job`](Store::sync_job) and
///   [`note_synced`](Store::note_synced); [`tidy`](Store::tidy) from time to
///   time; [`close`](Store::close) at the end.
/// - **Members**: [`status`](Store::status), [`fail_member`](Store::fail_member),
///   [`restore_member`](Store::restore_member),
///   [`rebuild_member`](Store::rebuild_member), [`scrub`](Store::scrub).
/// - **Lost data**: [`has_failed`](Store::has_failed),
///   [`accept_data_loss`](Store::accept_data_loss),
///   [`has_lost_data`](Store::has_lost_data).
///
/// # When too many members fail
/// A volume that has lost more than its redundancy covers has failed. What it
/// still has can be read; it takes no changes, fills no member, and takes no
/// empty member in a failed one's place, so that members may come back with what
/// they held. When [somebody says](Store::accept_data_loss) that the data may be
/// lost, it is filled again; what had no source is
/// [`Lost`](StoreError::Lost) until it is written, never zeros or garbage.
///
/// # When the host fails
/// - **A read**: what the member should hold is computed from the others and
///   written there again. A member that cannot be written, or not be read
///   afterwards, has failed.
/// - **A change**: the member has failed, if the volume survives that; the
///   change is made on all others, and whole without it. Otherwise the change is
///   an error, and may be made in part.
/// - **Room**: a change for which there is none is an error, and may be made in
///   part. Redundancy is made to follow from the data before the error is
///   returned or, if there is no room for that either, by the next
///   [`tidy`](Store::tidy); until then no other member can be failed. In a
///   degraded parity volume the whole change is in the journal: reads find it
///   made, and it is made before the next change.
/// - **Making durable**: the member has failed, if the volume survives that;
///   otherwise the store [has stopped](StoreError::Stopped), and nothing is
///   served any more.
///
/// [`take_dropped`](Store::take_dropped) tells which members have failed so.
pub struct Store {
    pub(crate) root: Node,
    pub(crate) media: Media,
    /// What the folder keeps beside the media; `None` in memory.
    pub(crate) records: Option<Records>,
    /// Whether changes go through the journal.
    pub(crate) journalled: bool,
    /// The journal's record was not carried out to its end.
    pub(crate) pending: bool,
    /// Whether some volume of the tree keeps copies.
    pub(crate) has_copies: bool,
    /// Where redundancy may not follow from the data.
    pub(crate) unsettled: Vec<Unsettled>,
    /// All that changed up to this epoch is durable.
    pub(crate) synced: u64,
    /// An epoch, and when it began at the latest.
    pub(crate) checkpoint: Option<(u64, Duration)>,
    pub(crate) quiet: Duration,
    /// Data that was given up, and may not be read before it is written.
    pub(crate) losses: Vec<Loss>,
    /// Why nothing is served any more.
    pub(crate) stopped: Option<String>,
    /// Members that have failed without an order.
    pub(crate) dropped: Vec<Dropped>,
    /// Failed members that hold what they should: somebody let them fail, and
    /// nothing was changed since.
    pub(crate) missed_nothing: Vec<Vec<usize>>,
    /// The media of members that are about to fail.
    pub(crate) dying: Vec<usize>,
    /// Counts changes of members' states that do not come from rebuilding.
    pub(crate) state_changes: u64,
    /// What keeps writers out of a folder that is only read. Changes are collected
    /// then and never made.
    pub(crate) read_only: Option<Lock>,
}

/// A comparison of all redundancy with the data, as far as it is.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    /// All below this was compared.
    pub next: Lbn,
    /// What is written again of what is wrong.
    pub repair: Repair,
    /// What was found so far.
    pub found: Comparison,
}

/// Where redundancy may not follow from the data.
pub(crate) struct Unsettled {
    pub(crate) extent: Extent,
    /// The media that lack what was to be written. Without them it follows. None
    /// where it is not known what lacks something, after a kill.
    pub(crate) media: Vec<usize>,
}

/// A member that has failed because the host failed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Its indices from the top.
    pub path: Vec<usize>,
    /// What happened, for people.
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

    /// Writes the sectors from `lbn` on. When it returns well, the bytes are
    /// safe from the death of the process; [`sync`](Store::sync) makes them
    /// safe from more.
    ///
    /// # Errors
    /// Out of range, lost, or the host's; see above for what holds then.
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

    /// Makes the sectors read as zeros, and gives their room back if it may:
    /// otherwise a later write there cannot run out of room.
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

    /// Gives back what room of the sectors it can: in a parity volume that of
    /// whole rows. What is given back reads as zeros, the rest as before.
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

    /// Tells `visit`, run by run, which of the sectors take room; those that
    /// take none read as zeros. In doubt a run takes room. Neighbouring runs
    /// differ. `visit` may end the search.
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
        let mended_in_memory = self.is_read_only() && !self.media.transaction.is_empty();
        if !self.losses.is_empty() || mended_in_memory {
            // What takes no room would be taken for zeros.
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
            // There is nothing left that could be ended.
            let _ = visit(extent, takes_room);
        }
        Ok(())
    }

    /// Compares all parity and all copies with the data that they follow from.
    /// Changes nothing.
    ///
    /// # Errors
    /// Lost, or the host's.
    pub fn scrub(&mut self) -> Result<Comparison, StoreError> {
        let mut scrub = Scrub::default();
        while self.scrub_step(&mut scrub, SCRUBBED_SECTORS)? {}
        Ok(scrub.found)
    }

    /// Compares on, over about `most` addresses: a scrub in pieces, between
    /// which requests are served. What cannot be read is mended as it is for
    /// reads. What a kill has left to be compared is settled first, and counts
    /// for nothing that was found. Answers whether something is left.
    ///
    /// # Errors
    /// As [`scrub`](Store::scrub); what was compared stays so. Nothing is mended
    /// in a volume that [has failed](Store::has_failed).
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
        let rows = if let Node::Volume(array) = &self.root {
            array.rows
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

    fn compare(&mut self, part: Extent) -> Result<Comparison, StoreError> {
        let mut verifier = Verifier::scrubbing(&mut self.media, Repair::Nothing);
        verifier.check(&mut self.root, "", part)?;
        Ok(verifier.found)
    }

    /// Mending is a change like others: a kill may cut it in two.
    fn compare_and_mend(&mut self, part: Extent, repair: Repair) -> Result<Comparison, StoreError> {
        let mut found = Comparison::default();
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

    /// The data sectors of a row of the uppermost volume, 1 if it has no parity:
    /// of parts of rows nothing can be given back.
    pub fn row_sectors(&self) -> u64 {
        match &self.root {
            Node::Volume(array) => array.rows.map_or(1, |rows| rows.data.0),
            Node::Drive { .. } => 1,
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

    /// Carries out a change of `extent`, in parts if they must be journalled.
    #[inline]
    fn change(
        &mut self,
        extent: Extent,
        mut make: impl FnMut(&mut Node, Extent, &mut Media) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.check_range(extent)?;
        self.check_changes()?;
        if !self.root.answers() {
            return Err(StoreError::Lost { extent });
        }
        // Whatever a member's failure leaves undone is done again, perhaps through
        // the journal now.
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
        make: &mut impl FnMut(&mut Node, Extent, &mut Media) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.finish_pending()?;
        // Whoever does not take part is no longer as it should be.
        self.missed_nothing.clear();
        if let Some(marks) = self.records.as_mut().and_then(Records::marks_mut) {
            let marked = marks.mark(extent, self.media.epoch);
            marked.map_err(|error| self.stop_unless_told_apart(error))?;
        }
        // A record that is still there would undo, at the next opening, a change that goes by
        // without one.
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
                Recorded::TooLong if part.sectors > Sectors(1) => step = part.sectors.0.div_ceil(2),
                Recorded::TooLong => return Err(self.too_long(part)),
                _ => at = part.end().0,
            }
        }
        Ok(())
    }

    /// Copies that were being written when the store was killed may differ: a read
    /// makes them alike first, so that the next finds the same.
    #[cold]
    fn compare_before_reading(&mut self, extent: Extent) -> Result<(), StoreError> {
        let touches = |unsettled: &Unsettled| {
            let (start, end) = (unsettled.extent.start, unsettled.extent.end());
            unsettled.media.is_empty() && start < extent.end() && extent.start < end
        };
        if self.has_copies && self.root.answers() && self.unsettled.iter().any(touches) {
            self.finish_pending()?;
            Verifier::mending(&mut self.media).check(&mut self.root, "", extent)?;
        }
        Ok(())
    }

    /// Whether a volume with parity lacks a member, or some of it: its parity
    /// cannot be mended then, since the data follows from it.
    pub fn has_impaired_parity(&self) -> bool {
        states::any_impaired_parity(&self.root)
    }

    /// How many bytes are still to be compared since the store was killed.
    pub fn left_to_compare(&self) -> Bytes {
        let left = self
            .unsettled
            .iter()
            .filter(|unsettled| unsettled.media.is_empty());
        left.map(|unsettled| unsettled.extent.sectors)
            .fold(Sectors::ZERO, |sum, more| sum + more)
            .bytes()
    }

    /// An error if some of `extent` was given up and not written since.
    #[cold]
    fn check_known(&mut self, extent: Extent) -> Result<(), StoreError> {
        let Node::Volume(array) = &mut self.root else {
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

    /// `extent` was written: it can be read from now on, whatever was lost.
    fn note_known(&mut self, extent: Extent) -> Result<(), StoreError> {
        let epoch = self.media.epoch;
        self.losses
            .iter_mut()
            .try_for_each(|loss| loss.note_written(extent, epoch))
    }

    /// Makes changes through the journal: all of them or, if the process dies or power is lost
    /// before they are written down, none. Nothing is changed if they are too long for it.
    pub(crate) fn change_at_once(
        &mut self,
        make: &mut impl FnMut(&mut Node, &mut Media) -> Result<(), StoreError>,
    ) -> Result<Recorded, StoreError> {
        // A change that was written down must be made before the next is.
        self.finish_pending()?;
        let mut recorded = self.write_down(make)?;
        if recorded == Recorded::Full {
            // The first makes changes durable, the second the marker that says so.
            self.sync()?;
            self.sync()?;
            recorded = self.write_down(make)?;
        }
        match recorded {
            Recorded::Done => {}
            Recorded::Full => return Ok(Recorded::TooLong),
            Recorded::TooLong => return Ok(recorded),
        }
        self.pending = true;
        self.media.overlaid = true;
        self.finish_pending()?;
        Ok(recorded)
    }

    /// Plans changes, and writes them down.
    fn write_down(
        &mut self,
        make: &mut impl FnMut(&mut Node, &mut Media) -> Result<(), StoreError>,
    ) -> Result<Recorded, StoreError> {
        self.media.begin();
        let made = make(&mut self.root, &mut self.media);
        self.media.end();
        made?;
        let Some(redo) = self.records.as_mut().and_then(Records::redo_mut) else {
            return Ok(Recorded::Done);
        };
        let recorded = redo.record(self.media.transaction.change(), self.media.epoch);
        recorded.map_err(|error| self.stop_unless_told_apart(error))
    }

    pub(crate) fn too_long(&self, extent: Extent) -> StoreError {
        StoreError::Refused(format!(
            "a change of {extent:?} takes more room than the journal has"
        ))
    }

    /// Makes what is in the journal to the end.
    #[inline]
    pub(crate) fn finish_pending(&mut self) -> Result<(), StoreError> {
        if self.pending {
            self.finish_pending_without(&[])
        } else {
            Ok(())
        }
    }

    /// Makes what is in the journal to the end, but for the media `without`.
    #[cold]
    pub(crate) fn finish_pending_without(&mut self, without: &[usize]) -> Result<(), StoreError> {
        if self.pending {
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
