//! Random calls on every file system with little memory, above a device with random order of
//! completions and random PULL signals. Every call must end. No request may lie beyond the device.
//! After a sync nothing may be dirty.

mod common;

use common::CompletedRequest;
use fullstroke_contract::{Counters, Extent, Operation, Request, RequestStatus, Signal};
use fullstroke_programs::{Call, Fd, InitialFile, OpenFlags, Program, ProgramAction, ProgramTurn};
use fullstroke_units::{Bytes, Duration, Lbn, Random, Sectors, Seed};
use proptest::prelude::*;
use serde_json::json;

/// A program with random calls; the last call is a sync.
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

    fn laid_out(&self) -> Vec<InitialFile> {
        vec![
            InitialFile {
                path: "d0/f1".into(),
                bytes: Some(Bytes(300_000)),
                unwritten: false,
            },
            InitialFile {
                path: "d1".into(),
                bytes: None,
                unwritten: false,
            },
        ]
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        if let Some(answer) = turn.answer {
            assert!(answer.ended <= turn.now && answer.began < answer.ended);
            self.answers += 1;
        }
        if self.left == 0 {
            if self.synced || turn.process > 0 {
                self.ended += 1;
                return ProgramAction::End;
            }
            // The other processes end first.
            if self.ended + 1 < self.processes {
                return ProgramAction::Wait;
            }
            self.synced = true;
            return ProgramAction::Call(Call::Sync);
        }
        self.left -= 1;
        let random = &mut self.random;
        let name = |random: &mut Random| format!("d{}/f{}", random.below(3), random.below(6));
        self.path = name(random);
        self.other = name(random);
        let fd = Fd(random.below(4) as u32);
        let at = random.chance(0.5).then(|| random.below(400_000));
        let bytes = random.below(100_000);
        ProgramAction::Call(match random.below(20) {
            0..=3 => {
                let how = OpenFlags {
                    write: random.chance(0.7),
                    create: random.chance(0.8),
                    truncate: random.chance(0.2),
                    append: random.chance(0.2),
                    direct: random.chance(0.1),
                    durable: random.chance(0.1),
                    exclusive: random.chance(0.05),
                    data_only: random.chance(0.5),
                };
                Call::Open {
                    path: &self.path,
                    fd,
                    how,
                }
            }
            4 => Call::Close { fd },
            5..=7 => Call::Read { fd, at, bytes },
            8..=11 => Call::Write { fd, at, bytes },
            12 => Call::Fsync { fd },
            13 => Call::Truncate {
                path: &self.path,
                bytes,
            },
            14 => Call::MakeDirectory {
                path: self.path.split('/').next().unwrap_or_default(),
            },
            15 => Call::Remove { path: &self.path },
            16 => Call::Rename {
                from: &self.path,
                to: &self.other,
            },
            17 => Call::List { path: "d0" },
            18 => Call::Resize { fd, bytes },
            _ if random.chance(0.2) => Call::Sync,
            _ => Call::Stat { path: &self.path },
        })
    }
}

/// Runs random calls. Returns the counters and the requests.
fn run(
    kind: &str,
    pages: u64,
    calls: u32,
    processes: u32,
    seed: u64,
    losses: bool,
) -> (Counters, Vec<CompletedRequest>) {
    let random = Seed(seed).stream("calls");
    let (path, other) = (String::new(), String::new());
    let program = Chance {
        random,
        left: calls,
        processes,
        ended: 0,
        path,
        other,
        answers: 0,
        synced: false,
    };
    let vfs = common::host(json!({ "kind": kind }), pages, seed, Box::new(program));
    let mut device = Seed(seed).stream("device");
    let serve = |request: &Request| {
        assert!(request.operation == Operation::Flush || request.extent.sectors > Sectors::ZERO);
        let status = if losses && device.chance(0.05) {
            RequestStatus::Lost
        } else {
            RequestStatus::Done
        };
        (Duration::from_micros(1 + device.below(20_000)), status)
    };
    let mut chance = Seed(seed).stream("pulls");
    common::run(vfs, serve, || {
        let sectors = Sectors(1 + chance.below(4000));
        let start = Lbn(chance.below(common::CAPACITY.0 - sectors.0));
        let extent = chance.chance(0.5).then_some(Extent { start, sectors });
        chance
            .chance(0.1)
            .then_some(Signal::Pull { extent, sectors })
    })
}

fn calls_made(counters: &Counters) -> u64 {
    counters.hosts[0]
        .operations
        .iter()
        .map(|operation| operation.calls)
        .sum()
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
        // A journal releases its held pages only after the log has been written.
        if kind == "ext2" {
            prop_assert_eq!(dirty.value, 0.0);
        }
        let (again, requests_again) = run(kind, pages, calls, processes, seed, losses);
        prop_assert_eq!(requests, requests_again);
        prop_assert_eq!(counters.hosts, again.hosts);
    }
}
