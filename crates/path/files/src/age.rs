//! A file system that has been in use for long, made at once.
//!
//! As Geriatrix does (Kadekodi, Nagarajan and Ganger, "Geriatrix: Aging what you see
//! and what you don't see", USENIX ATC 2018): files are created, by distributions of
//! size and of depth, until the device is as full as wanted; then files are deleted and
//! created until so many times the device's size has been written. Only the allocator
//! works; nothing takes time.
//!
//! Simplified: Geriatrix holds the ages of the files that are left to a distribution;
//! here each file is as likely to be deleted as any other, so that ages are
//! exponential.

use crate::{Caller, FileError, FileSystem, PAGE_BYTES, SyncPlan, Touches};
use fullstroke_contract::{ConfigError, Object, registry};
use fullstroke_units::{Bytes, Random, Seed};
use serde::Serialize;

/// How a file system was used.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// As written after `age =`.
    pub name: &'static str,
    /// One sentence, with the source.
    pub summary: &'static str,
    sizes: Sizes,
    /// The mean of the depth of a file's directory (Poisson); 0 = all in the
    /// directories at the top.
    depth_mean: f64,
    /// Directories at each level below one.
    fan: u64,
    /// The part of the device that is used at the end.
    full: f64,
    /// How many times the device's size is written.
    turnover: f64,
}

/// Lengths of files in bytes.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// Mean and deviation of the natural logarithm.
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Uniform {
        least: u64,
        most: u64,
    },
}

/// Every profile.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "desktop",
        summary: "lengths lognormal (9.48, 2.46), depths Poisson (6.49), as fitted to Windows desktops by \
                  Agrawal et al. (\"Generating realistic Impressions\", FAST 2009, table 2); 80 % full, written twice over",
        sizes: Sizes::LogNormal {
            mu: 9.48,
            sigma: 2.46,
        },
        depth_mean: 6.49,
        fan: 4,
        full: 0.80,
        turnover: 2.0,
    },
    Profile {
        name: "mail",
        summary: "lengths uniform from 500 to 10,000 bytes in one level of 100 directories, as Postmark has them \
                  (Katcher, TR3022, 1997); 70 % full, written twice over",
        sizes: Sizes::Uniform {
            least: 500,
            most: 10_000,
        },
        depth_mean: 0.0,
        fan: 100,
        full: 0.70,
        turnover: 2.0,
    },
];

/// The longest file of a profile, as a part of the device: the tail of a lognormal
/// would fill a small device with one.
const LARGEST_PART: u64 = 50;
/// Levels of directories at most.
const DEPTH_MAX: u64 = 12;

/// What ageing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Aged {
    /// Files that were created.
    pub created: u64,
    /// Of these, deleted again.
    pub deleted: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
}

/// The profile called `name`, or an error at `age` that names the nearest one.
pub fn profile(name: &str) -> Result<&'static Profile, ConfigError> {
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

/// Ages `system` in its directory `aged`. The same seed gives the same layout.
pub fn age(system: &mut dyn FileSystem, profile: &Profile, seed: Seed) -> Result<Aged, FileError> {
    let mut touches = Touches::unread();
    let root = system.root();
    let top = system.make_directory(Caller::default(), root, "aged", &mut touches)?;
    let mut ager = Ager {
        system,
        profile,
        random: seed.stream("age"),
        touches,
        tree: vec![Node {
            directory: top,
            below: Vec::new(),
        }],
        files: Vec::new(),
        aged: Aged::default(),
    };
    ager.run()?;
    Ok(ager.aged)
}

/// A directory, and those below it that exist already, by their number.
struct Node {
    directory: Object,
    below: Vec<Option<usize>>,
}

/// A file that is there.
struct Living {
    directory: Object,
    number: u64,
}

struct Ager<'a> {
    system: &'a mut dyn FileSystem,
    profile: &'a Profile,
    random: Random,
    touches: Touches,
    tree: Vec<Node>,
    files: Vec<Living>,
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
                    // Full of inodes, or of what ageing does not own: that is as old as
                    // it gets.
                    Err(FileError::NoInode { .. } | FileError::NoSpace { .. })
                        if !self.files.is_empty() =>
                    {
                        self.delete_one()?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let mut plan = SyncPlan::default();
        self.system.commit(Caller::default().now, &mut plan);
        Ok(())
    }

    fn length(&mut self) -> u64 {
        match self.profile.sizes {
            Sizes::Uniform { least, most } => least + self.random.below(most - least + 1),
            Sizes::LogNormal { mu, sigma } => (mu + sigma * self.random.normal()).exp() as u64,
        }
    }

    /// By Knuth's product of uniform draws.
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

    /// A directory at a depth drawn, made if need be.
    fn directory(&mut self) -> Result<Object, FileError> {
        let mut at = 0;
        for _ in 0..self.depth().max(1) {
            let which = self.random.below(self.profile.fan) as usize;
            // Where a level is wide, most of what lies below one is never used.
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
                    self.tree.push(Node {
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
        self.files.push(Living { directory, number });
        self.aged.created += 1;
        self.system
            .write(caller, file, Bytes(0), Bytes(bytes), &mut self.touches)?;
        self.system.close(caller, file, &mut self.touches)?;
        let pages = 0..bytes.div_ceil(PAGE_BYTES);
        self.system
            .write_back(caller, file, pages, &mut Vec::new(), &mut self.touches)?;
        self.aged.bytes_written += bytes;
        Ok(())
    }

    fn delete_one(&mut self) -> Result<(), FileError> {
        let which = self.random.below(self.files.len() as u64) as usize;
        let Living { directory, number } = self.files.swap_remove(which);
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
    use crate::{Site, make};
    use fullstroke_contract::registry::Keys;
    use fullstroke_units::Sectors;

    #[test]
    fn an_aged_file_system_is_as_full_as_its_profile_says_and_the_same_for_a_seed() {
        // The mail profile needs more inodes than mke2fs makes.
        let inodes = || Keys::from_iter([("bytes_per_inode".to_owned(), "4KiB".into())]);
        for (kind, keys) in [("ext2", inodes()), ("ext4", inodes()), ("xfs", Keys::new())] {
            for profile in PROFILES {
                let run = |seed| {
                    let site = Site {
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
