//! Comparison with the kernel: the same operations on its file systems and on ours.
//!
//! `cargo test -p fullstroke-files --test oracle -- --nocapture` prints the fragmentation of both
//! layouts. If the host cannot mount, the test says so and passes.
//!
//! The kernel makes random choices and writes back on several processors, so the files do not lie
//! on the same blocks. The test therefore compares statistics of the layout.

// The lint policy does not apply here: the test opens files and runs programs.
#![allow(clippy::disallowed_methods)]

use fullstroke_contract::registry::Keys;
use fullstroke_files::fragmentation::{FileFragments, Fragment, Fragmentation, laid_out};
use fullstroke_files::script::{Script, ScriptPlayer, ScriptStep};
use fullstroke_files::{FileSystemSite, make};
use fullstroke_units::{Sectors, Seed, Time};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// 1 GiB: eight block groups, four allocation groups.
const DEVICE_BYTES: u64 = 1 << 30;
/// Bytes of one `write` call, as in [`ScriptPlayer`].
const WRITE_BYTES: usize = 128 << 10;

const SCRIPTS: [(&str, &str); 3] = [
    ("small", include_str!("../../../../samples/files/small.fs")),
    (
        "growing",
        include_str!("../../../../samples/files/growing.fs"),
    ),
    (
        "churned",
        include_str!("../../../../samples/files/churned.fs"),
    ),
];

/// A kind of file system: the command that makes the real one, and the keys of ours.
struct Pair {
    kind: &'static str,
    make: &'static [&'static str],
    keys: Value,
}

fn pairs() -> [Pair; 3] {
    [
        // Most distributions mount ext2 with the ext4 driver.
        Pair {
            kind: "ext2",
            make: &[
                "mke2fs", "-q", "-F", "-t", "ext2", "-b", "4096", "-I", "256",
            ],
            keys: json!({ "allocation": "multiblock", "inode_size": 256 }),
        },
        Pair {
            kind: "ext4",
            make: &["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096"],
            keys: json!({}),
        },
        Pair {
            kind: "xfs",
            make: &["mkfs.xfs", "-q", "-f"],
            keys: json!({ "kernel": "today" }),
        },
    ]
}

/// Returns the output of a program, or its error output if the program fails.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("/usr/sbin:/usr/bin:/sbin:/bin:{path}"));
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

/// A file system of the kernel on a loop device. Drop unmounts the file system.
struct Mounted {
    at: PathBuf,
    _folder: tempfile::TempDir,
}

impl Mounted {
    /// Makes and mounts the file system. Returns the reason if this is impossible.
    fn new(pair: &Pair) -> Result<Mounted, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let image = folder.path().join("image");
        let file = File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(DEVICE_BYTES)
            .map_err(|error| error.to_string())?;
        let image = image.to_string_lossy().into_owned();
        run(pair.make[0], &[&pair.make[1..], &[&image]].concat())?;
        let at = folder.path().join("mounted");
        fs::create_dir(&at).map_err(|error| error.to_string())?;
        run(
            "mount",
            &["-o", "loop", "-t", pair.kind, &image, &at.to_string_lossy()],
        )?;
        Ok(Mounted {
            at,
            _folder: folder,
        })
    }

    fn play(&self, script: &Script) {
        let mut open = BTreeMap::new();
        for (line, step) in script.steps() {
            self.step(step, &mut open)
                .unwrap_or_else(|error| panic!("line {line}: {step:?}: {error}"));
        }
    }

    fn step(&self, step: &ScriptStep, open: &mut BTreeMap<String, File>) -> std::io::Result<()> {
        let path = |path: &str| self.at.join(path);
        match step {
            ScriptStep::MakeDirectory(at) => fs::create_dir(path(at)),
            ScriptStep::Create(at, bytes) => fill(&mut File::create(path(at))?, *bytes),
            ScriptStep::Append(at, bytes) => match open.get_mut(at) {
                Some(file) => fill(file, *bytes),
                None => fill(&mut OpenOptions::new().append(true).open(path(at))?, *bytes),
            },
            ScriptStep::Write(at, offset, bytes) => {
                let mut file = OpenOptions::new().write(true).open(path(at))?;
                file.seek(SeekFrom::Start(*offset))?;
                fill(&mut file, *bytes)
            }
            ScriptStep::Read(at, ..) => fs::read(path(at)).map(drop),
            ScriptStep::Truncate(at, bytes) => OpenOptions::new()
                .write(true)
                .open(path(at))?
                .set_len(*bytes),
            ScriptStep::Open(at) => {
                let file = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(path(at))?;
                open.insert(at.clone(), file);
                Ok(())
            }
            ScriptStep::Close(at) => {
                open.remove(at);
                Ok(())
            }
            ScriptStep::Delete(at) if path(at).is_dir() => fs::remove_dir(path(at)),
            ScriptStep::Delete(at) => fs::remove_file(path(at)),
            ScriptStep::Rename(from, to) => fs::rename(path(from), path(to)),
            ScriptStep::Fsync(at) => File::open(path(at))?.sync_all(),
            ScriptStep::Sync => run("sync", &["-f", &self.at.to_string_lossy()])
                .map(drop)
                .map_err(std::io::Error::other),
            // No result here depends on time.
            ScriptStep::Sleep(_) => Ok(()),
        }
    }

    /// Returns the layout of all files, from `filefrag`.
    fn laid_out(&self) -> Vec<FileFragments> {
        let mut files = Vec::new();
        let mut waiting = vec![self.at.clone()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path)
                } else {
                    files.push(path)
                }
            }
        }
        files.sort();
        files
            .iter()
            .map(|path| self.laid(path))
            .filter(|file| !file.fragments.is_empty())
            .collect()
    }

    fn laid(&self, path: &Path) -> FileFragments {
        let told = run("filefrag", &["-v", "-b4096", &path.to_string_lossy()]).unwrap();
        let name = path
            .strip_prefix(&self.at)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        FileFragments::new(name, told.lines().filter_map(fragment))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for _ in 0..50 {
            if run("umount", &[&self.at.to_string_lossy()]).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

fn fill(file: &mut File, bytes: u64) -> std::io::Result<()> {
    let buffer = vec![b'x'; WRITE_BYTES];
    let mut left = bytes as usize;
    while left > 0 {
        let length = left.min(WRITE_BYTES);
        file.write_all(&buffer[..length])?;
        left -= length;
    }
    Ok(())
}

/// Parses a line of `filefrag -v`: `  0:        0..      15:      34816..     34831:     16: …`.
fn fragment(line: &str) -> Option<Fragment> {
    let mut parts = line.split(':');
    parts.next()?.trim().parse::<u64>().ok()?;
    let first = |range: &str| range.split("..").next()?.trim().parse().ok();
    let page = first(parts.next()?)?;
    let block = first(parts.next()?)?;
    let pages = parts.next()?.trim().parse().ok()?;
    Some(Fragment { page, block, pages })
}

/// Executes the same script on our file system.
fn ours(pair: &Pair, script: &Script) -> (Vec<FileFragments>, u64) {
    let keys: Keys = pair.keys.as_object().cloned().unwrap();
    let site = FileSystemSite {
        capacity: Sectors(DEVICE_BYTES / 512),
        seed: Seed(1),
        stripe: None,
        tracks: None,
    };
    let mut system = make(pair.kind, &keys, &site).unwrap();
    ScriptPlayer::new(&mut *system, Time::ZERO)
        .play_all(script)
        .unwrap();
    (laid_out(&*system).unwrap(), system.regions().pages)
}

fn row(kind: &str, script: &str, whose: &str, all: &Fragmentation) {
    let classes: Vec<String> = all
        .distribution
        .iter()
        .map(|share| share.files.to_string())
        .collect();
    println!(
        "{kind:5} {script:8} {whose:6} {:5} {:7} {:7.3} {:9.4} {:7} {:8.3} {:8.3}  {}",
        all.files,
        all.pages,
        all.fragments_a_file(),
        all.contiguity,
        all.regions_used,
        all.fullest_share,
        all.regions_a_file,
        classes.join(" "),
    );
}

#[test]
fn files_lie_as_the_kernel_lays_them() {
    println!(
        "kind  script   whose  files   pages  ext/file  contig.  groups  fullest  grp/file  files of 1, 2-3, 4-7 ... extents"
    );
    let mut differences = Vec::new();
    for pair in &pairs() {
        for (name, text) in SCRIPTS {
            let script = Script::parse(text).unwrap();
            let mounted = match Mounted::new(pair) {
                Ok(mounted) => mounted,
                Err(why) => {
                    eprintln!("skipped: no {} can be mounted here: {why}", pair.kind);
                    continue;
                }
            };
            mounted.play(&script);
            let (files, region_pages) = ours(pair, &script);
            let real = Fragmentation::of(&mounted.laid_out(), region_pages);
            let model = Fragmentation::of(&files, region_pages);
            row(pair.kind, name, "kernel", &real);
            row(pair.kind, name, "ours", &model);
            differences
                .extend(compare(&real, &model).map(|what| format!("{} {name}: {what}", pair.kind)));
        }
    }
    assert_eq!(differences, [] as [String; 0]);
}

/// Returns the differences that exceed the tolerances. Numbers of files and pages must be equal.
/// The share of pages that follow their predecessor may differ by 0.02. The number of extents of a
/// file may differ by a third, or by 0.2 if that is more. The spread over groups depends on the
/// kernel's random choice of groups for directories. So the fullest group's share may differ by
/// 0.3, and the number of groups of a file by 0.5.
fn compare<'a>(
    real: &Fragmentation,
    model: &Fragmentation,
) -> impl Iterator<Item = String> + use<'a> {
    let mut found = Vec::new();
    if (real.files, real.pages) != (model.files, model.pages) {
        found.push(format!(
            "{} files of {} pages, ours {} of {}",
            real.files, real.pages, model.files, model.pages
        ));
    }
    if (real.contiguity - model.contiguity).abs() > 0.02 {
        found.push(format!(
            "contiguity {:.4}, ours {:.4}",
            real.contiguity, model.contiguity
        ));
    }
    let (theirs, ours) = (real.fragments_a_file(), model.fragments_a_file());
    if (theirs - ours).abs() > (theirs / 3.0).max(0.2) {
        found.push(format!("{theirs:.3} extents a file, ours {ours:.3}"));
    }
    if (real.fullest_share - model.fullest_share).abs() > 0.3 {
        found.push(format!(
            "{:.3} in the fullest group, ours {:.3}",
            real.fullest_share, model.fullest_share
        ));
    }
    if (real.regions_a_file - model.regions_a_file).abs() > 0.5 {
        found.push(format!(
            "{:.3} groups a file, ours {:.3}",
            real.regions_a_file, model.regions_a_file
        ));
    }
    found.into_iter()
}
