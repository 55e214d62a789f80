//! Comparing redundancy with its data: the results, and the walk over the pieces of a write.
//!
//! The comparison knows no layout: it takes a planned write of the present data. The plan tells the
//! right parity and copies, and their places. Arrays on devices and volumes in folders give their
//! members as [`ComparedMembers`].

use crate::buffers::Buffers;
use crate::judge::{DifferingSectors, Repair, differing, judge};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Content, MemoryPiece, ParityRows, Plan};
use serde::Serialize;
use std::fmt;

/// Size of a read: 1 MiB.
pub(crate) const BATCH_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
/// Largest number of listed mismatches; all are counted.
const LISTED: usize = 16;

/// Results of a comparison of redundancy with data.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct RedundancyCheck {
    /// Compared sectors of addresses with redundancy. Holes of a folder's files equal each other
    /// and are skipped.
    pub compared_sectors: u64,
    /// Sectors of parity, copies or data in contradiction to the rest, or unreadable.
    pub mismatched_sectors: u64,
    /// Mismatched sectors left as they are, because nothing proves which of the sectors is wrong.
    pub undecided_sectors: u64,
    /// Mismatched sectors written again.
    pub repaired_sectors: u64,
    /// Failed reads of data, parity and copies of an array, of up to 1 MiB each. Unreadable data is
    /// computed from the other members and written again, as for a client's read. Unreadable
    /// redundancy is written again only if the scrub may repair. A folder mends both before the
    /// comparison, and counts none.
    pub failed_reads: u64,
    /// The first mismatches, one for each run of sectors.
    pub first: Vec<Mismatch>,
}

/// A run of sectors of a member in contradiction to the other members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Name of the member.
    #[serde(flatten)]
    pub member: MemberName,
    /// First sector of the run on the member, counted from its data.
    pub lbn: Lbn,
    /// Row of chunks; `None` without parity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// Address of the run in the volume above the member, in sectors. For parity: the address of
    /// the row's first data in the same column. `None` with gears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Lbn>,
    /// True if nothing proves this run wrong.
    pub undecided: bool,
}

/// Name of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum MemberName {
    /// Slot of an array.
    #[serde(rename = "slot")]
    Slot(usize),
    /// Indices from the top, in volumes over volumes: `0.2`.
    #[serde(rename = "member")]
    Path(String),
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberName::Slot(slot) => write!(f, "{slot}"),
            MemberName::Path(path) => f.write_str(path),
        }
    }
}

impl RedundancyCheck {
    /// Adds the results of another comparison.
    pub(crate) fn add(&mut self, other: RedundancyCheck) {
        self.compared_sectors += other.compared_sectors;
        self.mismatched_sectors += other.mismatched_sectors;
        self.undecided_sectors += other.undecided_sectors;
        self.repaired_sectors += other.repaired_sectors;
        self.failed_reads += other.failed_reads;
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
        assert!(
            self.repaired_sectors + self.undecided_sectors <= self.mismatched_sectors,
            "a sector counts as repaired or undecided, and not as mismatched: {self:?}"
        );
        if self.first.len() < LISTED {
            self.first.push(mismatch);
        }
    }
}

/// Members whose sectors are compared.
pub(crate) trait ComparedMembers {
    /// Reason to end the comparison.
    type Error;

    /// Name of a member in the results.
    fn name(&self, member: usize) -> MemberName;

    /// Reads sectors of a member. Returns fewer sectors than requested if the member is not filled
    /// further, and `None` if the sectors cannot be read and the comparison continues without them.
    fn present(
        &mut self,
        member: usize,
        lbn: Lbn,
        sectors: Sectors,
    ) -> Result<Option<&[u8]>, Self::Error>;

    /// Writes sectors of a member. `Ok` if the sectors are written, or the member has failed.
    fn write(&mut self, member: usize, lbn: Lbn, from: &[u8]) -> Result<(), Self::Error>;
}

/// Rule that says which of two contradicting sectors is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Redundancy follows from the data. This is right after a kill or a loss of power in the
    /// middle of a write, because old and new data are both valid then.
    Data,
    /// Nothing decides, because the same data may stand in two places that follow from each other.
    Nothing(Repair),
    /// The other members decide, as far as they can. `is_whole` is true if all members hold the
    /// right data.
    Members {
        repair: Repair,
        start: Lbn,
        is_whole: bool,
    },
}

/// A planned write of the present data, whose steps have been carried out.
pub(crate) struct Comparison<'a> {
    plan: &'a Plan,
    buffers: &'a Buffers<'a>,
    /// True if the data in the buffers was just read from the places where the plan writes it.
    skips_data: bool,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        buffers: &'a Buffers<'a>,
        skips_data: bool,
    ) -> Comparison<'a> {
        Comparison {
            plan,
            buffers,
            skips_data,
        }
    }

    /// Compares the bytes of the planned write with the present bytes, and writes wrong sectors
    /// again as far as the decision allows.
    pub(crate) fn carry_out<M: ComparedMembers>(
        &self,
        decision: Decision,
        members: &mut M,
        found: &mut RedundancyCheck,
    ) -> Result<(), M::Error> {
        match decision {
            Decision::Data => self.compare(Repair::Data, false, members, found),
            Decision::Nothing(repair) => self.compare(repair, true, members, found),
            Decision::Members {
                repair,
                start,
                is_whole,
            } => {
                let mut first = RedundancyCheck::default();
                self.compare(Repair::Nothing, true, members, &mut first)?;
                // `first` has only looked. Its mismatches are counted when they are judged.
                found.failed_reads += first.failed_reads;
                match first.mismatched_sectors {
                    0 => Ok(()),
                    _ => self.judge(start, is_whole, repair, members, found),
                }
            }
        }
    }

    fn compare<M: ComparedMembers>(
        &self,
        repair: Repair,
        is_undecided: bool,
        members: &mut M,
        found: &mut RedundancyCheck,
    ) -> Result<(), M::Error> {
        for piece in self.plan.pieces() {
            let io = &self.plan.ios()[piece.io as usize];
            let is_read_from_here = self.skips_data && piece.content == Content::Data;
            if io.operation != Operation::Write || is_read_from_here {
                continue;
            }
            let member = io.member as usize;
            let wanted = self.buffers.at(piece.place, piece.sectors);
            let present = members.present(member, piece.lbn, piece.sectors)?;
            let is_read = present.is_some();
            let (wanted, difference) = difference(piece, wanted, present);
            found.failed_reads += u64::from(!is_read);
            let Some(differing) = difference else {
                continue;
            };
            let mismatch = Mismatch {
                member: members.name(member),
                lbn: piece.lbn + Sectors(differing.first),
                row: io.row,
                address: None,
                undecided: is_read && is_undecided,
            };
            // This comparison proves only one fault: unreadable sectors must be written again.
            let is_written = repair.writes(!is_read);
            found.note(mismatch, differing.sectors, is_written);
            if is_written {
                members.write(member, piece.lbn, wanted)?;
            }
        }
        Ok(())
    }

    /// Determines the wrong sectors among contradicting ones, and repairs as far as allowed.
    fn judge<M: ComparedMembers>(
        &self,
        start: Lbn,
        is_whole: bool,
        repair: Repair,
        members: &mut M,
        found: &mut RedundancyCheck,
    ) -> Result<(), M::Error> {
        let mut read = |member: usize, lbn: Lbn, sectors: Sectors| {
            let present = members.present(member, lbn, sectors)?;
            Ok(present.map(<[u8]>::to_vec))
        };
        for finding in judge(self.plan, self.buffers, start, is_whole, &mut read)? {
            let mismatch = Mismatch {
                member: members.name(finding.member),
                lbn: finding.lbn,
                row: finding.row,
                address: Some(finding.address),
                undecided: !finding.is_proven,
            };
            let is_written = repair.writes(finding.is_proven);
            found.note(mismatch, finding.sectors(), is_written);
            if is_written {
                members.write(finding.member, finding.lbn, &finding.right)?;
            }
        }
        Ok(())
    }
}

/// Compares a piece as far as the member is filled. An unreadable piece differs, because another
/// write may make it readable. Returns the wanted bytes as well, as far as the member is filled.
fn difference<'a>(
    piece: &MemoryPiece,
    wanted: &'a [u8],
    present: Option<&[u8]>,
) -> (&'a [u8], Option<DifferingSectors>) {
    let Some(present) = present else {
        let all = DifferingSectors {
            first: 0,
            sectors: piece.sectors.0,
        };
        return (wanted, Some(all));
    };
    assert!(
        present.len() <= wanted.len(),
        "{} bytes were read for a piece of {}",
        present.len(),
        wanted.len()
    );
    let wanted = &wanted[..present.len()];
    (wanted, differing(present, wanted))
}

/// Cuts the extent, up to `capacity`, into parts of about `sectors`; into whole rows if there are
/// rows, because parity belongs to whole rows.
pub(crate) fn cut(
    extent: Extent,
    rows: Option<ParityRows>,
    capacity: Sectors,
    sectors: u64,
) -> impl Iterator<Item = Extent> + use<> {
    let row = rows.map_or(1, |rows| rows.data.0);
    let step = (sectors / row).max(1) * row;
    let end = extent.end().0.min(capacity.0);
    (extent.start.0..end)
        .step_by(step as usize)
        .map(move |at| Extent::new(at, step.min(end - at)))
}
