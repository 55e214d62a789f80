//! The plan of one request: member I/O in phases, and the parity arithmetic between the phases.
//!
//! A plan is flat. The **strands** of a plan are independent of each other. Within a strand, the
//! I/O of the first phase completes before the I/O of the second phase starts. **Pieces** name the
//! bytes of each I/O: a run in the request's own buffer or in a scratch buffer of the plan. After a
//! strand's reads and before its writes, the **steps** of the strand run in order. Each step has
//! the form `into = coefficient * from` or `into += coefficient * from` over GF(2^8). No other
//! arithmetic is needed: exclusive or is the coefficient 1, and lost data is a sum as well.
//!
//! A plan made with [`Detail::Timing`] has the same strands and I/O, but no pieces, bands and
//! steps, because a simulation of times alone does not need them.

use fullstroke_contract::{Extent, Operation, RequestStatus};
use fullstroke_units::{Lbn, Sectors};
use std::ops::Range;

/// Level of detail of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Detail {
    /// Strands and I/O only.
    Timing,
    /// Also the pieces, bands and steps, for execution on bytes.
    #[default]
    Bytes,
}

/// The member I/O of one request. A plan is created once and filled again for each request.
/// Planning therefore allocates nothing in the long run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    detail: Detail,
    strands: Vec<Strand>,
    ios: Vec<MemberIo>,
    pieces: Vec<MemoryPiece>,
    bands: Vec<Band>,
    steps: Vec<ParityStep>,
    scratch: Sectors,
    read_for_nothing: Sectors,
    /// Number of bands by method. Counted at both levels of detail.
    methods: [u32; Method::ALL.len()],
}

/// An independent part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strand {
    /// Index of the first I/O.
    begin: u32,
    /// Index of the first I/O of the second phase.
    middle: u32,
    /// Index after the last I/O.
    end: u32,
    rows: Option<ChunkRows>,
}

/// Rows of chunks, both ends included. In a layout with copies, a row is one sector of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkRows {
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
    /// True if the I/O waits for the first phase of its strand.
    pub second_phase: bool,
    /// Run of the member's sectors; empty for a flush.
    pub extent: Extent,
    /// Row of chunks at the beginning of the extent, if the rows have parity.
    pub row: Option<u64>,
}

/// A place in memory, in sectors from the beginning of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferPlace {
    /// A place in the request's own buffer.
    Request(Sectors),
    /// A place in the plan's scratch buffer.
    Scratch(Sectors),
}

/// The memory for a run of sectors of one member I/O. The pieces of an I/O, in order, cover the
/// extent of the I/O without gaps or overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPiece {
    /// Index of the I/O.
    pub io: u32,
    /// First sector on the member.
    pub lbn: Lbn,
    /// Length.
    pub sectors: Sectors,
    /// Place in memory.
    pub place: BufferPlace,
    /// Meaning of the sectors.
    pub content: Content,
}

/// Meaning of the sectors of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The request's own data.
    Data,
    /// Other data for the arithmetic of the row: old data before an overwrite, or the data of other
    /// chunks. Also the data for a new member.
    Peer,
    /// The parity P.
    Parity,
    /// The second parity Q.
    SecondParity,
}

/// Method for the parity or the lost data of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The request writes every data chunk: parity is the sum of the new data.
    FullStripe,
    /// New parity is old parity, less old data, plus new data.
    ReadModifyWrite,
    /// New parity is the sum of the new data and of the other data of the row. The plan reads the
    /// other data.
    ReconstructWrite,
    /// Lost data is computed from all remaining chunks. For a read, the lost data is the answer.
    /// For a write, parity is then the sum as in a reconstruct-write. For a new member, the
    /// computed data fills the member.
    Recover,
    /// The parity members of the row have failed: the plan writes data only.
    Unprotected,
}

/// A run of offsets within one row's chunks, with one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Index of the strand.
    pub strand: u32,
    /// The row of chunks.
    pub row: u64,
    /// First offset within the chunk.
    pub from: Sectors,
    /// Length.
    pub sectors: Sectors,
    /// Method of the band.
    pub method: Method,
    first_step: u32,
    end_step: u32,
}

/// One step of arithmetic: `into = coefficient * from`, or with `accumulate`,
/// `into += coefficient * from`, byte by byte in GF(2^8) (see
/// [`gf256`](crate::gf256)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityStep {
    /// Factor; 1 leaves the bytes unchanged.
    pub coefficient: u8,
    /// The source.
    pub from: BufferPlace,
    /// The target.
    pub into: BufferPlace,
    /// Length of source and target.
    pub sectors: Sectors,
    /// True to add to the target, false to overwrite the target.
    pub accumulate: bool,
}

impl Plan {
    /// Returns an empty plan.
    pub fn new(detail: Detail) -> Plan {
        Plan {
            detail,
            ..Plan::default()
        }
    }
    /// Returns the level of detail.
    pub fn detail(&self) -> Detail {
        self.detail
    }
    /// Returns the independent parts.
    pub fn strands(&self) -> &[Strand] {
        &self.strands
    }
    /// Returns all member I/O, strand by strand, the first phase of each strand first.
    pub fn ios(&self) -> &[MemberIo] {
        &self.ios
    }
    /// Returns the memory of the member I/O. The pieces of one I/O are in the order of its extent;
    /// pieces of other I/O may lie between.
    pub fn pieces(&self) -> &[MemoryPiece] {
        &self.pieces
    }
    /// Returns the bands with their methods.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }
    /// Returns the number of bands of each method, in the order of [`Method::ALL`]. The numbers are
    /// also right in a plan for timing.
    pub fn methods(&self) -> &[u32; Method::ALL.len()] {
        &self.methods
    }
    /// True if the strand of `io` has read the same place of the same member in its first phase. A
    /// write of the second phase then waits for almost a revolution, because the sectors have just
    /// passed the head.
    pub(crate) fn overwrites_what_it_read(&self, io: &MemberIo) -> bool {
        let first = self.strands[io.strand as usize].first_phase();
        self.ios[first]
            .iter()
            .any(|read| read.member == io.member && read.extent.start == io.extent.start)
    }
    /// Returns the arithmetic of one band, in order.
    pub fn steps(&self, band: &Band) -> &[ParityStep] {
        &self.steps[band.first_step as usize..band.end_step as usize]
    }
    /// Returns the size of the scratch memory for pieces and steps.
    pub fn scratch(&self) -> Sectors {
        self.scratch
    }
    /// Returns the number of sectors read only to close gaps; the data is discarded.
    pub fn read_for_nothing(&self) -> Sectors {
        self.read_for_nothing
    }
    /// Removes all contents and keeps the allocated memory.
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

    /// Adds `operation` for all members except `failed` (ascending). It is lost if none is left.
    pub(crate) fn for_all_members(
        &mut self,
        operation: Operation,
        members: usize,
        failed: &[u32],
    ) -> RequestStatus {
        debug_assert!(
            failed.len() <= members && failed.is_sorted(),
            "{failed:?} have failed of {members} members"
        );
        if failed.len() == members {
            return RequestStatus::Lost;
        }
        self.of_some(
            operation,
            (0..members as u32).filter(|member| failed.binary_search(member).is_err()),
        );
        RequestStatus::Done
    }

    /// Adds one I/O of `operation` on each of `members`. The operation concerns a whole member,
    /// such as a flush. `members` must not be empty.
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

    /// Adds one read for each pair of a member and an extent in the member's own addresses. The
    /// reads wait for nothing.
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
    /// All methods, in the order of the variants.
    pub const ALL: [Method; 5] = [
        Method::FullStripe,
        Method::ReadModifyWrite,
        Method::ReconstructWrite,
        Method::Recover,
        Method::Unprotected,
    ];
}

impl BufferPlace {
    /// Returns the place `sectors` further on in the same buffer.
    pub(crate) fn behind(self, sectors: Sectors) -> BufferPlace {
        match self {
            BufferPlace::Request(at) => BufferPlace::Request(at + sectors),
            BufferPlace::Scratch(at) => BufferPlace::Scratch(at + sectors),
        }
    }
}

impl Strand {
    /// Returns the indices of the first phase's I/O; never empty.
    pub fn first_phase(&self) -> Range<usize> {
        self.begin as usize..self.middle as usize
    }
    /// Returns the indices of the second phase's I/O; empty if the strand has one phase.
    pub fn second_phase(&self) -> Range<usize> {
        self.middle as usize..self.end as usize
    }
    /// Returns the exclusive rows: no other write or rebuild may use them while the strand runs.
    pub fn exclusive_rows(&self) -> Option<ChunkRows> {
        self.rows
    }
}

/// For each member, the I/O that may still grow, and other working memory of a planner. The layout
/// owns this memory, to keep plans small.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenIos {
    /// For each member, the phase and the index of its latest I/O.
    latest: Vec<(u64, u32)>,
    /// Number of phases over all plans.
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

/// Writes a plan, strand by strand. Adjacent I/O of one member in the same phase becomes one I/O.
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

    /// Returns the plan's level of detail.
    pub(crate) fn detail(&self) -> Detail {
        self.plan.detail()
    }

    /// Begins a strand. All following I/O is independent of the earlier I/O.
    pub(crate) fn begin_strand(&mut self) {
        let at = self.plan.ios.len() as u32;
        self.plan.strands.push(Strand {
            begin: at,
            middle: at,
            end: at,
            rows: None,
        });
        self.second_phase = false;
        // The count ends all open I/O: I/O of different strands or phases must stay separate.
        self.open.phase += 1;
    }

    /// Begins the second phase of the strand. The following I/O waits for the I/O of the strand so
    /// far. If the strand is still empty, the following I/O is its first phase.
    pub(crate) fn begin_second_phase(&mut self) {
        let strand = self.strand();
        // A phase without I/O before it has nothing to wait for, so that it is the first phase.
        self.second_phase = strand.end > strand.begin;
        self.open.phase += 1;
    }

    /// Assigns the following I/O to `row`.
    pub(crate) fn enter_row(&mut self, row: u64) {
        self.row = Some(row);
    }

    /// Reserves `row` for the strand, and all rows between `row` and the rows reserved so far. Rows
    /// may come in any order: when two members are rebuilt together, both are copied from the same
    /// rows.
    pub(crate) fn hold_row(&mut self, row: u64) {
        let rows = &mut self.strand().rows;
        // One run of rows and no set: a lock on the rows between costs less than a list in each
        // strand.
        let ChunkRows { first, last } = rows.unwrap_or(ChunkRows {
            first: row,
            last: row,
        });
        *rows = Some(ChunkRows {
            first: first.min(row),
            last: last.max(row),
        });
    }

    /// Adds `extent` of `member`. If the extent continues the member's latest I/O of this phase,
    /// the I/O grows; otherwise a new I/O begins.
    #[inline]
    pub(crate) fn io(
        &mut self,
        member: usize,
        operation: Operation,
        extent: Extent,
        place: BufferPlace,
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
            let piece = MemoryPiece {
                io,
                lbn: extent.start,
                sectors: extent.sectors,
                place,
                content,
            };
            self.plan.pieces.push(piece);
        }
    }

    /// Returns the I/O of `member` in this phase that ends at `lbn`.
    #[inline]
    pub(crate) fn continued_by(&self, member: usize, lbn: Lbn) -> Option<u32> {
        let (phase, io) = self.open.latest[member];
        (phase == self.open.phase && self.plan.ios[io as usize].extent.end() == lbn).then_some(io)
    }

    /// Keeps the following I/O apart from the I/O so far, even if both are adjacent.
    pub(crate) fn part(&mut self) {
        self.open.phase += 1;
    }

    /// Returns the number of I/Os for `member` so far.
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
        // `middle` follows `end` until the second phase begins.
        if !second_phase {
            strand.middle = io + 1;
        }
        io
    }

    /// Reserves `sectors` in the scratch buffer and returns their place.
    #[inline]
    pub(crate) fn scratch(&mut self, sectors: u64) -> BufferPlace {
        let at = self.plan.scratch;
        self.plan.scratch += Sectors(sectors);
        BufferPlace::Scratch(at)
    }

    /// Adds a read and discards its data. The read closes a gap between two reads of the member.
    pub(crate) fn io_for_nothing(&mut self, member: usize, extent: Extent, content: Content) {
        // Each discarded read has memory of its own, because reads of one strand may land at the
        // same time.
        let place = self.scratch(extent.sectors.0);
        self.io(member, Operation::Read, extent, place, content);
        self.plan.read_for_nothing += extent.sectors;
    }

    /// Begins a band of the row. The following steps belong to `method` in this band.
    pub(crate) fn band(&mut self, row: u64, offsets: Range<u64>, method: Method) {
        debug_assert!(
            offsets.start < offsets.end && !self.plan.strands.is_empty(),
            "the band {offsets:?} of row {row} is empty, or of no strand"
        );
        // Counted in plans for timing too, because the readings need the methods.
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
    pub(crate) fn step(&mut self, step: ParityStep) {
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

    /// Returns the latest strand.
    ///
    /// # Panics
    /// If no strand was begun: an error of the layout.
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
            BufferPlace::Request(Sectors(0)),
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
        assert_eq!(rows, Some(ChunkRows { first: 2, last: 7 }));
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
        assert_eq!(
            plan.for_all_members(Operation::Flush, 4, &[1, 3]),
            RequestStatus::Done
        );
        let members: Vec<u32> = plan.ios().iter().map(|io| io.member).collect();
        assert_eq!(members, [0, 2]);
        assert_eq!(plan.strands()[0].first_phase(), 0..2);
        plan.clear();
        assert_eq!(
            plan.for_all_members(Operation::Flush, 2, &[0, 1]),
            RequestStatus::Lost
        );
        assert!(plan.strands().is_empty());
    }
}
