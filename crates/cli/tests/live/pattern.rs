//! Bytes that encode their place and their time of writing.

use fullstroke_units::{Random, Seed};

/// Returns a random generator with a seed from `name`.
pub fn random(name: &str) -> Random {
    Seed(20).stream(name)
}

/// Fills sectors at a byte of the export. Each word holds its place and the version.
pub fn fill(offset_bytes: u64, version: u64, into: &mut [u8]) {
    for (word, at) in into.chunks_mut(8).zip((offset_bytes..).step_by(8)) {
        word.copy_from_slice(&(at << 20 | version & 0xF_FFFF).to_le_bytes()[..word.len()]);
    }
}

/// Returns a new buffer with the same contents as [`fill`].
pub fn bytes(offset_bytes: u64, version: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(offset_bytes, version, &mut bytes);
    bytes
}

/// Asserts that two byte strings are equal. The message names the first difference.
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
