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
use fullstroke_contract::registry::{Entry, schema_of};

/// Every layout. A new layout is a new file and a line here.
#[rustfmt::skip]
pub const REGISTRY: &[Entry<BuildLayout>] = &[
    Entry { name: "jbod", summary: "members one behind the other", schema: schema_of::<JbodConfig>, build: Jbod::build },
    Entry { name: "raid0", summary: "chunks dealt to the members in turn, no redundancy", schema: schema_of::<Raid0Config>, build: Raid0::build },
    Entry { name: "raid1", summary: "a copy of everything on every member", schema: schema_of::<Raid1Config>, build: Raid1::build },
    Entry { name: "raid10", summary: "mirrored chunks dealt to the members in turn", schema: schema_of::<Raid10Config>, build: Raid10::build },
    Entry { name: "raid4", summary: "rows of chunks with parity on the last member", schema: schema_of::<Raid4Config>, build: raid4::build },
    Entry { name: "raid5", summary: "rows of chunks with one rotating parity", schema: schema_of::<Raid5Config>, build: raid5::build },
    Entry { name: "raid6", summary: "rows of chunks with two rotating parities", schema: schema_of::<Raid6Config>, build: raid6::build },
    Entry { name: "lzvs", summary: "the outside of one member striped with the inside of another in logical zones, for a constant transfer rate", schema: schema_of::<LzvsConfig>, build: lzvs::build },
    Entry { name: "lzvs-geo", summary: "the same by the members' real zones, and with a transfer rate of its own for each part", schema: schema_of::<LzvsGeoConfig>, build: lzvs_geo::build },
    Entry { name: "lzvs-naive", summary: "equal chunks of the outside of one member and the inside of another, for comparison", schema: schema_of::<LzvsNaiveConfig>, build: lzvs_naive::build },
    Entry { name: "paraid", summary: "RAID 0 or 5, some of whose members stop while little is asked of them; what they hold lies on the others, too, in one reserve", schema: schema_of::<ParaidConfig>, build: paraid::build },
    Entry { name: "e-paraid", summary: "the same with the reserve in buckets beside the data (e-PARAID)", schema: schema_of::<ParaidConfig>, build: paraid::build_beside },
];

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::{Keys, known_keys};
    use fullstroke_units::Sectors;
    use serde_json::json;

    /// Returns the keys without a default.
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
