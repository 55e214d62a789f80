//! Stacks whose platters stop and start.

use fullstroke_contract::{Extent, Notice, Operation, Signal};
use fullstroke_engine::{Finished, Observer};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_trace::{OUTPUTS, TraceRecord, TraceWriter};
use fullstroke_units::Time;
use std::fs;
use std::path::Path;

/// Operations with their response times, and signals with their senders.
#[derive(Default)]
struct PowerTraffic {
    ms: Vec<(Operation, f64)>,
    told: Vec<(Vec<usize>, Signal)>,
}

impl Observer for PowerTraffic {
    fn finished(&mut self, finished: &Finished) {
        let response = finished.completion.finished.since(finished.arrived);
        self.ms.push((finished.operation, response.as_millis_f64()));
    }
    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        self.told.push((path.to_vec(), notice.signal));
    }
}

/// Writes a trace with one operation per minute. Reads and writes have 8 sectors.
fn write_trace(path: &Path, operations: &[Operation]) {
    let native = OUTPUTS
        .iter()
        .find(|output| output.name == "native")
        .unwrap();
    let mut writer = TraceWriter::create(native, path).unwrap();
    for (minute, &operation) in (0u64..).zip(operations) {
        let sectors = if operation.is_of_all() { 0 } else { 8 };
        let arrival = Time::from_nanos(minute * 60_000_000_000);
        let extent = Extent::new(minute * 1_000_000, sectors);
        let extent = if operation.is_of_all() {
            Extent::default()
        } else {
            extent
        };
        let record = TraceRecord {
            arrival,
            operation,
            extent,
            device: 0,
            process: 0,
            issued: None,
            completed: None,
        };
        assert!(writer.write(&record).unwrap());
    }
    writer.finish().unwrap();
}

fn run(operations: &[Operation]) -> PowerTraffic {
    let folder = tempfile::tempdir().unwrap();
    let library =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../drives/seagate-cheetah-9lp.toml");
    let drive = fs::read_to_string(library).unwrap();
    let power = "[power]\nspin_up_ms = 15000.0\nspin_down_ms = 4000.0\n";
    let drive = drive.replacen("[seek]", &format!("{power}\n[seek]"), 1);
    let drive = drive.replacen("[sources]", "[sources]\npower = \"assumed\"", 1);
    fs::write(folder.path().join("drive.toml"), drive).unwrap();
    write_trace(&folder.path().join("trace.parquet"), operations);
    let stack = "[workload]\nkind = \"trace\"\npath = \"trace.parquet\"\n\
                 [volume]\nlayout = \"raid1\"\ndrive = \"drive.toml\"\ndrives = 2\n";
    fs::write(folder.path().join("stack.toml"), stack).unwrap();
    let stack = Stack::load(&folder.path().join("stack.toml"), &Overrides::default()).unwrap();
    let run = stack.build().unwrap();
    let mut seen = PowerTraffic::default();
    run.engine().run(&mut seen).unwrap();
    seen
}

#[test]
fn a_trace_that_stops_the_drives_pays_for_starting_the_ones_that_it_needs() {
    use Operation::{Read, Standby, Start, Write};
    let seen = run(&[Read, Standby, Read, Standby, Write, Standby, Start, Read]);
    let seconds: Vec<(Operation, f64)> = seen
        .ms
        .iter()
        .map(|&(operation, ms)| (operation, (ms / 1000.0).floor()))
        .collect();
    let expected = [
        (Read, 0.0),
        (Standby, 4.0),
        (Read, 15.0),
        (Standby, 4.0),
        (Write, 15.0),
        (Standby, 4.0),
        (Start, 15.0),
        (Read, 0.0),
    ];
    assert_eq!(seconds, expected);
    let of = |drive: usize| {
        let told = seen
            .told
            .iter()
            .filter(|(path, _)| path == &[drive])
            .map(|(_, signal)| *signal);
        told.collect::<Vec<_>>()
    };
    // The first read after a stop needs one copy; the write needs both copies.
    let (woken, left) = if of(0).len() > of(1).len() {
        (0, 1)
    } else {
        (1, 0)
    };
    let round = [Signal::SpunDown, Signal::SpunUp];
    assert_eq!(of(woken), [round, round, round].concat());
    assert_eq!(of(left), [round, round].concat());
}
