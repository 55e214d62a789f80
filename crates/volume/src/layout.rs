//! The interface of a layout: an address map, and a plan for each request.

use crate::Plan;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Below, ConfigError, Operation, Request, Status};
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
/// - **Getters**: everything but the next two.
/// - **Address map**: [`locate`](Layout::locate) and its inverse
///   [`role_of`](Layout::role_of), which together are one-to-one and onto.
/// - **Plans**: [`plan`](Layout::plan) is what callers use; a layout implements
///   [`plan_transfer`](Layout::plan_transfer).
pub trait Layout: Send {
    /// As written in a stack file.
    fn name(&self) -> &'static str;

    /// Sectors that the volume offers: addresses `0..capacity`.
    fn capacity(&self) -> Sectors;

    /// How many members the volume has, failed ones included.
    fn members(&self) -> usize;

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

    /// Sectors of all members that are left out: behind the smallest member's
    /// last whole chunk, for a start.
    fn unused(&self) -> Sectors {
        (0..self.members())
            .map(|member| self.member_capacity(member) - self.member_used(member))
            .fold(Sectors::ZERO, |sum, rest| sum + rest)
    }

    /// How many members a whole array may lose, whichever they are, without
    /// losing data. Members that are configured as failed do not count against
    /// it.
    fn failures_survived(&self) -> u32;

    /// The members that are configured as failed, ascending.
    fn failed(&self) -> &[u32];

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

    /// Writes the member I/O of a read, write or discard into the empty `plan`.
    /// The extent is within the capacity and not empty. Answers
    /// [`Status::Lost`], with whatever in the plan, if an addressed sector has
    /// no copy left.
    fn plan_transfer(&mut self, request: &Request, below: Below<'_>, plan: &mut Plan) -> Status;

    /// Fills `plan` with the member I/O that serves `request`; what it held
    /// before is discarded, its room is reused.
    ///
    /// A flush goes to every member that has not failed. A read, write or
    /// discard whose extent is empty or not within the capacity is
    /// [`Status::OutOfRange`]. The plan is empty unless the answer is
    /// [`Status::Done`], and may be empty then: a parity layout carries out
    /// only that part of a discard which covers whole rows.
    fn plan(&mut self, request: &Request, below: Below<'_>, plan: &mut Plan) -> Status {
        plan.clear();
        if request.operation == Operation::Flush {
            plan.flush(self.members(), self.failed());
            return Status::Done;
        }
        let extent = request.extent;
        if extent.sectors == Sectors::ZERO || !extent.within(self.capacity()) {
            return Status::OutOfRange;
        }
        let status = self.plan_transfer(request, below, plan);
        if status != Status::Done {
            plan.clear();
        }
        status
    }
}
