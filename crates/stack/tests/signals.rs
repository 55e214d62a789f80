//! Storage that asks hosts for dirty pages.

use fullstroke_contract::Counters;
use fullstroke_engine::{Finished, Observer};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Duration;
use std::fs;

const HOSTS: &str = r#"
[[hosts]]
name = "reader"
size = "5GB"
memory = { size = "64MiB", write_back = "2.6.17" }
workload = { kind = "processes", duration = "90s", processes = [{ think_time = "40ms", region_size = "5GB" }] }
[[hosts]]
name = "writer"
size = "5GB"
memory = { size = "64MiB", write_back = "2.6.17" }
workload = { kind = "processes", duration = "90s", processes = [{ read_share = 0, think_time = "15ms", region_size = "5GB" }] }
[volume]
layout = "jbod"
drive = "maxtor-atlas-10k-v-73gb-c0k"
"#;

/// The longest that the reader waited.
#[derive(Default)]
struct Longest(Duration);

impl Observer for Longest {
    fn finished(&mut self, finished: &Finished) {
        if finished.workload == 0 {
            self.0 = self.0.max(finished.completion.finished.since(finished.arrived));
        }
    }
}

fn load(text: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, text).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

/// The reader's longest wait in ms, and what was counted.
fn run(text: &str) -> (f64, Counters) {
    let mut longest = Longest::default();
    let end = load(text).unwrap().build().unwrap().engine().run(&mut longest).unwrap();
    (longest.0.as_millis_f64(), end.counters)
}

fn reading(counters: &Counters, name: &str) -> f64 {
    let layers = counters.layers.iter().flat_map(|layer| &layer.readings);
    layers.filter(|reading| reading.name == name).map(|reading| reading.value).sum()
}

#[test]
fn a_disk_that_pulls_when_it_is_idle_leaves_periodic_write_back_little_and_readers_alone() {
    let (regular, counters) = run(HOSTS);
    assert_eq!(reading(&counters, "memory_written_pulled_mb"), 0.0);
    let periodic = reading(&counters, "memory_written_periodic_mb");
    assert!(periodic > 10.0, "{periodic} MB");
    for kind in ["idle-flush", "idle-flush-on"] {
        let table = format!("[[opportunities]]\nkind = \"{kind}\"\nwait = \"20ms\"\n");
        let every = if kind == "idle-flush" { "every = \"40ms\"\n" } else { "" };
        let (longest, counters) = run(&format!("{HOSTS}{table}{every}"));
        assert!(longest < regular / 4.0, "{kind}: {longest} ms, and {regular} without");
        let left = reading(&counters, "memory_written_periodic_mb");
        assert!(left < periodic / 4.0, "{kind}: {left} MB, and {periodic} without");
        let (asked, pulled) =
            (reading(&counters, "signals_pulled_mb"), reading(&counters, "memory_written_pulled_mb"));
        assert!(pulled > 10.0 && pulled <= asked, "{kind}: {pulled} of {asked} MB");
    }
}

#[test]
fn what_cannot_be_says_why() {
    let refused = |text: &str| load(text).err().unwrap();
    let with = |table: &str| format!("{HOSTS}[[opportunities]]\n{table}\n");
    assert!(refused(&with("")).contains("opportunities[0].kind"));
    assert!(refused(&with("kind = \"idle-flsh\"")).contains("did you mean `idle-flush`?"));
    assert!(refused(&with("kind = \"idle-flush\"\nflush = \"100B\"")).contains("opportunities[0].flush"));
    assert!(refused(&format!("opportunities = 3\n{HOSTS}")).contains("[[opportunities]]"));
    let no_memory = "[workload]\nkind = \"synthetic\"\nrequests = 9\narrivals = { process = \"closed\" }\n[[opportunities]]\nkind = \"idle-flush\"\n\
                     [volume]\nlayout = \"jbod\"\ndrive = \"seagate-cheetah-9lp\"\n";
    assert!(refused(no_memory).contains("nobody has anything dirty to ask for"));
}

#[test]
fn a_stack_that_is_served_has_nobody_to_ask() {
    let text = "[[opportunities]]\nkind = \"idle-flush\"\n[volume]\nlayout = \"jbod\"\ndrive = \"seagate-cheetah-9lp\"\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, text).unwrap();
    let error = Stack::load_for_clients(&path, &Overrides::default()).err().unwrap();
    assert!(error.to_string().contains("clients of a stack that is served do not hear it"), "{error}");
}
