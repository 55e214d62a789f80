//! Files of fio on a volume without a file system.
//!
//! Each file has its own place. The files lie one behind another in the order in which fio lays
//! them out: by job, clone and file. A file begins at a whole MiB, as in a file system that knows
//! the stripes of its array.

use crate::JobSet;
use crate::file_places::{FilePlace, ground_in, places};
use crate::job::FioJob;
use crate::places::WorkerRegions;
use crate::region::{Misfit, region};
use crate::units::Amount;
use fullstroke_units::{Sectors, map_of};
use std::collections::BTreeMap;

/// Alignment of a file, in bytes.
const ALIGNMENT: u64 = 1 << 20;
/// Largest number of jobs whose files are listed in the notes.
const NOTES_MAX: usize = 8;

/// Share of the volume below which a note says that the files lie together: that of a trace's footprint.
const SPAN_TOLD: f64 = 0.05;

/// Engines whose target is one device for all clones.
const DEVICE_ENGINES: &[&str] = &[
    "nbd",
    "rbd",
    "libiscsi",
    "libblkio",
    "xnvme",
    "io_uring_cmd",
    "sg",
    "dev-dax",
    "pmemblk",
];

/// Places of all files of a job file on a volume.
pub(crate) struct Placement {
    /// First byte and length of each file, by path.
    files: BTreeMap<String, (u64, u64)>,
    /// End of the last file.
    end: u64,
    volume: Sectors,
}

impl FioJob {
    /// Returns true if the job names a device. As in fio, a section `[/dev/sdb]` without `filename`
    /// does (`add_job` in fio's `init.c`).
    pub(crate) fn names_device(&self) -> bool {
        let own = std::slice::from_ref(&self.name);
        let names = if self.files.names.is_empty() {
            own
        } else {
            &self.files.names[..]
        };
        names.iter().any(|name| name.starts_with("/dev/"))
    }

    /// Returns true if the job has files of its own on a volume: files without a place below
    /// `/dev`, of a given length. A job without a length works on the whole volume, as if
    /// `filename` named the device. The same holds for percentages and for `offset_increment`, which
    /// give places on a device.
    pub(crate) fn has_files(&self) -> bool {
        let devices = self.names_device();
        let lengths = [self.size, self.io_size, Some(self.offset)];
        let percent = |amount: &Option<Amount>| matches!(amount, Some(Amount::Percent(_)));
        let sized = self.file_size.is_some() || self.size.is_some();
        sized
            && !devices
            && !lengths.iter().any(percent)
            && self.offset_increment == Amount::Bytes(0)
            && !DEVICE_ENGINES.contains(&&self.engine_name[..])
    }
}

impl Placement {
    /// Places the files of all jobs.
    ///
    /// # Errors
    /// The job whose files do not fit any more, with the option and a message.
    pub(crate) fn new(set: &JobSet, volume: Sectors) -> Result<Placement, (usize, Misfit)> {
        let mut placement = Placement {
            files: BTreeMap::new(),
            end: 0,
            volume,
        };
        for job in set.jobs.iter().filter(|job| job.has_files()) {
            for clone in 0..job.clones {
                placement
                    .place(job, clone)
                    .map_err(|misfit| (job.place, misfit))?;
            }
        }
        Ok(placement)
    }

    fn place(&mut self, job: &FioJob, clone: u32) -> Result<(), Misfit> {
        for file in places(job, clone)? {
            // A file that an earlier clone has made is shared, if it is long enough.
            if self
                .files
                .get(&file.path)
                .is_some_and(|(_, bytes)| *bytes >= file.bytes)
            {
                continue;
            }
            let start = self.end.next_multiple_of(ALIGNMENT);
            let end = start.saturating_add(file.bytes);
            let volume = self.volume.bytes().0;
            if end > volume {
                let message = format!(
                    "the files of all jobs lie one behind another, and `{}` ends at byte {end} of a volume of {volume} bytes; give smaller sizes, or filename=/dev/NAME for jobs that share the volume",
                    file.path
                );
                let option = if job.file_size.is_some() {
                    "filesize"
                } else {
                    "size"
                };
                return Err((option, message));
            }
            self.files.insert(file.path, (start, file.bytes));
            self.end = end;
        }
        Ok(())
    }

    /// Returns the space of a worker on the volume.
    pub(crate) fn ground(&self, job: &FioJob, clone: u32) -> Result<WorkerRegions, Misfit> {
        if !job.has_files() {
            return Ok(region(job, clone, self.volume)?.into());
        }
        let here = |file: FilePlace| FilePlace {
            start: self.files.get(&file.path).map_or(0, |(start, _)| *start),
            ..file
        };
        let files: Vec<FilePlace> = places(job, clone)?.into_iter().map(here).collect();
        ground_in(job, &files)
    }

    /// Returns the number of different bytes in the regions of all clones.
    pub(crate) fn footprint(&self, set: &JobSet) -> u64 {
        let clones = set
            .jobs
            .iter()
            .flat_map(|job| (0..job.clones).map(move |clone| (job, clone)));
        let grounds = clones.filter_map(|(job, clone)| self.ground(job, clone).ok());
        let mut parts: Vec<(u64, u64)> = grounds
            .flat_map(|ground| ground.regions)
            .map(|region| (region.start, region.start + region.length))
            .collect();
        parts.sort_unstable();
        let mut counted = 0;
        let each = parts.into_iter().map(|(start, end)| {
            // Regions may overlap, because clones share files. Each byte counts once.
            let new = end.saturating_sub(start.max(counted));
            counted = counted.max(end);
            new
        });
        each.sum()
    }

    /// Returns sentences about the places of the files, one for each job with files. A job with a
    /// single file at the start of the volume needs none.
    pub(crate) fn notes(&self, set: &JobSet) -> Vec<String> {
        if self.files.len() < 2 {
            return Vec::new();
        }
        let jobs: Vec<&FioJob> = set.jobs.iter().filter(|job| job.has_files()).collect();
        let mut notes: Vec<String> = jobs
            .iter()
            .take(NOTES_MAX)
            .filter_map(|job| self.note(job))
            .collect();
        if jobs.len() > NOTES_MAX {
            let more = jobs.len() - NOTES_MAX;
            notes.push(format!("{more} more jobs have files behind these"));
        }
        let share = self.end as f64 / self.volume.bytes().0.max(1) as f64;
        if share < SPAN_TOLD {
            notes.push(format!(
                "the files span {:.2} % of the volume, as on a fresh file system, so that arms move little between them; filename=/dev/NAME with offset_increment=20% sets clones far apart, as on a full or old one",
                100.0 * share
            ));
        }
        notes
    }

    fn note(&self, job: &FioJob) -> Option<String> {
        let all = (0..job.clones).filter_map(|clone| places(job, clone).ok());
        let paths = map_of(
            all.flatten()
                .filter_map(|file| Some((self.files.get(&file.path)?.0, file.path))),
        );
        let (start, first) = paths.first_key_value()?;
        let (last_start, last) = paths.last_key_value()?;
        let end = last_start + self.files.get(last).map_or(0, |(_, bytes)| *bytes);
        let of = gib(self.volume.bytes().0);
        Some(match paths.len() {
            1 => format!(
                "[{}]: the file {first} lies from {} to {} of {of} GiB",
                job.name,
                gib(*start),
                gib(end)
            ),
            count => format!(
                "[{}]: {count} files, {first} to {last}, lie one behind another from {} to {} of {of} GiB",
                job.name,
                gib(*start),
                gib(end)
            ),
        })
    }
}

/// Returns bytes as a number of GiB with three digits behind the point.
fn gib(bytes: u64) -> String {
    let text = format!("{:.3}", bytes as f64 / (1u64 << 30) as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> JobSet {
        JobSet::parse("a.fio", text, &BTreeMap::new()).unwrap()
    }

    /// Returns the regions of all clones, as start and length in MiB.
    fn regions(text: &str) -> Vec<Vec<(u64, u64)>> {
        let set = set(text);
        let placement = Placement::new(&set, Sectors(1 << 21)).unwrap();
        let clones = set
            .jobs
            .iter()
            .flat_map(|job| (0..job.clones).map(move |clone| (job, clone)));
        let mib = |bytes: u64| bytes >> 20;
        clones
            .map(|(job, clone)| {
                let ground = placement.ground(job, clone).unwrap();
                let regions = ground.regions.iter();
                regions
                    .map(|region| (mib(region.start), mib(region.length)))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn each_file_has_its_own_place() {
        assert_eq!(
            regions(
                "[a]\nsize=8m\nnumjobs=3\n[b]\nsize=4m\noffset=2m\n[c]\nfilesize=1m\nnrfiles=2\n"
            ),
            [
                vec![(0, 8)],
                vec![(8, 8)],
                vec![(16, 8)],
                vec![(26, 4)],
                vec![(30, 1), (31, 1)],
            ]
        );
        assert_eq!(
            regions("[a]\ndirectory=/x:/y\nsize=5m\nnrfiles=2\nbs=1m\nnumjobs=2\n"),
            [vec![(0, 3), (3, 2)], vec![(5, 3), (8, 2)]]
        );
    }

    #[test]
    fn clones_and_jobs_share_a_file_of_the_same_name() {
        let shared = regions(
            "[global]\nsize=8m\ndirectory=d\n[a]\nfilename=x\nnumjobs=2\n[b]\nfilename_format=x\n[c]\n",
        );
        assert_eq!(
            shared,
            [vec![(0, 8)], vec![(0, 8)], vec![(0, 8)], vec![(8, 8)]]
        );
    }

    #[test]
    fn a_device_is_the_whole_volume_for_all_clones() {
        for device in [
            "filename=/dev/sdb\nsize=8m\n",
            "name=/dev/sdb\nsize=8m\n",
            "ioengine=rbd\nsize=8m\n",
            "size=1%\n",
        ] {
            let starts = regions(&format!("[a]\n{device}numjobs=2\n"));
            assert_eq!(starts[0][0].0, starts[1][0].0, "{device}");
        }
        assert_eq!(regions("[a]\nnumjobs=2\n"), [[(0, 1024)], [(0, 1024)]]);
        assert_eq!(
            regions("[a]\nnumjobs=2\nsize=8m\noffset_increment=100m\n"),
            [[(0, 8)], [(100, 8)]]
        );
    }

    #[test]
    fn shared_bytes_count_once() {
        let footprint = |text: &str| {
            let set = set(text);
            Placement::new(&set, Sectors(1 << 21))
                .unwrap()
                .footprint(&set)
                >> 20
        };
        assert_eq!(footprint("[a]\nsize=8m\nnumjobs=4\n"), 32);
        let device = "filename=/dev/sda\nsize=8m\n";
        assert_eq!(footprint(&format!("[a]\n{device}numjobs=4\n")), 8);
        assert_eq!(
            footprint(&format!("[a]\n{device}offset_increment=6m\nnumjobs=2\n")),
            14
        );
    }

    #[test]
    fn files_beyond_the_volume_are_refused_with_their_option() {
        let full = set("[a]\nsize=400m\nnumjobs=3\n");
        let (job, (option, message)) = Placement::new(&full, Sectors(1 << 21)).err().unwrap();
        assert_eq!((job, option), (0, "size"));
        assert!(message.contains("`a.2.0`"), "{message}");
    }

    #[test]
    fn the_notes_tell_where_the_files_lie() {
        let notes = |text: &str| {
            let set = set(text);
            Placement::new(&set, Sectors(1 << 24)).unwrap().notes(&set)
        };
        assert_eq!(
            notes("[j]\nsize=1g\nnumjobs=4\n"),
            ["[j]: 4 files, j.0.0 to j.3.0, lie one behind another from 0 to 4 of 8 GiB"]
        );
        assert_eq!(notes("[j]\nsize=1g\n"), [""; 0]);
        let near = notes("[j]\nsize=64m\nnumjobs=4\n");
        assert!(
            near[1].starts_with("the files span 3.12 % of the volume"),
            "{near:?}"
        );
    }
}
