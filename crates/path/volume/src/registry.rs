//! The layouts by name, one line each.

use crate::jbod::{Jbod, JbodConfig};
use crate::layout::BuildLayout;
use crate::lzvs::{self, LzvsConfig};
use crate::lzvs_geo::{self, LzvsGeoConfig};
use crate::lzvs_naive::{self, LzvsNaiveConfig};
use crate::paraid::{self, ParaidConfig};
use crate::raid0::{Raid0, Raid0Config};
use crate::raid1::{Raid1, Raid1Config};
use crate::raid4::{self, Raid4Config};
use crate::raid5::{self, Raid5Config};
use crate::raid6::{self, Raid6Config};
use crate::raid10::{Raid10, Raid10Config};
use fullstroke_contract::registry::{PolicyEntry, schema_of};

/// Every layout. A new layout is a new file and a line here.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<BuildLayout>] = &[
    PolicyEntry { name: "jbod", summary: "members one after the other; survives no failed drive; has no keys of its own", schema: schema_of::<JbodConfig>, build: Jbod::build },
    PolicyEntry { name: "raid0", summary: "chunks on the members in turn; survives no failed drive", schema: schema_of::<Raid0Config>, build: Raid0::build },
    PolicyEntry { name: "raid1", summary: "a copy of all data on every member; at least 2 members; survives the failure of all members but one", schema: schema_of::<Raid1Config>, build: Raid1::build },
    PolicyEntry { name: "raid10", summary: "mirrored chunks on the members in turn; at least 2 members; survives `copies` - 1 failed drives, and more if every chunk keeps a copy", schema: schema_of::<Raid10Config>, build: Raid10::build },
    PolicyEntry { name: "raid4", summary: "rows of chunks with parity on the last member; at least 3 members; survives one failed drive", schema: schema_of::<Raid4Config>, build: raid4::build },
    PolicyEntry { name: "raid5", summary: "rows of chunks with one rotating parity; at least 3 members; survives one failed drive", schema: schema_of::<Raid5Config>, build: raid5::build },
    PolicyEntry { name: "raid6", summary: "rows of chunks with two rotating parities; at least 4 members; survives two failed drives", schema: schema_of::<Raid6Config>, build: raid6::build },
    PolicyEntry { name: "lzvs", summary: "the outer zones of one member striped with the inner zones of another in logical zones, for a constant transfer rate", schema: schema_of::<LzvsConfig>, build: lzvs::build },
    PolicyEntry { name: "lzvs-geo", summary: "same as lzvs with the members' real zones; parts may have their own transfer rates", schema: schema_of::<LzvsGeoConfig>, build: lzvs_geo::build },
    PolicyEntry { name: "lzvs-naive", summary: "equal chunks of the outer zones of one member and the inner zones of another, for comparison", schema: schema_of::<LzvsNaiveConfig>, build: lzvs_naive::build },
    PolicyEntry { name: "paraid", summary: "RAID 0 or 5 in which some members stop under a low load; a second copy of their data (the soft state) lies in a reserve on the other members; survives as many failures as its level", schema: schema_of::<ParaidConfig>, build: paraid::build },
    PolicyEntry { name: "e-paraid", summary: "same as paraid, with the reserve in buckets (e-PARAID): each bucket lies after a cluster of chunks, next to the data of the same rows", schema: schema_of::<ParaidConfig>, build: paraid::build_beside },
];

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::{Keys, known_keys};
    use fullstroke_units::Sectors;
    use serde_json::json;

    /// Returns the keys that have no default.
    fn required(name: &str) -> Keys {
        let zone = json!([{ "sectors": 4096, "bytes_per_s": 100_000_000 }]);
        let keys = match name {
            "lzvs-geo" => json!({ "member_zones": vec![zone; 4] }),
            "e-paraid" => json!({ "cluster": 4 }),
            _ => json!({}),
        };
        keys.as_object().unwrap().clone()
    }

    #[test]
    fn every_layout_builds_with_its_defaults_under_its_own_name() {
        for entry in REGISTRY {
            let layout = (entry.build)(&required(entry.name), &[Sectors(4096); 4]).unwrap();
            assert_eq!(layout.name(), entry.name);
            assert_eq!(layout.members(), 4);
            assert!(layout.capacity() > Sectors::ZERO);
        }
    }

    #[test]
    fn the_schema_describes_every_key() {
        for entry in REGISTRY {
            let schema = (entry.schema)();
            for key in known_keys(&schema) {
                let described = schema
                    .get("properties")
                    .and_then(|all| all[&key].get("description"));
                assert!(described.is_some(), "{}.{key}", entry.name);
            }
        }
    }

    #[test]
    fn impossible_volumes_are_errors_that_name_a_key() {
        for entry in REGISTRY {
            assert_eq!(
                (entry.build)(&Keys::new(), &[]).err().unwrap().key,
                "members"
            );
            let keys: Keys = [("chnk".to_owned(), "64KiB".into())].into_iter().collect();
            assert_eq!(
                (entry.build)(&keys, &[Sectors(4096); 4]).err().unwrap().key,
                "chnk"
            );
        }
    }
}
