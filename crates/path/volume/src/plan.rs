//! What a volume does for one request: member I/O in phases, and the parity
//! arithmetic between them.
//!
//! A plan is flat. Its **strands** are independent of each other; within one,
//! the I/O of the first phase comes before that of the second. The bytes of
//! each I/O are named by **pieces**: a run in the request's own buffer or in a
//! scratch buffer that belongs to the plan. After a strand's reads and before
//! its writes, its **steps** are carried out in order, each of the form
//! `into = coefficient * from` or `into += coefficient * from` over GF(2^8).
//! That is all of the arithmetic: exclusive or is the coefficient 1, and
//! rebuilding lost data is a sum like any other.
//!
//! A plan made with [`Detail::Timing`] has the same strands and I/O, but no
//! pieces, bands and steps: whoever only times it does not need them.

use fullstroke_contract::{Extent, Operation, Status};
use fullstroke_units::{Lbn, Sectors};
use std::ops::Range;

/// How much of a plan is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Detail {
    /// Strands and I/O.
    Timing,
    /// Everything that is needed to carry the plan out on bytes.
    #[default]
    Bytes,
}

/// The member I/O of one request. Made once and filled again for each request,
/// so that planning allocates nothing in the long run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    detail: Detail,
    strands: Vec<Strand>,
    ios: Vec<MemberIo>,
    pieces: Vec<Piece>,
    bands: Vec<Band>,
    steps: Vec<Step>,
    scratch: Sectors,
    read_for_nothing: Sectors,
    /// Bands by their method, whatever the detail.
    methods: [u32; Method::ALL.len()],
}

/// A part of the request that does not wait for its other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strand {
    /// Index of the first I/O.
    begin: u32,
    /// Index of the first I/O of the second phase.
    middle: u32,
    /// Index behind the last I/O.
    end: u32,
    rows: Option<Rows>,
}

/// Rows of chunks, both ends included. Layouts with copies have rows of one
/// sector, the volume's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rows {
    /// The first row.
    pub first: u64,
    /// The last row.
    pub last: u64,
}

/// One request to one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberIo {
    /// Index among the members.
    pub member: u32,
    /// Index of the strand.
    pub strand: u32,
    /// Read, write, flush or discard.
    pub operation: Operation,
    /// Whether it waits for the strand's first phase.
    pub second_phase: bool,
    /// The run of the member's sectors; empty for a flush.
    pub extent: Extent,
    /// The row of chunks in which the extent begins, where rows have parity.
    pub row: Option<u64>,
}

/// A place in memory, in sectors from the beginning of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the buffer that the request reads into or writes from.
    Request(Sectors),
    /// In the plan's scratch buffer.
    Scratch(Sectors),
}

/// What memory a run of sectors of a member I/O is read into or written from.
/// The pieces of an I/O, in their order, tile its extent without overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the I/O.
    pub io: u32,
    /// The first sector on the member.
    pub lbn: Lbn,
    /// The length.
    pub sectors: Sectors,
    /// The memory.
    pub place: Place,
    /// What the sectors are.
    pub content: Content,
}

/// What the sectors of a piece are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Data that the request asked for or brings.
    Data,
    /// Data that the row's arithmetic needs: what is about to be overwritten,
    /// or a neighbour's. Also data that a new member is filled with.
    Peer,
    /// P.
    Parity,
    /// Q.
    SecondParity,
}

/// How the parity of a band comes about, or lost data comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Every data chunk is written: parity is the sum of the new data.
    FullStripe,
    /// New parity is old parity, less old data, plus new data.
    ReadModifyWrite,
    /// New parity is the sum of the new data and of the rest, which is read.
    ReconstructWrite,
    /// Lost data is computed from everything that is left: for a read, that is
    /// the answer; for a write, parity is then the sum as in a
    /// reconstruct-write; for a new member, that is what fills it.
    Recover,
    /// The row's parity members have failed: data is written alone.
    Unprotected,
}

/// A run of offsets within one row's chunks to which one method applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Index of the strand.
    pub strand: u32,
    /// The row of chunks.
    pub row: u64,
    /// The first offset within the chunk.
    pub from: Sectors,
    /// The length.
    pub sectors: Sectors,
    /// What is done.
    pub method: Method,
    first_step: u32,
    end_step: u32,
}

/// One step of arithmetic: `into = coefficient * from`, or with `accumulate`,
/// `into += coefficient * from`, byte by byte in GF(2^8) (see
/// [`gf256`](crate::gf256)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// A factor; 1 leaves the bytes as they are.
    pub coefficient: u8,
    /// The source.
    pub from: Place,
    /// The target.
    pub into: Place,
    /// The length of both.
    pub sectors: Sectors,
    /// Whether the target keeps what it held.
    pub accumulate: bool,
}

impl Plan {
    /// An empty plan.
    pub fn new(detail: Detail) -> Plan {
        Plan {
            detail,
            ..Plan::default()
        }
    }
    /// How much is written down.
    pub fn detail(&self) -> Detail {
        self.detail
    }
    /// The independent parts.
    pub fn strands(&self) -> &[Strand] {
        &self.strands
    }
    /// All member I/O, strand by strand, in each the first phase first.
    pub fn ios(&self) -> &[MemberIo] {
        &self.ios
    }
    /// The memory of the I/O. Those of one I/O are in the order of its extent,
    /// but may have others between them.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
    /// Where which arithmetic applies.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }
    /// How many bands there are of each method, in the order of
    /// [`Method::ALL`]; also in a plan that only times.
    pub fn methods(&self) -> &[u32; Method::ALL.len()] {
        &self.methods
    }
    /// Whether the member I/O with this index writes, in a second phase, where
    /// its strand has read the same member before.
    pub(crate) fn overwrites_what_it_read(&self, io: &MemberIo) -> bool {
        let first = self.strands[io.strand as usize].first_phase();
        self.ios[first]
            .iter()
            .any(|read| read.member == io.member && read.extent.start == io.extent.start)
    }
    /// The arithmetic of one band, in order.
    pub fn steps(&self, band: &Band) -> &[Step] {
        &self.steps[band.first_step as usize..band.end_step as usize]
    }
    /// The scratch memory that the pieces and steps refer to.
    pub fn scratch(&self) -> Sectors {
        self.scratch
    }
    /// Sectors that are read for nobody, to close gaps.
    pub fn read_for_nothing(&self) -> Sectors {
        self.read_for_nothing
    }
    /// Takes everything out; the room is kept.
    pub fn clear(&mut self) {
        self.strands.clear();
        self.ios.clear();
        self.pieces.clear();
        self.bands.clear();
        self.steps.clear();
        self.scratch = Sectors::ZERO;
        self.read_for_nothing = Sectors::ZERO;
        self.methods = Default::default();
    }

    /// Adds `operation` at every member that is not in `failed` (ascending). It
    /// is lost if none is left.
    pub(crate) fn of_all(
        &mut self,
        operation: Operation,
        members: usize,
        failed: &[u32],
    ) -> Status {
        debug_assert!(
            failed.len() <= members && failed.is_sorted(),
            "{failed:?} have failed of {members} members"
        );
        if failed.len() == members {
            return Status::Lost;
        }
        self.of_some(
            operation,
            (0..members as u32).filter(|member| failed.binary_search(member).is_err()),
        );
        Status::Done
    }

    /// Adds `operation`, which is of a whole member, at each of `members`; there is one at least.
    pub(crate) fn of_some(&mut self, operation: Operation, members: impl Iterator<Item = u32>) {
        self.ios.extend(members.map(|member| MemberIo {
            member,
            strand: 0,
            operation,
            second_phase: false,
            extent: Extent::default(),
            row: None,
        }));
        assert!(
            !self.ios.is_empty() && self.strands.is_empty(),
            "a plan of whole members has one strand, with a member at least"
        );
        let end = self.ios.len() as u32;
        self.strands.push(Strand {
            begin: 0,
            middle: end,
            end,
            rows: None,
        });
    }

    /// Adds reads of members' own addresses, one a member, that wait for nothing.
    pub(crate) fn of_members(&mut self, reads: impl Iterator<Item = (u32, Extent)>) {
        self.ios.extend(reads.map(|(member, extent)| MemberIo {
            member,
            strand: 0,
            operation: Operation::Read,
            second_phase: false,
            extent,
            row: None,
        }));
        let end = self.ios.len() as u32;
        if end > 0 {
            self.strands.push(Strand {
                begin: 0,
                middle: end,
                end,
                rows: None,
            });
        }
    }
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 5] = [
        Method::FullStripe,
        Method::ReadModifyWrite,
        Method::ReconstructWrite,
        Method::Recover,
        Method::Unprotected,
    ];
}

impl Place {
    /// The place `sectors` behind.
    pub(crate) fn behind(self, sectors: Sectors) -> Place {
        match self {
            Place::Request(at) => Place::Request(at + sectors),
            Place::Scratch(at) => Place::Scratch(at + sectors),
        }
    }
}

impl Strand {
    /// Indices of the I/O of the first phase; never empty.
    pub fn first_phase(&self) -> Range<usize> {
        self.begin as usize..self.middle as usize
    }
    /// Indices of the I/O of the second phase; empty if there is none.
    pub fn second_phase(&self) -> Range<usize> {
        self.middle as usize..self.end as usize
    }
    /// The rows that nobody else may write or rebuild meanwhile.
    pub fn exclusive_rows(&self) -> Option<Rows> {
        self.rows
    }
}

/// Which member's I/O may still grow, and other scratch room of a planner.
/// Belongs to the layout, so that plans stay small.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenIos {
    /// For each member, the phase in which it got its latest I/O, and which.
    latest: Vec<(u64, u32)>,
    /// Counts phases over all plans.
    phase: u64,
}

impl OpenIos {
    pub(crate) fn new(members: usize) -> OpenIos {
        OpenIos {
            latest: vec![(0, 0); members],
            phase: 0,
        }
    }
}

/// Writes a plan, strand by strand. I/O of one member that is adjacent in its
/// addresses and belongs to the same phase becomes one.
pub(crate) struct PlanWriter<'a> {
    plan: &'a mut Plan,
    open: &'a mut OpenIos,
    row: Option<u64>,
    second_phase: bool,
}

impl<'a> PlanWriter<'a> {
    pub(crate) fn new(plan: &'a mut Plan, open: &'a mut OpenIos) -> PlanWriter<'a> {
        PlanWriter {
            plan,
            open,
            row: None,
            second_phase: false,
        }
    }

    /// How much of the plan is written down.
    pub(crate) fn detail(&self) -> Detail {
        self.plan.detail()
    }

    /// What follows is independent of what went before.
    pub(crate) fn begin_strand(&mut self) {
        let at = self.plan.ios.len() as u32;
        self.plan.strands.push(Strand {
            begin: at,
            middle: at,
            end: at,
            rows: None,
        });
        self.second_phase = false;
        self.open.phase += 1;
    }

    /// What follows waits for what the strand holds so far, if anything.
    pub(crate) fn begin_second_phase(&mut self) {
        let strand = self.strand();
        self.second_phase = strand.end > strand.begin;
        self.open.phase += 1;
    }

    /// What follows belongs to `row`.
    pub(crate) fn enter_row(&mut self, row: u64) {
        self.row = Some(row);
    }

    /// The strand needs `row` for itself, and the rows between `row` and those that it holds. Rows come in
    /// any order: where two members are rebuilt together, both are copied from the same rows.
    pub(crate) fn hold_row(&mut self, row: u64) {
        let rows = &mut self.strand().rows;
        let Rows { first, last } = rows.unwrap_or(Rows {
            first: row,
            last: row,
        });
        *rows = Some(Rows {
            first: first.min(row),
            last: last.max(row),
        });
    }

    /// Adds `extent` of `member`, to its latest I/O if it continues that.
    #[inline]
    pub(crate) fn io(
        &mut self,
        member: usize,
        operation: Operation,
        extent: Extent,
        place: Place,
        content: Content,
    ) {
        debug_assert!(
            extent.sectors > Sectors::ZERO && member < self.open.latest.len(),
            "{extent:?} of member {member} is planned, of {}",
            self.open.latest.len()
        );
        let io = match self.continued_by(member, extent.start) {
            Some(io) => {
                debug_assert_eq!(
                    self.plan.ios[io as usize].operation, operation,
                    "a read and a write of member {member} become one I/O"
                );
                self.plan.ios[io as usize].extent.sectors += extent.sectors;
                io
            }
            None => self.new_io(member, operation, extent),
        };
        if self.plan.detail == Detail::Bytes {
            let piece = Piece {
                io,
                lbn: extent.start,
                sectors: extent.sectors,
                place,
                content,
            };
            self.plan.pieces.push(piece);
        }
    }

    /// The I/O of `member` in this phase that ends at `lbn`.
    #[inline]
    pub(crate) fn continued_by(&self, member: usize, lbn: Lbn) -> Option<u32> {
        let (phase, io) = self.open.latest[member];
        (phase == self.open.phase && self.plan.ios[io as usize].extent.end() == lbn).then_some(io)
    }

    /// How many I/Os the plan has for `member` so far.
    pub(crate) fn ios_of(&self, member: usize) -> u32 {
        self.plan
            .ios
            .iter()
            .filter(|io| io.member as usize == member)
            .count() as u32
    }

    fn new_io(&mut self, member: usize, operation: Operation, extent: Extent) -> u32 {
        let io = self.plan.ios.len() as u32;
        let strand = self.plan.strands.len() as u32 - 1;
        self.plan.ios.push(MemberIo {
            member: member as u32,
            strand,
            operation,
            second_phase: self.second_phase,
            extent,
            row: self.row,
        });
        self.open.latest[member] = (self.open.phase, io);
        let second_phase = self.second_phase;
        let strand = self.strand();
        strand.end = io + 1;
        if !second_phase {
            strand.middle = io + 1;
        }
        io
    }

    /// Room for `sectors` in the scratch buffer.
    #[inline]
    pub(crate) fn scratch(&mut self, sectors: u64) -> Place {
        let at = self.plan.scratch;
        self.plan.scratch += Sectors(sectors);
        Place::Scratch(at)
    }

    /// A read of so many sectors that nobody needs.
    pub(crate) fn io_for_nothing(&mut self, member: usize, extent: Extent, content: Content) {
        let place = self.scratch(extent.sectors.0);
        self.io(member, Operation::Read, extent, place, content);
        self.plan.read_for_nothing += extent.sectors;
    }

    /// The steps that follow are those of `method` in this band of the row.
    pub(crate) fn band(&mut self, row: u64, offsets: Range<u64>, method: Method) {
        debug_assert!(
            offsets.start < offsets.end && !self.plan.strands.is_empty(),
            "the band {offsets:?} of row {row} is empty, or of no strand"
        );
        self.plan.methods[method as usize] += 1;
        if self.plan.detail == Detail::Bytes {
            let at = self.plan.steps.len() as u32;
            self.plan.bands.push(Band {
                strand: self.plan.strands.len() as u32 - 1,
                row,
                from: Sectors(offsets.start),
                sectors: Sectors(offsets.end - offsets.start),
                method,
                first_step: at,
                end_step: at,
            });
        }
    }

    /// Adds a step to the latest band.
    #[inline]
    pub(crate) fn step(&mut self, step: Step) {
        if self.plan.detail == Detail::Bytes {
            debug_assert!(
                step.from != step.into && !self.plan.bands.is_empty(),
                "a step of no band, or from a place into itself: {step:?}"
            );
            self.plan.steps.push(step);
            let end = self.plan.steps.len() as u32;
            if let Some(band) = self.plan.bands.last_mut() {
                band.end_step = end;
            }
        }
    }

    /// # Panics
    /// If no strand was begun, which is the layout's mistake.
    fn strand(&mut self) -> &mut Strand {
        self.plan
            .strands
            .last_mut()
            .expect("a layout begins a strand before it fills it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(writer: &mut PlanWriter<'_>, member: usize, start: u64, sectors: u64) {
        let extent = Extent::new(start, sectors);
        writer.io(
            member,
            Operation::Write,
            extent,
            Place::Request(Sectors(0)),
            Content::Data,
        );
    }

    #[test]
    fn adjacent_io_of_one_member_and_phase_becomes_one() {
        let (mut plan, mut open) = (Plan::new(Detail::Bytes), OpenIos::new(2));
        let mut writer = PlanWriter::new(&mut plan, &mut open);
        writer.begin_strand();
        write(&mut writer, 0, 10, 5);
        write(&mut writer, 1, 15, 5);
        write(&mut writer, 0, 15, 5);
        write(&mut writer, 0, 21, 5);
        assert_eq!(plan.ios().len(), 3);
        assert_eq!(plan.ios()[0].extent, Extent::new(10, 10));
        assert_eq!(plan.pieces().len(), 4);
    }

    #[test]
    fn rows_are_held_in_whatever_order_they_come() {
        let (mut plan, mut open) = (Plan::new(Detail::Timing), OpenIos::new(1));
        let mut writer = PlanWriter::new(&mut plan, &mut open);
        writer.begin_strand();
        for row in [4, 7, 4, 5, 2] {
            writer.hold_row(row);
        }
        write(&mut writer, 0, 0, 5);
        let rows = plan.strands()[0].exclusive_rows();
        assert_eq!(rows, Some(Rows { first: 2, last: 7 }));
    }

    #[test]
    fn io_of_different_phases_and_strands_stays_apart() {
        let (mut plan, mut open) = (Plan::new(Detail::Timing), OpenIos::new(1));
        let mut writer = PlanWriter::new(&mut plan, &mut open);
        writer.begin_strand();
        write(&mut writer, 0, 0, 5);
        writer.begin_second_phase();
        write(&mut writer, 0, 5, 5);
        writer.begin_strand();
        writer.begin_second_phase();
        write(&mut writer, 0, 10, 5);
        assert_eq!(plan.ios().len(), 3);
        assert_eq!(plan.strands()[0].first_phase(), 0..1);
        assert_eq!(plan.strands()[0].second_phase(), 1..2);
        assert_eq!(
            plan.strands()[1].first_phase(),
            2..3,
            "a phase that nothing precedes is the first"
        );
        assert!(plan.pieces().is_empty());
    }

    #[test]
    fn a_flush_reaches_the_members_that_are_left() {
        let mut plan = Plan::new(Detail::Timing);
        assert_eq!(plan.of_all(Operation::Flush, 4, &[1, 3]), Status::Done);
        let members: Vec<u32> = plan.ios().iter().map(|io| io.member).collect();
        assert_eq!(members, [0, 2]);
        assert_eq!(plan.strands()[0].first_phase(), 0..2);
        plan.clear();
        assert_eq!(plan.of_all(Operation::Flush, 2, &[0, 1]), Status::Lost);
        assert!(plan.strands().is_empty());
    }
}
