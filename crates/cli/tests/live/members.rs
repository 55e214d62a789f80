//! Tests of failed and rebuilt drives during service.

use crate::pattern;
use crate::server::{Server, StackFolder};
use crate::stacks::{DEGRADED, DISK, RAID0, RAID5, RAID6, REDUNDANT, TestedVolume};
use fullstroke_nbd::client::{ClientError, ExportClient};
use fullstroke_nbd::{CommandFlags, ErrorCode};
use fullstroke_units::Random;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// A client with a copy of the export's expected bytes.
struct Mirror {
    client: ExportClient<UnixStream>,
    bytes: Vec<u8>,
    random: Random,
    version: u64,
}

impl Mirror {
    /// Fills the whole export.
    fn new(server: &Server) -> Mirror {
        let mut client = server.client();
        let bytes = pattern::bytes(0, 1, client.properties().size_bytes as usize);
        for (index, part) in bytes.chunks(1 << 20).enumerate() {
            client
                .write((index << 20) as u64, part, CommandFlags::empty())
                .unwrap();
        }
        Mirror {
            client,
            bytes,
            random: pattern::random("members"),
            version: 1,
        }
    }

    fn extent(&mut self) -> (usize, usize) {
        let sectors = self.bytes.len() as u64 / 512;
        let count = 1 + self.random.below(200);
        let first = self.random.below(sectors - count);
        (first as usize * 512, count as usize * 512)
    }

    fn write(&mut self) {
        let (offset, length) = self.extent();
        self.version += 1;
        pattern::fill(
            offset as u64,
            self.version,
            &mut self.bytes[offset..][..length],
        );
        self.client
            .write(
                offset as u64,
                &self.bytes[offset..][..length],
                CommandFlags::empty(),
            )
            .unwrap();
    }

    fn read(&mut self) {
        let (offset, length) = self.extent();
        let mut found = vec![0; length];
        self.client.read(offset as u64, &mut found).unwrap();
        pattern::assert_same(
            &found,
            &self.bytes[offset..][..length],
            &format!("read at {offset}"),
        );
    }

    fn read_all(&mut self, when: &str) {
        let mut found = vec![0; 1 << 20];
        for (index, expected) in self.bytes.chunks(1 << 20).enumerate() {
            let found = &mut found[..expected.len()];
            self.client.read((index << 20) as u64, found).unwrap();
            pattern::assert_same(found, expected, &format!("{when}, MiB {index}"));
        }
    }
}

fn count(states: &[String], state: &str) -> usize {
    states.iter().filter(|found| *found == state).count()
}

fn fails_and_is_rebuilt(volume: TestedVolume) {
    // At this speed the test sees the rebuild and still ends soon.
    let server = StackFolder::new(volume, 4).serve(&["--speed", "200"]);
    let mut mirror = Mirror::new(&server);
    for (failed, drive) in (1..).zip(volume.expendable) {
        let message = server.ctl(&["fail", drive]);
        assert!(
            message.contains(&format!("drive {drive} has failed")),
            "{message}"
        );
        assert_eq!(count(&server.states(), "failed"), failed);
        mirror.read_all(&format!("{} without {drive}", volume.name));
        (0..50).for_each(|_| mirror.write());
        mirror.read_all(&format!("{} written without {drive}", volume.name));
    }
    // 4 MiB take 20 s of the world's time and 0.1 s of real time. So requests come during the
    // rebuild, unless the host pauses.
    volume
        .expendable
        .iter()
        .for_each(|drive| drop(server.ctl(&["restore", drive, "--rate", "200KiB"])));
    assert_eq!(count(&server.states(), "failed"), 0);
    while count(&server.states(), "alive") < server.states().len() {
        for _ in 0..10 {
            mirror.write();
            mirror.read();
        }
    }
    mirror.read_all(&format!("{} rebuilt", volume.name));
    server.scrub();
    server.stop_well();
}

#[test]
fn every_layout_with_redundancy_serves_without_drives_and_while_they_are_rebuilt() {
    REDUNDANT.into_iter().for_each(fails_and_is_rebuilt);
}

#[test]
fn what_was_rebuilt_holds_when_the_next_drive_fails() {
    let server = StackFolder::new(RAID5, 4).serve(&["--no-delay"]);
    let mut mirror = Mirror::new(&server);
    for drive in ["0", "1", "2", "3", "4"] {
        server.ctl(&["fail", drive]);
        mirror.write();
        mirror.read_all(&format!("without {drive}"));
        server.ctl(&["restore", drive]);
        server.wait_for_rebuild();
    }
    server.scrub();
    server.stop_well();
}

#[test]
fn drives_whose_cables_fell_out_come_back_with_their_bytes() {
    let server = StackFolder::new(RAID5, 4).serve(&["--no-delay"]);
    let mut mirror = Mirror::new(&server);
    server.ctl(&["fail", "0"]);
    server.ctl(&["fail", "3"]);
    let message = server.ctl(&["restore", "3", "--re-add"]);
    assert!(
        message.contains("drive 3 is re-added with its bytes"),
        "{message}"
    );
    mirror.read_all("degraded again");
    server.ctl(&["restore", "0", "--re-add"]);
    assert_eq!(count(&server.states(), "alive"), server.states().len());
    mirror.write();
    mirror.read_all("whole again");
    server.scrub();
    server.ctl(&["fail", "1"]);
    mirror.write();
    let socket = server.socket();
    let refused =
        crate::common::fullstroke(&["ctl", socket.to_str().unwrap(), "restore", "1", "--re-add"]);
    assert_ne!(refused.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("restore it as an empty member"),
        "{refused:?}"
    );
    mirror.read_all("still degraded");
    server.stop_well();
}

fn is_input_output_error(result: Result<(), ClientError>) -> bool {
    matches!(result, Err(ClientError::Failed { failure, .. }) if failure.code == ErrorCode::InputOutput)
}

#[test]
fn what_is_lost_is_an_error_and_never_wrong() {
    for (volume, drives) in [
        (RAID0, &["1"][..]),
        (RAID5, &["0", "3"]),
        (RAID6, &["0", "1", "5"]),
    ] {
        let server = StackFolder::new(volume, 4).serve(&["--no-delay"]);
        let mut mirror = Mirror::new(&server);
        let refused = drives.iter().any(|drive| {
            let answer = crate::common::fullstroke(&[
                "ctl",
                server.socket().to_str().unwrap(),
                "fail",
                drive,
            ]);
            answer.status.code() != Some(0)
        });
        if refused {
            // Only a volume without redundancy may refuse.
            assert_eq!(volume.name, "raid0");
            continue;
        }
        let (mut lost, mut right) = (0, 0);
        let mut found = vec![0; 4096];
        for (index, expected) in mirror.bytes.chunks(4096).enumerate() {
            match mirror.client.read((index * 4096) as u64, &mut found) {
                Ok(()) => {
                    pattern::assert_same(&found, expected, volume.name);
                    right += 1;
                }
                Err(error) => {
                    assert!(is_input_output_error(Err(error)));
                    lost += 1;
                }
            }
        }
        assert!(lost > 0, "{}: {lost} lost, {right} right", volume.name);
        server.stop_well();
    }
}

#[test]
fn orders_that_make_no_sense_change_nothing() {
    let server = StackFolder::new(RAID5, 4).serve(&["--no-delay"]);
    let mut mirror = Mirror::new(&server);
    for (order, part) in [
        (&["fail", "5"][..], "there are: 0, 1, 2, 3, 4"),
        (&["fail", "0.1"], "there is no drive `0.1`"),
        (&["restore", "2"], ""),
        (
            &["fail", "1", "--export", "other"],
            "there is no export `other`",
        ),
    ] {
        let message = server.ctl_refused(order);
        assert!(message.contains(part), "{order:?}: {message}");
    }
    server.ctl(&["fail", "1"]);
    server.ctl_refused(&["fail", "1"]);
    assert_eq!(count(&server.states(), "alive"), 4);
    mirror.read_all("after refusals");
    server.stop_well();
    let alone = StackFolder::new(DISK, 4).serve(&["--no-delay"]);
    assert!(!alone.ctl_refused(&["fail", "0"]).is_empty());
    alone.stop_well();
}

#[test]
fn a_rebuild_goes_on_where_the_last_server_stood() {
    for kill in [false, true] {
        let place = StackFolder::new(RAID5, 4);
        let store = place.name("store");
        let server = place.serve(&["--speed", "50", "--store", &store]);
        let mut mirror = Mirror::new(&server);
        server.ctl(&["fail", "2"]);
        server.ctl(&["restore", "2", "--rate", "100KiB"]);
        mirror.write();
        assert_eq!(server.states()[2], "rebuilding");
        if kill {
            server.kill();
        } else {
            server.stop_well();
        }
        let server = place.serve_stored();
        mirror.client = server.client();
        let begun = Instant::now();
        server.wait_for_rebuild();
        assert_eq!(server.states(), ["alive"; 5], "after {:?}", begun.elapsed());
        mirror.read_all("after the restart");
        server.scrub();
        server.ctl(&["fail", "0"]);
        mirror.read_all("from what was rebuilt");
        server.stop_well();
    }
}

/// Regression test. After two failures of a RAID 5 and one restore, the drive answered at once, and
/// reads returned garbage. The stack file says that a drive has failed, but the store knows better.
/// After a restart the layers still counted the drive as failed, so `fail` was refused.
#[test]
fn a_drive_that_was_rebuilt_is_alive_whatever_the_stack_file_says() {
    let place = StackFolder::new(DEGRADED, 4);
    let server = place.serve_stored();
    let mut mirror = Mirror::new(&server);
    assert_eq!(server.states()[1], "failed");
    server.ctl(&["restore", "1"]);
    server.wait_for_rebuild();
    server.stop_well();
    let server = place.serve_stored();
    mirror.client = server.client();
    assert_eq!(count(&server.states(), "alive"), 4);
    mirror.read_all("restarted");
    let ios = |server: &Server| {
        server.status()["exports"][0]["drives"][1]["ios"]
            .as_u64()
            .expect("drives count their I/O")
    };
    assert!(ios(&server) > 0, "the drive is read");
    server.ctl(&["fail", "1"]);
    mirror.read_all("failed again");
    server.stop_well();
}

#[test]
fn beyond_its_redundancy_a_volume_stays_failed_until_the_loss_is_accepted() {
    let server = StackFolder::new(RAID5, 4).serve(&["--no-delay"]);
    let mut mirror = Mirror::new(&server);
    assert!(server.ctl(&["status"]).contains("\nwhole\n"));
    server.ctl(&["fail", "1"]);
    assert!(server.ctl(&["status"]).contains("\ndegraded\n"));
    server.ctl(&["fail", "3"]);
    assert!(server.ctl(&["status"]).contains("\nfailed\n"));
    // Earlier writes may be lost, so the next flush fails once.
    assert!(is_input_output_error(mirror.client.flush()));
    mirror.client.flush().unwrap();
    for drive in ["1", "3"] {
        let reason = server.ctl_refused(&["restore", drive]);
        assert!(
            reason.contains("has failed") && reason.contains("--accept-data-loss"),
            "{reason}"
        );
    }
    let mut right = 0;
    let mut look = |mirror: &mut Mirror, when: &str| {
        let mut found = vec![0; 4096];
        let mut lost = 0;
        for (index, expected) in mirror.bytes.chunks(4096).enumerate() {
            match mirror.client.read((index * 4096) as u64, &mut found) {
                Ok(()) => pattern::assert_same(&found, expected, when),
                Err(error) => {
                    assert!(is_input_output_error(Err(error)), "{when}");
                    lost += 1;
                }
            }
        }
        right += mirror.bytes.len() / 4096 - lost;
        lost
    };
    let lost = look(&mut mirror, "failed");
    assert!(lost > 0);
    server.ctl(&["restore", "1", "--accept-data-loss"]);
    server.wait_for_rebuild();
    assert!(server.ctl(&["status"]).contains("\ndegraded, data lost\n"));
    assert_eq!(
        look(&mut mirror, "degraded"),
        lost,
        "what is lost stays an error"
    );
    server.ctl(&["restore", "3"]);
    server.wait_for_rebuild();
    assert_eq!(
        look(&mut mirror, "whole again"),
        lost,
        "what is lost stays an error"
    );
    for (index, part) in mirror.bytes.chunks(1 << 20).enumerate() {
        mirror
            .client
            .write((index << 20) as u64, part, CommandFlags::empty())
            .unwrap();
    }
    mirror.read_all("written again");
    server.scrub();
    server.stop_well();
}

#[test]
fn the_speed_of_rebuilds_is_bounded_while_they_go_on_and_after_a_restart() {
    let place = StackFolder::new(RAID5, 4);
    let store = place.name("store");
    let server = place.serve(&["--speed", "10", "--store", &store]);
    let mut mirror = Mirror::new(&server);
    server.ctl(&["fail", "2"]);
    let message = server.ctl(&["speed", "--max", "10KiB", "--min", "5KiB"]);
    assert!(
        message.contains("10KiB a second at most") && message.contains("below 5KiB"),
        "{message}"
    );
    server.ctl(&["restore", "2"]);
    mirror.write();
    assert_eq!(server.states()[2], "rebuilding");
    server.stop_well();
    // At 10 KiB/s and speed 10 the rebuild takes more than a minute.
    let server = place.serve(&["--speed", "10", "--store", &store]);
    mirror.client = server.client();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(server.states()[2], "rebuilding", "it keeps its speed");
    server.ctl(&["speed"]);
    server.wait_for_rebuild();
    mirror.read_all("rebuilt");
    server.scrub();
    server.stop_well();
    let alone = StackFolder::new(DISK, 4).serve(&["--no-delay"]);
    assert!(!alone.ctl_refused(&["speed", "--max", "1MiB"]).is_empty());
    alone.stop_well();
}

#[test]
fn the_status_says_how_fast_a_rebuild_is_and_how_long_it_takes() {
    let server = StackFolder::new(RAID5, 4).serve(&["--speed", "5"]);
    server.ctl(&["fail", "2"]);
    server.ctl(&["restore", "2", "--rate", "400KiB"]);
    let begun = Instant::now();
    loop {
        let status = server.ctl(&["status"]);
        let line = status
            .lines()
            .find(|line| line.starts_with("rebuilding 2: "))
            .map(str::to_owned);
        if line
            .as_ref()
            .is_some_and(|line| line.contains(" MB/s, ") && line.ends_with(" s left"))
        {
            break;
        }
        assert!(begun.elapsed().as_secs() < 20, "{status}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    server.stop_well();
}
