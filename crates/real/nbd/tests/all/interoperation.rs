//! Foreign clients against this server: `nbdinfo` and `nbdcopy` of libnbd, `qemu-io` and
//! `qemu-img`. A missing client is skipped with a note.

// Needed because this test is a driver with a socket and threads.
#![allow(clippy::disallowed_methods)]

use crate::common::*;
use fullstroke_nbd::Connection;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// A disk behind a socket in a folder of its own. The data outlive connections.
struct SocketDisk {
    folder: tempfile::TempDir,
}

impl SocketDisk {
    fn start() -> SocketDisk {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let disk = Arc::new(Mutex::new(vec![0; DISK_BYTES as usize]));
        // The threads end with the process, because clients may come until then. Several clients
        // may connect at a time, as the export announces.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let disk = disk.clone();
                std::thread::spawn(move || serve(stream.unwrap(), &disk));
            }
        });
        SocketDisk { folder }
    }

    fn address(&self, export: &str) -> String {
        format!(
            "nbd+unix:///{export}?socket={}",
            self.path("socket").display()
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Serves one client until its end.
fn serve(mut stream: UnixStream, disk: &Mutex<Vec<u8>>) {
    let mut server = LocalServer::over(Connection::new(exports()));
    loop {
        let sent = server.sent();
        if stream.write_all(&sent).is_err() || server.connection.has_ended() {
            break;
        }
        match stream.read(server.connection.space()) {
            Ok(count) if count > 0 => server.connection.filled(count),
            _ => break,
        }
        let mut disk = disk.lock().unwrap();
        std::mem::swap(&mut server.bytes, &mut disk);
        server.poll();
        std::mem::swap(&mut server.bytes, &mut disk);
        server.events.clear();
    }
}

/// Runs a program; returns `None` if the program is missing.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "{program} {arguments:?}: {said}");
            Some(output)
        }
        Err(error) => {
            println!("SKIPPED: {program} cannot be run here: {error}");
            None
        }
    }
}

#[test]
fn nbdinfo_sees_size_flags_blocks_and_contexts() {
    let service = SocketDisk::start();
    let Some(output) = run("nbdinfo", &["--list", "--json", &service.address("")]) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for wanted in [
        "\"protocol\": \"newstyle-fixed\"",
        "\"structured\": true",
        "\"export-name\": \"disk\"",
        "\"export-name\": \"archive\"",
        "\"description\": \"a disk in memory\"",
        "\"base:allocation\"",
        "\"export-size\": 1048576",
        "\"block_size_minimum\": 512",
        "\"block_size_preferred\": 4096",
        "\"block_size_maximum\": 33554432",
        "\"can_fast_zero\": true",
        "\"is_rotational\": true",
    ] {
        assert!(text.contains(wanted), "no {wanted} in {text}");
    }
}

#[test]
fn nbdcopy_brings_a_file_there_and_back() {
    let service = SocketDisk::start();
    let mut content: Vec<u8> = (0..DISK_BYTES)
        .map(|at| (at.wrapping_mul(at) >> 7) as u8)
        .collect();
    content[100_000..600_000].fill(0);
    let (there, back) = (service.path("there"), service.path("back"));
    std::fs::write(&there, &content).unwrap();
    let address = service.address("disk");
    if run("nbdcopy", &[there.to_str().unwrap(), &address]).is_none() {
        return;
    }
    run("nbdcopy", &[&address, back.to_str().unwrap()]);
    assert!(
        std::fs::read(&back).unwrap() == content,
        "what came back differs"
    );
    let Some(map) = run("nbdinfo", &["--map", &address]) else {
        return;
    };
    assert!(
        String::from_utf8_lossy(&map.stdout).contains("hole,zero"),
        "{map:?}"
    );
}

#[test]
fn qemu_io_writes_zeroes_trims_flushes_and_reads_back() {
    let service = SocketDisk::start();
    let commands = [
        "write -P 0xab 0 64k",
        "write -f -P 0xcd 64k 64k",
        "write -z 4k 4k",
        "discard 128k 64k",
        "flush",
        "read -P 0xab 0 4k",
        "read -P 0 4k 4k",
        "read -P 0xab 8k 56k",
        "read -P 0xcd 64k 64k",
    ];
    let address = service.address("disk");
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
    arguments.push(&address);
    let Some(output) = run("qemu-io", &arguments) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        !text.contains("failed") && !text.contains("error"),
        "{text}"
    );
    let Some(map) = run("qemu-img", &["map", "--output=json", "-f", "raw", &address]) else {
        return;
    };
    assert!(
        String::from_utf8_lossy(&map.stdout).contains("\"zero\": true"),
        "{map:?}"
    );
}

#[test]
fn fio_verifies_what_it_wrote() {
    let service = SocketDisk::start();
    let uri = format!("--uri={}", service.address("disk"));
    let job = [
        "--name=verify",
        "--ioengine=nbd",
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=32",
        "--size=1m",
        "--verify=crc32c",
        "--do_verify=1",
    ];
    let engines = Command::new("fio").arg("--enghelp").output();
    if !engines.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("nbd")) {
        println!("SKIPPED: there is no fio with its engine nbd here");
        return;
    }
    run("fio", &[&job[..], &[&uri]].concat());
}
