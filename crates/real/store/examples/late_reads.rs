//! Prints the times of reads of an array with a slow member under each policy against slow members,
//! and the processor time of the policies.
//!
//! - The first table: a RAID 5 of five members that sleep for each read, one of them longer. Eight
//!   threads read 4 KiB at random places. Times of reads in ms.
//! - The second table: a RAID 5 of four files in the given folder, or else in the system's folder for
//!   temporary files, no member slow. The table shows the cost of reads that run on threads of the
//!   members instead of io_uring.

use fullstroke_store::{
    Allowances, Array, Design, Device, FileDevice, JournalPolicy, LatePolicy, MemoryDevice,
    OpenPurpose, RequestScratch, Timed, assemble_with, create,
};
use fullstroke_units::Seed;
use serde_json::{Value, json};
use std::error::Error;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
const THREADS: u64 = 8;
/// Time limit of the members, as `array assemble` has it.
const LIMIT: Duration = Duration::from_secs(120);
/// Size of a member.
const MEMBER_BYTES: u64 = 64 << 20;

/// A member in memory whose reads take a random time.
struct SleepingDevice {
    memory: MemoryDevice,
    slot: usize,
    factor: f64,
    random: Mutex<fullstroke_units::Random>,
}

impl Device for SleepingDevice {
    fn name(&self) -> String {
        format!("member {}", self.slot)
    }
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
    fn is_zero(&self) -> bool {
        true
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let share = self.random.lock().unwrap().unit();
        // A seek and half a turn of a disk of 7,200 revolutions a minute, more or less.
        let millis = (4.0 + 9.0 * share) * self.factor;
        std::thread::sleep(Duration::from_secs_f64(millis / 1e3));
        self.memory.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.memory.write(at, from)
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(std::path::PathBuf::from);
    let base = given.unwrap_or_else(std::env::temp_dir);
    on_sleeping_members()?;
    on_files(&base)
}

/// Prints the table of members that sleep.
fn on_sleeping_members() -> Result<(), Box<dyn Error>> {
    let policies = [
        json!({ "policy": "wait" }),
        json!({ "policy": "read-around" }),
        json!({ "policy": "read-around", "percentile": 0.7 }),
        json!({ "policy": "read-around", "after": "20ms" }),
        json!({ "policy": "sit-out", "checks": 2 }),
    ];
    println!(
        "RAID 5 of five sleeping members, {THREADS} threads, reads of 4 KiB at random, ms\n\n\
         {:<12} {:<45} {:>6} {:>6} {:>6} {:>6} {:>9} {:>9}",
        "member 2", "policy", "mean", "p50", "p99", "p99.9", "around", "first"
    );
    for factor in [1.0, 2.0, 10.0] {
        for keys in &policies {
            let members = (0..5).map(|slot| -> Arc<dyn Device> {
                Arc::new(SleepingDevice {
                    memory: MemoryDevice::new(MEMBER_BYTES),
                    slot,
                    factor: if slot == 2 { factor } else { 1.0 },
                    random: Mutex::new(Seed(slot as u64).stream("sleep")),
                })
            });
            let array = assembled(members.collect(), keys)?;
            // The policy learns from these reads.
            times(&array, 250, 1);
            let before = counts(&array);
            let mut times = times(&array, 500, 2);
            times.sort_unstable();
            let at =
                |share: f64| times[(share * (times.len() - 1) as f64) as usize].as_secs_f64() * 1e3;
            let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64;
            let [around, first] = counts(&array);
            println!(
                "{:<12} {:<45} {:>6.1} {:>6.1} {:>6.1} {:>6.1} {:>9} {:>9}",
                format!("{factor}x"),
                keys.to_string(),
                mean,
                at(0.5),
                at(0.99),
                at(0.999),
                around - before[0],
                first - before[1]
            );
        }
    }
    Ok(())
}

/// Prints the table of files.
fn on_files(base: &Path) -> Result<(), Box<dyn Error>> {
    // No read takes a second, so each read runs on a thread and none goes around a member.
    let policies = [
        json!({ "policy": "wait" }),
        json!({ "policy": "read-around", "after": "1s" }),
    ];
    println!(
        "\nRAID 5 of four files, {THREADS} threads, reads at random, thousands a second, three runs in turn\n"
    );
    for length in [BLOCK, 1 << 20] {
        for run in 0..3 {
            for keys in &policies {
                let folder = tempfile::tempdir_in(base)?;
                let array = assembled(files(folder.path())?, keys)?;
                let count = if length == BLOCK { 20_000 } else { 300 };
                let began = Instant::now();
                let cpu = processor_time();
                std::thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let array = &array;
                        scope.spawn(move || read_at_random(array, count, length, thread));
                    }
                });
                let reads = count as f64 * THREADS as f64;
                println!(
                    "{:>8} bytes, run {run}, {:<45} {:>8.1}  processor {:>6.1} µs a read",
                    length,
                    keys.to_string(),
                    reads / began.elapsed().as_secs_f64() / 1e3,
                    (processor_time() - cpu).as_secs_f64() * 1e6 / reads
                );
            }
        }
    }
    Ok(())
}

fn assembled(members: Vec<Arc<dyn Device>>, keys: &Value) -> Result<Array, Box<dyn Error>> {
    let design = Design {
        name: "late".into(),
        layout: "raid5".into(),
        keys: serde_json::Map::new(),
        journal: JournalPolicy::Partial,
        spares: 0,
        force: false,
        sparse: true,
        member_bytes: None,
        region_bytes: None,
        measured: Vec::new(),
    };
    create(&design, &members)?;
    let members = members.into_iter();
    let members: Vec<_> = members
        .map(|member| Timed::limited(member, LIMIT))
        .collect();
    let keys = keys.as_object().cloned().unwrap_or_default();
    let allowances = Allowances {
        late: Some(LatePolicy::new(keys)?),
        ..Allowances::default()
    };
    Ok(assemble_with(&members, &allowances)?.0)
}

fn files(folder: &Path) -> Result<Vec<Arc<dyn Device>>, Box<dyn Error>> {
    let mut members = Vec::new();
    for slot in 0..4 {
        let path = folder.join(format!("member{slot}"));
        std::fs::write(&path, vec![0; MEMBER_BYTES as usize])?;
        members.push(FileDevice::open(&path, OpenPurpose::Own)?.shared()?);
    }
    Ok(members)
}

/// Returns the times of reads by all threads.
fn times(array: &Array, count: u64, seed: u64) -> Vec<Duration> {
    std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            scope.spawn(move || read_at_random(array, count, BLOCK, seed * THREADS + thread))
        });
        let threads: Vec<_> = threads.collect();
        let all = threads.into_iter().map(|thread| thread.join());
        all.flatten().flatten().collect()
    })
}

fn read_at_random(array: &Array, count: u64, length: usize, seed: u64) -> Vec<Duration> {
    let mut random = Seed(seed).stream("places");
    let (mut worker, mut bytes) = (RequestScratch::new(), vec![0; length]);
    let blocks = (array.capacity().bytes().0 - length as u64) / BLOCK as u64;
    let read = |_| {
        let at = (random.unit() * blocks as f64) as u64 * BLOCK as u64;
        let began = Instant::now();
        if let Err(error) = array.read(&mut worker, at, &mut bytes) {
            eprintln!("{error}");
        }
        began.elapsed()
    };
    (0..count).map(read).collect()
}

/// Returns the number of reads around members, and how many came first.
fn counts(array: &Array) -> [u64; 2] {
    let late = array.status().late;
    late.map_or([0; 2], |late| [late.late_io, late.late_read_around])
}

/// Returns the processor time of this process, which the kernel counts in steps of 10 ms.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold spaces; user and system time are the 12th and 13th numbers
    // behind the name (proc_pid_stat(5)).
    let behind = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind.split_whitespace().skip(11).take(2);
    let ticks = ticks.filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}
