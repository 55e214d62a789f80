//! `dm_layout_g1`: zones, with one sparing scheme for all zones.
//!
//! | scheme | spares | slips | imported as |
//! |---|---|---|---|
//! | 0 | none | within the zone | the slips |
//! | 1 | tracks at the end of the zone; `slips` and `defects` count tracks | in the zone | `spares`, runs of slips |
//! | 2 | sectors at the end of a cylinder | in the cylinder | `spares_per_cylinder` |
//! | 3 | sectors at the end of a track | in the track | `spares_per_track` |
//! | 4 | as 2, for remaps only | to the end of the zone | slips over the spares |
//! | 5 | sectors in front of a cylinder | in the cylinder | slips over the spares |
//! | 6 | as 5, for remaps only | to the end of the zone | slips over the spares |
//! | 7 | at the end of the disk | to the end of the zone | `spares` as many as slips |
//! | 8 | at the end of a range of cylinders | in the range | `spares_per_cylinder` with a range |
//! | 9 | at the end of the zone | in the zone | `spares` |
//! | 10 | as 9, for remaps only | to the end of the zone | `spares`, and as many as slips |
//!
//! The meanings are from the diskmodel manual and from the address maps of DiskSim 4.0
//! (`layout_g1`). If the two differ, a loss reports it.

use crate::error::{ErrorKind, ImportError, ImportLoss};
use crate::fields::{BlockFields, FoundValue};
use crate::layout::{BuiltZone, ImportedLayout, LayoutDisk, misfit};
use fullstroke_drive::{RunConfig, SeekDirection, SlipConfig, TrackOrder, ZoneConfig};

/// Largest number of cylinders or ranges whose spares are covered one by one.
const MAX_COVERED: u64 = 4_000_000;
/// Largest number of remapped sectors of one zone.
const MAX_REMAPPED: u64 = 1 << 20;

const LAYOUT_KEYS: &[&str] = &[
    "LBN-to-PBN mapping scheme",
    "Sparing scheme used",
    "Rangesize for sparing",
    "Skew units",
    "Zones",
];
const ZONE_KEYS: &[&str] = &[
    "First cylinder number",
    "Last cylinder number",
    "Blocks per track",
    "Offset of first block",
    "Skew units",
    "Empty space at zone front",
    "Skew for track switch",
    "Skew for cylinder switch",
    "Number of spares",
    "slips",
    "defects",
];

/// The settings of all zones.
struct Scheme {
    disk: LayoutDisk,
    mapping: i64,
    sparing: i64,
    range_cylinders: u64,
    revolutions: bool,
    strict: bool,
}

/// The numbers of one zone.
struct ZoneNumbers {
    track: u64,
    cylinder: u64,
    cylinders: u64,
    total: u64,
    dead: u64,
    spares: u64,
    slips: Vec<u64>,
    defects: Vec<(u64, u64)>,
}

/// Reads a `dm_layout_g1` block.
pub(crate) fn read(
    fields: &BlockFields<'_>,
    disk: LayoutDisk,
    strict: bool,
    losses: &mut Vec<ImportLoss>,
) -> Result<ImportedLayout, ImportError> {
    fields.only(LAYOUT_KEYS, strict, losses)?;
    let scheme = Scheme {
        disk,
        mapping: fields.required("LBN-to-PBN mapping scheme")?.within(0, 2)?,
        sparing: fields.required("Sparing scheme used")?.within(0, 10)?,
        range_cylinders: fields
            .required("Rangesize for sparing")?
            .within(1, 1 << 31)? as u64,
        revolutions: in_revolutions(fields, false)?,
        strict,
    };
    let zones = fields.required("Zones")?;
    let mut layout = ImportedLayout {
        order: scheme.order(),
        zones: Vec::new(),
    };
    let mut free_cylinder = 0;
    for found in zones.elements()? {
        let prefix = format!("{}.", found.key);
        let zone = BlockFields::new(fields.document, found.block()?, &prefix);
        let built = scheme.zone(&zone, free_cylinder, losses)?;
        free_cylinder = built.config.last_cylinder + 1;
        layout.zones.push(built);
    }
    if layout.zones.is_empty() {
        return Err(zones.error(ErrorKind::WrongValue, "no zone", "at least one"));
    }
    Ok(layout)
}

fn in_revolutions(fields: &BlockFields<'_>, inherited: bool) -> Result<bool, ImportError> {
    let Some(units) = fields.optional("Skew units") else {
        return Ok(inherited);
    };
    match units.word()? {
        "revolutions" => Ok(true),
        "sectors" => Ok(false),
        other => Err(units.error(
            ErrorKind::WrongValue,
            format!("`{other}`"),
            "sectors or revolutions",
        )),
    }
}

impl Scheme {
    fn order(&self) -> TrackOrder {
        if self.mapping == 0 {
            TrackOrder::Cylinder
        } else {
            TrackOrder::CylinderSerpentine
        }
    }

    fn zone(
        &self,
        fields: &BlockFields<'_>,
        free_cylinder: u32,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<BuiltZone, ImportError> {
        fields.only(ZONE_KEYS, self.strict, losses)?;
        let first = fields.required("First cylinder number")?;
        let last = fields.required("Last cylinder number")?;
        let (first_cylinder, last_cylinder) = (first.unsigned()?, last.unsigned()?);
        if first_cylinder < free_cylinder {
            let found = format!(
                "{first_cylinder}, but the zone before reaches to {}",
                free_cylinder - 1
            );
            return Err(first.error(
                ErrorKind::Layout,
                found,
                "zones that follow each other inward",
            ));
        }
        if last_cylinder < first_cylinder || last_cylinder >= self.disk.cylinders {
            let found = format!("{last_cylinder} behind {first_cylinder}");
            let expected = format!("a cylinder from there on, below {}", self.disk.cylinders);
            return Err(last.error(ErrorKind::Layout, found, expected));
        }
        let track = fields.required("Blocks per track")?.within(1, 1 << 24)? as u32;
        let mut config = ZoneConfig::plain(first_cylinder, last_cylinder, track);
        self.skews(fields, &mut config, track, losses)?;
        let cylinders = u64::from(last_cylinder - first_cylinder) + 1;
        let cylinder = u64::from(track) * u64::from(self.disk.surfaces);
        let zone = ZoneNumbers {
            track: u64::from(track),
            cylinder,
            cylinders,
            total: cylinder * cylinders,
            dead: fields.required("Empty space at zone front")?.amount()?,
            spares: fields.required("Number of spares")?.amount()?,
            slips: self.slips(&fields.required("slips")?, losses)?,
            defects: defects(&fields.required("defects")?)?,
        };
        config.dead = zone.dead;
        // The spares decide the number of addresses, and this number decides what can be remapped.
        self.spare(fields, &zone, &mut config, losses)?;
        let lbns = self.lbns(fields, &zone, &config)?;
        self.remap(fields, &zone, &mut config, lbns, losses);
        // Scheme 2 reverses the odd cylinders of the disk, but a zone counts cylinders from its own
        // first cylinder.
        if self.mapping == 2 && first_cylinder % 2 == 1 {
            config.runs = odd_runs(self.disk.surfaces);
        }
        Ok(BuiltZone {
            config,
            lbns,
            at: fields.block.at,
        })
    }

    fn skews(
        &self,
        fields: &BlockFields<'_>,
        config: &mut ZoneConfig,
        track: u32,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<(), ImportError> {
        let revolutions = in_revolutions(fields, self.revolutions)?;
        let mut sectors = |found: Option<FoundValue<'_>>| {
            let Some(found) = found else { return Ok(0.0) };
            let number = found.number()?;
            let length = f64::from(track);
            let sectors = if revolutions { number * length } else { number };
            if !revolutions && number.fract() != 0.0 {
                losses.push(ImportLoss::new(
                    &found.key,
                    format!("{number} kept; DiskSim 4.0 drops the fraction"),
                ));
            }
            // A skew is at most a revolution. A negative skew is a lead.
            Ok(if sectors < 0.0 {
                sectors.rem_euclid(length)
            } else {
                sectors
            })
        };
        config.offset = sectors(Some(fields.required("Offset of first block")?))?;
        config.track_skew = sectors(fields.optional("Skew for track switch"))?;
        config.cylinder_skew = sectors(fields.optional("Skew for cylinder switch"))?;
        Ok(())
    }

    fn slips(
        &self,
        list: &FoundValue<'_>,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<Vec<u64>, ImportError> {
        let mut slips = list
            .elements()?
            .map(|slip| slip.amount())
            .collect::<Result<Vec<u64>, _>>()?;
        let given = slips.len();
        if !slips.is_sorted() {
            losses.push(ImportLoss::new(&list.key, "not ascending; sorted"));
            slips.sort_unstable();
        }
        slips.dedup();
        if slips.len() < given {
            losses.push(ImportLoss::new(
                &list.key,
                format!("{} slips given twice; kept once", given - slips.len()),
            ));
        }
        Ok(slips)
    }

    /// Copies the slips of the file, each with one sector.
    fn slip(
        &self,
        fields: &BlockFields<'_>,
        zone: &ZoneNumbers,
        config: &mut ZoneConfig,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<(), ImportError> {
        let units = if self.sparing == 1 {
            // Scheme 1 spares whole tracks, so slips are numbers of tracks.
            zone.total / zone.track
        } else {
            zone.total
        };
        if let Some(&last) = zone.slips.last().filter(|&&last| last >= units) {
            let at = fields.required("slips")?;
            let expected = format!("numbers below {units}, what the zone has");
            return Err(at.error(ErrorKind::Layout, format!("slip {last}"), expected));
        }
        config.slips = zone
            .slips
            .iter()
            .map(|&slip| SlipConfig::One(slip))
            .collect();
        if !zone.slips.is_empty() && (2..=6).contains(&self.sparing) {
            let what = "DiskSim 4.0 turns everything behind a slip by a sector; here tracks stay where they are";
            losses.push(ImportLoss::new(fields.path("slips"), what));
        }
        Ok(())
    }

    /// Sets spares and slips, by scheme.
    fn spare(
        &self,
        fields: &BlockFields<'_>,
        zone: &ZoneNumbers,
        config: &mut ZoneConfig,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<(), ImportError> {
        self.slip(fields, zone, config, losses)?;
        let slipped = zone.slips.len() as u64;
        match self.sparing {
            0 => config.spares = slipped,
            1 => {
                config.spares = zone.spares.saturating_mul(zone.track);
                config.slips = zone
                    .slips
                    .iter()
                    .map(|&slip| SlipConfig::Run(slip * zone.track, zone.track))
                    .collect();
            }
            3 => config.spares_per_track = self.count(fields, zone)?,
            2 => config.spares_per_cylinder = self.count(fields, zone)?,
            8 if zone.cylinders.is_multiple_of(self.range_cylinders) => {
                config.spares_per_cylinder = self.count(fields, zone)?;
                config.spare_range_cylinders = self.range_cylinders as u32;
            }
            8 => self.cover(
                fields,
                zone,
                config,
                SpareScheme::behind(self.range_cylinders, true),
            )?,
            4 => self.cover(fields, zone, config, SpareScheme::behind(1, false))?,
            5 => {
                let what = "spares lie in front of each cylinder; DiskSim 4.0 puts addresses there nevertheless";
                losses.push(ImportLoss::new("Sparing scheme used", what));
                self.cover(fields, zone, config, SpareScheme::in_front(1, true))?;
            }
            6 => self.cover(fields, zone, config, SpareScheme::in_front(1, false))?,
            7 => {
                config.spares = slipped;
                if zone.spares > 0 {
                    let what = format!(
                        "{} unused: scheme 7 has its spares at the end of the disk",
                        zone.spares
                    );
                    losses.push(ImportLoss::new(fields.path("Number of spares"), what));
                }
            }
            9 => config.spares = zone.spares,
            _ => config.spares = zone.spares.saturating_add(slipped),
        }
        Ok(())
    }

    fn count(&self, fields: &BlockFields<'_>, zone: &ZoneNumbers) -> Result<u32, ImportError> {
        u32::try_from(zone.spares).map_err(|_| self.too_many(fields, zone))
    }

    fn too_many(&self, fields: &BlockFields<'_>, zone: &ZoneNumbers) -> ImportError {
        let found = format!("{} spares in scheme {}", zone.spares, self.sparing);
        let expected = format!(
            "fewer than the {} sectors of the zone leave room for",
            zone.total
        );
        misfit(
            fields.document,
            fields.block.at,
            &fields.path("Number of spares"),
            found,
            expected,
        )
    }

    /// Covers the spares of each range with slips, so that no address falls on a spare.
    fn cover(
        &self,
        fields: &BlockFields<'_>,
        zone: &ZoneNumbers,
        config: &mut ZoneConfig,
        cover: SpareScheme,
    ) -> Result<(), ImportError> {
        let range = cover.range.saturating_mul(zone.cylinder);
        if zone.spares >= range.min(zone.total) || zone.total / range > MAX_COVERED {
            return Err(self.too_many(fields, zone));
        }
        let mut slips: Vec<(u64, u64)> = zone.slips.iter().map(|&slip| (slip, 1)).collect();
        let mut spares = if cover.slip_in {
            0
        } else {
            zone.slips.len() as u64
        };
        // A range that is cut off by the end of the zone has no spares.
        for number in 0..zone.total / range {
            let (start, end) = (number * range, (number + 1) * range);
            let first = zone.slips.partition_point(|&slip| slip < start);
            let behind = zone.slips.partition_point(|&slip| slip < end);
            let own = if cover.slip_in {
                (behind - first) as u64
            } else {
                0
            };
            let left = zone.spares.checked_sub(own).ok_or_else(|| {
                let found = format!("{own} slips from sector {start} on");
                let expected = format!("at most {}, the spares there", zone.spares);
                misfit(
                    fields.document,
                    fields.block.at,
                    &fields.path("slips"),
                    found,
                    expected,
                )
            })?;
            spares += zone.spares;
            assert!(left <= zone.spares, "slips use spares up, and make none");
            unused(
                &mut slips,
                &zone.slips[first..behind],
                left,
                if cover.front { Ok(start) } else { Err(end) },
            );
        }
        if cover.slip_in {
            // Slips behind the last whole range find no spares there, so they need sectors of their
            // own.
            let in_ranges = zone.total / range * range;
            let behind = zone.slips.partition_point(|&slip| slip < in_ranges);
            spares += (zone.slips.len() - behind) as u64;
        }
        slips.sort_unstable();
        config.slips = slips
            .into_iter()
            .map(|(start, sectors)| one_or_run(start, sectors))
            .collect();
        config.spares = spares;
        Ok(())
    }

    /// Returns the number of addresses of a zone.
    fn lbns(
        &self,
        fields: &BlockFields<'_>,
        zone: &ZoneNumbers,
        config: &ZoneConfig,
    ) -> Result<u64, ImportError> {
        let in_tracks = u64::from(config.spares_per_track) * (zone.total / zone.track);
        let ranges = zone.cylinders / u64::from(config.spare_range_cylinders.max(1));
        let in_ranges = u64::from(config.spares_per_cylinder) * ranges;
        let unused = [config.spares, zone.dead, in_tracks, in_ranges]
            .into_iter()
            .fold(0, u64::saturating_add);
        let lbns = zone.total.checked_sub(unused).filter(|&lbns| lbns > 0);
        lbns.ok_or_else(|| self.too_many(fields, zone))
    }

    /// Remaps defective sectors, as far as their replacements are free.
    fn remap(
        &self,
        fields: &BlockFields<'_>,
        zone: &ZoneNumbers,
        config: &mut ZoneConfig,
        lbns: u64,
        losses: &mut Vec<ImportLoss>,
    ) {
        let carried = AddressedSectors::new(config, zone, lbns);
        let width = if self.sparing == 1 { zone.track } else { 1 };
        let mut lost = 0;
        let mut used = std::collections::BTreeSet::new();
        if (zone.defects.len() as u64).saturating_mul(width) > MAX_REMAPPED {
            let what = format!(
                "{} defects dropped: more than {MAX_REMAPPED} sectors",
                zone.defects.len()
            );
            losses.push(ImportLoss::new(fields.path("defects"), what));
            return;
        }
        for &(defect, spare) in zone
            .defects
            .iter()
            .filter(|(defect, spare)| defect != spare)
        {
            for sector in 0..width {
                let place = |number: u64| number.saturating_mul(width).saturating_add(sector);
                let (from, to) = (place(defect), place(spare));
                // The replaced sector must have an address, and the replacement must have none.
                if carried.contains(from)
                    && to < zone.total
                    && !carried.contains(to)
                    && used.insert(from)
                {
                    if used.insert(to) {
                        config.remaps.push((from, to));
                        continue;
                    }
                    // The replacement was taken already, so the sector remains free for another
                    // pair.
                    used.remove(&from);
                }
                lost += 1;
            }
        }
        config.remaps.sort_unstable();
        if lost > 0 {
            let what = format!(
                "{lost} sectors not remapped: no address there, or another one on the replacement"
            );
            losses.push(ImportLoss::new(fields.path("defects"), what));
        }
    }
}

/// The place of the spares of a range, and the use of spares by slips.
#[derive(Clone, Copy)]
struct SpareScheme {
    /// Cylinders of a range.
    range: u64,
    front: bool,
    slip_in: bool,
}

impl SpareScheme {
    /// Spares at the end of each range of `range` cylinders.
    fn behind(range: u64, slip_in: bool) -> SpareScheme {
        SpareScheme {
            range,
            front: false,
            slip_in,
        }
    }

    /// Spares at the start of each range.
    fn in_front(range: u64, slip_in: bool) -> SpareScheme {
        SpareScheme {
            range,
            front: true,
            slip_in,
        }
    }
}

/// Adds runs of `left` good sectors, starting at `edge`: upward for `Ok`, downward for `Err`. The
/// sectors in `slips` are not good.
fn unused(runs: &mut Vec<(u64, u64)>, slips: &[u64], mut left: u64, edge: Result<u64, u64>) {
    let mut at = edge.unwrap_or_else(|end| end);
    while left > 0 {
        let (start, sectors) = match edge {
            Ok(_) => {
                let next = slips.get(slips.partition_point(|&slip| slip < at)).copied();
                (at, next.map_or(left, |next| (next - at).min(left)))
            }
            Err(_) => {
                let before = slips
                    .partition_point(|&slip| slip < at)
                    .checked_sub(1)
                    .map(|index| slips[index]);
                let sectors = before.map_or(left, |slip| (at - slip - 1).min(left));
                (at - sectors, sectors)
            }
        };
        if sectors > 0 {
            runs.push((start, sectors));
        }
        left -= sectors;
        // The next sector is a slip, or no sectors are left.
        at = if edge.is_ok() {
            start + sectors + 1
        } else {
            start.saturating_sub(1)
        };
    }
}

fn one_or_run(start: u64, sectors: u64) -> SlipConfig {
    if sectors == 1 {
        SlipConfig::One(start)
    } else {
        SlipConfig::Run(start, sectors)
    }
}

/// The sectors of a zone that carry an address.
struct AddressedSectors {
    /// Start, length, and number of slipped sectors before the run.
    runs: Vec<(u64, u64, u64)>,
    /// Sectors and addresses of a range.
    range: (u64, u64),
    first: u64,
    end: u64,
}

impl AddressedSectors {
    fn new(config: &ZoneConfig, zone: &ZoneNumbers, lbns: u64) -> AddressedSectors {
        let mut before = 0;
        let runs = config.slips.iter().map(|slip| {
            let (start, sectors) = slip.run();
            before += sectors;
            (start, sectors, before - sectors)
        });
        let runs = runs.collect();
        let range = match (config.spares_per_track, config.spares_per_cylinder) {
            (0, 0) => (zone.total, zone.total),
            (spares, 0) => (zone.track, zone.track.saturating_sub(u64::from(spares))),
            (_, spares) => {
                let sectors = zone.cylinder * u64::from(config.spare_range_cylinders.max(1));
                (sectors, sectors.saturating_sub(u64::from(spares)))
            }
        };
        AddressedSectors {
            runs,
            range,
            first: zone.dead,
            end: zone.dead + lbns,
        }
    }

    /// Returns the number of slipped sectors before `sector`.
    fn slipped(&self, sector: u64) -> u64 {
        let behind = self.runs.partition_point(|run| run.0 < sector);
        behind.checked_sub(1).map_or(0, |index| {
            let (start, sectors, before) = self.runs[index];
            before + sectors.min(sector - start)
        })
    }

    fn contains(&self, sector: u64) -> bool {
        if self.slipped(sector) != self.slipped(sector.saturating_add(1)) {
            return false;
        }
        let base = sector - sector % self.range.0;
        let within = sector - base - (self.slipped(sector) - self.slipped(base));
        let address = base / self.range.0 * self.range.1 + within;
        within < self.range.1 && (self.first..self.end).contains(&address)
    }
}

/// Returns the runs of two cylinders; the first cylinder runs from its last surface to its first.
fn odd_runs(surfaces: u32) -> Vec<RunConfig> {
    let run = |surface, first_cylinder| RunConfig {
        surface,
        first_cylinder,
        tracks: 1,
        direction: SeekDirection::Inward,
        sectors_per_track: None,
        offset_revolutions: None,
        step_revolutions: None,
    };
    (0..surfaces)
        .rev()
        .map(|surface| run(surface, 0))
        .chain((0..surfaces).map(|surface| run(surface, 1)))
        .collect()
}

fn defects(list: &FoundValue<'_>) -> Result<Vec<(u64, u64)>, ImportError> {
    let numbers = list
        .elements()?
        .map(|number| number.amount())
        .collect::<Result<Vec<u64>, _>>()?;
    if numbers.len() % 2 == 1 {
        let found = format!("{} numbers", numbers.len());
        return Err(list.error(
            ErrorKind::WrongValue,
            found,
            "pairs of a defect and its replacement",
        ));
    }
    Ok(numbers
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect())
}
