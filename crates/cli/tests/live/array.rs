//! Tests of arrays on files: creation, service, kills, repair and refusals.

use crate::common::{fullstroke, refused, success};
use crate::metrics::samples_at;
use crate::server::{PATIENCE, text};
use fullstroke_nbd::CommandFlags;
use fullstroke_nbd::client::{ClientOptions, ExportClient};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Member files, and the socket of the array.
pub struct MemberFiles {
    pub folder: tempfile::TempDir,
    /// Disk with the members. `None` means the folder.
    disk: Option<SmallDisk>,
    /// Devices that serve as members. Empty for files.
    devices: Vec<String>,
}

/// A file system of 64 MiB in memory, mounted for a process that does nothing else; others see it
/// through that process.
pub struct SmallDisk {
    holder: Child,
    pub path: PathBuf,
}

impl SmallDisk {
    /// `None`, with a word, where the host allows no such mount.
    pub fn new(at: &Path) -> Option<SmallDisk> {
        // `cat` ends when this process closes its input, so no holder outlives the test.
        let script = "mount -t tmpfs -o size=64m tmpfs \"$1\" && echo mounted && exec cat";
        let holder = Command::new("unshare")
            .args([
                "--mount",
                "--map-root-user",
                "sh",
                "-c",
                script,
                "sh",
                &text(at),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mounted = holder.ok().and_then(|mut holder| {
            let mut line = String::new();
            BufReader::new(holder.stdout.take()?)
                .read_line(&mut line)
                .ok()?;
            let root = PathBuf::from(format!("/proc/{}/root", holder.id()));
            let disk = SmallDisk {
                holder,
                path: root.join(at.strip_prefix("/").ok()?),
            };
            (line == "mounted\n" && fs::read_dir(&disk.path).is_ok()).then_some(disk)
        });
        if mounted.is_none() {
            eprintln!(
                "skipped: the host allows no file system in memory for one process (unshare, mount -t tmpfs)"
            );
        }
        mounted
    }

    /// Fills the file system except for `mib` MiB, until [`free`](SmallDisk::free).
    fn leave(&self, mib: u64) {
        let file = File::create(self.path.join("ballast")).unwrap();
        rustix::fs::fallocate(
            &file,
            rustix::fs::FallocateFlags::empty(),
            0,
            (64 - mib) << 20,
        )
        .unwrap();
    }

    /// Takes all the room that is left, to the last block, until [`free`](SmallDisk::free).
    pub fn fill_up(&self) {
        let file = File::create(self.path.join("ballast")).unwrap();
        let block = [7; 4096];
        let mut at = 0;
        while file.write_all_at(&block, at).is_ok() {
            at += block.len() as u64;
        }
    }

    /// Gives that room back.
    pub fn free(&self) {
        fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A served array.
pub struct ServedArray {
    pub child: Child,
    pub socket: PathBuf,
    /// Address of the metrics, if requested.
    pub metrics: Option<String>,
}

impl MemberFiles {
    /// Creates a place with block devices as members.
    pub fn over(devices: Vec<String>) -> MemberFiles {
        MemberFiles {
            folder: tempfile::tempdir().unwrap(),
            disk: None,
            devices,
        }
    }

    pub fn new(members: usize) -> MemberFiles {
        let place = MemberFiles::over(Vec::new());
        place.make(members, 4);
        place
    }

    /// Creates a place with members of 16 MiB on a disk of 64 MiB.
    fn on_small_disk(members: usize) -> Option<MemberFiles> {
        let folder = tempfile::tempdir().unwrap();
        let disk = Some(SmallDisk::new(folder.path())?);
        let place = MemberFiles {
            folder,
            disk,
            devices: Vec::new(),
        };
        place.make(members, 16);
        Some(place)
    }

    fn make(&self, members: usize, mib: u64) {
        for member in 0..members {
            File::create(self.member(member))
                .unwrap()
                .set_len(mib << 20)
                .unwrap();
        }
    }

    pub fn member(&self, index: usize) -> String {
        if let Some(device) = self.devices.get(index) {
            return device.clone();
        }
        let path = self
            .disk
            .as_ref()
            .map_or(self.folder.path(), |disk| &disk.path);
        text(&path.join(format!("member{index}")))
    }

    pub fn members(&self, indices: &[usize]) -> Vec<String> {
        indices.iter().map(|&index| self.member(index)).collect()
    }

    pub fn create(&self, indices: &[usize], options: &[&str]) -> Vec<String> {
        let chunk = ["--chunk", "16KiB"];
        // Only striped layouts have chunks.
        let chunk = if options.contains(&"raid1") || options.contains(&"lzvs") {
            &[][..]
        } else {
            &chunk
        };
        ["array", "create", "vol", "--region", "64KiB"]
            .iter()
            .chain(chunk)
            .chain(options)
            .map(|&argument| argument.to_owned())
            .chain(self.members(indices))
            .collect()
    }

    /// Assembles the array and waits until it is ready. Returns the server's error message on
    /// failure.
    pub fn assemble(&self, indices: &[usize], options: &[&str]) -> Result<ServedArray, String> {
        self.assemble_with(indices, options, &[])
    }

    fn assemble_with(
        &self,
        indices: &[usize],
        options: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<ServedArray, String> {
        let socket = self.folder.path().join("vol.sock");
        let mut child = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
            .args(["array", "assemble", "--socket", &text(&socket)])
            .args(options)
            .args(self.members(indices))
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut metrics = None;
        let ready = lines.by_ref().map_while(Result::ok).any(|line| {
            metrics = line
                .strip_prefix("metrics at ")
                .map(str::to_owned)
                .or(metrics.take());
            line.starts_with("orders at ")
        });
        if !ready {
            let output = child.wait_with_output().unwrap();
            return Err(String::from_utf8(output.stderr).unwrap());
        }
        // A thread reads the rest of the output, because a full pipe would block the server.
        std::thread::spawn(move || lines.map_while(Result::ok).count());
        Ok(ServedArray {
            child,
            socket,
            metrics,
        })
    }
}

impl ServedArray {
    pub fn client(&self) -> ExportClient<UnixStream> {
        ExportClient::connect(
            UnixStream::connect(&self.socket).unwrap(),
            &ClientOptions::default(),
        )
        .unwrap()
    }

    pub fn status(&self) -> Value {
        let output = fullstroke(&["array", "status", "--json", &text(&self.socket)]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub fn until(&self, state: &str) {
        let began = Instant::now();
        while self.status()["state"] != state {
            assert!(
                began.elapsed() < PATIENCE,
                "{} is not {state}",
                self.status()
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    pub fn stop(mut self) {
        success(&["array", "stop", &text(&self.socket)]);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    /// Stops a halted array and returns the error message.
    pub fn stop_halted(mut self) -> String {
        success(&["array", "stop", &text(&self.socket)]);
        assert_eq!(self.child.wait().unwrap().code(), Some(2));
        std::io::read_to_string(self.child.stderr.take().unwrap()).unwrap()
    }

    /// Waits for the end of a server that another thread has killed.
    pub fn kill_was_sent(mut self) {
        self.child.wait().unwrap();
    }

    pub fn kill(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ServedArray {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

pub fn strings(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

pub fn pattern(length: usize, tag: u8) -> Vec<u8> {
    (0..length)
        .map(|at| (at / 512 * 7 + at) as u8 ^ tag)
        .collect()
}

#[test]
fn an_array_keeps_its_bytes_through_kills_failures_and_other_orders_of_its_members() {
    let place = MemberFiles::new(5);
    success(&strings(&place.create(
        &[0, 1, 2, 3, 4],
        &["--layout", "raid5", "--spares", "1"],
    )));
    let hook = text(&place.folder.path().join("hook"));
    let command = format!("echo $FULLSTROKE_EVENT $FULLSTROKE_SLOT $FULLSTROKE_STATE >> {hook}");
    let served = place
        .assemble(&[2, 4, 0, 3, 1], &["--on-failure", &command])
        .unwrap();
    let mut client = served.client();
    let size = client.properties().size_bytes as usize;
    let bytes = pattern(size, 1);
    client.write(0, &bytes, CommandFlags::empty()).unwrap();
    client
        .write(70_001, &pattern(999, 9), CommandFlags::FORCE_UNIT_ACCESS)
        .unwrap();
    let mut expected = bytes;
    expected[70_001..71_000].copy_from_slice(&pattern(999, 9));
    // A kill loses no answered write, because the host keeps the pages.
    served.kill();
    let served = place.assemble(&[0, 1, 2, 3, 4], &[]).unwrap();
    let mut read = vec![0; size];
    served.client().read(0, &mut read).unwrap();
    assert!(read == expected, "after a kill");
    let socket = text(&served.socket);
    assert!(success(&["array", "scrub", &socket]).contains(" 0 sectors of parity"));
    success(&["array", "fail", &socket, "1"]);
    served.until("whole");
    assert!(success(&["array", "status", &socket]).contains("1  alive  "));
    served.client().read(0, &mut read).unwrap();
    assert!(read == expected, "on the spare");
    success(&["array", "fail", &socket, "2"]);
    assert_eq!(served.status()["state"], "degraded");
    served.client().read(0, &mut read).unwrap();
    assert!(read == expected, "without a member");
    assert!(refused(&["array", "fail", &socket, "0"]).contains("would lose data"));
    served
        .client()
        .write(0, &pattern(4096, 5), CommandFlags::empty())
        .unwrap();
    expected[..4096].copy_from_slice(&pattern(4096, 5));
    assert!(success(&["array", "add", &socket, &place.member(2)]).contains("the missed changes"));
    served.until("whole");
    assert!(success(&["array", "scrub", &socket]).contains(" 0 sectors of parity"));
    served.stop();
    let examined = success(&["array", "examine", &place.member(3)]);
    assert!(
        examined.contains("place 3 of `vol`") && examined.contains("stopped in order"),
        "{examined}"
    );
    let served = place
        .assemble(&[4, 3, 2, 0], &["--on-failure", &command])
        .unwrap();
    served.client().read(0, &mut read).unwrap();
    assert!(read == expected);
    success(&["array", "fail", &text(&served.socket), "3"]);
    let began = Instant::now();
    // The command creates the file before it writes the line.
    let told = || fs::read_to_string(&hook).is_ok_and(|text| text.ends_with('\n'));
    while !told() && began.elapsed() < PATIENCE {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(&hook).unwrap(), "failed 3 degraded\n");
    served.stop();
    success(&["array", "destroy", &place.member(0), &place.member(2)]);
    assert!(refused(&["array", "examine", &place.member(9)]).contains("member9"));
}

#[test]
fn what_is_no_array_or_not_all_of_one_is_refused_with_what_was_found() {
    let place = MemberFiles::new(6);
    let raid1 = |indices: &[usize]| place.create(indices, &["--layout", "raid1"])[..3].to_vec();
    let create = |indices: &[usize], rest: &[&str]| {
        let rest: Vec<String> = rest.iter().map(|&one| one.to_owned()).collect();
        [raid1(indices), rest, place.members(indices)].concat()
    };
    // A device with a foreign signature is refused.
    File::options()
        .write(true)
        .open(place.member(0))
        .unwrap()
        .write_all_at(b"XFSB", 0)
        .unwrap();
    let error = refused(&strings(&create(&[0, 1], &["--layout", "raid1"])));
    assert!(
        error.contains("found XFS") && error.contains("--force"),
        "{error}"
    );
    success(&strings(&create(
        &[0, 1],
        &["--layout", "raid1", "--force"],
    )));
    success(&strings(&create(&[2, 3], &["--layout", "raid1"])));
    let error = refused(&strings(&create(&[2, 3], &["--layout", "raid1"])));
    assert!(error.contains("a fullstroke array"), "{error}");
    // Wrong numbers of members and unknown layouts are refused.
    let error = refused(&strings(&create(&[4], &["--layout", "raid1"])));
    assert!(error.contains("members"), "{error}");
    let error = refused(&strings(&create(&[4, 5], &["--layout", "raid7"])));
    assert!(error.contains("there is no layout `raid7`"), "{error}");
    let error = refused(&strings(&create(&[4, 4], &["--layout", "raid1"])));
    assert!(error.contains("member4` is named twice"), "{error}");
    std::os::unix::fs::symlink(place.member(4), place.member(7)).unwrap();
    let error = refused(&strings(&create(&[4, 7], &["--layout", "raid1"])));
    assert!(error.contains("are the same device"), "{error}");
    // The error names the chunk size that fits the journal.
    let error = refused(&strings(&create(
        &[3, 4, 5],
        &["--layout", "raid5", "--chunk", "256KiB", "--force"],
    )));
    assert!(
        error.contains("expected chunks of up to 32KiB, or devices of 101187584 bytes"),
        "{error}"
    );
    File::create(place.member(4))
        .unwrap()
        .set_len(100 << 10)
        .unwrap();
    let error = refused(&strings(&create(&[4, 5], &["--layout", "raid1"])));
    assert!(
        error.contains("too small: found 102400 bytes; expected at least"),
        "{error}"
    );
    // Members of different arrays, foreign devices and missing members are refused.
    let error = place.assemble(&[0, 2], &[]).map(drop).unwrap_err();
    assert!(error.contains("name members of one array"), "{error}");
    let error = place.assemble(&[0, 5], &[]).map(drop).unwrap_err();
    assert!(
        error.contains("no member of an array: found no superblock"),
        "{error}"
    );
    let error = place.assemble(&[1], &[]).map(drop).unwrap_err();
    assert!(
        error.contains("the member in place 0") && error.contains("--degraded"),
        "{error}"
    );
    fs::copy(place.member(0), place.member(5)).unwrap();
    let error = place.assemble(&[0, 5], &[]).map(drop).unwrap_err();
    assert!(error.contains("same member"), "{error}");
    // Each member is used alone after both were equal, so there are two histories.
    let served = place.assemble(&[0, 1], &[]).unwrap();
    served.until("whole");
    served.stop();
    for (alone, tag) in [(0, 1), (1, 2)] {
        let served = place.assemble(&[alone], &["--degraded"]).unwrap();
        served
            .client()
            .write(0, &pattern(512, tag), CommandFlags::empty())
            .unwrap();
        let error = place
            .assemble(&[alone], &["--degraded"])
            .map(drop)
            .unwrap_err();
        assert!(error.contains("in use by another process"), "{error}");
        served.stop();
    }
    let error = place.assemble(&[0, 1], &[]).map(drop).unwrap_err();
    assert!(error.contains("two histories"), "{error}");
    // A device without standby is an error at the start, so that no disk keeps turning unnoticed.
    let error = place
        .assemble(&[2, 3], &["--standby-after", "20min"])
        .map(drop)
        .unwrap_err();
    assert!(
        error.contains("cannot be put to standby: found a file"),
        "{error}"
    );
    let error = place
        .assemble(&[2, 3], &["--standby-after", "5s"])
        .map(drop)
        .unwrap_err();
    assert!(
        error.contains("--standby-after: found 5s; expected at least 60s"),
        "{error}"
    );
    let served = place.assemble(&[2, 3], &[]).unwrap();
    let error = refused(&["array", "standby", &text(&served.socket)]);
    assert!(
        error.contains("cannot be put to standby: found a file"),
        "{error}"
    );
    served.stop();
    // The other copy replaces a torn superblock.
    let file = File::options()
        .read(true)
        .write(true)
        .open(place.member(2))
        .unwrap();
    file.write_all_at(&[0xFF; 512], 4096 + 100).unwrap();
    assert!(success(&["array", "examine", &place.member(2)]).contains("1 of the two copies"));
    place.assemble(&[3, 2], &[]).unwrap().stop();
    assert!(!success(&["array", "examine", &place.member(2)]).contains("copies"));
    assert!(refused(&["array", "destroy", &place.member(4)]).contains("nothing was changed"));
}

impl ServedArray {
    fn until_gear(&self, gear: &str) {
        let began = Instant::now();
        while self.status()["gear"] != gear {
            assert!(
                began.elapsed() < PATIENCE,
                "{} is not in the {gear} gear",
                self.status()
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn shift(&self, towards: &str) {
        success(&["array", "gear", &text(&self.socket), towards]);
    }

    fn expect(&self, bytes: &[u8], what: &str) {
        let mut read = vec![0; bytes.len()];
        self.client().read(0, &mut read).unwrap();
        assert!(read == bytes, "{what}");
    }
}

#[test]
fn an_array_with_gears_is_shifted_killed_and_loses_members_in_each_gear_and_keeps_its_bytes() {
    for layout in ["paraid", "e-paraid"] {
        let place = MemberFiles::new(4);
        place.make(4, 32);
        let made = success(&strings(
            &place.create(&[0, 1, 2, 3], &["--layout", layout, "--sparse"]),
        ));
        assert!(made.contains("active = 3"), "{made}");
        let served = place.assemble(&[0, 1, 2, 3], &[]).unwrap();
        let mut expected = pattern(3 << 20, 1);
        served
            .client()
            .write(0, &expected, CommandFlags::empty())
            .unwrap();
        assert_eq!(served.status()["gear"], "high");
        let socket = text(&served.socket);
        served.shift("down");
        served.until_gear("low");
        let shown = success(&["array", "status", &socket]);
        assert!(
            shown.contains("gear low\n") && shown.contains("3  alive, stands  "),
            "{shown}"
        );
        assert!(refused(&["array", "gear", &socket, "down"]).contains("in the low gear already"));
        // The array writes nothing to a member in standby.
        let before = fs::read(place.member(3)).unwrap();
        served
            .client()
            .write(
                70_001,
                &pattern(900_000, 9),
                CommandFlags::FORCE_UNIT_ACCESS,
            )
            .unwrap();
        expected[70_001..970_001].copy_from_slice(&pattern(900_000, 9));
        assert!(
            fs::read(place.member(3)).unwrap() == before,
            "{layout}: the standing member was written"
        );
        served.expect(&expected, "in the low gear");
        assert!(success(&["array", "scrub", &socket]).contains(" 0 sectors of parity"));
        served.kill();
        let examined = success(&["array", "examine", &place.member(0)]);
        assert!(
            examined.contains("low since event") && examined.contains("in place 3"),
            "{examined}"
        );
        // The array stays in the low gear after a kill, and shifts up from there. Another kill
        // interrupts the shift.
        let served = place.assemble(&[3, 1, 2, 0], &[]).unwrap();
        assert_eq!(served.status()["gear"], "low");
        served.expect(&expected, "behind a kill in the low gear");
        served.shift("up");
        served.kill();
        let served = place.assemble(&[0, 1, 2, 3], &[]).unwrap();
        served.expect(&expected, "behind a kill while it rises");
        if served.status()["gear"] == "low" {
            served.shift("up");
        }
        served.until_gear("high");
        served.expect(&expected, "in the high gear");
        assert!(success(&["array", "scrub", &socket]).contains(" 0 sectors of parity"));
        // After a failed member the array leaves the low gear, and the member is filled in the high
        // gear.
        served.shift("down");
        served.until_gear("low");
        served
            .client()
            .write(5000, &pattern(300_000, 3), CommandFlags::empty())
            .unwrap();
        expected[5000..305_000].copy_from_slice(&pattern(300_000, 3));
        success(&["array", "fail", &socket, "0"]);
        served.until_gear("high");
        served.expect(&expected, "without a member");
        assert!(refused(&["array", "gear", &socket, "down"]).contains("lacks members"));
        success(&["array", "add", &socket, &place.member(0)]);
        served.until("whole");
        served.expect(&expected, "filled");
        assert!(success(&["array", "scrub", &socket]).contains(" 0 sectors of parity"));
        served.stop();
    }
}

#[test]
fn gears_that_cannot_be_are_refused_at_their_keys() {
    let place = MemberFiles::new(4);
    place.make(4, 32);
    let create = |rest: &[&str]| {
        let options = [&["--layout", "paraid", "--sparse"], rest].concat();
        refused(&strings(&place.create(&[0, 1, 2, 3], &options)))
    };
    let error = create(&["--set", "shift_down=0.2"]);
    assert!(
        error.contains("shift_down: found 0.2; expected no key") && error.contains("array gear"),
        "{error}"
    );
    assert!(create(&["--set", "active=4"]).contains("none stops"));
    assert!(create(&["--set", "native_percent=99"]).contains("native_percent"));
    success(&strings(
        &place.create(&[0, 1, 2, 3], &["--layout", "raid5", "--sparse"]),
    ));
    let served = place.assemble(&[0, 1, 2, 3], &[]).unwrap();
    let error = refused(&["array", "gear", &text(&served.socket), "down"]);
    assert!(
        error.contains("no gears: found the layout raid5; expected paraid or e-paraid"),
        "{error}"
    );
    served.stop();
}

/// Waits until the hook has written `count` lines, and returns them.
pub fn lines_of(hook: &Path, count: usize) -> Vec<String> {
    lines_when(hook, |lines| lines.len() >= count)
}

/// Returns the lines that a hook wrote, as soon as there are `enough`.
pub fn lines_when(hook: &Path, enough: impl Fn(&[String]) -> bool) -> Vec<String> {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(hook).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if enough(&lines) || began.elapsed() > PATIENCE {
            return lines;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_disk_that_is_dead_when_the_host_starts_is_done_without_if_that_is_allowed() {
    let place = MemberFiles::new(4);
    success(&strings(&place.create(&[0, 1, 2], &["--layout", "raid5"])));
    let examined = success(&["array", "examine", &place.member(0)]);
    assert!(
        examined.contains("chunk = 16KiB") && examined.contains("rotation = left-symmetric"),
        "{examined}"
    );
    place.assemble(&[0, 1, 2], &[]).unwrap().stop();
    fs::remove_file(place.member(1)).unwrap();
    let error = place.assemble(&[0, 1, 2], &[]).map(drop).unwrap_err();
    assert!(
        error.contains("member1`: No such file") && error.contains("--degraded"),
        "{error}"
    );
    let notify = place.folder.path().join("notify");
    let listener = std::os::unix::net::UnixDatagram::bind(&notify).unwrap();
    let hook = place.folder.path().join("hook");
    let command = format!(
        "echo $FULLSTROKE_EVENT $FULLSTROKE_SLOT >> {}",
        hook.display()
    );
    let options = ["--degraded", "--on-failure", &command];
    let served = place
        .assemble_with(&[0, 1, 2], &options, &[("NOTIFY_SOCKET", &text(&notify))])
        .unwrap();
    let mut word = [0; 32];
    let length = listener.recv(&mut word).unwrap();
    assert_eq!(&word[..length], b"READY=1");
    assert_eq!(served.status()["state"], "degraded");
    assert_eq!(lines_of(&hook, 1), ["degraded 1"]);
    // An empty device replaces the member. Then a scrub finds corrupted parity.
    success(&["array", "add", &text(&served.socket), &place.member(3)]);
    served.until("whole");
    assert_eq!(lines_of(&hook, 2), ["degraded 1", "filled 1"]);
    let data_at = success(&["array", "examine", "--json", &place.member(0)]);
    let data_at: Value = serde_json::from_str(&data_at).unwrap();
    let data_at = data_at[0]["superblock"]["roster"]["data_at"]
        .as_u64()
        .unwrap();
    let member = File::options().write(true).open(place.member(0)).unwrap();
    member.write_all_at(&[7; 512], data_at).unwrap();
    let scrubbed = fullstroke(&["array", "scrub", &text(&served.socket)]);
    assert_eq!(scrubbed.status.code(), Some(1));
    let lines = lines_of(&hook, 3);
    assert!(
        lines.len() == 3 && lines[2].starts_with("mismatch "),
        "{lines:?}"
    );
    served.stop();
    // At least one device must be present.
    let error = place.assemble(&[1], &["--degraded"]).map(drop).unwrap_err();
    assert!(error.contains("found no devices"), "{error}");
    // A device in use by another process does not count as missing.
    let held = File::open(place.member(2)).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let error = place
        .assemble(&[0, 2, 3], &["--degraded"])
        .map(drop)
        .unwrap_err();
    assert!(error.contains("in use by another process"), "{error}");
}

#[test]
fn what_was_taken_for_granted_and_what_is_not_used_is_said() {
    let place = MemberFiles::new(6);
    File::options()
        .write(true)
        .open(place.member(1))
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    let made = success(&strings(&place.create(&[0, 1], &["--layout", "lzvs"])));
    assert!(
        made.contains("warning: a ratio of 10/6 and 24 zones (Lloyd's example) are assumed"),
        "{made}"
    );
    assert!(
        made.contains("member1` are not used, because other members are smaller"),
        "{made}"
    );
    assert!(!made.contains("member0` are not used"), "{made}");
    let all = [
        "array",
        "create",
        "vol",
        "--layout",
        "lzvs",
        "--set",
        "ratio=2.1",
        "--set",
        "zones=8",
    ];
    let all: Vec<String> = all
        .into_iter()
        .map(str::to_owned)
        .chain(place.members(&[2, 3]))
        .collect();
    assert!(!success(&strings(&all)).contains("warning"));
}

#[test]
fn the_unit_of_the_docs_is_one_that_systemd_takes() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/arrays.md");
    let docs = fs::read_to_string(docs).unwrap();
    let unit = docs
        .split("```ini\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fullstroke-vol.service");
    // The unit names the installed program; the test has another path.
    fs::write(
        &path,
        unit.replace(
            "/usr/local/bin/fullstroke",
            env!("CARGO_BIN_EXE_fullstroke"),
        ),
    )
    .unwrap();
    let Ok(output) = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output()
    else {
        eprintln!("skipped: no systemd-analyze here");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("fullstroke-vol.service"))
        .collect();
    assert!(output.status.success() && ours.is_empty(), "{said}");
    // A deliberate error shows that `systemd-analyze` finds errors.
    fs::write(&path, unit.replace("Type=notify", "Type=often")).unwrap();
    let output = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("fullstroke-vol.service"));
    // `ExecStart` has a command line of fullstroke.
    let command = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    assert!(
        command.contains("--degraded") && command.contains("--on-failure"),
        "{command}"
    );
}

/// Layouts with redundancy and their numbers of members. Each member is cut short once.
const CUT_SHORT: [(&str, usize); 4] = [("raid1", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)];

#[test]
fn a_member_that_is_cut_short_is_done_without() {
    let mut cut = 0;
    for (layout, members) in CUT_SHORT {
        for slot in 0..members {
            let says = format!("{layout}, member {slot}");
            let place = MemberFiles::new(members);
            let all: Vec<usize> = (0..members).collect();
            success(&strings(&place.create(&all, &["--layout", layout])));
            let served = place.assemble(&all, &[]).unwrap();
            let mut client = served.client();
            let bytes = pattern(256 << 10, 3);
            client.write(0, &bytes, CommandFlags::empty()).unwrap();
            // The device ends before the data area.
            File::options()
                .write(true)
                .open(place.member(slot))
                .unwrap()
                .set_len(4096)
                .unwrap();
            let mut read = vec![0; bytes.len()];
            client.read(0, &mut read).unwrap();
            assert!(read == bytes, "{says}");
            client.flush().unwrap();
            assert_eq!(served.status()["state"], "degraded", "{says}");
            served.stop();
            let error = place.assemble(&all, &[]).map(drop).unwrap_err();
            assert!(
                Path::new(&place.member(slot)).exists() && error.contains("no member of an array"),
                "{says}: {error}"
            );
            let rest: Vec<usize> = all.into_iter().filter(|&one| one != slot).collect();
            let served = place.assemble(&rest, &[]).unwrap();
            served.client().read(0, &mut read).unwrap();
            assert!(read == bytes, "{says}");
            served.stop();
            cut += 1;
        }
    }
    assert_eq!(
        cut,
        CUT_SHORT.iter().map(|(_, members)| members).sum::<usize>()
    );
}

/// Marsaglia's xorshift64 (2003), with the triple 13, 7, 17.
struct XorShift(u64);

impl XorShift {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Counts of a soak.
#[derive(Debug, Default)]
struct Soaked {
    kills: u64,
    writes: u64,
    reads: u64,
    flushes: u64,
    failed_members: u64,
    written_bytes: u64,
}

/// Reads, writes and flushes until the server is killed. Sectors of the last write may be old or
/// new.
fn load_until_killed(
    client: &mut ExportClient<UnixStream>,
    random: &mut XorShift,
    expected: &mut [u8],
    soaked: &mut Soaked,
) -> Option<(usize, Vec<u8>)> {
    loop {
        let sectors = 1 + if random.below(8) == 0 {
            random.below(400)
        } else {
            random.below(24)
        } as usize;
        let at = random.below((expected.len() / 512 - sectors) as u64) as usize * 512;
        let range = at..at + sectors * 512;
        match random.below(16) {
            0 => {
                if client.flush().is_err() {
                    return None;
                }
                soaked.flushes += 1;
            }
            1..=4 => {
                let mut read = vec![0; range.len()];
                if client.read(at as u64, &mut read).is_err() {
                    return None;
                }
                assert!(read == expected[range], "while it is served, at {at}");
                soaked.reads += 1;
            }
            _ => {
                let bytes = pattern(range.len(), random.below(256) as u8);
                if client
                    .write(at as u64, &bytes, CommandFlags::empty())
                    .is_err()
                {
                    return Some((at, bytes));
                }
                expected[range].copy_from_slice(&bytes);
                soaked.writes += 1;
                soaked.written_bytes += bytes.len() as u64;
            }
        }
    }
}

/// Soak with kills.
///
/// `FULLSTROKE_SOAK_SECONDS=3600 cargo test --package fullstroke --test live -- --ignored soak
/// --nocapture` repeats load, SIGKILL, assembly, comparison of all bytes and scrub. In every third
/// life a member fails and returns. (Lloyd's array of 2002 ran a day without an error.)
#[test]
#[ignore = "it takes as long as it is told to"]
fn soak() {
    let seconds = std::env::var("FULLSTROKE_SOAK_SECONDS").map_or(60, |text| text.parse().unwrap());
    let seed = std::env::var("FULLSTROKE_SOAK_SEED").map_or(1, |text| text.parse().unwrap());
    let (mut random, mut soaked) = (XorShift(seed), Soaked::default());
    for _ in 0..16 {
        random.below(2);
    }
    let place = MemberFiles::new(4);
    success(&strings(
        &place.create(&[0, 1, 2, 3], &["--layout", "raid5"]),
    ));
    let all = [0, 1, 2, 3];
    let mut served = place.assemble(&all, &[]).unwrap();
    let mut expected = vec![0; served.client().properties().size_bytes as usize];
    let began = Instant::now();
    while began.elapsed().as_secs() < seconds {
        let life = format!("life {} of seed {seed}", soaked.kills);
        let failed = (soaked.kills % 3 == 2).then(|| random.below(4) as usize);
        if let Some(slot) = failed {
            success(&["array", "fail", &text(&served.socket), &slot.to_string()]);
            soaked.failed_members += 1;
        }
        let pid = Pid::from_child(&served.child);
        let patience = std::time::Duration::from_millis(100 + random.below(3000));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(patience);
            kill_process(pid, Signal::KILL).unwrap();
        });
        let mut client = served.client();
        let under_way = load_until_killed(&mut client, &mut random, &mut expected, &mut soaked);
        killer.join().unwrap();
        served.kill_was_sent();
        soaked.kills += 1;
        served = place
            .assemble(&all, &[])
            .unwrap_or_else(|error| panic!("{life}: {error}"));
        let mut read = vec![0; expected.len()];
        served
            .client()
            .read(0, &mut read[..expected.len() / 2])
            .unwrap();
        let half = expected.len() / 2;
        served
            .client()
            .read(half as u64, &mut read[half..])
            .unwrap();
        if let Some((at, bytes)) = under_way {
            for (index, new) in bytes.chunks_exact(512).enumerate() {
                let range = at + index * 512..at + (index + 1) * 512;
                if &read[range.clone()] == new {
                    expected[range].copy_from_slice(new);
                }
            }
        }
        assert!(read == expected, "{life}");
        if let Some(slot) = failed {
            success(&["array", "add", &text(&served.socket), &place.member(slot)]);
            served.until("whole");
        }
        assert!(
            success(&["array", "scrub", &text(&served.socket)]).contains(" 0 sectors of parity"),
            "{life}"
        );
    }
    served.stop();
    println!("{} s: {soaked:?}", began.elapsed().as_secs());
    assert!(soaked.kills > 0 && soaked.writes > 0, "{soaked:?}");
}

/// Writes until the first error. Returns the number of answered bytes.
fn fill(client: &mut ExportClient<UnixStream>, bytes: &[u8]) -> usize {
    const STEP: usize = 64 << 10;
    for (step, part) in bytes.chunks(STEP).enumerate() {
        let written = client.write((step * STEP) as u64, part, CommandFlags::empty());
        if written.is_err() || (step % 8 == 7 && client.flush().is_err()) {
            return step * STEP;
        }
    }
    bytes.len()
}

#[test]
fn a_full_host_disk_halts_the_array_with_all_that_was_answered_and_with_room_it_goes_on() {
    for is_killed in [false, true] {
        let Some(place) = MemberFiles::on_small_disk(3) else {
            return;
        };
        let disk = place.disk.as_ref().unwrap();
        success(&strings(
            &place.create(&[0, 1, 2], &["--layout", "raid5", "--sparse"]),
        ));
        disk.leave(16);
        let served = place.assemble(&[0, 1, 2], &[]).unwrap();
        let mut client = served.client();
        let size = client.properties().size_bytes as usize;
        let bytes = pattern(size, 4);
        let answered = fill(&mut client, &bytes);
        assert!(answered > 1 << 20 && answered < size, "{answered}");
        let status = served.status();
        let why = status["halted"].as_str().unwrap();
        assert!(
            why.contains("member") && why.contains("No space left on device"),
            "{status}"
        );
        let holds = |served: &ServedArray, when: &str| {
            let mut read = vec![0; answered];
            served.client().read(0, &mut read).unwrap();
            assert!(read == bytes[..answered], "{when}");
        };
        holds(&served, "while it is full");
        // The array stays read-only until it is assembled again, because with a full file system no
        // further write can be made durable.
        client
            .write(0, &bytes[..512], CommandFlags::empty())
            .unwrap_err();
        drop(client);
        if is_killed {
            served.kill();
        } else {
            let said = served.stop_halted();
            assert!(
                said.contains("No space left on device")
                    && said.contains("assemble the array again"),
                "{said}"
            );
        }
        // A member has failed for want of room, so its data is computed from the others.
        let served = place.assemble(&[0, 1, 2], &[]).unwrap();
        holds(&served, "assembled while it is full");
        served.kill();
        disk.free();
        let served = place.assemble(&[0, 1, 2], &[]).unwrap();
        holds(&served, "with room again");
        let status = served.status();
        for slot in status["slots"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|slot| slot["state"] == "failed")
        {
            success(&[
                "array",
                "add",
                &text(&served.socket),
                slot["device"].as_str().unwrap(),
            ]);
        }
        served.until("whole");
        assert_eq!(fill(&mut served.client(), &bytes), size);
        let mut read = vec![0; size];
        served.client().read(0, &mut read).unwrap();
        assert!(read == bytes, "all of it");
        assert!(
            success(&["array", "scrub", &text(&served.socket)]).contains(" 0 sectors of parity")
        );
        served.stop();
    }
}

#[test]
fn an_array_that_is_only_read_leaves_its_members_as_they_are() {
    let place = MemberFiles::new(3);
    success(&strings(&place.create(&[0, 1, 2], &["--layout", "raid5"])));
    let served = place.assemble(&[0, 1, 2], &[]).unwrap();
    let mut client = served.client();
    let bytes = pattern(client.properties().size_bytes as usize, 4);
    client.write(0, &bytes, CommandFlags::empty()).unwrap();
    drop(client);
    // Regions are dirty and journals hold records.
    served.kill();
    let all = place.members(&[0, 1, 2]);
    let contents = || -> Vec<Vec<u8>> {
        all.iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect()
    };
    let before = contents();
    for member in &all {
        let mut protected = std::fs::metadata(member).unwrap().permissions();
        protected.set_readonly(true);
        std::fs::set_permissions(member, protected).unwrap();
    }
    for (indices, options) in [
        (&[0, 1, 2][..], &["--read-only"][..]),
        (&[0, 2], &["--read-only", "--degraded"]),
    ] {
        let served = place.assemble(indices, options).unwrap();
        let mut read = vec![0; bytes.len()];
        served.client().read(0, &mut read).unwrap();
        assert!(read == bytes, "{options:?}");
        let written = served
            .client()
            .write(0, &bytes[..512], CommandFlags::empty());
        written.unwrap_err();
        let status = success(&["array", "status", &text(&served.socket)]);
        assert!(status.contains("without --read-only"), "{status}");
        let refused = fullstroke(&["array", "fail", &text(&served.socket), "0"]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            !refused.status.success() && said.contains("without --read-only"),
            "{said}"
        );
        served.stop();
        assert!(
            contents() == before,
            "{options:?}: the members have changed"
        );
    }
    for member in &all {
        let mut free = std::fs::metadata(member).unwrap().permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "a file of this test")]
        free.set_readonly(false);
        std::fs::set_permissions(member, free).unwrap();
    }
    let served = place.assemble(&[0, 1, 2], &[]).unwrap();
    let mut read = vec![0; bytes.len()];
    served.client().read(0, &mut read).unwrap();
    assert!(read == bytes && served.status()["state"] == "whole");
    served.stop();
}

#[test]
fn an_arrays_numbers_say_what_its_clients_did_and_which_member_failed() {
    let place = MemberFiles::new(3);
    success(&strings(&place.create(&[0, 1, 2], &["--layout", "raid5"])));
    let served = place
        .assemble(&[0, 1, 2], &["--metrics", "127.0.0.1:0"])
        .unwrap();
    let address = served.metrics.clone().unwrap();
    let mut client = served.client();
    (0..5).for_each(|at| {
        client
            .write(at << 14, &pattern(4096, 1), CommandFlags::empty())
            .unwrap()
    });
    (0..3).for_each(|at| client.read(at << 14, &mut [0; 512]).unwrap());
    client.flush().unwrap();
    success(&["array", "fail", &text(&served.socket), "1"]);
    let found = samples_at(&address);
    let device = place.member(1);
    let failed = format!("{{export=\"vol\",place=\"1\",device=\"{device}\",state=\"failed\"}}");
    for (name, expected) in [
        (
            "fullstroke_requests_total{export=\"vol\",operation=\"write\"}",
            5.0,
        ),
        (
            "fullstroke_request_bytes_total{export=\"vol\",operation=\"write\"}",
            20480.0,
        ),
        (
            "fullstroke_requests_total{export=\"vol\",operation=\"read\"}",
            3.0,
        ),
        (
            "fullstroke_requests_total{export=\"vol\",operation=\"flush\"}",
            1.0,
        ),
        (
            "fullstroke_request_errors_total{export=\"vol\",operation=\"write\"}",
            0.0,
        ),
        (
            "fullstroke_volume_state{export=\"vol\",state=\"degraded\"}",
            1.0,
        ),
        (
            "fullstroke_volume_state{export=\"vol\",state=\"whole\"}",
            0.0,
        ),
        (
            "fullstroke_usable_bytes{export=\"vol\"}",
            client.properties().size_bytes as f64,
        ),
        (&format!("fullstroke_member_state{failed}"), 1.0),
    ] {
        assert_eq!(found.get(name), Some(&expected), "{name} in {found:#?}");
    }
    served.stop();
}

#[test]
fn an_array_reads_around_late_members_and_tells_how_often() {
    let place = MemberFiles::new(5);
    success(&strings(&place.create(
        &[0, 1, 2, 3, 4],
        &["--layout", "raid5", "--spares", "1"],
    )));
    // Every read takes longer than a nanosecond, so every read is late.
    let options = [
        "--late",
        "read-around",
        "--late-set",
        "after=1ns",
        "--metrics",
        "127.0.0.1:0",
    ];
    let served = place.assemble(&[0, 1, 2, 3, 4], &options).unwrap();
    let mut client = served.client();
    let size = client.properties().size_bytes as usize;
    let bytes = pattern(size, 3);
    client.write(0, &bytes, CommandFlags::empty()).unwrap();
    let mut read = vec![0; 4096];
    let late = || served.status()["late"].clone();
    assert_eq!(late()["policy"], "read-around");
    let began = Instant::now();
    while late()["late_io"] == 0 {
        assert!(began.elapsed() < PATIENCE, "{}", served.status());
        for at in (0..size - 4096).step_by(50_000) {
            client.read(at as u64, &mut read).unwrap();
            assert!(read == bytes[at..at + 4096], "from byte {at}");
        }
    }
    let mut all = vec![0; size];
    client.read(0, &mut all).unwrap();
    assert!(all == bytes);
    let socket = text(&served.socket);
    let shown = success(&["array", "status", &socket]);
    assert!(
        shown.contains("late members: read-around after 0.0 ms, "),
        "{shown}"
    );
    let found = samples_at(&served.metrics.clone().unwrap());
    let status = served.status();
    let member = |slot: usize| {
        let device = place.member(slot);
        let name = "fullstroke_member_late_io_total";
        found[&format!("{name}{{export=\"vol\",place=\"{slot}\",device=\"{device}\"}}")]
    };
    let sum = (0..4).map(member).sum::<f64>();
    assert_eq!(status["late"]["late_io"].as_f64(), Some(sum), "{status}");
    let member_io = found["fullstroke_late_member_io_total{export=\"vol\"}"];
    assert!(member_io >= sum, "{found:#?}");
    served.stop();
    // A kill may leave a row between data and parity, which an assembly mends as always.
    let options = ["--late", "read-around", "--late-set", "percentile=0.5"];
    let served = place.assemble(&[0, 1, 2, 3, 4], &options).unwrap();
    served.client().read(0, &mut all).unwrap();
    assert!(all == bytes);
    served.kill();
    let served = place.assemble(&[0, 1, 2, 3, 4], &[]).unwrap();
    served.client().read(0, &mut all).unwrap();
    assert!(all == bytes);
    assert_eq!(served.status()["late"], Value::Null);
    served.stop();
}

#[test]
fn policies_that_cannot_be_are_refused_with_their_keys() {
    let place = MemberFiles::new(3);
    success(&strings(&place.create(&[0, 1, 2], &["--layout", "raid5"])));
    let refuses = |options: &[&str], words: &[&str]| {
        let Err(message) = place.assemble(&[0, 1, 2], options) else {
            panic!("{options:?} was accepted")
        };
        let has_all = words.iter().all(|word| message.contains(word));
        assert!(has_all, "{options:?}: {message}");
    };
    refuses(
        &["--late", "wiat"],
        &["--late", "`wiat`", "wait", "read-around"],
    );
    refuses(
        &["--late", "read-around", "--late-set", "after=0"],
        &["--late", "after", "found 0"],
    );
    refuses(
        &["--late", "read-around", "--late-set", "afer=20ms"],
        &["--late", "afer", "after"],
    );
    refuses(&["--late-set", "after=20ms"], &["--late", "after"]);
    refuses(&["--late-set", "after"], &["KEY=VALUE"]);
    refuses(
        &["--late-set", "policy=fail"],
        &["--late-set", "expected --late \"fail\""],
    );
    refuses(
        &["--late", "read-around", "--member-timeout", "0"],
        &["--member-timeout", "found 0", "above 0"],
    );
    refuses(
        &["--late", "fail", "--member-timeout", "8"],
        &["--member-timeout", "found 8", "one of the two"],
    );
    refuses(&["--late", "sit-out"], &["sit-out", "3 members"]);
    // A refusal leaves the members as they are, and the other policies are accepted.
    for options in [
        &["--late", "wait"][..],
        &["--late", "fail", "--late-set", "timeout=8s"],
    ] {
        let served = place.assemble(&[0, 1, 2], options).unwrap();
        assert_eq!(served.status()["state"], "whole");
        served.stop();
    }
    let place = MemberFiles::new(2);
    success(&strings(&place.create(&[0, 1], &["--layout", "raid0"])));
    let Err(message) = place.assemble(&[0, 1], &["--late", "read-around"]) else {
        panic!("raid0 has no other copy")
    };
    assert!(message.contains("raid0 has no second copy"), "{message}");
}
