//! Slow members, and the policies against them.

use crate::stack_files::{load, reading};
use fullstroke_contract::{Counters, RequestStatus};
use fullstroke_engine::{Finished, Observer};

/// Response times in ms, and the number of requests without data.
#[derive(Default)]
struct Responses {
    all: Vec<f64>,
    lost: usize,
}

impl Observer for Responses {
    fn finished(&mut self, finished: &Finished) {
        let response = finished.completion.finished.since(finished.arrived);
        self.all.push(response.as_millis_f64());
        self.lost += usize::from(finished.completion.status == RequestStatus::Lost);
    }
}

impl Responses {
    fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.all.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)]
    }
}

fn run(text: &str, set: &[&str]) -> (Responses, Counters) {
    let mut responses = Responses::default();
    let stack = load(text, set).unwrap_or_else(|error| panic!("{error}"));
    let end = stack.build().unwrap().engine().run(&mut responses).unwrap();
    (responses, end.counters)
}

/// Reads and writes on an array of eight.
fn array(layout: &str, read_share: f64) -> String {
    format!(
        r#"
seed = 1
[workload]
kind = "synthetic"
requests = 6000
read_share = {read_share}
size = "4KiB"
region_size = "4GB"
arrivals = {{ process = "poisson", rate_per_s = 120 }}
[volume]
{layout}
drive = "quantum-atlas-10k"
drives = 8
"#
    )
}

const IDEAL: &str = "layout = \"raid5\"\nlike = \"ideal\"";
const SLOW: &str = "volume.slow={ member = 3, factor = 10 }";

#[test]
fn reading_around_and_sitting_out_take_a_slow_member_out_of_the_tail() {
    let text = array(IDEAL, 1.0);
    let (whole, _) = run(&text, &[]);
    let (wait, counters) = run(&text, &[SLOW]);
    assert!(reading(&counters, "slow_s") > 10.0);
    let (around, counters) = run(
        &text,
        &[
            SLOW,
            "volume.late={ policy = \"read-around\", after = \"40ms\" }",
        ],
    );
    assert!(reading(&counters, "late_read_around") > 300.0);
    let sit = "volume.late={ policy = \"sit-out\", checks = 2, fence = 10 }";
    let (sit_out, counters) = run(&text, &[SLOW, sit]);
    assert_eq!(reading(&counters, "late_sit_outs"), 1.0);
    let p99 = |responses: &Responses| responses.percentile(0.99);
    let [whole, wait, around, sit_out] = [&whole, &wait, &around, &sit_out].map(p99);
    assert!(wait > 3.0 * whole, "{wait} {whole}");
    assert!(around < 0.5 * wait && around > whole, "{around} {wait}");
    assert!(sit_out < 0.5 * wait, "{sit_out} {wait}");
}

#[test]
fn a_percentile_adds_about_its_share_of_reads_on_a_whole_array() {
    let text = array(IDEAL, 1.0);
    let late = "volume.late={ policy = \"read-around\", percentile = 0.95 }";
    let (responses, counters) = run(&text, &[late]);
    assert_eq!(responses.all.len(), 6000);
    let share = reading(&counters, "late_io") / 6000.0;
    assert!((0.02..0.10).contains(&share), "{share}");
}

#[test]
fn a_timeout_fails_a_member_that_stalls_and_the_array_goes_on() {
    let stall = "volume.slow={ member = 3, from = \"10s\", stall = \"40s\" }";
    for layout in [
        "layout = \"raid5\"",
        IDEAL,
        "layout = \"raid10\"",
        "layout = \"raid6\"",
    ] {
        let text = array(layout, 0.5);
        let (wait, counters) = run(&text, &[stall]);
        assert_eq!(reading(&counters, "slow_stalls"), 1.0);
        let longest = wait.percentile(1.0);
        assert!(longest > 35_000.0, "{layout}: {longest}");
        let late = "volume.late={ policy = \"fail\", timeout = \"8s\" }";
        let (fail, counters) = run(&text, &[stall, late]);
        assert_eq!(reading(&counters, "late_failed"), 1.0, "{layout}");
        assert_eq!((fail.all.len(), fail.lost), (6000, 0), "{layout}");
        let longest = fail.percentile(1.0);
        // The requests of eight seconds wait, and are served by seven members.
        assert!(
            (7_500.0..25_000.0).contains(&longest),
            "{layout}: {longest}"
        );
    }
}

#[test]
fn an_array_gives_the_data_of_a_sector_that_a_drive_gives_up() {
    let bad = "volume.slow={ member = 3, lbns = [0, 1000000], bad_random = 2000, recovery = \"60s\", erc = \"1s\" }";
    for layout in [
        "layout = \"raid5\"",
        IDEAL,
        "layout = \"raid10\"",
        "layout = \"raid6\"",
    ] {
        let text = array(layout, 1.0);
        let (responses, counters) = run(&text, &[bad]);
        let unreadable = reading(&counters, "slow_unreadable");
        assert!(unreadable > 0.0, "{layout}");
        assert_eq!((responses.all.len(), responses.lost), (6000, 0), "{layout}");
        let longest = responses.percentile(1.0);
        assert!(
            longest > 1000.0 && longest < 15_000.0,
            "{layout}: {longest}"
        );
        let rewritten = reading(&counters, "late_rewritten");
        assert!(
            rewritten > 0.0 && rewritten <= unreadable,
            "{layout}: {rewritten} of {unreadable}"
        );
        // Without the limit, the drive retries for a minute, and the array waits.
        let (patient, counters) = run(&text, &[bad, "volume.slow.erc=\"90s\""]);
        assert_eq!(reading(&counters, "slow_unreadable"), 0.0);
        assert!(patient.percentile(1.0) > 60_000.0, "{layout}");
    }
}

#[test]
fn without_redundancy_an_unreadable_sector_is_lost() {
    let bad = "volume.slow={ member = 3, lbns = [0, 1000000], bad_random = 2000, recovery = \"60s\", erc = \"1s\" }";
    let (responses, counters) = run(&array("layout = \"raid0\"", 1.0), &[bad]);
    let unreadable = reading(&counters, "slow_unreadable");
    assert!(unreadable > 0.0);
    assert_eq!(responses.lost as f64, unreadable);
}

#[test]
fn impossible_keys_are_refused_with_their_path() {
    let md = array("layout = \"raid5\"", 1.0);
    for (set, parts) in [
        ("volume.slow=3", ["volume.slow", "found 3"]),
        (
            "volume.slow={ factor = 2 }",
            ["volume.slow.member", "0 to 7"],
        ),
        (
            "volume.slow={ member = 8, factor = 2 }",
            ["volume.slow.member", "found 8"],
        ),
        (
            "volume.slow=[{ member = 1, factor = 2 }, { member = 1, stall = \"1s\" }]",
            ["volume.slow[1].member", "second time"],
        ),
        (
            "volume.slow={ member = 1, factor = 0.1 }",
            ["volume.slow.factor", "0.1"],
        ),
        (
            "volume.slow={ member = 1, facto = 2 }",
            ["volume.slow.facto", "factor"],
        ),
        (
            "volume.late={ policy = \"read-around\" }",
            ["volume.late.policy", "md does not have"],
        ),
        (
            "volume.late={ policy = \"fail\", timeout = \"0s\" }",
            ["volume.late.timeout", "found 0"],
        ),
        ("volume.late=\"wait\"", ["volume.late", "expected a table"]),
    ] {
        let error = load(&md, &[set]).err().unwrap_or_else(|| panic!("{set}"));
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{set}: {error}"
        );
    }
    let raid0 = array("layout = \"raid0\"", 1.0);
    let error = load(&raid0, &["volume.late={ policy = \"fail\" }"])
        .err()
        .unwrap();
    assert!(error.contains("no second copy"), "{error}");
}
