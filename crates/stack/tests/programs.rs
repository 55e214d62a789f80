//! Stacks whose workloads are programs: file systems, memory and block layer below them.

use fullstroke_contract::{HostReadings, Operation, OperationReadings};
use fullstroke_engine::{Finished, Observer, Outcome};
use fullstroke_stack::{Overrides, Stack};
use std::fs;

/// Requests of the host.
#[derive(Default)]
struct Seen {
    requests: Vec<Finished>,
}

impl Observer for Seen {
    fn finished(&mut self, finished: &Finished) {
        let span = finished.completion.finished.since(finished.arrived);
        assert_eq!(finished.completion.breakdown.response(), span, "{finished:?}");
        self.requests.push(*finished);
    }
}

fn load(text: &str, script: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("list"), script).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

fn try_run(text: &str, script: &str) -> Result<(Outcome, Seen), String> {
    let stack = load(text, script)?;
    let mut seen = Seen::default();
    let run = stack.build().map_err(|error| error.to_string())?;
    let outcome = run.engine().run(&mut seen).map_err(|error| error.to_string())?;
    Ok((outcome, seen))
}

fn run(text: &str, script: &str) -> (Outcome, Seen) {
    try_run(text, script).unwrap_or_else(|error| panic!("{error}"))
}

const DISK: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"jbod\"\ndrives = 1\n";
const RAID5: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"raid5\"\ndrives = 4\n";
const SCRIPT: &str = "[workload]\nkind = \"script\"\nfile = \"list\"\n";

fn host(files: &str) -> String {
    format!("[host]\nelevator = \"mq-deadline\"\n[host.memory]\nsize = \"64MiB\"\n[host.files]\n{files}\n")
}

fn on(kind: &str, volume: &str) -> String {
    format!("seed = 3\n{SCRIPT}{}{volume}", host(&format!("kind = \"{kind}\"")))
}

fn told(outcome: &Outcome) -> &HostReadings {
    let [host] = &outcome.counters.hosts[..] else { panic!("{:?}", outcome.counters.hosts) };
    host
}

fn operation<'a>(outcome: &'a Outcome, kind: &str) -> &'a OperationReadings {
    told(outcome).operations.iter().find(|operation| operation.kind == kind).unwrap()
}

fn sectors(seen: &Seen, operation: Operation) -> u64 {
    let of = seen.requests.iter().filter(|request| request.operation == operation);
    of.map(|request| request.extent.sectors.0).sum()
}

const LIFE: &str = "mkdir mail\nrepeat 40\ncreate mail/{n} 40KiB\nend\nsync\nrepeat 40\nread mail/{n}\nend\n\
                    repeat 20\nappend mail/{n} 12KiB\nfsync mail/{n}\nend\nrepeat 40\ndelete mail/{n}\nend\nsync\n";

#[test]
fn a_life_of_files_ends_on_each_file_system_and_repeats_to_the_bit() {
    for kind in ["ext2", "ext4", "xfs"] {
        for volume in [DISK, RAID5] {
            let (outcome, seen) = run(&on(kind, volume), LIFE);
            let (again, seen_again) = run(&on(kind, volume), LIFE);

            assert_eq!(seen.requests, seen_again.requests, "{kind}");
            assert_eq!(outcome.counters.hosts, again.counters.hosts, "{kind}");
            assert_eq!((operation(&outcome, "create").calls, operation(&outcome, "unlink").calls), (40, 40));
            assert!(sectors(&seen, Operation::Write) >= (40 * 40 + 20 * 12) * 2, "{kind}");
            // All of it was in memory.
            assert_eq!(operation(&outcome, "read").device_reads, 0.0, "{kind}");
            assert!(operation(&outcome, "fsync").latency.p50_ms > 0.5, "{kind}");
        }
    }
}
