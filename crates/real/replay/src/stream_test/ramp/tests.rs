use super::*;
use crate::stream_test::medium::{FileSource, StreamReader};
use std::io;
use std::sync::Arc;
use std::thread::sleep;

const READ: usize = 16 << 10;

/// A disk with one arm. Each read occupies the arm for the time `takes`.
struct OneArmDisk {
    takes: std::time::Duration,
    busy: Arc<Mutex<()>>,
    /// First read of a file that fails, as all later reads do.
    broken_from: u64,
}

impl OneArmDisk {
    fn new(takes_ms: u64) -> OneArmDisk {
        let takes = std::time::Duration::from_millis(takes_ms);
        OneArmDisk {
            takes,
            busy: Arc::default(),
            broken_from: u64::MAX,
        }
    }
}

impl FileSource for OneArmDisk {
    fn reader(&self) -> io::Result<Box<dyn StreamReader>> {
        let OneArmDisk {
            takes,
            busy,
            broken_from,
        } = self;
        let busy = Arc::clone(busy);
        Ok(Box::new(ArmReader {
            takes: *takes,
            busy,
            broken_from: *broken_from,
            bytes: vec![7; READ],
        }))
    }
}

struct ArmReader {
    takes: std::time::Duration,
    busy: Arc<Mutex<()>>,
    broken_from: u64,
    bytes: Vec<u8>,
}

impl StreamReader for ArmReader {
    fn read(&mut self, _: u32, read: u64) -> io::Result<&[u8]> {
        let _arm = self.busy.lock();
        sleep(self.takes);
        if read >= self.broken_from {
            return Err(io::Error::other("the device is gone"));
        }
        Ok(&self.bytes)
    }
}

/// A read holds data for 100 ms.
fn streams(streams: u32, start_up_reads: u64) -> StreamsConfig {
    let start_up = start_up_reads * READ as u64;
    let text = format!(
        r#"{{"streams": {streams}, "bit_rate": "1310720bit/s", "duration": "300ms", "start_interval": "100ms",
            "read_size": "16KiB", "start_up_buffer": "{start_up}B", "until_underrun": true}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn medium(arm: OneArmDisk) -> Medium {
    Medium {
        name: "arm".to_owned(),
        files: 4,
        reads: 1000,
        source: Box::new(arm),
    }
}

fn ran(config: &StreamsConfig, arm: OneArmDisk) -> Result<RampOutcome, StreamTestError> {
    run(
        config,
        &medium(arm),
        Seed(1),
        &AtomicBool::new(false),
        &mut |_| (),
    )
}

#[test]
fn streams_that_the_medium_can_serve_all_play() {
    let outcome = ran(&streams(3, 8), OneArmDisk::new(1)).unwrap();
    assert_eq!(
        (
            outcome.results.playing().count(),
            outcome.results.underruns()
        ),
        (3, 0)
    );
    assert_eq!(outcome.results.sustained(), 3);
    assert!(
        outcome.elapsed >= Duration::from_millis(450),
        "{:?}",
        outcome.elapsed
    );
}

/// An arm that needs 40 ms to read data for 100 ms can serve two and a half streams. On a busy host
/// players are late as well, and do not notice this at once.
#[test]
fn the_ramp_ends_where_the_medium_cannot_follow() {
    let mut seen = Vec::new();
    let ends = (0..3).any(|_| {
        let results = ran(&streams(12, 1), OneArmDisk::new(40)).unwrap().results;
        let (started, underruns) = (results.started().count(), results.underruns());
        seen.push((started, underruns, results.sustained()));
        started < 12 && underruns > 0 && results.sustained() <= 3
    });
    assert!(ends, "started, underruns, sustained: {seen:?}");
}

#[test]
fn a_read_that_fails_says_which_and_ends_the_test() {
    let arm = OneArmDisk {
        broken_from: 2,
        ..OneArmDisk::new(1)
    };
    let error = ran(&streams(1, 8), arm).err().unwrap().to_string();
    assert!(
        error.contains("read number 2 of file") && error.contains("the device is gone"),
        "{error}"
    );
}

#[test]
fn who_is_told_to_stop_says_what_there_is() {
    let (config, stop) = (streams(50, 1), AtomicBool::new(false));
    let mut seen = 0;
    let outcome = run(
        &config,
        &medium(OneArmDisk::new(1)),
        Seed(1),
        &stop,
        &mut |progress| {
            seen = progress.started;
            stop.store(seen >= 2, Ordering::SeqCst);
        },
    );
    let outcome = outcome.unwrap();
    assert!(outcome.stopped && seen >= 2 && outcome.results.started().count() < 50);
}

#[test]
fn settings_that_a_real_server_has_not_are_refused() {
    let ahead = StreamsConfig {
        read_ahead: 4,
        ..streams(1, 1)
    };
    assert!(
        ran(&ahead, OneArmDisk::new(1))
            .err()
            .unwrap()
            .to_string()
            .contains("read_ahead")
    );
    assert!(
        ran(&streams(5000, 1), OneArmDisk::new(1))
            .err()
            .unwrap()
            .to_string()
            .contains("expected up to 1000")
    );
}
