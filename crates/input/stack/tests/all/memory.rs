//! Stacks with a page cache.

use fullstroke_contract::{Operation, Request};
use fullstroke_engine::{Finished, Observer, RunOutcome};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Time;
use std::fs;

/// Requests of the programs, and I/Os of the drive.
#[derive(Default)]
struct MemoryTraffic {
    finished: Vec<Finished>,
    ios: Vec<Request>,
}

impl Observer for MemoryTraffic {
    fn finished(&mut self, finished: &Finished) {
        let span = finished.completion.finished.since(finished.arrived);
        assert_eq!(
            finished.completion.breakdown.response(),
            span,
            "{finished:?}"
        );
        self.finished.push(*finished);
    }
    fn drive_io(&mut self, _: Time, _: usize, request: &Request) {
        self.ios.push(*request);
    }
}

fn load(text: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, text).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

fn run(text: &str) -> (RunOutcome, MemoryTraffic) {
    let stack = load(text).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = MemoryTraffic::default();
    let outcome = stack.build().unwrap().engine().run(&mut seen).unwrap();
    (outcome, seen)
}

fn reading(outcome: &RunOutcome, name: &str) -> f64 {
    let mut readings = outcome
        .counters
        .layers
        .iter()
        .flat_map(|layer| &layer.readings);
    readings
        .find(|reading| reading.name == name)
        .unwrap_or_else(|| panic!("no {name}"))
        .value
}

fn stack(workload: &str, host: &str) -> String {
    format!(
        "seed = 3\n[workload]\nkind = \"synthetic\"\n{workload}\n[host]\nelevator = \"mq-deadline\"\n{host}\n\
         [volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"jbod\"\ndrives = 1\n"
    )
}

const CLOSED: &str = "arrivals = { process = \"closed\", outstanding = 1 }";

#[test]
fn sequential_reads_find_what_was_read_ahead() {
    let workload = format!(
        "requests = 4000\nsize = \"4KiB\"\naddresses = {{ pattern = \"sequential\" }}\n{CLOSED}"
    );
    let (outcome, seen) = run(&stack(&workload, "[host.memory]\nsize = \"64MiB\""));
    assert_eq!(outcome.completed, 4000);
    // The first window is short. The following windows are 128 KiB (read_ahead_kb).
    assert!(seen.ios.len() < 4000 / 32 + 10, "{} I/Os", seen.ios.len());
    assert!(reading(&outcome, "memory_read_ahead_used_share") > 0.95);
    let (_, bare) = run(&stack(&workload, ""));
    assert_eq!(bare.ios.len(), 4000);
}

#[test]
fn what_fits_is_read_once() {
    let region = "addresses = { pattern = \"random\" }\nregion_size = \"8MiB\"";
    let workload = format!("requests = 30000\nsize = \"4KiB\"\n{region}\n{CLOSED}");
    for (size, least, most) in [("16MiB", 0.92, 1.0), ("4MiB", 0.40, 0.65)] {
        let (outcome, _) = run(&stack(
            &workload,
            &format!("[host.memory]\nsize = \"{size}\""),
        ));
        let hits = reading(&outcome, "memory_hit_share");
        assert!((least..=most).contains(&hits), "{size}: {hits}");
    }
}

#[test]
fn writes_go_down_in_the_background_and_at_a_flush() {
    let workload = "duration = \"60s\"\nsize = \"4KiB\"\nread_share = 0.0\n\
                    arrivals = { process = \"poisson\", rate_per_s = 50 }";
    let (outcome, seen) = run(&stack(workload, "[host.memory]\nsize = \"512MiB\""));
    let instant = seen
        .finished
        .iter()
        .filter(|finished| finished.completion.finished == finished.arrived);
    assert_eq!(
        instant.count() as u64,
        outcome.requests,
        "nobody waits for a write"
    );
    // When the first page of the device has been dirty for 30 seconds, all dirty pages of the
    // device are written.
    let (written, dirty) = (
        reading(&outcome, "memory_written_periodic_mb"),
        reading(&outcome, "memory_dirty_mb"),
    );
    assert!(
        written > 5.0 && written + dirty > 11.0 && dirty < 7.0,
        "{written} MB written, {dirty} MB dirty"
    );
    assert!(
        seen.ios
            .iter()
            .all(|io| io.operation == Operation::Write && io.origin == Request::BACKGROUND)
    );
}

#[test]
fn direct_jobs_of_fio_pass_the_page_cache_by() {
    let folder = tempfile::tempdir().unwrap();
    for (direct, hits) in [(0, true), (1, false)] {
        let job = format!(
            "[a]\nrw=randread\nbs=4k\nsize=1m\nio_size=8m\nnorandommap=1\ndirect={direct}\n"
        );
        let path = folder.path().join("job.fio");
        fs::write(&path, job).unwrap();
        let text = format!(
            "[workload]\nkind = \"fio\"\npath = \"{}\"\n[host.memory]\nsize = \"64MiB\"\n\
             [volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"jbod\"\ndrives = 1\n",
            path.display()
        );
        let (outcome, seen) = run(&text);
        assert_eq!(outcome.completed, 2048);
        assert_eq!(seen.ios.len() < 1000, hits, "{} I/Os", seen.ios.len());
    }
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    let workload = format!("requests = 10\nsize = \"4KiB\"\n{CLOSED}");
    for (host, key, words) in [
        (
            "[host.memory]\nsize = \"4KiB\"",
            "host.memory.size",
            "at least",
        ),
        (
            "[host.memory]\nsize = \"1MiB\"\nread_ahed = \"today\"",
            "host.memory.read_ahed",
            "did you mean",
        ),
        (
            "[host.memory]\nsize = \"1MiB\"\nreplacement = \"lrru2\"",
            "host.memory.replacement",
            "did you mean",
        ),
    ] {
        let error = load(&stack(&workload, host)).err().unwrap();
        assert!(
            error.contains(&format!("`{key}`")) && error.contains(words),
            "{key}: {error}"
        );
    }
}
