//! Tests of arrays, replays and streams on faulty block devices: errors of the kernel (EIO,
//! ENOSPC), vanishing devices, and power loss during transfers of io_uring.

use crate::array::{MemberFiles, ServedArray, lines_when, pattern, strings};
use crate::common::{fullstroke, refused, success};
use crate::faulty::{Faults, FaultyDisk, PowerSupply, SplitMix};
use crate::server::text;
use fullstroke_nbd::client::ExportClient;
use fullstroke_nbd::{CommandFlags, ErrorCode};
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SECTOR: usize = 512;
const DISK_MIB: usize = 4;

/// Creates faulty disks and an array on them.
fn array_of(
    count: usize,
    power: &Arc<PowerSupply>,
    options: &[&str],
) -> Option<(Vec<FaultyDisk>, MemberFiles)> {
    let disks = FaultyDisk::several(count, DISK_MIB, power)?;
    let place = MemberFiles::over(disks.iter().map(FaultyDisk::device).collect());
    let all: Vec<usize> = (0..count).collect();
    success(&strings(&place.create(&all, options)));
    Some((disks, place))
}

/// Returns the first byte of the members' data area.
fn data_at(place: &MemberFiles) -> usize {
    let examined = success(&["array", "examine", "--json", &place.member(0)]);
    let examined: Value = serde_json::from_str(&examined).unwrap();
    examined[0]["superblock"]["roster"]["data_at"]
        .as_u64()
        .unwrap() as usize
}

fn holds(served: &ServedArray, expected: &[u8], when: &str) {
    let mut read = vec![0; expected.len()];
    served.client().read(0, &mut read).unwrap();
    assert!(read == expected, "{when}");
}

/// Layouts with redundancy and their numbers of members.
const LAYOUTS: [(&str, usize); 4] = [("raid1", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)];
/// Number of unreadable runs of sectors per layout, one after the other.
const UNREADABLE_RUNS: u64 = 12;

#[test]
fn what_a_block_device_cannot_read_is_computed_and_written_again() {
    let (mut runs, mut sectors, mut mended, mut refusals) = (0, 0, 0, 0);
    for (layout, members) in LAYOUTS {
        let power = PowerSupply::on();
        let Some((disks, place)) = array_of(members, &power, &["--layout", layout]) else {
            return;
        };
        let data_at = data_at(&place);
        let served = place
            .assemble(&(0..members).collect::<Vec<_>>(), &[])
            .unwrap();
        served.until("whole");
        let bytes = pattern(served.client().properties().size_bytes as usize, 1);
        let mut client = served.client();
        client.write(0, &bytes, CommandFlags::empty()).unwrap();
        client.flush().unwrap();
        let (mut random, mut of_layout) = (SplitMix(members as u64), 0);
        for run in 0..UNREADABLE_RUNS {
            let disk = &disks[random.below(members as u64) as usize];
            let (at, length) = (
                random.below(3 << 10) as usize * SECTOR,
                1 + random.below(16) as usize,
            );
            let before = disk.refused().reads;
            disk.spoil(data_at + at, length * SECTOR);
            holds(&served, &bytes, &format!("{layout}, run {run}"));
            (runs, sectors) = (runs + 1, sectors + length);
            if disk.refused().reads > before {
                // A failed transfer is tried three times.
                assert!(disk.refused().reads >= before + 3, "{layout}, run {run}");
                assert_eq!(
                    disk.unreadable_sectors(),
                    0,
                    "{layout}, run {run}: it was written again"
                );
                (mended, of_layout) = (mended + 1, of_layout + 1);
            } else {
                // The bad sectors hold parity or an unread copy, so a write must repair them.
                client.write(0, &bytes, CommandFlags::empty()).unwrap();
                client.flush().unwrap();
            }
            assert_eq!(disk.unreadable_sectors(), 0, "{layout}, run {run}");
        }
        assert!(of_layout > 0, "{layout}: no read met an unreadable sector");
        assert!(
            success(&["array", "scrub", &text(&served.socket)]).contains(" 0 sectors of parity"),
            "{layout}"
        );
        assert_eq!(served.status()["state"], "whole", "{layout}");
        holds(&served, &bytes, layout);
        refusals += disks.iter().map(|disk| disk.refused().reads).sum::<u64>();
        served.stop();
    }
    println!(
        "{} layouts, {runs} runs of {sectors} sectors, {mended} met and mended by reads, {refusals} reads refused",
        LAYOUTS.len()
    );
}

/// Fault of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Writes(ErrorCode),
    Flushes(ErrorCode),
    /// The server of the device is killed.
    Goes,
}

const WRONGS: [Wrong; 4] = [
    Wrong::Writes(ErrorCode::InputOutput),
    Wrong::Writes(ErrorCode::NoSpace),
    Wrong::Flushes(ErrorCode::InputOutput),
    Wrong::Goes,
];

#[test]
fn a_block_device_that_refuses_or_goes_is_done_without_and_nothing_flushed_is_lost() {
    let mut tried = 0;
    for (layout, members) in LAYOUTS {
        for (index, wrong) in WRONGS.into_iter().enumerate() {
            let says = format!("{layout}, {wrong:?}");
            let power = PowerSupply::on();
            let Some((mut disks, place)) = array_of(members, &power, &["--layout", layout]) else {
                return;
            };
            let all: Vec<usize> = (0..members).collect();
            let slot = index % members;
            let hook = place.folder.path().join("hook");
            let command = format!(
                "echo $FULLSTROKE_EVENT $FULLSTROKE_SLOT $FULLSTROKE_STATE $FULLSTROKE_DEVICE >> {}",
                hook.display()
            );
            let served = place.assemble(&all, &["--on-failure", &command]).unwrap();
            served.until("whole");
            let mut client = served.client();
            let mut bytes = pattern(client.properties().size_bytes as usize, 1);
            client.write(0, &bytes, CommandFlags::empty()).unwrap();
            client.flush().unwrap();
            match wrong {
                Wrong::Writes(error) => disks[slot].faults(Faults {
                    writes: Some(error),
                    ..Faults::default()
                }),
                Wrong::Flushes(error) => disks[slot].faults(Faults {
                    flushes: Some(error),
                    ..Faults::default()
                }),
                Wrong::Goes => disks[slot].goes(),
            }
            // The write touches all members and succeeds despite the fault.
            let (at, new) = (100 << 10, pattern(600 << 10, 2));
            client
                .write(at as u64, &new, CommandFlags::empty())
                .unwrap();
            client.flush().unwrap();
            bytes[at..at + new.len()].copy_from_slice(&new);
            holds(&served, &bytes, &says);
            let status = served.status();
            assert_eq!(
                (&status["state"], &status["slots"][slot]["state"]),
                (&"degraded".into(), &"failed".into())
            );
            let device = place.member(slot);
            // The hooks of members that were filled before may still be running.
            let is_failure = |line: &&String| !line.starts_with("filled ");
            let lines = lines_when(&hook, |lines| lines.iter().any(|line| is_failure(&line)));
            let failed: Vec<&String> = lines.iter().filter(is_failure).collect();
            assert_eq!(
                failed,
                [&format!("failed {slot} degraded {device}")],
                "{says}: {lines:?}"
            );
            // The superblocks of the others record the failure.
            let other = place.member((slot + 1) % members);
            let examined = success(&["array", "examine", "--json", &other]);
            let examined: Value = serde_json::from_str(&examined).unwrap();
            let roster = &examined[0]["superblock"]["roster"];
            assert_eq!(
                roster["slots"][slot]["state"], "failed",
                "{says}: {examined}"
            );
            client
                .write(0, &pattern(4096, 3), CommandFlags::empty())
                .unwrap();
            bytes[..4096].copy_from_slice(&pattern(4096, 3));
            client.flush().unwrap();
            drop(client);
            served.kill();
            disks.iter().for_each(FaultyDisk::rests);
            if wrong == Wrong::Goes {
                let rest: Vec<usize> = all.iter().copied().filter(|&one| one != slot).collect();
                let served = place.assemble(&rest, &[]).unwrap();
                holds(&served, &bytes, &says);
                served.stop();
            } else {
                disks[slot].faults(Faults::default());
                let served = place.assemble(&all, &[]).unwrap();
                assert_eq!(
                    served.status()["slots"][slot]["state"],
                    "failed",
                    "{says}: it is out of date"
                );
                holds(&served, &bytes, &says);
                success(&["array", "add", &text(&served.socket), &device]);
                served.until("whole");
                holds(&served, &bytes, &says);
                assert!(
                    success(&["array", "scrub", &text(&served.socket)])
                        .contains(" 0 sectors of parity"),
                    "{says}"
                );
                served.stop();
            }
            tried += 1;
        }
    }
    println!("{tried} members on {} layouts", LAYOUTS.len());
}

#[test]
fn without_redundancy_what_a_device_refuses_is_an_error_of_its_request_alone() {
    let power = PowerSupply::on();
    let Some((disks, place)) = array_of(2, &power, &["--layout", "raid0"]) else {
        return;
    };
    let data_at = data_at(&place);
    let served = place.assemble(&[0, 1], &[]).unwrap();
    let mut client = served.client();
    let mut bytes = pattern(client.properties().size_bytes as usize, 1);
    client.write(0, &bytes, CommandFlags::empty()).unwrap();
    client.flush().unwrap();
    // The bad sector is in the first chunk of the second member.
    disks[1].spoil(data_at, SECTOR);
    let chunk = 16 << 10;
    let mut read = vec![0; chunk];
    let error = client
        .read(chunk as u64, &mut read)
        .unwrap_err()
        .to_string();
    assert!(error.contains("InputOutput"), "{error}");
    for part in [0, 3] {
        client.read((part * chunk) as u64, &mut read).unwrap();
        assert!(read == bytes[part * chunk..(part + 1) * chunk], "{part}");
    }
    client
        .write(
            chunk as u64,
            &bytes[chunk..2 * chunk],
            CommandFlags::empty(),
        )
        .unwrap();
    holds(&served, &bytes, "written again");
    disks[0].faults(Faults {
        writes: Some(ErrorCode::InputOutput),
        ..Faults::default()
    });
    let error = client
        .write(0, &pattern(512, 9), CommandFlags::empty())
        .unwrap_err()
        .to_string();
    assert!(error.contains("InputOutput"), "{error}");
    assert_eq!(disks[0].refused().writes, 3, "it was tried three times");
    client
        .write(chunk as u64, &pattern(512, 9), CommandFlags::empty())
        .unwrap();
    bytes[chunk..chunk + 512].copy_from_slice(&pattern(512, 9));
    disks[0].faults(Faults::default());
    holds(&served, &bytes, "the other member was written to");
    drop(client);
    served.stop();
    let served = place.assemble(&[0, 1], &[]).unwrap();
    holds(&served, &bytes, "assembled again");
}

#[test]
fn the_last_copy_that_a_device_refuses_to_write_halts_the_array_with_all_that_was_flushed() {
    let power = PowerSupply::on();
    let Some((disks, place)) = array_of(2, &power, &["--layout", "raid1"]) else {
        return;
    };
    let served = place.assemble(&[0, 1], &[]).unwrap();
    served.until("whole");
    let mut client = served.client();
    let mut bytes = pattern(client.properties().size_bytes as usize, 1);
    client.write(0, &bytes, CommandFlags::empty()).unwrap();
    client.flush().unwrap();
    let refuses = Faults {
        writes: Some(ErrorCode::InputOutput),
        ..Faults::default()
    };
    disks[0].faults(refuses);
    client
        .write(0, &pattern(512, 9), CommandFlags::empty())
        .unwrap();
    client.flush().unwrap();
    bytes[..512].copy_from_slice(&pattern(512, 9));
    disks[1].faults(refuses);
    client
        .write(0, &pattern(512, 8), CommandFlags::empty())
        .unwrap_err();
    let status = served.status();
    let why = status["halted"]
        .as_str()
        .unwrap_or_else(|| panic!("{status}"));
    assert!(
        why.contains(&place.member(1)) && why.contains("Input/output error"),
        "{status}"
    );
    holds(&served, &bytes, "while it is halted");
    client
        .write(1 << 20, &pattern(512, 8), CommandFlags::empty())
        .unwrap_err();
    drop(client);
    let said = served.stop_halted();
    assert!(
        said.contains(&place.member(1)) && said.contains("assemble the array again"),
        "{said}"
    );
    disks.iter().for_each(|disk| disk.faults(Faults::default()));
    let served = place.assemble(&[0, 1], &[]).unwrap();
    holds(&served, &bytes, "assembled again");
    success(&["array", "add", &text(&served.socket), &place.member(0)]);
    served.until("whole");
    holds(&served, &bytes, "whole again");
}

/// Every other one of 200 reads hits an unreadable sector.
#[test]
fn a_replay_names_the_request_that_a_device_refuses_and_counts_those_that_it_tolerates() {
    const REQUESTS: u64 = 200;
    let power = PowerSupply::on();
    let Some(disks) = FaultyDisk::several(1, DISK_MIB, &power) else {
        return;
    };
    let device = disks[0].device();
    let folder = tempfile::tempdir().unwrap();
    let trace = text(&folder.path().join("trace.csv"));
    // The times of MSR traces are in units of 100 ns.
    let row = |i: u64, operation: &str| {
        let start = i % 2 * (1 << 20);
        format!(
            "{},host,0,{operation},{start},4096,2000\n",
            1_000_000 + i * 10_000
        )
    };
    fs::write(
        &trace,
        (0..REQUESTS).map(|i| row(i, "Read")).collect::<String>(),
    )
    .unwrap();
    disks[0].spoil((1 << 20) + SECTOR, SECTOR);
    let ways: [&[&str]; 4] = [
        &[],
        &["--io", "threads"],
        &["--threads", "1"],
        &["--threads", "4", "--batch"],
    ];
    for way in ways {
        let error = refused(&[&["replay", &trace, "--on", &device], way].concat());
        let said = [
            "request 2 (read, sector 2048, 4096 bytes) failed",
            "Input/output error",
            &device,
        ];
        assert!(
            said.iter().all(|part| error.contains(part)),
            "{way:?}: {error}"
        );
        let tolerant = [
            "replay",
            &trace,
            "--on",
            &device,
            "--tolerate-errors",
            "1000",
            "--json",
        ];
        let output = fullstroke(&[&tolerant, way].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&report["requests"], &report["errors"]),
            (&REQUESTS.into(), &(REQUESTS / 2).into()),
            "{way:?}"
        );
        assert_eq!(report["operations"][0]["requests"], REQUESTS / 2, "{way:?}");
        assert_eq!(report["verdict"]["faithful"], false, "{way:?}");
        assert!(
            report["verdict"]["says"]
                .as_str()
                .unwrap()
                .contains("100 requests failed"),
            "{way:?}"
        );
        let error = refused(
            &[
                &["replay", &trace, "--on", &device, "--tolerate-errors", "99"],
                way,
            ]
            .concat(),
        );
        assert!(error.contains("(read, sector 2048"), "{way:?}: {error}");
    }
    // The first replay of each way ends at 1 refused read, the others meet 100 each.
    assert!(disks[0].refused().reads >= ways.len() as u64 * (REQUESTS + 1));
    // Writes fail because the device is full.
    let writes = text(&folder.path().join("writes.csv"));
    fs::write(&writes, (0..4).map(|i| row(i, "Write")).collect::<String>()).unwrap();
    disks[0].faults(Faults {
        writes: Some(ErrorCode::NoSpace),
        ..Faults::default()
    });
    for way in ways {
        // The kernel releases a ring and its device a moment after the process has ended.
        disks[0].rests();
        let error = refused(
            &[
                &["replay", &writes, "--on", &device, "--writes", "overwrite"],
                way,
            ]
            .concat(),
        );
        let said = [
            "(write, sector ",
            "No space left on device",
            "the file system of the target is full",
        ];
        assert!(
            said.iter().all(|part| error.contains(part)),
            "{way:?}: {error}"
        );
    }
}

#[test]
fn streams_end_with_the_read_that_a_device_refuses() {
    let power = PowerSupply::on();
    let Some(mut disks) = FaultyDisk::several(1, DISK_MIB, &power) else {
        return;
    };
    let device = disks[0].device();
    let arguments = [
        "stream-test",
        "--on",
        &device,
        "--rate",
        "1Mbit/s",
        "--streams",
        "2",
        "--start-interval",
        "20ms",
        "--duration",
        "3s",
    ];
    disks[0].spoil(0, DISK_MIB << 20);
    let error = refused(&arguments);
    let said = [
        &device,
        "read number 0 of file",
        "Input/output error",
        "nothing is said of streams",
    ];
    assert!(said.iter().all(|part| error.contains(part)), "{error}");
    assert!(disks[0].refused().reads > 0);
    // The device vanishes while streams play.
    let mut other = FaultyDisk::several(1, DISK_MIB, &power).unwrap().remove(0);
    let device = other.device();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        other.goes();
        other
    });
    let error = refused(&[&arguments[..2], &[device.as_str()], &arguments[3..]].concat());
    let other = killer.join().unwrap();
    assert!(
        error.contains(&other.device()) && error.contains("nothing is said of streams"),
        "{error}"
    );
    disks.clear();
}

/// Number of concurrent clients.
const WRITERS: u64 = 3;
/// Size of the blocks in the first half of the addresses. The blocks belong to the clients in turn,
/// so that clients share rows.
const BLOCK_SECTORS: usize = 8;

/// Possible contents of a client's sector.
#[derive(Clone, Debug, Default)]
struct Sector {
    /// Version at the last flush.
    flushed: u64,
    /// Versions written since, answered or not, oldest first.
    since: Vec<u64>,
}

fn content(sector: usize, version: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if version > 0 {
        for (word, bytes) in bytes.chunks_exact_mut(8).enumerate() {
            let mark = version.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (sector * 64 + word) as u64;
            bytes.copy_from_slice(&mark.to_le_bytes());
        }
    }
    bytes
}

/// Counts of all lives.
#[derive(Debug, Default)]
struct Lives {
    losses: u64,
    without_a_member: u64,
    writes: AtomicU64,
    flushes: AtomicU64,
    /// Number of unflushed member sectors at the power losses.
    unflushed: usize,
    lost: Vec<String>,
}

/// Loads the array until power fails. Only this client writes the sectors of `known`.
fn load(
    mut client: ExportClient<UnixStream>,
    seed: u64,
    writer: u64,
    known: &mut [(usize, Sector)],
    versions: &AtomicU64,
    lives: &Lives,
) {
    let mut random = SplitMix(seed * WRITERS + writer);
    loop {
        let from = random.below(known.len() as u64) as usize;
        let most = 1 + if random.below(4) == 0 {
            random.below(256)
        } else {
            random.below(16)
        } as usize;
        // A write covers only consecutive sectors.
        let run = known[from..]
            .windows(2)
            .take_while(|pair| pair[0].0 + 1 == pair[1].0)
            .count()
            + 1;
        let range = from..from + most.min(run);
        match random.below(12) {
            0 => {
                if client.flush().is_err() {
                    return;
                }
                lives.flushes.fetch_add(1, Ordering::Relaxed);
                for (_, sector) in &mut *known {
                    if let Some(last) = sector.since.last().copied() {
                        *sector = Sector {
                            flushed: last,
                            since: Vec::new(),
                        };
                    }
                }
            }
            what => {
                let version = versions.fetch_add(1, Ordering::Relaxed) + 1;
                let bytes: Vec<u8> = range
                    .clone()
                    .flat_map(|index| content(known[index].0, version))
                    .collect();
                known[range.clone()]
                    .iter_mut()
                    .for_each(|(_, sector)| sector.since.push(version));
                let flags = if what == 1 {
                    CommandFlags::FORCE_UNIT_ACCESS
                } else {
                    CommandFlags::empty()
                };
                if client
                    .write((known[from].0 * SECTOR) as u64, &bytes, flags)
                    .is_err()
                {
                    return;
                }
                lives.writes.fetch_add(1, Ordering::Relaxed);
                if what == 1 {
                    known[range].iter_mut().for_each(|(_, sector)| {
                        *sector = Sector {
                            flushed: version,
                            since: Vec::new(),
                        }
                    });
                }
            }
        }
    }
}

/// True if the server has an io_uring.
fn has_a_ring(served: &ServedArray) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", served.child.id())).unwrap();
    let mut targets = descriptors.filter_map(|one| fs::read_link(one.ok()?.path()).ok());
    targets.any(|target| text(&target).contains("[io_uring]"))
}

/// Distributes the sectors to the clients.
fn owned(sectors: usize) -> Vec<Vec<(usize, Sector)>> {
    let mut owned = vec![Vec::new(); WRITERS as usize];
    for sector in 0..sectors {
        let half = sectors / 2;
        let writer = if sector < half {
            sector / BLOCK_SECTORS % WRITERS as usize
        } else {
            (sector - half) * WRITERS as usize / (sectors - half)
        };
        owned[writer].push((sector, Sector::default()));
    }
    owned
}

/// Runs an array through `count` power losses under several clients. In every third life a member
/// is missing afterwards. Returns `None` if the host lacks the means.
fn live(layout: &[&str], members: usize, count: u64, seed: u64, lies: bool) -> Option<Lives> {
    let power = PowerSupply::on();
    let (disks, place) = array_of(members, &power, layout)?;
    let all: Vec<usize> = (0..members).collect();
    let (mut lives, versions) = (Lives::default(), AtomicU64::new(0));
    let mut served = place.assemble(&all, &[]).unwrap();
    served.until("whole");
    if !has_a_ring(&served) {
        eprintln!("skipped: the kernel gives no io_uring");
        return None;
    }
    let size = served.client().properties().size_bytes as usize;
    let mut known = owned(size / SECTOR);
    // The faults start when all members are whole, because lying about superblocks is another test.
    disks.iter().for_each(|disk| {
        disk.faults(Faults {
            lies,
            ..Faults::default()
        })
    });
    let mut random = SplitMix(seed);
    for life in 0..count {
        power.fails_after(40 + random.below(1500));
        std::thread::scope(|scope| {
            for (writer, known) in known.iter_mut().enumerate() {
                let (client, versions, lives) = (served.client(), &versions, &lives);
                scope.spawn(move || {
                    load(
                        client,
                        seed << 32 | life,
                        writer as u64,
                        known,
                        versions,
                        lives,
                    )
                });
            }
        });
        assert!(
            power.is_off(),
            "life {life} of seed {seed}: they ended before power failed"
        );
        served.kill();
        disks.iter().for_each(FaultyDisk::rests);
        let percent = random.below(101);
        lives.unflushed += disks
            .iter()
            .map(|disk| disk.loses_power(&mut random, percent))
            .sum::<usize>();
        power.comes_back();
        lives.losses += 1;
        let missing = (life % 3 == 2 && !layout.contains(&"raid0"))
            .then(|| random.below(members as u64) as usize);
        let there: Vec<usize> = all
            .iter()
            .copied()
            .filter(|&member| Some(member) != missing)
            .collect();
        lives.without_a_member += u64::from(missing.is_some());
        served = match place.assemble(
            &there,
            if missing.is_some() {
                &["--degraded"]
            } else {
                &[]
            },
        ) {
            Ok(served) => served,
            Err(error) => {
                lives
                    .lost
                    .push(format!("life {life} of seed {seed}: {error}"));
                return Some(lives);
            }
        };
        let mut read = vec![0; size];
        served.client().read(0, &mut read).unwrap();
        for (sector, known) in known.iter_mut().flatten() {
            let found = &read[*sector * SECTOR..][..SECTOR];
            let allowed = std::iter::once(&known.flushed).chain(&known.since);
            match allowed
                .copied()
                .find(|&version| found == content(*sector, version))
            {
                Some(version) => {
                    *known = Sector {
                        flushed: version,
                        since: Vec::new(),
                    }
                }
                None => lives.lost.push(format!(
                    "life {life} of seed {seed}: sector {sector}, {known:?}"
                )),
            }
        }
        if !lives.lost.is_empty() {
            return Some(lives);
        }
        if let Some(missing) = missing {
            success(&[
                "array",
                "add",
                &text(&served.socket),
                &place.member(missing),
            ]);
        }
        served.until("whole");
        if !layout.contains(&"raid0") {
            let scrubbed = success(&["array", "scrub", &text(&served.socket)]);
            assert!(
                scrubbed.contains(" 0 sectors of parity"),
                "life {life} of seed {seed}: {scrubbed}"
            );
        }
        // The flush makes the filled members durable before the next loss.
        served.client().flush().unwrap();
    }
    served.stop();
    Some(lives)
}

/// Number of power losses per array. `FULLSTROKE_LIVES` overrides it.
const LIVES: u64 = 6;
/// Arrays with their numbers of members and journals. With `--journal partial`, sectors of rows
/// being written whole may be lost with a member (docs/arrays.md). So arrays with parity journal
/// all writes.
const POWERLESS: [(&[&str], usize); 4] = [
    (&["--layout", "raid5", "--journal", "all"], 3),
    (&["--layout", "raid6", "--journal", "all"], 4),
    (&["--layout", "raid1"], 2),
    (&["--layout", "raid0"], 2),
];

#[test]
fn nothing_flushed_is_lost_with_power_under_transfers_of_io_uring() {
    let count = std::env::var("FULLSTROKE_LIVES").map_or(LIVES, |text| text.parse().unwrap());
    let seed = std::env::var("FULLSTROKE_SEED").map_or(1, |text| text.parse().unwrap());
    for (layout, members) in POWERLESS {
        let Some(lives) = live(layout, members, count, seed, false) else {
            return;
        };
        println!("{layout:?}: {lives:?}");
        assert!(lives.lost.is_empty(), "{layout:?}: {:?}", lives.lost);
        assert_eq!(lives.losses, count);
        assert!(
            lives.unflushed > 0 && lives.flushes.load(Ordering::Relaxed) > 0,
            "{lives:?}"
        );
    }
}

#[test]
fn devices_that_lie_of_flushes_are_found_to_lose_what_was_flushed() {
    let Some(lives) = live(POWERLESS[0].0, POWERLESS[0].1, 4, 1, true) else {
        return;
    };
    assert!(!lives.lost.is_empty(), "{lives:?}");
}
