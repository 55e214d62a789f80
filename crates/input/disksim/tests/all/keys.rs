//! No key is silently ignored.

use crate::common::{SEEK, disk, files, model};
use fullstroke_disksim::{
    DiskKeys, ImportOptions, Imported, KeyTreatment, KeyUse, Scheduler, import_from,
};
use fullstroke_drive::DriveModel;
use proptest::prelude::*;
use std::path::Path;

const ZONE: &str = "dm_layout_g1 { LBN-to-PBN mapping scheme = 0, Sparing scheme used = 9,\n\
    Rangesize for sparing = 1, Zones = [ dm_layout_g1_zone { First cylinder number = 0,\n\
    Last cylinder number = 9, Blocks per track = 10, Offset of first block = 0.0,\n\
    Empty space at zone front = 0, Skew for track switch = 1.0, Skew for cylinder switch = 2.0,\n\
    Number of spares = 4, slips = [ 3, 5 ], defects = [] } ] }";

/// Returns the values that DiskSim's manual allows for a key, or some of them.
fn legal(key: &str) -> &'static [&'static str] {
    match key {
        "Preseeking level" | "Enable caching in buffer" | "Fast write level" => &["0", "1", "2"],
        "Immediate buffer read" | "Immediate buffer write" => &["0", "1", "2"],
        "Buffer continuous read" => &["0", "1", "2", "3", "4"],
        "Read-ahead over requested" => &["-1", "0", "1"],
        "Low (write) water mark" | "High (read) water mark" => &["0.0", "0.75", "1.0"],
        "Number of buffer segments" => &["0", "1", "6"],
        "Maximum number of write segments" => &["1", "2"],
        "Segment size (in blks)" => &["1", "7", "40"],
        "Max queue length" => &["0", "1", "9"],
        "Minimum read-ahead (blks)" | "Maximum read-ahead (blks)" => &["0", "5", "40"],
        "Scheduling policy" => &["1", "2", "3", "4", "5", "8", "10", "17"],
        "Avg sectors per cylinder" => &["1", "200"],
        _ if key.starts_with("Sched") || key.starts_with("Timeout") => &["0", "1"],
        "Bulk sector transfer time" => &["0.0", "0.105", "-0.015"],
        _ if key.contains("over.")
            || key.contains("overhead")
            || key.contains("time")
            || key.contains("delay") =>
        {
            &["0.0", "0.25", "1.0"]
        }
        _ => &["0", "1"],
    }
}

fn with(text: &str, key: &str, value: &str) -> String {
    let lines = text.lines().map(|line| {
        match line
            .strip_prefix(key)
            .and_then(|rest| rest.strip_prefix(" = "))
        {
            Some(rest) => format!(
                "{key} = {value}{}\n",
                &rest[rest.find(',').unwrap_or(rest.len())..]
            ),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// Returns disks on which each key matters: with and without track buffer, queue, write-back and
/// extra disconnection.
fn bases() -> Vec<String> {
    let plain = disk(&model(2, 10, 196, ZONE, SEEK));
    let change = |changes: &[(&str, &str)]| {
        changes
            .iter()
            .fold(plain.clone(), |text, (key, value)| with(&text, key, value))
    };
    let segments = [
        ("Number of buffer segments", "6"),
        ("Segment size (in blks)", "40"),
    ];
    vec![
        change(&[
            segments[0],
            segments[1],
            ("Read any free blocks", "1"),
            ("Use separate write segment", "0"),
            ("Max queue length", "4"),
            ("Maximum number of write segments", "2"),
        ]),
        change(&[
            segments[0],
            segments[1],
            ("Immediate buffer read", "0"),
            ("Read-ahead over requested", "0"),
            ("Extra write disconnect", "0"),
            ("Never disconnect", "0"),
            ("Buffer continuous read", "3"),
            ("Use separate write segment", "0"),
        ]),
    ]
}

fn imported(text: &str) -> Imported {
    let options = ImportOptions {
        strict: true,
        ..ImportOptions::default()
    };
    let disks = import_from(
        &files(&[("d.diskspecs", text)]),
        Path::new("d.diskspecs"),
        &options,
    );
    disks.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

/// Tests if different values change the drive, and if a value is reported as a loss.
fn outcome(usage: &KeyUse) -> (bool, bool) {
    let (mut changes, mut told) = (false, false);
    for base in bases() {
        let found: Vec<Imported> = legal(usage.key)
            .iter()
            .map(|value| imported(&with(&base, usage.key, value)))
            .collect();
        changes |= found.windows(2).any(|pair| {
            let [one, other] = pair else { return false };
            // Only the drive counts. The electronics keep the file's values, and so always differ.
            one.config != other.config
        });
        told |= found.iter().any(|found| {
            found
                .losses
                .iter()
                .any(|loss| loss.key.ends_with(usage.key))
        });
    }
    (changes, told)
}

#[test]
fn every_key_is_carried_or_told_or_says_why_it_changes_nothing() {
    for usage in DiskKeys::USES.iter().chain(Scheduler::USES) {
        let (changes, told) = outcome(usage);
        match usage.usage {
            KeyTreatment::Carried => assert!(
                changes,
                "`{}` is called carried and changes nothing",
                usage.key
            ),
            KeyTreatment::CarriedFor(..) => {
                assert!(changes && told, "`{}`: {changes}, {told}", usage.key)
            }
            KeyTreatment::Left(..) => {
                assert!(!changes && told, "`{}`: {changes}, {told}", usage.key)
            }
            KeyTreatment::Idle(because) => {
                assert!(
                    !changes && !told && !because.is_empty(),
                    "`{}`: {changes}, {told}",
                    usage.key
                );
            }
        }
    }
}

fn any_values() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let keys = DiskKeys::USES.iter().chain(Scheduler::USES);
    keys.map(|usage| prop::sample::select(legal(usage.key)).prop_map(|value| (usage.key, value)))
        .collect::<Vec<_>>()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn legal_values_import_and_run(values in any_values(), requests in prop::collection::vec((0u64..190, 1u64..7, any::<bool>()), 1..60)) {
        let text = values.iter().fold(bases().remove(0), |text, (key, value)| with(&text, key, value));
        let config = imported(&text).config;
        let mut drive = DriveModel::new(config).unwrap().drive().unwrap();
        let done = crate::common::run(&mut drive, &requests);
        prop_assert_eq!(done, requests.len());
    }
}
