//! Reading of native traces with changed bytes.

use fullstroke_trace::{TraceError, TraceOptions, TraceReader, convert, output_for};
use std::io::Cursor;
use std::path::Path;

/// Number of changed files.
const FILES: usize = 4000;
/// Limit of records that a test reads, because a changed file may claim billions of rows.
const RECORDS_MAX: usize = 20_000;

/// Each changed file ends in records or an error. A panic inside the Parquet library is an error.
#[test]
fn changed_native_traces_give_records_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let original = native(&path);
    let mut random = Dice(0x2545_f491_4f6c_dd1d);
    let (mut whole, mut errors) = (0, 0);
    for round in 0..FILES {
        let mut bytes = original.clone();
        // The footer has a quarter of the bytes, and the reader trusts it most.
        let begin = if round % 2 == 0 {
            0
        } else {
            bytes.len() * 3 / 4
        };
        for _ in 0..1 + random.below(6) {
            let at = begin + random.below(bytes.len() - begin);
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = 0xff,
                2 => bytes[at] = bytes[at].wrapping_add(1),
                _ => bytes[at] = random.below(256) as u8,
            }
        }
        match read(bytes) {
            Ok(()) => whole += 1,
            Err(_) => errors += 1,
        }
    }
    assert!(
        whole > 50 && errors > 500,
        "{whole} read, {errors} errors: the test proves little"
    );
}

/// Returns a small native trace with every kind of request and with unknown completions.
fn native(path: &Path) -> Vec<u8> {
    let mut text = String::from("fio version 3 iolog\n0 a add\n0 a open\n");
    for row in 0..900u64 {
        let action = ["read", "write", "trim", "sync"][(row * row % 7 % 4) as usize];
        text += &format!(
            "{} a {action} {} {}\n",
            row * 3,
            row * row % 9973 * 4096,
            4096
        );
    }
    let options = TraceOptions::for_format("fio");
    let bytes = Box::new(Cursor::new(text.into_bytes()));
    let mut reader = TraceReader::open_read("trace", bytes, &options).unwrap();
    let output = output_for(path, None).unwrap();
    convert(&mut reader, output, path).unwrap();
    std::fs::read(path).unwrap()
}

fn read(bytes: Vec<u8>) -> Result<(), TraceError> {
    let options = TraceOptions {
        format: Some("native".to_owned()),
        skip_bad: 1_000_000,
        ..TraceOptions::default()
    };
    let mut reader = TraceReader::open_read("trace", Box::new(Cursor::new(bytes)), &options)?;
    let mut records = Vec::new();
    reader.next_batch(&mut records, RECORDS_MAX).map(|_| ())
}

/// SplitMix64 (Steele, Lea and Flood, 2014), for repeatable changes.
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
