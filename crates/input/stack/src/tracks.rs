//! The known tracks above a drive, an array and a controller: one source for all layers that align
//! to tracks.

use crate::config::Stack;
use crate::drive_tracks::TrackUse;
use crate::spec::VolumeSpec;
use fullstroke_tracks::{Boundaries, ChunkRows, LeadingSectors, UnknownTracks};
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::{Geometry, Layout, Stripe};
use std::sync::Arc;

impl Stack {
    /// Returns the tracks of the device that the hosts see.
    ///
    /// # Errors
    /// The reason why there are no tracks, or why they are unknown.
    pub(crate) fn tracks(&self, wanted: TrackUse) -> Result<Arc<Boundaries>, UnknownTracks> {
        if self.controller.is_some() && !self.volume.tables_are_given() {
            return Err(UnknownTracks::BehindController);
        }
        match wanted {
            TrackUse::Tracks => self.volume.tracks(),
            TrackUse::Windows => self.volume.windows(),
        }
    }
}

impl VolumeSpec {
    /// Returns true if each drive has a track table from a file.
    fn tables_are_given(&self) -> bool {
        match self {
            VolumeSpec::Drive(_, tracks) => tracks.given,
            VolumeSpec::Volume { members, .. } => members.iter().all(VolumeSpec::tables_are_given),
        }
    }

    /// Returns the tracks of the volume's addresses: tracks of one drive, of concatenated drives,
    /// or of copies with equal tracks.
    ///
    /// # Errors
    /// The reason why there are no tracks.
    pub(crate) fn tracks(&self) -> Result<Arc<Boundaries>, UnknownTracks> {
        match self {
            VolumeSpec::Drive(model, tracks) => tracks.table(model),
            VolumeSpec::Volume { members, .. } if self.is_only_its_member() => members[0].tracks(),
            VolumeSpec::Volume { members, .. } => {
                let layout = self.layout_of_tracks()?;
                match layout.geometry() {
                    Geometry::Contiguous => contiguous(&*layout, members),
                    Geometry::Striped(_) | Geometry::Varying => Err(self.has_none()),
                }
            }
        }
    }

    /// Returns the best ends of read-ahead windows. Windows end with tracks if the volume's
    /// addresses have tracks. Otherwise windows end with the rows of chunks in which the members'
    /// tracks end.
    ///
    /// # Errors
    /// The reason why there are no tracks.
    pub(crate) fn windows(&self) -> Result<Arc<Boundaries>, UnknownTracks> {
        let VolumeSpec::Volume { members, .. } = self else {
            return self.tracks();
        };
        if self.is_only_its_member() {
            return members[0].windows();
        }
        let layout = self.layout_of_tracks()?;
        let Geometry::Striped(Stripe {
            unit,
            row: Some(row),
            ..
        }) = layout.geometry()
        else {
            return self.tracks();
        };
        let rows = ChunkRows {
            unit,
            row,
            count: layout.capacity().0 / row.0,
        };
        if !rows_lie_abreast(&*layout, rows) {
            return Err(self.has_none());
        }
        let tables = members
            .iter()
            .map(VolumeSpec::windows)
            .collect::<Result<Vec<_>, _>>()?;
        let tables: Vec<&Boundaries> = tables.iter().map(|table| &**table).collect();
        let source = format!("tracks below {}", self.describe());
        Ok(Arc::new(Boundaries::of_rows(&tables, rows, source)?))
    }

    fn layout_of_tracks(&self) -> Result<Box<dyn Layout>, UnknownTracks> {
        if self.is_xor() || self.is_pool() {
            return Err(self.has_none());
        }
        Ok(self.layout()?)
    }

    fn has_none(&self) -> UnknownTracks {
        UnknownTracks::ChangeDrives {
            volume: self.describe(),
        }
    }
}

/// Returns the tracks of members that are addressed one after the other.
fn contiguous(
    layout: &dyn Layout,
    members: &[VolumeSpec],
) -> Result<Arc<Boundaries>, UnknownTracks> {
    let tables = members
        .iter()
        .map(VolumeSpec::tracks)
        .collect::<Result<Vec<_>, _>>()?;
    let capacity = layout.capacity();
    let (mut parts, mut at) = (Vec::new(), Lbn(0));
    while at.0 < capacity.0 {
        let member = layout.locate(at).member;
        let sectors = layout.member_used(member);
        assert!(
            sectors > Sectors::ZERO,
            "member {member} has the address {at} and no sectors"
        );
        parts.push(LeadingSectors {
            table: &tables[member],
            sectors,
        });
        at += sectors;
    }
    let table = Boundaries::behind_each_other(&parts, "the drives below")?;
    // The other members are copies, and one table holds for all copies only if their tracks are
    // equal.
    if parts.len() < members.len() {
        check_copies(&table, &tables)?;
    }
    Ok(Arc::new(table))
}

/// Checks that all copies have the same tracks, because each copy may serve a read.
fn check_copies(table: &Boundaries, copies: &[Arc<Boundaries>]) -> Result<(), UnknownTracks> {
    for (member, copy) in copies.iter().enumerate() {
        let part = copy.part(fullstroke_contract::Extent {
            start: Lbn(0),
            sectors: table.capacity(),
        });
        table
            .check_equal(&part?)
            .map_err(|difference| UnknownTracks::Copies { member, difference })?;
    }
    Ok(())
}

/// Returns true if the chunks of a row have the same address on all members, as in RAID-0, 4, 5, 6
/// and 10. The first 64 rows and the last row are checked.
fn rows_lie_abreast(layout: &dyn Layout, rows: ChunkRows) -> bool {
    let abreast = |row: u64| {
        let chunks = (row * rows.row.0..(row + 1) * rows.row.0).step_by(rows.unit.0 as usize);
        chunks
            .into_iter()
            .all(|lbn| layout.locate(Lbn(lbn)).lbn.0 == row * rows.unit.0)
    };
    // Rows repeat, so the first rows and the last row speak for all.
    (0..rows.count.min(64))
        .chain(rows.count.checked_sub(1))
        .all(abreast)
}
