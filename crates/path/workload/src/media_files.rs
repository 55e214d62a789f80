//! Places of a media server's files.

use crate::region::sectors;
use crate::streams_config::{Placement, StreamsConfig};
use fullstroke_contract::ConfigError;
use fullstroke_units::{Lbn, Random, Sectors};

/// Files of equal size that do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaFiles {
    /// First sectors of the files, ascending; those of the recordings behind all others.
    starts: Vec<Lbn>,
    /// Number of files that are played.
    played: u32,
    /// Reads per file.
    reads: u64,
    /// Sectors per read.
    read: Sectors,
}

impl MediaFiles {
    /// The files on a volume of `capacity`.
    ///
    /// # Errors
    /// Names the impossible key.
    pub fn new(
        config: &StreamsConfig,
        capacity: Sectors,
        random: &mut Random,
    ) -> Result<MediaFiles, ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        let read = sectors("read_size", config.read_bytes())?;
        let alignment = sectors("alignment", config.alignment)?.0;
        if alignment == 0 {
            return refuse(
                "alignment",
                "found 0; expected a positive multiple of 512B".into(),
            );
        }
        let played = u64::from(config.files.unwrap_or(config.streams));
        if played == 0 {
            return refuse("files", "found 0; expected at least 1".into());
        }
        // Each recording has a file of its own.
        let count = played + u64::from(config.recordings);
        let (start, length) = region(config, capacity)?;
        let (size, key) = match config.file_size {
            Some(size) => (sectors("file_size", size)?.0, "file_size"),
            None => {
                // Rounded down twice: files begin at the alignment, and consist of whole reads.
                let share = length.0 / count / alignment * alignment;
                (share - share % read.0, "files")
            }
        };
        if config.file_size.is_some() && (size == 0 || !size.is_multiple_of(read.0)) {
            let message = format!(
                "found {}; expected a positive multiple of read_size, {}",
                Sectors(size).bytes(),
                config.read_bytes()
            );
            return refuse(key, message);
        }
        // The room of a file, alignment included.
        let footprint = size.next_multiple_of(alignment);
        if size < read.0
            || footprint
                .checked_mul(count)
                .is_none_or(|all| all > length.0)
        {
            let each = Sectors(size.max(read.0)).bytes();
            return refuse(
                key,
                format!("{count} files of {each} are larger than the {length} for them"),
            );
        }
        let spare = (length.0 - footprint * count) / alignment;
        let distances = distances(config.placement, count, spare, random);
        let starts = distances
            .iter()
            .zip(0..)
            .map(|(distance, number)| Lbn(start.0 + distance * alignment + number * footprint));
        let recordings = config.recordings as usize;
        Ok(MediaFiles {
            starts: recordings_last(starts.collect(), recordings),
            played: played as u32,
            reads: size / read.0,
            read,
        })
    }

    /// First sector of read `read` of file `file`.
    #[inline]
    pub fn place(&self, file: u32, read: u64) -> Lbn {
        self.starts[file as usize] + Sectors(read * self.read.0)
    }

    /// Reads per file.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Number of files that are played; the files of recordings have the numbers from here on.
    pub fn played(&self) -> u32 {
        self.played
    }

    /// Number of files.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32
    }
}

/// Moves the files of `recordings` recordings to the end of the list. The files lie at equal distances
/// among the others.
fn recordings_last(starts: Vec<Lbn>, recordings: usize) -> Vec<Lbn> {
    let count = starts.len();
    // Place `index` begins a share of a recording if the number of whole shares grows there.
    let is_recording = |index: usize| index * recordings / count < (index + 1) * recordings / count;
    let (recorded, mut ordered): (Vec<_>, Vec<_>) = starts
        .into_iter()
        .enumerate()
        .partition(|(index, _)| is_recording(*index));
    ordered.extend(recorded);
    ordered.into_iter().map(|(_, start)| start).collect()
}

/// Distances between the files: how much of the `spare` room lies before each file.
fn distances(placement: Placement, count: u64, spare: u64, random: &mut Random) -> Vec<u64> {
    match placement {
        Placement::Even => {
            let share = |number: u64| {
                // The product of room and number may exceed 64 bits. A single file lies at the
                // start of the region.
                u128::from(spare) * u128::from(number) / u128::from((count - 1).max(1))
            };
            (0..count).map(|number| share(number) as u64).collect()
        }
        Placement::Random => {
            let mut distances: Vec<u64> = (0..count).map(|_| random.below(spare + 1)).collect();
            // Ascending distances keep the files in order, so no file overlaps the next.
            distances.sort_unstable();
            distances
        }
    }
}

/// The part of the volume that holds the files.
fn region(config: &StreamsConfig, capacity: Sectors) -> Result<(Sectors, Sectors), ConfigError> {
    let start = sectors("region_start", config.region_start)?;
    if start >= capacity {
        let message = format!("the region would begin behind the volume of {capacity}");
        return Err(ConfigError::new("region_start", message));
    }
    let rest = capacity - start;
    let length = config
        .region_size
        .map_or(Ok(rest), |size| sectors("region_size", size))?;
    if length > rest {
        let message = format!("the region ends behind the volume of {capacity}");
        return Err(ConfigError::new("region_size", message));
    }
    Ok((start, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;
    use proptest::prelude::*;
    use serde_json::json;

    fn config(keys: serde_json::Value) -> StreamsConfig {
        let mut all = json!({ "streams": 10, "bit_rate": "1Mbit/s", "duration": "1s" });
        all.as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn files(keys: serde_json::Value, capacity: u64) -> Result<MediaFiles, ConfigError> {
        MediaFiles::new(
            &config(keys),
            Sectors(capacity),
            &mut Seed(1).stream("files"),
        )
    }

    #[test]
    fn evenly_spread_files_reach_from_the_beginning_to_the_end() {
        let files = files(json!({ "file_size": "1MiB", "files": 5 }), 1_000_000).unwrap();
        assert_eq!(files.place(0, 0), Lbn(0));
        assert!(1_000_000 - files.place(4, files.reads).0 < 8);
        let gaps: Vec<u64> = files
            .starts
            .windows(2)
            .map(|pair| pair[1].0 - pair[0].0)
            .collect();
        assert!(
            gaps.iter().max().unwrap() - gaps.iter().min().unwrap() <= 8,
            "{gaps:?}"
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_at_its_key() {
        for (keys, key) in [
            (json!({ "file_size": "1GiB" }), "file_size"),
            (json!({ "file_size": "65KiB" }), "file_size"),
            (json!({ "file_size": 0 }), "file_size"),
            (json!({ "files": 0 }), "files"),
            (json!({ "files": 100_000 }), "files"),
            (json!({ "alignment": 0 }), "alignment"),
            (json!({ "region_start": "1TiB" }), "region_start"),
            (json!({ "region_size": "1TiB" }), "region_size"),
        ] {
            assert_eq!(
                files(keys.clone(), 1_000_000).unwrap_err().key,
                key,
                "{keys}"
            );
        }
    }

    #[test]
    fn files_of_recordings_lie_among_the_others() {
        let keys = json!({ "streams": 6, "recordings": 3, "file_size": "64KiB" });
        let files = files(keys, 1_000_000).unwrap();
        assert_eq!((files.played(), files.count()), (6, 9));
        let recorded = &files.starts[6..];
        let mut all = files.starts.clone();
        all.sort_unstable();
        let places: Vec<usize> = recorded
            .iter()
            .map(|start| all.iter().position(|other| other == start).unwrap())
            .collect();
        assert_eq!(places, [2, 5, 8]);
    }

    proptest! {
        #[test]
        fn files_lie_in_their_region_without_overlap(
            count in 1u32..60, capacity in 20_000u64..1_000_000, start in 0u64..4, random: bool, sized: bool,
        ) {
            let placement = if random { "random" } else { "even" };
            let mut keys = json!({ "files": count, "placement": placement, "region_start": start << 20 });
            if sized {
                keys["file_size"] = json!("64KiB");
            }
            let files = files(keys, capacity).unwrap();
            prop_assert_eq!(files.count(), count);
            prop_assert!(files.place(0, 0).0 >= start * 2048);
            for file in 0..count - 1 {
                prop_assert!(files.place(file, files.reads) <= files.place(file + 1, 0));
                prop_assert_eq!((files.place(file, 0).0 - start * 2048) % 8, 0);
            }
            prop_assert!(files.place(count - 1, files.reads).0 <= capacity);
        }
    }
}
