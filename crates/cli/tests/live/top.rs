//! Tests of `fullstroke top` on a terminal, and of the terminal's end.

use crate::server::{PATIENCE, Server, StackFolder};
use crate::stacks::RAID5;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// The program on a pseudo-terminal, after its first drawing. The terminal controls no process, so
/// that no SIGHUP reports its end.
struct Watching {
    child: Child,
    terminal: Option<File>,
}

impl Watching {
    fn begin(server: &Server) -> Watching {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || {
            use std::os::unix::fs::OpenOptionsExt as _;
            let noctty = OpenptFlags::NOCTTY.bits() as i32;
            OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(noctty)
                .open(name.to_str().unwrap())
                .unwrap()
        };
        let child = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
            .args([
                "top",
                server.socket().to_str().unwrap(),
                "--interval",
                "20ms",
            ])
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .unwrap();
        let mut terminal = File::from(master);
        assert!(terminal.read(&mut [0; 4096]).unwrap() > 0);
        Watching {
            child,
            terminal: Some(terminal),
        }
    }

    fn ends(&mut self) -> std::process::ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE / 6, "top does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn top_ends_when_its_terminal_is_closed() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay"]);
    let mut watching = Watching::begin(&server);
    watching.terminal = None;
    assert!(watching.ends().code().is_some(), "not by a signal");
    server.stop_well();
}

#[test]
fn top_obeys_sigterm_whatever_became_of_its_terminal() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay"]);
    for closes in [false, true] {
        let mut watching = Watching::begin(&server);
        let id = Pid::from_raw(watching.child.id() as i32).unwrap();
        if closes {
            watching.terminal = None;
        }
        // The program may have ended already.
        let _ = kill_process(id, Signal::TERM);
        watching.ends();
    }
    server.stop_well();
}

#[test]
fn q_ends_top() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay"]);
    let mut watching = Watching::begin(&server);
    let mut terminal = watching.terminal.take().unwrap();
    terminal.write_all(b"\x1b[Bq").unwrap();
    // A thread reads the output, because a full terminal would block the program.
    thread::spawn(move || while terminal.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
    assert!(watching.ends().success());
    server.stop_well();
}
