//! States of the members, and progress of rebuilds.

use fullstroke_contract::{ConfigError, Extent, MemberState, Operation};
use fullstroke_units::Sectors;

/// The states of a layout's members. With this record, members can fail and be filled again while
/// the layout is in use.
#[derive(Clone, Debug)]
pub struct MemberStates {
    states: Vec<MemberState>,
    /// See [`readable`](MemberStates::readable).
    readable: Vec<u64>,
    /// See [`writable`](MemberStates::writable).
    writable: Vec<u64>,
    /// The failed members, ascending.
    failed: Vec<u32>,
    /// The members that are not alive, ascending.
    impaired: Vec<u32>,
}

impl MemberStates {
    /// Returns the states of `members` members, all alive.
    pub fn alive(members: usize) -> MemberStates {
        MemberStates {
            states: vec![MemberState::Alive; members],
            readable: vec![u64::MAX; members],
            writable: vec![u64::MAX; members],
            failed: Vec::with_capacity(members),
            impaired: Vec::with_capacity(members),
        }
    }

    /// Returns states with the members of `list` failed. Each entry must be one of `members` and
    /// must appear once.
    pub(crate) fn with_failed(list: &[u32], members: usize) -> Result<MemberStates, ConfigError> {
        let mut states = MemberStates::alive(members);
        for &member in list {
            match states.states.get(member as usize) {
                None => return Err(no_such_member(member, members)),
                Some(MemberState::Alive) => states.set(member as usize, MemberState::Failed),
                Some(_) => {
                    let message =
                        format!("member {member} is listed twice; list each failed member once");
                    return Err(ConfigError::new("failed", message));
                }
            }
        }
        Ok(states)
    }

    /// Same as `with_failed`, but returns an error if more than `most` members have failed.
    pub(crate) fn with_failed_at_most(
        list: &[u32],
        members: usize,
        most: usize,
    ) -> Result<MemberStates, ConfigError> {
        let states = MemberStates::with_failed(list, members)?;
        if states.failed.len() <= most {
            return Ok(states);
        }
        let message = format!(
            "{} of {members} members have failed, but the data survives only {most}; list at most {most}",
            states.failed.len()
        );
        Err(ConfigError::new("failed", message))
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.states.len()
    }

    /// Returns the state of `member`.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn get(&self, member: usize) -> MemberState {
        self.states[member]
    }

    /// Changes the state of `member`.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn set(&mut self, member: usize, state: MemberState) {
        self.states[member] = state;
        debug_assert!(
            self.failed.len() <= self.impaired.len(),
            "a member that has failed is not whole: {self:?}"
        );
        self.readable[member] = readable(state);
        // A new state also cancels the fills of earlier plans; see `Layout::plan_rebuild`.
        self.writable[member] = readable(state);
        put(&mut self.failed, member, state == MemberState::Failed);
        put(&mut self.impaired, member, state != MemberState::Alive);
    }

    /// Returns the failed members, ascending.
    pub fn failed(&self) -> &[u32] {
        &self.failed
    }

    /// Returns the members that are not alive, ascending: failed members and members under rebuild.
    pub fn impaired(&self) -> &[u32] {
        &self.impaired
    }

    /// True if `member` has failed.
    #[inline]
    pub(crate) fn has_failed(&self, member: usize) -> bool {
        self.states[member] == MemberState::Failed
    }

    /// Returns the end of the valid addresses of `member`. All addresses below hold valid data and
    /// can be read at any time.
    #[inline]
    pub(crate) fn readable(&self, member: usize) -> u64 {
        self.readable[member]
    }

    /// Returns the end of the valid addresses of `member` for a new request with reserved rows.
    /// Addresses in a running rebuild plan count as well: by the time the new request gets its
    /// rows, the running plan has filled them.
    #[inline]
    pub(crate) fn writable(&self, member: usize) -> u64 {
        self.writable[member]
    }

    /// True if `member` is being filled and the fill has not reached `end`.
    #[inline]
    pub(crate) fn is_being_filled(&self, member: usize, end: u64) -> bool {
        matches!(self.states[member], MemberState::Rebuilding { done } if end > done.0)
    }

    /// Marks the addresses of `member` below `end` as about to be filled. `member` is being
    /// rebuilt, and its rebuild plan has reserved the rows.
    pub(crate) fn fill(&mut self, member: usize, end: u64) {
        debug_assert!(
            !self.has_failed(member) && self.readable[member] <= self.writable[member],
            "member {member} is about to be filled up to {end}: {:?}",
            self.states[member]
        );
        self.writable[member] = self.writable[member].max(end);
    }

    /// True if `member` can serve the I/O: the member has not failed and, for a read, the sectors
    /// have been filled.
    pub(crate) fn can_serve(&self, member: usize, operation: Operation, extent: Extent) -> bool {
        match operation {
            // A plan with reserved rows may read sectors that a running plan fills.
            Operation::Read => extent.within(Sectors(self.writable(member))),
            _ => !self.has_failed(member),
        }
    }
}

/// Returns the end of the readable addresses of a member in this state.
fn readable(state: MemberState) -> u64 {
    match state {
        MemberState::Alive => u64::MAX,
        MemberState::Failed => 0,
        MemberState::Rebuilding { done } => done.0,
    }
}

/// Inserts `member` into the ascending `list`, or removes it.
fn put(list: &mut Vec<u32>, member: usize, belongs: bool) {
    let member = member as u32;
    match (list.binary_search(&member), belongs) {
        (Err(place), true) => list.insert(place, member),
        (Ok(place), false) => {
            list.remove(place);
        }
        _ => {}
    }
}

fn no_such_member(member: u32, members: usize) -> ConfigError {
    let message = format!(
        "there is no member {member}: the {members} members are counted from 0 to {}",
        members - 1
    );
    ConfigError::new("failed", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_members_exist_are_listed_once_and_few_enough() {
        assert_eq!(
            MemberStates::with_failed_at_most(&[3, 1], 4, 2)
                .unwrap()
                .failed(),
            [1, 3]
        );
        for (list, said) in [
            (&[4][..], "no member 4"),
            (&[1, 1], "twice"),
            (&[0, 1, 2], "survives only 2"),
        ] {
            let error = MemberStates::with_failed_at_most(list, 4, 2).unwrap_err();
            assert_eq!(error.key, "failed");
            assert!(error.message.contains(said), "{error}");
        }
    }

    #[test]
    fn a_member_that_is_being_filled_is_impaired_but_has_not_failed() {
        let mut states = MemberStates::alive(3);
        states.set(1, MemberState::Failed);
        assert_eq!((states.failed(), states.impaired()), (&[1][..], &[1][..]));
        states.set(1, MemberState::Rebuilding { done: Sectors(8) });
        assert_eq!((states.failed(), states.impaired()), (&[][..], &[1][..]));
        states.set(1, MemberState::Alive);
        assert_eq!((states.failed(), states.impaired()), (&[][..], &[][..]));
    }

    #[test]
    fn what_is_being_filled_counts_for_writes_and_not_for_reads() {
        let mut states = MemberStates::alive(1);
        states.set(0, MemberState::Rebuilding { done: Sectors(8) });
        states.fill(0, 16);
        assert_eq!((states.readable(0), states.writable(0)), (8, 16));
        states.set(0, MemberState::Rebuilding { done: Sectors(8) });
        assert_eq!(
            (states.readable(0), states.writable(0)),
            (8, 8),
            "a plan given up fills nothing"
        );
    }
}
