//! Physical sectors that are larger than the sectors of the interface (512e).
//!
//! A write that covers a part of a physical sector cannot go to the medium as it is. The drive
//! reads the sector, waits until the sector comes round, and writes the whole sector.

use crate::config::{DriveConfig, SECTOR, SECTOR_4K};
use fullstroke_contract::{ConfigError, Extent};

/// Sizes of physical and logical sectors, in sectors of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectorSizes {
    physical: u64,
    logical: u64,
}

impl SectorSizes {
    /// Reads the sizes of a drive file.
    ///
    /// # Errors
    /// Names the key of a size other than 512 and 4096, or of a logical sector above the physical
    /// one.
    pub(crate) fn new(config: &DriveConfig) -> Result<SectorSizes, ConfigError> {
        let (physical, logical) = (config.physical_sector, config.logical_sector);
        for (key, bytes) in [("physical_sector", physical), ("logical_sector", logical)] {
            if ![SECTOR, SECTOR_4K].contains(&bytes) {
                let message = format!("found {bytes}; expected 512 or 4096 bytes");
                return Err(ConfigError::new(key, message));
            }
        }
        if logical > physical {
            let message = format!("found {logical}; expected at most physical_sector, {physical}");
            return Err(ConfigError::new("logical_sector", message));
        }
        Ok(SectorSizes {
            physical: u64::from(physical / SECTOR),
            logical: u64::from(logical / SECTOR),
        })
    }

    /// True if the host can address `extent`.
    pub(crate) fn addresses(self, extent: Extent) -> bool {
        let Extent { start, sectors } = extent;
        self.logical == 1
            || start.0.is_multiple_of(self.logical) && sectors.0.is_multiple_of(self.logical)
    }

    /// True if a write of `extent` covers a part of a physical sector.
    pub(crate) fn cuts(self, extent: Extent) -> bool {
        let Extent { start, sectors } = extent;
        self.physical > 1
            && !(start.0.is_multiple_of(self.physical) && sectors.0.is_multiple_of(self.physical))
    }

    /// Returns the physical sectors of which a write of `extent` covers a part: the first, the
    /// last, or one.
    pub(crate) fn edges(self, extent: Extent) -> impl Iterator<Item = Extent> {
        let of = |sector: u64| Extent::new(sector / self.physical * self.physical, self.physical);
        let (start, end) = (extent.start.0, extent.end().0);
        let first = (!start.is_multiple_of(self.physical)
            || end < start / self.physical * self.physical + self.physical)
            .then(|| of(start));
        let last = (!end.is_multiple_of(self.physical))
            .then(|| of(end))
            .filter(|last| first != Some(*last));
        first.into_iter().chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::small_drive;
    use crate::drive::DriveModel;
    use crate::drive::tests::{request, serve};
    use fullstroke_contract::{Operation, RequestStatus};
    use fullstroke_units::Time;

    const SIZES: SectorSizes = SectorSizes {
        physical: 8,
        logical: 1,
    };

    fn edges(start: u64, sectors: u64) -> Vec<(u64, u64)> {
        let edges = SIZES.edges(Extent::new(start, sectors));
        edges.map(|edge| (edge.start.0, edge.sectors.0)).collect()
    }

    #[test]
    fn the_edges_are_the_physical_sectors_that_are_covered_in_part() {
        assert_eq!(edges(8, 8), []);
        assert_eq!(edges(9, 8), [(8, 8), (16, 8)]);
        assert_eq!(edges(8, 1), [(8, 8)]);
        assert_eq!(edges(15, 9), [(8, 8)]);
        assert_eq!(edges(8, 12), [(16, 8)]);
        assert_eq!(edges(10, 3), [(8, 8)]);
    }

    fn took_ms(start: u64, sectors: u64, operation: Operation) -> f64 {
        let config = DriveConfig {
            physical_sector: SECTOR_4K,
            ..small_drive()
        };
        let mut drive = DriveModel::new(config).unwrap().drive().unwrap();
        let done = serve(
            &mut drive,
            [(Time::ZERO, request(0, start, sectors, operation))],
            0,
        );
        done[0].finished.since(Time::ZERO).as_millis_f64()
    }

    #[test]
    fn a_write_of_a_part_of_a_physical_sector_costs_a_revolution_more() {
        let whole = took_ms(8, 8, Operation::Write);
        let part = took_ms(9, 7, Operation::Write);
        // The small drive turns in 6 ms, and a sector passes in 0.15 ms.
        assert!((part - whole - 6.0).abs() < 0.2, "{part} and {whole} ms");
        let read = took_ms(8, 8, Operation::Read);
        assert!((took_ms(9, 7, Operation::Read) - read).abs() < 0.2);
    }

    #[test]
    fn a_drive_of_logical_sectors_of_4096_bytes_refuses_others() {
        let config = DriveConfig {
            physical_sector: SECTOR_4K,
            logical_sector: SECTOR_4K,
            ..small_drive()
        };
        let mut drive = DriveModel::new(config).unwrap().drive().unwrap();
        let requests = [(8, 8), (8, 1), (9, 8)];
        let requests = (0..).zip(requests).map(|(id, (start, sectors))| {
            (Time::ZERO, request(id, start, sectors, Operation::Read))
        });
        let done = serve(&mut drive, requests.collect::<Vec<_>>(), 0);
        let status = |id: u64| done.iter().find(|end| end.id.0 == id).unwrap().status;
        assert_eq!(status(0), RequestStatus::Done);
        assert_eq!(status(1), RequestStatus::OutOfRange);
        assert_eq!(status(2), RequestStatus::OutOfRange);
    }

    #[test]
    fn impossible_sizes_are_refused_by_name() {
        let refused = |physical_sector, logical_sector| {
            let config = DriveConfig {
                physical_sector,
                logical_sector,
                ..small_drive()
            };
            DriveModel::new(config).unwrap_err().key
        };
        assert_eq!(refused(1000, 512), "physical_sector");
        assert_eq!(refused(512, 4096), "logical_sector");
    }
}
