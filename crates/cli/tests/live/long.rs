//! Tests of long and unaligned requests. They do not delay others, and their bytes are right.

use crate::pattern;
use crate::server::{PATIENCE, Server, StackFolder};
use crate::stacks::{DISK, NESTED, RAID1, RAID5, RAID6};
use fullstroke_nbd::client::{ClientOptions, ExportClient};
use fullstroke_nbd::{Allocation, CommandFlags, RequestCommand};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const NONE: CommandFlags = CommandFlags::empty();

/// Returns the response times of one client while another waits for the answer to its only request.
fn meanwhile(server: &Server, other: &mut ExportClient<UnixStream>) -> Vec<Duration> {
    let mut client = server.client();
    other.stream().set_nonblocking(true).unwrap();
    let mut times = Vec::new();
    while other.stream().peek_nothing() {
        let begun = Instant::now();
        client.read(0, &mut [0; 4096]).unwrap();
        times.push(begun.elapsed());
    }
    other.stream().set_nonblocking(false).unwrap();
    times
}

trait Peek {
    /// True if no byte has arrived.
    fn peek_nothing(&self) -> bool;
}

impl Peek for UnixStream {
    fn peek_nothing(&self) -> bool {
        let mut flags = rustix::event::PollFd::new(self, rustix::event::PollFlags::IN);
        rustix::event::poll(std::slice::from_mut(&mut flags), Some(&Default::default())).unwrap()
            == 0
    }
}

#[test]
fn zeroes_that_must_be_allocated_are_written_in_parts_between_the_requests_of_others() {
    let server = StackFolder::new(RAID5, 32).serve(&["--speed", "1"]);
    let mut zeroing = server.client();
    zeroing
        .submit(
            RequestCommand::WriteZeroes,
            0,
            96 << 20,
            CommandFlags::NO_HOLE,
            &[],
        )
        .unwrap();
    let mut times = meanwhile(&server, &mut zeroing);
    assert!(zeroing.receive().unwrap().result.is_ok());
    assert!(times.len() > 2, "{times:?}");
    times.sort();
    let median = times[times.len() / 2];
    assert!(median < Duration::from_secs(2), "{times:?}");
    server.scrub();
    server.stop_well();
}

#[test]
fn long_zeroes_leave_zeroes_and_nothing_else() {
    for volume in [DISK, RAID1, RAID5, RAID6, NESTED] {
        let server = StackFolder::new(volume, 16).serve(&["--no-delay"]);
        let mut client = server.client();
        let size = client.properties().size_bytes as usize;
        for (flags, offset, length) in [
            (CommandFlags::NO_HOLE, 4 * MIB + 700, 9 * MIB + 11),
            (NONE, 300, 7 * MIB),
            (NONE, MIB, 6 * MIB),
        ] {
            let data = pattern::bytes(0, 1, size);
            data.chunks(MIB).zip(0..).for_each(|(chunk, number)| {
                client.write(number * MIB as u64, chunk, NONE).unwrap();
            });
            client
                .write_zeroes(offset as u64, length as u32, flags)
                .unwrap();
            let mut expected = data;
            expected[offset..offset + length].fill(0);
            let mut found = vec![0; size];
            for (number, chunk) in (0..).zip(found.chunks_mut(MIB)) {
                client.read(number * MIB as u64, chunk).unwrap();
            }
            pattern::assert_same(&found, &expected, volume.name);
            server.scrub();
        }
        server.stop_well();
    }
}

#[test]
fn a_write_that_overtakes_a_trim_keeps_its_bytes() {
    let place = StackFolder::new(RAID5, 64);
    let server = place.serve_stored();
    let mut client = server.client();
    let size = client.properties().size_bytes;
    let data = pattern::bytes(0, 1, 32 * MIB);
    for round in 0..4u64 {
        for number in 0..size / data.len() as u64 {
            client
                .write(number * data.len() as u64, &data, NONE)
                .unwrap();
        }
        client
            .submit(RequestCommand::Trim, 0, size as u32, NONE, &[])
            .unwrap();
        let mut others = server.client();
        let at = |number: u64| ((number * 13 + round) % (size >> 20)) << 20;
        for number in 0..16 {
            let mut found = vec![0; 4096];
            let version = pattern::bytes(at(number), 2 + round, 4096);
            others.write(at(number), &version, NONE).unwrap();
            others.read(at(number), &mut found).unwrap();
            pattern::assert_same(&found, &version, "at once");
        }
        assert!(client.receive().unwrap().result.is_ok());
        let extents = client.status(size - (1 << 20), 1 << 20, NONE).unwrap();
        assert!(
            extents
                .iter()
                .any(|extent| extent.state.contains(Allocation::HOLE)),
            "{extents:?}"
        );
    }
    server.scrub();
    server.stop_well();
}

#[test]
fn bytes_need_not_fit_the_sectors() {
    for volume in [DISK, RAID5, RAID6] {
        let server = StackFolder::new(volume, 8).serve(&["--no-delay"]);
        // This client does not negotiate block status.
        let mut client = server.client_with(&ClientOptions::default());
        let size = 2 * MIB;
        let mut expected = vec![0; size];
        let mut random = pattern::random("unaligned");
        for version in 1..400u64 {
            let offset = random.below(size as u64 - 5000) as usize;
            let length = 1 + random.below(if version % 3 == 0 { 4500 } else { 600 }) as usize;
            let part = &mut expected[offset..offset + length];
            match version % 5 {
                0 => {
                    part.fill(0);
                    client
                        .write_zeroes(offset as u64, length as u32, NONE)
                        .unwrap();
                }
                1 => {
                    part.fill(0);
                    client
                        .write_zeroes(offset as u64, length as u32, CommandFlags::NO_HOLE)
                        .unwrap();
                }
                _ => {
                    part.fill(version as u8);
                    client
                        .write(offset as u64, part, CommandFlags::FORCE_UNIT_ACCESS)
                        .unwrap();
                }
            }
            let mut found = vec![1; length + 200];
            client.read(offset as u64, &mut found).unwrap();
            pattern::assert_same(
                &found,
                &expected[offset..offset + length + 200],
                volume.name,
            );
        }
        // A trim keeps sectors that it covers only in part.
        client.trim(1000, 10).unwrap();
        client.trim(1500, 600).unwrap();
        let mut found = vec![1; 1000];
        client.read(0, &mut found).unwrap();
        pattern::assert_same(&found, &expected[..1000], volume.name);
        drop(client);
        server.scrub();
        server.stop_well();
    }
}

#[test]
fn clients_are_served_while_redundancy_is_compared_and_told_how_far_it_is() {
    let place = StackFolder::new(RAID5, 256);
    let server = place.serve(&["--no-delay"]);
    let mut client = server.client();
    let data = pattern::bytes(0, 1, 32 * MIB);
    (0..16).for_each(|number| {
        client
            .write(number * data.len() as u64, &data, NONE)
            .unwrap()
    });
    let socket = server.socket();
    let scrub = std::thread::spawn(move || {
        crate::common::success(&["ctl", socket.to_str().unwrap(), "scrub"])
    });
    let begun = Instant::now();
    let mut seen = false;
    while !scrub.is_finished() {
        client.read(0, &mut [0; 4096]).unwrap();
        seen |= server.status()["exports"][0]["scrubbed_share"]
            .as_f64()
            .is_some_and(|share| share < 1.0);
        assert!(begun.elapsed() < PATIENCE);
    }
    assert!(seen, "no progress was told");
    assert!(scrub.join().unwrap().contains("all redundancy is right"));
    assert!(server.status()["exports"][0]["scrubbed_share"].is_null());
    server.stop_well();
}
