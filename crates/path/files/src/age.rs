//! Ages a new file system, so that its layout resembles one after long use.
//!
//! The method follows Geriatrix (Kadekodi, Nagarajan and Ganger, "Geriatrix: Aging what you see and
//! what you don't see", USENIX ATC 2018). First the ager creates files until the device is as full
//! as the profile says. The profile's distributions give the size and the depth of each file. Then
//! the ager deletes and creates files until the written bytes reach a multiple of the device's
//! size. Only the allocator works: no I/O is simulated and no simulated time passes.
//!
//! Simplification: Geriatrix makes the ages of the remaining files follow a given distribution.
//! Here every file is equally likely to be deleted, so the ages are exponentially distributed.

use crate::{Caller, FileError, FileSystem, MetaAccesses, PAGE_BYTES, SyncPlan};
use fullstroke_contract::{ConfigError, Object, registry};
use fullstroke_units::{Bytes, Random, Seed};
use serde::Serialize;

/// Usage pattern for the ageing of a file system.
#[derive(Clone, Copy, Debug)]
pub struct UsageProfile {
    /// Name as written after `age =`.
    pub name: &'static str,
    /// One-sentence description, with the source.
    pub summary: &'static str,
    sizes: FileLengths,
    /// Mean depth of a file's directory (Poisson distribution); 0 puts all files into the top-level
    /// directories.
    depth_mean: f64,
    /// Number of directories below each directory.
    fan: u64,
    /// Used part of the device at the end of ageing, from 0 to 1.
    full: f64,
    /// Bytes to write, as a multiple of the device's size.
    turnover: f64,
}

/// Lengths of files in bytes.
#[derive(Clone, Copy, Debug)]
enum FileLengths {
    /// Mean and standard deviation of the natural logarithm.
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Uniform {
        least: u64,
        most: u64,
    },
}

/// All profiles.
pub const PROFILES: &[UsageProfile] = &[
    UsageProfile {
        name: "desktop",
        summary: "lengths lognormal (9.48, 2.46), depths Poisson (6.49), as fitted to Windows desktops by \
                  Agrawal et al. (\"Generating realistic Impressions\", FAST 2009, table 2); 80 % full, written twice over",
        sizes: FileLengths::LogNormal {
            mu: 9.48,
            sigma: 2.46,
        },
        depth_mean: 6.49,
        fan: 4,
        full: 0.80,
        turnover: 2.0,
    },
    UsageProfile {
        name: "mail",
        summary: "lengths uniform from 500 to 10,000 bytes in one level of 100 directories, as in Postmark (Katcher, TR3022, 1997); filled to 70 %, then writes of twice the capacity",
        sizes: FileLengths::Uniform {
            least: 500,
            most: 10_000,
        },
        depth_mean: 0.0,
        fan: 100,
        full: 0.70,
        turnover: 2.0,
    },
];

/// Divisor of the device's size, for the longest file of a profile. The limit is needed because one
/// file from the tail of a lognormal distribution would fill a small device.
const LARGEST_PART: u64 = 50;
/// Largest number of directory levels.
const DEPTH_MAX: u64 = 12;

/// Counters of one ageing run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Aged {
    /// Number of files created.
    pub created: u64,
    /// Number of created files deleted again.
    pub deleted: u64,
    /// Number of bytes written.
    pub bytes_written: u64,
}

/// Returns the profile called `name`, or an error at `age` that names the nearest profile.
pub fn profile(name: &str) -> Result<&'static UsageProfile, ConfigError> {
    PROFILES
        .iter()
        .find(|profile| profile.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            let near = registry::nearest(name, &names);
            ConfigError::new(
                "age",
                format!(
                    "there is no profile `{name}`{near}; known: {}",
                    names.join(", ")
                ),
            )
        })
}

/// Ages `system` inside its directory `aged`. The same seed gives the same layout.
pub fn age(
    system: &mut dyn FileSystem,
    profile: &UsageProfile,
    seed: Seed,
) -> Result<Aged, FileError> {
    let mut touches = MetaAccesses::unread();
    let root = system.root();
    let top = system.make_directory(Caller::default(), root, "aged", &mut touches)?;
    let mut ager = Ager {
        system,
        profile,
        random: seed.stream("age"),
        touches,
        tree: vec![AgedDirectory {
            directory: top,
            below: Vec::new(),
        }],
        files: Vec::new(),
        aged: Aged::default(),
    };
    ager.run()?;
    Ok(ager.aged)
}

/// A directory with its existing subdirectories. The index in `below` is the number in the
/// subdirectory's name.
struct AgedDirectory {
    directory: Object,
    below: Vec<Option<usize>>,
}

/// A file that exists.
struct AgedFile {
    directory: Object,
    number: u64,
}

struct Ager<'a> {
    system: &'a mut dyn FileSystem,
    profile: &'a UsageProfile,
    random: Random,
    touches: MetaAccesses,
    tree: Vec<AgedDirectory>,
    files: Vec<AgedFile>,
    aged: Aged,
}

impl Ager<'_> {
    fn run(&mut self) -> Result<(), FileError> {
        let usage = self.system.usage();
        let reserve = (usage.pages as f64 * (1.0 - self.profile.full)) as u64;
        let target = (usage.pages as f64 * self.profile.turnover) as u64 * PAGE_BYTES;
        let limit = usage.pages / LARGEST_PART * PAGE_BYTES;
        while self.aged.bytes_written < target {
            if self.system.usage().pages_free <= reserve && !self.files.is_empty() {
                self.delete_one()?;
            } else {
                let bytes = self.length().clamp(1, limit.max(PAGE_BYTES));
                match self.create_one(bytes) {
                    Ok(()) => {}
                    // The inodes ran out, or files outside `aged` hold the space. The file system
                    // cannot become fuller, so one file is deleted instead.
                    Err(FileError::NoInode { .. } | FileError::NoSpace { .. })
                        if !self.files.is_empty() =>
                    {
                        self.delete_one()?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        // The last transaction is committed here. Otherwise a workload on the aged file system
        // would write the metadata of the ageing.
        let mut plan = SyncPlan::default();
        self.system.commit(Caller::default().now, &mut plan);
        Ok(())
    }

    fn length(&mut self) -> u64 {
        match self.profile.sizes {
            FileLengths::Uniform { least, most } => least + self.random.below(most - least + 1),
            FileLengths::LogNormal { mu, sigma } => {
                (mu + sigma * self.random.normal()).exp() as u64
            }
        }
    }

    /// Draws a Poisson number by Knuth's product of uniform draws.
    fn depth(&mut self) -> u64 {
        let least = (-self.profile.depth_mean).exp();
        let mut product = self.random.unit();
        let mut depth = 0;
        while product > least && depth < DEPTH_MAX {
            product *= self.random.unit();
            depth += 1;
        }
        depth
    }

    /// Returns a directory at a random depth. Creates missing directories on the path.
    fn directory(&mut self) -> Result<Object, FileError> {
        let mut at = 0;
        for _ in 0..self.depth().max(1) {
            let which = self.random.below(self.profile.fan) as usize;
            // The vector grows only as far as needed because most subdirectories of a wide level
            // are never used.
            if self.tree[at].below.len() <= which {
                self.tree[at].below.resize(which + 1, None);
            }
            at = match self.tree[at].below[which] {
                Some(next) => next,
                None => {
                    let parent = self.tree[at].directory;
                    let name = format!("d{which}");
                    self.touches.clear();
                    let made = self.system.make_directory(
                        Caller::default(),
                        parent,
                        &name,
                        &mut self.touches,
                    )?;
                    self.tree.push(AgedDirectory {
                        directory: made,
                        below: Vec::new(),
                    });
                    let next = self.tree.len() - 1;
                    self.tree[at].below[which] = Some(next);
                    next
                }
            };
        }
        Ok(self.tree[at].directory)
    }

    fn create_one(&mut self, bytes: u64) -> Result<(), FileError> {
        let directory = self.directory()?;
        let number = self.aged.created;
        let name = format!("f{number}");
        self.touches.clear();
        let caller = Caller::default();
        let file = self
            .system
            .create(caller, directory, &name, &mut self.touches)?;
        self.files.push(AgedFile { directory, number });
        self.aged.created += 1;
        self.system
            .write(caller, file, Bytes(0), Bytes(bytes), &mut self.touches)?;
        self.system.close(caller, file, &mut self.touches)?;
        let pages = 0..bytes.div_ceil(PAGE_BYTES);
        // With delayed allocation the file has no place before.
        self.system.write_back(
            caller,
            file,
            pages.clone(),
            &mut Vec::new(),
            &mut self.touches,
        )?;
        self.system
            .written_back(caller, file, pages, &mut self.touches);
        self.aged.bytes_written += bytes;
        Ok(())
    }

    fn delete_one(&mut self) -> Result<(), FileError> {
        let which = self.random.below(self.files.len() as u64) as usize;
        let AgedFile { directory, number } = self.files.swap_remove(which);
        self.touches.clear();
        self.system.remove(
            Caller::default(),
            directory,
            &format!("f{number}"),
            &mut self.touches,
        )?;
        self.aged.deleted += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragmentation::{Fragmentation, laid_out};
    use crate::{FileSystemSite, make};
    use fullstroke_contract::registry::Keys;
    use fullstroke_units::Sectors;

    #[test]
    fn an_aged_file_system_is_as_full_as_its_profile_says_and_the_same_for_a_seed() {
        // The mail profile needs more inodes than mke2fs makes by default.
        let inodes = || Keys::from_iter([("bytes_per_inode".to_owned(), "4KiB".into())]);
        for (kind, keys) in [("ext2", inodes()), ("ext4", inodes()), ("xfs", Keys::new())] {
            for profile in PROFILES {
                let run = |seed| {
                    let site = FileSystemSite {
                        capacity: Sectors(1 << 17),
                        seed: Seed(1),
                        stripe: None,
                        tracks: None,
                    };
                    let mut system = make(kind, &keys, &site).unwrap();
                    let aged = age(&mut *system, profile, Seed(seed)).unwrap();
                    let usage = system.usage();
                    let free = (usage.pages_free + system.set_aside()) as f64 / usage.pages as f64;
                    (aged, free, laid_out(&*system).unwrap())
                };
                let (aged, free, files) = run(1);
                let name = format!("{kind} {}", profile.name);
                assert!(
                    (free - (1.0 - profile.full)).abs() < 0.1,
                    "{name}: {free} is free"
                );
                assert!(aged.deleted > 0, "{name}: {aged:?}");
                assert!(Fragmentation::of(&files, 32_768).files > 20, "{name}");
                assert_eq!(run(1).2, files, "{name}");
                assert_ne!(run(2).2, files, "{name}");
            }
        }
        assert!(
            super::profile("dekstop")
                .unwrap_err()
                .to_string()
                .contains("did you mean `desktop`?")
        );
    }
}
