//! `lzvs`: logical zone variable striping, a constant transfer rate without knowledge of the disks'
//! geometry.
//!
//! Members come in pairs. Each member is divided into z logical zones, and zone i of one member is
//! striped with zone z-1-i of the other. The ratio of the two chunks begins at the ratio of the
//! outer to the inner transfer rate. The ratio falls by equal steps to 1 in the middle and rises
//! again after the middle (Lloyd, "Constant transfer rate RAID striping for QoS", 2002, section
//! 2.7.7; [`Zoning`] computes the sizes). The volume begins with the outermost zone of the first
//! member and the innermost zone of the second, and ends with the reverse. With more than one pair,
//! rows are dealt to the pairs in turn. There is no redundancy.
//!
//! The address of a chunk on a member is the start of the zone *on that member* plus the place
//! among the zone's chunks. The kernel code of Lloyd's appendix B differs in two points. The code
//! adds the start of the zone in the array. This sum counts the zones of both members, and
//! addresses run past the end of the member. The code also finds the zone by a division by a mean
//! size. The result is slightly wrong for zones that are rounded to whole blocks.
//!
//! If the members differ in size, the size of the smallest counts.

use crate::layout::Layout;
use crate::members::smallest;
use crate::paired::{
    DEFAULT_BLOCKING, MapSection, Paired, PassDirection, Ratio, Zoning, blocking_sectors, pairs_of,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Bytes, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Keys of `lzvs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LzvsConfig {
    /// Number of logical zones of each member: an even number, at least 4. The best number is about
    /// the number of real zones of the disk. Default 24.
    pub zones: u32,
    /// Transfer rate, or sectors per track, at the outer edge divided by the same at the inner
    /// edge, as in "800/370" or 2.16. Must be above 1. `fullstroke lzvs plan` measures the ratio.
    /// Default "10/6".
    pub ratio: Ratio,
    /// Chunk of the slower member of each pair of zones: a positive multiple of 512. The chunk of
    /// the faster member is up to `ratio` times as large, in whole sectors. Default 8KiB.
    pub blocking: Bytes,
}

impl Default for LzvsConfig {
    /// Lloyd's example (figure 3.3).
    fn default() -> LzvsConfig {
        let ratio = Ratio::new(10, 6).expect("10 is above 6");
        LzvsConfig {
            zones: 24,
            ratio,
            blocking: DEFAULT_BLOCKING,
        }
    }
}

/// Name of the layout in stack files.
const NAME: &str = "lzvs";

/// Returns the logical zones of each member.
///
/// # Errors
/// Names the key with the impossible value.
pub fn zoning(config: &LzvsConfig, members: &[Sectors]) -> Result<Zoning, ConfigError> {
    pairs_of(NAME, members)?;
    let blocking = blocking_sectors(config.blocking)?;
    let (smallest, Sectors(common)) = smallest(members);
    Zoning::new(config.zones, common, blocking, config.ratio).map_err(|error| match error.key.as_str() {
        "blocking" => {
            let message = format!(
                "found {}; a zone of member {smallest}, the smallest, has only about {}, less than one chunk for both members; choose a smaller chunk or fewer zones",
                config.blocking,
                Sectors(common / u64::from(config.zones)).bytes()
            );
            ConfigError::new("blocking", message)
        }
        _ => error,
    })
}

/// See [`BuildLayout`](crate::BuildLayout).
pub(crate) fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    if let Some(Value::Array(_)) = keys.get("zones") {
        let message = "found a list of parts; lzvs expects a number of logical zones. Use layout = \"lzvs-geo\" for parts with floors";
        return Err(ConfigError::new("zones", message));
    }
    let config: LzvsConfig = registry::read(keys)?;
    Paired::layout(
        NAME,
        members,
        &sections(&zoning(&config, members)?),
        PassDirection::OneTooth,
    )
}

/// Returns the sections in order, from the outermost zone of the forward member to its innermost.
fn sections(zoning: &Zoning) -> Vec<MapSection> {
    let starts = zoning.start_blocks();
    let zones = starts.len();
    let section = |zone: usize| {
        let pair = &zoning.pairs()[zone.min(zones - 1 - zone)];
        let (faster, slower) = (pair.chunk, zoning.blocking());
        let chunks = if zone < zones / 2 {
            [faster, slower]
        } else {
            [slower, faster]
        };
        MapSection {
            rows: pair.rows,
            chunks,
            starts: [starts[zone], starts[zones - 1 - zone]],
        }
    };
    (0..zones).map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Location;
    use crate::{Detail, Plan};
    use fullstroke_contract::{Extent, LayersBelow, Operation, Request, RequestStatus};
    use fullstroke_units::Lbn;
    use serde_json::json;

    fn build_from(keys: Value, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        build(keys.as_object().unwrap(), members)
    }

    fn of_figure_2_4() -> Box<dyn Layout> {
        let keys = json!({ "zones": 14, "ratio": "800/370", "blocking": 4096 });
        build_from(keys, &[Sectors(50_000_000); 2]).unwrap()
    }

    #[test]
    fn the_zones_of_figure_2_4_lie_where_they_are_said_to() {
        let lzvs = of_figure_2_4();
        assert_eq!(lzvs.capacity(), Sectors(2 * 49_999_942));
        assert_eq!(lzvs.unused(), Sectors(2 * 58));
        let at = |member, lbn| Location {
            member,
            lbn: Lbn(lbn),
        };
        let innermost = 49_999_942 - 2_285_712;
        assert_eq!(lzvs.locate(Lbn(0)), at(0, 0));
        assert_eq!(lzvs.locate(Lbn(16)), at(0, 16));
        assert_eq!(lzvs.locate(Lbn(17)), at(1, innermost));
        assert_eq!(lzvs.locate(Lbn(25)), at(0, 17));
        // The second pair of zones.
        let first = 4_857_138 + 2_285_712;
        assert_eq!(lzvs.locate(Lbn(first)), at(0, 4_857_138));
        assert_eq!(lzvs.locate(Lbn(first + 15)), at(1, innermost - 2_484_472));
        // The last pair: now the second member is the faster one.
        let last = 2 * 49_999_942 - first;
        assert_eq!(lzvs.locate(Lbn(last)), at(0, innermost));
        assert_eq!(lzvs.locate(Lbn(last + 8)), at(1, 0));
        assert_eq!(lzvs.locate(Lbn(last + 25)), at(0, innermost + 8));
    }

    #[test]
    fn a_large_read_is_one_io_for_each_member() {
        let mut lzvs = of_figure_2_4();
        let mut plan = Plan::new(Detail::Timing);
        let request = Request {
            operation: Operation::Read,
            extent: Extent::new(1000, 16_384),
            ..Request::default()
        };
        assert_eq!(
            lzvs.plan(&request, LayersBelow::NOTHING, &mut plan),
            RequestStatus::Done
        );
        assert_eq!(plan.ios().len(), 2);
    }

    #[test]
    fn of_members_that_differ_the_common_part_is_used() {
        let lzvs = build_from(json!({}), &[Sectors(100_000), Sectors(80_000)]).unwrap();
        assert!(lzvs.capacity().0 <= 160_000 && lzvs.capacity().0 > 155_000);
        assert!(lzvs.unused().0 >= 20_000);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let refused = |keys, members: &[u64]| {
            let members: Vec<Sectors> = members.iter().copied().map(Sectors).collect();
            build_from(keys, &members).err().unwrap()
        };
        for (keys, members, key, says) in [
            (json!({ "zones": 7 }), &[1 << 20; 2][..], "zones", "even"),
            (json!({ "zones": 0 }), &[1 << 20; 2], "zones", "found 0"),
            (
                json!({ "zones": [{ "size": "1GB" }] }),
                &[1 << 20; 2],
                "zones",
                "lzvs-geo",
            ),
            (json!({ "ratio": 1 }), &[1 << 20; 2], "ratio", "above 1"),
            (
                json!({ "ratio": "370/800" }),
                &[1 << 20; 2],
                "ratio",
                "370/800",
            ),
            (
                json!({ "ratio": null }),
                &[1 << 20; 2],
                "ratio",
                "no finite number",
            ),
            (
                json!({ "blocking": 0 }),
                &[1 << 20; 2],
                "blocking",
                "found 0",
            ),
            (
                json!({ "blocking": 700 }),
                &[1 << 20; 2],
                "blocking",
                "multiple of the sector",
            ),
            (
                json!({ "blocking": "64MiB" }),
                &[1 << 20; 2],
                "blocking",
                "member 0",
            ),
            (json!({}), &[1 << 20, 100], "blocking", "member 1"),
            (json!({}), &[1 << 20], "members", "at least 2"),
            (json!({}), &[1 << 20; 3], "members", "in pairs, and has 3"),
        ] {
            let error = refused(keys, members);
            assert_eq!(error.key, key, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }
}
