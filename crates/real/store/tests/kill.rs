//! The server of a volume is killed repeatedly, at any moment.
//!
//! The test runs itself as the process: it writes, fills members and makes data durable. A pipe
//! tells the beginning and end of each act. Then the process is killed without warning; this
//! process opens the folder and checks the data. Each sector identifies its write. The sector must
//! hold the last completed write, or the one in progress. `FULLSTROKE_KILLS` sets how many times
//! each volume is killed in each state (default 10).

mod common;

use common::{SAMPLES, VolumeSample, folder, path, pattern, sample};
use fullstroke_store::bytes::{OpenReport, Opening, Store, StoreLocation};
use fullstroke_units::{Lbn, Random, Sectors, Seed};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Variable with the parameters of the process: sample, folder, first version.
const CHILD: &str = "FULLSTROKE_KILL_CHILD";

/// True if a version wrote zeros; the others wrote a pattern.
fn is_zeros(version: u64) -> bool {
    version == 0 || version % 5 == 4
}

fn content(lbn: u64, sectors: u64, version: u64) -> Vec<u8> {
    if is_zeros(version) {
        vec![0; sectors as usize * 512]
    } else {
        pattern(lbn, sectors, version)
    }
}

fn open(sample: VolumeSample, folder: &Path) -> (Store, OpenReport) {
    let location = StoreLocation::Folder(folder.to_owned());
    let opening = Opening {
        survive_power_loss: false,
        ..Opening::default()
    };
    Store::open((sample.shape)(), &location, "kill", opening)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// No test by itself: the process to be killed.
#[test]
fn the_process_that_is_killed() {
    let Ok(argument) = std::env::var(CHILD) else {
        return;
    };
    let [name, folder, version] = argument.split('|').collect::<Vec<_>>()[..] else {
        return;
    };
    let (mut store, _) = open(sample(name), Path::new(folder));
    let first: u64 = version.parse().unwrap();
    let mut random = Seed(first).stream(name);
    let mut out = std::io::stdout().lock();
    let capacity = store.capacity().0;
    // The process runs until it is killed. The first line ends the test harness's own line.
    writeln!(out, "\n@ready").unwrap();
    for version in first.. {
        let start = random.below(capacity);
        let most = if random.chance(0.7) { 12 } else { 100 };
        let sectors = (1 + random.below(most)).min(capacity - start);
        writeln!(out, "@begin {version} {start} {sectors}").unwrap();
        out.flush().unwrap();
        if is_zeros(version) {
            store
                .write_zeroes(Lbn(start), Sectors(sectors), true)
                .unwrap();
        } else {
            store
                .write(Lbn(start), &pattern(start, sectors, version))
                .unwrap();
        }
        writeln!(out, "@end {version}").unwrap();
        out.flush().unwrap();
        if version % 16 == 0 {
            fill_some(&mut store, &mut random);
        }
        if version % 32 == 0 {
            store.sync().unwrap();
            store.tidy(Duration::from_secs(version)).unwrap();
        }
    }
}

/// Continues the rebuild of a member a little.
fn fill_some(store: &mut Store, random: &mut Random) {
    let rebuilding = store
        .status()
        .into_iter()
        .find(|member| member.filled().is_some());
    if let Some(member) = rebuilding {
        let upto = member.filled().unwrap().0 + 1 + random.below(4);
        store
            .rebuild_member(&path(&member.member), Sectors(upto))
            .unwrap();
    }
}

/// A volume whose servers are killed.
struct KilledVolume {
    sample: VolumeSample,
    folder: tempfile::TempDir,
    /// For each sector, the last completed version.
    versions: Vec<u64>,
    next_version: u64,
    random: Random,
    mended: u64,
    replayed: u64,
    writes: u64,
}

impl KilledVolume {
    fn new(sample: VolumeSample) -> KilledVolume {
        let folder = folder();
        let (store, _) = open(sample, folder.path());
        let versions = vec![0; store.capacity().0 as usize];
        let random = Seed(1).stream(sample.name);
        KilledVolume {
            sample,
            folder,
            versions,
            next_version: 1,
            random,
            mended: 0,
            replayed: 0,
            writes: 0,
        }
    }

    /// Serves, kills, opens and checks the volume.
    fn kill(&mut self) {
        let pause = Duration::from_micros(self.random.below(4_000));
        let lines = self.serve_for(pause);
        let mut under_way = None;
        for line in lines {
            let numbers: Vec<u64> = line
                .split(' ')
                .filter_map(|word| word.parse().ok())
                .collect();
            match (line.split(' ').next(), &numbers[..]) {
                (Some("@begin"), &[version, start, sectors]) => {
                    under_way = Some((version, start, sectors))
                }
                (Some("@end"), &[version]) => {
                    let (begun, start, sectors) = under_way.take().unwrap();
                    assert_eq!(begun, version);
                    self.versions[start as usize..(start + sectors) as usize].fill(version);
                    self.next_version = version + 1;
                    self.writes += 1;
                }
                _ => {}
            }
        }
        self.next_version += 1;
        self.look(under_way);
    }

    /// Returns the whole lines of the process.
    fn serve_for(&self, pause: Duration) -> Vec<String> {
        let argument = format!(
            "{}|{}|{}",
            self.sample.name,
            self.folder.path().display(),
            self.next_version
        );
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "the_process_that_is_killed",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(CHILD, argument)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.ends_with("@ready\n") {
            assert!(
                output.read_line(&mut text).unwrap() > 0,
                "the process died by itself: {text}"
            );
        }
        std::thread::sleep(pause);
        child.kill().unwrap();
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut output, &mut rest).unwrap();
        child.wait().unwrap();
        let rest = String::from_utf8(rest).unwrap();
        let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
        whole.lines().map(str::to_owned).collect()
    }

    fn look(&mut self, under_way: Option<(u64, u64, u64)>) {
        let (mut store, report) = open(self.sample, self.folder.path());
        self.mended += report.mended.mismatched_sectors;
        self.replayed += report.replayed_changes;
        let found = store.scrub().unwrap();
        assert_eq!(
            found.mismatched_sectors, 0,
            "{} {found:?}",
            self.sample.name
        );
        let mut bytes = vec![0; self.versions.len() * 512];
        store.read(Lbn(0), &mut bytes).unwrap();
        for (lbn, held) in bytes.chunks(512).enumerate() {
            let last = self.versions[lbn];
            if held == content(lbn as u64, 1, last) {
                continue;
            }
            let new = under_way
                .filter(|&(_, start, sectors)| (start..start + sectors).contains(&(lbn as u64)))
                .map(|(version, ..)| version);
            let is_new = new.is_some_and(|version| held == content(lbn as u64, 1, version));
            assert!(
                is_new,
                "{}: LBN {lbn} is neither of version {last} nor of {new:?}",
                self.sample.name
            );
            self.versions[lbn] = new.unwrap();
        }
        // A crash may have left sectors of two versions: both are known now.
        store.close().unwrap();
    }

    /// Returns a drive of the second member.
    fn some_drive(&self) -> Vec<usize> {
        let (store, _) = open(self.sample, self.folder.path());
        let mut drives = store
            .status()
            .into_iter()
            .filter(|member| member.file.is_some());
        path(
            &drives
                .find(|drive| drive.member.starts_with('1'))
                .unwrap()
                .member,
        )
    }

    fn change_members(&mut self, change: impl FnOnce(&mut Store)) {
        let (mut store, _) = open(self.sample, self.folder.path());
        change(&mut store);
    }
}

#[test]
fn a_killed_server_loses_nothing_that_it_completed_and_leaves_sound_redundancy() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let kills: usize = std::env::var("FULLSTROKE_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(10);
    let mut total = 0;
    for &sample in SAMPLES {
        let mut volume = KilledVolume::new(sample);
        (0..kills).for_each(|_| volume.kill());
        total += kills;
        if sample.tolerance > 0 {
            let drive = &volume.some_drive();
            volume.change_members(|store| store.fail_member(drive).unwrap());
            (0..kills).for_each(|_| volume.kill());
            volume.change_members(|store| store.restore_member(drive).unwrap());
            (0..kills).for_each(|_| volume.kill());
            total += 2 * kills;
        }
        println!(
            "{:<16} {:>6} writes completed, {:>5} sectors mended, {:>5} changes replayed",
            sample.name, volume.writes, volume.mended, volume.replayed
        );
    }
    println!("{total} kills");
}
