//! Random calls on every file system with little memory, above a device that answers
//! in any order: every call ends, nothing is asked beyond the device, and after a sync
//! nothing is dirty.

use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Completion, Counters, Cx, Node, Operation, Out, Port, Request, Status};
use fullstroke_files::Site;
use fullstroke_memory::{Cache, MemoryKeys, Queue};
use fullstroke_programs::{Call, Fd, How, Laid, Next, Program, Turn};
use fullstroke_units::{Bytes, Duration, Random, SECTOR_BYTES, Sectors, Seed, Time};
use fullstroke_vfs::{Equipment, FilesConfig, Started, Vfs};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

const CAPACITY: Sectors = Sectors((128 << 20) / SECTOR_BYTES);

/// Makes calls by chance; the last is a sync.
struct Chance {
    random: Random,
    left: u32,
    processes: u32,
    ended: u32,
    path: String,
    other: String,
    answers: u32,
    synced: bool,
}

impl Program for Chance {
    fn processes(&self) -> u32 {
        self.processes
    }

    fn laid_out(&self) -> Vec<Laid> {
        vec![
            Laid { path: "d0/f1".into(), bytes: Some(Bytes(300_000)) },
            Laid { path: "d1".into(), bytes: None },
        ]
    }

    fn next(&mut self, turn: Turn<'_>) -> Next<'_> {
        if let Some(answer) = turn.answer {
            assert!(answer.ended <= turn.now && answer.began < answer.ended);
            self.answers += 1;
        }
        if self.left == 0 {
            if self.synced || turn.process > 0 {
                self.ended += 1;
                return Next::End;
            }
            // The others first.
            if self.ended + 1 < self.processes {
                return Next::Wait;
            }
            self.synced = true;
            return Next::Call(Call::Sync);
        }
        self.left -= 1;
        let random = &mut self.random;
        let name = |random: &mut Random| format!("d{}/f{}", random.below(3), random.below(6));
        self.path = name(random);
        self.other = name(random);
        let fd = Fd(random.below(4) as u32);
        let at = random.chance(0.5).then(|| random.below(400_000));
        let bytes = random.below(100_000);
        Next::Call(match random.below(20) {
            0..=3 => {
                let how = How {
                    write: random.chance(0.7),
                    create: random.chance(0.8),
                    truncate: random.chance(0.2),
                    append: random.chance(0.2),
                    direct: random.chance(0.1),
                    durable: random.chance(0.1),
                    exclusive: random.chance(0.05),
                };
                Call::Open { path: &self.path, fd, how }
            }
            4 => Call::Close { fd },
            5..=7 => Call::Read { fd, at, bytes },
            8..=11 => Call::Write { fd, at, bytes },
            12 => Call::Fsync { fd },
            13 => Call::Truncate { path: &self.path, bytes },
            14 => Call::MakeDirectory { path: self.path.split('/').next().unwrap_or_default() },
            15 => Call::Remove { path: &self.path },
            16 => Call::Rename { from: &self.path, to: &self.other },
            17 => Call::List { path: "d0" },
            18 => Call::Resize { fd, bytes },
            _ if random.chance(0.2) => Call::Sync,
            _ => Call::Stat { path: &self.path },
        })
    }
}

/// Runs the node above a device; answers what it counted, and what it wrote.
fn run(
    kind: &str,
    pages: u64,
    calls: u32,
    processes: u32,
    seed: u64,
    losses: bool,
) -> (Counters, Vec<Request>) {
    let keys: Keys = json!({ "kind": kind }).as_object().cloned().unwrap();
    let files = FilesConfig::read(&keys).unwrap();
    let cache = Cache::new(&MemoryKeys::of(Bytes(pages * 4096)), Queue::default()).unwrap();
    let random = Seed(seed).stream("calls");
    let (path, other) = (String::new(), String::new());
    let program = Chance { random, left: calls, processes, ended: 0, path, other, answers: 0, synced: false };
    let started = Started {
        name: "chance".into(),
        file: None,
        program: Box::new(program),
        start: Duration::from_millis(3),
        background: false,
        workload: 0,
        first_process: 0,
    };
    let site = Site { capacity: CAPACITY, seed: Seed(seed), stripe: None };
    let equipment = Equipment { files: &files, cache, site, counted_from: Time::ZERO };
    let mut vfs = Vfs::new(vec![started], equipment).unwrap();
    let mut device = Seed(seed).stream("device");
    let (mut now, mut out) = (Time::ZERO, Out::new());
    let mut flying: BTreeMap<(Time, u64), (Time, Request)> = BTreeMap::new();
    let (mut all, mut events) = (Vec::new(), 0_u64);
    loop {
        events += 1;
        assert!(events < 2_000_000, "it goes on for ever");
        let wake = vfs.next_wake();
        let landing = flying.keys().next().map_or(Time::NEVER, |&(at, _)| at);
        if landing == Time::NEVER && !wake.is_work() {
            break;
        }
        now = now.max(wake.at().min(landing));
        if landing <= wake.at() {
            let ((_, _), (submitted, request)) = flying.pop_first().unwrap();
            let status = if losses && device.chance(0.05) { Status::Lost } else { Status::Done };
            let completion =
                Completion { id: request.id, submitted, finished: now, status, ..Completion::default() };
            vfs.completed(now, Port::FIRST, completion, &mut Cx::alone(&mut out));
        } else {
            vfs.wake(now, &mut Cx::alone(&mut out));
        }
        if let Some(error) = out.take_stop() {
            panic!("{error}");
        }
        for request in out.requests() {
            assert!(request.extent.within(CAPACITY), "{request:?}");
            assert!(request.operation == Operation::Flush || request.extent.sectors > Sectors::ZERO);
            let at = now + Duration::from_micros(1 + device.below(20_000));
            flying.insert((at, request.id.0), (now, request));
            all.push(request);
        }
    }
    let mut counters = Counters::default();
    vfs.count(now, &mut counters);
    (counters, all)
}

fn calls_made(counters: &Counters) -> u64 {
    counters.hosts[0].operations.iter().map(|operation| operation.calls).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_call_ends_on_every_file_system(
        kind in prop::sample::select(vec!["raw", "ext2", "ext4", "xfs"]),
        pages in 64_u64..600,
        calls in 1_u32..400,
        processes in 1_u32..5,
        seed in any::<u64>(),
        losses in any::<bool>(),
    ) {
        if kind == "raw" {
            return Ok(());
        }
        let (counters, requests) = run(kind, pages, calls, processes, seed, losses);
        prop_assert_eq!(calls_made(&counters), u64::from(calls) + 1);
        let dirty = counters.layers[0].readings.iter().find(|reading| reading.name == "memory_dirty_mb").unwrap();
        // A journal releases what it held back when it has written it.
        if kind == "ext2" {
            prop_assert_eq!(dirty.value, 0.0);
        }
        let (again, requests_again) = run(kind, pages, calls, processes, seed, losses);
        prop_assert_eq!(requests, requests_again);
        prop_assert_eq!(counters.hosts, again.hosts);
    }
}
