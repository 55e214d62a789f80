//! Tests that killed servers lose no flushed and no answered data. Answered data survive because
//! the host keeps its page cache.
//!
//! A round starts a server on the store of the last round and reads all of it. Each sector must
//! hold the last answered bytes, or the bytes of a request in flight at the kill. Then the round
//! writes at random until the server is killed. Some rounds kill the server during repair, some
//! with missing drives, and some during a rebuild.
//!
//! `FULLSTROKE_KILLS=100` kills a hundred servers of each layout.

use crate::pattern;
use crate::server::{Server, StackFolder, text};
use crate::stacks::{
    E_PARAID, JBOD, NESTED, PARAID, PARAID_RAID0, RAID0, RAID1, RAID5, RAID6, RAID10, TestedVolume,
};
use fullstroke_nbd::client::ExportClient;
use fullstroke_nbd::{CommandFlags, RequestCommand};
use fullstroke_units::Random;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

const SECTOR: usize = 512;
const DISK_MIB: u64 = 4;
const IN_FLIGHT: usize = 16;
/// Number of rounds per layout. `FULLSTROKE_KILLS` overrides it.
const ROUNDS: u64 = 9;

/// Possible contents of the sectors of an export.
struct Expected {
    /// Possible versions of each sector. 0 means zeros.
    versions: Vec<Vec<u64>>,
    latest: u64,
}

/// An unanswered request.
#[derive(Debug)]
struct UnansweredRequest {
    command: RequestCommand,
    first: usize,
    count: usize,
    version: u64,
}

impl Expected {
    fn new(size_bytes: u64) -> Expected {
        Expected {
            versions: vec![vec![0]; size_bytes as usize / SECTOR],
            latest: 0,
        }
    }

    fn begun(&mut self, pending: &UnansweredRequest) {
        for versions in &mut self.versions[pending.first..][..pending.count] {
            if !versions.contains(&pending.version) {
                versions.push(pending.version);
            }
        }
    }

    fn answered(&mut self, pending: &UnansweredRequest) {
        // A trim may leave the data as they are.
        if pending.command != RequestCommand::Trim {
            for versions in &mut self.versions[pending.first..][..pending.count] {
                *versions = vec![pending.version];
            }
        }
    }

    /// Compares all sectors with their possible contents. The found version is the only possible
    /// one from now on.
    fn check(&mut self, client: &mut ExportClient<UnixStream>, round: &str) {
        let mut found = vec![0; 1 << 20];
        for (chunk, sectors) in self.versions.chunks_mut(found.len() / SECTOR).enumerate() {
            let offset = (chunk * found.len()) as u64;
            let found = &mut found[..sectors.len() * SECTOR];
            client.read(offset, found).unwrap();
            for (index, (versions, found)) in
                sectors.iter_mut().zip(found.chunks(SECTOR)).enumerate()
            {
                let at = offset + (index * SECTOR) as u64;
                let holds = versions
                    .iter()
                    .copied()
                    .find(|&version| content(at, version) == found);
                let first = u64::from_le_bytes(found[..8].try_into().unwrap());
                *versions = vec![holds.unwrap_or_else(|| {
                    panic!(
                        "{round}: byte {at} holds writing {} of byte {}; expected one of {versions:?}",
                        first & 0xF_FFFF,
                        first >> 20
                    )
                })];
            }
        }
    }
}

fn content(at: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        vec![0; SECTOR]
    } else {
        pattern::bytes(at, version, SECTOR)
    }
}

/// A client with random writes.
struct Writer<'a> {
    client: ExportClient<UnixStream>,
    expected: &'a mut Expected,
    pending: HashMap<u64, UnansweredRequest>,
    random: &'a mut Random,
}

impl Writer<'_> {
    /// Sends a request, unless it overlaps a pending one.
    fn submit(&mut self) {
        let all = self.expected.versions.len();
        let count = 1 + match self.random.below(4) {
            0 => self.random.below(600),
            _ => self.random.below(40),
        } as usize;
        let first = self.random.below((all - count) as u64) as usize;
        let (command, flags) = match self.random.below(20) {
            0..2 => return self.flush(),
            2 => (RequestCommand::Trim, CommandFlags::empty()),
            3 => (RequestCommand::WriteZeroes, CommandFlags::empty()),
            4 => (RequestCommand::WriteZeroes, CommandFlags::NO_HOLE),
            5..8 => (RequestCommand::Write, CommandFlags::FORCE_UNIT_ACCESS),
            _ => (RequestCommand::Write, CommandFlags::empty()),
        };
        if self
            .pending
            .values()
            .any(|other| first < other.first + other.count && other.first < first + count)
        {
            return;
        }
        self.expected.latest += 1;
        let version = if command == RequestCommand::Write {
            self.expected.latest
        } else {
            0
        };
        let pending = UnansweredRequest {
            command,
            first,
            count,
            version,
        };
        self.expected.begun(&pending);
        let (offset, length) = ((first * SECTOR) as u64, count * SECTOR);
        let payload = if command == RequestCommand::Write {
            pattern::bytes(offset, version, length)
        } else {
            Vec::new()
        };
        let cookie = self
            .client
            .submit(command, offset, length as u32, flags, &payload)
            .unwrap();
        self.pending.insert(cookie, pending);
    }

    fn flush(&mut self) {
        let cookie = self
            .client
            .submit(RequestCommand::Flush, 0, 0, CommandFlags::empty(), &[])
            .unwrap();
        let version = 0;
        self.pending.insert(
            cookie,
            UnansweredRequest {
                command: RequestCommand::Flush,
                first: 0,
                count: 0,
                version,
            },
        );
    }

    /// Receives an answer. False if the server is gone.
    fn receive(&mut self) -> bool {
        let Ok(answer) = self.client.receive() else {
            return false;
        };
        let pending = self.pending.remove(&answer.cookie).unwrap();
        assert_eq!(answer.result, Ok(()), "{pending:?}");
        self.expected.answered(&pending);
        true
    }
}

/// Writes through `server` until it is killed. Returns the gear at the kill, for arrays with gears.
fn write_and_kill(
    server: Server,
    expected: &mut Expected,
    random: &mut Random,
    in_flight: usize,
) -> Option<String> {
    let answers = random.below(120);
    let client = server.client();
    let mut writer = Writer {
        client,
        expected,
        pending: HashMap::new(),
        random,
    };
    for _ in 0..answers {
        while writer.pending.len() < in_flight {
            writer.submit();
        }
        assert!(writer.receive(), "the server has ended by itself");
    }
    // Asked before the last requests, which are to be in flight at the kill.
    let gears = server.status()["exports"][0]["health"]["gears"][0]["gear"]
        .as_str()
        .map(str::to_owned);
    for _ in 0..in_flight {
        writer.submit();
    }
    // So that the kill meets the requests at any stage.
    std::thread::sleep(Duration::from_micros(writer.random.below(3000)));
    server.kill();
    // The socket may still hold answers that the server sent before the kill.
    while writer.receive() {}
    gears
}

/// Starts a server and kills it, perhaps before it serves.
fn begin_and_kill(place: &StackFolder, random: &mut Random) {
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args([
            "serve",
            &place.stack(),
            "--no-delay",
            "--socket",
            &place.name("nbd"),
        ])
        .args(["--store", &text(&place.path("store"))])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_micros(random.below(60_000)));
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Fails drives in one round and rebuilds them in the next.
fn change_members(server: &Server, volume: TestedVolume, round: u64) {
    for drive in volume.expendable {
        match round % 3 {
            1 => drop(server.ctl(&["fail", drive])),
            2 => drop(server.ctl(&["restore", drive, "--rate", "64MiB"])),
            _ => {}
        }
    }
}

fn survives_kills(volume: TestedVolume) {
    survives_kills_with(volume, &[IN_FLIGHT]);
}

/// Runs all rounds with these numbers of requests in flight. Returns the gears at the kills.
fn survives_kills_with(volume: TestedVolume, in_flight: &[usize]) -> Vec<String> {
    let mut gears = Vec::new();
    let rounds = std::env::var("FULLSTROKE_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let place = StackFolder::new(volume, DISK_MIB);
    // Seeded by the name, so that a failure comes again.
    let mut random = pattern::random(volume.name);
    let mut expected: Option<Expected> = None;
    for round in 0..=rounds {
        let server = place.serve_stored();
        let mut client = server.client();
        let size = client.properties().size_bytes;
        let expected = expected.get_or_insert_with(|| Expected::new(size));
        let name = format!("{}, round {round}, {:?}", volume.name, server.notes());
        // The test's output shows the rounds before a failure.
        eprintln!("{name}");
        expected.check(&mut client, &name);
        if round % 3 == 0 {
            server.wait_for_rebuild();
            expected.check(&mut client, &format!("{name}, rebuilt"));
        }
        server.scrub();
        if round == rounds {
            server.stop_well();
            break;
        }
        change_members(&server, volume, round);
        drop(client);
        let in_flight = in_flight[(round as usize / 2) % in_flight.len()];
        gears.extend(write_and_kill(server, expected, &mut random, in_flight));
        if random.chance(0.3) {
            begin_and_kill(&place, &mut random);
        }
    }
    let server = place.serve_stored();
    assert_eq!(
        server.notes(),
        &[] as &[serde_json::Value],
        "{}",
        volume.name
    );
    server.stop_well();
    gears
}

/// Kills servers of arrays with gears during shifts and in the low gear.
fn survives_kills_in_gears(volume: TestedVolume) {
    // A single request at a time lets the array shift down; many make it shift up.
    let gears = survives_kills_with(volume, &[1, 1, IN_FLIGHT]);
    eprintln!("{}: killed in {gears:?}", volume.name);
    assert!(
        gears.iter().any(|gear| gear != "high"),
        "{}: {gears:?}",
        volume.name
    );
}

#[test]
fn jbod_survives_kills() {
    survives_kills(JBOD);
}

#[test]
fn raid0_survives_kills() {
    survives_kills(RAID0);
}

#[test]
fn raid1_survives_kills() {
    survives_kills(RAID1);
}

#[test]
fn raid10_survives_kills() {
    survives_kills(RAID10);
}

#[test]
fn raid5_survives_kills() {
    survives_kills(RAID5);
}

#[test]
fn raid6_survives_kills() {
    survives_kills(RAID6);
}

#[test]
fn raid5_in_raid0_survives_kills() {
    survives_kills(NESTED);
}

#[test]
fn paraid_survives_kills() {
    survives_kills_in_gears(PARAID);
}

#[test]
fn e_paraid_survives_kills() {
    survives_kills_in_gears(E_PARAID);
}

#[test]
fn paraid_of_raid0_survives_kills() {
    survives_kills_in_gears(PARAID_RAID0);
}
