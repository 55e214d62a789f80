//! Small volumes for tests, and their folders.

#![allow(dead_code, reason = "each test uses its own part")]

use fullstroke_contract::registry::find;
use fullstroke_units::Sectors;
use fullstroke_volume::{REGISTRY, Shape};
use serde_json::{Value, json};

/// A kind of volume.
#[derive(Clone, Copy, Debug)]
pub struct VolumeSample {
    pub name: &'static str,
    pub shape: fn() -> Shape,
    /// Number of drives allowed to be out of order at once, in any combination.
    pub tolerance: usize,
}

/// Every layout alone, and nested layouts.
pub const SAMPLES: &[VolumeSample] = &[
    VolumeSample {
        name: "drive",
        shape: || drive(300),
        tolerance: 0,
    },
    VolumeSample {
        name: "jbod",
        shape: || volume("jbod", json!({}), drives(3, 100)),
        tolerance: 0,
    },
    VolumeSample {
        name: "raid0",
        shape: || volume("raid0", chunk(4), drives(4, 90)),
        tolerance: 0,
    },
    VolumeSample {
        name: "raid1",
        shape: || volume("raid1", json!({}), drives(3, 200)),
        tolerance: 2,
    },
    VolumeSample {
        name: "raid10",
        shape: || volume("raid10", chunk(4), drives(4, 100)),
        tolerance: 1,
    },
    VolumeSample {
        name: "raid10 odd",
        shape: || volume("raid10", chunk(3), drives(5, 70)),
        tolerance: 1,
    },
    VolumeSample {
        name: "raid4",
        shape: || volume("raid4", chunk(4), drives(4, 80)),
        tolerance: 1,
    },
    VolumeSample {
        name: "raid5",
        shape: || volume("raid5", chunk(4), drives(5, 80)),
        tolerance: 1,
    },
    VolumeSample {
        name: "raid6",
        shape: || volume("raid6", chunk(4), drives(6, 80)),
        tolerance: 2,
    },
    VolumeSample {
        name: "lzvs",
        shape: || volume("lzvs", logical_zones(), drives(4, 90)),
        tolerance: 0,
    },
    VolumeSample {
        name: "lzvs-naive",
        shape: || volume("lzvs-naive", json!({}), drives(2, 150)),
        tolerance: 0,
    },
    VolumeSample {
        name: "paraid",
        shape: || volume("paraid", gears("raid5", None), drives(5, 90)),
        tolerance: 1,
    },
    VolumeSample {
        name: "e-paraid",
        shape: || volume("e-paraid", gears("raid5", Some(3)), drives(6, 90)),
        tolerance: 1,
    },
    VolumeSample {
        name: "paraid of raid0",
        shape: || volume("paraid", gears("raid0", None), drives(4, 90)),
        tolerance: 0,
    },
    VolumeSample {
        name: "paraid in raid1",
        shape: || volume("raid1", json!({}), twice(paraid)),
        tolerance: 1,
    },
    VolumeSample {
        name: "raid50",
        shape: || volume("raid0", chunk(6), twice(raid5)),
        tolerance: 1,
    },
    VolumeSample {
        name: "raid0 in raid1",
        shape: || volume("raid1", json!({}), twice(raid0)),
        tolerance: 1,
    },
    VolumeSample {
        name: "lzvs in raid1",
        shape: || volume("raid1", json!({}), twice(lzvs)),
        tolerance: 1,
    },
    VolumeSample {
        name: "raid1 in raid5",
        shape: || volume("raid5", chunk(2), thrice(raid1)),
        tolerance: 3,
    },
    VolumeSample {
        name: "raid5 in raid5",
        shape: || volume("raid5", chunk(5), thrice(raid5)),
        tolerance: 3,
    },
    VolumeSample {
        name: "raid5 in raid1",
        shape: || volume("raid1", json!({}), twice(raid5)),
        tolerance: 3,
    },
    VolumeSample {
        name: "raid5 and drive in raid1",
        shape: || volume("raid1", json!({}), mixed()),
        tolerance: 1,
    },
];

/// Returns the sample with this name.
pub fn sample(name: &str) -> VolumeSample {
    *SAMPLES.iter().find(|sample| sample.name == name).unwrap()
}

fn drive(sectors: u64) -> Shape {
    Shape::Drive(Sectors(sectors))
}
fn drives(count: usize, sectors: u64) -> Vec<Shape> {
    (0..count).map(|_| drive(sectors)).collect()
}
fn chunk(sectors: u64) -> Value {
    json!({ "chunk": sectors * 512 })
}
/// Keys of two gears; the last two of five or six members stand in the low one.
fn gears(level: &str, cluster: Option<u64>) -> Value {
    let active = if level == "raid0" { 2 } else { 4 };
    let mut keys =
        json!({ "chunk": 4 * 512, "level": level, "active": active, "native_percent": 35 });
    if let Some(cluster) = cluster {
        keys["cluster"] = json!(cluster);
    }
    keys
}
fn paraid() -> Shape {
    volume("paraid", gears("raid5", None), drives(5, 90))
}
fn twice(shape: fn() -> Shape) -> Vec<Shape> {
    vec![shape(), shape()]
}
fn thrice(shape: fn() -> Shape) -> Vec<Shape> {
    vec![shape(), shape(), shape()]
}
fn mixed() -> Vec<Shape> {
    vec![raid5(), drive(130)]
}
fn raid0() -> Shape {
    volume("raid0", chunk(4), drives(2, 80))
}
fn logical_zones() -> Value {
    json!({ "zones": 6, "ratio": "2", "blocking": 1024 })
}
fn lzvs() -> Shape {
    volume("lzvs", logical_zones(), drives(2, 80))
}
fn raid1() -> Shape {
    volume("raid1", json!({}), drives(2, 80))
}
fn raid5() -> Shape {
    volume("raid5", chunk(2), drives(3, 60))
}

/// Returns a volume with the layout `name` of these members.
pub fn volume(name: &str, keys: Value, members: Vec<Shape>) -> Shape {
    let capacities: Vec<Sectors> = members.iter().map(Shape::capacity).collect();
    let build = find("layout", REGISTRY, "layout", name).unwrap().build;
    let layout =
        build(keys.as_object().unwrap(), &capacities).unwrap_or_else(|error| panic!("{error}"));
    Shape::Volume { layout, members }
}

/// Makes a folder in memory if the host has such a file system, because a sync takes long
/// elsewhere.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Returns the member's indices from its name.
pub fn path(member: &str) -> Vec<usize> {
    member
        .split('.')
        .map(|index| index.parse().unwrap())
        .collect()
}

/// Returns sectors with marks of their address and their write.
pub fn pattern(lbn: u64, sectors: u64, version: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(sectors as usize * 512);
    for lbn in lbn..lbn + sectors {
        let mut state = lbn.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ version.wrapping_mul(0xd134_2543_de82_ef95)
            | 1;
        for _ in 0..64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
    }
    bytes
}
