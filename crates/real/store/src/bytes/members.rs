//! Members fail, are replaced, and are filled again.

use crate::bytes::description::{LossRecord, RebuildRecord, StateRecord};
use crate::bytes::loss::LostData;
use crate::bytes::media::Media;
use crate::bytes::node::{Array, StoreNode};
use crate::bytes::opening::labels;
use crate::bytes::records::Records;
use crate::bytes::redo::RecordingResult;
use crate::bytes::states;
use crate::bytes::{Store, StoreError};
use crate::member_layout::is_worth_recording;
use fullstroke_contract::{Extent, MemberState};
use fullstroke_units::{SECTOR_BYTES, Sectors};

/// Size of a rebuild step: 1 MiB.
const REBUILD_SECTORS: Sectors = Sectors((1 << 20) / SECTOR_BYTES);

/// A member of a volume, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Indices of the member from the top: `0.2`. Empty for a drive without a volume.
    pub member: String,
    /// Name of the drive's file within the store's folder; `None` for a volume.
    pub file: Option<String>,
    /// Capacity in sectors.
    pub sectors: u64,
    /// State of the member.
    pub state: MemberState,
}

impl MemberStatus {
    /// True if the member answers and holds the right data.
    pub fn is_alive(&self) -> bool {
        self.state == MemberState::Alive
    }

    /// True if the member's data is lost, and no other member replaces it.
    pub fn has_failed(&self) -> bool {
        self.state == MemberState::Failed
    }

    /// Number of rebuilt sectors; `None` without a rebuild.
    pub fn filled(&self) -> Option<Sectors> {
        match self.state {
            MemberState::Rebuilding { done } => Some(done),
            MemberState::Alive | MemberState::Failed => None,
        }
    }

    fn words(&self) -> String {
        let state = match self.state {
            MemberState::Alive => "alive",
            MemberState::Failed => "failed",
            MemberState::Rebuilding { .. } => "rebuilding",
        };
        format!("{} {state}", self.member)
    }
}

impl Store {
    /// Returns all members of all volumes, each volume before its members.
    pub fn status(&self) -> Vec<MemberStatus> {
        let records = states::records(&self.root).into_iter();
        let status = records.map(|record| MemberStatus {
            member: record.path,
            file: record.file,
            sectors: record.sectors,
            state: record.state.into(),
        });
        status.collect()
    }

    /// Returns the recorded speed limits of rebuilds.
    pub fn rebuild_speed(&self) -> RebuildRecord {
        let kept = self
            .records
            .as_ref()
            .and_then(|records| records.description().rebuild);
        kept.unwrap_or_default()
    }

    /// Records the speed limits of rebuilds for the next opening of the store.
    ///
    /// # Errors
    /// The host's.
    pub fn keep_rebuild_speed(&mut self, speed: RebuildRecord) -> Result<(), StoreError> {
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        let rebuild = Some(speed).filter(|&speed| speed != RebuildRecord::default());
        let mut description = records.description().clone();
        description.rebuild = rebuild;
        records.replace(description)
    }

    /// Returns the state of the member at `path`: its indices from the top.
    ///
    /// # Errors
    /// If there is no such member.
    pub fn member_state(&mut self, path: &[usize]) -> Result<MemberState, StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        Ok(array.layout.state(member))
    }

    /// Returns the number of sectors to fill in a rebuild of the member at `path`.
    ///
    /// # Errors
    /// If there is no such member.
    pub fn member_used(&mut self, path: &[usize]) -> Result<Sectors, StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        Ok(array.layout.layout().member_used(member))
    }

    /// Fails the member at `path`: no request uses the member from now on, and its data counts as
    /// lost. If its volume does not answer without the member, the volume fails as well, and so on
    /// upwards. If other members are being rebuilt, the call first waits until their new data is
    /// durable. From now on the new data may be the only copy.
    ///
    /// The failed member's own data is made durable too. The member can be
    /// [re-added](Store::re_add_member) while nothing is written.
    ///
    /// # Errors
    /// There is no such member, or the member has failed already. Or the failure could not be
    /// recorded: the member counts as alive then, as before.
    pub fn fail_member(&mut self, path: &[usize]) -> Result<(), StoreError> {
        let sound = self.unsettled.is_empty() && !self.pending && self.losses.is_empty();
        let whole = sound && self.member_state(path)? == MemberState::Alive && {
            let synced = self.sync_job().run();
            self.note_synced(synced).is_ok() && self.unsettled.is_empty()
        };
        self.drop_member(path)?;
        if whole {
            self.missed_nothing.push(path.to_vec());
        }
        Ok(())
    }

    /// Fails the member at `path`, whose data may be wrong.
    pub(crate) fn drop_member(&mut self, path: &[usize]) -> Result<(), StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        if array.layout.state(member) == MemberState::Failed {
            return Err(StoreError::Refused(format!(
                "member `{}` has failed already",
                states::dotted(path)
            )));
        }
        let media = array.members[member].media();
        // A further failure in the calls below must be survived in addition to this one.
        let others = self.dying.len();
        self.dying.extend(&media);
        let dropped = self.drop_media(path, &media);
        self.dying.truncate(others);
        dropped
    }

    fn drop_media(&mut self, path: &[usize], media: &[usize]) -> Result<(), StoreError> {
        self.finish_pending_without(media)?;
        self.settle_all_but(media)?;
        self.record()?;
        self.set_state(path, MemberState::Failed)
    }

    /// True if more members are out of order than the volume survives. The volume refuses changes
    /// then. Empty members are refused unless the loss [is accepted](Store::accept_data_loss).
    pub fn has_failed(&self) -> bool {
        !self.root.answers()
    }

    /// True if data was given up. Lost sectors without a later write are [`Lost`](StoreError::Lost)
    /// to reads.
    pub fn has_lost_data(&self) -> bool {
        !self.losses.is_empty()
    }

    /// True if the volume's members may be filled: the volume answers, or its loss was accepted. An
    /// accepted loss counts only if the members have at least their data of that time.
    fn may_be_filled(&self) -> bool {
        let StoreNode::Volume(array) = &self.root else {
            return true;
        };
        array.layout.answers()
            || self
                .losses
                .last()
                .is_some_and(|loss| loss.covers(array.layout.layout().member_states()))
    }

    /// True if the volume has failed and its loss is not accepted. The volume waits for its
    /// members, or for [`accept_data_loss`](Store::accept_data_loss).
    pub fn awaits_loss(&self) -> bool {
        !self.may_be_filled()
    }

    /// Returns an error if the volume has failed and its data was not given up.
    pub(crate) fn check_loss(&self) -> Result<(), StoreError> {
        if self.may_be_filled() {
            return Ok(());
        }
        let members = self
            .status()
            .into_iter()
            .filter(|member| !member.is_alive());
        let members = members
            .map(|member| member.words())
            .collect::<Vec<_>>()
            .join(", ");
        Err(StoreError::Failed { members })
    }

    /// Accepts the loss of the failed volume's data. From now on empty members can be
    /// [restored](Store::restore_member) and filled with the remaining data. A lost sector stays
    /// lost until the next write.
    ///
    /// # Errors
    /// The volume has not failed, or the loss was accepted already; or the host's.
    pub fn accept_data_loss(&mut self) -> Result<(), StoreError> {
        self.check_changes()?;
        if self.may_be_filled() {
            let why = if self.has_failed() {
                "the data was given up already"
            } else {
                "the member has not failed"
            };
            return Err(StoreError::Refused(format!(
                "the volume has no data to give up: {why}"
            )));
        }
        self.missed_nothing.clear();
        let StoreNode::Volume(array) = &self.root else {
            return Ok(());
        };
        let states = (0..array.members.len()).map(|member| array.layout.state(member).into());
        let states: Vec<StateRecord> = states.collect();
        let kept = self.records.as_ref();
        let kept = kept.map(|records| (records.folder(), records.description().store));
        let loss = LostData::open(self.losses.len(), &states, self.root.capacity(), kept)?;
        if let Some(records) = &mut self.records {
            let mut description = records.description().clone();
            description.losses.push(LossRecord { members: states });
            records.replace(description)?;
        }
        self.losses.push(loss);
        Ok(())
    }

    /// Puts an empty member in the place of the failed one at `path`.
    /// [`rebuild_member`](Store::rebuild_member) fills the empty member. If an inner volume answers
    /// again because of this call, its data is lost too. The volume above then has to fill the
    /// inner one.
    ///
    /// # Errors
    /// There is no such member, the member has not failed, or is a failed volume itself. The volume
    /// [has failed](Store::has_failed) and its data was not given up. Or the medium could not be
    /// emptied, or the change not be recorded: the member counts as failed then, as before.
    pub fn restore_member(&mut self, path: &[usize]) -> Result<(), StoreError> {
        self.check_changes()?;
        self.finish_pending()?;
        self.find_failed(path, "restored")?;
        self.record()?;
        let name = states::dotted(path);
        let (array, member) = self.find_failed(path, "restored")?;
        if !array.members[member].answers() {
            let message =
                format!("member `{name}` is a volume that has failed; restore its members");
            return Err(StoreError::Refused(message));
        }
        self.check_loss()?;
        let (array, member) = states::find(&mut self.root, path)?;
        states::clear(&array.members[member], &mut self.media)?;
        self.missed_nothing.retain(|kept| kept != path);
        self.set_state(
            path,
            MemberState::Rebuilding {
                done: Sectors::ZERO,
            },
        )
    }

    /// Puts the failed member at `path` in its place again, with its bytes. The member is alive at
    /// once. This is possible only after [`fail_member`](Store::fail_member), while nothing was
    /// changed since, and before the store is opened again. A failed volume may have its data again
    /// after this call.
    ///
    /// # Errors
    /// There is no such member, the member has not failed, or its data may be out of date. Or the
    /// change could not be recorded: the member counts as failed then, as before.
    pub fn re_add_member(&mut self, path: &[usize]) -> Result<(), StoreError> {
        self.check_changes()?;
        self.finish_pending()?;
        let name = states::dotted(path);
        let (array, _) = self.find_failed(path, "re-added")?;
        // An inner volume that answers again is emptied, and the volume above fills it. So the
        // member's bytes are of no use there.
        let inner_has_failed = path.len() > 1 && !array.layout.answers();
        if inner_has_failed || !self.missed_nothing.iter().any(|kept| kept == path) {
            return Err(StoreError::Refused(format!(
                "member `{name}` cannot be re-added: its data is known to be correct only if nothing was written since it was made to fail, its volume continues, and the server was not restarted; restore it as an empty member"
            )));
        }
        self.missed_nothing.retain(|kept| kept != path);
        self.set_state(path, MemberState::Alive)?;
        if let Some(records) = &mut self.records {
            let mut description = records.description().clone();
            for record in description
                .members
                .iter_mut()
                .filter(|record| record.path == name)
            {
                record.state = StateRecord::Alive;
            }
            description.events += 1;
            // A medium that has no room for its label is found out of date when the store is opened
            // again.
            let _ = self.media.write_labels(labels(&description));
            records.replace(description)?;
        }
        self.drop_unlabelled()?;
        self.choose_journalling()
    }

    /// Rebuilds the member at `path` at least up to the sector `upto`. Returns the number of filled
    /// sectors. A completely filled member is alive. Nothing is done if the member is filled so far
    /// already.
    ///
    /// # Errors
    /// There is no such member, or the member is not being rebuilt. The volume [has
    /// failed](Store::has_failed), so there is no source to fill from, and its data was not given
    /// up. Or the host's: the member's state tells the progress then.
    pub fn rebuild_member(&mut self, path: &[usize], upto: Sectors) -> Result<Sectors, StoreError> {
        self.check_changes()?;
        self.finish_pending()?;
        let (array, member) = states::find(&mut self.root, path)?;
        let end = array.layout.layout().member_used(member);
        let mut done = match array.layout.state(member) {
            MemberState::Rebuilding { done } => done,
            MemberState::Alive => return Ok(end),
            MemberState::Failed => {
                let message = format!(
                    "member `{}` has failed; restore it first",
                    states::dotted(path)
                );
                return Err(StoreError::Refused(message));
            }
        };
        self.check_loss()?;
        let had_failed = self.has_failed();
        while done < upto.min(end) {
            let most = REBUILD_SECTORS.min(Sectors(upto.0 - done.0));
            done = self.rebuild_part(path, done, most)?;
        }
        assert!(done <= end, "a member of {end} is filled up to {done}");
        if done >= end {
            self.set_state(path, MemberState::Alive)?;
        }
        if had_failed && !self.has_failed() {
            // Changes are accepted again from now on. After a kill, the opening must find the
            // members as they are now.
            self.record()?;
        }
        Ok(done)
    }

    fn rebuild_part(
        &mut self,
        path: &[usize],
        done: Sectors,
        most: Sectors,
    ) -> Result<Sectors, StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        // A crash in the middle of a rebuild step must not leave the inner volume with parity that
        // does not match, so the step goes through the journal.
        let at_once = matches!(array.members[member], StoreNode::Volume(_)) && self.has_redo();
        let mut next = done;
        let filled = self.attempt(None, |store| {
            // The attempt before may have mended a read by failing a member that this one needs.
            store.check_loss()?;
            let mut fill = |root: &mut StoreNode, media: &mut Media| {
                let (array, member) = states::find(root, path)?;
                if array.layout.state(member) == MemberState::Failed {
                    let message = format!(
                        "member `{}` failed while it was filled",
                        states::dotted(path)
                    );
                    return Err(StoreError::Refused(message));
                }
                next = array.layout.plan_fill(member, done, most, &mut array.plan);
                array.fill(media)
            };
            if !at_once {
                return fill(&mut store.root, &mut store.media);
            }
            match store.change_at_once(&mut fill)? {
                RecordingResult::TooLong => Err(store.too_long(Extent::new(done.0, most.0))),
                _ => Ok(()),
            }
        });
        let done = if filled.is_ok() { next } else { done };
        let (array, member) = states::find(&mut self.root, path)?;
        if array.layout.state(member) != MemberState::Failed {
            array
                .layout
                .set_state(member, MemberState::Rebuilding { done });
        }
        filled.map(|()| done)
    }

    /// Returns the failed member at `path`. `done` names the operation in the error for a live
    /// member.
    fn find_failed(
        &mut self,
        path: &[usize],
        done: &str,
    ) -> Result<(&mut Array, usize), StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        if array.layout.state(member) == MemberState::Failed {
            return Ok((array, member));
        }
        let name = states::dotted(path);
        Err(StoreError::Refused(format!(
            "member `{name}` has not failed; only a failed member can be {done}"
        )))
    }

    fn has_redo(&self) -> bool {
        let redo = self.records.as_ref().and_then(Records::redo);
        redo.is_some()
    }

    /// Sets a member's state, and the dependent states of volumes. A worse state is recorded at
    /// once, because a member must never count as complete after a missed write. A better state is
    /// recorded when the data behind it is durable.
    fn set_state(&mut self, path: &[usize], state: MemberState) -> Result<(), StoreError> {
        let before = self.states();
        let result = self.try_to_set_state(path, state, &before);
        if result.is_err() {
            states::set_all(&mut self.root, &mut before.into_iter());
        }
        result.and(self.drop_unlabelled())
    }

    /// Fails the media whose flush failed during labelling.
    pub(crate) fn drop_unlabelled(&mut self) -> Result<(), StoreError> {
        let mut result = Ok(());
        for (medium, error) in self.media.take_failed_syncs() {
            result = result.and(self.drop_or_stop(medium, error));
        }
        result
    }

    fn try_to_set_state(
        &mut self,
        path: &[usize],
        state: MemberState,
        before: &[MemberState],
    ) -> Result<(), StoreError> {
        let StoreNode::Volume(root) = &mut self.root else {
            return Ok(());
        };
        states::set(root, path, state, &mut self.media)?;
        self.state_changes += 1;
        // Records in the journal, whose changes are durable by now, may name a member that is empty
        // from now on. A replay would write old data to the empty member.
        if state != MemberState::Alive
            && let Some(redo) = self.records.as_mut().and_then(Records::redo_mut)
        {
            redo.restart(self.media.epoch)?;
        }
        self.record_worse(before)?;
        self.choose_journalling()
    }

    /// Returns the states of all members, in the order of their records.
    pub(crate) fn states(&self) -> Vec<MemberState> {
        states::records(&self.root)
            .into_iter()
            .map(|record| record.state.into())
            .collect()
    }

    fn record_worse(&mut self, before: &[MemberState]) -> Result<(), StoreError> {
        let after = self.states();
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        let mut description = records.description().clone();
        let mut emptied: Option<String> = None;
        for ((record, &before), &after) in description.members.iter_mut().zip(before).zip(&after) {
            let empty = MemberState::Rebuilding {
                done: Sectors::ZERO,
            };
            // A member below an emptied one has nothing that must become durable first, so its
            // state is recorded at once too.
            let within = emptied
                .as_ref()
                .is_some_and(|above| record.path.starts_with(above));
            if within || before != after && (after == MemberState::Failed || after == empty) {
                record.state = after.into();
            }
            if before != after && after == empty {
                emptied = Some(format!("{}.", record.path));
            }
        }
        if description != *records.description() {
            // All members that remain part of the store get the new count in their labels. A member
            // that is out of date is recognised by its lower count.
            description.events += 1;
            // A medium that has no room for its label is found out of date when the store is opened
            // again.
            let _ = self.media.write_labels(labels(&description));
        }
        records.replace(description)
    }

    /// Makes data durable before a member's state changes, and records the progress of rebuilds.
    /// The dying media are left out.
    ///
    /// If the store has a journal, all data is made durable. One reason: a loss of power may not
    /// tear a row after the loss of a member. The other: the journal's records are given up.
    fn record(&mut self) -> Result<(), StoreError> {
        let lags = self.records_lag();
        if lags || self.has_redo() {
            let synced = self.sync_job_without(&self.dying.clone()).run();
            self.note_synced(synced)?;
        }
        if lags {
            let states = self.states();
            self.record_better(&states, true)?;
        }
        Ok(())
    }

    /// True if rebuilds have filled more than is recorded.
    pub(crate) fn records_lag(&self) -> bool {
        let Some(records) = &self.records else {
            return false;
        };
        !records
            .description()
            .members
            .iter()
            .map(|member| MemberState::from(member.state))
            .eq(self.states())
    }

    /// Records the progress of rebuilds from `states`, whose data is durable. Unless `all` is set,
    /// progress is recorded only in steps.
    pub(crate) fn record_better(
        &mut self,
        states: &[MemberState],
        all: bool,
    ) -> Result<(), StoreError> {
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        let mut description = records.description().clone();
        for (record, &state) in description.members.iter_mut().zip(states) {
            let StateRecord::Rebuilding { done_sectors } = record.state else {
                continue;
            };
            let worth = match state {
                MemberState::Alive => true,
                MemberState::Rebuilding { done } => {
                    all || is_worth_recording(done_sectors, done.0, record.sectors)
                }
                MemberState::Failed => false,
            };
            if worth {
                record.state = state.into();
            }
        }
        records.replace(description)?;
        self.choose_journalling()
    }

    /// Uses the journal for all changes, or while a parity volume lacks a member, or would lack one
    /// if the store were opened again.
    pub(crate) fn choose_journalling(&mut self) -> Result<(), StoreError> {
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        if records.redo().is_none() {
            return Ok(());
        }
        // A pending change is only in the journal, so the journal may not be given up yet.
        let needed = self.pending || states::is_journalled(&self.root, records.description());
        if self.journalled
            && !needed
            && let Some(redo) = records.redo_mut()
        {
            // With all members, the opening computes redundancy from the data in all marked
            // regions. The records are not needed any more.
            redo.restart(self.media.epoch)?;
        }
        self.journalled = needed;
        Ok(())
    }
}
