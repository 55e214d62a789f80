//! A device that is read, and whose writes stay in memory.
//!
//! Mending goes the usual way on such devices: the changes of journals are repeated, and redundancy
//! follows from the data. Nothing of this reaches the device below.

use crate::Device;
use crate::device::TakeRead;
use crate::limit::Limit;
use fullstroke_units::SECTOR_BYTES;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A device below, and the runs that were written since. A run is whole sectors.
pub(crate) struct Overlay {
    below: Arc<dyn Device>,
    /// For the first byte of each run, the run. Runs do not overlap.
    runs: RwLock<BTreeMap<u64, OverlaidRun>>,
}

/// A run of bytes written to an [`Overlay`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum OverlaidRun {
    Written(Vec<u8>),
    /// This number of zeros, which take no memory.
    Zeros(u64),
}

impl OverlaidRun {
    fn bytes(&self) -> u64 {
        match self {
            OverlaidRun::Written(bytes) => bytes.len() as u64,
            OverlaidRun::Zeros(bytes) => *bytes,
        }
    }

    /// Cuts the run, and returns the part behind the first `bytes`.
    fn split_off(&mut self, bytes: u64) -> OverlaidRun {
        match self {
            OverlaidRun::Written(all) => OverlaidRun::Written(all.split_off(bytes as usize)),
            OverlaidRun::Zeros(all) => {
                let rest = *all - bytes;
                *all = bytes;
                OverlaidRun::Zeros(rest)
            }
        }
    }

    /// Copies the bytes from `from` on.
    fn copy_to(&self, from: u64, into: &mut [u8]) {
        match self {
            OverlaidRun::Written(bytes) => {
                into.copy_from_slice(&bytes[from as usize..][..into.len()]);
            }
            OverlaidRun::Zeros(_) => into.fill(0),
        }
    }
}

/// Returns the runs that begin or end within `range`, without the parts outside.
fn within(
    runs: &BTreeMap<u64, OverlaidRun>,
    range: Range<u64>,
) -> impl Iterator<Item = (Range<u64>, u64, &OverlaidRun)> {
    // A run that begins before the range may reach into it.
    let before = runs.range(..range.start).next_back();
    let all = before.into_iter().chain(runs.range(range.clone()));
    all.filter_map(move |(&start, run)| {
        let end = (start + run.bytes()).min(range.end);
        let first = start.max(range.start);
        (first < end).then_some((first..end, first - start, run))
    })
}

impl Overlay {
    /// Covers `below`, which is not written to any more.
    pub(crate) fn over(below: Arc<dyn Device>) -> Overlay {
        Overlay {
            below,
            runs: RwLock::default(),
        }
    }

    fn put(&self, at: u64, run: OverlaidRun) -> io::Result<()> {
        let end = at + run.bytes();
        if end > self.below.bytes() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        debug_assert!(
            at.is_multiple_of(SECTOR_BYTES) && run.bytes().is_multiple_of(SECTOR_BYTES),
            "{} bytes at {at} are no whole sectors",
            run.bytes()
        );
        if run.bytes() == 0 {
            return Ok(());
        }
        let mut runs = self.lock_for_writing();
        // Runs are cut at both borders, so that only whole runs are replaced.
        for border in [at, end] {
            let split = runs.range_mut(..border).next_back();
            let split = split.filter(|(start, run)| *start + run.bytes() > border);
            if let Some((start, run)) = split {
                let rest = run.split_off(border - start);
                runs.insert(border, rest);
            }
        }
        let covered: Vec<u64> = runs.range(at..end).map(|(&start, _)| start).collect();
        for start in covered {
            runs.remove(&start);
        }
        runs.insert(at, run);
        Ok(())
    }

    fn lock(&self) -> RwLockReadGuard<'_, BTreeMap<u64, OverlaidRun>> {
        self.runs.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_for_writing(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, OverlaidRun>> {
        self.runs.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Overlay {
    fn name(&self) -> String {
        self.below.name()
    }
    fn bytes(&self) -> u64 {
        self.below.bytes()
    }
    fn block_bytes(&self) -> u64 {
        self.below.block_bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let runs = self.lock();
        let end = at + into.len() as u64;
        let mut done = at;
        // Only the gaps between the runs are read below: sectors that could not be read are
        // readable once they were written again.
        for (covered, from, run) in within(&runs, at..end) {
            if done < covered.start {
                let gap = (done - at) as usize..(covered.start - at) as usize;
                self.below.read(done, &mut into[gap])?;
            }
            let own = (covered.start - at) as usize..(covered.end - at) as usize;
            run.copy_to(from, &mut into[own]);
            done = covered.end;
        }
        if done < end {
            self.below.read(done, &mut into[(done - at) as usize..])?;
        }
        Ok(())
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.put(at, OverlaidRun::Written(from.to_vec()))
    }
    fn zero(&self, at: u64, bytes: u64, _hole: bool) -> io::Result<()> {
        self.put(at, OverlaidRun::Zeros(bytes))
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        let runs = self.lock();
        let mut done = at;
        for (covered, _, run) in within(&runs, at..at + bytes) {
            if done < covered.start
                && let Some(found) = self.below.next_data(done, covered.start - done)?
            {
                return Ok(Some(found));
            }
            match run {
                OverlaidRun::Written(_) => return Ok(Some(covered)),
                OverlaidRun::Zeros(_) => done = covered.end,
            }
        }
        self.below.next_data(done, at + bytes - done)
    }
    fn is_volatile(&self) -> bool {
        true
    }
    fn standby(&self) -> Option<&crate::Standby> {
        self.below.standby()
    }
    fn begin_read(&self, at: u64, bytes: usize, take: TakeRead) -> io::Result<Option<u64>> {
        let runs = self.lock();
        // Bytes in memory are there at once, so only reads of the device below can be late.
        match within(&runs, at..at + bytes as u64).next() {
            Some(_) => Ok(None),
            None => self.below.begin_read(at, bytes, take),
        }
    }
    fn limit(&self) -> Option<&Limit> {
        self.below.limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;
    use proptest::prelude::*;

    const SECTORS: u64 = 24;

    /// A device whose sector 5 cannot be read, and that must not be written.
    struct OnlyRead(MemoryDevice);

    impl Device for OnlyRead {
        fn name(&self) -> String {
            "only read".to_owned()
        }
        fn bytes(&self) -> u64 {
            self.0.bytes()
        }
        fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
            if (at..at + into.len() as u64).contains(&(5 * SECTOR_BYTES)) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.0.read(at, into)
        }
        fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
            panic!("the device below is written to");
        }
        fn flush(&self) -> io::Result<()> {
            panic!("the device below is flushed");
        }
    }

    #[test]
    fn a_sector_that_cannot_be_read_is_readable_once_it_was_written_over_the_device() {
        let below = MemoryDevice::new(SECTORS * SECTOR_BYTES);
        below.write(0, &[3; 12 << 10]).unwrap();
        let device = Overlay::over(Arc::new(OnlyRead(below)));
        let mut read = vec![0; 3 * SECTOR_BYTES as usize];
        assert!(device.read(4 * SECTOR_BYTES, &mut read).is_err());
        device.write(5 * SECTOR_BYTES, &[7; 512]).unwrap();
        device.read(4 * SECTOR_BYTES, &mut read).unwrap();
        assert_eq!(read, [[3; 512], [7; 512], [3; 512]].concat());
        device.flush().unwrap();
        let behind = device.write(SECTORS * SECTOR_BYTES, &[0; 512]);
        assert_eq!(
            behind.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof,
            "no byte behind the end"
        );
    }

    proptest! {
        #[test]
        fn it_reads_as_a_device_that_was_written(
            changes in prop::collection::vec((0..SECTORS, 1..8_u64, 0..3_u8), 0..30)
        ) {
            let below = Arc::new(MemoryDevice::new(SECTORS * SECTOR_BYTES));
            below.write(8 * SECTOR_BYTES, &[9; 4096]).unwrap();
            let mut expected = vec![0; (SECTORS * SECTOR_BYTES) as usize];
            below.read(0, &mut expected).unwrap();
            let before = expected.clone();
            let device = Overlay::over(Arc::clone(&below) as Arc<dyn Device>);
            for (index, (first, sectors, kind)) in changes.into_iter().enumerate() {
                let (at, bytes) = (first * SECTOR_BYTES, sectors.min(SECTORS - first) * SECTOR_BYTES);
                let tag = if kind == 0 { 0 } else { index as u8 + 1 };
                if kind == 0 {
                    device.zero(at, bytes, true).unwrap();
                } else {
                    device.write(at, &vec![tag; bytes as usize]).unwrap();
                }
                expected[at as usize..(at + bytes) as usize].fill(tag);
            }
            for first in 0..SECTORS {
                for behind in first + 1..=SECTORS {
                    let range = (first * SECTOR_BYTES) as usize..(behind * SECTOR_BYTES) as usize;
                    let mut read = vec![1; range.len()];
                    device.read(range.start as u64, &mut read).unwrap();
                    prop_assert!(read == expected[range.clone()]);
                    // What the device calls no data reads as zeros.
                    let found = device.next_data(range.start as u64, range.len() as u64).unwrap();
                    let hole = found.map_or(range.end, |found| found.start as usize);
                    prop_assert!(expected[range.start..hole].iter().all(|&byte| byte == 0));
                }
            }
            let mut after = vec![0; before.len()];
            below.read(0, &mut after).unwrap();
            prop_assert!(after == before);
        }
    }
}
