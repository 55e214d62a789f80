//! Every sparing and mapping scheme, and small trees, compared with a table of all sectors from a
//! naive construction.

use crate::common::{SEEK, disk, model, one};
use fullstroke_drive::Geometry;
use fullstroke_units::Lbn;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SURFACES: u64 = 3;
const SECTORS: u64 = 8;

/// Returns the sectors of a zone of `cylinders` that carry addresses, in order.
fn carrying(
    sparing: u64,
    cylinders: u64,
    spares: u64,
    range: u64,
    dead: u64,
    slips: &BTreeSet<u64>,
) -> Vec<u64> {
    let total = cylinders * SURFACES * SECTORS;
    let cylinder = SURFACES * SECTORS;
    let good = |sector: &u64| !slips.contains(sector);
    // For each part of `length` sectors with common spares, keeps the used sectors: the first good
    // sectors, or the last ones if `front` is set.
    let per = |length: u64, front: bool, slip_in: bool| -> Vec<u64> {
        let part = |start: u64| {
            let all: Vec<u64> = (start..(start + length).min(total)).collect();
            let mut kept: Vec<u64> = all.iter().copied().filter(good).collect();
            let whole = all.len() as u64 == length;
            let room = if slip_in { length } else { kept.len() as u64 };
            let wanted = if whole {
                (room - spares) as usize
            } else {
                kept.len()
            };
            if front {
                kept = kept.split_off(kept.len() - wanted);
            }
            kept.truncate(wanted);
            kept
        };
        (0..total).step_by(length as usize).flat_map(part).collect()
    };
    let mut used: Vec<u64> = match sparing {
        1 => {
            let track = |sector: &u64| !slips.contains(&(sector / SECTORS));
            let mut used: Vec<u64> = (0..total).filter(track).collect();
            used.truncate((total - spares * SECTORS) as usize);
            used
        }
        2 => per(cylinder, false, true),
        3 => per(SECTORS, false, true),
        4 => per(cylinder, false, false),
        5 => per(cylinder, true, true),
        6 => per(cylinder, true, false),
        8 => per(cylinder * range, false, true),
        9 => (0..total)
            .filter(good)
            .take((total - spares) as usize)
            .collect(),
        10 => (0..total)
            .filter(good)
            .take((total - spares) as usize - slips.len())
            .collect(),
        _ => (0..total).filter(good).collect(),
    };
    used.drain(..dead as usize);
    used
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_scheme_places_addresses_as_its_table_does(
        (sparing, mapping) in (0u64..=10, 0u64..=2),
        (first, cylinders, spares, range, dead) in (0u64..3, 1u64..9, 2u64..5, 1u64..4, 0u64..3),
        wanted in prop::collection::btree_set(0u64..200, 0..6),
    ) {
        let spares = if sparing == 0 || sparing == 7 { 0 } else { spares.min(if sparing == 1 { 2 } else { 4 }) };
        prop_assume!(sparing != 1 || cylinders > 1);
        let total = cylinders * SURFACES * SECTORS;
        let units = if sparing == 1 { total / SECTORS } else { total };
        // Each part has at most as many slips as spares.
        let part = match sparing { 2 | 5 => SURFACES * SECTORS, 3 => SECTORS, 8 => range * SURFACES * SECTORS, _ => total };
        let mut slips = BTreeSet::new();
        for slip in wanted.into_iter().filter(|&slip| slip < units) {
            let like = slips.iter().filter(|&&other: &&u64| other / part == slip / part).count() as u64;
            let partial = (slip / part + 1) * part > total;
            let free = matches!(sparing, 0 | 4 | 6 | 7 | 10) || partial;
            if like < spares || free { slips.insert(slip); }
        }
        let list = slips.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let layout = format!(
            "dm_layout_g1 {{ LBN-to-PBN mapping scheme = {mapping}, Sparing scheme used = {sparing},\n\
             Rangesize for sparing = {range}, Zones = [ dm_layout_g1_zone {{ First cylinder number = {first},\n\
             Last cylinder number = {}, Blocks per track = {SECTORS}, Offset of first block = 3.0,\n\
             Empty space at zone front = {dead}, Skew for track switch = 2.0, Skew for cylinder switch = 5.0,\n\
             Number of spares = {spares}, slips = [ {list} ], defects = [] }} ] }}",
            first + cylinders - 1
        );
        let text = disk(&model(SURFACES as u32, 20, 1 << 40, &layout, SEEK));
        let config = one(&[("d.diskspecs", &text)], true).unwrap_or_else(|error| panic!("{error}")).config;
        let expected = carrying(sparing, cylinders, spares, range, dead, &slips);
        prop_assert_eq!(config.capacity_sectors.0, expected.len() as u64);
        let geometry = Geometry::new(&config).unwrap();
        for (lbn, &sector) in expected.iter().enumerate() {
            let (cylinder, order) = (sector / (SURFACES * SECTORS), sector / SECTORS % SURFACES);
            let odd = match mapping { 0 => false, 1 => cylinder % 2 == 1, _ => (first + cylinder) % 2 == 1 };
            let head = if odd { SURFACES - 1 - order } else { order };
            let turned = 3 + 2 * (order + cylinder * (SURFACES - 1)) + 5 * cylinder + sector % SECTORS;
            let found = geometry.locate(Lbn(lbn as u64));
            prop_assert_eq!((u64::from(found.cylinder.0), u64::from(found.surface)), (first + cylinder, head));
            let angle = (turned % SECTORS) as f64 / SECTORS as f64;
            let away = (found.angle.as_revolutions() - angle).rem_euclid(1.0);
            prop_assert!(away.min(1.0 - away) < 1e-9, "{} {}", found.angle.as_revolutions(), angle);
        }
    }

    #[test]
    fn small_trees_place_addresses_as_their_index_does(
        lengths in prop::collection::vec((4u64..12, 0u64..3), 3),
        (bands, width, repeats, partial) in (1u64..3, 1u64..4, 1u64..4, 0u64..30),
        slips in prop::collection::btree_map(0u64..150, 1u64..3, 0..5),
    ) {
        // Tracks of each head: number of sectors, and number of sectors at the end without an
        // address.
        let patterns: Vec<String> =
            lengths.iter().map(|(sectors, short)| format!("0, {}, {sectors}", sectors - short - 1)).collect();
        let mut node = Vec::new();
        let mut table = Vec::new();
        let mut lbn = 0;
        for band in 0..bands {
            for (head, (sectors, short)) in lengths.iter().enumerate() {
                let outward = (band + head as u64) % 2 == 1;
                let first = band * width + if outward { width - 1 } else { 0 };
                let carrying = sectors - short;
                let sign = if outward { "-" } else { "" };
                node.push(format!(
                    "{lbn}, {first}, 0.{head}, {carrying}, 1, 0.25, {}, {sign}{width}, TRACK, {head}, {head}",
                    carrying * width
                ));
                for track in 0..width {
                    let cylinder = if outward { first - track } else { first + track };
                    for sector in 0..carrying {
                        let angle = head as f64 / 10.0 + 0.25 * track as f64 + sector as f64 / *sectors as f64;
                        table.push((cylinder, head as u32, angle));
                    }
                }
                lbn += carrying * width;
            }
        }
        let each = lbn;
        let cylinders = bands * width;
        let total = each * repeats + partial.min(each - 1);
        let slips: Vec<(u64, u64)> = slips.into_iter().filter(|slip| slip.0 + slip.1 < total).collect();
        let list = slips.iter().map(|slip| format!("{}, {}", slip.0, slip.1)).collect::<Vec<_>>().join(", ");
        let layout = format!(
            "dm_layout_g4 {{ TP = [ {} ], IDX = [ [ {} ],\n[ 0, 2, 0.125, {each}, {cylinders}, 0.375, {total}, {}, IDX, 0 ] ],\n\
             Slips = [ {list} ], Remaps = [] }}",
            patterns.join(", "), node.join(",\n"), cylinders * (repeats + 1)
        );
        let text = disk(&model(3, 60, 1 << 40, &layout, SEEK));
        let config = one(&[("d.diskspecs", &text)], true).unwrap_or_else(|error| panic!("{error}")).config;
        let geometry = Geometry::new(&config).unwrap();
        // A slip that overlaps the previous slip starts behind it.
        let mut skipped = BTreeSet::new();
        let mut free = 0;
        for (start, sectors) in slips {
            let start = start.max(free);
            skipped.extend(start..start + sectors);
            free = start + sectors;
        }
        let addresses: Vec<u64> = (0..total).filter(|address| !skipped.contains(address)).collect();
        prop_assert_eq!(geometry.capacity().0, addresses.len() as u64);
        for (lbn, &address) in addresses.iter().enumerate() {
            let (instance, within) = (address / each, address % each);
            let (cylinder, head, angle) = table[within as usize];
            let found = geometry.locate(Lbn(lbn as u64));
            prop_assert_eq!((u64::from(found.cylinder.0), found.surface), (2 + instance * cylinders + cylinder, head));
            let angle = angle + 0.125 + 0.375 * instance as f64;
            let away = (found.angle.as_revolutions() - angle).rem_euclid(1.0);
            prop_assert!(away.min(1.0 - away) < 1e-9, "{} {}", found.angle.as_revolutions(), angle);
        }
    }
}
