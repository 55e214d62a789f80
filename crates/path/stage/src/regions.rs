//! Owners of the array's addresses.

use fullstroke_contract::{ConfigError, Extent, Port};
use fullstroke_units::{Lbn, Sectors, order_by_key};

/// A run of the array's addresses. The host counts addresses from the start of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRegion {
    /// First address.
    pub start: Lbn,
    /// Number of sectors.
    pub sectors: Sectors,
}

/// Requested place and size of a host's region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionRequest {
    /// Start of the region. Default: the end of the previous host's region.
    pub at: Option<Sectors>,
    /// Size of the region. Default: an equal part of the rest.
    pub size: Option<Sectors>,
}

/// The regions of all hosts, by port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRegions {
    regions: Vec<HostRegion>,
    /// Hosts in order of their regions.
    ascending: Vec<usize>,
}

impl HostRegion {
    fn end(self) -> Lbn {
        self.start + self.sectors
    }
}

impl HostRegions {
    fn new(regions: Vec<HostRegion>) -> HostRegions {
        let mut ascending: Vec<usize> = (0..regions.len()).collect();
        order_by_key(&mut ascending, |&host| regions[host].start);
        HostRegions { regions, ascending }
    }

    /// Gives all of `capacity` to each of `hosts` hosts.
    pub fn whole(hosts: usize, capacity: Sectors) -> HostRegions {
        HostRegions::new(vec![
            HostRegion {
                start: Lbn(0),
                sectors: capacity
            };
            hosts
        ])
    }

    /// Splits `capacity` into regions. A region begins at the given start or after the previous
    /// host's region. The size is the given size or an equal part of the rest, in whole units of 4
    /// KiB.
    ///
    /// # Errors
    /// Names the index of a host without room, with a region beyond the array, or with addresses of
    /// an earlier host.
    pub fn parts(
        wanted: &[RegionRequest],
        capacity: Sectors,
    ) -> Result<HostRegions, (usize, ConfigError)> {
        // Equal parts end at pages of 4 KiB, so that no page of the array belongs to two hosts.
        const UNIT: u64 = 8;
        let said: u64 = wanted
            .iter()
            .filter_map(|host| host.size)
            .map(|size| size.0)
            .fold(0, u64::saturating_add);
        let silent = wanted.iter().filter(|host| host.size.is_none()).count() as u64;
        let equal = Sectors(capacity.0.saturating_sub(said) / silent.max(1) / UNIT * UNIT);
        let mut regions: Vec<HostRegion> = Vec::new();
        for (host, wanted) in wanted.iter().enumerate() {
            let next = regions.last().map_or(Lbn(0), |before| before.end());
            let region = placed(*wanted, next, equal, capacity).map_err(|error| (host, error))?;
            let other = regions
                .iter()
                .position(|other| region.start < other.end() && other.start < region.end());
            if let Some(other) = other {
                let key = if wanted.at.is_some() { "at" } else { "size" };
                let bytes = |region: HostRegion| {
                    let [first, end] =
                        [region.start, region.end()].map(|lbn| Sectors(lbn.0).saturating_bytes().0);
                    format!("bytes {first} to {}", end - 1)
                };
                let [found, theirs] = [region, regions[other]].map(bytes);
                let message = format!("found {found} of the array; hosts[{other}] has {theirs}");
                return Err((host, ConfigError::new(key, message)));
            }
            regions.push(region);
        }
        Ok(HostRegions::new(regions))
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.regions.len()
    }

    /// The region of the host at `port`.
    pub fn of(&self, port: Port) -> HostRegion {
        self.regions[port.index()]
    }

    /// A host's extent on the array; `None` outside the host's region.
    #[inline]
    pub fn below(&self, port: Port, extent: Extent) -> Option<Extent> {
        let region = self.of(port);
        extent.within(region.sectors).then(|| Extent {
            start: region.start + Sectors(extent.start.0),
            ..extent
        })
    }

    /// Reports each owner of `extent`, with the extent in the owner's addresses.
    pub fn owners(&self, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        for &host in &self.ascending {
            let region = self.regions[host];
            let start = extent.start.max(region.start);
            let end = extent.end().min(region.end());
            if start < end {
                owner(
                    Port::of(host),
                    Extent::new(start.0 - region.start.0, end.0 - start.0),
                );
            }
        }
    }
}

/// Returns the requested region of a host. Without a requested start, the region begins at `next`.
fn placed(
    wanted: RegionRequest,
    next: Lbn,
    equal: Sectors,
    capacity: Sectors,
) -> Result<HostRegion, ConfigError> {
    let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
    let start = wanted.at.map_or(next, |at| Lbn(at.0));
    let whole = capacity.saturating_bytes().0;
    if let Some(at) = wanted.at.filter(|at| *at >= capacity) {
        return refuse(
            "at",
            format!(
                "found {} bytes; the array has {whole}",
                at.saturating_bytes().0
            ),
        );
    }
    let sectors = wanted.size.unwrap_or(equal);
    let left = Sectors(capacity.0.saturating_sub(start.0))
        .saturating_bytes()
        .0;
    if wanted.size == Some(Sectors::ZERO) {
        return refuse(
            "size",
            "found less than a sector; expected at least 512 bytes, or no key".into(),
        );
    }
    if sectors == Sectors::ZERO {
        return refuse(
            "size",
            format!("no part of the array is left for this host ({left} bytes)"),
        );
    }
    if start
        .0
        .checked_add(sectors.0)
        .is_none_or(|end| end > capacity.0)
    {
        let message = match (wanted.size, wanted.at) {
            (Some(size), None) => {
                format!(
                    "found {} bytes; the array has {left} left",
                    size.saturating_bytes().0
                )
            }
            (Some(size), Some(_)) => {
                format!(
                    "found {} bytes; the array ends {left} bytes behind `at`",
                    size.saturating_bytes().0
                )
            }
            (None, _) => format!(
                "missing; an equal part of the rest, {} bytes, exceeds the {left} bytes behind `at`. Give `size`",
                equal.saturating_bytes().0
            ),
        };
        return refuse("size", message);
    }
    Ok(HostRegion { start, sectors })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(sizes: &[Option<u64>]) -> Vec<RegionRequest> {
        sizes
            .iter()
            .map(|size| RegionRequest {
                size: size.map(Sectors),
                at: None,
            })
            .collect()
    }

    fn at(at: u64, size: u64) -> RegionRequest {
        RegionRequest {
            at: Some(Sectors(at)),
            size: Some(Sectors(size)),
        }
    }

    #[test]
    fn hosts_have_the_places_that_they_choose_and_others_lie_behind_the_one_before() {
        let wanted = [
            at(600, 100),
            RegionRequest {
                size: Some(Sectors(50)),
                at: None,
            },
            at(16, 80),
            RegionRequest::default(),
        ];
        let parts = HostRegions::parts(&wanted[..3], Sectors(1000)).unwrap();
        let starts = (0..3)
            .map(|host| parts.of(Port(host)).start.0)
            .collect::<Vec<_>>();
        assert_eq!(starts, [600, 700, 16]);
        let mut owners = Vec::new();
        parts.owners(Extent::new(0, 710), &mut |port, extent| {
            owners.push((port.0, extent))
        });
        assert_eq!(
            owners,
            [
                (2, Extent::new(0, 80)),
                (0, Extent::new(0, 100)),
                (1, Extent::new(0, 10))
            ]
        );
        // 768 sectors are left, 504 of them before the first region.
        let (host, error) = HostRegions::parts(&wanted, Sectors(1000)).unwrap_err();
        assert_eq!((host, error.key.as_str()), (3, "size"));
        assert!(
            error
                .message
                .contains("hosts[0] has bytes 307200 to 358399"),
            "{error}"
        );
    }

    #[test]
    fn places_that_cannot_be_are_refused_at_their_host() {
        for (wanted, host, key, part) in [
            (
                vec![at(0, 100), at(99, 1)],
                1,
                "at",
                "hosts[0] has bytes 0 to 51199",
            ),
            (
                vec![at(1000, 8)],
                0,
                "at",
                "found 512000 bytes; the array has 512000",
            ),
            (
                vec![at(999, 2)],
                0,
                "size",
                "the array ends 512 bytes behind `at`",
            ),
            (vec![at(8, 0)], 0, "size", "found less than a sector"),
            (
                vec![RegionRequest {
                    at: Some(Sectors(8)),
                    size: None,
                }],
                0,
                "size",
                "Give `size`",
            ),
            (
                vec![at(0, 16), at(u64::MAX, 8)],
                1,
                "at",
                "the array has 512000",
            ),
        ] {
            let (found, error) = HostRegions::parts(&wanted, Sectors(1000)).unwrap_err();
            assert_eq!((found, error.key.as_str()), (host, key), "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }

    #[test]
    fn what_is_not_said_is_shared_equally() {
        let parts = HostRegions::parts(&sizes(&[None, Some(100), None]), Sectors(1000)).unwrap();
        let regions: Vec<(u64, u64)> = (0..3)
            .map(|host| parts.of(Port(host)))
            .map(|region| (region.start.0, region.sectors.0))
            .collect();
        assert_eq!(regions, [(0, 448), (448, 100), (548, 448)]);
    }

    #[test]
    fn too_much_is_refused_at_its_host() {
        let (host, error) =
            HostRegions::parts(&sizes(&[Some(900), Some(200)]), Sectors(1000)).unwrap_err();
        assert_eq!((host, error.key.as_str()), (1, "size"));
        assert!(
            error.message.contains("102400") && error.message.contains("51200"),
            "{error}"
        );
        let (host, error) =
            HostRegions::parts(&sizes(&[Some(1000), None]), Sectors(1000)).unwrap_err();
        assert_eq!((host, error.key.as_str()), (1, "size"));
        assert!(
            error.message.contains("no part of the array is left"),
            "{error}"
        );
        assert!(HostRegions::parts(&sizes(&[Some(u64::MAX), Some(8)]), Sectors(1000)).is_err());
    }

    #[test]
    fn an_extent_of_the_array_belongs_to_whoever_has_its_parts() {
        let parts = HostRegions::parts(&sizes(&[Some(100), Some(100)]), Sectors(1000)).unwrap();
        let mut owners = Vec::new();
        parts.owners(Extent::new(90, 120), &mut |port, extent| {
            owners.push((port.0, extent))
        });
        assert_eq!(owners, [(0, Extent::new(90, 10)), (1, Extent::new(0, 100))]);
        assert_eq!(
            parts.below(Port(1), Extent::new(95, 5)),
            Some(Extent::new(195, 5))
        );
        assert_eq!(parts.below(Port(1), Extent::new(96, 5)), None);
    }
}
