//! Pools in stacks: loads on the layer, capacity in the summary, and refusals.

use fullstroke_contract::{Notice, Signal};
use fullstroke_engine::Observer;
use fullstroke_stack::{Overrides, Stack, StackError};
use fullstroke_units::{Bytes, Time};
use std::fmt::Write as _;

/// Returns a stack of eight drives with these keys of the volume.
fn text(keys: &[&str]) -> String {
    let mut text = String::from(
        "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 400\nread_share = 0.5\nsize = \"16KiB\"\n\
         region_size = \"1GiB\"\narrivals = { process = \"closed\", outstanding = 8 }\n\
         [volume]\ndrive = \"quantum-atlas-10k\"\n",
    );
    for key in keys {
        let _ = writeln!(text, "{key}");
    }
    text
}

fn load_stack(text: &str) -> Result<Stack, StackError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.toml");
    std::fs::write(&path, text).unwrap();
    Stack::load(&path, &Overrides::default())
}

#[test]
fn every_pool_answers_every_request_and_repeats_to_the_bit() {
    for keys in [
        ["layout = \"raidz2\"", "drives = 8"].as_slice(),
        &["layout = \"raidz1\"", "drives = 8", "width = 4"],
        &["layout = \"mirror\"", "drives = 8"],
        &[
            "layout = \"draid2\"",
            "drives = 8",
            "data = 4",
            "spares = 1",
        ],
        &[
            "layout = \"raidz3\"",
            "drives = 9",
            "logs = 1",
            "sync = \"always\"",
        ],
    ] {
        let stack = load_stack(&text(keys)).unwrap();
        let run = || {
            let outcome = stack.build().unwrap().engine().run(&mut ()).unwrap();
            assert_eq!(outcome.completed, 400, "{keys:?}");
            format!("{:?}", outcome.counters)
        };
        let counters = run();
        assert_eq!(counters, run());
        assert!(counters.contains("pool_hit_share"), "{counters}");
    }
}

#[test]
fn a_pool_nests_below_other_layouts() {
    let nested = text(&[
        "layout = \"raid0\"",
        "[[volume.members]]",
        "layout = \"raidz1\"",
        "drives = 3",
        "count = 2",
    ]);
    let stack = load_stack(&nested).unwrap();
    let outcome = stack.build().unwrap().engine().run(&mut ()).unwrap();
    assert_eq!(outcome.completed, 400);
}

#[test]
fn the_summary_has_the_sizes_of_zfs() {
    let stack = load_stack(&text(&["layout = \"raidz2\"", "drives = 8"])).unwrap();
    let summary = stack.summary().unwrap();
    let pool = summary.pool.unwrap();
    assert_eq!(summary.failures_survived, 2);
    assert!(pool.size > pool.available && pool.available > summary.usable.0);
    let raid6 = load_stack(&text(&["layout = \"raid6\"", "drives = 8"])).unwrap();
    assert_eq!(raid6.summary().unwrap().pool, None);
    let given = load_stack(&text(&[
        "layout = \"raidz2\"",
        "drives = 8",
        "volsize = \"8GiB\"",
    ]))
    .unwrap();
    assert_eq!(given.summary().unwrap().usable, Bytes(8 << 30));
}

#[test]
fn a_pool_is_not_served_and_says_so() {
    let stack = load_stack(&text(&["layout = \"raidz2\"", "drives = 8"])).unwrap();
    for error in [stack.serve().err().unwrap(), stack.shape().err().unwrap()] {
        assert_eq!(error.key, "volume.layout", "{error}");
        assert!(error.message.contains("simulated only"), "{error}");
        assert_eq!(error.line, Some(11), "{error}");
    }
}

#[test]
fn keys_of_other_layouts_are_refused_for_pools() {
    for (keys, key, says) in [
        (
            ["layout = \"raidz3\"", "drives = 3"].as_slice(),
            "volume.members",
            "at least 4",
        ),
        (
            &["layout = \"raidz2\"", "drives = 8", "chunk = \"64KiB\""],
            "volume.chunk",
            "raidz2 has no such key; layouts with the key: raid0, raid10",
        ),
        (
            &["layout = \"raidz2\"", "drives = 8", "rebuild = [0, 1]"],
            "volume.rebuild",
            "one drive",
        ),
        (
            &[
                "layout = \"mirror\"",
                "drives = 8",
                "speed_limit_max = \"1MiB\"",
            ],
            "volume.speed_limit_max",
            "no limit of speed",
        ),
        (
            &["layout = \"mirror\"", "drives = 8", "rebuild = 9"],
            "volume.rebuild",
            "no member 9",
        ),
        (
            &["layout = \"raidz2\"", "drives = 8", "bitmap = \"internal\""],
            "volume.bitmap",
            "like md",
        ),
    ] {
        let built = load_stack(&text(keys)).and_then(|stack| stack.build().map(drop));
        let error = built.err().unwrap_or_else(|| panic!("{keys:?} is allowed"));
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
}

/// The times of the notices about a resilver, with its end.
#[derive(Default)]
struct Resilvered {
    notices: usize,
    end: Option<Time>,
}

impl Observer for Resilvered {
    fn noticed(&mut self, _: &[usize], notice: &Notice) {
        if let Signal::Rebuilt {
            member: 1, whole, ..
        } = notice.signal
        {
            self.notices += 1;
            self.end = whole.then_some(notice.at).or(self.end);
        }
    }
}

#[test]
fn a_resilver_from_the_start_ends_and_takes_longer_under_load() {
    let seconds = |arrivals: &str| {
        let keys = [
            "layout = \"raidz1\"",
            "drives = 4",
            "volsize = \"1GiB\"",
            "rebuild = 1",
        ];
        let text = text(&keys)
            .replace("requests = 400", "duration = \"400s\"")
            .replace("process = \"closed\", outstanding = 8", arrivals);
        let stack = load_stack(&text).unwrap();
        assert_eq!(stack.rebuilt_members().unwrap().len(), 1);
        let mut seen = Resilvered::default();
        stack.build().unwrap().engine().run(&mut seen).unwrap();
        assert!(seen.notices > 100);
        seen.end.expect("the resilver ends").as_secs_f64()
    };
    let idle = seconds("process = \"poisson\", rate_per_s = 1");
    let busy = seconds("process = \"closed\", outstanding = 8");
    assert!(busy > idle * 1.05, "{idle} s alone, {busy} s under load");
}
