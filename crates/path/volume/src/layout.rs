//! The interface of a layout: an address map, and a plan for each request.

use crate::gears::Gears;
use crate::like::Like;
use crate::md::Setup as MdSetup;
use crate::members::PAGE;
use crate::{Geometry, MemberStates, Plan};
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    ConfigError, Extent, Gear, LayersBelow, MemberState, Operation, Request, RequestStatus,
};
use fullstroke_units::{Lbn, Sectors};
use std::ops::Range;

/// Builds a layout from its keys in a stack file and the capacities of its members, in order. An
/// error names the key to change; the key is `members` if the members do not suit the layout.
pub type BuildLayout = fn(&Keys, &[Sectors]) -> Result<Box<dyn Layout>, ConfigError>;

/// A sector of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Index among the members.
    pub member: usize,
    /// Address on the member.
    pub lbn: Lbn,
}

/// Purpose of one sector of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The volume's sector, or the first copy of it.
    Data(Lbn),
    /// A further copy of a volume's sector.
    Copy {
        /// The volume's sector.
        of: Lbn,
        /// Number of the copy: 1 is the second copy.
        copy: u32,
    },
    /// P: the exclusive or of a row's data.
    Parity {
        /// The row of chunks.
        row: u64,
        /// Sectors from the beginning of the chunk.
        offset: Sectors,
    },
    /// Q: the Reed-Solomon sum of a row's data.
    SecondParity {
        /// The row of chunks.
        row: u64,
        /// Sectors from the beginning of the chunk.
        offset: Sectors,
    },
    /// No purpose: the layout does not use the sector.
    Unused,
}

/// Maps the addresses of a volume to its members, and plans the member I/O of each request.
///
/// - **Getters**: all methods except the following.
/// - **Address map**: [`locate`](Layout::locate) and its inverse [`role_of`](Layout::role_of)
///   together are one-to-one and onto.
/// - **Member states**: members fail, are replaced and are filled again while the layout is in use.
///   The method [`set_member_state`](Layout::set_member_state) changes a state. A layout keeps the
///   states in [`MemberStates`].
/// - **Plans**: callers use [`plan`](Layout::plan). A layout implements
///   [`plan_transfer`](Layout::plan_transfer) and, if the layout has redundancy,
///   [`plan_rebuild`](Layout::plan_rebuild).
///
/// # Failing and filling
/// A plan made after a change of state uses the new state at once. To fill a new member, the caller
/// sets its state to `Rebuilding` from 0. Then the caller repeats two steps: carry out the next
/// plan of [`plan_rebuild`](Layout::plan_rebuild), and report the progress with `set_member_state`.
/// At the end the caller reports the member alive:
///
/// ```text
/// done = 0
/// while done < member_used(member):
///     set_member_state(member, Rebuilding { done })
///     done = plan_rebuild([member], done, most, plan)
///     carry out plan
/// set_member_state(member, Alive)
/// ```
///
/// Members at the same sector of their rebuilds can be filled together, as long as the layout
/// answers.
///
/// Requests may be planned between any two of these steps. Plans of the rebuild and plans of
/// requests stay apart by their reserved rows. Plans must get their rows in the order of planning.
/// With one plan at a time, a caller needs no rows.
pub trait Layout: Send {
    /// Returns the layout's name in a stack file.
    fn name(&self) -> &'static str;

    /// Returns the number of sectors of the volume: addresses `0..capacity`.
    fn capacity(&self) -> Sectors;

    /// Returns the number of members, failed members included.
    fn members(&self) -> usize {
        self.member_states().members()
    }

    /// Returns the whole capacity of `member`.
    ///
    /// # Panics
    /// If there is no such member.
    fn member_capacity(&self, member: usize) -> Sectors;

    /// Returns the number of sectors of `member` with data, copies or parity.
    ///
    /// # Panics
    /// If there is no such member.
    fn member_used(&self, member: usize) -> Sectors;

    /// Returns the pattern in which the volume's addresses change members.
    fn geometry(&self) -> Geometry;

    /// Returns the number of unused sectors of all members, for example the sectors after the last
    /// whole chunk of the smallest member.
    fn unused(&self) -> Sectors {
        (0..self.members())
            .map(|member| self.member_capacity(member) - self.member_used(member))
            .fold(Sectors::ZERO, |sum, rest| sum + rest)
    }

    /// Returns the number of arbitrary members that a whole array may lose without loss of data.
    /// Earlier failures do not reduce the number.
    fn failures_survived(&self) -> u32;

    /// Returns the states of all members.
    fn member_states(&self) -> &MemberStates;

    /// Returns the states of all members for a change. A layout derives everything else from these
    /// states; no other field has to change.
    fn member_states_mut(&mut self) -> &mut MemberStates;

    /// Returns the failed members, ascending. Members under rebuild do not count as failed.
    fn failed(&self) -> &[u32] {
        self.member_states().failed()
    }

    /// Returns the members that get no operation of whole members, ascending. These are the failed
    /// members and the members that [gears](Layout::gears) have stopped: a flush would spin up a
    /// stopped member.
    fn left_out(&self) -> &[u32] {
        self.failed()
    }

    /// Returns the settings of md's stripes, if md runs the array.
    fn md(&self) -> Option<MdSetup> {
        None
    }

    /// Returns the implementation that the layout stands for.
    fn like(&self) -> Like {
        match self.md() {
            Some(_) => Like::Md,
            None => Like::Ideal,
        }
    }

    /// Takes note that an I/O of `member` has ended at `end`. Layouts with copies may choose by the
    /// places of earlier I/Os.
    fn io_ended(&mut self, _member: usize, _operation: Operation, _end: Lbn) {}

    /// Returns the present gear, if the layout has [gears](Layout::gears).
    fn present_gear(&self) -> Option<Gear> {
        None
    }

    /// Returns the gears, if members of the layout stop under a low load.
    fn gears(&mut self) -> Option<&mut dyn Gears> {
        None
    }

    /// Returns the state of `member`.
    ///
    /// # Panics
    /// If there is no such member.
    fn member_state(&self, member: usize) -> MemberState {
        self.member_states().get(member)
    }

    /// Changes the state of `member` for all following plans. Every combination of states is
    /// allowed. With more failures than the layout survives, the layout no longer
    /// [answers](Layout::answers).
    ///
    /// # Panics
    /// If there is no such member.
    fn set_member_state(&mut self, member: usize, state: MemberState) {
        self.member_states_mut().set(member, state);
    }

    /// True if the data of every address is still available.
    fn answers(&self) -> bool {
        self.member_states().impaired().len() <= self.failures_survived() as usize
    }

    /// Returns the place of the first copy of a volume's sector.
    ///
    /// # Panics
    /// If `lbn` is not below the capacity.
    fn locate(&self, lbn: Lbn) -> Location;

    /// Returns the purpose of the sector `lbn` of `member`.
    ///
    /// # Panics
    /// If there is no such member, or `lbn` is not below its capacity.
    fn role_of(&self, member: usize, lbn: Lbn) -> Role;

    /// Maps addresses of `member` to addresses of the volume. Calls `owner` with each run of volume
    /// addresses in the extent, in the order of the member's addresses. Parity, unused sectors and
    /// sectors beyond the end belong to no volume address. The cost is a logarithm for each run.
    ///
    /// # Panics
    /// If there is no such member.
    fn owners(&self, member: usize, extent: Extent, owner: &mut dyn FnMut(Extent)) {
        let end = extent.end().0.min(self.member_used(member).0);
        let mut lbn = extent.start.0;
        // The latest run is reported late, because a copy may continue where data ended.
        let mut owned = Extent::default();
        while lbn < end {
            let run = run_of(|lbn| self.role_of(member, Lbn(lbn)), lbn, end);
            let next = match self.role_of(member, Lbn(lbn)) {
                Role::Data(of) | Role::Copy { of, .. } => Extent {
                    start: of,
                    sectors: Sectors(run),
                },
                _ => Extent::default(),
            };
            if owned.sectors > Sectors::ZERO
                && owned.end() == next.start
                && next.sectors > Sectors::ZERO
            {
                owned.sectors += next.sectors;
            } else {
                if owned.sectors > Sectors::ZERO {
                    owner(owned);
                }
                owned = next;
            }
            lbn += run;
        }
        if owned.sectors > Sectors::ZERO {
            owner(owned);
        }
    }

    /// Writes the member I/O of a read, write or discard into the empty `plan`. The extent is
    /// within the capacity and not empty. Returns [`RequestStatus::Lost`] if an addressed sector
    /// has no copy left; the contents of the plan are then undefined. A layout without redundancy
    /// need not check: [`plan`](Layout::plan) refuses every use of a failed member.
    fn plan_transfer(
        &mut self,
        request: &Request,
        below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus;

    /// Fills `plan` with the member I/O of `request`. The previous contents are discarded; the
    /// allocated memory is reused.
    ///
    /// An operation [of whole members](fullstroke_contract::Operation::is_of_all) goes to every
    /// member that is not [left out](Layout::left_out). A read, write or discard with an empty
    /// extent, or an extent beyond the capacity, returns [`RequestStatus::OutOfRange`]. A request
    /// for lost data returns [`RequestStatus::Lost`]. The plan is empty unless the result is
    /// [`RequestStatus::Done`]. The plan may also be empty with `Done`: a parity layout discards
    /// only whole rows.
    fn plan(
        &mut self,
        request: &Request,
        below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        plan.clear();
        if request.operation.is_of_all() {
            return plan.for_all_members(request.operation, self.members(), self.left_out());
        }
        let extent = request.extent;
        // A scrub (`idle-scrub`) reads members by their own addresses, parity and unused parts
        // included.
        if request.hints.members && request.operation == Operation::Read {
            return self.plan_members(extent, plan);
        }
        if extent.sectors == Sectors::ZERO || !extent.within(self.capacity()) {
            return RequestStatus::OutOfRange;
        }
        let status = match self.plan_transfer(request, below, plan) {
            // Layouts without redundancy do not look at the states of their members.
            RequestStatus::Done if asks_the_impossible(self.member_states(), plan) => {
                RequestStatus::Lost
            }
            status => status,
        };
        if status != RequestStatus::Done {
            plan.clear();
        }
        status
    }

    /// Adds to `plan` a read of the same addresses of each member, as far as the layout uses the
    /// addresses and the member holds valid data there. Serves requests with the hint
    /// [members](fullstroke_contract::Hints::members). Returns [`RequestStatus::Lost`] if only
    /// members without valid data use the addresses, and [`RequestStatus::OutOfRange`] if no member
    /// uses them.
    fn plan_members(&self, extent: Extent, plan: &mut Plan) -> RequestStatus {
        let mut status = RequestStatus::OutOfRange;
        let read = |member: usize| {
            let end = extent.end().0.min(self.member_used(member).0);
            let part = Extent::new(extent.start.0, end.saturating_sub(extent.start.0));
            let used = part.sectors > Sectors::ZERO;
            status = if used {
                status.min(RequestStatus::Lost)
            } else {
                status
            };
            let has = used
                && self
                    .member_states()
                    .can_serve(member, Operation::Read, part);
            has.then_some((member as u32, part))
        };
        plan.of_members((0..self.members()).filter_map(read));
        if plan.ios().is_empty() {
            status
        } else {
            RequestStatus::Done
        }
    }

    /// Writes into `plan` the I/O for the rebuild of `members` from the sector `from` on. Each of
    /// the members must be `Rebuilding { done: from }`. The plan fills at most `most` sectors, in
    /// whole chunks, but at least one chunk. Common sources of several members are read once. The
    /// previous contents of the plan are discarded. All bytes pass through the plan's scratch
    /// buffer.
    ///
    /// Returns the end of the filled part after the plan: the sector after its last. At the end of
    /// the longest member this is its `member_used`. Without a source, as in a layout without
    /// redundancy, the sectors are skipped and the plan may be empty. The old contents of the new
    /// member then count as data. The caller checks with [`answers`](Layout::answers) if the data
    /// is complete.
    ///
    /// Later plans for writes rely on the execution of this plan. If the plan is not carried out,
    /// set the member's state again.
    ///
    /// # Panics
    /// If there is no such member.
    fn plan_rebuild(
        &mut self,
        members: &[usize],
        _from: Sectors,
        _most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        plan.clear();
        longest(self, members)
    }

    /// True if requests and a rebuild take turns, as in RAID 10 of md.
    fn takes_turns(&self) -> bool {
        false
    }

    /// As [`plan_rebuild`](Layout::plan_rebuild), but the filled part may begin and end within a
    /// chunk, at whole pages of 4 KiB. Only for an array like md, whose writes ask for each page if
    /// a member has the page. The plan has no bytes.
    fn plan_rebuild_of_pages(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        self.plan_rebuild(members, from, most, plan)
    }
}

/// Returns the sectors of a chunk that a rebuild of pages fills from `from` on: up to `most`, at
/// least a page, and at most up to the end of the chunk. Returns `None` if whole chunks are filled.
pub(crate) fn part_of_chunk(from: Sectors, most: Sectors, chunk: u64) -> Option<Range<u64>> {
    let offset = from.0 % chunk;
    if offset == 0 && most.0 >= chunk {
        return None;
    }
    let pages = (most.0 / PAGE).max(1) * PAGE;
    Some(offset..chunk.min(offset + pages))
}

/// Returns the end of the rebuild of `members`: the used sectors of the longest member.
pub(crate) fn longest<L: Layout + ?Sized>(layout: &L, members: &[usize]) -> Sectors {
    members
        .iter()
        .map(|&member| layout.member_used(member))
        .max()
        .unwrap_or(Sectors::ZERO)
}

/// Returns the number of sectors with one purpose from `first` on, and before `end`. The search
/// doubles its step. A step cannot skip over a run of another purpose, because such a run is no
/// shorter than the run before it.
fn run_of(role_of: impl Fn(u64) -> Role, first: u64, end: u64) -> u64 {
    let role = role_of(first);
    let together = |offset: u64| role_of(first + offset) == role.after(Sectors(offset));
    let mut within = 0;
    let mut step = 1;
    while first + within + step < end && together(within + step) {
        within += step;
        step *= 2;
    }
    run_length(within, (within + step).min(end - first), together)
}

/// Returns the length of a run by bisection. The sector `within` after the first belongs to the
/// run; the sector `beyond` does not, or is outside the question. No sector after the end of the
/// run may be `together` with the first.
fn run_length(mut within: u64, mut beyond: u64, together: impl Fn(u64) -> bool) -> u64 {
    while within + 1 < beyond {
        let middle = within + (beyond - within) / 2;
        if together(middle) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    within + 1
}

impl Role {
    /// Returns the purpose of the sector `offset` after this one, if both sectors belong to one
    /// run.
    fn after(self, offset: Sectors) -> Role {
        match self {
            Role::Data(lbn) => Role::Data(lbn + offset),
            Role::Copy { of, copy } => Role::Copy {
                of: of + offset,
                copy,
            },
            Role::Parity {
                row,
                offset: within,
            } => Role::Parity {
                row,
                offset: within + offset,
            },
            Role::SecondParity {
                row,
                offset: within,
            } => Role::SecondParity {
                row,
                offset: within + offset,
            },
            Role::Unused => Role::Unused,
        }
    }
}

/// True if `plan` has I/O for failed members, or reads unfilled sectors. Layouts with redundancy
/// make no such plans. With this check, the other layouts need not look at the states of their
/// members.
fn asks_the_impossible(states: &MemberStates, plan: &Plan) -> bool {
    let impossible = || {
        plan.ios()
            .iter()
            .any(|io| !states.can_serve(io.member as usize, io.operation, io.extent))
    };
    !states.impaired().is_empty() && impossible()
}
