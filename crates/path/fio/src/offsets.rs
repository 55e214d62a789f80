//! Offsets of a worker's blocks.

use crate::coverage::Coverage;
use crate::job::{FioJob, IoDirection, OffsetDistribution, Sequencer};
use crate::permutation::Permutation;
use crate::region::{CloneRegion, Misfit};
use crate::sizes::BlockSizes;
use crate::skew::Skew;
use crate::zones::ZoneWalk;
use fullstroke_units::Random;

/// A range of bytes on the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetBlock {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// Largest number of blocks in a random map for several sizes. fio itself keeps a bit for each block:
/// 128 GiB at this limit.
const MAP_BLOCKS_MAX: u64 = 1 << 40;

/// Method for the choice of random places.
enum Chooser {
    /// Any place; repetitions are possible.
    Free,
    /// Each place once, for blocks of one size.
    Once { order: Permutation, used: u64 },
    /// Each place once, for blocks of several sizes. The map counts blocks of `unit` bytes.
    Map { coverage: Coverage, unit: u64 },
    /// Popular and unpopular places, by direction.
    Skewed(Box<[Option<Skew>; 3]>),
}

/// Generator of one worker's blocks.
pub(crate) struct Offsets {
    region: CloneRegion,
    /// Zone of the next block; `None` without zones.
    zone: Option<ZoneWalk>,
    /// Length within which places are chosen: the zone, or the region.
    span: u64,
    random: bool,
    modifier: i64,
    sequencer: Sequencer,
    percentage_random: [u64; 3],
    /// True if the blocks begin again when every place was used, or at the end of the region.
    endless: bool,
    sizes: [BlockSizes; 3],
    alignment: [u64; 3],
    places: [u64; 3],
    chooser: Chooser,
    /// Beginning and end of the last block, relative to the zone or the region.
    last: [Option<(u64, u64)>; 3],
    /// Number of I/Os until the next random offset of `rw=rand...:n`.
    run: u64,
}

impl Offsets {
    /// Makes the generator for `job` in `region`.
    ///
    /// # Errors
    /// Fails if a random map would be too large.
    pub(crate) fn new(
        job: &FioJob,
        region: CloneRegion,
        popular: &mut Random,
        random: &mut Random,
    ) -> Result<Offsets, Misfit> {
        let sizes = [0, 1, 2].map(|direction| BlockSizes::new(&job.blocks[direction]));
        let alignment = [0, 1, 2].map(|direction: usize| match job.alignment {
            Some(alignment) => alignment[direction],
            None => sizes[direction].smallest(),
        });
        let zone = job.zones.walk();
        let span = zone.map_or(region.length, |zone| zone.range.min(region.length));
        let places = [0, 1, 2].map(|direction: usize| {
            // The last place leaves room for the smallest block, so that a place is never empty.
            span.saturating_sub(sizes[direction].smallest()) / alignment[direction] + 1
        });
        let mut skewed = || {
            IoDirection::ALL.map(|direction| {
                let at = direction as usize;
                Skew::new(
                    &job.distribution,
                    direction,
                    places[at],
                    alignment[at],
                    popular,
                )
            })
        };
        let unit = job
            .used_blocks()
            .map(crate::job::Blocks::smallest)
            .min()
            .unwrap_or(1);
        let chooser = match job.single_size() {
            _ if !job.random
                || (job.distribution == OffsetDistribution::Uniform && !uses_map(job)) =>
            {
                Chooser::Free
            }
            _ if job.distribution != OffsetDistribution::Uniform => {
                Chooser::Skewed(Box::new(skewed()))
            }
            // With one block size each block has a number, so a permutation does without a map in
            // memory.
            Some(bytes) => Chooser::Once {
                order: Permutation::new((span / bytes).max(1), random),
                used: 0,
            },
            None if span / unit <= MAP_BLOCKS_MAX => Chooser::Map {
                coverage: Coverage::new(span / unit),
                unit,
            },
            None if job.soft_random_map => Chooser::Free,
            None => return Err(too_many_blocks(span / unit)),
        };
        Ok(Offsets {
            region,
            zone,
            span,
            random: job.random,
            modifier: job.modifier,
            sequencer: job.sequencer,
            percentage_random: job.percentage_random,
            endless: job.time_based,
            sizes,
            alignment,
            places,
            chooser,
            last: [None; 3],
            run: 0,
        })
    }

    /// Begins again, as at the next loop of a job.
    pub(crate) fn restart(&mut self, random: &mut Random) {
        self.last = [None; 3];
        self.run = 0;
        if let Some(zone) = &mut self.zone {
            zone.restart();
        }
        self.reset_chooser(random);
    }

    fn reset_chooser(&mut self, random: &mut Random) {
        match &mut self.chooser {
            Chooser::Free | Chooser::Skewed(_) => {}
            Chooser::Once { order, used } => {
                *order = Permutation::new(order.bound(), random);
                *used = 0;
            }
            Chooser::Map { coverage, .. } => coverage.clear(),
        }
    }

    /// Returns the next block; `None` if the region is done.
    pub(crate) fn next(
        &mut self,
        direction: IoDirection,
        random: &mut Random,
    ) -> Option<OffsetBlock> {
        let at = direction as usize;
        let zone_start = self.turn_of_zone(random);
        let (offset, drawn) = self.offset(at, random)?;
        let room = self.region.length - zone_start;
        // The last zone may reach beyond the end of the file: the job is then done, as in fio.
        let beyond = offset.saturating_add(self.sizes[at].smallest()) > room;
        if self.zone.is_some() && beyond {
            return None;
        }
        assert!(
            offset < room,
            "offset {offset} lies behind a region of {room} bytes"
        );
        let mut bytes = self.sizes[at].draw(self.span.min(room) - offset, random);
        if let (Chooser::Map { coverage, unit }, true) = (&mut self.chooser, drawn) {
            // A block that would reach into a used one ends there (`mark_random_map` in fio's
            // `io_u.c`).
            let taken = coverage.take(offset / *unit, bytes.div_ceil(*unit));
            bytes = bytes.min(taken * *unit);
        }
        assert!(
            bytes > 0 && bytes <= room - offset,
            "{bytes} bytes at {offset} of a region of {room}"
        );
        // Each direction has a position of its own, as in fio's `last_pos`.
        self.last[at] = Some((offset, offset + bytes));
        if let Some(zone) = &mut self.zone {
            zone.count(bytes);
        }
        Some(OffsetBlock {
            start: self.region.start + zone_start + offset,
            bytes,
        })
    }

    /// Begins the next zone if it is due. Returns the first byte of the zone in the region; 0 without
    /// zones.
    fn turn_of_zone(&mut self, random: &mut Random) -> u64 {
        let Some(zone) = &mut self.zone else {
            return 0;
        };
        let begins = zone.turn(self.region.length);
        let start = zone.start;
        if begins {
            // Sequential I/O begins anew in each zone.
            self.last = [None; 3];
            self.reset_chooser(random);
        }
        start
    }

    /// Returns the next offset, and true if the offset was drawn at random.
    fn offset(&mut self, at: usize, random: &mut Random) -> Option<(u64, bool)> {
        if !self.random {
            return self.sequential(at).map(|offset| (offset, false));
        }
        // `rw=randread:8` is one random offset and seven I/Os that follow it.
        if self.modifier > 1 {
            if self.run > 0 {
                self.run -= 1;
                let follows = match self.sequencer {
                    Sequencer::Sequential => self.sequential(at),
                    Sequencer::Identical => self.last[at].map(|(start, _)| start),
                };
                return follows
                    .map(|offset| (offset, false))
                    .or_else(|| self.drawn(at, random));
            }
            self.run = self.modifier.unsigned_abs() - 1;
        } else if self.percentage_random[at] < 100
            && random.below(100) >= self.percentage_random[at]
        {
            return self
                .sequential(at)
                .map(|offset| (offset, false))
                .or_else(|| self.drawn(at, random));
        }
        self.drawn(at, random)
    }

    /// Returns the end of the last block plus the skip of `rw=...:n`.
    fn sequential(&self, at: usize) -> Option<u64> {
        let Some((_, end)) = self.last[at] else {
            return Some(0);
        };
        // With random I/O the number behind the colon counts I/Os and is no distance.
        let skip = if self.random { 0 } else { self.modifier };
        let length = self.span;
        // Backward I/O that reaches the beginning goes on from the end (`get_next_seq_offset` in
        // fio's `io_u.c`).
        let offset = match end.checked_add_signed(skip) {
            Some(offset) => offset,
            None => length.saturating_add_signed(skip),
        };
        if offset.saturating_add(self.sizes[at].smallest()) <= length {
            return Some(offset);
        }
        // A skip never ends a job at the end of its region: the amount of I/O ends it.
        (self.endless || skip != 0 || self.zone.is_some()).then_some(0)
    }

    fn drawn(&mut self, at: usize, random: &mut Random) -> Option<(u64, bool)> {
        let offset = match self.choose(at, random) {
            // A job bound by time starts a new map when all places are used (`get_next_rand_block`
            // in fio's `io_u.c`).
            None if self.endless || self.zone.is_some() => {
                self.reset_chooser(random);
                self.choose(at, random)
            }
            chosen => chosen,
        };
        offset.map(|offset| (offset, true))
    }

    fn choose(&mut self, at: usize, random: &mut Random) -> Option<u64> {
        let (places, alignment) = (self.places[at], self.alignment[at]);
        match &mut self.chooser {
            Chooser::Free => Some(random.below(places) * alignment),
            Chooser::Once { order, used } => (*used < order.bound()).then(|| {
                *used += 1;
                order.place(*used - 1) * alignment
            }),
            Chooser::Map { coverage, unit } => {
                let wanted = random.below(places) * alignment / *unit;
                coverage.next_free(wanted).map(|block| block * *unit)
            }
            Chooser::Skewed(skews) => {
                let place = match &skews[at] {
                    Some(skew) => skew.draw(random),
                    None => random.below(places),
                };
                Some(place * alignment)
            }
        }
    }
}

/// Returns true if a job uses the random map. As in fio, jobs with an alignment or a distribution
/// do not.
fn uses_map(job: &FioJob) -> bool {
    job.random_map && job.alignment.is_none()
}

fn too_many_blocks(blocks: u64) -> Misfit {
    let message = format!(
        "a random map of several sizes would have {blocks} blocks; at most {MAP_BLOCKS_MAX} are kept. Set \
         norandommap=1 or softrandommap=1, one block size, or a smaller size="
    );
    ("norandommap", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobSet;
    use crate::region::region;
    use fullstroke_units::{Sectors, Seed};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn offsets(options: &str, seed: u64) -> (Offsets, Random, FioJob) {
        let set = JobSet::parse("a.fio", &format!("[a]\n{options}"), &BTreeMap::new()).unwrap();
        let job = set.jobs[0].clone();
        let region = region(&job, 0, Sectors(1 << 20)).unwrap();
        let mut random = Seed(seed).stream("test");
        let offsets =
            Offsets::new(&job, region, &mut Seed(seed).stream("popular"), &mut random).unwrap();
        (offsets, random, job)
    }

    /// Returns blocks in units of 4 KiB, as start and length.
    fn blocks(options: &str, count: usize) -> Vec<(u64, u64)> {
        let (mut offsets, mut random, job) = offsets(options, 1);
        let direction = IoDirection::ALL
            .into_iter()
            .find(|direction| job.work.goes(*direction))
            .unwrap();
        let next = |_| offsets.next(direction, &mut random);
        (0..count)
            .map_while(next)
            .map(|block| (block.start / 4096, block.bytes / 4096))
            .collect()
    }

    fn starts(options: &str, count: usize) -> Vec<u64> {
        blocks(options, count)
            .into_iter()
            .map(|(start, _)| start)
            .collect()
    }

    #[test]
    fn sequential_blocks_are_those_that_fio_issues() {
        assert_eq!(starts("size=16k\noffset=8k\n", 9), [2, 3, 4, 5]);
        assert_eq!(
            starts("size=16k\ntime_based\nruntime=1\n", 6),
            [0, 1, 2, 3, 0, 1]
        );
        assert_eq!(
            starts("rw=write:4k\nsize=64k\n", 10),
            [0, 2, 4, 6, 8, 10, 12, 14, 0, 2]
        );
        assert_eq!(
            starts("rw=read:8k\nsize=64k\n", 8),
            [0, 3, 6, 9, 12, 15, 0, 3]
        );
        assert_eq!(starts("rw=write:-8k\nsize=64k\n", 5), [0, 14, 13, 12, 11]);
    }

    #[test]
    fn strided_zones_are_those_of_fio() {
        // Logs of fio 3.33 (`write_iolog`) on a file of 1 MiB.
        let strided = |options: &str, count| {
            starts(
                &format!("filesize=1m\nsize=1m\nzonemode=strided\n{options}"),
                count,
            )
        };
        assert_eq!(
            strided("zonesize=16k\nzoneskip=64k\n", 9),
            [0, 1, 2, 3, 20, 21, 22, 23, 40]
        );
        assert_eq!(
            strided("zonesize=16k\nzoneskip=64k\n", 56)[50..],
            [242, 243, 0, 1, 2, 3]
        );
        assert_eq!(
            strided("zonesize=32k\nzonerange=16k\nzoneskip=64k\n", 9),
            [0, 1, 2, 3, 0, 1, 2, 3, 20]
        );
        assert_eq!(
            strided("zonesize=24k\nzoneskip=988k\n", 20),
            [0, 1, 2, 3, 4, 5, 253, 254, 255]
        );
        let offset =
            "filesize=1m\noffset=256k\nsize=512k\nzonemode=strided\nzonesize=16k\nzoneskip=64k\n";
        assert_eq!(starts(offset, 42)[38..], [246, 247, 64, 65]);
    }

    #[test]
    fn random_places_of_a_zone_come_once_before_the_next_zone() {
        let options = "rw=randread\nfilesize=1m\nzonemode=strided\nzonesize=32k\nzoneskip=192k\n";
        for (zone, places) in starts(options, 48).chunks(8).enumerate() {
            let mut places = places.to_vec();
            places.sort_unstable();
            let first = 56 * (zone as u64 % 5);
            assert_eq!(places, (first..first + 8).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn a_sequencer_draws_every_nth_offset() {
        let sequential = starts("rw=randread:4\nsize=4m\n", 40);
        assert!(
            sequential
                .chunks(4)
                .all(|run| run.windows(2).all(|pair| pair[1] == pair[0] + 1)),
            "{sequential:?}"
        );
        let identical = starts("rw=randread:4\nrw_sequencer=identical\nsize=4m\n", 40);
        assert!(
            identical
                .chunks(4)
                .all(|run| run.iter().all(|start| *start == run[0])),
            "{identical:?}"
        );
        assert_ne!(identical[0], identical[4]);
    }

    #[test]
    fn a_share_of_random_io_goes_on_where_the_last_ended() {
        let starts = starts("rw=randread\npercentage_random=25\nsize=500m\n", 10_000);
        let followed = starts
            .windows(2)
            .filter(|pair| pair[1] == pair[0] + 1)
            .count();
        assert!((7300..7700).contains(&followed), "{followed}");
    }

    #[test]
    fn an_alignment_is_kept() {
        assert!(
            starts("rw=randread\nba=16k\nsize=4m\n", 500)
                .iter()
                .all(|start| start % 4 == 0)
        );
    }

    #[test]
    fn a_map_of_too_many_blocks_says_how_to_mend_it() {
        let set = JobSet::parse(
            "a.fio",
            "[a]\nrw=randread\nbsrange=4k-8k\n",
            &BTreeMap::new(),
        )
        .unwrap();
        let region = region(&set.jobs[0], 0, Sectors(1 << 50)).unwrap();
        let mut random = Seed(1).stream("test");
        let mut again = random.clone();
        let misfit = Offsets::new(&set.jobs[0], region, &mut random, &mut again)
            .err()
            .unwrap();
        assert_eq!(misfit.0, "norandommap");
    }

    proptest! {
        #[test]
        fn a_random_map_covers_each_block_once(size in 1u64..400, seed: u64, several: bool) {
            let range = if several { "bsrange=4k-16k" } else { "bs=4k" };
            let size = if several { size + 4 } else { size };
            let (mut offsets, mut random, _) = offsets(&format!("rw=randread\nsize={}\n{range}\n", size * 4096), seed);
            let mut seen = vec![0u32; size as usize];
            while let Some(block) = offsets.next(IoDirection::Read, &mut random) {
                for covered in block.start / 4096..(block.start + block.bytes) / 4096 {
                    seen[covered as usize] += 1;
                }
            }
            prop_assert!(seen.into_iter().all(|times| times == 1));
        }

        #[test]
        fn blocks_stay_in_their_region_and_on_their_alignment(
            seed: u64, size in 16u64..600, offset in 0u64..100,
            rw in "(rand)?(read|write|rw|trim|trimwrite)(:[1-9])?",
            how in prop::sample::select(vec![
                "", "norandommap", "bsrange=4k-20k", "bssplit=4k/20:8k/30:16k/", "percentage_random=40", "ba=8k",
                "random_distribution=zipf:0.9", "random_distribution=pareto:0.3:0.5",
                "random_distribution=normal:20", "random_distribution=zoned:60/10:40/90",
                "random_distribution=zoned_abs:50/40k:50/9m", "time_based\nruntime=1", "bs=4k,8k,16k",
            ]),
        ) {
            // For sequential I/O, the number behind the colon counts bytes.
            let rw = if rw.starts_with("rand") { rw } else { rw.replace(':', ":4k #") };
            let options = format!("rw={rw}\nsize={}\noffset={}\n{how}\n", size * 4096, offset * 4096);
            let (mut offsets, mut random, job) = offsets(&options, seed);
            let used: Vec<IoDirection> = IoDirection::ALL.into_iter().filter(|one| job.work.goes(*one)).collect();
            for turn in 0..300 {
                let Some(block) = offsets.next(used[turn % used.len()], &mut random) else { break };
                prop_assert!(block.start >= offset * 4096);
                prop_assert!(block.start + block.bytes <= (offset + size) * 4096);
                prop_assert!(block.bytes > 0 && block.bytes % 4096 == 0);
                // Only a drawn block is aligned. A sequential block begins at the end of the block
                // before.
                let all_drawn = job.random && job.modifier <= 1;
                let alignment = if how.starts_with("ba=") && all_drawn { 8192 } else { 4096 };
                prop_assert_eq!((block.start - offset * 4096) % alignment, 0);
            }
        }
    }
}
