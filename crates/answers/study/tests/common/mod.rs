//! A folder with a study.

#![allow(dead_code)] // Not every test binary uses each.

use fullstroke_study::{Study, find};
use std::fs;
use tempfile::TempDir;

pub const STACK: &str = r#"title = "a test"

[workload]
kind = "synthetic"
requests = 100
size = "4KiB"
arrivals = { process = "poisson", rate_per_s = 100 }

[volume]
layout = "raid0"
drive = "seagate-cheetah-9lp"
drives = 2
"#;

pub const STUDY: &str = r#"title = "a test"
question = "?"
source = "A test (2020)"
stack = "stack.toml"
replications = 2
metrics = ["response_ms.mean", "mb_per_s"]

[[axes]]
name = "policy"
key = "volume.drive_settings.queue.discipline"
values = ["fcfs", "satf", "look"]

[[axes]]
name = "load"
key = "workload.arrivals.rate_per_s"
values = [10, 20, 40]

[[sets]]
name = "sorted"
axis = "policy"
values = ["satf", "look"]
"#;

/// Creates a folder of studies with the study `a-2020/study`.
pub fn study(text: &str) -> (TempDir, Result<Study, String>) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a-2020")).unwrap();
    fs::write(folder.path().join("a-2020/stack.toml"), STACK).unwrap();
    fs::write(folder.path().join("a-2020/study.toml"), text).unwrap();
    let found = find(folder.path(), &["a-2020/study".to_owned()]);
    (
        folder,
        found
            .map(|mut found| found.remove(0))
            .map_err(|error| error.to_string()),
    )
}
