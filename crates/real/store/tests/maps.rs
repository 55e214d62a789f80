//! Maps of arrays: every block of an array is written with its number, and every block of its
//! members is read back (Lloyd's test of his driver, 2002). Arrays over arrays get the same
//! test.

use fullstroke_contract::registry::Keys;
use fullstroke_store::{
    Array, Design, Device, FileDevice, JournalPolicy, OpenPurpose, RequestScratch, assemble, create,
};
use fullstroke_volume::REGISTRY;
use serde_json::json;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512;
const MEMBERS: usize = 4;

/// Returns a sector with its number, unlike any parity of other sectors.
fn numbered(number: u64) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    let mut state = number;
    for word in sector.chunks_exact_mut(8) {
        word.copy_from_slice(&state.to_le_bytes());
        // SplitMix64 (Steele, Lea & Flood 2014), figure 15.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^= state >> 31;
    }
    sector
}

fn number_of(sector: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(sector[..8].try_into().unwrap());
    (numbered(number) == sector).then_some(number)
}

fn design(layout: &str, member_bytes: Option<u64>) -> Design {
    let zone =
        json!([{ "sectors": 4096, "bytes_per_s": 200 }, { "sectors": 2048, "bytes_per_s": 100 }]);
    let keys = match layout {
        "lzvs-geo" => json!({ "member_zones": vec![zone; MEMBERS] }),
        "e-paraid" => json!({ "chunk": "8KiB", "cluster": 4 }),
        "jbod" | "raid1" | "lzvs" | "lzvs-naive" => json!({}),
        _ => json!({ "chunk": "8KiB" }),
    };
    Design {
        name: "vol".into(),
        layout: layout.into(),
        keys: keys.as_object().cloned().unwrap_or_else(Keys::new),
        journal: JournalPolicy::Partial,
        spares: 0,
        force: false,
        sparse: true,
        member_bytes,
        region_bytes: Some(64 << 10),
        measured: Vec::new(),
    }
}

fn files(folder: &Path, name: &str, sizes: &[u64]) -> Vec<PathBuf> {
    let make = |(index, bytes): (usize, &u64)| {
        let path = folder.join(format!("{name}{index}"));
        File::create(&path).unwrap().set_len(*bytes).unwrap();
        path
    };
    sizes.iter().enumerate().map(make).collect()
}

fn opened(paths: &[PathBuf]) -> Vec<Arc<dyn Device>> {
    let open = |path: &PathBuf| {
        Arc::new(FileDevice::open(path, OpenPurpose::Own).unwrap()) as Arc<dyn Device>
    };
    paths.iter().map(open).collect()
}

fn write_numbers(array: &Array) {
    let mut worker = RequestScratch::new();
    let sectors = array.capacity().0;
    // Pieces that begin and end within chunks.
    let mut at = 0;
    while at < sectors {
        let length = (37 + at % 91).min(sectors - at);
        let bytes: Vec<u8> = (at..at + length).flat_map(numbered).collect();
        array
            .write(&mut worker, at * SECTOR as u64, &bytes)
            .unwrap();
        at += length;
    }
    array.flush().unwrap();
}

fn check_numbers(array: &Array) {
    let mut worker = RequestScratch::new();
    let mut bytes = vec![0; array.capacity().bytes().0 as usize];
    array.read(&mut worker, 0, &mut bytes).unwrap();
    for (number, sector) in bytes.chunks_exact(SECTOR).enumerate() {
        assert_eq!(number_of(sector), Some(number as u64));
    }
}

/// Returns how often each number stands on the members, and the sectors without a number.
fn count(data: &[Vec<u8>], capacity: u64) -> (Vec<u64>, Vec<(usize, usize)>) {
    let (mut counts, mut others) = (vec![0; capacity as usize], Vec::new());
    for (member, bytes) in data.iter().enumerate() {
        for (at, sector) in bytes.chunks_exact(SECTOR).enumerate() {
            match number_of(sector).filter(|&number| number < capacity) {
                Some(number) => counts[number as usize] += 1,
                None => others.push((member, at)),
            }
        }
    }
    (counts, others)
}

fn check_layout(layout: &str, sizes: &[u64; MEMBERS], member_bytes: Option<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(folder.path(), "member", sizes);
    let roster = create(&design(layout, member_bytes), &opened(&paths)).unwrap();
    let (array, _) = assemble(&opened(&paths), false).unwrap();
    let capacity = array.capacity().0;
    write_numbers(&array);
    check_numbers(&array);
    array.stop().unwrap();
    drop(array);
    let data: Vec<Vec<u8>> = paths
        .iter()
        .zip(&roster.slots)
        .map(|(path, slot)| {
            let bytes = std::fs::read(path).unwrap();
            bytes[roster.data_at as usize..][..slot.sectors as usize * SECTOR].to_vec()
        })
        .collect();
    let (counts, others) = count(&data, capacity);
    let copies = match layout {
        "raid1" => MEMBERS as u64,
        "raid10" => 2,
        _ => 1,
    };
    let wrong = counts.iter().position(|&count| count != copies);
    assert_eq!(
        wrong, None,
        "{layout}: how often a sector stands on the members"
    );
    let is_zero = |&(member, at): &(usize, usize)| {
        data[member][at * SECTOR..][..SECTOR]
            .iter()
            .all(|&byte| byte == 0)
    };
    let has_parity = ["raid4", "raid5", "raid6", "paraid", "e-paraid"].contains(&layout);
    if !has_parity {
        // Nothing else was written.
        assert!(others.iter().all(is_zero), "{layout}");
    } else if layout != "raid6" {
        // A row's data and parity add up to nothing.
        let rows = data.iter().map(|bytes| bytes.len() / SECTOR).min().unwrap();
        for at in 0..rows * SECTOR {
            let sum = data.iter().fold(0, |sum, bytes| sum ^ bytes[at]);
            assert_eq!(sum, 0, "{layout}: byte {at}");
        }
    }
}

#[test]
fn every_block_of_every_layout_stands_where_it_should_and_nothing_else_does() {
    let equal = [8 << 20; MEMBERS];
    for entry in REGISTRY {
        check_layout(entry.name, &equal, Some(6144 * SECTOR as u64));
        // Given zones fit only members of one size.
        if entry.name != "lzvs-geo" {
            check_layout(
                entry.name,
                &[5 << 20, 6 << 20, (5 << 20) + (300 << 10), 5 << 20],
                None,
            );
        }
    }
}

/// An array as a member of another.
struct Nested {
    array: Array,
    name: String,
    worker: Mutex<RequestScratch>,
}

impl Nested {
    fn assembled(name: &str, paths: &[PathBuf], degraded: bool) -> Arc<Nested> {
        let (array, _) = assemble(&opened(paths), degraded).unwrap();
        Arc::new(Nested {
            array,
            name: name.to_owned(),
            worker: Mutex::new(RequestScratch::new()),
        })
    }
}

impl Device for Nested {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn bytes(&self) -> u64 {
        self.array.capacity().bytes().0
    }
    fn block_bytes(&self) -> u64 {
        self.array.block_bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.array
            .read(&mut self.worker.lock().unwrap(), at, into)
            .map_err(io::Error::other)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.array
            .write(&mut self.worker.lock().unwrap(), at, from)
            .map_err(io::Error::other)
    }
    fn flush(&self) -> io::Result<()> {
        self.array.flush().map_err(io::Error::other)
    }
}

/// Checks `outer` over pairs of mirrors. Each mirror loses a member, and nothing is stopped
/// properly.
fn check_nested(outer: &str, pairs: usize) {
    let folder = tempfile::tempdir().unwrap();
    let name = |pair: usize| format!("pair{pair}-");
    let paths: Vec<Vec<PathBuf>> = (0..pairs)
        .map(|pair| files(folder.path(), &name(pair), &[8 << 20; 2]))
        .collect();
    for pair in &paths {
        create(&design("raid1", None), &opened(pair)).unwrap();
    }
    let inner = |degraded: bool, members: &dyn Fn(usize) -> Vec<PathBuf>| -> Vec<Arc<Nested>> {
        (0..pairs)
            .map(|pair| Nested::assembled(&name(pair), &members(pair), degraded))
            .collect()
    };
    let shared = |pairs: &[Arc<Nested>]| -> Vec<Arc<dyn Device>> {
        pairs
            .iter()
            .map(|pair| Arc::clone(pair) as Arc<dyn Device>)
            .collect()
    };
    let mirrors = inner(false, &|pair| paths[pair].clone());
    create(&design(outer, None), &shared(&mirrors)).unwrap();
    let (array, _) = assemble(&shared(&mirrors), false).unwrap();
    // An array on mirrors of zeros needs no filling; otherwise the test fills it first.
    let mut worker = RequestScratch::new();
    while array.advance_maintenance(&mut worker).unwrap() {}
    write_numbers(&array);
    check_numbers(&array);
    for mirror in &mirrors {
        mirror.array.fail(0).unwrap();
    }
    check_numbers(&array);
    drop((array, mirrors));
    // State after the death of the servers; half of each mirror suffices.
    let mirrors = inner(true, &|pair| vec![paths[pair][1].clone()]);
    let (array, report) = assemble(&shared(&mirrors), false).unwrap();
    assert!(!report.clean);
    check_numbers(&array);
    write_numbers(&array);
    array.stop().unwrap();
    mirrors
        .iter()
        .for_each(|mirror| mirror.array.stop().unwrap());
    drop((array, mirrors));
    let mirrors = inner(false, &|pair| vec![paths[pair][1].clone()]);
    let (array, report) = assemble(&shared(&mirrors), false).unwrap();
    assert!(report.clean);
    check_numbers(&array);
    if outer == "raid5" {
        array.fail(1).unwrap();
        check_numbers(&array);
    }
}

#[test]
fn arrays_are_members_of_arrays() {
    check_nested("raid0", 2);
    check_nested("raid5", 3);
}
