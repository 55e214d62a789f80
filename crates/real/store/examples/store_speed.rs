//! Prints how fast a store serves requests, whole and degraded, in memory and in files, and the
//! time to mend a region. Files are made in the given folder, or else in the system's folder for
//! temporary files.

use fullstroke_contract::registry::find;
use fullstroke_store::bytes::{Opening, Store, StoreLocation};
use fullstroke_units::{Lbn, Sectors, Seed};
use fullstroke_volume::{REGISTRY, Shape};
use serde_json::json;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const REQUEST_BYTES: usize = 4096;
const REQUEST_SECTORS: u64 = REQUEST_BYTES as u64 / 512;
/// Capacity of a drive, 64 MiB: more than the processor's nearer caches hold.
const DRIVE: Sectors = Sectors((64 << 20) / 512);
const REQUESTS: u64 = 100_000;
const RUNS: usize = 5;

/// A layout and its number of drives.
type Kind = (&'static str, usize);

const KINDS: [Kind; 5] = [
    ("drive", 1),
    ("raid0", 4),
    ("raid10", 4),
    ("raid5", 5),
    ("raid6", 6),
];

fn main() {
    let given = std::env::args_os().nth(1).map(std::path::PathBuf::from);
    let base = given.unwrap_or_else(std::env::temp_dir);
    println!(
        "4 KiB at random, one thread, median of {RUNS} runs of {REQUESTS} requests, thousands a second\n"
    );
    println!(
        "{:<14} {:<10} {:>8} {:>8}",
        "volume", "bytes in", "reads", "writes"
    );
    for kind in KINDS {
        requests(kind, &StoreLocation::Memory, None);
    }
    for (kind, failed) in [
        (("raid5", 5), None),
        (("raid5", 5), Some(2)),
        (("raid6", 6), None),
        (("raid6", 6), Some(2)),
    ] {
        let folder = tempfile::tempdir_in(&base).expect("a folder for the files");
        requests(
            kind,
            &StoreLocation::Folder(folder.path().to_owned()),
            failed,
        );
    }
    println!("\nmending a region of 16 MiB that is full, after a kill\n");
    for kind in [("raid10", 4), ("raid5", 5), ("raid6", 6)] {
        let folder = tempfile::tempdir_in(&base).expect("a folder for the files");
        mending(kind, &StoreLocation::Folder(folder.path().to_owned()));
    }
}

fn shape((name, drives): Kind) -> Shape {
    if name == "drive" {
        return Shape::Drive(DRIVE);
    }
    let build = find("layout", REGISTRY, "layout", name)
        .expect("a layout")
        .build;
    let keys = json!({});
    let layout = build(keys.as_object().expect("keys"), &vec![DRIVE; drives]).expect("a volume");
    Shape::Volume {
        layout,
        members: (0..drives).map(|_| Shape::Drive(DRIVE)).collect(),
    }
}

fn open(kind: Kind, location: &StoreLocation) -> (Store, fullstroke_store::bytes::OpenReport) {
    Store::open(shape(kind), location, "speed", Opening::default()).expect("a store")
}

/// Makes a store with data in all sectors.
fn filled(kind: Kind, location: &StoreLocation) -> Store {
    let (mut store, _) = open(kind, location);
    let bytes: Vec<u8> = (0..1 << 20).map(|at: u32| (at * 31 + 7) as u8).collect();
    let step = bytes.len() as u64 / 512;
    for lbn in (0..store.capacity().0 / step * step).step_by(step as usize) {
        store.write(Lbn(lbn), &bytes).expect("a write");
    }
    store
}

fn requests(kind: Kind, location: &StoreLocation, failed: Option<usize>) {
    let mut store = filled(kind, location);
    if let Some(member) = failed {
        store.fail_member(&[member]).expect("a failure");
    }
    let places = store.capacity().0 / REQUEST_SECTORS;
    let mut random = Seed(1).stream("speed");
    let places: Vec<Lbn> = (0..REQUESTS)
        .map(|_| Lbn(random.below(places) * REQUEST_SECTORS))
        .collect();
    let mut bytes = [0x5A; REQUEST_BYTES];
    let reads = rate(|| {
        places
            .iter()
            .for_each(|&lbn| store.read(lbn, black_box(&mut bytes)).expect("a read"))
    });
    let writes = rate(|| {
        places
            .iter()
            .for_each(|&lbn| store.write(lbn, black_box(&bytes)).expect("a write"))
    });
    let name = match (kind, failed) {
        (("drive", _), _) => "drive".to_owned(),
        ((name, drives), None) => format!("{name} of {drives}"),
        ((name, drives), Some(_)) => format!("{name} of {drives} - 1"),
    };
    let place = if *location == StoreLocation::Memory {
        "memory"
    } else {
        "files"
    };
    println!("{name:<14} {place:<10} {reads:>8.0} {writes:>8.0}");
}

/// Returns thousands of requests per second.
fn rate(mut run: impl FnMut()) -> f64 {
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = spent();
            run();
            REQUESTS as f64 / (spent() - begun).as_secs_f64() / 1e3
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[RUNS / 2]
}

/// Returns the processor time of this thread, which other load does not disturb. Systems without it
/// return the clock's time.
fn spent() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let running = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = running.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(
        || BEGUN.get_or_init(Instant::now).elapsed(),
        Duration::from_nanos,
    )
}

fn mending(kind: Kind, location: &StoreLocation) {
    // The store is not closed, so all its regions are marked.
    drop(filled(kind, location));
    let begun = spent();
    let (_, report) = open(kind, location);
    let each = (spent() - begun).as_secs_f64() * 1e3 / report.regions as f64;
    println!(
        "{:<14} {each:>6.1} ms ({} regions)",
        format!("{} of {}", kind.0, kind.1),
        report.regions
    );
}
