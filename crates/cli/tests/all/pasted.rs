//! Tests of inputs that people paste: tables, traces of several devices, outputs of tools.

use crate::common::{Folder, project, refused, success};
use serde_json::Value;

const STACK: &str = "seed = 1\n[workload]\nkind = \"trace\"\npath = \"x\"\n[volume]\nlayout = \"jbod\"\n\
    drive = \"wd-red-plus-4tb\"\ndrives = 1\n";

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(&[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn devices_of_a_trace_lie_side_by_side_in_each_command() {
    let folder = Folder::new();
    let (stack, trace) = (folder.name("s.toml"), folder.name("two.csv"));
    std::fs::write(&stack, STACK).unwrap();
    std::fs::write(
        &trace,
        "1,R,0,4096,1000\n2,W,0,4096,1000100\n1,R,4096,4096,2000100\n2,W,4096,4096,3000100\n",
    )
    .unwrap();
    let note = "2 devices of the trace lie side by side: device 1 from sector 0 on";
    let text = success(&["run", &stack, "--trace", &trace]);
    assert!(text.contains(note), "{text}");
    let text = success(&[
        "compare",
        &stack,
        "--vary",
        "volume.drive=wd-red-plus-4tb,seagate-ironwolf-8tb",
        "--trace",
        &trace,
    ]);
    assert!(text.contains(note), "{text}");
    let one = success(&["run", &stack, "--trace", &trace, "--device", "2"]);
    assert!(!one.contains("side by side"), "{one}");
    // Each device reaches to 3 TB; the drive has 4 TB.
    std::fs::write(
        &trace,
        "1,R,3000000000000,4096,1000\n2,W,3000000000000,4096,1000100\n",
    )
    .unwrap();
    let error = refused(&["run", &stack, "--trace", &trace]);
    assert!(
        error.contains("--device") && error.contains("device 2 from sector"),
        "{error}"
    );
}

#[test]
fn columns_and_footprint_are_options_and_keys() {
    let folder = Folder::new();
    let (stack, trace) = (folder.name("s.toml"), folder.name("odd.csv"));
    std::fs::write(&stack, STACK).unwrap();
    let rows: String = (0..200)
        .map(|row| format!("{row},in,{},8\n", row * 1000))
        .collect();
    std::fs::write(&trace, format!("when,dir,where,amount\n{rows}")).unwrap();
    let map = [
        "--trace",
        trace.as_str(),
        "--columns",
        "time=when:ms,op=read,offset=where:sectors,size=amount:sectors",
    ];
    let run = |more: &[&str]| {
        let arguments = [&["run", stack.as_str()], &map[..], more].concat();
        json(&arguments)
    };
    let (near, far) = (run(&[]), run(&["--footprint", "spread:1MiB"]));
    let notes = near["trace_notes"].to_string();
    assert!(
        notes.contains("% of the volume") && notes.contains("--footprint"),
        "{notes}"
    );
    assert!(!far["trace_notes"].to_string().contains("% of the volume"));
    assert!(
        far["response_ms"]["mean"].as_f64() > near["response_ms"]["mean"].as_f64(),
        "{near} {far}"
    );
    let error = refused(&[&["run", stack.as_str()], &map[..2]].concat());
    assert!(
        error.contains("`where`") && error.contains("--columns"),
        "{error}"
    );
    let error = refused(&[&["run", stack.as_str()], &map[..], &["--footprint", "half"]].concat());
    assert!(
        error.contains("footprint") && error.contains("60%"),
        "{error}"
    );
}

#[test]
fn like_makes_a_stack_of_a_summary_and_of_a_pool() {
    let folder = Folder::new();
    let (text, stack) = (folder.name("io.txt"), folder.name("like.toml"));
    let report = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\n\
        sda             20.00    920.00     0.00   0.00    7.00    46.00   30.00   1620.00     9.00  18.00   14.00    54.00    0.70  40.00\n";
    std::fs::write(&text, report).unwrap();
    let like = success(&["like", &text, "--drive", "seagate-ironwolf-8tb"]);
    std::fs::write(&stack, &like).unwrap();
    let run = json(&[
        "run",
        &stack,
        "--set",
        "workloads[0].duration=20s",
        "--set",
        "workloads[1].duration=20s",
    ]);
    let rate = run["requests"].as_f64().unwrap() / 20.0;
    assert!((45.0..55.0).contains(&rate), "{rate}");
    let error = refused(&["trace", "info", &text]);
    assert!(error.contains("fullstroke like"), "{error}");
    std::fs::write(&text, "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME        STATE     READ WRITE CKSUM\n\ttank        ONLINE       0     0     0\n\t  raidz1-0  ONLINE       0     0     0\n\t    sda     ONLINE       0     0     0\n\t    sdb     ONLINE       0     0     0\n\t    sdc     ONLINE       0     0     0\n").unwrap();
    let like = success(&["like", &text]);
    assert!(
        like.contains("layout = \"raidz1\"") && like.contains("drives = 3"),
        "{like}"
    );
    let array = "/dev/md0:\n        Raid Level : raid5\n        Array Size : 11720656896 (10.92 TiB 12.00 TB)\n     \
        Used Dev Size : 3906885632 (3.64 TiB 4.00 TB)\n      Raid Devices : 4\n             State : clean\n            \
        Layout : left-symmetric\n        Chunk Size : 512K\n";
    std::fs::write(&text, array).unwrap();
    // A shingled drive of this size is in the library too.
    let like = success(&["like", &text]);
    assert!(like.contains("drive = \"wd-red-plus-4tb\""), "{like}");
}

#[test]
fn a_report_of_smartctl_names_the_nearest_drive() {
    let folder = Folder::new();
    let text = folder.name("smart.txt");
    std::fs::write(
        &text,
        "smartctl 7.2 2020-12-30 r5155\nDevice Model:     WDC WD80EFAX-68KNBN0\n\
         User Capacity:    8,001,563,222,016 bytes [8.00 TB]\nRotation Rate:    5400 rpm\n",
    )
    .unwrap();
    let like = success(&["like", &text]);
    assert!(like.contains("drive = \"wd-red-plus-8tb\""), "{like}");
    let error = refused(&["trace", "info", &text]);
    assert!(
        error.contains("fit --smart") && error.contains("fullstroke like"),
        "{error}"
    );
}

#[test]
fn an_answer_that_a_command_does_not_have_names_the_command_that_has() {
    let stack = project().join("stacks/demo/raid5.toml");
    let stack = stack.to_str().unwrap();
    let error = refused(&["run", stack, "--seeds", "5"]);
    let instead = format!("fullstroke compare {stack} --seeds 5");
    assert!(error.contains(&instead), "{error}");
    let error = refused(&[
        "tune",
        stack,
        "--set",
        "volume.rebuild=0",
        "--vary",
        "volume.speed_limit_max=20MiB,100MiB",
        "--requests",
        "400",
        "--batches",
        "4",
        "--first",
        "2",
        "--by",
        "rebuild.hours",
    ]);
    assert!(error.contains("fullstroke compare --vary"), "{error}");
}

#[test]
fn an_advice_names_the_rates_of_buffers() {
    let folder = Folder::new();
    // Each drive takes 150 MiB into a buffer of 512 MB.
    folder.put(
        "load.toml",
        "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 40000\nread_share = 0.0\nsize = \"1MiB\"\n\
         addresses = { pattern = \"sequential\" }\narrivals = { process = \"closed\", outstanding = 16 }\n\
         [volume]\nlayout = \"raid0\"\ndrive = \"seagate-exos-x24-24tb\"\ndrives = 2\n",
    );
    let wish = folder.put(
        "wish.toml",
        "stack = \"load.toml\"\n[drives]\nmodel = \"seagate-exos-x24-24tb\"\ncount = 2\n[wishes]\nfailures = 0\n\
         [choices]\nlayouts = [\"raid0\"]\nchunks = [\"1MiB\"]\nelevators = [\"mq-deadline\"]\nwrite_caches = [true]\n",
    );
    let short = success(&["advise", &wish, "--requests", "300"]);
    assert!(
        short.contains("its medium moves at most 285 MB/s"),
        "{short}"
    );
    let notes = json(&["advise", &wish, "--requests", "300"]);
    let notes = notes["finalists"][0]["media_notes"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(notes, 1);
    let long = success(&["advise", &wish]);
    assert!(!long.contains("its medium moves at most"), "{long}");
}

#[test]
fn rates_of_memory_and_of_buffers_are_named() {
    let stack = project().join("stacks/slow/shingled.toml");
    let stack = stack.to_str().unwrap();
    // 1,500 writes of 128 KiB fit into the buffer of the drive.
    let text = success(&["run", stack, "--requests", "1500"]);
    assert!(text.contains("its medium moves at most 180 MB/s"), "{text}");
    let long = success(&["run", stack, "--requests", "15000"]);
    assert!(!long.contains("its medium moves at most"), "{long}");
    // A pool takes the first writes into memory.
    let pool = ["--set", "volume.layout=raidz1", "--set", "volume.drives=4"];
    let text = success(&[&["run", stack, "--requests", "500"][..], &pool].concat());
    assert!(
        text.contains("The load wrote 65.5 MB, and the drives 0.0 MB"),
        "{text}"
    );
}

#[test]
fn a_key_that_varies_twice_is_refused() {
    let stack = project().join("stacks/demo/raid5.toml");
    let stack = stack.to_str().unwrap();
    for command in ["compare", "tune"] {
        let error = refused(&[
            command,
            stack,
            "--vary",
            "volume.chunk=64KiB",
            "--vary",
            "volume.chunk=128KiB",
        ]);
        assert!(
            error.contains("another --vary has the key `volume.chunk`"),
            "{error}"
        );
    }
}
