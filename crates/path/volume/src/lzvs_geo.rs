//! `lzvs-geo`: a constant transfer rate from the real zones of the disks.
//!
//! Same as `lzvs`, with two differences. Pairs of zones end where real zones end, and the chunks
//! follow the transfer rates of the paired zones. The forward and the backward member therefore
//! each pass once through all of their zones in the same time. If the disks differ, the slower disk
//! leaves out its innermost part. (Lloyd, "Constant transfer rate RAID striping for QoS", 2002,
//! section 2.7.8, could not do this, because his disks differed.)
//!
//! With `zones`, the volume consists of parts with floors of their own (Lloyd, section 5.1.1), in
//! the given order. The remaining space follows the parts.
//!
//! With more than one pair, rows are dealt to the pairs in turn, and the slowest forward and the
//! slowest backward member count. Pairs of different kinds of disks are better nested under
//! `raid0`.

use crate::layout::Layout;
use crate::members::{smallest, too_large};
use crate::paired::{
    DEFAULT_BLOCKING, Floor, MemberZone, Paired, PassDirection, Timeline, VolumePart,
    WalkedSection, balanced, blocking_sectors, packed, pairs_of, with_floors,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Bytes, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `lzvs-geo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LzvsGeoConfig {
    /// Smallest chunk of the slower member of each pair of zones: a positive multiple of 512. The
    /// chunk may be a few sectors larger if whole sectors then come nearer to the ratio of the
    /// rates. The chunk of the faster member is larger by the ratio of the rates. Default 8KiB.
    pub blocking: Bytes,
    /// Parts of the volume (not of a drive), in order, each a table: `size`, and `floor_mb_per_s` in
    /// 10^6 bytes a second. No sequential transfer in a part falls below its floor. Default: no
    /// parts, one rate throughout.
    pub zones: Vec<Floor>,
    /// Zones of each member, from its first address on. Default: the zones of the drives.
    pub member_zones: Vec<Vec<MemberZone>>,
}

impl Default for LzvsGeoConfig {
    fn default() -> LzvsGeoConfig {
        LzvsGeoConfig {
            blocking: DEFAULT_BLOCKING,
            zones: Vec::new(),
            member_zones: Vec::new(),
        }
    }
}

/// Name of the layout in stack files.
const NAME: &str = "lzvs-geo";

/// See [`BuildLayout`](crate::BuildLayout).
pub(crate) fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let (parts, _) = plan(&registry::read(keys)?, members)?;
    Paired::layout(
        NAME,
        members,
        &packed(&parts.concat()),
        PassDirection::OneTooth,
    )
}

/// Returns the parts of a volume: the parts of `zones` and the remaining space, or one part.
///
/// # Errors
/// Names the key with the impossible value. If a floor is too high, the error also names the best
/// possible floor.
pub fn parts(config: &LzvsGeoConfig, members: &[Sectors]) -> Result<Vec<VolumePart>, ConfigError> {
    let (parts, pairs) = plan(config, members)?;
    Ok(VolumePart::of(&parts, pairs))
}

/// Returns the rows of each part and the number of pairs.
fn plan(
    config: &LzvsGeoConfig,
    members: &[Sectors],
) -> Result<(Vec<Vec<WalkedSection>>, u64), ConfigError> {
    let pairs = pairs_of(NAME, members)?;
    let blocking = blocking_sectors(config.blocking)?;
    // The sizes are planned in whole numbers, so that the sum of the members must not overflow.
    members
        .iter()
        .try_fold(0u64, |sum, member| sum.checked_add(member.0))
        .ok_or_else(too_large)?;
    let timelines = timelines(&config.member_zones, members)?;
    let slowest = |side: usize| {
        let mut each = timelines.iter().skip(side).step_by(2);
        let first = each
            .next()
            .cloned()
            .unwrap_or_else(|| unreachable!("members come in pairs"));
        each.fold(first, |slowest, next| slowest.slower(next))
    };
    let (forward, backward) = (slowest(0), slowest(1));
    let parts = match &config.zones[..] {
        [] => vec![balanced(&forward, &backward, blocking)],
        floors => with_floors(forward, backward, blocking, pairs, floors)?,
    };
    if parts.iter().all(Vec::is_empty) {
        let (smallest, capacity) = smallest(members);
        let message = format!(
            "found {}; member {smallest}, the smallest, has {}, less than one chunk for both members; choose a smaller chunk",
            config.blocking,
            capacity.bytes()
        );
        return Err(ConfigError::new("blocking", message));
    }
    Ok((parts, pairs))
}

/// Checks the zones of each member and returns a timeline for each.
fn timelines(zones: &[Vec<MemberZone>], members: &[Sectors]) -> Result<Vec<Timeline>, ConfigError> {
    if zones.len() != members.len() {
        let message = format!(
            "found the zones of {} of {} members; lzvs-geo knows the zones of drives only. Give this key for other members, or put raid0 or raid1 above lzvs-geo",
            zones.len(),
            members.len()
        );
        return Err(ConfigError::new("member_zones", message));
    }
    let timeline = |(member, (zones, capacity)): (usize, (&Vec<MemberZone>, &Sectors))| {
        let key = format!("member_zones[{member}]");
        let sum = zones
            .iter()
            .try_fold(0u64, |sum, zone| sum.checked_add(zone.sectors.0));
        if sum != Some(capacity.0) {
            let found = sum.map_or("more than can be counted".to_owned(), |sum| sum.to_string());
            let message = format!(
                "found zones of {found} sectors; member {member} has {}",
                capacity.0
            );
            return Err(ConfigError::new(key, message));
        }
        if let Some(index) = zones.iter().position(|zone| zone.bytes_per_s == 0) {
            let message = "found 0; expected bytes a second, above 0";
            return Err(ConfigError::new(
                format!("{key}[{index}].bytes_per_s"),
                message,
            ));
        }
        Ok(Timeline::new(zones, capacity.0))
    };
    zones
        .iter()
        .zip(members)
        .enumerate()
        .map(timeline)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns zones of equal size with rates in equal steps. Rates are in MB/s.
    fn disk(zones: u64, sectors: u64, outer: u64, inner: u64) -> Vec<MemberZone> {
        let rate = |zone: u64| (outer - (outer - inner) * zone / (zones - 1)) * 1_000_000;
        let zone = |zone| MemberZone {
            sectors: Sectors(sectors / zones),
            bytes_per_s: rate(zone),
        };
        (0..zones).map(zone).collect()
    }

    fn config(zones: Vec<Floor>, disks: &[Vec<MemberZone>]) -> (LzvsGeoConfig, Vec<Sectors>) {
        let capacity =
            |zones: &Vec<MemberZone>| Sectors(zones.iter().map(|zone| zone.sectors.0).sum());
        let members = disks.iter().map(capacity).collect();
        (
            LzvsGeoConfig {
                zones,
                member_zones: disks.to_vec(),
                ..LzvsGeoConfig::default()
            },
            members,
        )
    }

    fn floor(gigabytes: u64, floor_mb_per_s: f64) -> Floor {
        Floor {
            size: Bytes(gigabytes * 1_000_000_000),
            floor_mb_per_s,
        }
    }

    const SECTORS: u64 = 400_000_000;

    #[test]
    fn equal_disks_are_used_up_at_nearly_one_rate() {
        let (config, members) = config(Vec::new(), &vec![disk(10, SECTORS, 200, 100); 2]);
        let all = parts(&config, &members).unwrap();
        assert_eq!(all.len(), 1);
        assert!(2 * SECTORS - all[0].sectors.0 < 1000, "{all:?}");
        // All zones hold the same number of sectors, so that inner zones take longer. The rates
        // that meet add up to 283 MB/s and more, not to 300.
        assert!(all[0].floor_bytes_per_s > 275_000_000, "{all:?}");
    }

    #[test]
    fn disks_that_differ_lose_what_has_no_counterpart_in_time() {
        let (faster, slower) = (disk(8, SECTORS, 200, 100), disk(12, SECTORS, 100, 50));
        let (config, members) = config(Vec::new(), &[faster, slower]);
        let layout = build(
            serde_json::to_value(&config).unwrap().as_object().unwrap(),
            &members,
        )
        .unwrap();
        assert!(
            layout.member_used(0).0 > SECTORS * 99 / 100,
            "the faster one is passed in half the time"
        );
        let share = layout.member_used(1).0 as f64 / SECTORS as f64;
        assert!((0.5..0.65).contains(&share), "{share}");
    }

    #[test]
    fn parts_have_their_sizes_and_floors_in_the_order_given() {
        let floors = vec![floor(50, 250.0), floor(20, 350.0), floor(100, 0.0)];
        let (config, members) = config(floors.clone(), &vec![disk(10, SECTORS, 200, 100); 2]);
        let all = parts(&config, &members).unwrap();
        assert_eq!(all.len(), 4, "what is left over follows");
        for (part, floor) in all.iter().zip(&floors) {
            let asked = floor.size.0.div_ceil(512);
            assert!((asked..asked + 100).contains(&part.sectors.0), "{part:?}");
            assert!(
                part.floor_bytes_per_s as f64 >= floor.floor_mb_per_s * 1e6,
                "{part:?}"
            );
        }
        for pair in all.windows(2) {
            assert_eq!(pair[0].start + pair[0].sectors, pair[1].start);
        }
        let sum: u64 = all.iter().map(|part| part.sectors.0).sum();
        assert!(2 * SECTORS - sum < SECTORS / 500, "{sum}");
    }

    #[test]
    fn a_floor_that_leaves_time_to_others_is_as_far_inside_as_it_may_be() {
        // The floor of 260 MB/s is below the 283 MB/s that all parts could have. The rest has no
        // floor and keeps the outside.
        let disks = vec![disk(10, SECTORS, 200, 100); 2];
        let (asked, members) = config(vec![floor(200, 260.0)], &disks);
        let all = parts(&asked, &members).unwrap();
        assert!(
            all[0].floor_bytes_per_s < 275_000_000 && all[1].floor_bytes_per_s > 275_000_000,
            "{all:?}"
        );
    }

    #[test]
    fn what_cannot_be_met_is_refused_with_the_best_that_can_be_had() {
        let disks = vec![disk(10, SECTORS, 200, 100); 2];
        let refused = |floors| {
            let (config, members) = config(floors, &disks);
            parts(&config, &members).unwrap_err()
        };
        let error = refused(vec![floor(10, 50.0), floor(100, 390.0)]);
        assert_eq!(error.key, "zones[1].floor_mb_per_s");
        assert!(
            error
                .message
                .contains("found 390; the highest possible floor for 100.0 GB is 3"),
            "{error}"
        );
        assert!(
            error.message.contains("at 390 MB/s there is room for"),
            "{error}"
        );
        let error = refused(vec![floor(300, 250.0), floor(200, 10.0)]);
        assert_eq!(error.key, "zones[1].size");
        assert!(
            error
                .message
                .contains("found 200.0 GB; the members have room for 10"),
            "{error}"
        );
        assert_eq!(
            refused(vec![floor(10, f64::NAN)]).key,
            "zones[0].floor_mb_per_s"
        );
        assert_eq!(
            refused(vec![floor(10, -1.0)]).key,
            "zones[0].floor_mb_per_s"
        );
        assert_eq!(refused(vec![floor(0, 1.0)]).key, "zones[0].size");
    }

    #[test]
    fn zones_that_are_not_the_members_are_refused() {
        let refused = |zones: serde_json::Value| {
            let keys = json!({ "member_zones": zones });
            build(keys.as_object().unwrap(), &[Sectors(1000); 2])
                .err()
                .unwrap()
        };
        let zone = |sectors: u64, rate: u64| json!([{ "sectors": sectors, "bytes_per_s": rate }]);
        assert_eq!(refused(json!([])).key, "member_zones");
        let error = refused(json!([zone(1000, 1), zone(999, 1)]));
        assert_eq!(error.key, "member_zones[1]");
        assert!(
            error
                .message
                .contains("zones of 999 sectors; member 1 has 1000"),
            "{error}"
        );
        assert_eq!(
            refused(json!([zone(1000, 0), zone(1000, 1)])).key,
            "member_zones[0][0].bytes_per_s"
        );
        assert_eq!(
            refused(json!([zone(u64::MAX, 1), zone(1000, 1)])).key,
            "member_zones[0][0].sectors"
        );
    }
}
