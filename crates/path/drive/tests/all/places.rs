//! Compares the place of each sector with the formula of zoned layouts: cylinder, head and angle of
//! every address. The test implements the formula independently.

use fullstroke_drive::{DriveConfig, DriveModel, Geometry, HeadPosition};
use fullstroke_units::{Cylinder, Lbn};
use proptest::prelude::*;
use std::fmt::Write as _;

#[derive(Clone, Debug)]
struct PlaceZone {
    cylinders: u64,
    sectors: u64,
    /// Sectors from angle 0 to the zone's first sector, and skews.
    offset: f64,
    track_skew: f64,
    cylinder_skew: f64,
    /// Number of sectors without an address in front of the zone, and behind.
    dead: u64,
    spares: u64,
}

fn zones() -> impl Strategy<Value = Vec<PlaceZone>> {
    let skew = || (0u32..40).prop_map(|quarters| f64::from(quarters) / 4.0);
    // A zone of one track has more sectors than the largest dead space and spares together.
    let zone = (1u64..6, 12u64..40, skew(), skew(), skew(), 0u64..7, 0u64..5).prop_map(
        |(cylinders, sectors, offset, track_skew, cylinder_skew, dead, spares)| PlaceZone {
            cylinders,
            sectors,
            offset,
            track_skew,
            cylinder_skew,
            dead,
            spares,
        },
    );
    prop::collection::vec(zone, 1..5)
}

fn drive(zones: &[PlaceZone], surfaces: u64, serpentine: bool) -> DriveConfig {
    let mut capacity = 0;
    let mut tables = String::new();
    let mut first = 0;
    for zone in zones {
        capacity += zone.cylinders * surfaces * zone.sectors - zone.dead - zone.spares;
        writeln!(
            tables,
            "[[zones]]\nfirst_cylinder = {first}\nlast_cylinder = {}\nsectors_per_track = {}\noffset = {:?}\n\
             track_skew = {:?}\ncylinder_skew = {:?}\ndead = {}\nspares = {}",
            first + zone.cylinders - 1,
            zone.sectors,
            zone.offset,
            zone.track_skew,
            zone.cylinder_skew,
            zone.dead,
            zone.spares,
        )
        .unwrap();
        first += zone.cylinders;
    }
    let order = if serpentine {
        "cylinder-serpentine"
    } else {
        "cylinder"
    };
    let text = format!(
        "title = \"made up\"\ncapacity_sectors = {capacity}\nrpm = 7200.0\nsurfaces = {surfaces}\norder = \"{order}\"\n\
         seek = {{ form = \"points\", points = [[1, 1.0], [9, 2.0]] }}\n{tables}[sources]\n"
    );
    toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Cylinder, head, and angle in revolutions of an address.
fn place(zones: &[PlaceZone], surfaces: u64, serpentine: bool, lbn: u64) -> (u64, u64, f64) {
    let (mut left, mut first) = (lbn, 0);
    for zone in zones {
        let addresses = zone.cylinders * surfaces * zone.sectors - zone.dead - zone.spares;
        if left >= addresses {
            left -= addresses;
            first += zone.cylinders;
            continue;
        }
        let place = left + zone.dead;
        let (track, sector) = (place / zone.sectors, place % zone.sectors);
        let (cylinder, turn) = (track / surfaces, track % surfaces);
        let head = if serpentine && cylinder % 2 == 1 {
            surfaces - 1 - turn
        } else {
            turn
        };
        // From track to track within a cylinder, and from cylinder to cylinder.
        let skews = (turn + cylinder * (surfaces - 1)) as f64 * zone.track_skew
            + cylinder as f64 * zone.cylinder_skew;
        let sectors = zone.offset + skews + sector as f64;
        return (first + cylinder, head, sectors / zone.sectors as f64);
    }
    panic!("{lbn} lies beyond the zones")
}

proptest! {
    #[test]
    fn every_sector_lies_where_the_formula_has_it(
        zones in zones(), surfaces in 1u64..5, serpentine: bool,
    ) {
        let geometry = Geometry::new(&drive(&zones, surfaces, serpentine)).unwrap();
        for lbn in 0..geometry.capacity().0 {
            let (cylinder, head, angle) = place(&zones, surfaces, serpentine, lbn);
            let found = geometry.locate(Lbn(lbn));
            prop_assert_eq!(
                (u64::from(found.cylinder.0), u64::from(found.surface)), (cylinder, head), "{}", lbn
            );
            let apart = (found.angle.as_revolutions() - angle).rem_euclid(1.0);
            prop_assert!(apart.min(1.0 - apart) < 1e-6, "{}: {:?}, by the formula {}", lbn, found.angle, angle);
        }
    }
}

/// "seek = max(curve, head switch if the head changes)": a seek that is shorter than the head
/// switch waits for the head.
#[test]
fn a_change_of_head_takes_its_time_however_short_the_seek() {
    let zone = PlaceZone {
        cylinders: 20,
        sectors: 30,
        offset: 0.0,
        track_skew: 0.0,
        cylinder_skew: 0.0,
        dead: 0,
        spares: 0,
    };
    let mut config = drive(&[zone], 2, false);
    config.head_switch_ms = 1.5;
    let model = DriveModel::new(config).unwrap();
    // The curve passes 1 ms at one cylinder and 2 ms at nine.
    for (cylinder, surface, expected_ms) in [
        (0, 0, 0.0),
        (0, 1, 1.5),
        (1, 0, 1.0),
        (1, 1, 1.5),
        (9, 0, 2.0),
        (9, 1, 2.0),
    ] {
        let seek =
            model
                .mechanics()
                .seek(HeadPosition::default(), Cylinder(cylinder), surface, false);
        assert_eq!(seek.as_millis_f64(), expected_ms, "{cylinder}, {surface}");
    }
}
