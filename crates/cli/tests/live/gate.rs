//! Tests that no other program writes to files in use, by any name.

use crate::array::{MemberFiles as Members, strings};
use crate::common::{refused, success};
use crate::server::{StackFolder, text};
use crate::stacks::{DISK, RAID5};
use fullstroke_nbd::CommandFlags;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Writes a trace of 4 KiB writes.
fn writes(folder: &Path) -> String {
    let path = folder.join("writes.csv");
    // The trace file is long enough to serve as a device of some sectors.
    let row = "1000000,host,0,Write,8192,4096,20000\n";
    fs::write(&path, row.repeat(1000)).unwrap();
    text(&path)
}

fn replay_refused(trace: &str, on: &Path) -> String {
    refused(&[
        "replay",
        trace,
        "--on",
        &text(on),
        "--writes",
        "overwrite",
        "--buffered",
    ])
}

/// A loop device over a file. `over` prints a note and returns `None` if none can be created.
pub struct LoopDevice(pub PathBuf);

impl LoopDevice {
    pub fn over(file: &Path) -> Option<LoopDevice> {
        LoopDevice::with(&[], file)
    }

    fn with(options: &[&str], file: &Path) -> Option<LoopDevice> {
        let made = Command::new("losetup")
            .args(options)
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match made {
            Ok(made) if made.status.success() => Some(LoopDevice(
                String::from_utf8(made.stdout).unwrap().trim().into(),
            )),
            _ => {
                eprintln!("skipped: no loop device can be made here");
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    /// Detaches the device and waits for the end of its use of the file: the kernel detaches a device
    /// later if another process, such as one that lists all block devices, has it open
    /// (`lo_release`).
    fn drop(&mut self) {
        let name = self.0.file_name().unwrap_or_default();
        let shown = Path::new("/sys/block").join(name).join("loop/backing_file");
        let file = fs::read(&shown).ok();
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
        for _ in 0..200 {
            if file.is_none() || fs::read(&shown).ok() != file {
                break;
            }
            sleep(Duration::from_millis(25));
        }
    }
}

#[test]
fn a_member_of_an_assembled_array_is_neither_replayed_on_nor_made_anew() {
    let members = Members::new(3);
    success(&strings(
        &members.create(&[0, 1, 2], &["--layout", "raid5"]),
    ));
    let served = members.assemble(&[0, 1, 2], &[]).unwrap();
    let (folder, member) = (members.folder.path(), PathBuf::from(members.member(0)));
    let trace = writes(folder);
    let (soft, hard) = (folder.join("soft"), folder.join("hard"));
    symlink(&member, &soft).unwrap();
    fs::hard_link(&member, &hard).unwrap();
    for name in [&member, &soft, &hard] {
        let error = replay_refused(&trace, name);
        assert!(error.contains("in use by another process"), "{error}");
    }
    let other = folder.join("other");
    fs::File::create(&other).unwrap().set_len(4 << 20).unwrap();
    let create = |device: &Path| {
        let device = text(device);
        refused(&[
            "array",
            "create",
            "new",
            &device,
            &text(&other),
            "--layout",
            "raid1",
            "--force",
        ])
    };
    for name in [&member, &hard] {
        assert!(create(name).contains("in use by another process"));
    }
    if let Some(device) = LoopDevice::over(&member) {
        assert!(create(&device.0).contains("stands on"));
        assert!(replay_refused(&trace, &device.0).contains("stands on"));
        // The loop device is a second user beside the array.
        assert!(refused(&["array", "destroy", "--force", &text(&device.0)]).contains("stands on"));
    }
    let scrubbed = success(&["array", "scrub", &text(&served.socket)]);
    assert!(scrubbed.contains('0'), "{scrubbed}");
    served.stop();
}

#[test]
fn a_store_that_is_served_is_written_by_its_server_alone() {
    let place = StackFolder::new(RAID5, 8);
    let server = place.serve_stored();
    let data = vec![7; 4096];
    server
        .client()
        .write(0, &data, CommandFlags::FORCE_UNIT_ACCESS)
        .unwrap();
    let store = place.path("store");
    let drive = fs::read_dir(&store)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().contains('0'))
        .unwrap();
    // Deleting the old lock file does not release the store.
    fs::remove_file(store.join("lock")).unwrap();
    let (stack, elsewhere) = (place.stack(), place.name("elsewhere"));
    let serve = |store: &Path| {
        refused(&[
            "serve",
            &stack,
            "--no-delay",
            "--socket",
            &elsewhere,
            "--store",
            &text(store),
        ])
    };
    assert!(serve(&store).contains("in use"));
    // Another name of the folder, or a folder of hard links to the files, does not release the
    // store either.
    let soft = place.path("soft");
    symlink(&store, &soft).unwrap();
    assert!(serve(&soft).contains("in use"));
    let links = place.path("links");
    fs::create_dir(&links).unwrap();
    for entry in fs::read_dir(&store).unwrap() {
        let entry = entry.unwrap();
        fs::hard_link(entry.path(), links.join(entry.file_name())).unwrap();
    }
    let error = serve(&links);
    assert!(error.contains("in use by another process"), "{error}");
    let trace = writes(links.parent().unwrap());
    assert!(replay_refused(&trace, &drive).contains("in use by another process"));
    let error = refused(&[
        "array",
        "create",
        "new",
        &text(&drive),
        "--layout",
        "raid0",
        "--force",
    ]);
    assert!(error.contains("in use by another process"), "{error}");
    server.stop_well();
    // After the server's end the store can be opened again.
    place.serve_stored().stop_well();
}

#[test]
fn a_file_of_a_store_that_a_loop_device_shows_is_not_served() {
    let place = StackFolder::new(DISK, 8);
    place.serve_stored().stop_well();
    let store = place.path("store");
    let drive = fs::read_dir(&store)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| fs::metadata(path).unwrap().len() > 4 << 20)
        .unwrap();
    let hard = place.path("hard");
    fs::hard_link(&drive, &hard).unwrap();
    let Some(device) = LoopDevice::over(&hard) else {
        return;
    };
    let before = fs::read(store.join("superblock")).ok();
    let error = place.serve_refused(&["--store", &text(&store)]);
    assert!(error.contains(&text(&device.0)), "{error}");
    assert_eq!(fs::read(store.join("superblock")).ok(), before);
    drop(device);
    place.serve_stored().stop_well();
}

#[test]
fn a_device_that_refuses_writes_is_found_before_others_are_wiped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["a", "b", "c"] {
        fs::write(path(name), vec![7; 9 << 20]).unwrap();
    }
    let Some(device) = LoopDevice::with(&["--read-only"], &path("c")) else {
        return;
    };
    let error = refused(&[
        "array",
        "create",
        "v",
        &text(&path("a")),
        &text(&path("b")),
        &text(&device.0),
        "--layout",
        "raid5",
        "--chunk",
        "8KiB",
        "--force",
    ]);
    assert!(
        error.contains(&text(&device.0)) && error.contains("read-only"),
        "{error}"
    );
    for name in ["a", "b", "c"] {
        assert_eq!(fs::read(path(name)).unwrap(), vec![7; 9 << 20], "{name}");
    }
}

#[test]
fn a_trace_is_not_replayed_over_itself() {
    let folder = tempfile::tempdir().unwrap();
    let trace = writes(folder.path());
    let whole = fs::read(&trace).unwrap();
    let hard = folder.path().join("hard");
    fs::hard_link(&trace, &hard).unwrap();
    for name in [Path::new(&trace), &hard] {
        let error = replay_refused(&trace, name);
        assert!(error.contains("the trace itself"), "{error}");
    }
    assert_eq!(fs::read(&trace).unwrap(), whole);
}

#[test]
fn what_a_server_records_follows_no_link_and_replaces_nothing() {
    let place = StackFolder::new(DISK, 8);
    let victim = place.path("victim");
    fs::write(&victim, "precious").unwrap();
    let record = place.path("record.parquet");
    symlink(&victim, &record).unwrap();
    let error = place.serve_refused(&["--record", &text(&record)]);
    assert!(error.contains("symbolic link"), "{error}");
    fs::remove_file(&record).unwrap();
    // A symbolic link under the record's temporary name is replaced, and its target stays.
    symlink(&victim, place.path("record.parquet.partial")).unwrap();
    place
        .serve(&["--no-delay", "--record", &text(&record)])
        .stop_well();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(fs::read(&record).unwrap().starts_with(b"PAR1"));
    for taken in [
        place.stack(),
        text(&victim),
        place.name("nbd"),
        place.name("nbd.control"),
    ] {
        let error = place.serve_refused(&["--record", &taken]);
        assert!(
            error.contains("--record") && error.contains("expected"),
            "{error}"
        );
    }
    let store = place.path("store");
    place.serve_stored().stop_well();
    let error = place.serve_refused(&["--record", &text(&store.join("record.parquet"))]);
    assert!(error.contains("store"), "{error}");
}

#[test]
fn a_folder_that_others_may_write_to_becomes_the_servers_own() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = StackFolder::new(DISK, 8);
    let store = place.path("store");
    let mode = || fs::metadata(&store).unwrap().permissions().mode() & 0o777;
    fs::create_dir(&store).unwrap();
    for loose in [0o777, 0o770, 0o702] {
        fs::set_permissions(&store, fs::Permissions::from_mode(loose)).unwrap();
        let server = place.serve_stored();
        assert_eq!(mode(), 0o700, "{loose:o}");
        server.stop_well();
    }
    // Read permissions of others stay.
    fs::set_permissions(&store, fs::Permissions::from_mode(0o755)).unwrap();
    place.serve_stored().stop_well();
    assert_eq!(mode(), 0o755);
}

#[test]
fn a_server_says_which_priority_it_has_taken_and_takes_none_if_told() {
    let place = StackFolder::new(DISK, 8);
    let server = place.serve(&["--keep-priority"]);
    assert_eq!(server.announcement["niceness"], serde_json::Value::Null);
    server.stop_well();
    let server = place.serve(&[]);
    // Without the permission the priority stays.
    let said = server.announcement["niceness"].as_i64();
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.id().as_raw_nonzero())).unwrap();
    // proc(5): the 19th field is the niceness; the second is in parentheses.
    let niceness = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .nth(16)
        .unwrap();
    let niceness: i64 = niceness.parse().unwrap();
    match said {
        Some(said) => assert_eq!((said, niceness), (-20, -20)),
        None => assert!(
            niceness > -20,
            "a server raised its priority and did not say so"
        ),
    }
    server.stop_well();
}

/// Returns the output of a process up to a line that begins with `until`. The process is then
/// killed.
fn printed(arguments: &[&str], until: &str) -> String {
    use std::io::BufRead as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut text = String::new();
    for line in lines.map_while(Result::ok) {
        text.push_str(&line);
        text.push('\n');
        if line.starts_with(until) {
            break;
        }
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    child.wait().unwrap();
    text
}

#[test]
fn an_array_that_listens_to_the_world_says_so_and_lets_in_whom_it_is_told_to() {
    let members = Members::new(2);
    success(&strings(&members.create(&[0, 1], &["--layout", "raid1"])));
    let socket = text(&members.folder.path().join("s"));
    let (one, other) = (members.member(0), members.member(1));
    let arguments = |options: &[&'static str]| {
        let head = ["array", "assemble", &one, &other, "--socket", &socket];
        [
            &head.map(str::to_owned)[..],
            &options
                .iter()
                .map(|&one| one.to_owned())
                .collect::<Vec<_>>(),
        ]
        .concat()
    };
    let open = ["--tcp", "0.0.0.0:0", "--metrics", "0.0.0.0:0"];
    let text = printed(&strings(&arguments(&open)), "orders at ");
    assert!(
        text.contains("can read and write all bytes") && text.contains("can read all numbers"),
        "{text}"
    );
    let named = [&open[..], &["--allow", "10.0.0.0/8,127.0.0.1"]].concat();
    let text = printed(&strings(&arguments(&named)), "orders at ");
    assert!(!text.contains("every host that reaches"), "{text}");
    // TLS without certificates is refused before any device is opened.
    let error = refused(&strings(&arguments(&["--tcp", "0", "--tls", "require"])));
    assert!(error.contains("--tls-certificates"), "{error}");
    let error = refused(&strings(&arguments(&[
        "--tls",
        "on",
        "--tls-certificates",
        "/nowhere",
    ])));
    assert!(error.contains("server-cert.pem"), "{error}");
}

#[test]
fn strangers_are_sent_away_by_the_numbers_of_an_array_too() {
    use std::io::{Read as _, Write as _};
    let members = Members::new(2);
    success(&strings(&members.create(&[0, 1], &["--layout", "raid1"])));
    let served = members
        .assemble(&[0, 1], &["--metrics", "127.0.0.1:0"])
        .unwrap();
    let uri = served.metrics.clone().unwrap();
    let address = uri
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap();
    let get = |host: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get("evil.example").starts_with("HTTP/1.1 421"));
    assert!(get(address).starts_with("HTTP/1.1 200"));
    served.stop();
    let only = ["--metrics", "127.0.0.1:0", "--allow", "10.9.8.7"];
    let served = members.assemble(&[0, 1], &only).unwrap();
    let uri = served.metrics.clone().unwrap();
    let address = uri
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert_eq!(answer, "");
    served.stop();
}

#[test]
fn who_heeds_a_server_that_has_gone_says_so_and_ends() {
    use std::io::Write as _;
    let place = StackFolder::new(DISK, 8);
    let server = place.serve(&["--no-delay"]);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[1; 1 << 20]).unwrap();
    let Some(heeding) = server.heeded(file.path()) else {
        eprintln!("skipped: the kernel has no cachestat");
        return;
    };
    server.kill();
    let end = heeding.wait();
    assert_eq!(end.status.code(), Some(2), "{}", end.complaints);
    assert!(
        end.complaints.contains("waiting") && end.complaints.contains("the server has gone"),
        "{}",
        end.complaints
    );
}

#[test]
fn names_from_outside_do_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "a\u{1b}[31m\u{9b}2J\r\u{202e}b";
    let device = text(&folder.path().join(evil));
    fs::File::create(&device).unwrap().set_len(8 << 20).unwrap();
    let steers = |text: &str| text.contains(['\u{1b}', '\u{9b}', '\r', '\u{202e}']);
    for arguments in [
        vec!["array", "examine", &device],
        vec!["--json", "array", "examine", &device],
        vec!["array", "create", evil, &device, "--layout", "raid0"],
        vec!["array", "assemble", &device, "--socket", "/nowhere/s"],
        vec!["trace", "info", &device],
        vec!["trace", "head", &device],
        vec!["run", &device],
        vec!["drive", "show", &device],
        vec!["replay", &device, "--on", &device],
        vec!["ctl", &device, "status"],
    ] {
        let output = crate::common::fullstroke(&arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(
            !said.is_empty() && !steers(&said),
            "{arguments:?}: {}",
            said.escape_debug()
        );
    }
}
