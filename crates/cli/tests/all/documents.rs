//! Tests of the commands in README and docs. Each command line and each whole stack runs on the
//! shipped files, in a copy of the project's folders.

use crate::common::project;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "docs/advise.md",
    "docs/arrays.md",
    "docs/commands.md",
    "docs/constant-rate.md",
    "docs/drives.md",
    "docs/energy.md",
    "docs/extract.md",
    "docs/files.md",
    "docs/cleaning.md",
    "docs/nas.md",
    "docs/fio.md",
    "docs/flash.md",
    "docs/network.md",
    "docs/perfetto.md",
    "docs/prediction.md",
    "docs/replay.md",
    "docs/report.md",
    "docs/serving.md",
    "docs/shingled.md",
    "docs/signals.md",
    "docs/slow.md",
    "docs/start.md",
    "docs/streams.md",
    "docs/studies.md",
    "docs/traces.md",
    "docs/tune.md",
    "docs/tutorial-nas.md",
    "docs/tutorial-research.md",
    "docs/tutorial-sre.md",
    "docs/tutorial-streams.md",
    "docs/zfs.md",
];

/// Commands that take minutes or hours or need special equipment, each with a replacement. An entry
/// without a document is an error.
const SHORTENED: &[(&str, &str)] = &[
    // This command needs certificates. `tests/live/tls.rs` tests a server with certificates.
    (
        "fullstroke serve stacks/demo/raid5.toml --tcp 0.0.0.0:10809 --tls require --tls-certificates pki --tls-verify-peer",
        "fullstroke ctl --help",
    ),
    // A cache on flash takes minutes to fill. `questions/zfs-l2arc.toml` has the command, too.
    (
        "fullstroke compare stacks/pools/l2arc-without.toml stacks/pools/l2arc.toml",
        "fullstroke compare stacks/pools/l2arc-without.toml stacks/pools/l2arc.toml --set workload.duration=20s --set measurement.warm_up=10s",
    ),
    // The windows of a scrub of small records take two minutes of processor time.
    (
        "fullstroke compare stacks/pools/raidz2.toml --set volume.scrub=true --set 'workload.arrivals={process=\"poisson\",rate_per_s=1}' --vary volume.recordsize=16KiB,128KiB --by scrub.hours",
        "fullstroke compare stacks/pools/raidz2.toml --set volume.scrub=true --set 'workload.arrivals={process=\"poisson\",rate_per_s=1}' --vary volume.recordsize=16KiB,128KiB --by response_ms.mean --set workload.duration=4s --set measurement.warm_up=1s",
    ),
    // The windows of a resilver of 16 TB take half a minute of processor time.
    (
        "fullstroke run stacks/pools/draid2.toml --set volume.rebuild=0 --set volume.resilver=spare",
        "fullstroke run stacks/pools/draid2.toml --set volume.rebuild=0 --set volume.resilver=spare --set volume.drive=quantum-atlas-10k --set workload.region_size=1GiB --set workload.duration=4s --set measurement.warm_up=1s",
    ),
    (
        "fullstroke compare stacks/pools/raidz2.toml --set volume.scrub=true --vary volume.scattered=0,0.2,1 --by layers.pool_scrub_hours",
        "fullstroke compare stacks/pools/raidz2.toml --set volume.scrub=true --vary volume.scattered=0,0.2,1 --by layers.pool_scrub_hours --set workload.duration=4s --set measurement.warm_up=1s",
    ),
    // These commands need a device. `tests/live/replay.rs` tests replays on devices.
    (
        "fullstroke replay samples/media.parquet --on /dev/sdX --pace load --writes skip",
        "fullstroke replay --help",
    ),
    // These commands need a file system on a served array. `tests/live/cache.rs` tests a file.
    (
        "fullstroke heed /tmp/idle.sock --on /mnt",
        "fullstroke heed --help",
    ),
    (
        "fullstroke heed /tmp/array.sock --on /mnt",
        "fullstroke heed --help",
    ),
    // This command needs a cluster. `tests/all/studies.rs` simulates one, and `make python-check`
    // starts one.
    (
        "fullstroke study run pass-2012/ --dask tcp://host:8786",
        "fullstroke study run --help",
    ),
    (
        "fullstroke record /dev/sdX load.parquet --duration 60s",
        "fullstroke record --help",
    ),
    (
        "fullstroke replay samples/media.parquet --on /dev/sdX --writes skip",
        "fullstroke replay --help",
    ),
    (
        "fullstroke replay samples/media.parquet --on /dev/sdX --writes skip --time-scale 2",
        "fullstroke replay --help",
    ),
    (
        "fullstroke replay samples/media.parquet --on /dev/sdX --writes skip --pace load",
        "fullstroke replay --help",
    ),
    (
        "fullstroke replay samples/media.parquet --on /dev/sdX --writes skip --pace as-fast --log out.parquet",
        "fullstroke replay --help",
    ),
    (
        "fullstroke replay samples/media.parquet --on /dev/sdX --writes skip --threads 1",
        "fullstroke replay --help",
    ),
    (
        "fullstroke record /dev/sdX out.parquet --duration 60s",
        "fullstroke record --help",
    ),
    // These commands need a device and a server.
    (
        "fullstroke stream-test --on /dev/sdX --rate 8Mbit/s",
        "fullstroke stream-test --help",
    ),
    (
        "fullstroke stream-test --on nbd+unix:///?socket=/tmp/array.sock --rate 2Mbit/s --stack mine.toml",
        "fullstroke stream-test --help",
    ),
    // These commands need members and a server. `tests/live/array.rs` tests them.
    (
        "fullstroke array create vol disk0 disk1 disk2 disk3 disk4 --layout raid5 --chunk 64KiB --spares 1",
        "fullstroke array create --help",
    ),
    (
        "fullstroke array assemble disk0 disk1 disk2 disk3 disk4 --socket /tmp/vol.sock",
        "fullstroke array assemble --help",
    ),
    (
        "fullstroke array assemble disk0 disk1 disk2 disk3 disk4 --socket /tmp/vol.sock --late read-around --late-set after=20ms",
        "fullstroke array assemble --help",
    ),
    // This command needs a kernel with ublk. `tests/live/ublk.rs` emulates one.
    (
        "fullstroke array assemble disk0 disk1 disk2 disk3 disk4 --ublk --control /tmp/vol.control",
        "fullstroke array assemble --help",
    ),
    (
        "fullstroke array create a disk0 disk1 --layout raid1",
        "fullstroke array create --help",
    ),
    (
        "fullstroke array create b disk2 disk3 --layout raid1",
        "fullstroke array create --help",
    ),
    (
        "fullstroke array assemble disk0 disk1 --socket /tmp/a.sock",
        "fullstroke array assemble --help",
    ),
    (
        "fullstroke array assemble disk2 disk3 --socket /tmp/b.sock",
        "fullstroke array assemble --help",
    ),
    (
        "fullstroke array create ab /tmp/a.img /tmp/b.img --layout raid0",
        "fullstroke array create --help",
    ),
    (
        "fullstroke array assemble /tmp/a.img /tmp/b.img --socket /tmp/ab.sock",
        "fullstroke array assemble --help",
    ),
    // This command needs disks. `lzvs.rs` tests a refused measurement.
    (
        "fullstroke array create films disk0 disk1 --layout lzvs --measure",
        "fullstroke array create --help",
    ),
    (
        "fullstroke lzvs measure /dev/sdX",
        "fullstroke lzvs measure --help",
    ),
    (
        "fullstroke array status /tmp/vol.sock",
        "fullstroke array status --help",
    ),
    (
        "fullstroke array fail /tmp/vol.sock 1",
        "fullstroke array fail --help",
    ),
    (
        "fullstroke array add /tmp/vol.sock disk1",
        "fullstroke array add --help",
    ),
    (
        "fullstroke array scrub /tmp/vol.sock",
        "fullstroke array scrub --help",
    ),
    (
        "fullstroke array standby /tmp/vol.sock",
        "fullstroke array standby --help",
    ),
    (
        "fullstroke array create cold disk0 disk1 disk2 disk3 disk4 --layout paraid --set active=4",
        "fullstroke array create --help",
    ),
    (
        "fullstroke array gear /tmp/vol.sock down",
        "fullstroke array gear --help",
    ),
    (
        "fullstroke array gear /tmp/vol.sock up",
        "fullstroke array gear --help",
    ),
    (
        "fullstroke array stop /tmp/vol.sock",
        "fullstroke array stop --help",
    ),
    (
        "fullstroke array examine disk0",
        "fullstroke array examine --help",
    ),
    // The tutorial replays a whole trace, so that its numbers have intervals.
    (
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid10.toml --by response_ms.p99",
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid10.toml --by response_ms.p99 --requests 500",
    ),
    (
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid10.toml --degraded --by response_ms.p99",
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid10.toml --degraded --by response_ms.p99 --requests 500",
    ),
    (
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid6.toml --rebuilding --by response_ms.p99",
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid6.toml --rebuilding --by response_ms.p99 --requests 500",
    ),
    (
        "fullstroke compare stacks/demo/raid5.toml --vary volume.chunk=64KiB,512KiB --vary host.members.elevator=mq-deadline,bfq",
        "fullstroke compare stacks/demo/raid5.toml --vary volume.chunk=64KiB,512KiB --vary host.members.elevator=mq-deadline,bfq --requests 500",
    ),
    (
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid6.toml --rebuilding --by response_ms.p99 --drive seagate-ironwolf-8tb",
        "fullstroke compare stacks/demo/raid5.toml stacks/demo/raid6.toml --rebuilding --by response_ms.p99 --drive seagate-ironwolf-8tb --requests 500",
    ),
    (
        "fullstroke compare stacks/demo/*.toml --by response_ms.p99 --report tail.html",
        "fullstroke compare stacks/demo/*.toml --by response_ms.p99 --report tail.html --requests 500",
    ),
    // This command runs half an hour of a trace eight times.
    (
        "fullstroke energy samples/compile.parquet --stack stacks/demo/raid5.toml --drive seagate-ironwolf-8tb",
        "fullstroke energy --help",
    ),
    // This command tries all layouts and numbers of drives several times.
    (
        "fullstroke advise wishes/sre.toml",
        "fullstroke advise --help",
    ),
    (
        "fullstroke advise wishes/nas.toml",
        "fullstroke advise wishes/nas.toml --drives 4 --failures 2 --requests 320",
    ),
    (
        "fullstroke advise wishes/media-house.toml --report advice.html",
        "fullstroke advise wishes/media-house.toml --drives 4 --failures 2 --streams 5 --usable 10GB --drive quantum-atlas-10k --set workload.duration=5s --set workload.file_size=12MiB --report advice.html",
    ),
    // Searches of docs/tune.md, reduced to the minimum of parts and values.
    (
        "fullstroke tune studies/chang-du-2001/stacks/base.toml --vary 'volume.members[0].delta_ms=0,1,2,3,4,5,6,8' --set 'volume.members[0].segments=8' --set workload.arrivals.outstanding=512 --batches 32 --seed 1001",
        "fullstroke tune studies/chang-du-2001/stacks/base.toml --vary 'volume.members[0].delta_ms=3,8' --set 'volume.members[0].segments=8' --set workload.arrivals.outstanding=512 --batches 4 --seed 1001",
    ),
    (
        "fullstroke tune studies/qian-wang-2007/stacks/streams-raid5.toml --set volume.coordinate=longest --set host.members.elevator=sstf --vary host.members.queue_weight=0,16,30 --by programs.playback.figures.within_latency --batches 4 --first 2",
        "fullstroke tune studies/qian-wang-2007/stacks/streams-raid5.toml --set volume.coordinate=longest --set host.members.elevator=sstf --set workload.streams=20 --vary host.members.queue_weight=0,30 --by programs.playback.figures.within_latency --batches 4 --first 2",
    ),
    (
        "fullstroke tune stacks/signals/two-clients.toml --vary 'opportunities[0].wait=5ms,20ms,80ms,320ms' --vary 'opportunities[0].flush=16KiB,64KiB,256KiB' --by workloads.reader.response_ms.p99 --batches 32 --seed 1001",
        "fullstroke tune stacks/signals/two-clients.toml --vary 'opportunities[0].wait=5ms,20ms' --by workloads.reader.response_ms.p99 --batches 4 --seed 1001 --set hosts[0].workload.duration=5s --set hosts[1].workload.duration=5s",
    ),
    (
        "fullstroke tune stacks/signals/two-clients.toml --set 'hosts[1].memory.write_back={policy=\"2.6.17\"}' --vary 'hosts[1].memory.write_back.dirty_background_ratio=5,10,20' --by workloads.reader.response_ms.p99 --batches 8",
        "fullstroke tune stacks/signals/two-clients.toml --set 'hosts[1].memory.write_back={policy=\"2.6.17\"}' --vary 'hosts[1].memory.write_back.dirty_background_ratio=5,10' --by workloads.reader.response_ms.p99 --batches 4 --set hosts[0].workload.duration=5s --set hosts[1].workload.duration=5s",
    ),
    (
        "fullstroke tune stacks/energy/paraid.toml --vary volume.shift_up=0.15,0.2,0.3 --vary volume.shift_down=0.02,0.05,0.08,0.12 --by energy.j_per_io --batches 8 --first 4",
        "fullstroke tune stacks/energy/paraid.toml --vary volume.shift_up=0.15,0.3 --by energy.j_per_io --batches 4 --set workloads[0].duration=25min --set workloads[1].duration=25min",
    ),
    (
        "fullstroke tune stacks/energy/paraid.toml --vary volume.shift_up=0.15,0.2,0.3 --vary volume.shift_down=0.02,0.05,0.08,0.12 --by response_ms.mean --batches 8 --first 4",
        "fullstroke tune --help",
    ),
    (
        "fullstroke advise wishes/office.toml",
        "fullstroke advise wishes/office.toml --drives 4 --failures 2 --usable 10GB --drive quantum-atlas-10k --beyond wrap --p99 20s --to 4s",
    ),
    (
        "fullstroke advise load:office --drive seagate-ironwolf-8tb --drives 4 --failures 1 --usable 10TB --requests 2000",
        "fullstroke advise load:office --drive quantum-atlas-10k --drives 4 --failures 2 --usable 10GB --requests 500 --budget 1000",
    ),
    // The replacements of the commands of docs/advise.md already show that these two work.
    (
        "fullstroke advise wishes/nas.toml --drives 4 --failures 2 --p99 5s",
        "fullstroke advise --help",
    ),
    (
        "fullstroke advise wishes/media-house.toml",
        "fullstroke advise --help",
    ),
    (
        "fullstroke advise stacks/demo/raid5.toml --trace samples/compile.parquet --drive mine.toml --drives 4..6 --usable 15TB --p99 100ms --failures 1",
        "fullstroke advise stacks/demo/raid5.toml --help",
    ),
    // These commands run whole studies. `studies.rs` tests a small study from run to page.
    (
        "fullstroke study run carroll-2008/",
        "fullstroke study run carroll-2008/low-load --results kept",
    ),
    (
        "fullstroke study check carroll-2008/",
        "fullstroke study check carroll-2008/low-load --results kept",
    ),
    (
        "fullstroke study results --write carroll-2008/",
        "fullstroke study results --help",
    ),
    (
        "fullstroke study results --best mb_per_s --over scheduler carroll-2008/random-readers",
        "fullstroke study results --help",
    ),
    (
        "fullstroke compare stacks/demo/*.toml --find load",
        "fullstroke compare stacks/demo/raid0.toml stacks/demo/raid10.toml --find load --to 5s",
    ),
    (
        "fullstroke run stacks/streaming/lzvs-4k.toml --find streams",
        "fullstroke run stacks/streaming/lzvs-4k.toml --find streams --replications 1 --set workload.duration=30s",
    ),
];

/// Returns the command lines in a document's code blocks, without comments.
fn commands(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let code = fenced || line.starts_with("    ");
        let line = line.trim_start().trim_start_matches("$ ");
        if code && line.starts_with("fullstroke ") {
            let line = line.split("  #").next().unwrap_or(line).trim_end();
            found.push(
                line.split(" # ")
                    .next()
                    .unwrap_or(line)
                    .trim_end()
                    .to_owned(),
            );
        }
    }
    found
}

/// Returns the whole stacks in a document.
fn stacks(text: &str) -> Vec<String> {
    let blocks = text
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    blocks
        .filter(|block| block.contains("[volume]") && block.contains("[workload"))
        .map(str::to_owned)
        .collect()
}

/// A writable folder with the project's files.
struct Scratch {
    folder: tempfile::TempDir,
    ports: [u16; 2],
    servers: Vec<Child>,
}

impl Scratch {
    fn new() -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        for shared in ["samples", "drives", "docs", "wishes"] {
            symlink(project().join(shared), folder.path().join(shared)).unwrap();
        }
        for copied in ["stacks", "studies"] {
            copy(&project().join(copied), &folder.path().join(copied));
        }
        // Two free ports for this test. No other server of these tests uses the ports of the
        // documents.
        let ports = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = ports.map(|listener| listener.local_addr().unwrap().port());
        Scratch {
            folder,
            ports,
            servers: Vec::new(),
        }
    }

    /// Replaces the document's socket and ports by those of this folder.
    fn adapted(&self, line: &str) -> String {
        let short = SHORTENED.iter().find(|(long, _)| *long == line);
        let line = short.map_or(line, |(_, short)| short);
        // Only the line without options runs the whole trace. Other comparisons of the demo are
        // shortened.
        let again = line.starts_with("fullstroke compare stacks/demo/")
            && ["--vary", "--by", "--degraded"]
                .iter()
                .any(|option| line.contains(option))
            && !line.contains("--requests");
        let line = if again {
            format!("{line} --requests 20000")
        } else {
            line.to_owned()
        };
        on_a_small_drive(&line)
            .replace("/tmp/", &format!("{}/", self.folder.path().display()))
            .replace("10809", &self.ports[0].to_string())
            .replace("9100", &self.ports[1].to_string())
    }

    fn shell(&self, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_fullstroke"));
        let path = format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new("bash");
        command
            .args(["-c", line])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .stdin(Stdio::null());
        command
    }

    fn execute(&mut self, line: &str) -> Result<(), String> {
        let adapted = self.adapted(line);
        if adapted.starts_with("fullstroke serve ") {
            self.stop_servers()?;
            return self.serve(&adapted);
        }
        // The cache runs in front of the previous line's server, so that server stays.
        if adapted.starts_with("fullstroke cache ") {
            return self.serve(&adapted);
        }
        let talks =
            adapted.starts_with("fullstroke ctl ") || adapted.starts_with("fullstroke top ");
        if !talks {
            self.stop_servers()?;
        }
        if adapted.starts_with("fullstroke top ") {
            return self.watch(&adapted);
        }
        let output = self
            .shell(&adapted)
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!(
            "{adapted}\nended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// Starts a server and waits until it accepts clients.
    fn serve(&mut self, line: &str) -> Result<(), String> {
        let before = self.sockets();
        let mut child = self
            .shell(&format!("exec {line}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let began = Instant::now();
        let ready = |scratch: &Scratch| match line.contains("--tcp") {
            true => std::net::TcpStream::connect(("127.0.0.1", scratch.ports[0])).is_ok(),
            false => scratch.sockets() > before,
        };
        while !ready(self) {
            if child
                .try_wait()
                .map_err(|error| error.to_string())?
                .is_some()
            {
                let output = child
                    .wait_with_output()
                    .map_err(|error| error.to_string())?;
                return Err(format!(
                    "{line}\nended: {}",
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
            if began.elapsed() > Duration::from_secs(60) {
                let _ = child.kill();
                return Err(format!("{line}\nis not ready after a minute"));
            }
            sleep(Duration::from_millis(20));
        }
        self.servers.push(child);
        Ok(())
    }

    /// Returns the number of sockets in the folder.
    fn sockets(&self) -> usize {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        entries
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|e| e == "sock")
            })
            .count()
    }

    /// Runs `top` on a pseudo-terminal for a second.
    fn watch(&self, line: &str) -> Result<(), String> {
        let Ok(status) = self
            .shell(&format!(
                "timeout --signal=TERM --preserve-status 1 script -qec '{line}' /dev/null"
            ))
            .stdout(Stdio::null())
            .status()
        else {
            return Ok(());
        };
        match status.code() {
            // 143 means that the signal ended the program.
            Some(0 | 143) => Ok(()),
            other => Err(format!("{line}\nended with {other:?}")),
        }
    }

    fn stop_servers(&mut self) -> Result<(), String> {
        // Servers end in reverse order, because a cache needs the server below until its end.
        for child in self.servers.drain(..).rev() {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)
                .map_err(|e| e.to_string())?;
            let output = child
                .wait_with_output()
                .map_err(|error| error.to_string())?;
            if !output.status.success() {
                return Err(format!(
                    "a server ended with {}: {}",
                    output.status,
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Puts the 9.1 GB drive of 1999 into the place of the drive of a line that rebuilds. The windows of
/// a rebuild of 24 TB take half a minute of processor time.
fn on_a_small_drive(line: &str) -> String {
    const SMALL: &str = "quantum-atlas-10k";
    if !line.contains(" --rebuilding") && !line.contains("volume.rebuild=") {
        return line.to_owned();
    }
    let words = line.split_whitespace().map(str::to_owned);
    let mut words: Vec<String> = words.collect();
    let mut has_drive = false;
    for index in 0..words.len() {
        if words[index].starts_with("volume.drive=") {
            words[index] = format!("volume.drive={SMALL}");
            has_drive = true;
        }
        if index > 0 && words[index - 1] == "--drive" {
            words[index] = SMALL.to_owned();
            has_drive = true;
        }
    }
    if !has_drive {
        words.splice(2..2, ["--drive", SMALL].map(str::to_owned));
    }
    // The trace of the demo reaches beyond the end of four such drives.
    if line.contains("stacks/demo/") {
        words.splice(2..2, ["--beyond", "wrap"].map(str::to_owned));
    }
    words.join(" ")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        // A developer's study results are large and not needed here.
        match path.is_dir() {
            true if entry.file_name() == "results" => {}
            true => copy(&path, &to),
            false => fs::copy(&path, &to).map(|_| ()).unwrap(),
        }
    }
}

fn document(name: &str) -> String {
    fs::read_to_string(project().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs every command of the documents in order.
fn type_all<'a>(names: impl IntoIterator<Item = &'a &'a str>) {
    let mut failures = Vec::new();
    for &name in names {
        let mut scratch = Scratch::new();
        let lines = commands(&document(name));
        assert!(
            !lines.is_empty() || name == "docs/traces.md",
            "{name} shows no command"
        );
        for line in lines {
            let began = Instant::now();
            if let Err(message) = scratch.execute(&line) {
                failures.push(format!("{name}: {message}"));
            }
            println!("{name}: {line}: {:.1} s", began.elapsed().as_secs_f64());
        }
        if let Err(message) = scratch.stop_servers() {
            failures.push(format!("{name}: {message}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_command_of_the_readme_works_as_it_stands() {
    type_all(&DOCUMENTS[..1]);
}

// The documents are split into three tests, which run in parallel.
#[test]
fn every_command_of_the_first_third_of_docs_works_as_it_stands() {
    type_all(DOCUMENTS[1..].iter().step_by(3));
}

#[test]
fn every_command_of_the_second_third_of_docs_works_as_it_stands() {
    type_all(DOCUMENTS[2..].iter().step_by(3));
}

#[test]
fn every_command_of_the_last_third_of_docs_works_as_it_stands() {
    type_all(DOCUMENTS[3..].iter().step_by(3));
}

/// Returns the code blocks of a document: language and text.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
}

/// Returns a line with single spaces, because columns may be aligned differently.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_tutorials_show_of_answers_is_what_the_program_prints() {
    let mut wrong = Vec::new();
    let mut shown = 0;
    for name in DOCUMENTS.iter().filter(|name| {
        name.starts_with("docs/tutorial-") || ["README.md", "docs/start.md"].contains(name)
    }) {
        let (scratch, text) = (Scratch::new(), document(name));
        let all: Vec<(&str, &str)> = blocks(&text).collect();
        for (of_commands, of_output) in all.iter().zip(&all[1..]) {
            // A text block behind a command block shows the command's output. The output of a run of
            // many seconds stands in a console block, which is not repeated here.
            if !(of_commands.0.is_empty() && of_output.0 == "text") {
                continue;
            }
            let mut printed = Vec::new();
            // Replaces the Makefile's target by its command.
            let typed = of_commands
                .1
                .replace("make demo ", "fullstroke compare stacks/demo/*.toml ");
            for line in commands(&format!("```\n{typed}```")) {
                let output = scratch.shell(&line).output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{name}: {line}: {error}");
                printed.extend(String::from_utf8_lossy(&output.stdout).lines().map(words));
            }
            for line in of_output
                .1
                .lines()
                .map(words)
                .filter(|line| !line.is_empty())
            {
                shown += 1;
                if !printed.iter().any(|own| own.contains(&line)) {
                    let nearest = printed.iter().filter(|own| own.get(..12) == line.get(..12));
                    wrong.push(format!(
                        "{name}: {line}\nprinted is {:?}",
                        nearest.collect::<Vec<_>>()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(shown > 30, "only {shown} lines are shown");
}

#[test]
fn every_whole_stack_in_the_documents_runs() {
    let scratch = Scratch::new();
    let folder = scratch.folder.path().join("stacks/shown");
    fs::create_dir(&folder).unwrap();
    let mut shown = 0;
    for name in DOCUMENTS {
        for text in stacks(&document(name)) {
            shown += 1;
            let stack = folder.join(format!("shown-{shown}.toml"));
            fs::write(&stack, &text).unwrap();
            let output = scratch
                .shell(&format!("fullstroke run {}", stack.display()))
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {error}\n{text}");
        }
    }
    assert!(shown > 0, "README shows a stack");
}

#[test]
fn what_is_typed_in_place_of_long_commands_belongs_to_commands_that_are_shown() {
    let all: Vec<String> = DOCUMENTS
        .iter()
        .flat_map(|name| commands(&document(name)))
        .collect();
    for (long, _) in SHORTENED {
        assert!(
            all.iter().any(|line| line == long),
            "no document shows `{long}` any more"
        );
    }
}

#[test]
fn targets_of_make_that_documents_name_exist() {
    let makefile = document("Makefile");
    for name in DOCUMENTS
        .iter()
        .chain(&["CONTRIBUTING.md", "ARCHITECTURE.md", "VALIDATION.md"])
    {
        let text = document(name);
        // The text names targets in backquotes, and code blocks name them at the start of a line.
        let running = text.split("`make ").skip(1);
        let blocks = text.split("```").skip(1).step_by(2);
        let lines = blocks
            .flat_map(str::lines)
            .filter_map(|line| line.strip_prefix("make "));
        for part in running.chain(lines) {
            let letter = |letter: &char| letter.is_ascii_lowercase() || *letter == '-';
            let target: String = part.chars().take_while(letter).collect();
            assert!(
                makefile.contains(&format!("\n{target}:")),
                "{name}: there is no `make {target}`"
            );
        }
    }
}

/// Largest number of words of a page of results outside of folds.
const WORDS_IN_VIEW: usize = 3000;

/// Largest number of words of a claim.
const WORDS_OF_A_CLAIM: usize = 10;

#[test]
fn pages_of_results_are_short_before_the_folds() {
    for folder in fs::read_dir(project().join("studies")).unwrap() {
        let page = folder.unwrap().path().join("RESULTS.md");
        let Ok(text) = fs::read_to_string(&page) else {
            continue;
        };
        let mut words = 0;
        let mut depth = 0;
        for line in text.lines().filter(|line| !line.starts_with("<!--")) {
            depth += usize::from(line == "<details>");
            if depth == 0 {
                words += line
                    .split_whitespace()
                    .filter(|word| word.contains(char::is_alphanumeric))
                    .count();
            }
            depth -= usize::from(line == "</details>");
        }
        assert!(words <= WORDS_IN_VIEW, "{}: {words} words", page.display());
    }
}

#[test]
fn claims_of_studies_are_short() {
    let all = project().join("studies");
    for study in fullstroke_study::find(&all, &[]).unwrap() {
        for claim in &study.claims {
            let says = &claim.config.says;
            let words = says.split_whitespace().count();
            assert!(
                words <= WORDS_OF_A_CLAIM,
                "{} {}: {words} words: {says}",
                study.id,
                claim.config.id
            );
        }
    }
}

/// Returns the cells of a table's rows by the claim that each row names.
fn rows_by_claim(text: &str) -> BTreeMap<String, Vec<String>> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|row| {
        let cells = row.trim_matches('|').split(" | ");
        let cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
        let id = cells[0].rsplit("N-").next()?;
        let digits: String = id.chars().take_while(char::is_ascii_digit).collect();
        (cells[0].contains("N-") && !digits.is_empty()).then_some((digits, cells))
    })
    .collect()
}

#[test]
fn each_row_of_today_is_that_of_its_study() {
    let page = rows_by_claim(&document("docs/today.md"));
    let results = rows_by_claim(&document("studies/fullstroke-2026/RESULTS.md"));
    let ids = |rows: &BTreeMap<String, Vec<String>>| rows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(ids(&page), ids(&results));
    for (id, cells) in &page {
        let [_, _, _, _, obtained, verdict] = &results[id][..] else {
            panic!("N-{id}: {:?}", results[id]);
        };
        let pays = match verdict.as_str() {
            "holds" => "yes",
            "undecided" => "not decided",
            _ => "no",
        };
        assert_eq!([&cells[1], &cells[2]], [pays, obtained], "N-{id}");
    }
}

#[test]
fn every_page_of_docs_is_in_the_site_once() {
    let summary = document("docs/SUMMARY.md");
    let mut listed: Vec<&str> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(page, _)| page)
        .collect();
    listed.sort_unstable();
    let names = |folder: &str, before: &str| -> Vec<String> {
        fs::read_dir(project().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
            .map(|name| format!("{before}{name}"))
            .collect()
    };
    let mut pages = names("docs", "");
    pages.extend(names("docs/reference", "reference/"));
    pages.sort_unstable();
    assert_eq!(listed, pages);
}

/// Files that the reader of a document creates.
const READERS_OWN: &[&str] = &["crates/path/drive/src/queue/lcfs.rs"];

/// Returns all documents at the root, in docs/ and in docs/reference/.
fn pages() -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/reference"].map(|folder| project().join(folder));
    let mut found: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found
}

/// Collects the names of all files below the code folders, without build output.
fn source_names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "target" {
            source_names(&path, names);
        } else {
            names.insert(name);
        }
    }
}

/// Returns the code files that a text names in backquotes, such as `path/drive/src/arm.rs` or
/// `kernel.rs`.
fn named_files(text: &str) -> Vec<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| {
            [".rs", ".py", ".sh"]
                .iter()
                .any(|extension| word.ends_with(extension))
                && word.chars().all(plain)
                && !word.starts_with(['.', '/'])
        })
        .collect()
}

/// Returns the file names in `text` without a file. A path starts at the root or below `crates/`; a
/// bare name may be in any folder.
fn unknown_files<'a>(text: &'a str, names: &BTreeSet<String>) -> Vec<&'a str> {
    let exists = |word: &str| {
        if word.contains('/') {
            ["", "crates/"]
                .iter()
                .any(|from| project().join(from).join(word).is_file())
        } else {
            names.contains(word)
        }
    };
    named_files(text)
        .into_iter()
        .filter(|word| !exists(word) && !READERS_OWN.contains(word))
        .collect()
}

#[test]
fn each_file_that_a_document_names_exists() {
    let mut names = BTreeSet::new();
    for folder in ["crates", "tools", "python", "fuzz", "docs"] {
        source_names(&project().join(folder), &mut names);
    }
    assert_eq!(
        unknown_files(
            "`path/drive/src/arm.rs`, `crates/ground/units/src/time.rs`, `arm.rs`, `path/drive/src/leg.rs`, `leg.rs`",
            &names
        ),
        ["path/drive/src/leg.rs", "leg.rs"]
    );
    let mut wrong = Vec::new();
    let mut read = String::new();
    for page in pages() {
        // The change log names files as they were at the time.
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        for word in unknown_files(&text, &names) {
            wrong.push(format!("{}: {word}", page.display()));
        }
        read.push_str(&text);
    }
    assert!(
        wrong.is_empty(),
        "these files are named, and do not exist; a path begins at the project's root or below crates/\n{}",
        wrong.join("\n")
    );
    for own in READERS_OWN {
        assert!(
            read.contains(own) && !project().join(own).exists(),
            "READERS_OWN has {own}; expected a document that names it, and no such file"
        );
    }
}

#[test]
fn each_link_between_documents_leads_to_a_file() {
    let mut wrong = Vec::new();
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap();
            if link.is_empty() || link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            links += 1;
            if !page.parent().unwrap().join(link).exists() {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(links > 100, "only {links} links were found");
    assert!(
        wrong.is_empty(),
        "links that lead nowhere:\n{}",
        wrong.join("\n")
    );
}
