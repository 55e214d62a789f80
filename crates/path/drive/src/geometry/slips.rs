//! Sectors without an LBN, and LBNs on replacement sectors.

use crate::config::SlipConfig;
use fullstroke_contract::ConfigError;

/// Runs of sectors without an LBN: the LBN of a slipped sector moved to the next sector. The runs
/// are sorted and indexed, so that tens of thousands of runs cost one look-up.
#[derive(Clone, Debug, Default)]
pub(super) struct Slips {
    runs: Vec<SlippedRun>,
    /// For each `1 << shift` offsets, the number of runs that were slipped over before the offsets.
    index: Vec<u32>,
    shift: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlippedRun {
    start: u64,
    sectors: u64,
    /// Number of slipped sectors in all runs before this one.
    before: u64,
}

impl SlippedRun {
    fn end(&self) -> u64 {
        self.start + self.sectors
    }

    /// Returns the first offset that has slipped over the run.
    fn slipped_from(&self) -> u64 {
        self.start - self.before
    }
}

impl Slips {
    /// Builds the runs of `configured` in a zone of `total` sectors. LBNs slip within ranges of
    /// `range` sectors, so a run is cut at the end of a range.
    pub(super) fn new(
        configured: &[SlipConfig],
        total: u64,
        range: u64,
    ) -> Result<Slips, ConfigError> {
        let mut runs: Vec<SlippedRun> = Vec::with_capacity(configured.len());
        let (mut before, mut free) = (0, 0);
        for slip in configured {
            let (start, sectors) = slip.run();
            let end = start
                .checked_add(sectors)
                .filter(|&end| end <= total && sectors > 0);
            let end = end.ok_or_else(|| {
                let message =
                    format!("{sectors} sectors from {start} do not lie in the zone's {total}");
                ConfigError::new("slips", message)
            })?;
            if start < free {
                let message = format!("found {start} after {}; expected ascending", free - 1);
                return Err(ConfigError::new("slips", message));
            }
            free = end;
            let mut start = start;
            while start < end {
                let sectors = (range - start % range).min(end - start);
                runs.push(SlippedRun {
                    start,
                    sectors,
                    before,
                });
                before += sectors;
                start += sectors;
            }
        }
        Ok(Slips::indexed(runs, total))
    }

    fn indexed(runs: Vec<SlippedRun>, total: u64) -> Slips {
        if runs.is_empty() {
            return Slips::default();
        }
        // The shift gives about one run for each entry of the index.
        let shift = (total / runs.len() as u64).max(1).ilog2();
        let mut index = Vec::with_capacity((total >> shift) as usize + 2);
        let mut run = 0;
        // One entry more than buckets, because a look-up reads the entry of the next bucket as
        // well.
        for bucket in 0..(total >> shift) + 2 {
            while runs
                .get(run)
                .is_some_and(|run: &SlippedRun| run.slipped_from() < bucket << shift)
            {
                run += 1;
            }
            index.push(run as u32);
        }
        assert_eq!(
            index.last().copied(),
            Some(runs.len() as u32),
            "the index of slips ends behind the last"
        );
        Slips { runs, index, shift }
    }

    /// Number of sectors in all runs.
    pub(super) fn sectors(&self) -> u64 {
        self.runs
            .last()
            .map_or(0, |last| last.before + last.sectors)
    }

    /// Returns the sector of the LBN at `offset`, and the number of the first run behind the
    /// sector.
    #[inline]
    pub(super) fn slip(&self, offset: u64) -> (u64, u32) {
        if self.runs.is_empty() {
            return (offset, 0);
        }
        let bucket = (offset >> self.shift) as usize;
        debug_assert!(
            bucket + 1 < self.index.len(),
            "offset {offset} lies behind the zone whose slips are indexed"
        );
        let first = self.index[bucket];
        let near = &self.runs[first as usize..self.index[bucket + 1] as usize];
        let run = first + near.partition_point(|run| run.slipped_from() <= offset) as u32;
        let slipped = self
            .runs
            .get(run as usize)
            .map_or_else(|| self.sectors(), |next| next.before);
        (offset + slipped, run)
    }

    /// Returns the sector of the LBN at `offset` of the range that begins at `base`. Slips have an
    /// effect only up to the end of the range.
    #[inline]
    pub(super) fn slip_within(&self, base: u64, offset: u64) -> (u64, u32) {
        let first = self.first_from(base);
        let Some(before) = self.runs.get(first).map(|run| run.before) else {
            return (base + offset, first as u32);
        };
        let rest = &self.runs[first..];
        let passed = rest.partition_point(|run| run.start - base - (run.before - before) <= offset);
        let slipped = rest
            .get(passed)
            .map_or_else(|| self.sectors(), |next| next.before)
            - before;
        (base + offset + slipped, (first + passed) as u32)
    }

    /// Returns the number of the first run beginning at or behind `sector`.
    pub(super) fn first_from(&self, sector: u64) -> usize {
        self.runs.partition_point(|run| run.start < sector)
    }

    /// Number of slipped sectors before `sector`.
    pub(super) fn before(&self, sector: u64) -> u64 {
        match self
            .first_from(sector)
            .checked_sub(1)
            .map(|run| self.runs[run])
        {
            None => 0,
            Some(run) => run.before + run.end().min(sector) - run.start,
        }
    }

    /// Number of slipped sectors before `to`, in runs from number `first` on.
    #[inline]
    pub(super) fn slipped_from_run(&self, first: u32, to: u64) -> u64 {
        let rest = self.runs.get(first as usize..).unwrap_or_default();
        rest.iter()
            .take_while(|run| run.start < to)
            .map(|run| run.end().min(to) - run.start)
            .sum()
    }

    /// Returns the last sector of a transfer of `sectors` from `start`. `first` is the number of
    /// the first run behind `start`.
    #[inline]
    pub(super) fn last_of(&self, first: u32, start: u64, sectors: u64) -> u64 {
        let mut last = start + sectors - 1;
        for run in self.runs.get(first as usize..).unwrap_or_default() {
            if run.start > last {
                break;
            }
            last += run.sectors;
        }
        last
    }

    /// Returns the sector of the LBN that follows `lbns` LBNs after the LBN on `start`, and the
    /// number of the first run behind this sector. `first` is the number of the first run behind
    /// `start`.
    #[inline]
    pub(super) fn following(&self, first: u32, start: u64, lbns: u64) -> (u64, u32) {
        let (mut sector, mut run) = (start + lbns, first);
        while let Some(next) = self.runs.get(run as usize)
            && next.start <= sector
        {
            sector += next.sectors;
            run += 1;
        }
        (sector, run)
    }

    /// True if `sector` has no LBN.
    pub(super) fn contains(&self, sector: u64) -> bool {
        let behind = self.runs.partition_point(|run| run.start <= sector);
        behind > 0 && sector < self.runs[behind - 1].end()
    }
}

/// LBNs with a defective sector, which live on a spare sector instead.
#[derive(Clone, Debug, Default)]
pub(super) struct Remaps {
    /// Pairs of defective sector and spare sector, ascending by the defective sector.
    by_defect: Vec<(u64, u64)>,
    /// Pairs of spare sector and defective sector, ascending by the spare sector.
    by_spare: Vec<(u64, u64)>,
}

impl Remaps {
    /// Builds the remaps from pairs of a defective sector and a replacement, in a zone of `total`
    /// sectors.
    pub(super) fn new(configured: &[(u64, u64)], total: u64) -> Result<Remaps, ConfigError> {
        let mut by_defect = configured.to_vec();
        by_defect.sort_unstable();
        let mut by_spare: Vec<(u64, u64)> = configured
            .iter()
            .map(|&(defect, spare)| (spare, defect))
            .collect();
        by_spare.sort_unstable();
        let refuse = |message: String| Err(ConfigError::new("remaps", message));
        if let Some(&(defect, spare)) = configured
            .iter()
            .find(|(defect, spare)| *defect.max(spare) >= total)
        {
            return refuse(format!(
                "[{defect}, {spare}] does not lie in the zone's {total} sectors"
            ));
        }
        for pairs in [&by_defect, &by_spare] {
            if let Some(pair) = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return refuse(format!("sector {} occurs twice", pair[0].0));
            }
        }
        if let Some(&(defect, _)) = by_defect
            .iter()
            .find(|(defect, _)| by_spare.binary_search_by_key(defect, |pair| pair.0).is_ok())
        {
            return refuse(format!(
                "sector {defect} is both defective and a replacement"
            ));
        }
        Ok(Remaps {
            by_defect,
            by_spare,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_defect.is_empty()
    }

    /// Returns the first defective sector at or behind `sector`, with the replacement.
    pub(super) fn next(&self, sector: u64) -> Option<(u64, u64)> {
        self.by_defect
            .get(
                self.by_defect
                    .partition_point(|&(defect, _)| defect < sector),
            )
            .copied()
    }

    /// Returns the replacement of `sector`. `None` if `sector` is not defective.
    pub(super) fn replacement(&self, sector: u64) -> Option<u64> {
        self.next(sector)
            .filter(|&(defect, _)| defect == sector)
            .map(|(_, spare)| spare)
    }

    /// Returns the defective sector that `sector` replaces. `None` if `sector` is no replacement.
    pub(super) fn replaced_by(&self, sector: u64) -> Option<u64> {
        let index = self
            .by_spare
            .binary_search_by_key(&sector, |pair| pair.0)
            .ok()?;
        Some(self.by_spare[index].1)
    }

    /// Returns the replacement sectors, ascending.
    pub(super) fn spares(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_spare.iter().map(|&(spare, _)| spare)
    }
}
