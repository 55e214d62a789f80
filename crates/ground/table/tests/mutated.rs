//! Reading of files with changed bytes. This file has only one test, because the test counts the
//! panics of the whole process.

#![allow(clippy::disallowed_methods)]

use fullstroke_table::{ColumnType, Schema, TableError, TableReader};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file with any changed bytes gives rows or an error. No panic leaves the reader, and none is
/// printed. The memory depends on the size of the file, not on a number in it.
#[test]
fn mutated_files_give_rows_or_an_error() {
    static PANICS: AtomicU64 = AtomicU64::new(0);
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        eprintln!("{panic}");
    }));
    let schema = Schema::new()
        .column("arrival_ns", ColumnType::U64)
        .column("operation", ColumnType::Text)
        .optional("completed_ns", ColumnType::U64);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples");
    let mut samples: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "parquet")
        })
        .collect();
    samples.sort();
    assert!(!samples.is_empty(), "no samples in {folder}");
    let mut random = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut errors, mut whole) = (0, 0);
    for sample in &samples {
        let original = std::fs::read(sample).unwrap();
        let footer = footer_of(&original);
        // Most mutations hit the footer, because a reader trusts its contents.
        for round in 0..ROUNDS {
            let mut bytes = original.clone();
            let region = if round % 4 == 0 {
                0..original.len()
            } else {
                footer.clone()
            };
            for _ in 0..1 + random.below(4) {
                let at = region.start + random.below(region.len());
                match random.below(5) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => bytes[at] = 0xff,
                    2 => bytes[at] |= 0x80,
                    3 => bytes[at] = random.below(256) as u8,
                    _ => bytes.truncate(original.len().max(at + 1) - random.below(9)),
                }
                if bytes.len() < region.end {
                    break;
                }
            }
            match read_all(&bytes, &schema) {
                Ok(()) => whole += 1,
                Err(_) => errors += 1,
            }
        }
    }
    let _ = std::panic::take_hook();
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "panics were printed");
    assert!(
        errors > 100 && whole > 0,
        "{errors} errors, {whole} read: the test proves little"
    );
}

/// Number of mutations of each sample.
const ROUNDS: usize = 1000;

/// Returns the range of the footer's metadata. The length of the metadata precedes the last four
/// bytes (Apache Parquet format, "File format").
fn footer_of(file: &[u8]) -> std::ops::Range<usize> {
    let length: [u8; 4] = file[file.len() - 8..file.len() - 4].try_into().unwrap();
    file.len() - 8 - u32::from_le_bytes(length) as usize..file.len() - 4
}

/// Limit of rows that a test reads, because a mutated file may claim billions of rows.
const ROWS_MAX: usize = 20_000;

fn read_all(bytes: &[u8], schema: &Schema) -> Result<(), TableError> {
    let mut reader = TableReader::from_bytes(Path::new("mutated"), bytes.to_vec(), schema)?;
    let mut rows = 0;
    while let Some(batch) = reader.next_batch(4096)?
        && rows < ROWS_MAX
    {
        rows += batch.rows();
    }
    Ok(())
}

/// SplitMix64 (Steele, Lea and Flood, 2014), for repeatable mutations.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % limit as u64) as usize
    }
}
