//! Compares the format of the results with fio itself, if fio is installed.

use fullstroke_fio::{FioSource, JobSet};
use fullstroke_units::{Duration, Sectors, Seed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

#[path = "../src/testing.rs"]
mod testing;

const JOB: &str =
    "[global]\nioengine=null\nsize=1m\n[a]\nrw=randrw\niodepth=4\n[b]\nstonewall\nrw=read\n";

/// Returns the simulated results. Each request takes a millisecond.
fn simulated(text: &str) -> Value {
    let set = JobSet::parse("a.fio", text, &BTreeMap::new()).unwrap();
    let mut source = FioSource::new(&set, Sectors(1 << 21), Seed(1), None).unwrap();
    testing::run(&mut source, |_| {});
    source
        .results()
        .report(Vec::new(), Duration::from_secs(1))
        .json("0")
}

/// Collects the paths of all values, such as `jobs.read.clat_ns.min`.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(name, value)| paths(value, &format!("{path}.{name}"), found));
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, path, found)),
        _ => {
            found.insert(path.to_owned());
        }
    }
}

fn all_paths(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths(value, "", &mut found);
    found
}

#[test]
fn results_have_every_field_that_fio_prints() {
    let folder = std::env::temp_dir().join(format!("fullstroke-fio-shape-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("job.fio");
    std::fs::write(&file, JOB).unwrap();
    let output = Command::new("fio")
        .arg("--output-format=json")
        .arg(&file)
        .current_dir(&folder)
        .output();
    std::fs::remove_dir_all(&folder).unwrap();
    let Ok(output) = output else {
        println!("skipped: fio is not installed");
        return;
    };
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours = all_paths(&simulated(JOB));
    let missing: Vec<String> = all_paths(&theirs).difference(&ours).cloned().collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn results_have_the_fields_that_scripts_read() {
    let ours = simulated(JOB);
    assert_eq!(ours["fio version"], "fullstroke-0");
    assert_eq!(ours["global options"]["size"], "1m");
    let jobs = ours["jobs"].as_array().unwrap();
    let (first, second) = (&jobs[0], &jobs[1]);
    assert_eq!(
        (&first["jobname"], &first["groupid"], &first["error"]),
        (&"a".into(), &0.into(), &0.into())
    );
    assert_eq!(
        (&second["groupid"], &second["job options"]["rw"]),
        (&1.into(), &"read".into())
    );
    let reads = first["read"]["total_ios"].as_u64().unwrap();
    let writes = first["write"]["total_ios"].as_u64().unwrap();
    assert_eq!(reads + writes, 256);
    let read = &second["read"];
    assert_eq!(
        (&read["io_bytes"], &read["io_kbytes"]),
        (&1_048_576.into(), &1024.into())
    );
    // 256 I/Os of a millisecond, one at a time.
    assert_eq!(
        (&read["runtime"], &read["iops"], &read["bw_bytes"]),
        (&256.into(), &1000.0.into(), &4_096_000.into())
    );
    assert_eq!(
        (&read["bw"], &read["clat_ns"]["N"]),
        (&4000.into(), &256.into())
    );
    for key in ["min", "max", "mean"] {
        assert_eq!(read["clat_ns"][key].as_f64(), Some(1e6), "{key}");
        assert_eq!(read["lat_ns"][key].as_f64(), Some(1e6), "{key}");
        assert_eq!(read["slat_ns"][key].as_f64(), Some(0.0), "{key}");
    }
    let median = read["clat_ns"]["percentile"]["50.000000"].as_u64().unwrap();
    assert!((999_000..=1_001_000).contains(&median), "{median}");
    assert_eq!(second["latency_ms"]["2"], 100.0);
    assert_eq!(second["trim"]["total_ios"], 0);
}

#[test]
fn a_group_is_one_result() {
    let text = "[global]\nsize=1m\ngroup_reporting\n[a]\nnumjobs=2\n[b]\n[c]\nnew_group\n";
    let ours = simulated(text);
    let jobs = ours["jobs"].as_array().unwrap();
    let told: Vec<(&str, u64)> = jobs
        .iter()
        .map(|job| {
            (
                job["jobname"].as_str().unwrap(),
                job["read"]["total_ios"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("a", 768), ("c", 256)]);
}
