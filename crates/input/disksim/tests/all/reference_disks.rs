//! The published parameter files, compared with straightforward interpretations. The numbers of
//! three disks are part of the repository (`samples/oracle/parameters`). The files lie beside the
//! repository; without them the tests say so.

use crate::oracle;
use crate::parameters::write_parameters;
use fullstroke_contract::TrackTable as _;
use fullstroke_disksim::{
    Content, Document, FileSystem, ImportOptions, Imported, PlacedValue, Reading, document, import,
};
use fullstroke_drive::{DriveConfig, DriveModel, Geometry, SeekConfig};
use fullstroke_units::{Cylinder, Lbn};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn shared(name: &str) -> Option<PathBuf> {
    oracle::shared(&format!("oracle/disks/{name}"))
}

fn one(path: &Path) -> Imported {
    let mut disks = import(
        path,
        &ImportOptions {
            strict: true,
            reading: Reading::AS_WRITTEN,
            ..ImportOptions::default()
        },
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(disks.len(), 1);
    disks.remove(0)
}

const DISKS: [&str; 6] = [
    "cheetah9LP",
    "hp_c2247a",
    "ibm18es",
    "barracuda",
    "atlas10k",
    "g4/G4_LBA_64bit_4T",
];

/// Disks whose parameters the oracle has as numbers.
const IN_THE_ORACLE: [&str; 3] = ["hp_c2247a", "hp_c3323a", "barracuda"];

#[test]
fn every_disk_of_the_oracle_becomes_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    for disk in IN_THE_ORACLE {
        let imported = one(&write_parameters(disk, folder.path()));
        assert!(imported.electronics.bus.is_some(), "{disk}");
        DriveModel::new(imported.config.clone()).unwrap();
        // If the published file lies beside the repository, it must agree.
        if let Some(path) = shared(&format!("{disk}.parv")) {
            let mut published = one(&path).config;
            published.title.clone_from(&imported.config.title);
            published.sources.clone_from(&imported.config.sources);
            assert_eq!(imported.config, published, "{disk}");
        }
    }
}

#[test]
fn every_published_disk_becomes_a_drive() {
    for disk in DISKS {
        for suffix in ["diskspecs", "parv"] {
            let Some(path) = shared(&format!("{disk}.{suffix}")) else {
                continue;
            };
            let imported = one(&path);
            println!(
                "{disk}.{suffix}: {} sectors",
                imported.config.capacity_sectors.0
            );
            for loss in &imported.losses {
                println!("    {}: {}", loss.key, loss.what);
            }
            assert_eq!(imported.electronics.bus.is_some(), suffix == "parv");
            if let Err(error) = DriveModel::new(imported.config.clone()) {
                println!("    needs falls in the seek curve: {error}");
            }
            DriveModel::new(imported.config).unwrap();
        }
    }
}

#[test]
fn the_cheetah_is_the_one_of_the_drive_library() {
    let oracle = std::fs::read_to_string(oracle::path("drives/cheetah9LP.cache.toml")).unwrap();
    is_the_cheetah_of_the_library(&toml::from_str(&oracle).unwrap());
    if let Some(path) = shared("cheetah9LP.diskspecs") {
        is_the_cheetah_of_the_library(&one(&path).config);
    }
}

fn is_the_cheetah_of_the_library(imported: &DriveConfig) {
    let library =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../drives/seagate-cheetah-9lp.toml");
    let library: DriveConfig = toml::from_str(
        &std::fs::read(library)
            .map(|text| String::from_utf8(text).unwrap())
            .unwrap(),
    )
    .unwrap();
    assert_eq!(imported.zones, library.zones);
    assert_eq!(imported.capacity_sectors, library.capacity_sectors);
    // Beyond the last measured point, the import extends the last line.
    let points = |seek: &SeekConfig| match seek {
        SeekConfig::Points { points, .. } => points.clone(),
        other => panic!("{other:?}"),
    };
    assert!(points(&imported.seek).starts_with(&points(&library.seek)));
    assert_eq!(
        (
            imported.rpm,
            imported.surfaces,
            imported.head_switch_ms,
            imported.write_settle_ms
        ),
        (
            library.rpm,
            library.surfaces,
            library.head_switch_ms,
            library.write_settle_ms
        )
    );
}

#[test]
fn capacities_are_those_that_the_files_announce() {
    for (disk, blocks) in [
        ("hp_c2247a", 2_054_864),
        ("atlas10k", 17_938_986),
        ("ibm18es", 17_916_240),
    ] {
        let Some(path) = shared(&format!("{disk}.diskspecs")) else {
            continue;
        };
        let imported = one(&path);
        let said = imported.losses.iter().any(|loss| loss.key == "Block count");
        assert!(
            imported.config.capacity_sectors.0 == blocks || said,
            "{disk}"
        );
    }
}

/// Returns pseudo-random addresses.
fn addresses(capacity: u64, count: u64) -> impl Iterator<Item = u64> {
    let random =
        (0..count).map(move |number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % capacity);
    (0..2000.min(capacity))
        .chain(capacity.saturating_sub(2000)..capacity)
        .chain(random)
}

fn near(found: f64, expected: f64) -> bool {
    let difference = (found - expected).rem_euclid(1.0);
    difference.min(1.0 - difference) < 1e-7
}

/// A zone of a G1 layout as written in the file.
struct G1Zone {
    numbers: Vec<f64>,
    slips: Vec<u64>,
}

fn parameter(block: &fullstroke_disksim::TypeBlock, key: &str) -> Arc<PlacedValue> {
    Arc::clone(
        &block
            .parameters
            .iter()
            .find(|parameter| parameter.key == key)
            .unwrap()
            .value,
    )
}

fn number(value: &PlacedValue) -> f64 {
    match value.content {
        Content::Integer(number) => number as f64,
        Content::Float(number) => number,
        _ => panic!("{value:?}"),
    }
}

/// Returns the model of the disk: a block of its own, or the key of the disk's block.
fn model(document: &Document) -> Arc<fullstroke_disksim::TypeBlock> {
    let of_kind = |kind| document.named.values().find(|block| block.kind == kind);
    match of_kind("dm_disk") {
        Some(model) => Arc::clone(model),
        None => inner(&parameter(of_kind("disksim_disk").unwrap(), "Model")),
    }
}

fn inner(value: &PlacedValue) -> Arc<fullstroke_disksim::TypeBlock> {
    match &value.content {
        Content::Block(block) => Arc::clone(block),
        _ => panic!("{value:?}"),
    }
}

fn items(value: &PlacedValue) -> &[PlacedValue] {
    match &value.content {
        Content::List(items) => items,
        _ => panic!("{value:?}"),
    }
}

/// Returns `[cylinder, head]` and the angle in revolutions of an address, by the formulas.
fn g1_place(
    zones: &[G1Zone],
    surfaces: u64,
    mapping: u64,
    sparing: u64,
    range: u64,
    lbn: u64,
) -> (u64, u64, f64) {
    let mut left = lbn;
    for zone in zones {
        let [
            first,
            last,
            spt,
            offset,
            dead,
            track_skew,
            cylinder_skew,
            spares,
        ] = zone.numbers[..]
        else {
            panic!()
        };
        let (first, last, spt, dead, spares) = (
            first as u64,
            last as u64,
            spt as u64,
            dead as u64,
            spares as u64,
        );
        let cylinders = last - first + 1;
        let unused = match sparing {
            1 => spares * spt,
            7 => zone.slips.len() as u64,
            8 => spares * (cylinders / range),
            9 => spares,
            other => panic!("{other}"),
        };
        let lbns = cylinders * surfaces * spt - dead - unused;
        if left >= lbns {
            left -= lbns;
            continue;
        }
        let mut place = left + dead;
        match sparing {
            1 => {
                let (mut track, sector) = (place / spt, place % spt);
                for &slip in &zone.slips {
                    track += u64::from(slip <= track);
                }
                place = track * spt + sector;
            }
            8 => {
                let sectors = range * surfaces * spt;
                let (number, mut within) = (place / (sectors - spares), place % (sectors - spares));
                for &slip in zone.slips.iter().filter(|&&slip| slip >= number * sectors) {
                    within += u64::from(slip - number * sectors <= within);
                }
                place = number * sectors + within;
            }
            _ => {
                for &slip in &zone.slips {
                    place += u64::from(slip <= place);
                }
            }
        }
        let (cylinder, order, sector) = (
            place / (surfaces * spt),
            place / spt % surfaces,
            place % spt,
        );
        let head = if mapping == 1 && cylinder % 2 == 1 {
            surfaces - 1 - order
        } else {
            order
        };
        let tracks = (order + cylinder * (surfaces - 1)) as f64;
        let sectors =
            offset + tracks * track_skew + cylinder as f64 * cylinder_skew + sector as f64;
        return (first + cylinder, head, sectors / spt as f64);
    }
    panic!("{lbn} lies beyond the layout")
}

#[test]
fn zoned_layouts_follow_the_formulas() {
    let folder = tempfile::tempdir().unwrap();
    for disk in IN_THE_ORACLE {
        follows_the_formulas(disk, &write_parameters(disk, folder.path()));
    }
    for disk in &DISKS[..5] {
        if let Some(path) = shared(&format!("{disk}.diskspecs")) {
            follows_the_formulas(disk, &path);
        }
    }
}

fn follows_the_formulas(disk: &str, path: &Path) {
    const KEYS: [&str; 8] = [
        "First cylinder number",
        "Last cylinder number",
        "Blocks per track",
        "Offset of first block",
        "Empty space at zone front",
        "Skew for track switch",
        "Skew for cylinder switch",
        "Number of spares",
    ];
    let document = document(&FileSystem, path).unwrap();
    let model = model(&document);
    let surfaces = number(&parameter(&model, "Number of data surfaces")) as u64;
    let layout = inner(&parameter(&model, "Layout Model"));
    let whole = |key| number(&parameter(&layout, key)) as u64;
    let zones: Vec<G1Zone> = items(&parameter(&layout, "Zones"))
        .iter()
        .map(|zone| G1Zone {
            numbers: KEYS
                .iter()
                .map(|key| number(&parameter(&inner(zone), key)))
                .collect(),
            slips: items(&parameter(&inner(zone), "slips"))
                .iter()
                .map(|slip| number(slip) as u64)
                .collect(),
        })
        .collect();
    let geometry = Geometry::new(&one(path).config).unwrap();
    for lbn in addresses(geometry.capacity().0, 50_000) {
        let (cylinder, head, angle) = g1_place(
            &zones,
            surfaces,
            whole("LBN-to-PBN mapping scheme"),
            whole("Sparing scheme used"),
            whole("Rangesize for sparing"),
            lbn,
        );
        let found = geometry.locate(Lbn(lbn));
        assert_eq!(
            (u64::from(found.cylinder.0), u64::from(found.surface)),
            (cylinder, head),
            "{disk} {lbn}"
        );
        assert!(near(found.angle.as_revolutions(), angle), "{disk} {lbn}");
    }
}

/// Returns the cylinder, head and angle of an address, by a walk down the index.
fn g4_place(nodes: &[Vec<&PlacedValue>], patterns: &[Vec<f64>], lbn: u64) -> (i64, u32, f64) {
    let (mut node, mut left, mut cylinder, mut angle) = (nodes.len() - 1, lbn, 0, 0.0);
    loop {
        let mut fields = nodes[node].iter();
        let (entry, is_track, child, head) = loop {
            let entry: Vec<f64> = fields.by_ref().take(8).map(|value| number(value)).collect();
            let is_track =
                matches!(&fields.next().unwrap().content, Content::Word(word) if word == "TRACK");
            let child = number(fields.next().unwrap()) as usize;
            let head = if is_track {
                number(fields.next().unwrap()) as u32
            } else {
                0
            };
            if (entry[0] as u64..(entry[0] + entry[6]) as u64).contains(&left) {
                break (entry, is_track, child, head);
            }
        };
        left -= entry[0] as u64;
        let instance = left / entry[3] as u64;
        left %= entry[3] as u64;
        let cylinders = instance as i64 * entry[4] as i64;
        cylinder += entry[1] as i64
            + if entry[7] < 0.0 {
                -cylinders
            } else {
                cylinders
            };
        angle += entry[2] + instance as f64 * entry[5];
        if is_track {
            return (cylinder, head, angle + left as f64 / patterns[child][2]);
        }
        node = child;
    }
}

#[test]
fn the_tree_layout_follows_its_index() {
    let Some(path) = shared("g4/G4_LBA_64bit_4T.diskspecs") else {
        return;
    };
    let document = document(&FileSystem, &path).unwrap();
    let layout = inner(&parameter(&model(&document), "Layout Model"));
    let (index, patterns) = (parameter(&layout, "IDX"), parameter(&layout, "TP"));
    let nodes: Vec<Vec<&PlacedValue>> = items(&index)
        .iter()
        .map(|node| items(node).iter().collect())
        .collect();
    let patterns: Vec<f64> = items(&patterns).iter().map(number).collect();
    let patterns: Vec<Vec<f64>> = patterns.chunks(3).map(<[f64]>::to_vec).collect();
    let geometry = Geometry::new(&one(&path).config).unwrap();
    assert_eq!(geometry.capacity().0, 7_542_225_920);
    for lbn in addresses(geometry.capacity().0, 50_000) {
        let (cylinder, head, angle) = g4_place(&nodes, &patterns, lbn);
        let found = geometry.locate(Lbn(lbn));
        assert_eq!(
            (i64::from(found.cylinder.0), found.surface),
            (cylinder, head),
            "{lbn}"
        );
        assert!(near(found.angle.as_revolutions(), angle), "{lbn}: {angle}");
        assert_eq!(geometry.cylinder_of(Lbn(lbn)), Cylinder(cylinder as u32));
    }
}

#[test]
fn a_large_tree_becomes_one_zone_for_each_entry_of_its_root() {
    let Some(path) = shared("g4/G4_LBA_64bit_4T.diskspecs") else {
        return;
    };
    let imported = one(&path);
    assert_eq!(imported.config.zones.len(), 59);
    assert!(
        imported
            .config
            .zones
            .iter()
            .all(|zone| zone.runs.len() == 20 && zone.slips.is_empty())
    );
}
