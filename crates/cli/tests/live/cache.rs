//! Tests of a cache in front of a served array.

use crate::common::refused;
use crate::pattern;
use crate::server::{PATIENCE, Server, StackFolder, text};
use crate::stacks::{JBOD, RAID5};
use fullstroke_live::{ControlRequest, ControlResponse, ask};
use fullstroke_nbd::CommandFlags;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const BLOCK: u64 = 16 << 10;

/// Returns the bytes that clients have written, as the array reports.
fn written(server: &Server) -> u64 {
    server.status()["exports"][0]["operations"]["write"]["bytes"]
        .as_u64()
        .unwrap()
}

/// Creates a stack with an array that pulls dirty data when idle.
fn pulling() -> StackFolder {
    let place = StackFolder::new(RAID5, 8);
    let stack = fs::read_to_string(&place.stack).unwrap();
    let said = "[[opportunities]]\nkind = \"idle-flush-on\"\nwait = \"20ms\"\nflush = \"256KiB\"\n";
    fs::write(&place.stack, format!("{stack}{said}")).unwrap();
    place
}

#[test]
fn an_idle_array_pulls_what_nobody_flushed() {
    let place = pulling();
    let server = place.serve(&[]);
    let cache = server.cached(&["--size", "4MiB"]);
    let mut client = cache.client();
    let begun = Instant::now();
    let blocks = 64;
    for block in 0..blocks {
        let offset = block * 5 * BLOCK;
        client
            .write(
                offset,
                &pattern::bytes(offset, 1, BLOCK as usize),
                CommandFlags::empty(),
            )
            .unwrap();
    }
    // Without PULL, write-back would start after 5 s and write pages that are 30 s old.
    while written(&server) < blocks * BLOCK {
        assert!(
            begun.elapsed() < PATIENCE,
            "{} bytes were pulled",
            written(&server)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // The blocks are on the array although the cache was killed without a flush.
    cache.kill();
    let mut direct = server.client();
    for block in 0..blocks {
        let (offset, mut found) = (block * 5 * BLOCK, vec![0; BLOCK as usize]);
        direct.read(offset, &mut found).unwrap();
        pattern::assert_same(
            &found,
            &pattern::bytes(offset, 1, BLOCK as usize),
            "a block that was pulled",
        );
    }
    server.stop_well();
}

#[test]
fn what_was_flushed_survives_a_kill_and_what_is_in_memory_is_seen_by_all() {
    let place = StackFolder::new(JBOD, 8);
    let server = place.serve(&["--no-delay"]);
    let cache = server.cached(&["--size", "1MiB"]);
    let (mut one, mut other) = (cache.client(), cache.client());
    for number in 0..400 {
        // The writes exceed the memory, overlap in part and cover partial pages.
        let offset = number % 300 * 13 * 512;
        one.write(
            offset,
            &pattern::bytes(offset, number, 13 * 512),
            CommandFlags::empty(),
        )
        .unwrap();
        let mut found = vec![0; 13 * 512];
        other.read(offset, &mut found).unwrap();
        pattern::assert_same(
            &found,
            &pattern::bytes(offset, number, 13 * 512),
            "what the other wrote",
        );
    }
    other.flush().unwrap();
    let status = one.status(4096, 8192, CommandFlags::empty()).unwrap();
    assert!(
        status.iter().all(|extent| extent.state.is_empty()),
        "all of it is data: {status:?}"
    );
    one.write(0, &[1; 512], CommandFlags::FORCE_UNIT_ACCESS)
        .unwrap();
    one.write(512, &[2; 512], CommandFlags::empty()).unwrap();
    cache.kill();
    let mut direct = server.client();
    let mut sector = [0; 512];
    direct.read(0, &mut sector).unwrap();
    assert_eq!(sector, [1; 512], "FUA");
    for number in 1..300 {
        let offset = number * 13 * 512;
        let version = if number < 100 { number + 300 } else { number };
        let mut found = vec![0; 13 * 512];
        direct.read(offset, &mut found).unwrap();
        pattern::assert_same(
            &found,
            &pattern::bytes(offset, version, 13 * 512),
            "what was flushed",
        );
    }
    // The new cache takes over the socket that the killed one left. A normal end writes all dirty
    // pages.
    let cache = server.cached(&["--size", "1MiB"]);
    cache
        .client()
        .write(1 << 20, &[3; 4096], CommandFlags::empty())
        .unwrap();
    let summary = cache.stop_well();
    assert_eq!(summary["requests"], 1);
    let mut page = [0; 4096];
    direct.read(1 << 20, &mut page).unwrap();
    assert_eq!(page, [3; 4096]);
    assert!(!place.path("cached").exists());
}

#[test]
fn a_cache_whose_server_goes_says_what_is_lost() {
    let place = StackFolder::new(JBOD, 8);
    let server = place.serve(&["--no-delay"]);
    let cache = server.cached(&["--size", "1MiB"]);
    let mut client = cache.client();
    client.write(0, &[1; 8192], CommandFlags::empty()).unwrap();
    server.kill();
    assert!(client.flush().is_err());
    let end = cache.wait();
    assert_eq!(end.status.code(), Some(2));
    assert!(
        end.complaints
            .contains("8192 bytes that were written and not flushed are lost"),
        "{}",
        end.complaints
    );
}

#[test]
fn what_cannot_be_cached_is_refused() {
    let place = StackFolder::new(JBOD, 8);
    let nowhere = place.name("nowhere");
    let said = refused(&["cache", &nowhere, "--socket", &place.name("cached")]);
    assert!(
        said.contains("nowhere") && said.contains("expected the socket of an NBD server"),
        "{said}"
    );
    let server = place.serve(&["--no-delay"]);
    let below = text(&server.socket());
    for (options, part) in [
        (["--size", "4KiB"], "64 pages"),
        (["--replacement", "lur"], "did you mean `lru`"),
        (["--export", "other"], "no such export"),
    ] {
        let said = refused(
            &[
                &["cache", &below, "--socket", &place.name("cached")],
                &options[..],
            ]
            .concat(),
        );
        assert!(said.contains(part), "{options:?}: {said}");
    }
    // Another server listens on the socket.
    let said = refused(&["cache", &below, "--socket", &below]);
    assert!(said.contains("another server listens there"), "{said}");
}

#[test]
fn the_kernels_own_pages_are_written_when_the_array_is_idle() {
    let place = pulling();
    let server = place.serve(&[]);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[1; 4 << 20]).unwrap();
    let Some(kernel) = server.heeded(file.path()) else {
        eprintln!("skipped: the kernel has no cachestat");
        return;
    };
    // The array pulls 256 KiB each time it becomes idle, so each PULL needs a request before it. A
    // listener that runs beside the loop has received most pulls by its end.
    let mut client = server.client();
    let control = PathBuf::from(format!("{}.control", text(&server.socket())));
    let mut asked = 0;
    while asked < 12 {
        client.read(asked << 16, &mut [0; 512]).unwrap();
        let question = ControlRequest::Signals {
            export: None,
            after: Some(asked),
            host: None,
            wrote: None,
        };
        let heard = ask(&control, &question).unwrap();
        let ControlResponse::Signals { next, .. } = heard else {
            panic!("{heard:?}")
        };
        assert!(next > asked, "the array does not pull");
        asked = next;
    }
    std::thread::sleep(Duration::from_millis(500));
    let summary = kernel.stop_well();
    assert!(summary["pulls"].as_u64() >= Some(1), "{summary}");
    let written = summary["written_mb"].as_f64().unwrap();
    assert!(
        written > 0.0 && written <= summary["pulled_mb"].as_f64().unwrap(),
        "{summary}"
    );
    server.stop_well();
}

#[test]
fn who_cannot_heed_says_why() {
    let place = pulling();
    let server = place.serve(&[]);
    let socket = text(&server.socket());
    assert!(refused(&["heed", &socket, "--on", "/dev/null"]).contains("block device"));
    assert!(
        refused(&["heed", "/nowhere.sock", "--on", "/tmp"]).contains("control socket of a server")
    );
    server.stop_well();
}
