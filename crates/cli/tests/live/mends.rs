//! Tests of wrong redundancy after a kill and after a flipped byte.

use crate::array::SmallDisk;
use crate::common::fullstroke;
use crate::pattern;
use crate::server::{PATIENCE, Server, StackFolder, text};
use crate::stacks::{NESTED, RAID1, RAID5, RAID6, TestedVolume};
use fullstroke_nbd::CommandFlags;
use serde_json::Value;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

fn fill(server: &Server) -> Vec<u8> {
    let mut client = server.client();
    let bytes = pattern::bytes(0, 1, client.properties().size_bytes as usize);
    for (index, part) in bytes.chunks(MIB).enumerate() {
        client
            .write((index * MIB) as u64, part, CommandFlags::empty())
            .unwrap();
    }
    bytes
}

fn assert_holds(server: &Server, bytes: &[u8], when: &str) {
    let mut client = server.client();
    let mut found = vec![0; MIB];
    for (index, expected) in bytes.chunks(MIB).enumerate() {
        client
            .read((index * MIB) as u64, &mut found[..expected.len()])
            .unwrap();
        pattern::assert_same(&found[..expected.len()], expected, when);
    }
}

fn flip(place: &StackFolder, member: &str, at: u64) {
    let path = place.path("store").join(format!("member-{member}.img"));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
}

/// Returns the status and the message of `ctl scrub`.
fn scrub(server: &Server, options: &[&str]) -> (Option<i32>, String) {
    let socket = text(&server.socket());
    let output = fullstroke(&[&["ctl", socket.as_str(), "scrub"], options].concat());
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

/// The byte at `at` of `member` is flipped. Nothing `decides` unless the volume has P and Q.
fn is_repaired(volume: TestedVolume, member: &str, at: u64, decides: bool) {
    let place = StackFolder::new(volume, 4);
    let server = place.serve_stored();
    let bytes = fill(&server);
    server.stop_well();
    flip(&place, member, at);
    let server = place.serve_stored();
    let name = volume.name;
    let found = format!("drive {member} from sector {}", at / 512);
    let (status, message) = scrub(&server, &[]);
    assert!(
        status == Some(1) && message.contains("1 sectors of redundancy or data were found wrong"),
        "{name}: {message}"
    );
    assert!(
        message.contains(&found) && message.contains("scrub --repair"),
        "{name}: {message}"
    );
    let (status, message) = scrub(&server, &["--repair"]);
    assert_eq!(
        (status, message.contains("1 are undecided")),
        (Some(i32::from(!decides)), !decides),
        "{name}: {message}"
    );
    let (status, message) = match decides {
        true => (status, message),
        false => scrub(&server, &["--repair=data"]),
    };
    assert!(
        status == Some(0) && message.contains("1 were written again"),
        "{name}: {message}"
    );
    assert!(message.contains(&found), "{name}: {message}");
    server.scrub();
    for drive in volume.expendable {
        server.ctl(&["fail", drive]);
    }
    assert_holds(&server, &bytes, name);
    let (status, message) = scrub(&server, &["--repair"]);
    let left_out = volume.name != "raid1";
    assert_eq!(
        (status, message.contains("was not changed")),
        (Some(0), left_out),
        "{name}: {message}"
    );
    server.stop_well();
}

#[test]
fn a_flipped_byte_of_redundancy_is_found_and_repaired() {
    is_repaired(RAID1, "1", 512 * 77 + 5, false);
    // The first row has its parity on the last drive.
    is_repaired(RAID5, "4", 512 * 3, false);
    is_repaired(RAID6, "5", 512 * 4 + 511, true);
    is_repaired(RAID6, "0", 512 * 4 + 511, true);
    is_repaired(NESTED, "1.2", 0, false);
}

#[test]
fn a_store_on_a_read_only_mount_is_served_read_only_also_after_a_kill() {
    for (volume, failed) in [
        (RAID1, None),
        (RAID5, None),
        (RAID5, Some("1")),
        (NESTED, None),
    ] {
        let place = StackFolder::new(volume, 4);
        let server = place.serve_stored();
        failed
            .iter()
            .for_each(|drive| drop(server.ctl(&["fail", drive])));
        let bytes = fill(&server);
        server.kill();
        let Some(server) = place.serve_from_read_only_mount(&["--read-only"]) else {
            return;
        };
        assert_holds(&server, &bytes, volume.name);
        let mut client = server.client();
        assert!(
            client.write(0, &[1; 512], CommandFlags::empty()).is_err(),
            "{}",
            volume.name
        );
        client.flush().unwrap();
        let drive = server.status()["exports"][0]["drives"][0]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            server
                .ctl_refused(&["fail", &drive])
                .contains("--read-only")
        );
        let scrubbed = scrub(&server, &[]);
        assert_eq!(scrubbed.0, Some(0), "{scrubbed:?}");
        server.stop_well();
        let server = place.serve_stored();
        assert_holds(&server, &bytes, volume.name);
        server.scrub();
        server.stop_well();
    }
}

#[test]
fn a_store_that_is_not_there_is_not_made_to_be_served_read_only() {
    let place = StackFolder::new(RAID5, 4);
    let message = place.serve_refused(&["--read-only", "--store", &place.name("store")]);
    assert!(
        message.contains("holds no complete store") && message.contains("writing"),
        "{message}"
    );
    assert!(!place.path("store").exists());
}

#[test]
fn what_is_served_read_only_is_not_repaired() {
    let server = StackFolder::new(RAID5, 4).serve(&["--no-delay", "--read-only"]);
    assert!(
        server
            .ctl_refused(&["scrub", "--repair"])
            .contains("--read-only")
    );
    server.scrub();
    server.stop_well();
}

#[test]
fn what_a_kill_has_left_is_compared_behind_and_the_status_says_how_far_it_is() {
    let place = StackFolder::new(RAID5, 96);
    let server = place.serve_stored();
    fill(&server);
    server.kill();
    let server = place.serve(&[
        "--no-delay",
        "--store",
        &place.name("store"),
        "--metrics",
        "127.0.0.1:0",
    ]);
    let comparing = |status: &Value| status["exports"][0]["health"]["comparing"].clone();
    let first = comparing(&server.status());
    let (left, of) = (
        first["left_bytes"].as_u64().unwrap(),
        first["of_bytes"].as_u64().unwrap(),
    );
    assert!(0 < left && left <= of && of <= (4 * 96) << 20, "{first}");
    let shown = server.ctl(&["status"]);
    assert!(
        shown.contains("comparing redundancy after a kill: "),
        "{shown}"
    );
    let begun = Instant::now();
    let mut before = left;
    loop {
        let now = comparing(&server.status());
        let Some(left) = now["left_bytes"].as_u64() else {
            break;
        };
        assert!(left <= before && begun.elapsed() < PATIENCE, "{now}");
        before = left;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!server.ctl(&["status"]).contains("comparing"));
    server.scrub();
    server.stop_well();
}

/// The copy of the store's description that the next event is written to takes no room any more.
fn punch_older_copy(store: &Path) {
    const COPY_BYTES: u64 = 1 << 20;
    let path = store.join("fullstroke.store");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let places = [4096, file.metadata().unwrap().len() - COPY_BYTES];
    let number = |at: u64| {
        let mut number = [0; 8];
        file.read_exact_at(&mut number, at + 24).unwrap();
        u64::from_le_bytes(number)
    };
    let older = places.into_iter().min_by_key(|&at| number(at)).unwrap();
    let how = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, how, older, COPY_BYTES).unwrap();
}

#[test]
fn a_store_on_a_full_disk_is_served_read_only_until_there_is_room() {
    let place = StackFolder::new(RAID5, 4);
    std::fs::create_dir(place.path("disk")).unwrap();
    let Some(disk) = SmallDisk::new(&place.path("disk")) else {
        return;
    };
    let store = disk.path.join("store");
    let options = ["--no-delay", "--store", store.to_str().unwrap()];
    let server = place.serve(&options);
    let bytes = fill(&server);
    server.kill();
    punch_older_copy(&store);
    disk.fill_up();
    let server = place.serve(&options);
    assert_holds(&server, &bytes, "on a full disk");
    let mut client = server.client();
    client
        .write(0, &[1; 512], CommandFlags::empty())
        .unwrap_err();
    client.flush().unwrap();
    drop(client);
    let refused = server.ctl_refused(&["fail", "0"]);
    assert!(refused.contains("read-only"), "{refused}");
    server.stop_well();
    disk.free();
    let server = place.serve(&options);
    assert_holds(&server, &bytes, "with room again");
    let mut client = server.client();
    client
        .write(0, &bytes[..512], CommandFlags::empty())
        .unwrap();
    drop(client);
    server.scrub();
    server.stop_well();
}
