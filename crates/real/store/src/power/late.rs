//! Members answer late, and reads go around them.
//!
//! Each member has a gate that a test closes: reads then wait until the test opens the gate. So a
//! read is late for as long as the test wants, and no test depends on the speed of the host.

use super::{Simulated, SplitMix, content, design, dynamic, fill, kinds, simulated, some_bytes};
use crate::array::Sabotage;
use crate::assembly::assemble_sabotaged;
use crate::{
    Allowances, Array, ArrayError, Device, JournalPolicy, LatePolicy, RedundancyCheck, Repair,
    RequestScratch, Timed, assemble, create,
};
use fullstroke_units::Lbn;
use fullstroke_volume::Role;
use serde_json::{Value, json};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const SECTOR: u64 = 512;
const CHUNK: u64 = 4096;
/// Time limit of a member: longer than a test.
const AMPLE: Duration = Duration::from_secs(600);

/// Gate of a member.
#[derive(Default)]
struct Gate {
    closed: Mutex<Closed>,
    changed: Condvar,
    /// Reads and writes that wait for the gate.
    waiting: AtomicUsize,
    reads: AtomicU64,
    /// Time of a read, in ms.
    read_ms: AtomicU64,
}

#[derive(Default)]
struct Closed {
    reads: bool,
    /// First byte of the writes that wait.
    writes_from: Option<u64>,
}

impl Gate {
    fn close_reads(&self) {
        self.closed.lock().unwrap().reads = true;
    }
    fn close_writes(&self, from: u64) {
        self.closed.lock().unwrap().writes_from = Some(from);
    }
    fn open(&self) {
        *self.closed.lock().unwrap() = Closed::default();
        self.changed.notify_all();
    }
    fn pass(&self, is_closed: impl Fn(&Closed) -> bool) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let closed = self.closed.lock().unwrap();
        drop(self.changed.wait_while(closed, |closed| is_closed(closed)));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
    fn wait_for_company(&self) {
        while self.waiting.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    }
}

/// A device behind a gate.
struct Gated(Arc<Simulated>, Arc<Gate>);

impl Device for Gated {
    fn name(&self) -> String {
        self.0.name()
    }
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.1.reads.fetch_add(1, Ordering::SeqCst);
        self.1.pass(|closed| closed.reads);
        std::thread::sleep(Duration::from_millis(self.1.read_ms.load(Ordering::SeqCst)));
        self.0.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.1
            .pass(|closed| closed.writes_from.is_some_and(|first| at >= first));
        self.0.write(at, from)
    }
    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// An array with a policy, its gates, and its devices below the gates.
struct LateArray {
    array: Array,
    gates: Vec<Arc<Gate>>,
    devices: Vec<Arc<Simulated>>,
    /// The devices with gates and time limits.
    members: Vec<Arc<dyn Device>>,
}

fn policy(keys: Value) -> Result<LatePolicy, ArrayError> {
    LatePolicy::new(keys.as_object().unwrap().clone())
}

/// Every read that is not answered within a millisecond is late.
fn around() -> LatePolicy {
    policy(json!({ "policy": "read-around", "after": "1ms" })).unwrap()
}

fn assembled(
    layout: &str,
    count: usize,
    late: LatePolicy,
    limit: Duration,
    sabotage: Sabotage,
) -> Result<LateArray, ArrayError> {
    let (devices, _) = simulated(count, 1300 << 10);
    create(
        &design(layout, CHUNK, JournalPolicy::Partial),
        &dynamic(&devices),
    )?;
    let gates: Vec<Arc<Gate>> = devices.iter().map(|_| Arc::default()).collect();
    let members = devices.iter().zip(&gates).map(|(device, gate)| {
        let gated = Gated(Arc::clone(device), Arc::clone(gate));
        Timed::limited(Arc::new(gated), limit)
    });
    let members: Vec<Arc<dyn Device>> = members.collect();
    let allowances = Allowances {
        late: Some(late),
        ..Allowances::default()
    };
    let (array, _) = assemble_sabotaged(&members, &allowances, sabotage)?;
    Ok(LateArray {
        array,
        gates,
        devices,
        members,
    })
}

fn filled(layout: &str, count: usize, sabotage: Sabotage) -> (LateArray, Vec<u8>) {
    let late = assembled(layout, count, around(), AMPLE, sabotage).unwrap();
    let bytes = some_bytes(late.array.capacity().bytes().0, 3);
    let mut worker = RequestScratch::one_by_one();
    late.array.write(&mut worker, 0, &bytes).unwrap();
    late.array.flush().unwrap();
    (late, bytes)
}

impl LateArray {
    fn wait_for_late_answers(&self) {
        let is_behind =
            || (self.array.status().slots.iter()).any(|slot| slot.reads_left_behind > 0);
        while is_behind() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn counts(&self) -> [u64; 3] {
        let late = self.array.status().late.unwrap();
        [late.late_io, late.late_read_around, late.late_member_io]
    }
}

#[test]
fn late_members_are_read_around_and_their_late_answers_change_nothing() {
    let cases: [(&str, usize, &[usize]); 8] = [
        ("raid1", 2, &[0]),
        ("raid1", 3, &[0, 2]),
        ("raid4", 4, &[1]),
        ("raid5", 3, &[0]),
        ("raid5", 4, &[3]),
        ("raid6", 5, &[1, 2]),
        ("raid6", 4, &[0, 3]),
        ("raid10", 4, &[0, 3]),
    ];
    for (layout, count, closed) in cases {
        let (late, bytes) = filled(layout, count, Sabotage::Nothing);
        let (array, mut worker) = (&late.array, RequestScratch::one_by_one());
        closed
            .iter()
            .for_each(|&slot| late.gates[slot].close_reads());
        let mut random = SplitMix(7);
        let mut kept = Vec::new();
        for _ in 0..40 {
            let first = random.below(bytes.len() as u64 / SECTOR) * SECTOR;
            let length = (1 + random.below(40)) * SECTOR;
            let range = first as usize..bytes.len().min((first + length) as usize);
            let mut read = vec![0; range.len()];
            array.read(&mut worker, first, &mut read).unwrap();
            assert!(read == bytes[range.clone()], "{layout}, {range:?}");
            read.fill(0xEE);
            kept.push(read);
        }
        assert!(content(array, &mut worker) == bytes, "{layout}");
        let [late_io, first, member_ios] = late.counts();
        assert!(late_io >= first && first > 0 && member_ios >= first);
        let status = array.status();
        // A mirror may ask one of the closed members less often than the other.
        let late_io = |slot: &usize| status.slots[*slot].late_io.unwrap();
        let late_io = closed.iter().map(late_io).sum::<u64>();
        assert!(late_io > 0, "{layout} of {count}");
        assert!(status.slots.iter().all(|slot| slot.state == "alive"));
        late.gates.iter().for_each(|gate| gate.open());
        late.wait_for_late_answers();
        for read in kept {
            assert!(read.iter().all(|&byte| byte == 0xEE), "{layout}");
        }
        assert!(content(array, &mut worker) == bytes, "{layout}");
        array.stop().unwrap();
    }
}

#[test]
fn writes_read_around_a_late_member_too() {
    for (layout, count) in [("raid5", 4), ("raid6", 5)] {
        let (late, mut bytes) = filled(layout, count, Sabotage::Nothing);
        let (array, mut worker) = (&late.array, RequestScratch::one_by_one());
        // Sector 0 is data of this member, and its old data are read for the new parity.
        let slot = (0..count)
            .find(|&slot| {
                let role = array.planner().layout().role_of(slot, Lbn(0));
                matches!(role, Role::Data(Lbn(0)))
            })
            .unwrap();
        late.gates[slot].close_reads();
        let new = some_bytes(SECTOR, 9);
        array.write(&mut worker, 0, &new).unwrap();
        bytes[..SECTOR as usize].copy_from_slice(&new);
        assert!(content(array, &mut worker) == bytes, "{layout}");
        late.gates[slot].open();
        late.wait_for_late_answers();
        assert!(content(array, &mut worker) == bytes, "{layout}");
        let mut check = RedundancyCheck::default();
        let mut next = Some(Lbn(0));
        while let Some(from) = next {
            next = array
                .scrub_step(&mut worker, from, Repair::Nothing, &mut check)
                .unwrap();
        }
        assert_eq!(check.mismatched_sectors, 0, "{layout}");
    }
}

#[test]
fn two_late_members_of_a_raid5_are_waited_for() {
    let (late, bytes) = filled("raid5", 4, Sabotage::Nothing);
    let ended = AtomicBool::new(false);
    for slot in [1, 2] {
        late.gates[slot].close_reads();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let read = content(&late.array, &mut RequestScratch::one_by_one());
            assert!(read == bytes);
            ended.store(true, Ordering::SeqCst);
        });
        late.gates[1].wait_for_company();
        late.gates[2].wait_for_company();
        // Both reads become late meanwhile.
        std::thread::sleep(Duration::from_millis(20));
        assert!(!ended.load(Ordering::SeqCst));
        late.gates[1].open();
        late.gates[2].open();
    });
}

#[test]
fn a_member_that_stalls_gets_no_more_reads_and_reads_again_after_its_answers() {
    let (late, bytes) = filled("raid5", 3, Sabotage::Nothing);
    let (array, mut worker) = (&late.array, RequestScratch::one_by_one());
    late.gates[1].close_reads();
    let before = late.gates[1].reads.load(Ordering::SeqCst);
    for first in 0..bytes.len() as u64 / SECTOR {
        let at = first * SECTOR;
        let mut read = [0; SECTOR as usize];
        array.read(&mut worker, at, &mut read).unwrap();
        assert!(read == bytes[at as usize..][..SECTOR as usize]);
    }
    let most = crate::late::LEFT_BEHIND_MAX;
    assert_eq!(array.status().slots[1].reads_left_behind, most);
    let sent = late.gates[1].reads.load(Ordering::SeqCst) - before;
    assert_eq!(sent, most as u64);
    late.gates[1].open();
    late.wait_for_late_answers();
    assert!(content(array, &mut worker) == bytes);
    assert!(late.gates[1].reads.load(Ordering::SeqCst) > before + sent);
}

#[test]
fn an_array_that_is_only_read_reads_around_a_late_member_too() {
    let (late, bytes) = filled("raid5", 4, Sabotage::Nothing);
    late.array.stop().unwrap();
    let allowances = Allowances {
        late: Some(around()),
        read_only: true,
        ..Allowances::default()
    };
    let (array, _) = assemble_sabotaged(&late.members, &allowances, Sabotage::Nothing).unwrap();
    late.gates[1].close_reads();
    assert!(content(&array, &mut RequestScratch::one_by_one()) == bytes);
    let status = array.status();
    assert!(status.slots[1].late_io > Some(0) && status.slots[1].reads_left_behind > 0);
    std::thread::scope(|scope| {
        scope.spawn(|| array.wait_for_late_reads(AMPLE));
        late.gates[1].open();
    });
    assert_eq!(array.status().slots[1].reads_left_behind, 0);
}

/// Lets a reader read around a member while a writer of the same row has written its data and not
/// yet its parity. Returns true if the reader got the right bytes.
fn read_during_a_write(sabotage: Sabotage) -> bool {
    let (late, bytes) = filled("raid5", 4, sabotage);
    let array = &late.array;
    let role = |slot: usize| array.planner().layout().role_of(slot, Lbn(0));
    let find = |wanted: &dyn Fn(Role) -> bool| (0..4).find(|&slot| wanted(role(slot))).unwrap();
    let parity = find(&|role| matches!(role, Role::Parity { .. }));
    let read_from = find(&|role| matches!(role, Role::Data(lbn) if lbn.0 > 0));
    let written = find(&|role| matches!(role, Role::Data(Lbn(0))));
    let Role::Data(lbn) = role(read_from) else {
        panic!("data was found")
    };
    let data_at = array.facts.data_at;
    let below = |slot: usize| {
        let mut sector = [0; SECTOR as usize];
        late.devices[slot].read(data_at, &mut sector).unwrap();
        sector
    };
    let old = below(written);
    late.gates[parity].close_writes(data_at);
    late.gates[read_from].close_reads();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let new = some_bytes(SECTOR, 9);
            array.write(&mut RequestScratch::one_by_one(), 0, &new)
        });
        // The old data of the row are read around the closed gate, too.
        late.gates[parity].wait_for_company();
        while below(written) == old {
            std::thread::yield_now();
        }
        let reader = scope.spawn(move || {
            let mut sector = [0; SECTOR as usize];
            let at = lbn.0 * SECTOR;
            array
                .read(&mut RequestScratch::one_by_one(), at, &mut sector)
                .unwrap();
            sector
        });
        if sabotage == Sabotage::Nothing {
            late.gates[read_from].wait_for_company();
            // The reader tries to get the row meanwhile.
            std::thread::sleep(Duration::from_millis(20));
            late.gates[parity].open();
        }
        let read = reader.join().unwrap();
        late.gates.iter().for_each(|gate| gate.open());
        writer.join().unwrap().unwrap();
        read == bytes[(lbn.0 * SECTOR) as usize..][..SECTOR as usize]
    })
}

#[test]
fn a_read_around_a_member_waits_for_the_writer_of_the_row() {
    assert!(read_during_a_write(Sabotage::Nothing));
}

#[test]
fn without_the_lock_of_the_row_a_read_around_a_member_returns_bytes_that_nobody_wrote() {
    assert!(!read_during_a_write(Sabotage::AroundUnlocked));
}

#[test]
fn a_sector_that_turns_out_unreadable_after_the_answer_is_written_again() {
    let (late, bytes) = filled("raid5", 4, Sabotage::Nothing);
    let (array, mut worker) = (&late.array, RequestScratch::one_by_one());
    let bad = array.facts.data_at / SECTOR + 3;
    late.devices[0].corrupt_sector(bad as usize);
    late.gates[0].close_reads();
    assert!(content(array, &mut worker) == bytes);
    late.gates[0].open();
    while !kinds(array).contains(&"mended") {
        array.tend_late_reads(&mut worker).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut sector = [0; SECTOR as usize];
    late.devices[0].read(bad * SECTOR, &mut sector).unwrap();
    assert_eq!(array.status().slots[0].state, "alive");
    assert!(content(array, &mut worker) == bytes);
}

#[test]
fn a_member_that_never_answers_fails_although_no_request_waits() {
    let limit = Duration::from_millis(300);
    let late = assembled("raid5", 3, around(), limit, Sabotage::Nothing).unwrap();
    let (array, mut worker) = (&late.array, RequestScratch::one_by_one());
    let bytes = some_bytes(array.capacity().bytes().0, 3);
    array.write(&mut worker, 0, &bytes).unwrap();
    late.gates[2].close_reads();
    assert!(content(array, &mut worker) == bytes);
    while array.status().slots[2].state != "failed" {
        array.tend_late_reads(&mut worker).unwrap();
        assert!(content(array, &mut worker) == bytes);
    }
    assert!(kinds(array).contains(&"failed"));
    late.gates[2].open();
}

/// Returns an array whose member 2 takes far longer than the others, and sits out.
fn with_a_member_that_sits_out() -> (LateArray, Vec<u8>) {
    let keys =
        json!({ "policy": "sit-out", "check": "50ms", "fence": 10, "checks": 2, "rest": "600s" });
    let mut worker = RequestScratch::one_by_one();
    loop {
        let late = policy(keys.clone()).unwrap();
        let late = assembled("raid5", 5, late, AMPLE, Sabotage::Nothing).unwrap();
        let bytes = some_bytes(late.array.capacity().bytes().0, 3);
        late.array.write(&mut worker, 0, &bytes).unwrap();
        for (slot, gate) in late.gates.iter().enumerate() {
            let read_ms = if slot == 2 { 150 } else { 2 };
            gate.read_ms.store(read_ms, Ordering::SeqCst);
        }
        let sitting = || {
            let slots = late.array.status().slots.into_iter().enumerate();
            let out = slots.filter_map(|(slot, status)| status.sits_out.then_some(slot));
            out.collect::<Vec<usize>>()
        };
        while sitting().is_empty() {
            assert!(content(&late.array, &mut worker) == bytes);
        }
        // The host may have delayed the reads of another member even longer.
        if sitting() == [2] {
            return (late, bytes);
        }
    }
}

#[test]
fn a_member_that_sits_out_gets_writes_and_no_reads() {
    let (late, mut bytes) = with_a_member_that_sits_out();
    let (array, mut worker) = (&late.array, RequestScratch::one_by_one());
    array.tend_late_reads(&mut worker).unwrap();
    assert!(kinds(array).contains(&"sits-out"));
    assert!(array.status().late.unwrap().late_sit_outs > 0);
    let before = late.gates[2].reads.load(Ordering::SeqCst);
    assert!(content(array, &mut worker) == bytes);
    let new = some_bytes(64 << 10, 5);
    array.write(&mut worker, 0, &new).unwrap();
    bytes[..64 << 10].copy_from_slice(&new);
    assert!(content(array, &mut worker) == bytes);
    assert_eq!(late.gates[2].reads.load(Ordering::SeqCst), before);
    array.stop().unwrap();
    let (array, _) = assemble(&dynamic(&late.devices), false).unwrap();
    assert!(content(&array, &mut worker) == bytes);
}

#[test]
fn arrays_that_cannot_have_a_policy_are_refused_untouched() {
    let all = |layout, count| assembled(layout, count, around(), AMPLE, Sabotage::Nothing);
    for (result, said) in [
        (all("raid0", 3), "raid0 has no second copy"),
        (all("paraid, 4 turn", 5), "between two gears"),
        (
            assembled(
                "raid5",
                3,
                policy(json!({ "policy": "sit-out" })).unwrap(),
                AMPLE,
                Sabotage::Nothing,
            ),
            "with 3 members",
        ),
        (
            assembled("raid5", 3, around(), Duration::ZERO, Sabotage::Nothing),
            "has no time limit",
        ),
    ] {
        let error = result.err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
    }
    for (keys, said) in [
        (json!({}), "policy"),
        (json!({ "policy": "around" }), "read-around"),
        (json!({ "policy": "read-around", "after": 0 }), "after"),
        (json!({ "policy": "wait", "after": "1s" }), "after"),
    ] {
        let error = policy(keys).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let fail = policy(json!({ "policy": "fail", "timeout": "8s" })).unwrap();
    assert_eq!(fail.fails_after(), Some(Duration::from_secs(8)));
    assert_eq!(around().fails_after(), None);
}

/// Threads that write and read beside each other, with a thread that opens and closes gates, fails
/// members, and fills them again.
struct Scene<'a> {
    late: &'a LateArray,
    model: Mutex<Vec<u8>>,
    writers: u64,
    acts: u64,
    running: AtomicU64,
    /// Number of members whose gates are closed at most times.
    closed: u64,
}

/// Length of a writer's run of sectors. Each row has runs of all writers.
const RUN: u64 = 5;

impl Scene<'_> {
    /// Writes and reads runs of a writer. A read must return the latest write.
    fn write_and_read(&self, writer: u64, random: &mut SplitMix) -> Result<(), String> {
        let array = &self.late.array;
        let mut worker = RequestScratch::one_by_one();
        let runs = array.capacity().0 / (RUN * self.writers);
        for _ in 0..self.acts {
            let few = if random.chance(85) { 4 } else { runs };
            let skipped = random.below(RUN);
            let first = (random.below(few) * self.writers + writer) * RUN + skipped;
            let at = first * SECTOR;
            let length = (1 + random.below(RUN - skipped)) * SECTOR;
            let range = at as usize..(at + length) as usize;
            let mut bytes = vec![0; range.len()];
            if random.chance(60) {
                array
                    .read(&mut worker, at, &mut bytes)
                    .map_err(|error| error.to_string())?;
                if bytes != self.model.lock().unwrap()[range.clone()] {
                    return Err(format!(
                        "writer {writer} reads something else than its last write at {range:?}"
                    ));
                }
                continue;
            }
            fill(&mut bytes, random.next());
            array
                .write(&mut worker, at, &bytes)
                .map_err(|error| error.to_string())?;
            self.model.lock().unwrap()[range].copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// Opens and closes gates until the writers have ended. Orders that wait for all requests need
    /// open gates.
    fn disturb(&self, random: &mut SplitMix) {
        let (late, mut worker) = (self.late, RequestScratch::one_by_one());
        let (array, gates) = (&late.array, &late.gates);
        while self.running.load(Ordering::SeqCst) > 0 {
            gates.iter().for_each(|gate| gate.open());
            if random.chance(10) {
                let slot = random.below(gates.len() as u64) as usize;
                // An array that does not survive the failure refuses.
                if array.fail(slot).is_ok() && random.chance(70) {
                    array.add(Arc::clone(&late.members[slot]), true).unwrap();
                }
            }
            if array.is_to_be_tended() && random.chance(50) {
                array.advance_maintenance(&mut worker).unwrap();
            }
            array.tend_late_reads(&mut worker).unwrap();
            // More gates than the array can read around are closed from time to time.
            let closed = self.closed + u64::from(random.chance(10));
            for _ in 0..closed {
                gates[random.below(gates.len() as u64) as usize].close_reads();
            }
            // A row may then have its data and not yet its parity, or the other way round.
            if random.chance(60) {
                let slot = random.below(gates.len() as u64) as usize;
                gates[slot].close_writes(array.facts.data_at);
            }
            std::thread::sleep(Duration::from_millis(2 + random.below(4)));
        }
        gates.iter().for_each(|gate| gate.open());
    }
}

/// Lets an array live under a seed. Returns the counts of reads around members.
fn live(
    (layout, count, closed): (&str, usize, u64),
    seed: u64,
    sabotage: Sabotage,
) -> Result<[u64; 3], String> {
    let (late, bytes) = filled(layout, count, sabotage);
    let writers = 3;
    let scene = Scene {
        late: &late,
        model: Mutex::new(bytes),
        writers,
        acts: 150,
        running: AtomicU64::new(writers),
        closed,
    };
    let mut random = SplitMix(seed);
    let seeds: Vec<u64> = (0..=writers).map(|_| random.next()).collect();
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads = (0..writers).map(|writer| {
            let (scene, mut random) = (&scene, SplitMix(seeds[writer as usize]));
            scope.spawn(move || {
                let ended = scene.write_and_read(writer, &mut random);
                scene.running.fetch_sub(1, Ordering::SeqCst);
                ended
            })
        });
        let threads: Vec<_> = threads.collect();
        scene.disturb(&mut SplitMix(seeds[writers as usize]));
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    late.wait_for_late_answers();
    let (array, mut worker) = (&late.array, RequestScratch::one_by_one());
    for slot in 0..count {
        if array.status().slots[slot].state == "failed" {
            array.add(Arc::clone(&late.members[slot]), true).unwrap();
        }
    }
    while array.advance_maintenance(&mut worker).unwrap() {}
    let model = scene.model.into_inner().unwrap();
    if content(array, &mut worker) != model {
        return Err("the array holds something else than was written".into());
    }
    let mut check = RedundancyCheck::default();
    let mut next = Some(Lbn(0));
    while let Some(from) = next {
        next = array
            .scrub_step(&mut worker, from, Repair::Nothing, &mut check)
            .unwrap();
    }
    match check.mismatched_sectors {
        0 => Ok(late.counts()),
        wrong => Err(format!("{wrong} sectors of redundancy do not agree")),
    }
}

#[test]
fn late_members_never_change_a_byte_that_is_read() {
    let lives = std::env::var("FULLSTROKE_LIVES").map_or(2, |lives| lives.parse().unwrap());
    for case in [
        ("raid1", 3, 2),
        ("raid4", 4, 1),
        ("raid5", 4, 1),
        ("raid6", 5, 2),
        ("raid10", 4, 1),
    ] {
        let mut sum = [0; 3];
        for seed in 0..lives {
            let counts = live(case, seed, Sabotage::Nothing)
                .unwrap_or_else(|error| panic!("{case:?}, seed {seed}: {error}"));
            sum.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        let ([late, first, member_ios], (layout, count, _)) = (sum, case);
        println!(
            "{layout} of {count}: {lives} lives, {late} reads around members, {first} of them first, {member_ios} member reads"
        );
        assert!(first > 0, "{layout}: no read went around a member");
    }
}

#[test]
fn without_the_lock_of_the_row_several_writers_find_wrong_bytes() {
    let found =
        (0..200).find(|&seed| live(("raid5", 4, 1), seed, Sabotage::AroundUnlocked).is_err());
    println!("found in the life of seed {found:?}");
    assert!(found.is_some());
}
