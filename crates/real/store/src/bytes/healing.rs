//! Failures of the host's storage, and their consequences.
//!
//! Unreadable sectors are computed from the other members and written again. A failed write fails
//! the member, as in md (`md_error` of Linux), if the volume survives that. A failed sync has the
//! same effect, because the host drops the unwritten pages and reports success for the next sync
//! (Linux marks such pages clean). Lack of room is no fault of a member; the client gets an error.

use crate::buffers::extent_of;
use crate::bytes::media::Media;
use crate::bytes::member::Member as _;
use crate::bytes::node::{Array, StoreNode};
use crate::bytes::states;
use crate::bytes::store::{DoubtfulExtent, HostFailedMember};
use crate::bytes::{Store, StoreError};
use fullstroke_contract::{Extent, MemberState};
use fullstroke_units::{Lbn, Sectors};

/// Largest number of failed reads to mend for one request: enough for a request of 32 MiB on media
/// with several faults.
const MENDED_MOST: usize = 256;

impl Store {
    /// Returns the members that have failed because of the host since the last call. The timing
    /// model of the volume must fail the same members.
    pub fn take_dropped(&mut self) -> Vec<HostFailedMember> {
        std::mem::take(&mut self.dropped)
    }

    /// Reason why no requests are served any more; `None` while the store serves.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    #[inline]
    pub(crate) fn check_running(&self) -> Result<(), StoreError> {
        match &self.stopped {
            None => Ok(()),
            Some(why) => Err(StoreError::Stopped { why: why.clone() }),
        }
    }

    /// Stops the store: no request is served any more.
    pub(crate) fn stop(&mut self, error: StoreError) -> StoreError {
        let why = self
            .stopped
            .get_or_insert_with(|| error.to_string())
            .clone();
        StoreError::Stopped { why }
    }

    /// Handles an error of marking. A failed flush stops the store, because the file's content is
    /// not known then. Other errors are returned.
    pub(crate) fn stop_unless_told_apart(&mut self, error: StoreError) -> StoreError {
        match error {
            StoreError::Host {
                action: "make durable",
                ..
            } => self.stop(error),
            error => error,
        }
    }

    /// Mends the unreadable sectors of a read that failed with `error`, and repeats the read.
    #[cold]
    pub(crate) fn read_again(
        &mut self,
        lbn: Lbn,
        into: &mut [u8],
        error: StoreError,
    ) -> Result<(), StoreError> {
        debug_assert!(extent_of(lbn, into.len()).within(self.capacity()));
        let mut error = error;
        let mut last = None;
        for _ in 0..MENDED_MOST {
            error = match self.mend_failed_read(error, &mut last) {
                Ok(()) => match self.root.read(lbn, into, &self.media) {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                },
                Err(error) => return Err(error),
            };
        }
        Err(error)
    }

    /// Carries out the repeatable action `act`. After a failure the unreadable sectors are mended,
    /// members with failed writes are failed, and `act` is repeated. `changed` is the extent whose
    /// redundancy may not follow from the data if `act` ends in the middle.
    pub(crate) fn attempt(
        &mut self,
        changed: Option<Extent>,
        mut act: impl FnMut(&mut Store) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut last = None;
        let mut result = act(self);
        for _ in 0..MENDED_MOST {
            let Err(error @ StoreError::Host { .. }) = result else {
                return result;
            };
            self.mend(changed, error, &mut last)?;
            result = act(self);
        }
        result
    }

    /// Mends the cause of `error`. After a successful return another attempt is worth while.
    #[cold]
    fn mend(
        &mut self,
        changed: Option<Extent>,
        error: StoreError,
        last: &mut Option<(usize, Extent)>,
    ) -> Result<(), StoreError> {
        let failed = self.media.take_failed_changes();
        if failed.is_empty() {
            return self.mend_failed_read(error, last);
        }
        if let Some(extent) = changed.filter(|_| !self.pending) {
            let media = failed.iter().map(|&(medium, _)| medium).collect();
            self.unsettled.push(DoubtfulExtent { extent, media });
        }
        let unread = self.media.take_failed_read();
        let broken = broken_of(&failed, unread.is_some());
        if !broken.is_empty() && self.survives_all(&broken) {
            return broken
                .iter()
                .try_for_each(|&(medium, _)| self.drop_medium(medium, &error));
        }
        // If settling fails now, [`Store::tidy`] tries again later.
        while matches!(self.settle_some(), Ok(true)) {}
        self.media.take_failed_changes();
        self.media.take_failed_read();
        // Lack of room is the error to report, because the client can act on it. The failed read is
        // mended once there is room.
        match failed.iter().find(|&&(_, want_of_room)| want_of_room) {
            Some(&(medium, _)) if unread.is_some() => Err(self.media.want_of_room(medium)),
            _ => Err(error),
        }
    }

    /// Mends the last failed read. Returns `error` if mending is impossible. A second failure in a
    /// place mended just now fails the medium.
    fn mend_failed_read(
        &mut self,
        error: StoreError,
        last: &mut Option<(usize, Extent)>,
    ) -> Result<(), StoreError> {
        let Some(failed) = self.media.take_failed_read() else {
            return Err(error);
        };
        // Sectors can be computed only from redundancy that follows from the data, so pending
        // changes and unsettled extents come first.
        if self.finish_pending().is_err() {
            return self.drop_stuck(failed.0, error);
        }
        let lacks = self
            .unsettled
            .iter()
            .any(|unsettled| unsettled.media.contains(&failed.0));
        if !lacks && self.settle_or_drop(&[failed.0]).is_err() {
            return Err(error);
        }
        let again = lacks || last.replace(failed) == Some(failed);
        if !again && self.heal(failed.0, failed.1).is_ok() {
            return Ok(());
        }
        self.media.take_failed_changes();
        self.media.take_failed_read();
        if self.survives_all(&[(failed.0, false)]) && self.drop_medium(failed.0, &error).is_ok() {
            return Ok(());
        }
        Err(error)
    }

    /// Fails an unreadable medium, together with all media that refuse the pending changes, if the
    /// volume survives the failures.
    fn drop_stuck(&mut self, medium: usize, error: StoreError) -> Result<(), StoreError> {
        let mut all = vec![medium];
        loop {
            let refusing = self
                .media
                .take_failed_changes()
                .into_iter()
                .map(|(medium, _)| medium);
            all.extend(refusing);
            let counted: Vec<(usize, bool)> = all.iter().map(|&medium| (medium, false)).collect();
            if !self.survives_all(&counted) {
                return Err(error);
            }
            if self.finish_pending_without(&all).is_ok() {
                break;
            }
        }
        all.into_iter()
            .try_for_each(|medium| self.drop_medium(medium, &error))
    }

    /// Computes the right bytes of `extent` of the medium, and writes the result there. The source
    /// is the medium's volume or, if necessary, a volume above.
    fn heal(&mut self, medium: usize, extent: Extent) -> Result<(), StoreError> {
        let Some(mut path) = states::path_of(&self.root, medium) else {
            return Err(StoreError::Lost { extent });
        };
        let mut extent = extent;
        while !path.is_empty() {
            let (array, member) = states::find(&mut self.root, &path)?;
            if array.heal(member, extent, &mut self.media)? {
                return Ok(());
            }
            let fullstroke_volume::Role::Data(lbn) =
                array.layout.layout().role_of(member, extent.start)
            else {
                break;
            };
            // Sectors that follow each other here may be apart in the volume above, so only the
            // first is mended there.
            extent = Extent {
                start: lbn,
                sectors: Sectors(1),
            };
            path.pop();
        }
        Err(StoreError::Lost { extent })
    }

    /// True if the volume answers without these media and without the dying ones.
    fn survives_all(&mut self, media: &[(usize, bool)]) -> bool {
        let before = self.states();
        let media = media.iter().map(|&(medium, _)| medium);
        let media: Vec<usize> = media.chain(self.dying.iter().copied()).collect();
        let paths: Vec<_> = media
            .iter()
            .filter_map(|&medium| states::path_of(&self.root, medium))
            .collect();
        let StoreNode::Volume(array) = &mut self.root else {
            return media.is_empty();
        };
        for path in &paths {
            // A failure changes no media, so an empty set suffices.
            let nothing = &mut Media::new(Vec::new());
            if states::set(array, path, MemberState::Failed, nothing).is_err() {
                return false;
            }
        }
        let survives = self.root.answers();
        states::set_all(&mut self.root, &mut before.into_iter());
        survives
    }

    /// Fails the medium's drive.
    fn drop_medium(&mut self, medium: usize, error: &StoreError) -> Result<(), StoreError> {
        let Some(path) = states::path_of(&self.root, medium) else {
            return Ok(());
        };
        let is_dying = self.dying.contains(&medium);
        if is_dying || self.member_state(&path)? == MemberState::Failed {
            return Ok(());
        }
        self.drop_member(&path)?;
        self.dropped.push(HostFailedMember {
            path,
            why: error.to_string(),
        });
        Ok(())
    }

    /// Handles the failed flush of a medium. The medium may have lost earlier writes, so nothing
    /// may be mended from the medium. So media that lack a change fail as well.
    pub(crate) fn drop_or_stop(
        &mut self,
        medium: usize,
        error: StoreError,
    ) -> Result<(), StoreError> {
        let all = self
            .lacking()
            .into_iter()
            .chain([medium])
            .map(|medium| (medium, false));
        let all: Vec<(usize, bool)> = all.collect();
        if !self.survives_all(&all) || self.has_uncompared() {
            return Err(self.stop(error));
        }
        self.unsettled.clear();
        for (medium, _) in all {
            if self.drop_medium(medium, &error).is_err() {
                return Err(self.stop(error));
            }
        }
        Ok(())
    }

    /// Fails the members that lack a change, if the volume survives this and a failure of the media
    /// `needed`.
    fn drop_lacking(&mut self, needed: &[usize], error: &StoreError) -> Result<(), StoreError> {
        let mut lacking = self.lacking();
        lacking.retain(|medium| !needed.contains(medium));
        let all: Vec<(usize, bool)> = lacking
            .iter()
            .chain(needed)
            .map(|&medium| (medium, false))
            .collect();
        if lacking.is_empty() || !self.survives_all(&all) || self.has_uncompared() {
            return Err(StoreError::Refused(format!(
                "a change was made in part, and while that cannot be mended only the member that refused \
                 it can fail: {error}"
            )));
        }
        self.unsettled.clear();
        lacking
            .into_iter()
            .try_for_each(|medium| self.drop_medium(medium, error))
    }

    /// True if regions are still to be compared after a kill. No member is dispensable then.
    fn has_uncompared(&self) -> bool {
        self.unsettled
            .iter()
            .any(|unsettled| unsettled.media.is_empty())
    }

    /// Returns the media that lack a change that others have.
    fn lacking(&self) -> Vec<usize> {
        let all = self
            .unsettled
            .iter()
            .flat_map(|unsettled| unsettled.media.iter().copied());
        let mut all: Vec<usize> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Makes redundancy follow from the data wherever it may not, so the media `dying` can fail.
    pub(crate) fn settle_all_but(&mut self, dying: &[usize]) -> Result<(), StoreError> {
        self.unsettled.retain(|unsettled| {
            let known = !unsettled.media.is_empty();
            !(known && unsettled.media.iter().all(|medium| dying.contains(medium)))
        });
        self.settle_or_drop(dying)
    }

    /// Makes redundancy follow from the data in one place where it may not. If the sources are
    /// unreadable, the members that lack a change are failed instead. Returns false if there was no
    /// such place.
    pub(crate) fn settle_or_give_up_lacking(&mut self) -> Result<bool, StoreError> {
        let error = match self.settle_some() {
            Ok(settled) => return Ok(settled),
            Err(error) => error,
        };
        let failed = self.media.take_failed_changes();
        let full = !failed.is_empty();
        // A medium that refuses changes for another reason than lack of room has failed. Lack of
        // room may pass.
        let broken: Vec<(usize, bool)> = failed
            .into_iter()
            .filter(|&(_, want_of_room)| !want_of_room)
            .collect();
        if !broken.is_empty() && self.survives_all(&broken) {
            self.media.take_failed_read();
            broken
                .iter()
                .try_for_each(|&(medium, _)| self.drop_medium(medium, &error))?;
            return Ok(true);
        }
        match self.media.take_failed_read() {
            // The medium lacks a change, and cannot be read either.
            Some((medium, _)) if !full && self.lacking().contains(&medium) => {
                self.drop_lacking(&[], &error).map(|()| true)
            }
            Some((medium, _)) if !full => self.settle_or_drop(&[medium]).map(|()| true),
            _ => Err(error),
        }
    }

    /// Makes redundancy follow from the data, so the volume can do without the media `needed`.
    /// Where this is impossible, the members that lack a change are failed, if the volume survives
    /// the failure.
    fn settle_or_drop(&mut self, needed: &[usize]) -> Result<(), StoreError> {
        while !self.unsettled.is_empty() {
            let error = match self.settle_some() {
                Ok(true) => continue,
                // Nothing can be mended in a volume that has failed.
                Ok(false) => return Ok(()),
                Err(error) => error,
            };
            self.media.take_failed_changes();
            self.media.take_failed_read();
            self.drop_lacking(needed, &error)?;
        }
        Ok(())
    }
}

/// Returns the media to fail after the failed changes. Lack of room alone fails no medium: the
/// client gets an error, and the medium lacks the change until there is room. But if a read failed
/// at the same time (`unread`), a copy could not be computed. The medium of the read then lacks the
/// change as well. Only a complete change leaves all copies alike, so media without room fail too.
fn broken_of(failed: &[(usize, bool)], unread: bool) -> Vec<(usize, bool)> {
    failed
        .iter()
        .copied()
        .filter(|&(_, want_of_room)| unread || !want_of_room)
        .collect()
}

impl Array {
    /// Computes the right bytes of `extent` of `member` from the other members, and writes the
    /// result there. Returns false if the other members do not suffice.
    fn heal(
        &mut self,
        member: usize,
        extent: Extent,
        media: &mut Media,
    ) -> Result<bool, StoreError> {
        // With gears, the source of a sector may be beside it on the same member, so single sectors
        // are computed.
        let step = match self.layout.gear() {
            Some(_) => Sectors(1),
            None => extent.sectors,
        };
        let mut at = extent.start;
        while at < extent.end() {
            let piece = Extent {
                start: at,
                sectors: step.min(extent.end().since(at)),
            };
            let Some(next) = self.layout.plan_repair(member, piece, &mut self.plan) else {
                return Ok(false);
            };
            assert!(
                next > at,
                "{at} of member {member} is mended again and again"
            );
            self.carry_out(&[], media)?;
            at = next;
        }
        Ok(true)
    }
}
