//! Compares a whole file of the reference with its digest in the oracle.

use crate::oracle::Table;
use sha2::{Digest as _, Sha256};

/// Stops the test if the oracle's column `column` is no excerpt of the unpacked file, because the
/// whole file and the excerpt would then prove different things.
pub fn check_digest(table: &Table, column: &str, unpacked: &[u8]) {
    let [_, digest, file] = table
        .sources
        .iter()
        .find(|source| source[0] == column)
        .unwrap_or_else(|| panic!("the oracle names no source of `{column}`"));
    let found: String = Sha256::digest(unpacked)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(
        *digest == found,
        "{file} has the SHA-256 {found}, the oracle is of one with {digest}: run tools/oracle.py"
    );
}
