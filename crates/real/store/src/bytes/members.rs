//! Members fail, are replaced, and are filled again.

use crate::bytes::array::Array;
use crate::bytes::description::{LossRecord, RebuildRecord, StateRecord};
use crate::bytes::loss::Loss;
use crate::bytes::media::Media;
use crate::bytes::node::Node;
use crate::bytes::opening::labels;
use crate::bytes::records::Records;
use crate::bytes::redo::Recorded;
use crate::bytes::states;
use crate::bytes::{Store, StoreError};
use fullstroke_contract::{Extent, MemberState};
use fullstroke_units::{SECTOR_BYTES, Sectors};

/// What a rebuild fills at once.
const REBUILD_SECTORS: Sectors = Sectors((1 << 20) / SECTOR_BYTES);

/// A member of a volume, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its indices from the top: `0.2`. Empty for a drive without a volume.
    pub member: String,
    /// The file that holds its bytes, within the store's folder, if it is a
    /// drive.
    pub file: Option<String>,
    /// Its capacity.
    pub sectors: u64,
    /// Its state.
    pub state: MemberState,
}

impl MemberStatus {
    /// Whether it answers, and holds what it should.
    pub fn is_alive(&self) -> bool {
        self.state == MemberState::Alive
    }

    /// Whether what it held is lost, and nothing stands in its place.
    pub fn has_failed(&self) -> bool {
        self.state == MemberState::Failed
    }

    /// How far it is filled, if it is being filled.
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
    /// All members of all volumes, each volume before its members.
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

    /// How fast members are filled, as it was kept.
    pub fn rebuild_speed(&self) -> RebuildRecord {
        let kept = self
            .records
            .as_ref()
            .and_then(|records| records.description().rebuild);
        kept.unwrap_or_default()
    }

    /// Keeps how fast members are filled, for whoever opens the store next.
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

    /// The state of the member at `path`: its indices from the top.
    ///
    /// # Errors
    /// If there is no such member.
    pub fn member_state(&mut self, path: &[usize]) -> Result<MemberState, StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        Ok(array.layout.member_state(member))
    }

    /// How far the member at `path` is filled when it is.
    ///
    /// # Errors
    /// If there is no such member.
    pub fn member_used(&mut self, path: &[usize]) -> Result<Sectors, StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        Ok(array.layout.member_used(member))
    }

    /// From now on, nothing is asked of the member at `path`, and what it held
    /// is lost. If its volume answers no longer without it, that has failed as
    /// well, and so on upwards. Waits until what other members were filled with
    /// is durable, if any were: from now on it may be all that there is.
    ///
    /// What it holds is made durable, so that it can be
    /// [re-added](Store::re_add_member) while nothing is written.
    ///
    /// # Errors
    /// There is no such member, or it has failed already; or the failure could
    /// not be recorded: the member counts as alive then, as before.
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

    /// The member at `path` fails, and what it holds may be wrong.
    pub(crate) fn drop_member(&mut self, path: &[usize]) -> Result<(), StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        if array.layout.member_state(member) == MemberState::Failed {
            return Err(StoreError::Refused(format!(
                "member `{}` has failed already",
                states::dotted(path)
            )));
        }
        let media = array.members[member].media();
        // What fails on the way must be survived besides.
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

    /// Whether more members are out of order than the volume survives. It takes
    /// no changes then, and no empty member unless the loss
    /// [is accepted](Store::accept_data_loss).
    pub fn has_failed(&self) -> bool {
        !self.root.answers()
    }

    /// Whether data was given up. What of it was not written since is
    /// [`Lost`](StoreError::Lost) to reads.
    pub fn has_lost_data(&self) -> bool {
        !self.losses.is_empty()
    }

    /// Whether the volume's members may be filled although it has failed:
    /// because the loss of what they held, as far as they are filled now, was
    /// accepted.
    fn may_be_filled(&self) -> bool {
        let Node::Volume(array) = &self.root else {
            return true;
        };
        array.layout.answers()
            || self
                .losses
                .last()
                .is_some_and(|loss| loss.covers(array.layout.member_states()))
    }

    /// Whether the volume has failed, and waits for its members or for somebody
    /// to say that the data they held [may be lost](Store::accept_data_loss).
    pub fn awaits_loss(&self) -> bool {
        !self.may_be_filled()
    }

    /// An error if the volume has failed and its data was not given up.
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

    /// Somebody says that what the failed volume has lost may be lost: from now
    /// on empty members can be [restored](Store::restore_member) and filled as
    /// far as there is something to fill them from. What is lost stays so until
    /// it is written.
    ///
    /// # Errors
    /// The volume has not failed, or it was said already; or the host's.
    pub fn accept_data_loss(&mut self) -> Result<(), StoreError> {
        self.check_changes()?;
        if self.may_be_filled() {
            let why = if self.has_failed() {
                "its data was given up already"
            } else {
                "it has not failed"
            };
            return Err(StoreError::Refused(format!(
                "the volume has nothing to give up: {why}"
            )));
        }
        self.missed_nothing.clear();
        let Node::Volume(array) = &self.root else {
            return Ok(());
        };
        let states =
            (0..array.members.len()).map(|member| array.layout.member_state(member).into());
        let states: Vec<StateRecord> = states.collect();
        let kept = self.records.as_ref();
        let kept = kept.map(|records| (records.folder(), records.description().store));
        let loss = Loss::open(self.losses.len(), &states, self.root.capacity(), kept)?;
        if let Some(records) = &mut self.records {
            let mut description = records.description().clone();
            description.losses.push(LossRecord { members: states });
            records.replace(description)?;
        }
        self.losses.push(loss);
        Ok(())
    }

    /// An empty member stands in the place of the failed one at `path`;
    /// [`rebuild_member`](Store::rebuild_member) fills it. If its volume answers
    /// again thereby, that is empty too, and is to be filled by the one above.
    ///
    /// # Errors
    /// There is no such member, it has not failed, or it is a volume that has
    /// failed itself; the volume [has failed](Store::has_failed) and its data was
    /// not given up; or its medium could not be emptied, or the change not be
    /// recorded: the member counts as failed then, as before.
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

    /// The failed member at `path` stands in its place again, with its bytes: it
    /// is alive at once. That is so only while nothing was changed since somebody
    /// let it [fail](Store::fail_member), and not after the store was opened
    /// again. A volume that has failed may have its data again thereby.
    ///
    /// # Errors
    /// There is no such member, it has not failed, or what it holds is not known
    /// to be what it should; or the change could not be recorded: the member
    /// counts as failed then, as before.
    pub fn re_add_member(&mut self, path: &[usize]) -> Result<(), StoreError> {
        self.check_changes()?;
        self.finish_pending()?;
        let name = states::dotted(path);
        let (array, _) = self.find_failed(path, "re-added")?;
        // An inner volume that comes back is emptied and filled by the one above.
        let inner_has_failed = path.len() > 1 && !array.layout.answers();
        if inner_has_failed || !self.missed_nothing.iter().any(|kept| kept == path) {
            return Err(StoreError::Refused(format!(
                "member `{name}` cannot be re-added: what it holds is known to be right only while nothing was \
                 written since it was made to fail, its volume goes on, and the server was not started again; \
                 restore it as an empty one"
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
            // A medium that has no room for its label is found out of date when the store is opened again.
            let _ = self.media.write_labels(labels(&description));
            records.replace(description)?;
        }
        self.drop_unlabelled()?;
        self.choose_journalling()
    }

    /// Fills the member at `path`, which is being rebuilt, from where it is at
    /// least up to the sector `upto`; at its end it is alive. Answers how far
    /// it is filled. Does nothing if it is filled so far already.
    ///
    /// # Errors
    /// There is no such member, or it is not being rebuilt; the volume
    /// [has failed](Store::has_failed), so that nothing is left to fill it from,
    /// and its data was not given up; or the host's: the member is filled as far as its state says then.
    pub fn rebuild_member(&mut self, path: &[usize], upto: Sectors) -> Result<Sectors, StoreError> {
        self.check_changes()?;
        self.finish_pending()?;
        let (array, member) = states::find(&mut self.root, path)?;
        let end = array.layout.member_used(member);
        let mut done = match array.layout.member_state(member) {
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
        if done >= end {
            self.set_state(path, MemberState::Alive)?;
        }
        if had_failed && !self.has_failed() {
            // Changes are taken again from now on, and must find the members
            // as they are now after a kill.
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
        // A volume that is filled must keep its own parity sound.
        let at_once = matches!(array.members[member], Node::Volume(_)) && self.has_redo();
        let mut next = done;
        let filled = self.attempt(None, |store| {
            // What was mended may have cost a member that it needs.
            store.check_loss()?;
            let mut fill = |root: &mut Node, media: &mut Media| {
                let (array, member) = states::find(root, path)?;
                if array.layout.member_state(member) == MemberState::Failed {
                    let message = format!(
                        "member `{}` failed while it was filled",
                        states::dotted(path)
                    );
                    return Err(StoreError::Refused(message));
                }
                next = array
                    .layout
                    .plan_rebuild(&[member], done, most, &mut array.plan);
                array.fill(media)
            };
            if !at_once {
                return fill(&mut store.root, &mut store.media);
            }
            match store.change_at_once(&mut fill)? {
                Recorded::TooLong => Err(store.too_long(Extent::new(done.0, most.0))),
                _ => Ok(()),
            }
        });
        let done = if filled.is_ok() { next } else { done };
        let (array, member) = states::find(&mut self.root, path)?;
        if array.layout.member_state(member) != MemberState::Failed {
            array
                .layout
                .set_member_state(member, MemberState::Rebuilding { done });
        }
        filled.map(|()| done)
    }

    /// The member at `path`, which must have failed to be what `done` says.
    fn find_failed(
        &mut self,
        path: &[usize],
        done: &str,
    ) -> Result<(&mut Array, usize), StoreError> {
        let (array, member) = states::find(&mut self.root, path)?;
        if array.layout.member_state(member) == MemberState::Failed {
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

    /// Sets a state with all that follows from it, and records what became
    /// worse at once: a member that missed a write must never be taken for one
    /// that did not. What became better is recorded when it is durable.
    fn set_state(&mut self, path: &[usize], state: MemberState) -> Result<(), StoreError> {
        let before = self.states();
        let result = self.try_to_set_state(path, state, &before);
        if result.is_err() {
            states::set_all(&mut self.root, &mut before.into_iter());
        }
        result.and(self.drop_unlabelled())
    }

    /// The media fail that the host failed to make durable when they were labelled.
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
        let Node::Volume(root) = &mut self.root else {
            return Ok(());
        };
        states::set(root, path, state, &mut self.media)?;
        self.state_changes += 1;
        // Records, which were carried out and are durable, may name a member that is empty by
        // now.
        if state != MemberState::Alive
            && let Some(redo) = self.records.as_mut().and_then(Records::redo_mut)
        {
            redo.restart(self.media.epoch)?;
        }
        self.record_worse(before)?;
        self.choose_journalling()
    }

    /// The states of all members, in the order of their records.
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
            // Nothing of what lies below an empty member has to become durable
            // first.
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
            // Whoever is part of the store from now on knows, and who is not can
            // be told by that.
            description.events += 1;
            // A medium that has no room for its label is found out of date when the store is opened again.
            let _ = self.media.write_labels(labels(&description));
        }
        records.replace(description)
    }

    /// Makes durable what is to be before a member's state changes, and records how far members
    /// are filled; the media that are dying need not take part any more.
    ///
    /// Where there is parity, all is made durable: what a row that lacks a member held before must
    /// not be torn by a loss of power, and the records of the journal are given up.
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

    /// Whether members are filled further than is recorded.
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

    /// Records how far members are filled by `states`, which are durable.
    /// Progress alone is not worth a write each time, unless all of it counts.
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
                    all || done.0 - done_sectors >= record.sectors / 64
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

    /// Journals while a parity volume lacks a member, or would if the store
    /// were opened again.
    pub(crate) fn choose_journalling(&mut self) -> Result<(), StoreError> {
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        if records.redo().is_none() {
            return Ok(());
        }
        // What was written down must not be forgotten before it is made.
        let description = records.description();
        let needed = self.pending
            || !description.low_gear.is_empty()
            || states::any_degraded_parity(&self.root, &mut description.members.iter());
        if self.journalled
            && !needed
            && let Some(redo) = records.redo_mut()
        {
            // With all members, redundancy follows from the data in all marked regions.
            redo.restart(self.media.epoch)?;
        }
        self.journalled = needed;
        Ok(())
    }
}
