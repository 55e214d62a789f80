//! One volume of the tree: carries plans out on its members.

use crate::buffers::{Buffers, RequestBytes};
use crate::bytes::StoreError;
use crate::bytes::error::first_error;
use crate::bytes::gathered::Gathered;
use crate::bytes::media::Media;
use crate::bytes::member::{Member, Visit};
use crate::member_layout::MemberLayout;
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{BufferPlace, Detail, Layout, MemoryPiece, Plan};
use std::ops::ControlFlow;

/// Length of the buffer for writes of zeros: 64 KiB.
const ZEROS: usize = 64 << 10;

/// A layout, its members, and the memory of its plans.
pub(crate) struct MemberArray<M> {
    pub(crate) layout: MemberLayout,
    pub(crate) members: Vec<M>,
    pub(crate) plan: Plan,
    pub(crate) scratch: Vec<u8>,
    /// True if members are volumes.
    nested: bool,
    gathered: Gathered,
}

impl<M: Member> MemberArray<M> {
    pub(crate) fn new(layout: Box<dyn Layout>, members: Vec<M>) -> MemberArray<M> {
        let nested = members.iter().any(Member::is_volume);
        MemberArray {
            layout: MemberLayout::new(layout),
            members,
            plan: Plan::new(Detail::Bytes),
            scratch: Vec::new(),
            nested,
            gathered: Gathered::default(),
        }
    }

    /// True if the volume has parity, and some data exists only as parity: a member is missing or
    /// in standby.
    pub(crate) fn has_degraded_parity(&self) -> bool {
        self.layout.rows().is_some() && self.layout.lacks_members()
    }

    /// Plans a request.
    #[inline]
    pub(crate) fn prepare(
        &mut self,
        operation: Operation,
        extent: Extent,
    ) -> Result<(), StoreError> {
        Ok(self.layout.plan(operation, extent, &mut self.plan)?)
    }

    /// Makes the scratch buffer long enough for the plan. Its content does not matter.
    pub(crate) fn make_room(&mut self) {
        let bytes = self.plan.scratch().bytes().0 as usize;
        // The buffer only grows, so that a steady load allocates nothing.
        if self.scratch.len() < bytes {
            self.scratch = vec![0; bytes];
        }
    }

    #[inline]
    pub(crate) fn read(
        &mut self,
        extent: Extent,
        into: &mut [u8],
        media: &Media,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(
            into.len() as u64,
            extent.sectors.bytes().0,
            "{extent:?} is read into another length"
        );
        self.prepare(Operation::Read, extent)?;
        self.make_room();
        let MemberArray {
            plan,
            members,
            scratch,
            ..
        } = self;
        let mut buffers = Buffers {
            request: RequestBytes::Into(into),
            scratch,
        };
        read_pieces(plan, plan.pieces(), members, &mut buffers, media)?;
        buffers.run_steps(plan);
        Ok(())
    }

    #[inline]
    pub(crate) fn write(
        &mut self,
        extent: Extent,
        from: &[u8],
        media: &mut Media,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(
            from.len() as u64,
            extent.sectors.bytes().0,
            "{extent:?} is written from another length"
        );
        self.prepare(Operation::Write, extent)?;
        self.carry_out(from, media)
    }

    /// Carries out the plan of a write or of a rebuild. The strands of a plan and their memory are
    /// independent. So all strands may read, then all compute, then all write.
    ///
    /// If one member cannot be written, all others are written nevertheless. So the row is whole
    /// without the failed member. The caller is likely to fail this member next.
    #[inline]
    pub(crate) fn carry_out(&mut self, from: &[u8], media: &mut Media) -> Result<(), StoreError> {
        self.carry_out_by(M::write, from, media)
    }

    fn carry_out_by(
        &mut self,
        write: impl Fn(&mut M, Lbn, &[u8], &mut Media) -> Result<(), StoreError>,
        from: &[u8],
        media: &mut Media,
    ) -> Result<(), StoreError> {
        self.make_room();
        let MemberArray {
            layout,
            plan,
            members,
            scratch,
            nested,
            gathered,
            ..
        } = self;
        let mut buffers = Buffers {
            request: RequestBytes::From(from),
            scratch,
        };
        if layout.gear().is_some() {
            return carry_out_strands(plan, members, &mut buffers, write, media);
        }
        read_pieces(plan, plan.pieces(), members, &mut buffers, media)?;
        buffers.run_steps(plan);
        // Members that are volumes get the pieces of each write together, so that a whole row below
        // stays a whole row.
        if *nested {
            return gathered.write(plan, &buffers, members, media);
        }
        write_pieces(plan, plan.pieces(), members, &buffers, write, media)
    }

    /// Carries out the plan of a rebuild, and takes no room for zeros: holes are filled with holes.
    pub(crate) fn fill(&mut self, media: &mut Media) -> Result<(), StoreError> {
        if self.fills_from_holes(media)? {
            // Any parity of zeros is zero, for all coefficients. So holes need not be read.
            let MemberArray { plan, members, .. } = self;
            let mut result = Ok(());
            for io in plan
                .ios()
                .iter()
                .filter(|io| io.operation == Operation::Write)
            {
                result = first_error(
                    result,
                    members[io.member as usize].make_hole(io.extent, media),
                );
            }
            return result;
        }
        self.carry_out_by(M::write_sparsely, &[], media)
    }

    /// True if the plan reads only holes.
    fn fills_from_holes(&mut self, media: &Media) -> Result<bool, StoreError> {
        let MemberArray { plan, members, .. } = self;
        for io in plan
            .ios()
            .iter()
            .filter(|io| io.operation == Operation::Read)
        {
            if !members[io.member as usize].is_hole(io.extent, media)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the extent read as zeros. The room of whole rows and their parity can be given back,
    /// because a row of zeros is consistent. Parts of rows are written.
    ///
    /// A volume with gears writes all zeros, because a write also updates the copies in the soft
    /// state.
    pub(crate) fn zero(
        &mut self,
        extent: Extent,
        hole: bool,
        media: &mut Media,
    ) -> Result<(), StoreError> {
        if self.layout.gear().is_some() {
            return self.write_zeros(extent, media);
        }
        let Some(rows) = self.layout.rows() else {
            return self.zero_wholly(extent, hole, media);
        };
        let whole = rows.within(extent);
        if whole.sectors == Sectors::ZERO {
            return self.write_zeros(extent, media);
        }
        let head = Extent {
            start: extent.start,
            sectors: whole.start.since(extent.start),
        };
        let tail = Extent {
            start: whole.end(),
            sectors: extent.end().since(whole.end()),
        };
        self.write_zeros(head, media)?;
        self.zero_wholly(whole, hole, media)?;
        self.write_zeros(tail, media)
    }

    fn zero_wholly(
        &mut self,
        extent: Extent,
        hole: bool,
        media: &mut Media,
    ) -> Result<(), StoreError> {
        self.prepare(Operation::Discard, extent)?;
        let MemberArray { plan, members, .. } = self;
        let mut result = Ok(());
        for io in plan.ios() {
            result = first_error(
                result,
                members[io.member as usize].zero(io.extent, hole, media),
            );
        }
        result
    }

    fn write_zeros(&mut self, extent: Extent, media: &mut Media) -> Result<(), StoreError> {
        // Zeros in pieces: a request for terabytes of zeros must not need as much memory.
        let zeros = [0; ZEROS];
        let (mut at, end) = (extent.start, extent.end());
        while at < end {
            let sectors = Sectors(end.since(at).0.min(ZEROS as u64 / SECTOR_BYTES));
            let bytes = &zeros[..sectors.bytes().0 as usize];
            self.write(Extent { start: at, sectors }, bytes, media)?;
            at += sectors;
        }
        Ok(())
    }

    /// Gives back the room of whole rows, or of all copies. The members are told to become zeros,
    /// not only to discard: a device may ignore a discard, and members of a row or copies would
    /// then differ.
    ///
    /// A volume with gears discards nothing, because the copies in the soft state would have to
    /// follow.
    pub(crate) fn discard(&mut self, extent: Extent, media: &mut Media) -> Result<(), StoreError> {
        if self.layout.gear().is_some() {
            return Ok(());
        }
        if let Some(rows) = self.layout.rows() {
            let whole = rows.within(extent);
            return if whole.sectors == Sectors::ZERO {
                Ok(())
            } else {
                self.zero_wholly(whole, true, media)
            };
        }
        // Copies must stay equal, as the members of a row must.
        if self.layout.is_redundant() {
            return self.zero_wholly(extent, true, media);
        }
        self.prepare(Operation::Discard, extent)?;
        let MemberArray { plan, members, .. } = self;
        plan.ios()
            .iter()
            .try_for_each(|io| members[io.member as usize].discard(io.extent, media))
    }

    /// As [`Member::allocated`]: asks the members of a read of the extent. Computed data counts
    /// as data.
    pub(crate) fn allocated(
        &mut self,
        extent: Extent,
        media: &Media,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        // Lost data is no hole, so the extent counts as data.
        if self.prepare(Operation::Read, extent).is_err() {
            return Ok(visit(extent, true));
        }
        let MemberArray { plan, members, .. } = self;
        let mut pieces: Vec<(Sectors, u32, Extent)> = plan
            .pieces()
            .iter()
            .filter_map(|piece| match piece.place {
                BufferPlace::Request(at) => {
                    let member = plan.ios()[piece.io as usize].member;
                    Some((
                        at,
                        member,
                        Extent {
                            start: piece.lbn,
                            sectors: piece.sectors,
                        },
                    ))
                }
                BufferPlace::Scratch(_) => None,
            })
            .collect();
        // A plan names pieces by member; the visitor wants them in the order of the volume's
        // addresses.
        pieces.sort_unstable_by_key(|&(at, ..)| at);
        let mut at = extent.start;
        for (offset, member, piece) in pieces {
            let start = extent.start + offset;
            if start > at
                && visit(
                    Extent {
                        start: at,
                        sectors: start.since(at),
                    },
                    true,
                )
                .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            let mut shifted = |run: Extent, takes_room| {
                let start = start + run.start.since(piece.start);
                visit(Extent { start, ..run }, takes_room)
            };
            if members[member as usize]
                .allocated(piece, media, &mut shifted)?
                .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            at = start + piece.sectors;
        }
        assert!(
            at <= extent.end(),
            "a plan of {extent:?} reaches up to {at}"
        );
        let rest = Extent {
            start: at,
            sectors: extent.end().since(at),
        };
        Ok(if rest.sectors > Sectors::ZERO {
            visit(rest, true)
        } else {
            ControlFlow::Continue(())
        })
    }

    /// As [`Member::is_hole`]: asks about every extent of a write.
    pub(crate) fn is_hole(&mut self, extent: Extent, media: &Media) -> Result<bool, StoreError> {
        self.prepare(Operation::Write, extent)?;
        let MemberArray { plan, members, .. } = self;
        for io in plan.ios() {
            if !members[io.member as usize].is_hole(io.extent, media)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Carries out a plan strand by strand. Strands of a volume with gears may change the same parity
/// of the soft state, so one strand must see the writes of the one before.
fn carry_out_strands<M: Member>(
    plan: &Plan,
    members: &mut [M],
    buffers: &mut Buffers<'_>,
    write: impl Fn(&mut M, Lbn, &[u8], &mut Media) -> Result<(), StoreError>,
    media: &mut Media,
) -> Result<(), StoreError> {
    let (mut pieces, mut bands) = (plan.pieces(), plan.bands());
    let mut result = Ok(());
    for (index, strand) in plan.strands().iter().enumerate() {
        let end = strand.second_phase().end;
        // Pieces and bands stand in the order of the strands (see `Plan`), so that each strand
        // takes a run from the front.
        let (own, rest) =
            pieces.split_at(pieces.partition_point(|piece| (piece.io as usize) < end));
        let (own_bands, later) =
            bands.split_at(bands.partition_point(|band| band.strand as usize <= index));
        read_pieces(plan, own, members, buffers, media)?;
        buffers.run_bands(plan, own_bands);
        result = first_error(
            result,
            write_pieces(plan, own, members, buffers, &write, media),
        );
        (pieces, bands) = (rest, later);
    }
    result
}

/// Writes the given pieces. If one write fails, the others are carried out nevertheless.
#[inline]
fn write_pieces<M: Member>(
    plan: &Plan,
    pieces: &[MemoryPiece],
    members: &mut [M],
    buffers: &Buffers<'_>,
    write: impl Fn(&mut M, Lbn, &[u8], &mut Media) -> Result<(), StoreError>,
    media: &mut Media,
) -> Result<(), StoreError> {
    let mut result = Ok(());
    for piece in pieces {
        let io = &plan.ios()[piece.io as usize];
        if io.operation == Operation::Write {
            let bytes = buffers.at(piece.place, piece.sectors);
            let written = write(&mut members[io.member as usize], piece.lbn, bytes, media);
            result = first_error(result, written);
        }
    }
    result
}

/// Reads the given pieces of the plan.
#[inline]
pub(crate) fn read_pieces<M: Member>(
    plan: &Plan,
    pieces: &[MemoryPiece],
    members: &mut [M],
    buffers: &mut Buffers<'_>,
    media: &Media,
) -> Result<(), StoreError> {
    for piece in pieces {
        let io = &plan.ios()[piece.io as usize];
        if io.operation == Operation::Read {
            let into = buffers.at_mut(piece.place, piece.sectors);
            members[io.member as usize].read(piece.lbn, into, media)?;
        }
    }
    Ok(())
}
