//! A volume's bytes: requests come in, media change.

use crate::StoreError;
use crate::journal::Journal;
use crate::lock::Lock;
use crate::loss::Loss;
use crate::media::Media;
use crate::medium::extent_of;
use crate::node::Node;
use crate::regions::Regions;
use crate::states;
use crate::superblock::Superblock;
use crate::verify::{Comparison, Verifier};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// What of a request is journalled at once, which bounds the journal.
const JOURNALLED_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
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
/// A request whose read or write of a medium fails returns the error, and may
/// have been carried out in part: as far as the other media allow, so that
/// nothing else is lost if the member is then [failed](Store::fail_member),
/// which is for the caller to decide. The volume stays usable: what the request
/// left behind is mended by the next [`tidy`](Store::tidy), or, if the process
/// ends before, by the next opening, since the region stays marked. In a
/// degraded parity volume the changes are in the journal; the next request of
/// any kind first makes them to the end, and fails like this one if it cannot.
pub struct Store {
    pub(crate) root: Node,
    pub(crate) media: Media,
    /// What the folder keeps beside the media; `None` in memory.
    pub(crate) records: Option<Records>,
    /// Whether changes go through the journal.
    pub(crate) journalled: bool,
    /// The journal's record was not carried out to its end.
    pub(crate) pending: bool,
    /// Where redundancy may not follow from the data.
    pub(crate) unsettled: Vec<Extent>,
    /// All that changed up to this epoch is durable.
    pub(crate) synced: u64,
    /// An epoch, and when it began at the latest.
    pub(crate) checkpoint: Option<(u64, Duration)>,
    pub(crate) quiet: Duration,
    /// Data that was given up, and may not be read before it is written.
    pub(crate) losses: Vec<Loss>,
    /// Counts changes of members' states that do not come from rebuilding.
    pub(crate) state_changes: u64,
}

/// What a folder keeps beside the media.
pub(crate) struct Records {
    pub(crate) folder: PathBuf,
    pub(crate) _lock: Lock,
    /// As in the file.
    pub(crate) superblock: Superblock,
    /// Without redundancy there is nothing to mend.
    pub(crate) regions: Option<Regions>,
    /// Without parity there is no need.
    pub(crate) journal: Option<Journal>,
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
        self.finish_pending()?;
        self.root.read(lbn, into, &self.media)?;
        if self.losses.is_empty() { Ok(()) } else { self.check_known(extent_of(lbn, into.len())) }
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
            root.write(part.start, &from[begin..][..part.sectors.bytes().0 as usize], media)
        })?;
        if self.losses.is_empty() { Ok(()) } else { self.note_known(all) }
    }

    /// Makes the sectors read as zeros, and gives their room back if it may:
    /// otherwise a later write there cannot run out of room.
    ///
    /// # Errors
    /// As [`write`](Store::write).
    pub fn write_zeroes(&mut self, lbn: Lbn, sectors: Sectors, may_punch: bool) -> Result<(), StoreError> {
        let all = Extent { start: lbn, sectors };
        self.change(all, |root, part, media| root.zero(part, may_punch, media))?;
        self.note_known(all)
    }

    /// Gives back what room of the sectors it can: in a parity volume that of
    /// whole rows. What is given back reads as zeros, the rest as before.
    ///
    /// # Errors
    /// As [`write`](Store::write).
    pub fn discard(&mut self, lbn: Lbn, sectors: Sectors) -> Result<(), StoreError> {
        let all = Extent { start: lbn, sectors };
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
        self.check_range(Extent { start: lbn, sectors })?;
        self.finish_pending()?;
        if !self.losses.is_empty() {
            // What takes no room would be taken for zeros.
            let _ = visit(Extent { start: lbn, sectors }, true);
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
            if self.root.allocated(part, &self.media, &mut merged)?.is_break() {
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
        self.finish_pending()?;
        let all = Extent { start: Lbn(0), sectors: self.capacity() };
        let mut verifier = Verifier::new(&mut self.media, false);
        verifier.check(&mut self.root, "", all)?;
        Ok(verifier.found)
    }

    #[inline]
    fn check_range(&self, extent: Extent) -> Result<(), StoreError> {
        let capacity = self.capacity();
        if extent.sectors > Sectors::ZERO && extent.within(capacity) {
            return Ok(());
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
        if !self.root.answers() {
            return Err(StoreError::Lost { extent });
        }
        self.finish_pending()?;
        if let Some(Records { regions: Some(regions), .. }) = &mut self.records {
            regions.mark(extent, self.media.epoch)?;
        }
        if !self.journalled {
            let result = make(&mut self.root, extent, &mut self.media);
            if let Err(StoreError::Host { .. }) = result {
                self.unsettled.push(extent);
            }
            return result;
        }
        let (mut at, end) = (extent.start.0, extent.end().0);
        while at < end {
            let next = (at / JOURNALLED_SECTORS + 1) * JOURNALLED_SECTORS;
            let part = Extent::new(at, end.min(next) - at);
            self.change_at_once(|root, media| make(root, part, media))?;
            at = next;
        }
        Ok(())
    }

    /// An error if some of `extent` was given up and not written since.
    #[cold]
    fn check_known(&mut self, extent: Extent) -> Result<(), StoreError> {
        let Node::Volume(array) = &mut self.root else { return Ok(()) };
        for loss in &mut self.losses {
            if let Some(lost) = loss.first_lost(array, extent)? {
                return Err(StoreError::Lost { extent: Extent { start: lost, sectors: Sectors(1) } });
            }
        }
        Ok(())
    }

    /// `extent` was written: it can be read from now on, whatever was lost.
    fn note_known(&mut self, extent: Extent) -> Result<(), StoreError> {
        let epoch = self.media.epoch;
        self.losses.iter_mut().try_for_each(|loss| loss.note_written(extent, epoch))
    }

    /// Makes changes through the journal: all of them or, if the process dies
    /// before they are written down, none.
    pub(crate) fn change_at_once(
        &mut self,
        make: impl FnOnce(&mut Node, &mut Media) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.media.begin();
        let made = make(&mut self.root, &mut self.media);
        self.media.end();
        made?;
        if let Some(Records { journal: Some(journal), .. }) = &mut self.records {
            journal.record(&self.media.transaction, self.media.epoch)?;
        }
        self.pending = true;
        self.media.apply(&[])?;
        self.pending = false;
        Ok(())
    }

    /// Makes what is in the journal to the end.
    #[inline]
    pub(crate) fn finish_pending(&mut self) -> Result<(), StoreError> {
        if self.pending { self.finish_pending_without(&[]) } else { Ok(()) }
    }

    /// Makes what is in the journal to the end, but for the media `without`.
    #[cold]
    pub(crate) fn finish_pending_without(&mut self, without: &[usize]) -> Result<(), StoreError> {
        if self.pending {
            self.media.apply(without)?;
            self.pending = false;
        }
        Ok(())
    }
}
