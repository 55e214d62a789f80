//! A node as runs of tracks in address order.

use super::tree::{Child, ChildInstances, LayoutTree};
use crate::grammar::FilePlace;

/// Largest number of runs of tracks in a layout.
pub(super) const MAX_PIECES: usize = 1 << 21;

/// Neighbouring tracks of one surface, in address order.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackPiece {
    pub(super) head: u32,
    /// Cylinder of the first track.
    pub(super) cylinder: i64,
    pub(super) tracks: u32,
    pub(super) outward: bool,
    pub(super) sectors: u32,
    /// Number of sectors at the start of each track that carry addresses.
    pub(super) carrying: u32,
    /// Angle of the first track's start, in revolutions.
    pub(super) angle: f64,
    /// Angle from one track to the next, in revolutions.
    pub(super) step: f64,
    /// Entry from which the piece was made.
    pub(super) at: FilePlace,
}

impl TrackPiece {
    pub(super) fn lbns(&self) -> u64 {
        u64::from(self.tracks) * u64::from(self.carrying)
    }

    /// Returns the outermost and the innermost cylinder.
    pub(super) fn span(&self) -> (i64, i64) {
        let reach = i64::from(self.tracks) - 1;
        if self.outward {
            (self.cylinder - reach, self.cylinder)
        } else {
            (self.cylinder, self.cylinder + reach)
        }
    }

    pub(super) fn moved(mut self, cylinders: i64, revolutions: f64) -> TrackPiece {
        self.cylinder += cylinders;
        self.angle += revolutions;
        self
    }
}

/// The error for too many pieces, or for pieces beyond the disk.
pub(super) struct TooMany(pub(super) FilePlace);

/// Returns the first `lbns` addresses of a node as pieces.
pub(super) fn of_node(
    tree: &LayoutTree,
    node: usize,
    lbns: u64,
) -> Result<Vec<TrackPiece>, TooMany> {
    let mut pieces = Vec::new();
    for entry in tree.nodes[node].iter().take_while(|entry| entry.lbn < lbns) {
        of_entry(tree, entry, entry.lbns.min(lbns - entry.lbn), &mut pieces)?;
    }
    Ok(pieces)
}

/// Adds the first `lbns` addresses of an entry.
pub(super) fn of_entry(
    tree: &LayoutTree,
    entry: &ChildInstances,
    lbns: u64,
    pieces: &mut Vec<TrackPiece>,
) -> Result<(), TooMany> {
    let (full, rest) = (lbns / entry.lbns_each, lbns % entry.lbns_each);
    match entry.child {
        Child::Track { .. } => tracks(tree, entry, full, rest, pieces),
        Child::Node(child) => {
            // Computed once and moved for each instance: a child may have thousands of instances.
            let whole = if full > 0 {
                of_node(tree, child, entry.lbns_each)?
            } else {
                Vec::new()
            };
            for instance in 0..full {
                let (cylinders, revolutions) = entry.place(instance);
                room(pieces, whole.len(), entry)?;
                pieces.extend(
                    whole
                        .iter()
                        .map(|piece| piece.moved(cylinders, revolutions)),
                );
            }
            if rest > 0 {
                let part = of_node(tree, child, rest)?;
                let (cylinders, revolutions) = entry.place(full);
                room(pieces, part.len(), entry)?;
                pieces.extend(part.iter().map(|piece| piece.moved(cylinders, revolutions)));
            }
            Ok(())
        }
    }
}

impl ChildInstances {
    /// Returns the start of an instance: cylinders and revolutions from the start of the parent.
    pub(super) fn place(&self, instance: u64) -> (i64, f64) {
        let cylinders = instance as i64 * self.cylinders_each;
        let cylinder = if self.outward {
            self.cylinder - cylinders
        } else {
            self.cylinder + cylinders
        };
        (cylinder, self.offset + self.advance * instance as f64)
    }
}

fn tracks(
    tree: &LayoutTree,
    entry: &ChildInstances,
    full: u64,
    rest: u64,
    pieces: &mut Vec<TrackPiece>,
) -> Result<(), TooMany> {
    let Child::Track { pattern, head } = entry.child else {
        return Ok(());
    };
    let (cylinder, angle) = entry.place(0);
    let one = TrackPiece {
        head,
        cylinder,
        tracks: 1,
        outward: entry.outward,
        sectors: tree.patterns[pattern].sectors,
        carrying: entry.lbns_each as u32,
        angle,
        step: entry.advance,
        at: entry.at,
    };
    let at = |instance: u64| {
        let (cylinder, angle) = entry.place(instance);
        TrackPiece {
            cylinder,
            angle,
            ..one
        }
    };
    // Tracks on consecutive cylinders become one piece. Otherwise a disk would need a piece for
    // each track.
    if entry.cylinders_each == 1 && full > 0 {
        room(pieces, 1, entry)?;
        pieces.push(TrackPiece {
            tracks: u32::try_from(full).map_err(|_| TooMany(entry.at))?,
            ..one
        });
    } else {
        room(pieces, usize::try_from(full).unwrap_or(usize::MAX), entry)?;
        pieces.extend((0..full).map(at));
    }
    if rest > 0 {
        room(pieces, 1, entry)?;
        pieces.push(TrackPiece {
            carrying: rest as u32,
            ..at(full)
        });
    }
    Ok(())
}

fn room(pieces: &[TrackPiece], more: usize, entry: &ChildInstances) -> Result<(), TooMany> {
    if pieces.len().saturating_add(more) > MAX_PIECES {
        Err(TooMany(entry.at))
    } else {
        Ok(())
    }
}
