//! The host of a stack: its effect on a run, and refused settings.

use fullstroke_engine::{Finished, Observer, RunOutcome};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Duration;
use std::path::PathBuf;

/// Requests of eight sectors that arrive faster than the volume can serve them.
const WORKLOAD: &str = r#"
seed = 3
[workload]
kind = "synthetic"
requests = 3000
read_share = 0.7
size = "4KiB"
arrivals = { process = "poisson", rate_per_s = 1000 }
"#;
const RAID5: &str = "[volume]\nlayout = \"raid5\"\nchunk = \"64KiB\"\ndrives = 5\ndrive = \"seagate-cheetah-9lp\"\n";
const RAID1: &str = "[volume]\nlayout = \"raid1\"\ndrives = 2\ndrive = \"seagate-cheetah-9lp\"\n";
const DRIVE: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\n";

struct StackFolder(tempfile::TempDir);

impl StackFolder {
    fn stack(&self, host: &str, volume: &str) -> Result<Stack, String> {
        let path: PathBuf = self.0.path().join("stack.toml");
        std::fs::write(&path, format!("{WORKLOAD}{host}\n{volume}")).unwrap();
        Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
    }
}

#[derive(Default)]
struct Total {
    response: Duration,
}

impl Observer for Total {
    fn finished(&mut self, finished: &Finished) {
        let completion = &finished.completion;
        assert_eq!(
            completion.breakdown.response(),
            completion.finished.since(completion.submitted)
        );
        self.response += completion.finished.since(finished.arrived);
    }
}

/// Returns the outcome of a run and the sum of all response times.
fn run(host: &str, volume: &str) -> (RunOutcome, Duration) {
    let folder = StackFolder(tempfile::tempdir().unwrap());
    let run = folder.stack(host, volume).unwrap().build().unwrap();
    let mut total = Total::default();
    let outcome = run.engine().run(&mut total).unwrap();
    assert_eq!(outcome.completed, 3000);
    (outcome, total.response)
}

fn refused(host: &str, volume: &str) -> String {
    let folder = StackFolder(tempfile::tempdir().unwrap());
    match folder.stack(host, volume) {
        Ok(_) => panic!("{host} was accepted"),
        Err(message) => message,
    }
}

#[test]
fn every_elevator_completes_a_run_above_a_volume_and_above_its_members() {
    for entry in fullstroke_host::elevator::REGISTRY {
        let name = entry.name;
        run(
            &format!("[host]\nelevator = \"{name}\"\nqueue_depth = 4"),
            DRIVE,
        );
        run(
            &format!("[host.members]\nelevator = \"{name}\"\nqueue_depth = 2"),
            RAID5,
        );
        if name != "satf" {
            let two =
                format!("[host]\nelevator = \"{name}\"\n[host.members]\nelevator = \"{name}\"");
            run(&two, RAID5);
        }
    }
}

#[test]
fn a_drive_of_first_come_first_served_gains_from_a_better_elevator() {
    let drive = format!("{DRIVE}drive_settings = {{ queue = {{ discipline = \"fcfs\" }} }}\n");
    let mean = |elevator: &str| {
        run(
            // An ideal host, so that only the orders differ.
            &format!("[host]\nlike = \"ideal\"\nelevator = \"{elevator}\"\nqueue_depth = 1"),
            &drive,
        )
        .1
    };
    let [noop, sstf, satf] = ["noop", "sstf", "satf"].map(mean);
    assert!(
        satf < sstf && sstf < noop,
        "satf {satf:?}, sstf {sstf:?}, noop {noop:?}"
    );
}

#[test]
fn a_mirror_sees_the_arms_of_its_members_through_their_hosts() {
    let nearest = format!("{RAID1}read_policy = \"nearest-head\"\n");
    let plain = run("", &nearest);
    // A queue without a limit changes no decision.
    let through = run("[host.members]\nqueue_depth = 100000", &nearest);
    assert_eq!(plain, through);
}

#[test]
fn a_wrong_key_is_refused_at_its_line() {
    let message = refused("[host]\nelevator = \"v-r\"\nfifo_batches = 3", RAID5);
    assert!(
        message.contains("stack.toml:11: `host.fifo_batches`"),
        "{message}"
    );
    assert!(message.contains("did you mean `fifo_batch`"), "{message}");
    let message = refused("[host.members]\nelevator = \"v-r\"\nfifo_batch = 0", RAID5);
    assert!(
        message.contains("stack.toml:11: `host.members.fifo_batch`"),
        "{message}"
    );
}

#[test]
fn an_elevator_that_does_not_suit_the_volume_is_refused() {
    let message = refused("[host]\nelevator = \"satf\"", RAID5);
    assert!(
        message.contains("`host.elevator`") && message.contains("single drive"),
        "{message}"
    );
    let message = refused("[host.members]\nelevator = \"noop\"", DRIVE);
    assert!(
        message.contains("`host.members`") && message.contains("no members"),
        "{message}"
    );
    let message = refused(
        "[host]\nelevator = \"noop\"\nstripe_aware_merging = true",
        RAID1,
    );
    assert!(message.contains("`host.stripe_aware_merging`"), "{message}");
}

#[test]
fn the_elevator_of_a_kernel_stands_above_each_drive_of_an_array() {
    let usual = run("[host]\nlike = \"linux-6.x\"", RAID5);
    let members = "[host]\nlike = \"linux-6.x\"\n[host.members]\nelevator = \"mq-deadline\"";
    assert_eq!(usual, run(members, RAID5));
    let above = "[host]\nlike = \"linux-6.x\"\nelevator = \"mq-deadline\"";
    assert_ne!(usual, run(above, RAID5));
    assert_eq!(
        run("[host]\nlike = \"linux-6.x\"", DRIVE),
        run(above, DRIVE)
    );
}
