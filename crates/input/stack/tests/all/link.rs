//! The link of a stack: its effect on a run, and refused settings.

use fullstroke_contract::LayerReadings;
use fullstroke_engine::{Finished, Observer, RunOutcome};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Duration;

/// Reads and writes of eight sectors.
const WORKLOAD: &str = r#"
seed = 3
[workload]
kind = "synthetic"
requests = 2000
size = "4KiB"
"#;
const OPEN: &str = "read_share = 0.5\narrivals = { process = \"poisson\", rate_per_s = 100 }\n";
const RAID5: &str = "[volume]\nlayout = \"raid5\"\ndrives = 5\ndrive = \"seagate-cheetah-9lp\"\n";
const DRIVE: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\n";
const NESTED: &str = "[volume]\nlayout = \"raid0\"\ndrive = \"seagate-cheetah-9lp\"\n\
    [[volume.members]]\nlayout = \"raid1\"\ndrives = 2\ncount = 2\n";

fn stack(text: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    std::fs::write(&path, format!("{WORKLOAD}{text}")).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

/// Adds up response times, and checks that each equals the sum of its parts.
#[derive(Default)]
struct Total(Duration);

impl Observer for Total {
    fn finished(&mut self, finished: &Finished) {
        let completion = &finished.completion;
        assert_eq!(
            completion.breakdown.response(),
            completion.finished.since(completion.submitted)
        );
        self.0 += completion.finished.since(finished.arrived);
    }
}

fn run(text: &str) -> (RunOutcome, Duration) {
    let run = stack(text).unwrap().build().unwrap();
    let mut total = Total::default();
    let outcome = run.engine().run(&mut total).unwrap();
    assert_eq!(outcome.completed, 2000);
    (outcome, total.0)
}

/// Returns the readings of links and controllers, without those of volumes.
fn links(outcome: &RunOutcome) -> Vec<&LayerReadings> {
    outcome
        .counters
        .layers
        .iter()
        .filter(|layer| !layer.layer.starts_with("volume"))
        .collect()
}

fn reading(outcome: &RunOutcome, layer: usize, name: &str) -> f64 {
    let readings = &links(outcome)[layer].readings;
    readings
        .iter()
        .find(|reading| reading.name == name)
        .unwrap_or_else(|| panic!("no {name}"))
        .value
}

fn refused(text: &str) -> String {
    stack(text)
        .err()
        .unwrap_or_else(|| panic!("{text} was accepted"))
}

#[test]
fn every_link_completes_a_run_and_lengthens_it_a_little() {
    for volume in [RAID5, DRIVE, NESTED] {
        let (plain, without) = run(&format!("{OPEN}{volume}"));
        assert!(links(&plain).is_empty());
        for entry in fullstroke_link::REGISTRY {
            let (outcome, with) = run(&format!(
                "{OPEN}[link]\nkind = \"{}\"\n{volume}",
                entry.name
            ));
            assert!(
                with > without && with < without + Duration::from_millis(2) * 2000,
                "{}",
                entry.name
            );
            assert!(
                links(&outcome)[0]
                    .layer
                    .starts_with(&format!("link {}", entry.name))
            );
            let utilisation = reading(&outcome, 0, "link_utilisation");
            assert!(
                utilisation > 0.0 && utilisation < 0.2,
                "{} {utilisation}",
                entry.name
            );
        }
    }
}

#[test]
fn a_small_write_of_a_raid5_crosses_the_link_four_times() {
    let (outcome, _) = run(&format!(
        "read_share = 0.0\narrivals = {{ process = \"closed\", outstanding = 1 }}\n[link]\nkind = \"fc-al\"\n{RAID5}"
    ));
    let megabytes = 2000.0 * 4096.0 / 1e6;
    assert_eq!(reading(&outcome, 0, "link_to_host_mb"), 2.0 * megabytes);
    assert_eq!(reading(&outcome, 0, "link_to_members_mb"), 2.0 * megabytes);
    // Each of two reads sends a command, and data with status. Each of two writes sends a readiness
    // in addition.
    assert_eq!(
        reading(&outcome, 0, "link_transfers"),
        2000.0 * (2.0 * 3.0 + 2.0 * 4.0)
    );
    assert_eq!(
        reading(&outcome, 0, "link_tenancies"),
        2000.0 * (2.0 * 2.0 + 2.0 * 4.0)
    );
}

#[test]
fn each_volume_of_drives_has_a_link_of_its_own() {
    let (outcome, _) = run(&format!("{OPEN}[link]\nkind = \"scsi\"\n{NESTED}"));
    let names: Vec<&str> = links(&outcome)
        .iter()
        .map(|layer| layer.layer.as_str())
        .collect();
    assert_eq!(names, ["link scsi, member 0", "link scsi, member 1"]);
}

#[test]
fn a_controller_stands_above_the_link_and_tells_what_it_counted() {
    let (outcome, _) = run(&format!(
        "{OPEN}[controller]\n[link]\nkind = \"sas\"\n{RAID5}"
    ));
    let names: Vec<&str> = links(&outcome)
        .iter()
        .map(|layer| layer.layer.as_str())
        .collect();
    assert_eq!(names, ["controller", "link sas"]);
    assert!(reading(&outcome, 0, "controller_writes_absorbed") > 900.0);
    assert!(reading(&outcome, 0, "controller_reads") > 900.0);
}

#[test]
fn wrong_keys_are_refused_at_their_lines() {
    for (link, volume, place, part) in [
        (
            "kind = \"fc-all\"",
            RAID5,
            "stack.toml:10: `link.kind`",
            "did you mean `fc-al`?",
        ),
        (
            "rate_gbaud = 2",
            RAID5,
            "stack.toml:9: `link.kind`",
            "set one of fc-al, scsi, sas",
        ),
        (
            "kind = 3",
            RAID5,
            "stack.toml:10: `link.kind`",
            "found 3; expected the name of a link",
        ),
        (
            "kind = \"fc-al\"\nrate_gbauds = 2",
            RAID5,
            "stack.toml:11: `link.rate_gbauds`",
            "did you mean `rate_gbaud`?",
        ),
        (
            "kind = \"fc-al\"\nrate_gbaud = 0",
            RAID5,
            "stack.toml:11: `link.rate_gbaud`",
            "found 0; expected 10^9 bits",
        ),
        (
            "kind = \"scsi\"\narbitration = 3",
            DRIVE,
            "stack.toml:11: `link.arbitration`",
            "expected",
        ),
        (
            "kind = \"sas\"\nlatency = \"1000h\"",
            RAID5,
            "stack.toml:11: `link.latency`",
            "found 3600000 s; expected a second at most",
        ),
        (
            "kind = \"scsi\"\nselection = \"2s\"",
            RAID5,
            "stack.toml:11: `link.selection`",
            "a second at most",
        ),
        (
            "kind = \"fc-al\"\nnode_delay_words = 20000",
            RAID5,
            "stack.toml:11: `link.node_delay_words`",
            "expected 10000 words at most",
        ),
        (
            "kind = \"scsi\"\n",
            &RAID5.replace('5', "0").replace("drives = 0", "drives = 16"),
            "stack.toml:10: `link.kind`",
            "15 beside the host",
        ),
        (
            "kind = \"sas\"\n[host.members]\nqueue_depth = 2",
            RAID5,
            "`host.members`",
            "remove [link] or these keys",
        ),
        (
            "kind = \"sas\"",
            "[volume]\nlayout = \"raid1\"\ndrive = \"seagate-cheetah-9lp\"\n[[volume.members]]\n\
             [[volume.members]]\nlayout = \"raid0\"\ndrives = 2\n",
            "stack.toml:9: `link`",
            "drives and volumes",
        ),
    ] {
        let message = refused(&format!("{OPEN}[link]\n{link}\n{volume}"));
        assert!(
            message.contains(place) && message.contains(part),
            "{message}"
        );
    }
}
