//! Block devices with faults.
//!
//! A disk is memory behind an NBD server in this process. nbdfuse shows the disk as a file, and a
//! loop device past the page cache makes the file a block device. So errors come from the kernel,
//! and io_uring works. Faults are unreadable sectors, refused writes or flushes, a vanishing
//! device, and power loss.
//!
//! **Power loss** follows the simulated devices of `crates/real/store/src/power.rs`: any unflushed
//! sector may be durable or not, in any of its versions.

use crate::programs::{command, installed, run};
use crate::server::{PATIENCE, text};
use fullstroke_nbd::{
    CommandFlags, Connection, ConnectionEvent, ErrorCode, Export, Exports, Features, NbdRequest,
    RequestCommand,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const SECTOR: usize = 512;

/// splitmix64 (Steele, Lea, Flood, 2014).
#[derive(Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }
}

/// Power supply of several disks: the number of remaining writes and flushes.
#[derive(Debug)]
pub struct PowerSupply(AtomicI64);

impl PowerSupply {
    pub fn on() -> Arc<PowerSupply> {
        Arc::new(PowerSupply(AtomicI64::new(i64::MAX)))
    }

    /// Lets the power fail after `count` writes and flushes of all disks.
    pub fn fails_after(&self, count: u64) {
        self.0.store(count as i64, Ordering::SeqCst);
    }

    pub fn comes_back(&self) {
        self.0.store(i64::MAX, Ordering::SeqCst);
    }

    pub fn is_off(&self) -> bool {
        self.0.load(Ordering::SeqCst) <= 0
    }

    /// Counts a write or flush. True if the power still suffices.
    fn use_some(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) > 0
    }
}

/// Current faults of a disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Error of all writes.
    pub writes: Option<ErrorCode>,
    /// Error of all flushes.
    pub flushes: Option<ErrorCode>,
    /// True if flushes succeed without making anything durable.
    pub lies: bool,
}

/// Counts of refused requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
}

struct Medium {
    power: Arc<PowerSupply>,
    state: Mutex<DiskContent>,
    /// Number of received requests.
    requests: AtomicU64,
}

#[derive(Default)]
struct DiskContent {
    durable: Vec<u8>,
    current: Vec<u8>,
    /// Versions of each sector since the last flush.
    cached: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    /// Sectors that are unreadable until the next write.
    bad: BTreeSet<usize>,
    faults: Faults,
    refused: Refused,
}

impl Medium {
    fn state(&self) -> MutexGuard<'_, DiskContent> {
        self.state.lock().unwrap()
    }

    fn carry_out(
        &self,
        request: &NbdRequest,
        payload: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state();
        let (at, length) = (request.offset_bytes as usize, request.length_bytes as usize);
        match request.command {
            RequestCommand::Read => {
                if self.power.is_off()
                    || state
                        .bad
                        .range(at / SECTOR..(at + length) / SECTOR)
                        .next()
                        .is_some()
                {
                    state.refused.reads += 1;
                    return Err(ErrorCode::InputOutput);
                }
                into.clear();
                into.extend_from_slice(&state.current[at..at + length]);
                return Ok(());
            }
            RequestCommand::Cache | RequestCommand::BlockStatus => return Ok(()),
            RequestCommand::Flush => {}
            RequestCommand::Write => {
                if let Some(error) = state.faults.writes {
                    state.refused.writes += 1;
                    return Err(error);
                }
                // A write during the power failure may be durable in part.
                if !self.power.is_off() {
                    state.write(at, payload);
                }
            }
            RequestCommand::Trim | RequestCommand::WriteZeroes => {
                if let Some(error) = state.faults.writes {
                    state.refused.writes += 1;
                    return Err(error);
                }
                if !self.power.is_off() {
                    state.write(at, &vec![0; length]);
                }
            }
        }
        if !self.power.use_some() {
            return Err(ErrorCode::InputOutput);
        }
        if request.command == RequestCommand::Flush
            || request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS)
        {
            if let Some(error) = state.faults.flushes {
                state.refused.flushes += 1;
                return Err(error);
            }
            if !state.faults.lies {
                let state = &mut *state;
                for &sector in state.cached.keys() {
                    let range = sector * SECTOR..(sector + 1) * SECTOR;
                    state.durable[range.clone()].copy_from_slice(&state.current[range]);
                }
                state.cached.clear();
            }
        }
        Ok(())
    }

    /// Serves one client until the connection ends.
    fn serve(&self, exports: &Arc<Exports>, mut stream: UnixStream) -> std::io::Result<()> {
        let mut connection = Connection::new(Arc::clone(exports));
        let mut data = Vec::new();
        loop {
            while let Some(event) = connection.next_event().map_err(std::io::Error::other)? {
                let ConnectionEvent::Request { request, payload } = event else {
                    continue;
                };
                match self.carry_out(&request, &payload, &mut data) {
                    Err(error) => {
                        connection.reply_error(&request, error, "a fault that was planted")
                    }
                    Ok(()) if request.command == RequestCommand::Read => {
                        connection.reply_read(&request, |into| {
                            into.copy_from_slice(&data);
                            Ok(())
                        })
                    }
                    Ok(()) if request.command == RequestCommand::BlockStatus => {
                        connection.reply_status(&request, [])
                    }
                    Ok(()) => connection.reply_done(&request),
                }
                connection.recycle(payload);
            }
            let sent = connection.output().len();
            stream.write_all(connection.output())?;
            connection.consumed(sent);
            if connection.has_ended() {
                return Ok(());
            }
            let read = stream.read(connection.space())?;
            if read == 0 {
                return Ok(());
            }
            connection.filled(read);
        }
    }
}

impl DiskContent {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        for (number, sector) in (at / SECTOR..).zip(bytes.chunks_exact(SECTOR)) {
            self.cached
                .entry(number)
                .or_default()
                .push(sector.try_into().unwrap());
            self.bad.remove(&number);
        }
        self.current[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// A faulty block device. Dropping the value removes the devices again.
pub struct FaultyDisk {
    medium: Arc<Medium>,
    folder: tempfile::TempDir,
    fuse: Child,
    device: Option<String>,
}

impl FaultyDisk {
    /// Creates `count` disks of `mib` MiB with a common power supply. Prints a note and returns
    /// `None` if the host lacks the means.
    pub fn several(count: usize, mib: usize, power: &Arc<PowerSupply>) -> Option<Vec<FaultyDisk>> {
        if !installed(&["nbdfuse", "losetup", "fusermount3"]) {
            return None;
        }
        (0..count).map(|_| FaultyDisk::new(mib, power)).collect()
    }

    fn new(mib: usize, power: &Arc<PowerSupply>) -> Option<FaultyDisk> {
        let bytes = vec![0; mib << 20];
        let state = DiskContent {
            durable: bytes.clone(),
            current: bytes,
            ..DiskContent::default()
        };
        let medium = Arc::new(Medium {
            power: Arc::clone(power),
            state: Mutex::new(state),
            requests: AtomicU64::new(0),
        });
        let folder = tempfile::tempdir().unwrap();
        let (socket, file) = (folder.path().join("disk.sock"), folder.path().join("disk"));
        let listener = UnixListener::bind(&socket).unwrap();
        // A single connection keeps the order of requests, so a flush covers all writes answered
        // before.
        let mut export = Export::new("", (mib << 20) as u64);
        export.features -= Features::MULTIPLE_CONNECTIONS;
        let exports = Arc::new(Exports::new(vec![export]).unwrap());
        let served = Arc::clone(&medium);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (served, exports) = (Arc::clone(&served), Arc::clone(&exports));
                std::thread::spawn(move || served.serve(&exports, stream));
            }
        });
        fs::write(&file, "").unwrap();
        let uri = format!("nbd+unix:///?socket={}", text(&socket));
        let fuse = command("nbdfuse")
            .arg(&file)
            .arg(uri)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut disk = FaultyDisk {
            medium,
            folder,
            fuse,
            device: None,
        };
        let begun = Instant::now();
        // The mount hides the empty file.
        while fs::metadata(&file).map_or(0, |metadata| metadata.len()) == 0 {
            if disk.fuse.try_wait().unwrap().is_some() {
                eprintln!("skipped: nbdfuse cannot show a file here");
                return None;
            }
            assert!(begun.elapsed() < PATIENCE, "nbdfuse shows nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
        let set_up = run(
            "losetup",
            &["--find", "--show", "--direct-io=on", &text(&file)],
        );
        if !set_up.status.success() {
            eprintln!(
                "skipped: no loop device: {}",
                String::from_utf8_lossy(&set_up.stderr).trim()
            );
            return None;
        }
        let device = String::from_utf8(set_up.stdout).unwrap().trim().to_owned();
        let direct = device.replace("/dev/", "/sys/block/") + "/loop/dio";
        disk.device = Some(device);
        // losetup succeeds even if the kernel reads through the page cache.
        if fs::read_to_string(direct).map_or(true, |dio| dio.trim() != "1") {
            eprintln!(
                "skipped: loop devices keep what they read here (no direct I/O to nbdfuse's files)"
            );
            return None;
        }
        Some(disk)
    }

    pub fn device(&self) -> String {
        self.device.clone().unwrap()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    pub fn faults(&self, faults: Faults) {
        self.medium.state().faults = faults;
    }

    /// Makes these bytes unreadable until the next write.
    pub fn spoil(&self, at: usize, bytes: usize) {
        self.medium
            .state()
            .bad
            .extend(at / SECTOR..(at + bytes).div_ceil(SECTOR));
    }

    pub fn unreadable_sectors(&self) -> usize {
        self.medium.state().bad.len()
    }

    pub fn refused(&self) -> Refused {
        self.medium.state().refused
    }

    /// Returns the current contents of the medium.
    pub fn holds(&self, at: usize, bytes: usize) -> Vec<u8> {
        self.medium.state().current[at..at + bytes].to_vec()
    }

    /// Kills the server of the disk. Users of the device get errors from the kernel.
    pub fn goes(&mut self) {
        self.fuse.kill().unwrap();
        self.fuse.wait().unwrap();
    }

    /// Waits until no request has come for 60 ms. Then all transfers in the kernel have ended.
    pub fn rests(&self) {
        loop {
            let before = self.medium.requests.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(60));
            if before == self.medium.requests.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Loses the power. Of the unflushed sectors, `percent` per cent become durable. Returns the
    /// number of unflushed sectors.
    pub fn loses_power(&self, random: &mut SplitMix, percent: u64) -> usize {
        let mut state = self.medium.state();
        let cached = std::mem::take(&mut state.cached);
        for (sector, versions) in &cached {
            if random.below(100) < percent {
                let landed = &versions[random.below(versions.len() as u64) as usize];
                state.durable[sector * SECTOR..][..SECTOR].copy_from_slice(landed);
            }
        }
        state.current = state.durable.clone();
        cached.len()
    }
}

impl Drop for FaultyDisk {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            run("losetup", &["--detach", device]);
        }
        let begun = Instant::now();
        loop {
            run("fusermount3", &["-u", &text(&self.file())]);
            // After a killed server the mount stays as long as the loop device exists.
            if self.fuse.try_wait().is_ok_and(|ended| ended.is_some()) && !is_mounted(&self.file())
            {
                break;
            }
            // The loop device vanishes a moment after it was detached.
            if begun.elapsed() > Duration::from_secs(10) {
                run("fusermount3", &["-u", "-z", &text(&self.file())]);
                let _ = self.fuse.kill();
                let _ = self.fuse.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// True if a file system is mounted at `at`.
pub fn is_mounted(at: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(&text(at)))
}

#[test]
fn a_disk_with_faults_has_them_and_loses_what_was_not_flushed() {
    let power = PowerSupply::on();
    let Some(disks) = FaultyDisk::several(1, 1, &power) else {
        return;
    };
    let disk = &disks[0];
    // Direct I/O needs aligned memory, which `dd` provides.
    let dd = |arguments: &[&str]| {
        run("dd", &[&["bs=4096", "status=none"], arguments].concat())
            .status
            .success()
    };
    let (from, to) = (
        format!("if={}", disk.device()),
        format!("of={}", disk.device()),
    );
    let file = fs::OpenOptions::new()
        .write(true)
        .open(disk.device())
        .unwrap();
    let put = |skip: &str, flags: &str| dd(&["if=/dev/urandom", &to, "count=1", skip, flags]);
    assert!(put("seek=0", "oflag=direct") && put("seek=1", "oflag=direct"));
    file.sync_data().unwrap();
    let flushed = disk.holds(0, 8192);
    assert!(put("seek=1", "oflag=direct"));
    let written = disk.holds(0, 8192);
    assert!(flushed[..4096] == written[..4096] && flushed[4096..] != written[4096..]);
    // One block of 4096 bytes was not flushed.
    assert_eq!(disk.loses_power(&mut SplitMix(1), 0), 8);
    assert!(
        disk.holds(0, 8192) == flushed,
        "what was flushed is there, and nothing else"
    );
    assert!(put("seek=1", "oflag=direct"));
    let written = disk.holds(0, 8192);
    disk.loses_power(&mut SplitMix(1), 100);
    assert!(disk.holds(0, 8192) == written, "it may all have landed");
    disk.spoil(4096, 512);
    assert!(dd(&[&from, "of=/dev/null", "count=1", "iflag=direct"]));
    assert!(!dd(&[
        &from,
        "of=/dev/null",
        "count=1",
        "skip=1",
        "iflag=direct"
    ]));
    assert!(disk.refused().reads > 0 && put("seek=1", "oflag=direct"));
    assert!(
        dd(&[&from, "of=/dev/null", "count=1", "skip=1", "iflag=direct"]),
        "it was written"
    );
    disk.faults(Faults {
        writes: Some(ErrorCode::NoSpace),
        ..Faults::default()
    });
    let error = run(
        "dd",
        &["if=/dev/zero", &to, "bs=4096", "count=1", "oflag=direct"],
    );
    assert!(
        String::from_utf8_lossy(&error.stderr).contains("No space left on device"),
        "{error:?}"
    );
    disk.faults(Faults {
        flushes: Some(ErrorCode::InputOutput),
        ..Faults::default()
    });
    assert!(put("seek=0", "oflag=direct"));
    // EIO.
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
    disk.faults(Faults::default());
    power.fails_after(1);
    assert!(put("seek=0", "oflag=direct") && !put("seek=0", "oflag=direct") && power.is_off());
    assert!(!dd(&[&from, "of=/dev/null", "count=1", "iflag=direct"]));
    power.comes_back();
    assert!(put("seek=0", "oflag=direct"));
}
