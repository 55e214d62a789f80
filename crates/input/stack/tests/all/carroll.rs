//! The stacks of `studies/carroll-2008`, shortened: they build and run, and all sums match.

use fullstroke_contract::Operation;
use fullstroke_engine::{Finished, Observer};
use fullstroke_stack::{Overrides, Stack};
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies/carroll-2008/stacks");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// Adds up finished requests and checks each sum.
#[derive(Default)]
struct Books {
    reads: u64,
    writes: u64,
    processes: u32,
}

impl Observer for Books {
    fn finished(&mut self, finished: &Finished) {
        let span = finished.completion.finished.since(finished.arrived);
        assert_eq!(
            finished.completion.breakdown.response(),
            span,
            "{finished:?}"
        );
        assert!(finished.process > 0);
        self.processes = self.processes.max(finished.process);
        match finished.operation {
            Operation::Read => self.reads += 1,
            _ => self.writes += 1,
        }
    }
}

#[test]
fn every_stack_runs_and_the_parts_add_up() {
    assert!(!files().is_empty());
    for file in files() {
        let overrides = Overrides {
            set: vec!["workload.duration=1s".into()],
            ..Overrides::default()
        };
        let stack = Stack::load(&file, &overrides).unwrap_or_else(|error| panic!("{error}"));
        let run = stack.build().unwrap();
        let mut books = Books::default();
        let outcome = run.engine().run(&mut books).unwrap();
        assert_eq!(outcome.completed, outcome.requests, "{}", file.display());
        assert_eq!(books.reads + books.writes, outcome.requests);
        assert_eq!(
            books.processes as usize,
            stack.process_names().len(),
            "{}",
            file.display()
        );
    }
}

#[test]
fn the_write_back_buffer_shortens_writes_and_the_battery_makes_it_safe() {
    let mixed = files()
        .into_iter()
        .find(|file| file.ends_with("mixed.toml"))
        .unwrap();
    let mean_write_ms = |set: &[&str]| {
        let set = set
            .iter()
            .chain(&["workload.duration=1s"])
            .map(|&key| key.to_owned())
            .collect();
        let stack = Stack::load(
            &mixed,
            &Overrides {
                set,
                ..Overrides::default()
            },
        )
        .unwrap();
        let run = stack.build().unwrap();
        let mut writes = WriteSums::default();
        run.engine().run(&mut writes).unwrap();
        writes.sum_ms / writes.count
    };
    let (with, without) = (
        mean_write_ms(&[]),
        mean_write_ms(&["controller.battery=false"]),
    );
    assert!(with < 0.5 * without, "{with} {without}");
}

#[derive(Default)]
struct WriteSums {
    count: f64,
    sum_ms: f64,
}

impl Observer for WriteSums {
    fn finished(&mut self, finished: &Finished) {
        if finished.operation == Operation::Write {
            self.count += 1.0;
            self.sum_ms += finished
                .completion
                .finished
                .since(finished.arrived)
                .as_millis_f64();
        }
    }
}
