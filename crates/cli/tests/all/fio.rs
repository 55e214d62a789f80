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
fn a_job_of_trims_alone_shows_no_response_times() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let job = folder.put(
        "trim.fio",
        "[trims]\nfilename=/dev/sdz\ndirect=1\nbs=1m\nsize=1g\nrw=randtrim\nnumber_ios=50\n",
    );
    let text = success(&["run", &stack, "--fio", &job]);
    assert!(text.contains("No read or write was measured"), "{text}");
    assert!(text.contains("discards"), "{text}");
    for part in ["NaN", "inf", "where the time went", "MB/s over", "layer  "] {
        assert!(!text.contains(part), "{part}: {text}");
    }
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
    let job = folder.put("job.fio", "[a]\nrw=randread\nzonemode=zbd\n");
    let error = refused(&["run", &stack, "--fio", &job]);
    assert!(
        error.contains("job.fio:3") && error.contains("`zonemode`"),
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

const FILES: &str =
    "[host.files]\nkind = \"xfs\"\nsize = \"4GiB\"\n[host.memory]\nsize = \"64MiB\"\n";

/// The results of the first job in fio's form, and standard error.
fn fio_json(arguments: &[&str]) -> (Value, String) {
    let mut all = arguments.to_vec();
    all.push("--output-format=fio-json");
    let output = fullstroke(&all);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {notes}");
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    (whole["jobs"][0].clone(), notes)
}

#[test]
fn a_command_line_of_fio_runs_as_its_job_file_does() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let words = [
        "--name=x",
        "--rw=randread",
        "--bs=8k",
        "--iodepth=4",
        "--ioengine=libaio",
        "--number_ios=50",
        "--filename=/dev/sdz",
    ];
    let job = folder.put(
        "job.fio",
        "[x]\nrw=randread\nbs=8k\niodepth=4\nioengine=libaio\nnumber_ios=50\nfilename=/dev/sdz\n",
    );
    let pasted = folder.put(
        "pasted.txt",
        &format!(
            "$ sudo fio {} \\\n  {}\n",
            words[..3].join(" "),
            words[3..].join(" ")
        ),
    );
    let mut behind = vec!["run", &stack, "--json", "--fio", "--"];
    behind.extend(words);
    let digest = |arguments: &[&str]| {
        let output = fullstroke(arguments);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        (
            report["requests"].clone(),
            report["config_digest"].clone(),
            report["response_ms"].clone(),
        )
    };
    let expected = digest(&["run", &stack, "--json", "--fio", &job]);
    assert_eq!(expected.0, 50);
    assert_eq!(digest(&behind), expected);
    assert_eq!(
        digest(&["run", &stack, "--json", "--fio", &pasted]),
        expected
    );
    // A job file behind --fio, with further arguments.
    let more = digest(&["run", &stack, "--json", "--fio", &job, "--", "--section=x"]);
    assert_eq!(more, expected);
    let error = refused(&["run", &stack, "--fio", "--", "--name=x", "--bss=4k"]);
    assert!(
        error.contains("`bss`") && error.contains("did you mean"),
        "{error}"
    );
    let error = refused(&["run", &stack, "--fio"]);
    assert!(error.contains("behind --"), "{error}");
}

#[test]
fn standard_input_is_a_job_file_or_a_command_line() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    for text in [
        "[x]\nrw=read\nsize=1m\nbs=64k\n",
        "fio --name=x --rw=read --size=1m --bs=64k",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
            .args(["run", &stack, "--fio", "-", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["requests"], 16, "{text}");
    }
}

#[test]
fn included_files_stand_beside_the_job_file() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    folder.put("other.fio", "bs=$pagesize*2\n");
    let job = folder.put("job.fio", "[x]\nrw=read\nsize=64k\ninclude other.fio\n");
    let (job_result, _) = fio_json(&["run", &stack, "--fio", &job]);
    assert_eq!(job_result["read"]["total_ios"], 8);
    folder.put("other.fio", "\nbss=4k\n");
    let error = refused(&["run", &stack, "--fio", &job]);
    assert!(
        error.contains("other.fio:2") && error.contains("`bss`"),
        "{error}"
    );
}

#[test]
fn each_file_of_a_job_has_its_own_place_on_the_volume() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let job = "[j]\nrw=read\nbs=1m\nsize=64m\ndirect=1\nnumjobs=4\ngroup_reporting\nruntime=4\ntime_based\n";
    let own = folder.put("own.fio", &format!("{job}directory=/data\n"));
    let shared = folder.put("shared.fio", &format!("{job}filename=/dev/sdb\n"));
    let own_text = success(&["run", &stack, "--fio", &own]);
    assert!(
        own_text.contains(
            "[j]: 4 files, /data/j.0.0 to /data/j.3.0, lie one behind another from 0 to 0.25 of"
        ),
        "{own_text}"
    );
    assert!(!own_text.contains("read the same"), "{own_text}");
    let shared_text = success(&["run", &stack, "--fio", &shared]);
    assert!(
        !shared_text.contains("lie one behind another"),
        "{shared_text}"
    );
    let error = refused(&[
        "run",
        &stack,
        "--fio",
        "--",
        "--name=a",
        "--size=30g",
        "--numjobs=2",
        "--rw=read",
    ]);
    assert!(
        error.contains("`size`") && error.contains("a.1.0"),
        "{error}"
    );
}

#[test]
fn a_small_region_that_is_read_again_is_said_to_come_from_buffers() {
    let folder = Folder::new();
    let stack = folder.put(
        "stack.toml",
        "[volume]\nlayout = \"jbod\"\ndrive = \"wd-red-plus-4tb\"\n",
    );
    let job = folder.put(
        "job.fio",
        "[j]\nfilename=/dev/sda\nrw=read\nbs=64k\nsize=1m\nruntime=2\ntime_based\n",
    );
    let text = success(&["run", &stack, "--fio", &job]);
    assert!(text.contains("The jobs read the same 0.001 GiB"), "{text}");
}

#[test]
fn direct_io_on_files_has_its_queue_depth() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", &format!("{STACK}{FILES}"));
    let job = |more: &str| {
        folder.put(
            "job.fio",
            &format!("[j]\ndirectory=d\nrw=randread\nbs=4k\nsize=256m\nnumber_ios=300\n{more}"),
        )
    };
    let iops = |more: &str| {
        let (result, notes) = fio_json(&["run", &stack, "--fio", &job(more)]);
        assert_eq!(result["read"]["total_ios"], 300, "{more}");
        (result["read"]["iops"].as_f64().unwrap(), notes)
    };
    let (one, _) = iops("ioengine=psync\ndirect=1\n");
    let (deep, _) = iops("ioengine=libaio\niodepth=16\ndirect=1\n");
    let (ring, _) = iops("ioengine=io_uring\niodepth=16\ndirect=1\n");
    assert!(deep > 1.5 * one, "{deep} {one}");
    assert!((ring / deep - 1.0).abs() < 0.1, "{ring} {deep}");
    let (buffered, notes) = iops("ioengine=libaio\niodepth=16\n");
    assert!(buffered < 0.7 * deep, "{buffered} {deep}");
    assert!(notes.contains("iodepth=16 is 1 in effect"), "{notes}");
}

#[test]
fn verify_reads_back_on_a_volume_and_on_files() {
    let folder = Folder::new();
    let volume = folder.put("volume.toml", STACK);
    let files = folder.put("files.toml", &format!("{STACK}{FILES}"));
    let job = folder.put(
        "job.fio",
        "[j]\ndirectory=d\nrw=randwrite\nbs=4k\nsize=1m\nverify=crc32c\ndirect=1\nfilename_format=$jobname/$filenum\n",
    );
    for stack in [&volume, &files] {
        let (result, _) = fio_json(&["run", stack, "--fio", &job]);
        let ios = |direction: &str| result[direction]["total_ios"].as_u64().unwrap();
        assert_eq!((ios("write"), ios("read")), (256, 256), "{stack}");
    }
}
