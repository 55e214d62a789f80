//! The common parts of DiskSim's layouts.

use crate::error::{ErrorKind, ImportError, ImportLoss};
use crate::grammar::{Document, FilePlace};
use fullstroke_drive::{TrackOrder, ZoneConfig};

/// The disk of a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayoutDisk {
    pub(crate) surfaces: u32,
    /// Number of cylinders that a layout may use: one more than the file announces. Extracted files
    /// count sometimes from 0 and sometimes from 1, and DiskSim 4.0 does not compare a layout with
    /// the announced number.
    pub(crate) cylinders: u32,
    /// Number of addresses, according to the file.
    pub(crate) blocks: u64,
}

/// The places of addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImportedLayout {
    pub(crate) order: TrackOrder,
    pub(crate) zones: Vec<BuiltZone>,
}

/// A zone with its number of addresses and its place in the file.
#[derive(Clone, Debug)]
pub(crate) struct BuiltZone {
    pub(crate) config: ZoneConfig,
    pub(crate) lbns: u64,
    pub(crate) at: FilePlace,
}

impl ImportedLayout {
    pub(crate) fn lbns(&self) -> u64 {
        self.zones
            .iter()
            .map(|zone| zone.lbns)
            .fold(0, u64::saturating_add)
    }

    /// Returns the number of cylinders of a disk that announces `announced`. The result is larger
    /// if the layout uses the cylinder behind the last.
    pub(crate) fn cylinders(&self, announced: u32, losses: &mut Vec<ImportLoss>) -> u32 {
        let used = self
            .zones
            .last()
            .map_or(0, |zone| zone.config.last_cylinder + 1);
        if used > announced {
            let what =
                format!("{announced} announced, but the layout uses {used}; the disk has {used}");
            losses.push(ImportLoss::new("Number of cylinders", what));
        }
        used.max(announced)
    }

    /// Cuts the layout to the announced number of blocks, and drops zones without addresses.
    pub(crate) fn cut(&mut self, blocks: u64, losses: &mut Vec<ImportLoss>) {
        // A zone in which all sectors are spares holds no address, and a drive file has no such
        // zone.
        self.zones.retain(|zone| zone.lbns > 0);
        let held = self.lbns();
        if held < blocks {
            let what =
                format!("{blocks} announced, but the layout holds {held}; the disk has {held}");
            losses.push(ImportLoss::new("Block count", what));
        }
        let Some(mut surplus) = held
            .checked_sub(blocks)
            .filter(|&surplus| surplus > 0 && blocks > 0)
        else {
            return;
        };
        let what = format!(
            "the layout holds {held}, {surplus} more than {blocks}; the last ones become spares"
        );
        losses.push(ImportLoss::new("Block count", what));
        while let Some(last) = self.zones.last_mut() {
            if surplus < last.lbns {
                // The surplus becomes spares, so the sectors keep their places without addresses.
                last.config.spares += surplus;
                last.lbns -= surplus;
                assert_eq!(
                    self.lbns(),
                    blocks,
                    "the layout is cut to what the disk announces"
                );
                return;
            }
            surplus -= last.lbns;
            self.zones.pop();
        }
    }
}

/// Creates an error of kind [`ErrorKind::Layout`].
pub(crate) fn misfit(
    document: &Document,
    at: FilePlace,
    key: &str,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> ImportError {
    document.error(ErrorKind::Layout, at, key, found, expected)
}
