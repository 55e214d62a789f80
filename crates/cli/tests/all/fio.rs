//! Tests of fio job files.

use crate::common::{Folder, fullstroke, refused};
use serde_json::Value;
use std::path::{Path, PathBuf};

const STACK: &str =
    "seed = 7\n[volume]\nlayout = \"raid5\"\ndrive = \"seagate-cheetah-9lp\"\ndrives = 5\n";
const JOB: &str = "[global]\nfilename=/dev/sdz\ndirect=1\nioengine=libaio\nbs=4k\nsize=1g\n\
    [reads]\nrw=randread\niodepth=8\nnumber_ios=400\n[writes]\nstonewall\nrw=randwrite\nnumber_ios=200\n";

fn success(arguments: &[&str]) -> String {
    let output = fullstroke(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_job_file_runs_on_a_stack_and_is_reported_by_job() {
    let folder = Folder::new();
    let (stack, job) = (folder.put("stack.toml", STACK), folder.put("job.fio", JOB));
    let text = success(&["run", &stack, "--fio", &job]);
    for part in [
        "600 requests, 600 completed",
        "where the time went",
        "reads",
        "writes",
        "filename",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report: Value =
        serde_json::from_str(&success(&["run", &stack, "--fio", &job, "--json"])).unwrap();
    assert_eq!(
        (&report["requests"], &report["reads"]["requests"]),
        (&600.into(), &400.into())
    );
}

#[test]
fn results_come_in_the_shape_of_fio_and_repeat() {
    let folder = Folder::new();
    let (stack, job) = (folder.put("stack.toml", STACK), folder.put("job.fio", JOB));
    let arguments = ["run", &stack, "--fio", &job, "--output-format=fio-json"];
    let text = success(&arguments);
    assert_eq!(text, success(&arguments));
    let whole: Value = serde_json::from_str(&text).unwrap();
    let reads = &whole["jobs"][0]["read"];
    assert_eq!(
        (&reads["total_ios"], &whole["jobs"][1]["write"]["total_ios"]),
        (&400.into(), &200.into())
    );
    assert!(
        reads["clat_ns"]["percentile"]["99.000000"].as_u64() >= reads["clat_ns"]["min"].as_u64()
    );
    // Nearly all the time 8 requests are in flight.
    assert!(whole["jobs"][0]["iodepth_level"]["8"].as_f64().unwrap() > 95.0);
    assert_eq!(whole["disk_util"].as_array().unwrap().len(), 5);
    let notes = String::from_utf8(fullstroke(&arguments).stderr).unwrap();
    assert!(notes.contains("filename"), "{notes}");
}

#[test]
fn jobs_on_files_are_told_in_the_shape_of_fio_too() {
    let folder = Folder::new();
    let files = "[host.files]\nkind = \"ext4\"\nsize = \"1GiB\"\n[host.memory]\nsize = \"64MiB\"\n";
    let stack = folder.put("stack.toml", &format!("{STACK}{files}"));
    let job = folder.put(
        "files.fio",
        "[global]\ndirectory=d\nbs=8k\nsize=4m\nthread\nfallocate=none\n[reads]\nrw=randread\nnrfiles=4\n\
         [log]\nrw=write\nfsync=4\n",
    );
    let output = fullstroke(&["run", &stack, "--fio", &job, "--output-format=fio-json"]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(
        notes.contains("thread") && !notes.contains("fallocate") && !notes.contains("directory"),
        "{notes}"
    );
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [reads, log] = &whole["jobs"].as_array().unwrap()[..] else {
        panic!("{whole}")
    };
    assert_eq!(
        (&reads["read"]["total_ios"], &reads["read"]["io_bytes"]),
        (&512.into(), &(4 << 20).into())
    );
    // fio flushes before the next write, so no flush follows the last four writes.
    assert_eq!(
        (&log["write"]["total_ios"], &log["sync"]["total_ios"]),
        (&512.into(), &127.into())
    );
    // Reads use the disks, writes stay in memory, and an fsync waits.
    let mean = |value: &Value| value["clat_ns"]["mean"].as_f64().unwrap();
    assert!(mean(&reads["read"]) > 100.0 * mean(&log["write"]));
    assert!(log["sync"]["lat_ns"]["mean"].as_f64() > Some(1e6));
    assert_eq!(
        (&reads["job options"]["nrfiles"], &reads["jobname"]),
        (&"4".into(), &"reads".into())
    );
    assert!(whole["disk_util"][0]["write_ios"].as_u64().unwrap() > 0);
    // The text report shows the jobs only once.
    let text = success(&["run", &stack, "--fio", &job]);
    assert_eq!(text.matches("KiB/s").count(), 1, "{text}");
}

#[test]
fn a_stack_can_name_its_job_file() {
    let folder = Folder::new();
    let stack = format!("{STACK}[workload]\nkind = \"fio\"\npath = \"job.fio\"\n");
    let (stack, _) = (folder.put("stack.toml", &stack), folder.put("job.fio", JOB));
    let digest = || {
        let report: Value =
            serde_json::from_str(&success(&["run", &stack, "--json", "--requests", "50"])).unwrap();
        assert_eq!(report["requests"], 50);
        report["config_digest"].as_str().unwrap().to_owned()
    };
    let before = digest();
    folder.put("job.fio", &format!("; a comment\n{JOB}"));
    assert_eq!(digest(), before);
    folder.put("job.fio", &JOB.replace("4k", "8k"));
    assert_ne!(digest(), before);
}

#[test]
fn candidates_are_compared_under_one_job_file() {
    let folder = Folder::new();
    let (stack, job) = (folder.put("stack.toml", STACK), folder.put("job.fio", JOB));
    let text = success(&[
        "compare",
        &stack,
        "--fio",
        &job,
        "--vary",
        "volume.chunk=16KiB,64KiB",
    ]);
    assert!(
        text.contains("volume.chunk=16KiB") && text.contains("to the best"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_run_names_the_file_and_the_line() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let job = folder.put("job.fio", "[a]\nrw=randread\nverify=md5\n");
    let error = refused(&["run", &stack, "--fio", &job]);
    assert!(
        error.contains("job.fio:3") && error.contains("`verify`"),
        "{error}"
    );
    let job = folder.put("large.fio", "[a]\nsize=100t\n");
    let error = refused(&["run", &stack, "--fio", &job]);
    assert!(
        error.contains("large.fio:1") && error.contains("`size`"),
        "{error}"
    );
    let error = refused(&[
        "run",
        &stack,
        "--fio",
        &folder.0.path().join("none.fio").to_string_lossy(),
    ]);
    assert!(error.contains("cannot be read"), "{error}");
    let with_load = format!(
        "{STACK}[workload]\nkind = \"synthetic\"\nrequests = 10\narrivals = {{ process = \"closed\" }}\n"
    );
    let error = refused(&[
        "run",
        &folder.put("load.toml", &with_load),
        "--output-format=fio-json",
    ]);
    assert!(error.contains("--fio FILE"), "{error}");
}

#[test]
fn the_sample_jobs_run() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let jobs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/jobs");
    for name in [
        "random-4k-qd1",
        "random-4k-qd32",
        "sequential-256k",
        "mix-70-30",
    ] {
        let job: &Path = &jobs.join(format!("{name}.fio"));
        let text = success(&[
            "run",
            &stack,
            "--fio",
            &job.to_string_lossy(),
            "--output-format=fio-json",
        ]);
        let whole: Value = serde_json::from_str(&text).unwrap();
        let read = &whole["jobs"][0]["read"];
        assert!(read["total_ios"].as_u64().unwrap() > 100, "{name}");
    }
}
