//! A member of a volume: a drive, or a volume again.

use crate::bytes::StoreError;
use crate::bytes::media::Media;
use fullstroke_contract::Extent;
use fullstroke_units::Lbn;
use std::ops::ControlFlow;

/// Callback for consecutive runs. The flag is true if the run takes room. The callback may end the
/// search.
pub(crate) type Visit<'a> = dyn FnMut(Extent, bool) -> ControlFlow<()> + 'a;

/// A member. A volume knows its members by this trait alone.
pub(crate) trait Member: Sized {
    /// True for a volume.
    fn is_volume(&self) -> bool;

    /// Reads the bytes from `lbn` on.
    fn read(&mut self, lbn: Lbn, into: &mut [u8], media: &Media) -> Result<(), StoreError>;

    /// Writes the bytes from `lbn` on.
    fn write(&mut self, lbn: Lbn, from: &[u8], media: &mut Media) -> Result<(), StoreError>;

    /// Writes the bytes, but makes holes of zeros.
    fn write_sparsely(
        &mut self,
        lbn: Lbn,
        from: &[u8],
        media: &mut Media,
    ) -> Result<(), StoreError>;

    /// Makes the extent a hole; an existing hole stays as it is.
    fn make_hole(&mut self, extent: Extent, media: &mut Media) -> Result<(), StoreError>;

    /// Makes the extent read as zeros; see [`Device::zero`](crate::Device::zero).
    fn zero(&mut self, extent: Extent, hole: bool, media: &mut Media) -> Result<(), StoreError>;

    /// Gives back the room of the extent as far as possible. Discarded sectors read as zeros.
    fn discard(&mut self, extent: Extent, media: &mut Media) -> Result<(), StoreError>;

    /// Calls `visit` for each run of `extent`, with true if the run takes room. The other runs read
    /// as zeros. In doubt a run takes room.
    fn allocated(
        &mut self,
        extent: Extent,
        media: &Media,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StoreError>;

    /// True if neither `extent` nor its parity and copies take room.
    fn is_hole(&mut self, extent: Extent, media: &Media) -> Result<bool, StoreError>;
}
