//! Region of a worker on the volume, and its amount of I/O.

use crate::job::{FioJob, IoDirection, JobDirections, PAGE_BYTES};
use crate::units::Amount;
use fullstroke_units::{SECTOR_BYTES, Sectors};

/// Part of the volume for one clone; all values are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CloneRegion {
    pub(crate) start: u64,
    /// Length of the region, a multiple of the smallest block.
    pub(crate) length: u64,
    /// Largest amount of one iteration.
    pub(crate) iteration: u64,
    /// Total amount, not counting loops and time limits.
    pub(crate) limit: u64,
}

/// Option that does not fit the volume, with the reason.
pub(crate) type Misfit = (&'static str, String);

/// Returns the region of clone `clone` (from 0) on a volume of `capacity`.
///
/// # Errors
/// Fails if an offset or a size is beyond the volume, or if the region holds no block.
pub(crate) fn region(job: &FioJob, clone: u32, capacity: Sectors) -> Result<CloneRegion, Misfit> {
    // Blocks in pages need whole pages up to the end.
    let volume = match job.is_in_pages() {
        true => capacity.bytes().0 / PAGE_BYTES * PAGE_BYTES,
        false => capacity.bytes().0,
    };
    let smallest = job
        .used_blocks()
        .map(crate::job::Blocks::smallest)
        .min()
        .unwrap_or(SECTOR_BYTES);
    let start = start(job, clone, volume, smallest)?;
    let rest = volume
        .checked_sub(start)
        .ok_or_else(|| beyond("offset", start, 0, volume))?;
    let said = job.size.map(|size| bytes(size, volume));
    let length = match (job.file_size, said) {
        (Some(end), _) if end > volume => return Err(beyond("filesize", 0, end, volume)),
        (Some(end), _) => end.saturating_sub(start),
        (None, None) => rest,
        // Zones go to the end of the file; `size` is only the amount of I/O.
        (None, Some(_)) if job.zones.strided => rest,
        (None, Some(size)) if size > rest => return Err(beyond("size", start, size, volume)),
        (None, Some(size)) => size,
    };
    // A rest that is shorter than the smallest block is never reached.
    let length = length / smallest * smallest;
    let largest = job
        .used_blocks()
        .map(crate::job::Blocks::largest)
        .max()
        .unwrap_or(SECTOR_BYTES);
    if length < largest {
        let message = format!(
            "the region ({length} bytes from {start} on) is smaller than one block of {largest} bytes"
        );
        return Err(("size", message));
    }
    let (iteration, limit) = amounts(
        job,
        length,
        said,
        job.io_size.map(|amount| bytes(amount, volume)),
    );
    Ok(CloneRegion {
        start,
        length,
        iteration,
        limit,
    })
}

/// Returns the largest amount of one iteration, and the total amount. `length` is the length of the
/// region, `said` the value of `size`.
pub(crate) fn amounts(
    job: &FioJob,
    length: u64,
    said: Option<u64>,
    io_size: Option<u64>,
) -> (u64, u64) {
    let size = said.unwrap_or(length).min(length);
    // Each block is trimmed and written, so the amount of I/O is twice the size.
    let twice = if job.work == JobDirections::TrimThenWrite {
        2
    } else {
        1
    };
    // With `filesize` the region is the file, and `size` is only the amount of I/O.
    let limit = io_size
        .or(said.filter(|_| job.file_size.is_some()))
        .unwrap_or(size);
    // In fio, these jobs continue up to `io_size` in one iteration.
    let endless = (job.work == JobDirections::Mixed && !job.random)
        || (job.random && !job.random_map && job.work != JobDirections::Only(IoDirection::Read));
    let iteration = if endless { size.max(limit) } else { size };
    (iteration.saturating_mul(twice), limit.saturating_mul(twice))
}

/// Returns the first byte of the region. Percentages are rounded up to `offset_align`, or to the
/// smallest block.
fn start(job: &FioJob, clone: u32, volume: u64, smallest: u64) -> Result<u64, Misfit> {
    let alignment = if job.offset_align > 0 {
        job.offset_align
    } else {
        smallest
    };
    let place = |amount: Amount| match amount {
        Amount::Bytes(bytes) => Some(bytes),
        Amount::Percent(_) => bytes(amount, volume).checked_next_multiple_of(alignment),
    };
    place(job.offset_increment)
        .and_then(|increment| increment.checked_mul(u64::from(clone)))
        .and_then(|increment| place(job.offset)?.checked_add(increment))
        .ok_or_else(|| {
            (
                "offset",
                "the offset of a clone does not fit into 64 bits".to_owned(),
            )
        })
}

pub(crate) fn bytes(amount: Amount, volume: u64) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => (u128::from(volume) * u128::from(percent) / 100) as u64,
    }
}

fn beyond(option: &'static str, start: u64, size: u64, volume: u64) -> Misfit {
    let what = if size == 0 {
        String::new()
    } else {
        format!("{size} bytes ")
    };
    (
        option,
        format!("{what}from {start} on exceed the volume of {volume} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobSet;
    use std::collections::BTreeMap;

    fn place(options: &str, clone: u32) -> Result<CloneRegion, Misfit> {
        let set = JobSet::parse("a.fio", &format!("[a]\n{options}"), &BTreeMap::new()).unwrap();
        // A volume of 1 MiB, as with filesize=1m.
        region(&set.jobs[0], clone, Sectors(2048))
    }

    fn parts(options: &str, clone: u32) -> (u64, u64) {
        place(options, clone)
            .map(|region| (region.start, region.length))
            .unwrap()
    }

    #[test]
    fn regions_are_those_of_fio() {
        assert_eq!(parts("", 0), (0, 1 << 20));
        assert_eq!(parts("size=30k\n", 0), (0, 28 << 10));
        assert_eq!(parts("size=50%\n", 0), (0, 1 << 19));
        assert_eq!(parts("offset=8k\nsize=16k\n", 0), (8192, 16384));
        assert_eq!(parts("offset=33%\nbs=64k\n", 0), (6 << 16, 10 << 16));
        assert_eq!(
            parts("offset=33%\nbs=64k\noffset_align=4k\n", 0).0,
            85 << 12
        );
        assert_eq!(
            parts("offset_increment=10%\nsize=64k\n", 2).0,
            2 * (26 << 12)
        );
        assert_eq!(
            parts("filesize=64k\noffset=8k\nsize=16k\n", 0),
            (8192, 56 << 10)
        );
    }

    #[test]
    fn amounts_are_those_of_fio() {
        let limit = |options: &str| place(options, 0).unwrap().limit;
        assert_eq!(limit("size=64k\nio_size=32k\n"), 32 << 10);
        assert_eq!(limit("filesize=64k\noffset=8k\nsize=16k\n"), 16 << 10);
        assert_eq!(limit("rw=trimwrite\nsize=64k\n"), 128 << 10);
    }

    #[test]
    fn what_does_not_fit_the_volume_names_its_option() {
        let misfit = |options: &str, clone: u32| place(options, clone).unwrap_err().0;
        assert_eq!(misfit("size=2m\n", 0), "size");
        assert_eq!(misfit("offset=2m\n", 0), "offset");
        assert_eq!(misfit("offset_increment=600k\n", 2), "offset");
        assert_eq!(misfit("offset=512k\nsize=1m\n", 0), "size");
        assert_eq!(misfit("filesize=2m\n", 0), "filesize");
        assert_eq!(misfit("size=2k\n", 0), "size");
    }
}
