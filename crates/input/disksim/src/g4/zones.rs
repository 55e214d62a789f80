//! The tree as zones that do not overlap.
//!
//! Each entry of the root becomes a zone. A group of cylinders of the zone is one instance of the
//! child. Entries that share cylinders become one zone with a single group. Tracks without an entry
//! are appended to the group and carry no address, so a group is always a whole number of
//! cylinders.

use super::pieces::{MAX_PIECES, TooMany, TrackPiece, of_entry, of_node};
use super::tree::{Child, ChildInstances, LayoutTree, Remap};
use crate::error::{ErrorKind, ImportError, ImportLoss};
use crate::fields::BlockFields;
use crate::grammar::FilePlace;
use crate::layout::{BuiltZone, ImportedLayout, LayoutDisk, misfit};
use fullstroke_drive::{RunConfig, SeekDirection, SlipConfig, TrackOrder, ZoneConfig};

/// Largest number of tracks of a group, the limit of the drive.
const MAX_GROUP_TRACKS: u64 = 1 << 24;
/// Largest number of runs of sectors without an address.
const MAX_UNUSED: u64 = 1 << 23;
/// Largest number of remapped sectors.
const MAX_REMAPPED: u64 = 100_000;

/// Instances of the same pieces, one after the other.
struct RepeatedPieces {
    /// First address in the tree.
    lbn: u64,
    /// Outermost cylinder.
    cylinder: i64,
    /// Number of cylinders of one instance.
    cylinders: i64,
    instances: u64,
    /// Angle from one instance to the next, in revolutions.
    advance: f64,
    /// Pieces of the first instance in address order, with cylinders of the disk.
    pieces: Vec<TrackPiece>,
    at: FilePlace,
}

/// A section with its tracks in order.
struct TrackZone {
    section: RepeatedPieces,
    /// For each piece: first sector within the group, and first address within the group.
    starts: Vec<(u64, u64)>,
    /// Sectors and addresses of a group.
    group: (u64, u64),
    /// Tracks without a piece: surface, outermost cylinder within the group, number of tracks.
    fillers: Vec<(u32, u32, u32)>,
    longest: u32,
}

/// Converts a tree.
pub(super) fn layout(
    fields: &BlockFields<'_>,
    tree: &LayoutTree,
    disk: LayoutDisk,
    losses: &mut Vec<ImportLoss>,
) -> Result<ImportedLayout, ImportError> {
    let too_many = |TooMany(at): TooMany| {
        let key = fields.path("IDX");
        fields.document.error(
            ErrorKind::TooLarge,
            at,
            key,
            "too many runs of tracks",
            "a tree of reasonable size",
        )
    };
    let mut sections = Sections::default();
    let root = Origin {
        lbn: 0,
        cylinder: 0,
        angle: 0.0,
        limit: tree.lbns(tree.nodes.len() - 1),
    };
    for entry in tree.root() {
        root.sections(tree, entry, &mut sections)
            .map_err(too_many)?;
    }
    let sections = separate(sections.list).map_err(too_many)?;
    let mut layout = ImportedLayout {
        order: TrackOrder::Cylinder,
        zones: Vec::new(),
    };
    let mut zones = Vec::new();
    let mut unused_left = MAX_UNUSED;
    for section in sections {
        let zone = TrackZone::new(fields, section, disk)?;
        let slips = zone.slips(fields, tree, &mut unused_left)?;
        layout.zones.push(zone.built(slips));
        zones.push(zone);
    }
    // Last, because a replacement must be a sector without an address, and only finished zones know
    // these.
    remap(tree, &zones, &mut layout, losses);
    Ok(layout)
}

/// The start of a node.
#[derive(Clone, Copy)]
struct Origin {
    lbn: u64,
    cylinder: i64,
    angle: f64,
    /// Number of addresses of the node that count.
    limit: u64,
}

impl Origin {
    /// Adds the sections of an entry. A node of nodes with one instance becomes several sections,
    /// one or more for each of its entries.
    fn sections(
        self,
        tree: &LayoutTree,
        entry: &ChildInstances,
        sections: &mut Sections,
    ) -> Result<(), TooMany> {
        let Some(lbns) = self
            .limit
            .checked_sub(entry.lbn)
            .map(|left| left.min(entry.lbns))
        else {
            return Ok(());
        };
        if lbns == 0 {
            return Ok(());
        }
        let (full, rest) = (lbns / entry.lbns_each, lbns % entry.lbns_each);
        let Child::Node(child) = entry.child else {
            let mut pieces = Vec::new();
            of_entry(tree, entry, lbns, &mut pieces)?;
            return sections.push(self.single(entry.lbn, &pieces, entry.at));
        };
        // A single instance of a node of nodes is no repetition. Each of its entries becomes a
        // section of its own.
        if full + u64::from(rest > 0) == 1
            && tree.nodes[child]
                .iter()
                .any(|entry| matches!(entry.child, Child::Node(_)))
        {
            let (cylinder, angle) = entry.place(0);
            let below = Origin {
                lbn: self.lbn + entry.lbn,
                cylinder: self.cylinder + cylinder,
                angle: self.angle + angle,
                limit: lbns,
            };
            return tree.nodes[child]
                .iter()
                .try_for_each(|entry| below.sections(tree, entry, sections));
        }
        if full > 0 {
            sections.push(self.repeated(tree, entry, child, full)?)?;
        }
        if rest > 0 {
            let (cylinders, revolutions) = entry.place(full);
            let part: Vec<TrackPiece> = of_node(tree, child, rest)?
                .iter()
                .map(|piece| piece.moved(cylinders, revolutions))
                .collect();
            sections.push(self.single(entry.lbn + full * entry.lbns_each, &part, entry.at))?;
        }
        Ok(())
    }

    fn repeated(
        self,
        tree: &LayoutTree,
        entry: &ChildInstances,
        child: usize,
        instances: u64,
    ) -> Result<RepeatedPieces, TooMany> {
        let whole = of_node(tree, child, entry.lbns_each)?;
        let (cylinders, revolutions) = entry.place(0);
        let first: Vec<TrackPiece> = whole
            .iter()
            .map(|piece| piece.moved(cylinders, revolutions))
            .collect();
        let (outermost, innermost) = span(&first);
        // Only instances that do not share cylinders, and that proceed inward, can be groups of one
        // zone.
        let fits = outermost >= cylinders && innermost < cylinders + entry.cylinders_each;
        if instances == 1 || !fits || entry.outward {
            let mut pieces = Vec::new();
            of_entry(tree, entry, instances * entry.lbns_each, &mut pieces)?;
            return Ok(self.single(entry.lbn, &pieces, entry.at));
        }
        let pieces = first
            .iter()
            .map(|piece| piece.moved(self.cylinder, self.angle))
            .collect();
        Ok(RepeatedPieces {
            lbn: self.lbn + entry.lbn,
            cylinder: self.cylinder + cylinders,
            cylinders: entry.cylinders_each,
            instances,
            advance: entry.advance,
            pieces,
            at: entry.at,
        })
    }

    fn single(self, lbn: u64, pieces: &[TrackPiece], at: FilePlace) -> RepeatedPieces {
        let pieces: Vec<TrackPiece> = pieces
            .iter()
            .map(|piece| piece.moved(self.cylinder, self.angle))
            .collect();
        RepeatedPieces::once(self.lbn + lbn, pieces, at)
    }
}

/// Sections in address order, up to a limit.
#[derive(Default)]
struct Sections {
    list: Vec<RepeatedPieces>,
    pieces: usize,
}

impl Sections {
    fn push(&mut self, section: RepeatedPieces) -> Result<(), TooMany> {
        // An empty section counts as well, so the number of sections has a limit.
        self.pieces += section.pieces.len() + 1;
        if self.pieces > MAX_PIECES {
            return Err(TooMany(section.at));
        }
        self.list.push(section);
        Ok(())
    }
}

fn span(pieces: &[TrackPiece]) -> (i64, i64) {
    pieces
        .iter()
        .map(TrackPiece::span)
        .fold((i64::MAX, i64::MIN), |all, one| {
            (all.0.min(one.0), all.1.max(one.1))
        })
}

impl RepeatedPieces {
    fn once(lbn: u64, pieces: Vec<TrackPiece>, at: FilePlace) -> RepeatedPieces {
        let (outermost, innermost) = span(&pieces);
        let cylinders = innermost - outermost + 1;
        RepeatedPieces {
            lbn,
            cylinder: outermost,
            cylinders,
            instances: 1,
            advance: 0.0,
            pieces,
            at,
        }
    }

    fn end(&self) -> i64 {
        self.cylinder + self.cylinders * self.instances as i64
    }

    /// Returns all instances as pieces.
    fn expanded(&self) -> Result<Vec<TrackPiece>, TooMany> {
        if (self.instances as usize).saturating_mul(self.pieces.len()) > MAX_PIECES {
            return Err(TooMany(self.at));
        }
        let instance = |number: u64| {
            let (cylinders, revolutions) =
                (self.cylinders * number as i64, self.advance * number as f64);
            self.pieces
                .iter()
                .map(move |piece| piece.moved(cylinders, revolutions))
        };
        Ok((0..self.instances).flat_map(instance).collect())
    }
}

/// Joins sections that share cylinders or do not follow each other inward.
fn separate(sections: Vec<RepeatedPieces>) -> Result<Vec<RepeatedPieces>, TooMany> {
    let mut separate: Vec<RepeatedPieces> = Vec::new();
    for section in sections {
        // The sections so far are sorted and apart, so those that reach into this one are the last.
        let apart = separate.partition_point(|before| before.end() <= section.cylinder);
        let mut joined = separate.split_off(apart);
        if joined.is_empty() {
            separate.push(section);
            continue;
        }
        joined.push(section);
        let (lbn, at) = (joined[0].lbn, joined[0].at);
        let mut pieces = Vec::new();
        for section in &joined {
            pieces.append(&mut section.expanded()?);
            if pieces.len() > MAX_PIECES {
                return Err(TooMany(at));
            }
        }
        separate.push(RepeatedPieces::once(lbn, pieces, at));
    }
    Ok(separate)
}

impl TrackZone {
    fn new(
        fields: &BlockFields<'_>,
        section: RepeatedPieces,
        disk: LayoutDisk,
    ) -> Result<TrackZone, ImportError> {
        let outside = section.cylinder < 0 || section.end() > i64::from(disk.cylinders);
        let tracks = (section.cylinders as u64).saturating_mul(u64::from(disk.surfaces));
        if outside || tracks > MAX_GROUP_TRACKS {
            let found = format!("cylinders {} to {}", section.cylinder, section.end() - 1);
            let expected = format!(
                "cylinders below {}, and at most {MAX_GROUP_TRACKS} tracks",
                disk.cylinders
            );
            return Err(misfit(
                fields.document,
                section.at,
                &fields.path("IDX"),
                found,
                expected,
            ));
        }
        let fillers = uncovered(fields, &section, disk.surfaces)?;
        let longest = section
            .pieces
            .iter()
            .map(|piece| piece.sectors)
            .max()
            .unwrap_or(1);
        let mut starts = Vec::with_capacity(section.pieces.len());
        let mut group = (0, 0);
        for piece in &section.pieces {
            starts.push(group);
            group.0 += u64::from(piece.tracks) * u64::from(piece.sectors);
            group.1 += piece.lbns();
        }
        // Behind the pieces, so that the fillers move no sector of a piece.
        group.0 += fillers
            .iter()
            .map(|filler| u64::from(filler.2) * u64::from(longest))
            .sum::<u64>();
        Ok(TrackZone {
            section,
            starts,
            group,
            fillers,
            longest,
        })
    }

    fn lbns(&self) -> u64 {
        self.group.1 * self.section.instances
    }

    /// Returns the sector of the tree's address `lbn`, and the number of addresses from there to
    /// the end of the track.
    fn sector(&self, lbn: u64) -> (u64, u64) {
        let within = lbn - self.section.lbn;
        let (instance, within) = (within / self.group.1, within % self.group.1);
        let index = self.starts.partition_point(|start| start.1 <= within) - 1;
        let (piece, start) = (&self.section.pieces[index], self.starts[index]);
        let carrying = u64::from(piece.carrying);
        let (track, sector) = ((within - start.1) / carrying, (within - start.1) % carrying);
        (
            instance * self.group.0 + start.0 + track * u64::from(piece.sectors) + sector,
            carrying - sector,
        )
    }

    /// Returns the first sector of a track and the track's length in sectors.
    fn track(&self, cylinder: i64, head: u32) -> Option<(u64, u64)> {
        let relative = cylinder - self.section.cylinder;
        if !(0..self.section.end() - self.section.cylinder).contains(&relative) {
            return None;
        }
        let instance = relative / self.section.cylinders;
        let within = relative % self.section.cylinders;
        let base = instance as u64 * self.group.0;
        let found = self
            .section
            .pieces
            .iter()
            .zip(&self.starts)
            .find_map(|(piece, start)| {
                let first = piece.cylinder - self.section.cylinder;
                let track = if piece.outward {
                    first - within
                } else {
                    within - first
                };
                let hit = piece.head == head && (0..i64::from(piece.tracks)).contains(&track);
                let sectors = u64::from(piece.sectors);
                hit.then(|| (base + start.0 + track as u64 * sectors, sectors))
            });
        // Tracks without a piece lie at the end of the group, in the order of the fillers.
        found.or_else(|| {
            let sectors = u64::from(self.longest);
            let mut start = base + self.group.0;
            self.fillers
                .iter()
                .rev()
                .find_map(|&(surface, first, tracks)| {
                    start -= u64::from(tracks) * sectors;
                    let track = within - i64::from(first);
                    let hit = surface == head && (0..i64::from(tracks)).contains(&track);
                    hit.then(|| (start + track as u64 * sectors, sectors))
                })
        })
    }

    /// Returns the runs of sectors without an address, ascending.
    fn slips(
        &self,
        fields: &BlockFields<'_>,
        tree: &LayoutTree,
        left: &mut u64,
    ) -> Result<Vec<(u64, u64)>, ImportError> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut push = |start: u64, sectors: u64| {
            *left = left.checked_sub(1).ok_or_else(|| {
                let found = format!("more than {MAX_UNUSED} runs of sectors without an address");
                fields.document.error(
                    ErrorKind::TooLarge,
                    self.section.at,
                    fields.path("IDX"),
                    found,
                    "fewer",
                )
            })?;
            runs.push((start, sectors));
            Ok::<(), ImportError>(())
        };
        for instance in 0..self.section.instances {
            let base = instance * self.group.0;
            for (piece, start) in self.section.pieces.iter().zip(&self.starts) {
                let (sectors, carrying) = (u64::from(piece.sectors), u64::from(piece.carrying));
                if carrying < sectors {
                    for track in 0..u64::from(piece.tracks) {
                        push(
                            base + start.0 + track * sectors + carrying,
                            sectors - carrying,
                        )?;
                    }
                }
            }
            let filled = self
                .fillers
                .iter()
                .map(|filler| u64::from(filler.2) * u64::from(self.longest))
                .sum();
            if filled > 0 {
                assert!(
                    filled <= self.group.0,
                    "fillers of {filled} sectors are part of {}",
                    self.group.0
                );
                push(base + self.group.0 - filled, filled)?;
            }
        }
        let end = self.section.lbn + self.lbns();
        let first = tree
            .slips
            .partition_point(|slip| slip.0 + slip.1 <= self.section.lbn);
        // A slip of the tree may cross tracks, and the sectors between the tracks are not part of
        // it.
        for &(start, sectors) in tree.slips[first..].iter().take_while(|slip| slip.0 < end) {
            let (mut at, to) = (start.max(self.section.lbn), (start + sectors).min(end));
            while at < to {
                let (sector, on_track) = self.sector(at);
                assert!(on_track > 0, "address {at} is on a track");
                let run = on_track.min(to - at);
                push(sector, run)?;
                at += run;
            }
        }
        // The slips of the tree come last and in the order of addresses; a zone lists its runs by
        // sector.
        runs.sort_unstable();
        Ok(runs)
    }

    fn built(&self, slips: Vec<(u64, u64)>) -> BuiltZone {
        let section = &self.section;
        let total = self.group.0 * section.instances;
        let spares: u64 = slips.iter().map(|slip| slip.1).sum();
        assert!(
            spares <= total,
            "{spares} sectors without an address on {total} of the zone"
        );
        assert!(
            section.end() > section.cylinder,
            "a section has a cylinder at least"
        );
        let mut config = ZoneConfig::plain(
            section.cylinder as u32,
            section.end() as u32 - 1,
            self.longest,
        );
        // Slips move addresses into the spares, so there are as many spares as slipped sectors.
        config.spares = spares;
        config.slips = slips
            .into_iter()
            .map(|(start, sectors)| {
                if sectors == 1 {
                    SlipConfig::One(start)
                } else {
                    SlipConfig::Run(start, sectors)
                }
            })
            .collect();
        config.runs = self.runs();
        // The angle from the last track of a group to the first track of the next group.
        let last = config.runs.last().map_or(0.0, |run| {
            let steps = f64::from(run.tracks - 1);
            run.offset_revolutions.unwrap_or(0.0) + run.step_revolutions.unwrap_or(0.0) * steps
        });
        config.cylinder_skew = turned(section.advance - last) * f64::from(self.longest);
        BuiltZone {
            config,
            lbns: total - spares,
            at: section.at,
        }
    }

    fn runs(&self) -> Vec<RunConfig> {
        let pieces = self.section.pieces.iter().map(|piece| RunConfig {
            surface: piece.head,
            first_cylinder: (piece.span().0 - self.section.cylinder) as u32,
            tracks: piece.tracks,
            direction: if piece.outward {
                SeekDirection::Outward
            } else {
                SeekDirection::Inward
            },
            sectors_per_track: Some(piece.sectors),
            offset_revolutions: Some(turned(piece.angle)),
            step_revolutions: (piece.tracks > 1).then(|| turned(piece.step)),
        });
        let fillers = self
            .fillers
            .iter()
            .map(|&(surface, first_cylinder, tracks)| RunConfig {
                surface,
                first_cylinder,
                tracks,
                direction: SeekDirection::Inward,
                sectors_per_track: Some(self.longest),
                offset_revolutions: Some(0.0),
                step_revolutions: (tracks > 1).then_some(0.0),
            });
        pieces.chain(fillers).collect()
    }
}

/// Returns the fractional part of a revolution.
fn turned(revolutions: f64) -> f64 {
    let part = revolutions.rem_euclid(1.0);
    // A tiny negative angle rounds up to a whole revolution.
    if part >= 1.0 { 0.0 } else { part }
}

/// Returns the tracks of a group without a piece.
fn uncovered(
    fields: &BlockFields<'_>,
    section: &RepeatedPieces,
    surfaces: u32,
) -> Result<Vec<(u32, u32, u32)>, ImportError> {
    let cylinders = section.cylinders as usize;
    let mut covered = vec![false; cylinders * surfaces as usize];
    for piece in &section.pieces {
        let (first, last) = piece.span();
        for cylinder in first..=last {
            let within = cylinder - section.cylinder;
            let place = usize::try_from(within)
                .ok()
                .filter(|&within| within < cylinders);
            let track = place.map(|within| &mut covered[piece.head as usize * cylinders + within]);
            if track.is_none_or(|track| std::mem::replace(track, true)) {
                let found = format!(
                    "a second run of addresses on cylinder {cylinder}, head {}",
                    piece.head
                );
                let key = fields.path("IDX");
                return Err(misfit(
                    fields.document,
                    piece.at,
                    &key,
                    found,
                    "each track in one entry only",
                ));
            }
        }
    }
    let mut fillers: Vec<(u32, u32, u32)> = Vec::new();
    for (index, _) in covered.iter().enumerate().filter(|(_, covered)| !**covered) {
        let (surface, cylinder) = ((index / cylinders) as u32, (index % cylinders) as u32);
        match fillers.last_mut() {
            Some(last) if last.0 == surface && last.1 + last.2 == cylinder => last.2 += 1,
            _ => fillers.push((surface, cylinder, 1)),
        }
    }
    Ok(fillers)
}

/// Carries out remaps whose replacement lies in the same zone and carries no address.
fn remap(
    tree: &LayoutTree,
    zones: &[TrackZone],
    layout: &mut ImportedLayout,
    losses: &mut Vec<ImportLoss>,
) {
    let mut lost = 0;
    let mut used = std::collections::BTreeSet::new();
    let mut tried = 0;
    for remap in &tree.remaps {
        tried += remap.sectors;
        // A remap is tried sector by sector, so the limit counts tries rather than successes.
        if tried > MAX_REMAPPED {
            lost += remap.sectors;
            continue;
        }
        for number in 0..remap.sectors {
            let pair = replaced(tree, zones, layout, remap, number);
            match pair {
                Some((zone, from, to))
                    if !used.contains(&(zone, from)) && !used.contains(&(zone, to)) =>
                {
                    used.extend([(zone, from), (zone, to)]);
                    layout.zones[zone].config.remaps.push((from, to));
                }
                _ => lost += 1,
            }
        }
    }
    for zone in &mut layout.zones {
        zone.config.remaps.sort_unstable();
    }
    if lost > 0 {
        let what = format!(
            "{lost} sectors not remapped: the replacement lies in another zone or carries an address, or they are more than {MAX_REMAPPED}"
        );
        losses.push(ImportLoss::new("Layout Model.Remaps", what));
    }
}

/// Returns the zone, the defective sector and the replacement of one remapped address.
fn replaced(
    tree: &LayoutTree,
    zones: &[TrackZone],
    layout: &ImportedLayout,
    remap: &Remap,
    number: u64,
) -> Option<(usize, u64, u64)> {
    let lbn = tree.slipped(remap.lbn + number);
    let index = zones
        .partition_point(|zone| zone.section.lbn <= lbn)
        .checked_sub(1)?;
    let zone = &zones[index];
    if lbn >= zone.section.lbn + zone.lbns() {
        return None;
    }
    let (start, sectors) = zone.track(i64::from(remap.cylinder), remap.head)?;
    let within = remap
        .sector
        .checked_add(number)
        .filter(|&within| within < sectors)?;
    let to = start + within;
    // A replacement must be a sector without an address, and the slips are the sectors without
    // addresses.
    let slips = &layout.zones[index].config.slips;
    let behind = slips.partition_point(|slip| slip.run().0 <= to);
    let (first, run) = slips.get(behind.checked_sub(1)?)?.run();
    (to < first + run).then(|| (index, zone.sector(lbn).0, to))
}
