//! `lzvs-naive`: a chunk from the edge of one disk, then a chunk from the spindle of the other.
//!
//! Lloyd begins with this layout and rejects it (2002, section 2.7.6). Chunks of equal size are
//! taken in turn from the forward member, beginning with its first chunk, and from the backward
//! member, beginning with its last chunk. The backward member reads each chunk forwards and then
//! goes back by two chunks. The transfer rate is nearly constant, because the slower member sets
//! the rate. The gain over the inner edge of RAID 0 is small, and each chunk of the backward member
//! is a separate I/O. The layout exists for comparison.

use crate::layout::Layout;
use crate::members::smallest;
use crate::paired::{
    DEFAULT_BLOCKING, MapSection, Paired, PassDirection, blocking_sectors, pairs_of,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Bytes, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `lzvs-naive`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LzvsNaiveConfig {
    /// Bytes on one member before the other member has its turn: a positive multiple of 512.
    /// Default 8KiB.
    pub blocking: Bytes,
}

impl Default for LzvsNaiveConfig {
    fn default() -> LzvsNaiveConfig {
        LzvsNaiveConfig {
            blocking: DEFAULT_BLOCKING,
        }
    }
}

/// See [`BuildLayout`](crate::BuildLayout).
pub(crate) fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let config: LzvsNaiveConfig = registry::read(keys)?;
    pairs_of("lzvs-naive", members)?;
    let blocking = blocking_sectors(config.blocking)?;
    let (smallest, common) = smallest(members);
    let rows = common.0 / blocking;
    if rows == 0 {
        let message = format!(
            "found {}; member {smallest} has only {}; choose a smaller one",
            config.blocking,
            common.bytes()
        );
        return Err(ConfigError::new("blocking", message));
    }
    let section = MapSection {
        rows,
        chunks: [blocking; 2],
        starts: [0; 2],
    };
    Paired::layout("lzvs-naive", members, &[section], PassDirection::EachChunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Detail, Plan};
    use fullstroke_contract::{Extent, LayersBelow, Operation, Request, RequestStatus};
    use serde_json::json;

    #[test]
    fn the_backward_member_is_read_from_its_end_chunk_by_chunk() {
        let keys = json!({ "blocking": 2048 });
        let mut naive = build(keys.as_object().unwrap(), &[Sectors(103), Sectors(120)]).unwrap();
        assert_eq!(
            (naive.capacity(), naive.unused()),
            (Sectors(200), Sectors(23))
        );
        let mut plan = Plan::new(Detail::Timing);
        let request = Request {
            operation: Operation::Read,
            extent: Extent::new(0, 22),
            ..Request::default()
        };
        assert_eq!(
            naive.plan(&request, LayersBelow::NOTHING, &mut plan),
            RequestStatus::Done
        );
        let ios: Vec<(u32, Extent)> = plan.ios().iter().map(|io| (io.member, io.extent)).collect();
        let expected = [
            (0, Extent::new(0, 12)),
            (1, Extent::new(96, 4)),
            (1, Extent::new(92, 4)),
            (1, Extent::new(88, 2)),
        ];
        assert_eq!(ios, expected);
    }

    #[test]
    fn a_chunk_larger_than_a_member_names_the_member() {
        let keys = json!({ "blocking": "1MiB" });
        let error = build(keys.as_object().unwrap(), &[Sectors(4096), Sectors(100)])
            .err()
            .unwrap();
        assert_eq!(error.key, "blocking");
        assert!(error.message.contains("member 1"), "{error}");
    }
}
