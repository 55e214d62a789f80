//! The pools by name, one line each.

use crate::config::PoolSettings;
use crate::keys::{Kind, schema};
use crate::layout::PoolLayout;
use fullstroke_contract::registry::PolicyEntry;
use fullstroke_volume::BuildLayout;

/// The kind of each layout, by name.
const KINDS: [(&str, Kind); 7] = [
    ("mirror", Kind::Mirror),
    ("raidz1", Kind::Raidz(1)),
    ("raidz2", Kind::Raidz(2)),
    ("raidz3", Kind::Raidz(3)),
    ("draid1", Kind::Draid(1)),
    ("draid2", Kind::Draid(2)),
    ("draid3", Kind::Draid(3)),
];

/// Returns an entry of the registry. A macro, because a policy entry has plain functions.
macro_rules! pool {
    ($index:literal, $summary:literal) => {
        PolicyEntry {
            name: KINDS[$index].0,
            summary: $summary,
            schema: || schema(KINDS[$index].1),
            build: |keys, members| {
                let (name, kind) = KINDS[$index];
                let settings = PoolSettings::read(kind, keys, members)?;
                Ok(Box::new(PoolLayout::new(name, settings)))
            },
        }
    };
}

/// Every pool.
#[rustfmt::skip]
pub const POOLS: [PolicyEntry<BuildLayout>; 7] = [
    pool!(0, "ZFS pool of mirrors: `width` copies of all data in each vdev, the vdevs striped; survives all drives of a vdev but one"),
    pool!(1, "ZFS pool of RAIDZ1: each record has its own parity; each vdev survives one failed drive"),
    pool!(2, "ZFS pool of RAIDZ2: each record has its own two parities; each vdev survives two failed drives"),
    pool!(3, "ZFS pool of RAIDZ3: each record has its own three parities; each vdev survives three failed drives"),
    pool!(4, "ZFS pool of dRAID1: groups with one parity and distributed spares; each vdev survives one failed drive"),
    pool!(5, "ZFS pool of dRAID2: groups with two parities and distributed spares; each vdev survives two failed drives"),
    pool!(6, "ZFS pool of dRAID3: groups with three parities and distributed spares; each vdev survives three failed drives"),
];

/// Returns the kind of the pool called `name`.
pub fn kind_of(name: &str) -> Option<Kind> {
    KINDS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::{Keys, known_keys};
    use fullstroke_units::Sectors;
    use serde_json::json;

    fn refused(
        name: &str,
        keys: serde_json::Value,
        drives: usize,
    ) -> fullstroke_contract::ConfigError {
        let entry = POOLS.iter().find(|entry| entry.name == name).unwrap();
        let members = vec![Sectors(2_000_000_000); drives];
        let result = (entry.build)(keys.as_object().unwrap(), &members);
        result
            .err()
            .unwrap_or_else(|| panic!("{name} of {drives} with {keys} is allowed"))
    }

    #[test]
    fn every_pool_builds_with_its_defaults() {
        for entry in &POOLS {
            let layout = (entry.build)(&Keys::new(), &[Sectors(2_000_000_000); 8]).unwrap();
            assert_eq!(layout.name(), entry.name);
            assert!(layout.failures_survived() > 0);
        }
    }

    #[test]
    fn every_key_is_described() {
        for entry in &POOLS {
            let schema = (entry.schema)();
            for key in known_keys(&schema) {
                let all = schema.get("properties").unwrap();
                assert!(
                    all[&key].get("description").is_some(),
                    "{}.{key}",
                    entry.name
                );
            }
        }
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table of cases, one a line")]
    fn pools_that_zfs_refuses_name_their_key_and_the_rule() {
        for (name, keys, drives, key, says) in [
            ("raidz3", json!({}), 3, "members", "at least 4"),
            ("raidz1", json!({ "width": 3 }), 8, "width", "whole vdevs"),
            ("mirror", json!({}), 1, "members", "at least 2"),
            ("mirror", json!({}), 3, "members", "whole vdevs"),
            (
                "draid2",
                json!({ "data": 8 }),
                9,
                "data",
                "8 need 10 devices",
            ),
            (
                "draid1",
                json!({ "data": 4, "spares": 4 }),
                8,
                "data",
                "at most 3 data",
            ),
            (
                "raidz2",
                json!({ "recordsize": "2KiB" }),
                8,
                "recordsize",
                "one sector",
            ),
            (
                "raidz2",
                json!({ "recordsize": "x" }),
                8,
                "recordsize",
                "found `x`; expected a number",
            ),
            (
                "raidz2",
                json!({ "recordsize": 3000 }),
                8,
                "recordsize",
                "powers of two",
            ),
            (
                "draid1",
                json!({ "resilver": "spare" }),
                8,
                "resilver",
                "spares = 1",
            ),
            ("raidz2", json!({ "ashift": 8 }), 8, "ashift", "9 to 16"),
            (
                "raidz2",
                json!({ "compression": 0.5 }),
                8,
                "compression",
                "found 0.5",
            ),
            (
                "raidz2",
                json!({ "volsize": "100TB" }),
                8,
                "volsize",
                "space for",
            ),
            (
                "raidz2",
                json!({ "failed": [0, 1, 2] }),
                8,
                "failed",
                "survives 2",
            ),
            (
                "raidz2",
                json!({ "failed": [8] }),
                8,
                "failed",
                "no member 8",
            ),
            (
                "raidz2",
                json!({ "expanded_from": 9 }),
                8,
                "expanded_from",
                "3 to 8",
            ),
            ("raidz2", json!({ "logs": 8 }), 8, "members", "logs = 8"),
            (
                "raidz2",
                json!({ "dirty_data_max": "64KiB" }),
                8,
                "dirty_data_max",
                "four records",
            ),
            (
                "raidz2",
                json!({ "txg_timeout_s": 0 }),
                8,
                "txg_timeout_s",
                "1 to 3600",
            ),
            ("raidz2", json!({ "spares": 1 }), 8, "spares", "unknown key"),
            (
                "mirror",
                json!({ "resilver": "spare" }),
                8,
                "resilver",
                "only draid",
            ),
            (
                "draid1",
                json!({ "rebuild_limit": "1MiB" }),
                8,
                "rebuild_limit",
                "sequential",
            ),
            (
                "raidz2",
                json!({ "resilver": "sequential" }),
                8,
                "resilver",
                "unknown key",
            ),
            (
                "raidz2",
                json!({ "scattered": 2 }),
                8,
                "scattered",
                "0 to 1",
            ),
            (
                "raidz2",
                json!({ "scrub_from": 0.5 }),
                8,
                "scrub_from",
                "no scrub",
            ),
            (
                "raidz2",
                json!({ "scan_records": "scattered" }),
                8,
                "scan_records",
                "scattered = 0 leaves none",
            ),
            (
                "mirror",
                json!({ "scan_records": "ordered", "scattered": 1 }),
                2,
                "scan_records",
                "found \"ordered\"",
            ),
            ("raidz2", json!({ "scan_limit": 0 }), 8, "scan_limit", "end"),
            (
                "raidz2",
                json!({ "caches": 8 }),
                8,
                "members",
                "because caches = 8 take",
            ),
            (
                "raidz2",
                json!({ "special": 1 }),
                9,
                "special",
                "special = 3",
            ),
            (
                "mirror",
                json!({ "special": 3 }),
                11,
                "special",
                "special_force",
            ),
            (
                "raidz2",
                json!({ "special_force": true }),
                8,
                "special_force",
                "no special vdev",
            ),
            (
                "raidz1",
                json!({ "special": 2, "failed": [8, 9] }),
                10,
                "failed",
                "special",
            ),
            (
                "raidz2",
                json!({ "l2arc": { "headroom": 8 } }),
                8,
                "l2arc",
                "caches = 1",
            ),
            (
                "raidz2",
                json!({ "caches": 1, "arc": "1GiB", "recordsize": "8KiB" }),
                9,
                "caches",
                "33 %",
            ),
            (
                "raidz2",
                json!({ "caches": 1, "l2arc": { "size": "10TB" } }),
                9,
                "l2arc.size",
                "the drive has",
            ),
            (
                "raidz2",
                json!({ "processor": { "threads": 0 } }),
                8,
                "processor.threads",
                "1 to 1024",
            ),
            (
                "mirror",
                json!({ "processor": { "copy_mb_per_s": 0 } }),
                8,
                "processor.copy_mb_per_s",
                "10^9",
            ),
        ] {
            let error = refused(name, keys, drives);
            assert_eq!(error.key, key, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
        let tiny = (POOLS[1].build)(&Keys::new(), &[Sectors(100_000); 4])
            .err()
            .unwrap();
        assert!(tiny.message.contains("64 MiB"), "{tiny}");
    }

    #[test]
    fn an_expanded_vdev_keeps_the_old_ratio_of_data() {
        let build = |keys: serde_json::Value| {
            let members = vec![Sectors(20_000_000_000); 8];
            (POOLS[2].build)(keys.as_object().unwrap(), &members)
                .unwrap()
                .capacity()
                .0 as f64
        };
        let (whole, expanded) = (build(json!({})), build(json!({ "expanded_from": 4 })));
        // 8 drives hold 6 of data; in the old width 2 of 4.
        let ratio = expanded / whole;
        assert!((0.64..0.70).contains(&ratio), "{ratio}");
    }
}
