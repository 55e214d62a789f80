//! Bytes that tell where and when they were written.

use fullstroke_units::{Random, Seed};

/// A source of chance of that name.
pub fn random(name: &str) -> Random {
    Seed(20).stream(name)
}

/// Fills sectors that begin at a byte of the export: each word holds where it
/// stands and which writing it was.
pub fn fill(offset_bytes: u64, version: u64, into: &mut [u8]) {
    for (word, at) in into.chunks_mut(8).zip((offset_bytes..).step_by(8)) {
        word.copy_from_slice(&(at << 20 | version & 0xF_FFFF).to_le_bytes()[..word.len()]);
    }
}

/// The same as a new buffer.
pub fn bytes(offset_bytes: u64, version: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(offset_bytes, version, &mut bytes);
    bytes
}

/// Requires that two runs of bytes are the same, and says where they are not.
pub fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(at) = found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected)
    {
        let from = at & !7;
        let end = (from + 8).min(found.len());
        panic!(
            "{what}: byte {at}: found {:x?}; expected {:x?}",
            &found[from..end],
            &expected[from..end]
        );
    }
}
