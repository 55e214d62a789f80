//! Measures the speed of making, aging and using file systems, in operations a second on one core.
//!
//! `cargo run --release --package fullstroke-files --example file_system_speed`

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // It measures time.

use fullstroke_contract::registry::Keys;
use fullstroke_files::fragmentation::{Fragmentation, laid_out};
use fullstroke_files::script::{Script, ScriptPlayer};
use fullstroke_files::{FileSystem, FileSystemSite, age, make};
use fullstroke_units::{Sectors, Seed, Time};
use serde_json::{Value, json};
use std::time::Instant;

const GIB: u64 = 1 << 21;

fn new(kind: &str, keys: &Value, sectors: u64) -> Box<dyn FileSystem> {
    let keys: Keys = keys.as_object().cloned().unwrap_or_default();
    let site = FileSystemSite {
        capacity: Sectors(sectors),
        seed: Seed(1),
        stripe: None,
        tracks: None,
    };
    make(kind, &keys, &site).expect("the sizes here are large enough")
}

fn main() {
    let kinds = [
        ("ext2", json!({})),
        ("ext2", json!({ "allocation": "reservation" })),
        ("ext2", json!({ "allocation": "multiblock" })),
        ("ext4", json!({})),
        ("xfs", json!({})),
        ("xfs", json!({ "kernel": "today" })),
    ];
    let growing =
        Script::parse(include_str!("../../../../samples/files/growing.fs")).expect("it is shipped");
    println!(
        "{:4} {:32} {:>10} {:>16} {:>10} {:>12}",
        "kind", "keys", "4 TiB ms", "aged files/s", "ext/file", "growing ext."
    );
    for (kind, keys) in &kinds {
        let begun = Instant::now();
        drop(new(kind, keys, 4096 * GIB));
        let made = begun.elapsed();
        let mut system = new(kind, keys, 4 * GIB);
        let begun = Instant::now();
        let profile = age::profile("desktop").expect("it is known");
        let aged = age::age(&mut *system, profile, Seed(1)).expect("there is room");
        let files = (aged.created + aged.deleted) as f64 / begun.elapsed().as_secs_f64();
        let lie = Fragmentation::of(
            &laid_out(&*system).expect("they are there"),
            system.regions().pages,
        );
        let mut system = new(kind, keys, GIB);
        ScriptPlayer::new(&mut *system, Time::ZERO)
            .play_all(&growing)
            .expect("there is room");
        let grown = Fragmentation::of(
            &laid_out(&*system).expect("they are there"),
            system.regions().pages,
        );
        println!(
            "{kind:4} {:32} {:10.1} {files:16.0} {:10.3} {:12}",
            keys.to_string(),
            made.as_secs_f64() * 1e3,
            lie.fragments_a_file(),
            grown.fragments,
        );
    }
}
