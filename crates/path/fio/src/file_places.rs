//! Files of a job: their names, lengths and places.

use crate::JobSet;
use crate::job::{FilesOfJob, FioJob};
use crate::places::WorkerRegions;
use crate::region::{CloneRegion, Misfit, amounts, bytes, region};
use crate::units::Amount;
use fullstroke_units::{SECTOR_BYTES, Sectors};

impl FilesOfJob {
    /// Returns true if the options describe a job on files.
    pub(crate) fn are_named(&self) -> bool {
        // A device needs no place of its own: the volume takes its place.
        let plain = self.names.iter().any(|name| !name.starts_with("/dev/"));
        !self.directories.is_empty() || plain || self.number.is_some_and(|number| number > 1)
    }

    pub(crate) fn count(&self) -> u64 {
        if self.names.is_empty() {
            self.number.unwrap_or(1)
        } else {
            self.names.len() as u64
        }
    }

    /// Returns the path of a file, named as by fio (`make_filename` and `set_name_idx` in fio's
    /// `init.c` and `filesetup.c`). Clones take several directories in turn.
    fn path(&self, job: &str, clone: u32, file: u64) -> String {
        let name = match (self.names.get(file as usize), &self.name_format) {
            (Some(name), _) => name.clone(),
            (None, Some(format)) => format
                .replace("$jobname", job)
                .replace("$jobnum", &clone.to_string())
                .replace("$filenum", &file.to_string())
                .replace("$clientuid", "localhost"),
            (None, None) => format!("{job}.{clone}.{file}"),
        };
        match self.directory_of(clone) {
            None => name,
            Some(directory) => format!(
                "{}/{}",
                directory.trim_end_matches('/'),
                name.trim_start_matches('/')
            ),
        }
    }
}

impl JobSet {
    /// Returns true if the jobs work on files. This is so if a job names a directory or a file, or
    /// sets a number of files above 1.
    pub fn is_of_files(&self) -> bool {
        self.jobs.iter().any(|job| job.files.are_named())
    }
}

impl JobSet {
    /// Returns the jobs with paths as seen from the mount point. The jobs do not say where the file
    /// system is mounted. The deepest directory that holds all files with absolute paths counts as
    /// the mount point. A directory below the root would begin in another part of the device, because
    /// ext4 and XFS spread the directories of the root.
    pub(crate) fn seen_from_mount(mut self) -> JobSet {
        let Some(mount) = self.mount() else {
            return self;
        };
        let strip = |path: &mut String| {
            if let Some(rest) = path.strip_prefix(&mount) {
                *path = rest.trim_start_matches('/').to_owned();
            }
        };
        for job in &mut self.jobs {
            job.files.directories.iter_mut().for_each(strip);
            if job.files.directories.is_empty() {
                job.files.names.iter_mut().for_each(strip);
            }
        }
        self
    }

    /// Returns the deepest directory of all absolute paths, if there is an absolute path.
    fn mount(&self) -> Option<String> {
        let mut common: Option<&str> = None;
        for job in &self.jobs {
            let names = job
                .files
                .names
                .iter()
                .filter_map(|name| name.rsplit_once('/'));
            let parents = names.map(|(parent, _)| parent);
            let parents = parents.filter(|_| job.files.directories.is_empty());
            let directories = job
                .files
                .directories
                .iter()
                .map(|path| path.trim_end_matches('/'));
            let absolute = directories
                .chain(parents)
                .filter(|path| path.starts_with('/'));
            for path in absolute {
                common = Some(common.map_or(path, |common| shared(common, path)));
            }
        }
        common.filter(|path| !path.is_empty()).map(str::to_owned)
    }
}

/// Returns the deepest directory that contains both paths, or is one of them.
fn shared<'a>(one: &'a str, other: &str) -> &'a str {
    let mut end = 0;
    for (part, same) in one.split_inclusive('/').zip(other.split_inclusive('/')) {
        if part.trim_end_matches('/') != same.trim_end_matches('/') {
            break;
        }
        end += part.len();
    }
    one[..end].trim_end_matches('/')
}

/// Position of a file in the worker's address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) path: String,
    /// First byte in the worker's address space.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// Returns the lengths of the job's files. If `size` is not divisible by the number of files, the
/// first files are one block longer, as in fio.
fn lengths(job: &FioJob) -> Result<Vec<u64>, Misfit> {
    let count = job.files.count();
    let offset = bytes(job.offset, 0);
    if let Some(each) = job.file_size {
        return Ok(vec![each; count as usize]);
    }
    let block = job
        .used_blocks()
        .map(crate::job::Blocks::smallest)
        .min()
        .unwrap_or(SECTOR_BYTES)
        .max(1);
    let blocks = bytes(job.size.unwrap_or(Amount::Bytes(0)), 0) / block;
    if blocks < count {
        return Err((
            "size",
            format!("{blocks} blocks of {block} bytes are fewer than {count} files"),
        ));
    }
    // The rest of the division goes to the first files, one block each, so that `size` is used up.
    let of = |file: u64| offset + (blocks / count + u64::from(file < blocks % count)) * block;
    Ok((0..count).map(of).collect())
}

/// Returns the files of a clone, one behind another.
pub(crate) fn places(job: &FioJob, clone: u32) -> Result<Vec<FilePlace>, Misfit> {
    let mut start = 0u64;
    let lay = |(file, bytes): (usize, u64)| {
        let place = FilePlace {
            path: job.files.path(&job.name, clone, file as u64),
            start,
            bytes,
        };
        // The next file begins at a whole sector, because extents have whole sectors.
        start = start.saturating_add(bytes.next_multiple_of(SECTOR_BYTES));
        place
    };
    Ok(lengths(job)?.into_iter().enumerate().map(lay).collect())
}

/// Returns the space of a worker in its own address space.
pub(crate) fn ground(job: &FioJob, clone: u32) -> Result<WorkerRegions, Misfit> {
    ground_in(job, &places(job, clone)?)
}

/// Returns the space of a worker in these files.
pub(crate) fn ground_in(job: &FioJob, places: &[FilePlace]) -> Result<WorkerRegions, Misfit> {
    let all_of_it = FioJob {
        size: None,
        file_size: None,
        ..job.clone()
    };
    let regions = places.iter().map(|place| {
        let region = region(&all_of_it, 0, Sectors(place.bytes / SECTOR_BYTES))?;
        Ok(CloneRegion {
            start: place.start + region.start,
            ..region
        })
    });
    let regions = regions.collect::<Result<Vec<CloneRegion>, Misfit>>()?;
    let length = regions.iter().map(|region| region.length).sum();
    let said = job.size.map(|size| bytes(size, 0));
    let (iteration, limit) = amounts(
        job,
        length,
        said,
        job.io_size.map(|size| bytes(size, length)),
    );
    Ok(WorkerRegions {
        whole: CloneRegion {
            start: 0,
            length,
            iteration,
            limit,
        },
        regions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_shared_directory_is_the_mount_point() {
        for (one, other, common) in [
            ("/mnt/a", "/mnt/a", "/mnt/a"),
            ("/mnt/a", "/mnt/ab", "/mnt"),
            ("/mnt", "/mnt/a/b", "/mnt"),
            ("/srv", "/mnt", ""),
        ] {
            assert_eq!(shared(one, other), common);
            assert_eq!(shared(other, one), common);
        }
    }

    #[test]
    fn absolute_directories_are_seen_from_the_mount_point() {
        let seen = |text: &str| {
            let set = JobSet::parse("j.fio", text, &std::collections::BTreeMap::new());
            set.unwrap().seen_from_mount()
        };
        let set = seen("[a]\ndirectory=/mnt/x\nsize=1m\n[b]\ndirectory=/mnt/x/y/\nsize=1m\n");
        let paths = |job: usize| set.jobs[job].files.path("j", 0, 0);
        assert_eq!((&paths(0)[..], &paths(1)[..]), ("/j.0.0", "y/j.0.0"));
        let set = seen("[a]\ndirectory=d\nsize=1m\n");
        assert_eq!(set.jobs[0].files.path("j", 0, 0), "d/j.0.0");
    }
}
