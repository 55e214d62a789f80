//! Drives whose platters have different angles.

use fullstroke_engine::{Finished, Graph, Observer};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Duration;
use std::fs;

fn load(keys: &str, seed: u64) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    let text = format!(
        "seed = {seed}\n[workload]\nkind = \"synthetic\"\nrequests = 2000\nsize = \"4KiB\"\nread_share = 0.0\n\
         arrivals = {{ process = \"closed\", outstanding = 1 }}\n[volume]\n{keys}\n"
    );
    fs::write(&path, text).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

/// Mean response time in ms.
#[derive(Default)]
struct Mean(Duration, u64);

impl Observer for Mean {
    fn finished(&mut self, finished: &Finished) {
        self.0 += finished.completion.finished.since(finished.arrived);
        self.1 += 1;
    }
}

fn mean(keys: &str, seed: u64) -> f64 {
    let mut mean = Mean::default();
    load(keys, seed)
        .unwrap_or_else(|error| panic!("{error}"))
        .build()
        .unwrap()
        .engine()
        .run(&mut mean)
        .unwrap();
    mean.0.as_millis_f64() / mean.1 as f64
}

const MIRROR: &str = "layout = \"raid1\"\ndrive = \"seagate-cheetah-9lp\"\ndrives = 2";

#[test]
fn each_drive_has_an_angle_of_its_own_by_the_seed() {
    let phases = |keys: &str, seed: u64| {
        let graph = Graph::new(load(keys, seed).unwrap().build().unwrap().layers);
        graph
            .drive_gauges()
            .map(|gauge| gauge.phase)
            .collect::<Vec<_>>()
    };
    let apart = format!("{MIRROR}\nspindles = \"apart\"");
    let (one, other) = (phases(&apart, 1), phases(&apart, 2));
    assert!(one[0] != one[1] && one != other && one == phases(&apart, 1));
    let together = phases(MIRROR, 1);
    assert_eq!(together[0], together[1]);
    assert_eq!(
        together,
        phases(&format!("{MIRROR}\nspindles = \"together\""), 1)
    );
}

#[test]
fn a_mirror_waits_for_the_later_of_two_that_turn_apart() {
    // Both arms go to the same place. With equal angles both arrive at once. With random angles the
    // later of two random latencies counts: 2/3 of a revolution of 5.96 ms in place of 1/2. The
    // difference is random, so the test averages five seeds.
    let more: f64 = (1..=5)
        .map(|seed| mean(&format!("{MIRROR}\nspindles = \"apart\""), seed) - mean(MIRROR, seed))
        .sum::<f64>()
        / 5.0;
    assert!((0.4..1.6).contains(&more), "{more} ms");
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    for (keys, words) in [
        (
            format!("{MIRROR}\nspindles = \"random\""),
            "expected \"together\" or \"apart\"",
        ),
        (
            format!("{MIRROR}\nspindles = true"),
            "expected \"together\" or \"apart\"",
        ),
        (
            "layout = \"xor\"\ndrive = \"seagate-cheetah-9lp\"\ndrives = 4\nspindles = \"apart\""
                .into(),
            "xor",
        ),
    ] {
        let error = load(&keys, 1).err().unwrap();
        assert!(
            error.contains("`volume.spindles`") && error.contains(words),
            "{error}"
        );
    }
}
