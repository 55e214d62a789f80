//! The tree of drives and volumes, and the path of a request through the tree.

use crate::buffers::extent_of;
use crate::bytes::StoreError;
use crate::bytes::array::MemberArray;
use crate::bytes::media::Media;
use crate::bytes::member::{Member, Visit};
use crate::memory::is_zero;
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::Shape;
use std::ops::ControlFlow;

/// Unit of sparse writing: zeros of this length and alignment within the buffer take no room. 4 KiB
/// is the block size of most file systems.
const GRANULE_BYTES: usize = 4 << 10;

/// A volume with drives or volumes as members.
pub(crate) type Array = MemberArray<StoreNode>;

/// A drive, or a volume of members.
pub(crate) enum StoreNode {
    Drive {
        /// Index among the media.
        medium: usize,
        capacity: Sectors,
    },
    Volume(Box<Array>),
}

/// Checks that a plan stays within a drive. The label of a drive lies behind its capacity.
#[inline]
fn check_drive(lbn: Lbn, bytes: usize, capacity: Sectors) {
    debug_assert!(
        extent_of(lbn, bytes).within(capacity),
        "{bytes} bytes at sector {lbn} lie beyond the {capacity} of the drive"
    );
}

impl StoreNode {
    /// Builds the tree of `shape`, and appends the capacity of each drive to `drives`. The index of
    /// a drive in `drives` is the index of its medium.
    pub(crate) fn new(shape: Shape, drives: &mut Vec<Sectors>) -> StoreNode {
        match shape {
            Shape::Drive(capacity) => {
                drives.push(capacity);
                StoreNode::Drive {
                    medium: drives.len() - 1,
                    capacity,
                }
            }
            Shape::Volume { layout, members } => {
                let members = members
                    .into_iter()
                    .map(|member| StoreNode::new(member, drives))
                    .collect();
                StoreNode::Volume(Box::new(Array::new(layout, members)))
            }
        }
    }

    pub(crate) fn capacity(&self) -> Sectors {
        match self {
            StoreNode::Drive { capacity, .. } => *capacity,
            StoreNode::Volume(array) => array.layout.capacity(),
        }
    }

    /// True if all addresses have their data.
    pub(crate) fn answers(&self) -> bool {
        match self {
            StoreNode::Drive { .. } => true,
            StoreNode::Volume(array) => array.layout.answers(),
        }
    }

    /// Returns the indices of the media of this node and of the nodes below it. The indices are
    /// consecutive.
    pub(crate) fn media(&self) -> Vec<usize> {
        match self {
            StoreNode::Drive { medium, .. } => vec![*medium],
            StoreNode::Volume(array) => array.members.iter().flat_map(StoreNode::media).collect(),
        }
    }
}

impl Member for StoreNode {
    fn is_volume(&self) -> bool {
        matches!(self, StoreNode::Volume(_))
    }

    #[inline]
    fn read(&mut self, lbn: Lbn, into: &mut [u8], media: &Media) -> Result<(), StoreError> {
        match self {
            StoreNode::Drive { medium, capacity } => {
                check_drive(lbn, into.len(), *capacity);
                media.read(*medium, lbn, into)
            }
            StoreNode::Volume(array) => array.read(extent_of(lbn, into.len()), into, media),
        }
    }

    #[inline]
    fn write(&mut self, lbn: Lbn, from: &[u8], media: &mut Media) -> Result<(), StoreError> {
        match self {
            StoreNode::Drive { medium, capacity } => {
                check_drive(lbn, from.len(), *capacity);
                media.write(*medium, lbn, from)
            }
            StoreNode::Volume(array) => array.write(extent_of(lbn, from.len()), from, media),
        }
    }

    fn write_sparsely(
        &mut self,
        lbn: Lbn,
        from: &[u8],
        media: &mut Media,
    ) -> Result<(), StoreError> {
        let mut at = 0;
        while at < from.len() {
            let zero = |at: usize| is_zero(&from[at..from.len().min(at + GRANULE_BYTES)]);
            let zeros = zero(at);
            let mut end = at;
            while end < from.len() && zero(end) == zeros {
                end = from.len().min(end + GRANULE_BYTES);
            }
            let extent = extent_of(Lbn(lbn.0 + at as u64 / SECTOR_BYTES), end - at);
            if zeros {
                self.make_hole(extent, media)?;
            } else {
                self.write(extent.start, &from[at..end], media)?;
            }
            at = end;
        }
        Ok(())
    }

    fn make_hole(&mut self, extent: Extent, media: &mut Media) -> Result<(), StoreError> {
        if self.is_hole(extent, media)? {
            Ok(())
        } else {
            self.zero(extent, true, media)
        }
    }

    fn zero(&mut self, extent: Extent, hole: bool, media: &mut Media) -> Result<(), StoreError> {
        match self {
            StoreNode::Drive { medium, .. } => media.zero(*medium, extent, hole),
            StoreNode::Volume(array) => array.zero(extent, hole, media),
        }
    }

    fn discard(&mut self, extent: Extent, media: &mut Media) -> Result<(), StoreError> {
        match self {
            StoreNode::Drive { medium, .. } => media.zero(*medium, extent, true),
            StoreNode::Volume(array) => array.discard(extent, media),
        }
    }

    fn allocated(
        &mut self,
        extent: Extent,
        media: &Media,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        match self {
            StoreNode::Drive { medium, .. } => allocated_of_drive(*medium, extent, media, visit),
            StoreNode::Volume(array) => array.allocated(extent, media, visit),
        }
    }

    fn is_hole(&mut self, extent: Extent, media: &Media) -> Result<bool, StoreError> {
        match self {
            StoreNode::Drive { medium, capacity } => media.is_hole(*medium, *capacity, extent),
            StoreNode::Volume(array) => array.is_hole(extent, media),
        }
    }
}

fn allocated_of_drive(
    medium: usize,
    extent: Extent,
    media: &Media,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, StoreError> {
    let mut rest = extent;
    while rest.sectors > Sectors::ZERO {
        let end = rest.end();
        let data = media.next_data(medium, rest)?.unwrap_or(Extent {
            start: end,
            sectors: Sectors::ZERO,
        });
        let hole = Extent {
            start: rest.start,
            sectors: data.start.since(rest.start),
        };
        for (run, takes_room) in [(hole, false), (data, true)] {
            if run.sectors > Sectors::ZERO && visit(run, takes_room).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        rest = Extent {
            start: data.end(),
            sectors: end.since(data.end()),
        };
    }
    Ok(ControlFlow::Continue(()))
}
