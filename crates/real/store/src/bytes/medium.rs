//! What keeps the bytes of one drive.

use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Something that the host is to make durable, from whatever thread.
pub trait Durable: Send + Sync {
    /// Waits until all that was written before is safe from a loss of power.
    ///
    /// # Errors
    /// The host's. What was not durable before may be lost then, and the next
    /// call may know nothing of it: a failed call must never be repeated in the
    /// hope that it ends better.
    fn make_durable(&self) -> io::Result<()>;
}

impl Durable for File {
    fn make_durable(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Keeps the bytes of one drive. What was never written reads as zeros and
/// takes no room.
///
/// - **Getters**: [`name`](Medium::name), [`read`](Medium::read),
///   [`next_data`](Medium::next_data), [`files`](Medium::files).
/// - **Mutators**: [`write`](Medium::write), [`zero`](Medium::zero),
///   [`clear`](Medium::clear).
///
/// Extents lie within the drive, buffers hold whole sectors: the callers see
/// to that. Errors are the host's.
pub trait Medium: Send {
    /// What it is called in errors: the path of a file.
    fn name(&self) -> String;

    /// Reads from `lbn` on.
    ///
    /// # Errors
    /// The host's; the buffer holds anything then.
    fn read(&self, lbn: Lbn, into: &mut [u8]) -> io::Result<()>;

    /// Writes from `lbn` on.
    ///
    /// # Errors
    /// The host's; any part may have been written then.
    fn write(&mut self, lbn: Lbn, from: &[u8]) -> io::Result<()>;

    /// Makes the extent read as zeros, and gives its room back if it is to be a
    /// `hole`.
    ///
    /// # Errors
    /// The host's; any part may have been written then.
    fn zero(&mut self, extent: Extent, hole: bool) -> io::Result<()>;

    /// The first run of sectors within `extent` that takes room, if any. What
    /// takes none reads as zeros.
    ///
    /// # Errors
    /// The host's.
    fn next_data(&self, extent: Extent) -> io::Result<Option<Extent>>;

    /// Makes all of it read as zeros and gives the room back.
    ///
    /// # Errors
    /// The host's.
    fn clear(&mut self) -> io::Result<()>;

    /// Puts a label behind the bytes, durably: see the folder in `lib.rs`. Media
    /// that nobody can mix up need none.
    ///
    /// # Errors
    /// The host's.
    fn write_label(&mut self, _label: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// What is to be made durable, if there is any.
    fn files(&self) -> Vec<Arc<dyn Durable>>;
}

/// Whether there is nothing but zeros.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; 4 << 10] = [0; 4 << 10];
    bytes
        .chunks(ZEROS.len())
        .all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// The byte at which a sector begins.
pub(crate) fn byte_of(lbn: Lbn) -> u64 {
    lbn.0 * SECTOR_BYTES
}

/// The extent of a buffer that begins at `lbn`.
///
/// # Panics
/// If the buffer is no whole number of sectors: the caller's mistake.
pub(crate) fn extent_of(lbn: Lbn, bytes: usize) -> Extent {
    let bytes = bytes as u64;
    assert!(
        bytes.is_multiple_of(SECTOR_BYTES),
        "a buffer of {bytes} bytes is no whole number of sectors"
    );
    Extent::new(lbn.0, bytes / SECTOR_BYTES)
}
