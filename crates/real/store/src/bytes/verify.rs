//! Compares parity and copies with their data.
//!
//! The comparison knows no layout: it plans a write of the present data. The plan tells the right
//! parity and copies, and their places.

use crate::buffers::{Buffers, RequestBytes};
use crate::bytes::StoreError;
use crate::bytes::array::read_pieces;
use crate::bytes::media::Media;
use crate::bytes::member::Member as _;
use crate::bytes::node::{Array, StoreNode};
use crate::judge::{DifferingSectors, Repair, differing, judge};
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Content, Layout, Plan};
use serde::Serialize;

/// Size of a step of the search for holes: 16 MiB.
const STRIDE_SECTORS: u64 = (16 << 20) / SECTOR_BYTES;
/// Size of a read: 1 MiB.
const BATCH_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
/// Largest number of listed mismatches; all are counted.
const LISTED: usize = 16;

/// Results of a comparison of redundancy with data.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct RedundancyCheck {
    /// Compared sectors of volumes with redundancy. Holes equal each other and are skipped.
    pub compared_sectors: u64,
    /// Sectors of parity, copies or data in contradiction to the rest.
    pub mismatched_sectors: u64,
    /// Mismatched sectors left as they are, because nothing proves which of the sectors is wrong.
    pub undecided_sectors: u64,
    /// Mismatched sectors written again.
    pub repaired_sectors: u64,
    /// The first mismatches, one for each run of sectors.
    pub first: Vec<Mismatch>,
}

impl RedundancyCheck {
    /// Adds the results of another comparison.
    pub(crate) fn add(&mut self, other: RedundancyCheck) {
        self.compared_sectors += other.compared_sectors;
        self.mismatched_sectors += other.mismatched_sectors;
        self.undecided_sectors += other.undecided_sectors;
        self.repaired_sectors += other.repaired_sectors;
        self.first.extend(other.first);
        self.first.truncate(LISTED);
    }

    fn note(&mut self, mismatch: Mismatch, sectors: u64, is_written: bool) {
        self.mismatched_sectors += sectors;
        if is_written {
            self.repaired_sectors += sectors;
        } else if mismatch.undecided {
            self.undecided_sectors += sectors;
        }
        if self.first.len() < LISTED {
            self.first.push(mismatch);
        }
    }
}

/// A run of sectors of a member in contradiction to the other members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Indices of the member from the top: `0.2`.
    pub member: String,
    /// First sector of the run on the member.
    pub lbn: Lbn,
    /// Row of chunks; `None` without parity.
    pub row: Option<u64>,
    /// Address of the run in the volume above the member, in sectors. For parity: the address of
    /// the row's first data in the same column. `None` in volumes with gears.
    pub address: Option<Lbn>,
    /// True if nothing proves this run wrong.
    pub undecided: bool,
}

/// A planned write of the present data, in contradiction to the present redundancy.
struct JudgedWrite<'a> {
    layout: &'a dyn Layout,
    plan: &'a Plan,
    buffers: &'a Buffers<'a>,
    start: Lbn,
    /// True if all members hold the right data.
    is_whole: bool,
}

/// Compares redundancy with data, and writes wrong sectors again as far as allowed.
pub(crate) struct Verifier<'a> {
    pub(crate) media: &'a mut Media,
    repair: Repair,
    /// True if the verifier determines the wrong sectors. Otherwise redundancy always follows from
    /// the data.
    judges: bool,
    pub(crate) found: RedundancyCheck,
    data: Vec<u8>,
    present: Vec<u8>,
}

impl<'a> Verifier<'a> {
    /// Returns a verifier to make all redundancy follow from the data. This is right after a kill
    /// in the middle of a write, because old and new data are both valid then.
    pub(crate) fn mending(media: &'a mut Media) -> Verifier<'a> {
        Verifier {
            judges: false,
            ..Verifier::scrubbing(media, Repair::Data)
        }
    }

    /// Returns a verifier to determine the wrong sectors, and to repair as far as `repair` allows.
    pub(crate) fn scrubbing(media: &'a mut Media, repair: Repair) -> Verifier<'a> {
        Verifier {
            media,
            repair,
            judges: true,
            found: RedundancyCheck::default(),
            data: Vec::new(),
            present: Vec::new(),
        }
    }

    /// Compares all redundancy of `extent` of the node at `path`. The redundancy of the members
    /// comes first, because unsound data must not be read.
    pub(crate) fn check(
        &mut self,
        node: &mut StoreNode,
        path: &str,
        extent: Extent,
    ) -> Result<(), StoreError> {
        let StoreNode::Volume(array) = node else {
            return Ok(());
        };
        let extent = array.rows.map_or(extent, |rows| rows.around(extent));
        for part in cut(extent, array, STRIDE_SECTORS) {
            if !array.layout.answers() || array.is_hole(part, self.media)? {
                continue;
            }
            self.check_members(array, path, part)?;
            // Without all members, parity cannot be told from the data that follows from it. Only
            // the journal keeps such an array sound.
            if array.is_redundant() && !(self.repair.changes() && array.has_degraded_parity()) {
                for batch in cut(part, array, BATCH_SECTORS) {
                    self.check_batch(array, path, batch)?;
                }
            }
        }
        Ok(())
    }

    fn check_members(
        &mut self,
        array: &mut Array,
        path: &str,
        extent: Extent,
    ) -> Result<(), StoreError> {
        if array
            .members
            .iter()
            .all(|member| matches!(member, StoreNode::Drive { .. }))
        {
            return Ok(());
        }
        array.prepare(Operation::Write, extent)?;
        let Array { plan, members, .. } = array;
        for io in plan
            .ios()
            .iter()
            .filter(|io| io.operation == Operation::Write)
        {
            let member = io.member as usize;
            self.check(&mut members[member], &below(path, member), io.extent)?;
        }
        Ok(())
    }

    fn check_batch(
        &mut self,
        array: &mut Array,
        path: &str,
        extent: Extent,
    ) -> Result<(), StoreError> {
        if array.is_hole(extent, self.media)? {
            return Ok(());
        }
        self.found.compared_sectors += extent.sectors.0;
        let mut data = std::mem::take(&mut self.data);
        data.resize(extent.sectors.bytes().0 as usize, 0);
        let result = self.compare(array, path, extent, &mut data);
        self.data = data;
        result
    }

    fn compare(
        &mut self,
        array: &mut Array,
        path: &str,
        extent: Extent,
        data: &mut [u8],
    ) -> Result<(), StoreError> {
        array.read(extent, data, self.media)?;
        array.prepare(Operation::Write, extent)?;
        array.make_room();
        let with_parity = array.rows.is_some();
        // A volume with gears may hold the same data in two places, which follow from each other.
        // Equal copies prove nothing then.
        let judges = self.judges && array.layout.present_gear().is_none();
        let is_whole = !array.is_impaired();
        let mut is_judged = false;
        let Array {
            layout,
            plan,
            members,
            scratch,
            ..
        } = array;
        let mut buffers = Buffers {
            request: RequestBytes::From(data),
            scratch,
        };
        read_pieces(plan, plan.pieces(), members, &mut buffers, self.media)?;
        buffers.run_steps(plan);
        for piece in plan.pieces() {
            let io = &plan.ios()[piece.io as usize];
            // With parity, the data in the buffer was just read from this very piece.
            if io.operation != Operation::Write || with_parity && piece.content == Content::Data {
                continue;
            }
            let member = io.member as usize;
            let sectors = filled(layout.member_state(member), piece.lbn, piece.sectors);
            if sectors == Sectors::ZERO {
                continue;
            }
            let wanted = &buffers.at(piece.place, piece.sectors)[..sectors.bytes().0 as usize];
            let Some(differing) = self.compare_piece(&mut members[member], piece.lbn, wanted)?
            else {
                continue;
            };
            if judges {
                is_judged = true;
                break;
            }
            let mismatch = Mismatch {
                member: below(path, member),
                lbn: piece.lbn + Sectors(differing.first),
                row: io.row,
                address: None,
                undecided: self.judges,
            };
            let is_written = self.repair.writes(false);
            self.found.note(mismatch, differing.sectors, is_written);
            if is_written {
                members[member].write(piece.lbn, wanted, self.media)?;
            }
        }
        if is_judged {
            let judged = JudgedWrite {
                layout: &**layout,
                plan,
                buffers: &buffers,
                start: extent.start,
                is_whole,
            };
            return self.judge(judged, members, path);
        }
        Ok(())
    }

    /// Determines the wrong sectors among contradicting ones, and repairs as far as allowed.
    fn judge(
        &mut self,
        JudgedWrite {
            layout,
            plan,
            buffers,
            start,
            is_whole,
        }: JudgedWrite<'_>,
        members: &mut [StoreNode],
        path: &str,
    ) -> Result<(), StoreError> {
        let media = &*self.media;
        let mut read = |member: usize, lbn: Lbn, sectors: Sectors| {
            let sectors = filled(layout.member_state(member), lbn, sectors);
            let mut bytes = vec![0; sectors.bytes().0 as usize];
            if !bytes.is_empty() {
                members[member].read(lbn, &mut bytes, media)?;
            }
            Ok::<_, StoreError>(Some(bytes))
        };
        for finding in judge(plan, buffers, start, is_whole, &mut read)? {
            let mismatch = Mismatch {
                member: below(path, finding.member),
                lbn: finding.lbn,
                row: finding.row,
                address: Some(finding.address),
                undecided: !finding.is_proven,
            };
            let is_written = self.repair.writes(finding.is_proven);
            self.found.note(mismatch, finding.sectors(), is_written);
            if is_written {
                members[finding.member].write(finding.lbn, &finding.right, self.media)?;
            }
        }
        Ok(())
    }

    fn compare_piece(
        &mut self,
        member: &mut StoreNode,
        lbn: Lbn,
        wanted: &[u8],
    ) -> Result<Option<DifferingSectors>, StoreError> {
        self.present.resize(wanted.len(), 0);
        member.read(lbn, &mut self.present, self.media)?;
        Ok(differing(&self.present, wanted))
    }
}

/// Returns the path of a member.
pub(crate) fn below(path: &str, member: usize) -> String {
    if path.is_empty() {
        member.to_string()
    } else {
        format!("{path}.{member}")
    }
}

/// Returns the number of filled sectors among a member's `sectors` from `lbn` on.
fn filled(state: MemberState, lbn: Lbn, sectors: Sectors) -> Sectors {
    match state {
        MemberState::Alive => sectors,
        MemberState::Failed => Sectors::ZERO,
        MemberState::Rebuilding { done } => sectors.min(Sectors(done.0.saturating_sub(lbn.0))),
    }
}

/// Cuts the extent into parts of about `sectors`; into whole rows if the array has rows.
fn cut(extent: Extent, array: &Array, sectors: u64) -> impl Iterator<Item = Extent> + use<> {
    let row = array.rows.map_or(1, |rows| rows.data.0);
    let step = (sectors / row).max(1) * row;
    let end = extent.end().0.min(array.layout.capacity().0);
    (extent.start.0..end)
        .step_by(step as usize)
        .map(move |at| Extent::new(at, step.min(end - at)))
}
