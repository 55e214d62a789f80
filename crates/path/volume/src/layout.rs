//! The interface of a layout: an address map, and a plan for each request.

use crate::gears::Gears;
use crate::{Geometry, MemberStates, Plan};
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Below, ConfigError, Extent, Gear, MemberState, Operation, Request, Status,
};
use fullstroke_units::{Lbn, Sectors};

/// Builds a layout from its keys in a stack file and the capacities of its
/// members, in order. Errors carry the key that is to be mended; `members`
/// where the members do not suit the layout.
pub type BuildLayout = fn(&Keys, &[Sectors]) -> Result<Box<dyn Layout>, ConfigError>;

/// A sector of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Index among the members.
    pub member: usize,
    /// Address on that member.
    pub lbn: Lbn,
}

/// What one sector of a member is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The (first copy of the) volume's sector.
    Data(Lbn),
    /// A further copy of a volume's sector.
    Copy {
        /// The volume's sector.
        of: Lbn,
        /// Which copy: 1 is the second.
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
    /// Nothing: the layout leaves it out.
    Unused,
}

/// How a volume's addresses lie on its members, and which member I/O serves a
/// request.
///
/// - **Getters**: everything but the next three.
/// - **Address map**: [`locate`](Layout::locate) and its inverse
///   [`role_of`](Layout::role_of), which together are one-to-one and onto.
/// - **Member states**: members fail, are replaced and filled again while the
///   layout is in use, by [`set_member_state`](Layout::set_member_state); a
///   layout keeps them in [`MemberStates`].
/// - **Plans**: [`plan`](Layout::plan) is what callers use; a layout implements
///   [`plan_transfer`](Layout::plan_transfer), and, if it has redundancy,
///   [`plan_rebuild`](Layout::plan_rebuild).
///
/// # Failing and filling
/// What is planned after a change of state counts on it at once. To fill a new
/// member, whoever carries plans out makes it `Rebuilding` from 0, then in
/// turn carries out what [`plan_rebuild`](Layout::plan_rebuild) plans and says
/// how far it came, and at the end that the member is alive:
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
/// Members that stand at the same sector can be filled together, as long as the
/// layout answers.
///
/// Requests may be planned between any two of these steps. Rows of sectors that
/// a plan needs for itself keep those of the rebuild and those of requests
/// apart, if plans get them in the order in which they were made; whoever
/// carries plans out one at a time needs no rows.
pub trait Layout: Send {
    /// As written in a stack file.
    fn name(&self) -> &'static str;

    /// Sectors that the volume offers: addresses `0..capacity`.
    fn capacity(&self) -> Sectors;

    /// How many members the volume has, failed ones included.
    fn members(&self) -> usize {
        self.member_states().members()
    }

    /// The whole capacity of `member`.
    ///
    /// # Panics
    /// If there is no such member.
    fn member_capacity(&self, member: usize) -> Sectors;

    /// Sectors of `member` that hold data, copies or parity.
    ///
    /// # Panics
    /// If there is no such member.
    fn member_used(&self, member: usize) -> Sectors;

    /// How the volume's addresses change members.
    fn geometry(&self) -> Geometry;

    /// Sectors of all members that are left out: behind the smallest member's
    /// last whole chunk, for a start.
    fn unused(&self) -> Sectors {
        (0..self.members())
            .map(|member| self.member_capacity(member) - self.member_used(member))
            .fold(Sectors::ZERO, |sum, rest| sum + rest)
    }

    /// How many members a whole array may lose, whichever they are, without
    /// losing data. Members that have failed do not count against it.
    fn failures_survived(&self) -> u32;

    /// The states of all members.
    fn member_states(&self) -> &MemberStates;

    /// The states of all members, to be changed. A layout has nothing else to
    /// change with them.
    fn member_states_mut(&mut self) -> &mut MemberStates;

    /// The members that have failed, ascending. Those that are being filled are
    /// not among them.
    fn failed(&self) -> &[u32] {
        self.member_states().failed()
    }

    /// The members, ascending, to which nothing goes that is of all: those that have failed, and
    /// those that [gears](Layout::gears) have stopped, which a flush would start.
    fn left_out(&self) -> &[u32] {
        self.failed()
    }

    /// The gear, of a layout that has [gears](Layout::gears).
    fn present_gear(&self) -> Option<Gear> {
        None
    }

    /// If members stop while little is asked of the volume: its gears.
    fn gears(&mut self) -> Option<&mut dyn Gears> {
        None
    }

    /// The state of `member`.
    ///
    /// # Panics
    /// If there is no such member.
    fn member_state(&self, member: usize) -> MemberState {
        self.member_states().get(member)
    }

    /// Changes the state of `member`, for every plan from now on. Any state can
    /// be set, also more failures than are survived: then the layout no longer
    /// [answers](Layout::answers).
    ///
    /// # Panics
    /// If there is no such member.
    fn set_member_state(&mut self, member: usize, state: MemberState) {
        self.member_states_mut().set(member, state);
    }

    /// Whether every address still has its data.
    fn answers(&self) -> bool {
        self.member_states().impaired().len() <= self.failures_survived() as usize
    }

    /// Where the first copy of a volume's sector lies.
    ///
    /// # Panics
    /// If `lbn` is not below the capacity.
    fn locate(&self, lbn: Lbn) -> Location;

    /// What the sector `lbn` of `member` is for.
    ///
    /// # Panics
    /// If there is no such member, or `lbn` is not below its capacity.
    fn role_of(&self, member: usize, lbn: Lbn) -> Role;

    /// Whose addresses those of `member` are: tells `owner` each run of the
    /// volume's addresses of which the extent holds a copy, in the order of the
    /// member's. Parity, and what is left out or lies beyond, is nobody's. Costs
    /// a logarithm a run.
    ///
    /// # Panics
    /// If there is no such member.
    fn owners(&self, member: usize, extent: Extent, owner: &mut dyn FnMut(Extent)) {
        let end = extent.end().0.min(self.member_used(member).0);
        let mut lbn = extent.start.0;
        // Not told yet, since a copy may go on where data ended.
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

    /// Writes the member I/O of a read, write or discard into the empty `plan`.
    /// The extent is within the capacity and not empty. Answers
    /// [`Status::Lost`], with whatever in the plan, if an addressed sector has
    /// no copy left. A layout without redundancy need not look: a plan that asks
    /// anything of a member that has failed is lost anyway.
    fn plan_transfer(&mut self, request: &Request, below: Below<'_>, plan: &mut Plan) -> Status;

    /// Fills `plan` with the member I/O that serves `request`; what it held
    /// before is discarded, its room is reused.
    ///
    /// What [is of all](fullstroke_contract::Operation::is_of_all) goes to every member that is not
    /// [left out](Layout::left_out). A read, write or
    /// discard whose extent is empty or not within the capacity is
    /// [`Status::OutOfRange`]; one that needs what was lost is
    /// [`Status::Lost`]. The plan is empty unless the answer is
    /// [`Status::Done`], and may be empty then: a parity layout carries out
    /// only that part of a discard which covers whole rows.
    fn plan(&mut self, request: &Request, below: Below<'_>, plan: &mut Plan) -> Status {
        plan.clear();
        if request.operation.is_of_all() {
            return plan.of_all(request.operation, self.members(), self.left_out());
        }
        let extent = request.extent;
        if request.hints.members && request.operation == Operation::Read {
            return self.plan_members(extent, plan);
        }
        if extent.sectors == Sectors::ZERO || !extent.within(self.capacity()) {
            return Status::OutOfRange;
        }
        let status = match self.plan_transfer(request, below, plan) {
            Status::Done if asks_the_impossible(self.member_states(), plan) => Status::Lost,
            status => status,
        };
        if status != Status::Done {
            plan.clear();
        }
        status
    }

    /// Adds to `plan` a read of these addresses of each member, as far as the layout uses them
    /// and the member has them: for requests that are of
    /// [members](fullstroke_contract::Hints::members). [`Status::Lost`] if no member of those
    /// that use them has them, [`Status::OutOfRange`] if none uses them.
    fn plan_members(&self, extent: Extent, plan: &mut Plan) -> Status {
        let mut status = Status::OutOfRange;
        let read = |member: usize| {
            let end = extent.end().0.min(self.member_used(member).0);
            let part = Extent::new(extent.start.0, end.saturating_sub(extent.start.0));
            let used = part.sectors > Sectors::ZERO;
            status = if used {
                status.min(Status::Lost)
            } else {
                status
            };
            let has = used && self.member_states().bears(member, Operation::Read, part);
            has.then_some((member as u32, part))
        };
        plan.of_members((0..self.members()).filter_map(read));
        if plan.ios().is_empty() {
            status
        } else {
            Status::Done
        }
    }

    /// Writes into `plan` the I/O that fills the sectors of `members`, each of
    /// which is `Rebuilding { done: from }`, from there on: `most` sectors at
    /// most, in whole chunks, and one at least. What several of them are
    /// computed from is read once. What the plan held before is discarded. All
    /// bytes pass through its scratch buffer.
    ///
    /// Answers the sector behind the last that is filled when the plan has been
    /// carried out; at the end of the longest member, its `member_used`. Where
    /// nothing is left to fill from, as in a layout without redundancy, sectors
    /// are passed over, and the plan may be empty: what the new member holds
    /// there counts as the data from then on. Whether that is wanted is for the
    /// caller to know, who asks [`answers`](Layout::answers).
    ///
    /// Writes that are planned from now on count on the plan's being carried
    /// out. If it is not, set the member's state again.
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
}

/// As far as the longest of `members` is to be filled.
pub(crate) fn longest<L: Layout + ?Sized>(layout: &L, members: &[usize]) -> Sectors {
    members
        .iter()
        .map(|&member| layout.member_used(member))
        .max()
        .unwrap_or(Sectors::ZERO)
}

/// How many sectors from `first` on, and before `end`, are for one thing. What is
/// for another in between is no shorter than what went before it, so that the
/// steps, which double, do not pass over it.
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

/// How long a run is of which what lies `within` behind its first is part, and what
/// lies `beyond` is not, or is not asked for: by bisection, so that what is behind
/// the end of the run must not be `together` with its first.
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
    /// What a sector is for that lies `offset` behind this one, if both are for
    /// one thing.
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

/// Whether `plan` has I/O for members that have failed, or reads what was not
/// filled yet. Layouts with redundancy make no such plans; the others need not
/// look at the states of their members.
fn asks_the_impossible(states: &MemberStates, plan: &Plan) -> bool {
    let impossible = || {
        plan.ios()
            .iter()
            .any(|io| !states.bears(io.member as usize, io.operation, io.extent))
    };
    !states.impaired().is_empty() && impossible()
}
