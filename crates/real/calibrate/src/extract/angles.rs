//! The revolution, and the angle of any sector.
//!
//! A read ends a fixed time after its sector has passed under the head. The duration of the seek
//! before does not matter. So the instant of completion modulo the revolution *is* the sector's
//! angle, except for a constant (Worthington et al. 1995; Wong 2019). A read from the buffer tells
//! nothing about the angle. Such a read is recognised by its short response time. The read is
//! repeated after enough other reads have emptied the buffer.

use crate::extract::ExtractError;
use crate::extract::machine::ExtractionAlgorithm;
use fullstroke_units::{Duration, Random, Seed};
use std::collections::{BTreeMap, VecDeque};

/// Response time in ns below which no platter was waited for, if all reads of one address are so
/// short. The value lies below the shortest revolution in `REVOLUTION_NS`.
pub(crate) const HASTE_NS: u64 = 2_500_000;

/// Revolution of the fastest and the slowest disk, in ns: 20,000 and 3,000 rpm.
const REVOLUTION_NS: (f64, f64) = (3.0e6, 20.0e6);

/// Largest number of reads elsewhere to push one address out of the buffer.
const EVICTIONS_MAX: u64 = 8192;

/// Length of a long read in sectors. One long read takes as long as a few short reads. So long
/// reads empty the buffer only if `LONG_WORTH` times fewer of them suffice.
const LONG_READ: u64 = 8192;
const LONG_WORTH: u64 = 8;

/// Number of pairs of reads in the test if a buffer answers the second read.
const HIT_READS: u32 = 16;

/// Number of pairs of reads in the test if the buffer has forgotten the first read.
const FORGOTTEN_READS: u32 = 6;

/// Number of gaps between two reads of one address, from which the revolution is first guessed.
const GAPS: usize = 41;

/// Number of revolutions tried in the first guess.
const GUESSES: usize = 40_000;

/// Largest misfit of a gap, in revolutions. A gap with this misfit tells nothing.
const SPOILT: f64 = 0.05;

/// Number of doublings of the gap between two reads of one address. The last gap is about ten
/// seconds.
const DOUBLINGS: u32 = 10;

/// Number of reads of one descent that may be noticed late by more than a tenth of a revolution.
const LATE_MAX: u32 = 4;

/// Number of reads of one address at the end, from which the noise is computed.
const NOISE_READS: usize = 16;

/// Number of reads for the noise where single reads are noticed late. With 16 reads, one
/// measurement in several would show only half of the noise.
const LATE_NOISE_READS: usize = 128;

/// Largest drift of the angle of one address, in standard errors of the mean.
const DRIFT_ERRORS: f64 = 4.0;

/// Number of reads of one descent, and largest number of descents.
const DESCENT_READS: u64 = 3 + DOUBLINGS as u64 + NOISE_READS as u64;
const DESCENTS: u32 = 12;

/// Largest noise at which angles are trusted, in revolutions. The value is a fifth of the smallest
/// change that counts (`OFF_LINE`).
pub const NOISE_MAX: f64 = 0.004;

/// Limit of the length of a hole in a track, in sectors without addresses.
pub(crate) const HOLES: f64 = 16.0;

/// Tolerance of an angle, in standard deviations of the noise.
const NOISE_WIDE: f64 = 7.0;

/// Noise, in revolutions, below which a single read is enough for an angle.
const QUIET: f64 = 0.000_02;

/// Least and largest number of reads of one sector, where reads are often noticed late.
const AGREE_READS_MIN: usize = 4;
const AGREE_READS_MAX: usize = 32;

/// Number of remembered angles.
const RECENT: usize = 4096;

/// One of this many reads may be late by more than half a revolution and so look early.
const LATE_AS_EARLY: usize = 6;

/// Number of reads for a median.
const MIDDLE_READS: usize = 5;

/// Number of noisy descents before the measurement changes to the method for noisy hosts.
const NOISY_DESCENTS: u32 = 2;

/// Result of the measurement of the rotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Rotation {
    /// One revolution, in ns.
    pub revolution_ns: f64,
    /// Standard deviation of the angle of one sector, in revolutions. Single reads that were
    /// noticed late do not count.
    pub noise: f64,
    /// True if single reads are noticed late so often that an angle needs two reads that agree.
    pub late: bool,
    /// Number of reads elsewhere that push one address out of the buffer; 0 without a buffer.
    pub evictions: u64,
    /// Number of long reads elsewhere with the same effect; `None` unless a few long reads are
    /// enough.
    pub long_evictions: Option<u64>,
    /// Longest response time of a read from the buffer, in ns; 0 without a buffer.
    pub hit_ns: u64,
    /// True if the buffer also holds the sectors before a sector that was read.
    pub whole_tracks: bool,
}

impl Rotation {
    /// Returns the revolutions per minute.
    pub fn rpm(&self) -> f64 {
        assert!(
            self.revolution_ns > 0.0,
            "a revolution of {} ns was not measured",
            self.revolution_ns
        );
        60e9 / self.revolution_ns
    }

    /// Returns true if angles are so exact that no read need be repeated.
    pub fn is_quiet(&self) -> bool {
        self.noise < QUIET
    }
}

/// Outcome of the reads of ever lower neighbours.
enum Descent {
    Measured,
    /// The sectors lie on one track, but the completions are too irregular.
    Noisy,
    /// The sectors do not lie on one track, or too many reads were noticed late.
    Broken,
}

/// Measures the angles of sectors.
#[derive(Debug)]
pub struct Angles {
    probe: ExtractionAlgorithm,
    random: Random,
    rotation: Rotation,
    /// Number of reads answered by the buffer.
    hits: u64,
    recent: RecentAngles,
}

/// Angles of recently read sectors. The buffer would answer a second read of these sectors.
#[derive(Debug, Default)]
struct RecentAngles {
    order: VecDeque<u64>,
    angles: BTreeMap<u64, f64>,
}

impl RecentAngles {
    fn learn(&mut self, lbn: u64, angle: f64) {
        if self.angles.insert(lbn, angle).is_none() {
            self.order.push_back(lbn);
        }
        if self.order.len() > RECENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.angles.remove(&oldest);
        }
        assert_eq!(
            self.order.len(),
            self.angles.len(),
            "each remembered angle has its place in the order"
        );
    }
}

/// Returns `angle` modulo 1, between half a revolution back and half a revolution ahead.
pub fn nearest(angle: f64) -> f64 {
    angle - angle.round()
}

/// Returns true if a sector lies on a track's line although its angle is `off` the line. `width` is
/// the angle of one sector; `rough` is the tolerance for noise. Holes put the sector ahead by a few
/// whole sectors.
pub(crate) fn is_on_line(off: f64, width: f64, rough: f64) -> bool {
    let holes = (off / width).round();
    let whole = (off - holes * width).abs() < rough.max(width / 10.0);
    off.abs() < rough.max(width / 3.0) || (1.0..HOLES).contains(&holes) && whole
}

impl Angles {
    /// Measures the revolution.
    ///
    /// # Errors
    /// If reads do not wait for a platter, or if completions are too irregular.
    pub async fn measure(probe: ExtractionAlgorithm, seed: Seed) -> Result<Angles, ExtractError> {
        let mut angles = Angles {
            probe,
            random: seed.stream("addresses"),
            rotation: Rotation::default(),
            hits: 0,
            recent: RecentAngles::default(),
        };
        angles.probe.progress("rotation", 0, 1);
        angles.learn_buffer().await?;
        let mut noisy = 0;
        for _ in 0..DESCENTS {
            // The descent needs this many lower neighbours.
            let lbn = DESCENT_READS
                + angles
                    .random
                    .below(angles.capacity().saturating_sub(DESCENT_READS).max(1));
            // A buffer of whole tracks would answer each lower neighbour, so a descent cannot work.
            if angles.rotation.whole_tracks || noisy == NOISY_DESCENTS {
                break;
            }
            match angles.descend(lbn).await? {
                Descent::Measured => return Ok(angles),
                Descent::Noisy => noisy += 1,
                Descent::Broken => {}
            }
        }
        let lbn = angles.random.below(angles.capacity());
        let guess = angles.guess(lbn).await?;
        angles.rotation.revolution_ns = guess;
        angles.refine(lbn).await?;
        Ok(angles)
    }

    /// Measures the revolution by reads of ever lower neighbours, because no buffer has read these
    /// ahead. Each read completes one sector less than whole revolutions after the read before.
    async fn descend(&mut self, lbn: u64) -> Result<Descent, ExtractError> {
        let first = self.completion(lbn).await?;
        let once = self.completion(lbn - 1).await? - first;
        // A shorter time is a buffer's, and a longer one crosses to another track.
        if !(REVOLUTION_NS.0 * 0.8..REVOLUTION_NS.1).contains(&once) {
            return Ok(Descent::Broken);
        }
        self.probe
            // Well between two counts, so that the number of revolutions is sure.
            .idle(Duration::from_nanos((once * 2.4) as u64))
            .await?;
        let more = self.completion(lbn - 2).await? - first - once;
        let revolutions = (more / once).round();
        if revolutions < 2.0 {
            return Ok(Descent::Broken);
        }
        let mut revolution = (more - once) / (revolutions - 1.0);
        let width = 1.0 - once / revolution;
        if !(0.0..0.1).contains(&width) {
            return Ok(Descent::Broken);
        }
        let mut off = Vec::with_capacity(NOISE_READS);
        let (mut late, mut elapsed) = (0, revolutions);
        for back in 3..DESCENT_READS {
            let doubling = (back - 3).min(u64::from(DOUBLINGS)) as u32;
            self.probe.progress("rotation", back, DESCENT_READS);
            let pause = if doubling < DOUBLINGS {
                revolution * f64::from(1 << doubling)
            } else {
                // Away from a whole number of revolutions: a host that is a little late then misses
                // none.
                revolution * 1.4
            };
            self.probe.idle(Duration::from_nanos(pause as u64)).await?;
            let turned =
                (self.completion(lbn - back).await? - first) / revolution + back as f64 * width;
            if nearest(turned).abs() > 0.1 {
                late += 1;
                if late > LATE_MAX {
                    return Ok(Descent::Broken);
                }
                continue;
            }
            elapsed = turned.round();
            if doubling < DOUBLINGS {
                revolution *= turned / elapsed;
            } else {
                off.push(nearest(turned));
            }
        }
        let (middle, noise) = spread(&mut off);
        (self.rotation.revolution_ns, self.rotation.noise) =
            // The median offset is the sum of the revolution's error over all revolutions so far.
            (revolution * (1.0 + middle / elapsed), noise);
        Ok(if self.rotation.noise <= NOISE_MAX {
            Descent::Measured
        } else {
            Descent::Noisy
        })
    }

    /// Returns the result of the measurement.
    pub fn rotation(&self) -> Rotation {
        self.rotation
    }

    /// Returns the largest error of an angle from noise, in revolutions.
    pub(crate) fn rough(&self) -> f64 {
        NOISE_WIDE * self.rotation.noise
    }

    /// Returns the tolerance for the angle of a sector at its expected place. `width` is the angle
    /// of one sector.
    pub(crate) fn within(&self, width: f64) -> f64 {
        self.rough().max(width / 3.0)
    }

    /// Returns the device.
    pub fn probe(&self) -> &ExtractionAlgorithm {
        &self.probe
    }

    /// Returns the random numbers for the choice of addresses.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Returns the number of reads answered by the buffer and repeated.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    fn capacity(&self) -> u64 {
        self.probe.capacity().0
    }

    /// Returns the angle at which `lbn` ends, in revolutions modulo 1.
    ///
    /// Where reads are often noticed late, several reads are compared. The result is the earliest
    /// angle that another read confirms. Two reads are never late by the same time, but the platter
    /// always turns in the same time.
    ///
    /// # Errors
    /// If the read fails, the buffer cannot be emptied, or no two reads agree.
    pub async fn of(&mut self, lbn: u64) -> Result<f64, ExtractError> {
        let first = self.of_one(lbn).await?;
        if !self.rotation.late {
            return Ok(first);
        }
        let mut seen = vec![first];
        while seen.len() < AGREE_READS_MAX {
            seen.push(self.of_one(lbn).await?);
            if seen.len() >= AGREE_READS_MIN
                && let Some(earliest) = earliest_agreed(&seen)
            {
                return Ok(earliest);
            }
        }
        Err(self.irregular(spread(&mut seen).1))
    }

    /// Returns the angle of one read of `lbn` from the medium, late or not.
    ///
    /// # Errors
    /// As [`Angles::completion`].
    pub(crate) async fn single(&mut self, lbn: u64) -> Result<f64, ExtractError> {
        Ok((self.completion(lbn).await? / self.rotation.revolution_ns).fract())
    }

    /// Returns the angle of one read.
    async fn of_one(&mut self, lbn: u64) -> Result<f64, ExtractError> {
        let angle = self.single(lbn).await?;
        self.recent.learn(lbn, angle);
        Ok(angle)
    }

    /// Returns the angle of `lbn`, which is expected to be `expected`. If a short read has the
    /// expected angle, the data came from the medium by luck. Such a read is not repeated.
    ///
    /// # Errors
    /// As [`Angles::of`].
    pub async fn of_expected(
        &mut self,
        lbn: u64,
        expected: f64,
        within: f64,
    ) -> Result<f64, ExtractError> {
        if let Some(&angle) = self.recent.angles.get(&lbn)
            && self.rotation.is_quiet()
            && nearest(angle - expected).abs() < within
        {
            // The angle is known, and the buffer would answer the read.
            return Ok(angle);
        }
        let answer = self.probe.read(lbn, 1).await?;
        let angle = (answer.completed.as_nanos() as f64 / self.rotation.revolution_ns).fract();
        let hit = answer.response_ns() <= self.rotation.hit_ns;
        // Where reads are late, a late read must not pass for the expected angle.
        let within = if self.rotation.late {
            within.min(NOISE_MAX)
        } else {
            within
        };
        if nearest(angle - expected).abs() < within || !hit && !self.rotation.late {
            self.recent.learn(lbn, angle);
            return Ok(angle);
        }
        if hit {
            self.hits += 1;
            self.forget().await?;
        }
        self.of(lbn).await
    }

    /// Returns the time of completion of a read of `lbn` from the medium, in ns.
    ///
    /// # Errors
    /// As [`Angles::of`].
    pub async fn completion(&mut self, lbn: u64) -> Result<f64, ExtractError> {
        let mut evicted = 0;
        loop {
            let answer = self.probe.read(lbn, 1).await?;
            if answer.response_ns() > self.rotation.hit_ns {
                return Ok(answer.completed.as_nanos() as f64);
            }
            self.hits += 1;
            if evicted > EVICTIONS_MAX {
                return Err(self.never_missed(answer.response_ns()));
            }
            self.forget().await?;
            // At least 1, so that the loop ends on a device without a known buffer, too.
            evicted += self.rotation.evictions.max(1);
        }
    }

    fn never_missed(&self, response_ns: u64) -> ExtractError {
        let saw = format!(
            "a sector that was read is answered in {} us even after {EVICTIONS_MAX} reads elsewhere; turn the \
             read cache off, or this is no disk",
            response_ns / 1000
        );
        ExtractError::cannot_tell("the revolution", saw)
    }

    /// Empties the buffer by reads elsewhere.
    ///
    /// # Errors
    /// If a read fails.
    pub async fn forget(&mut self) -> Result<(), ExtractError> {
        match self.rotation.long_evictions {
            Some(reads) => self.evict(reads, LONG_READ).await,
            None => self.evict(self.rotation.evictions, 1).await,
        }
    }

    /// Reads `sectors` each at `reads` random addresses, so that the buffer forgets older data.
    async fn evict(&mut self, reads: u64, sectors: u64) -> Result<(), ExtractError> {
        for _ in 0..reads {
            let lbn = self.random.below(self.capacity() - sectors + 1);
            self.probe.read(lbn, sectors).await?;
        }
        Ok(())
    }

    /// Finds out if a buffer answers reads at or near a sector that was just read. Then finds out
    /// the number of other reads that make the buffer forget. A ring buffer may have dropped the
    /// delivered data and hold the data read ahead.
    async fn learn_buffer(&mut self) -> Result<(), ExtractError> {
        let mut stride = None;
        // Whole tracks, the sector itself, and read-ahead. The last one that answers is the
        // furthest ahead, which a ring keeps longest.
        for candidate in [-8i64, 0, 1, 8] {
            if let Some(slowest) = self.answers_at(candidate).await? {
                // A little above the slowest answer, because a read repeated in vain costs little.
                let hit_ns = (slowest + slowest / 4 + 5_000).min(HASTE_NS);
                self.rotation.hit_ns = self.rotation.hit_ns.max(hit_ns);
                self.rotation.whole_tracks |= candidate < 0;
                stride = Some(candidate);
            }
        }
        let Some(stride) = stride else { return Ok(()) };
        let Some(evictions) = self.needed(1, EVICTIONS_MAX, stride).await? else {
            return Err(self.never_missed(self.rotation.hit_ns));
        };
        if evictions > LONG_WORTH && self.capacity() > LONG_READ * evictions {
            let needed = self
                .needed(LONG_READ, evictions / LONG_WORTH / 2, stride)
                .await?;
            self.rotation.long_evictions = needed.map(|reads| 2 * reads);
        }
        self.rotation.evictions = evictions;
        Ok(())
    }

    /// Returns the number of reads of `sectors` each that make the buffer forget, as a power of
    /// two; `None` if that takes more than `most` reads.
    async fn needed(
        &mut self,
        sectors: u64,
        most: u64,
        stride: i64,
    ) -> Result<Option<u64>, ExtractError> {
        let mut reads = 1;
        while !self.forgets_after(reads, sectors, stride).await? {
            reads *= 2;
            if reads > most {
                return Ok(None);
            }
        }
        Ok(Some(reads))
    }

    /// Returns the slowest response of the buffer in ns to reads `stride` behind a sector just
    /// read. Returns `None` if more than one of the reads is slow, because the buffer's answers are
    /// short at any angle of the platter.
    async fn answers_at(&mut self, stride: i64) -> Result<Option<u64>, ExtractError> {
        let (mut slowest, mut slow) = (0, 0);
        for _ in 0..HIT_READS {
            let again = self.read_behind(stride, 0, 1).await?;
            if again < HASTE_NS {
                slowest = slowest.max(again)
            } else {
                slow += 1
            }
            if slow > 1 {
                return Ok(None);
            }
        }
        Ok(Some(slowest))
    }

    /// Returns the response time in ns of a read `stride` behind another read. Between the two lie
    /// `between` reads of `sectors` elsewhere.
    async fn read_behind(
        &mut self,
        stride: i64,
        between: u64,
        sectors: u64,
    ) -> Result<u64, ExtractError> {
        let reach = stride.unsigned_abs();
        let lbn = reach
            + self
                .random
                .below(self.capacity().saturating_sub(2 * reach).max(1));
        self.probe.read(lbn, 1).await?;
        // At random, so that the platter stands at any angle when the second read comes.
        let pause = self.random.unit() * REVOLUTION_NS.1;
        self.probe.idle(Duration::from_nanos(pause as u64)).await?;
        self.evict(between, sectors).await?;
        Ok(self
            .probe
            .read(lbn.saturating_add_signed(stride), 1)
            .await?
            .response_ns())
    }

    async fn forgets_after(
        &mut self,
        reads: u64,
        sectors: u64,
        stride: i64,
    ) -> Result<bool, ExtractError> {
        let mut hasty = 0;
        for _ in 0..FORGOTTEN_READS {
            let response_ns = self.read_behind(stride, reads, sectors).await?;
            hasty += u32::from(response_ns <= self.rotation.hit_ns);
        }
        // Some reads are short by chance, because the sector came by at once.
        Ok(hasty < FORGOTTEN_READS / 2)
    }

    /// Returns the longest revolution of which all gaps between reads of one address are multiples.
    async fn guess(&mut self, lbn: u64) -> Result<f64, ExtractError> {
        let mut last = self.again(lbn, 0.0).await?;
        let mut gaps = [0.0; GAPS];
        for gap in &mut gaps {
            let pause = self.random.unit() * 3.0 * REVOLUTION_NS.1;
            let now = self.again(lbn, pause).await?;
            *gap = now - last;
            last = now;
        }
        let (low, high) = REVOLUTION_NS;
        let candidates =
            (0..=GUESSES).map(|step| low * (high / low).powf(step as f64 / GUESSES as f64));
        // A host that is busy now and then spoils some gaps. The size of such an error does not
        // count.
        let misfit = |revolution: f64| {
            let squares = gaps.map(|gap| nearest(gap / revolution).abs().min(SPOILT).powi(2));
            squares.iter().sum::<f64>() / GAPS as f64
        };
        let scored: Vec<(f64, f64)> = candidates
            .map(|revolution| (misfit(revolution), revolution))
            .collect();
        let least =
            |scored: &[(f64, f64)]| scored.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
        let (best, _) = least(&scored).unwrap_or((SPOILT, low));
        // Halves and thirds of the revolution fit as well. With twice the revolution, only half of
        // the gaps are multiples.
        let fits = |misfit: f64| misfit < (1.2 * best).max(SPOILT.powi(2) / 8.0);
        match scored.iter().rposition(|&(misfit, _)| fits(misfit)) {
            Some(longest) if best < SPOILT.powi(2) / 2.0 => {
                let near = scored[longest].1 * (1.0 - SPOILT / 4.0);
                let from = scored[..longest].partition_point(|&(_, revolution)| revolution < near);
                Ok(least(&scored[from..=longest]).map_or(near, |(_, revolution)| revolution))
            }
            _ => Err(self.irregular(best.sqrt())),
        }
    }

    fn irregular(&self, noise: f64) -> ExtractError {
        let saw = format!(
            "reads of one address end {:.1} % of a revolution apart from any regular beat (the limit is {:.1} %); \
             a busy host, a device that is none, or a buffer in between",
            noise * 100.0,
            NOISE_MAX * 100.0
        );
        ExtractError::cannot_tell("the revolution", saw)
    }

    /// Reads `lbn` again from the medium, `pause_ns` later.
    async fn again(&mut self, lbn: u64, pause_ns: f64) -> Result<f64, ExtractError> {
        if pause_ns > 0.0 {
            self.probe
                .idle(Duration::from_nanos(pause_ns as u64))
                .await?;
        }
        self.forget().await?;
        self.completion(lbn).await
    }

    /// Refines the revolution by reads of one address ever further apart, and measures the noise.
    async fn refine(&mut self, lbn: u64) -> Result<(), ExtractError> {
        let guess = self.rotation.revolution_ns;
        self.draw_apart(lbn).await?;
        if self.rotation.noise <= NOISE_MAX {
            return Ok(());
        }
        self.rotation.revolution_ns = guess;
        self.rotation.late = true;
        self.draw_apart(lbn).await?;
        let mut last = self.of(lbn).await?;
        let mut steps = Vec::with_capacity(LATE_NOISE_READS);
        for _ in 0..LATE_NOISE_READS {
            self.forget().await?;
            let angle = self.of(lbn).await?;
            steps.push(nearest(angle - last));
            last = angle;
        }
        // The noise of differences, because a drift from the error of the revolution does not widen
        // them.
        let turned: f64 = steps.iter().sum();
        let (_, noise) = spread(&mut steps);
        // A step is the difference of two readings, so its noise is the root of 2 times the noise
        // of one.
        self.rotation.noise = noise / f64::sqrt(2.0);
        if self.rotation.noise > NOISE_MAX {
            return Err(self.irregular(self.rotation.noise));
        }
        if turned.abs() > DRIFT_ERRORS * noise {
            // At one doubling of the gap, one revolution too many or too few was counted.
            let saw = format!(
                "with a revolution of {:.6} ms, one address goes on turning, by {:.1} % of it over {LATE_NOISE_READS} \
                 reads; a busy host",
                self.rotation.revolution_ns / 1e6,
                turned * 100.0
            );
            return Err(ExtractError::cannot_tell("the revolution", saw));
        }
        Ok(())
    }

    /// Refines the revolution and measures the noise once.
    async fn draw_apart(&mut self, lbn: u64) -> Result<(), ExtractError> {
        let first = self.middle(lbn, 0.0).await?;
        for doubling in 0..DOUBLINGS {
            self.probe
                .progress("rotation", u64::from(doubling), u64::from(DOUBLINGS));
            let pause = self.rotation.revolution_ns * f64::from(1 << doubling);
            self.settle(first, lbn, pause).await?;
        }
        let mut off = Vec::with_capacity(NOISE_READS);
        for _ in 0..NOISE_READS {
            off.push(
                self.settle(first, lbn, self.rotation.revolution_ns * 1.4)
                    .await?,
            );
        }
        self.rotation.noise = spread(&mut off).1;
        Ok(())
    }

    /// Corrects the revolution by one more read of an address that was read at `first`. Returns the
    /// error before the correction, in revolutions.
    async fn settle(&mut self, first: f64, lbn: u64, pause: f64) -> Result<f64, ExtractError> {
        let since = self.middle(lbn, pause).await? - first;
        let revolutions = since / self.rotation.revolution_ns;
        let off = nearest(revolutions);
        // A read that was noticed late must not correct the revolution.
        if revolutions >= 1.0 && off.abs() < 0.1 {
            self.rotation.revolution_ns = since / revolutions.round();
        }
        Ok(off)
    }

    /// Returns the time of completion of a read of `lbn`, `pause_ns` later. Where reads are often
    /// noticed late, the result is the median of a few reads, which is neither early nor late.
    async fn middle(&mut self, lbn: u64, pause_ns: f64) -> Result<f64, ExtractError> {
        let first = self.again(lbn, pause_ns).await?;
        if !self.rotation.late {
            return Ok(first);
        }
        let revolution = self.rotation.revolution_ns;
        let mut reads = [first; MIDDLE_READS];
        for read in &mut reads[1..] {
            *read = self.again(lbn, 0.0).await?;
        }
        reads.sort_by(|a, b| {
            nearest((a - first) / revolution).total_cmp(&nearest((b - first) / revolution))
        });
        Ok(reads[MIDDLE_READS / 2])
    }
}

/// Returns the earliest angle that another angle follows within the noise. A few reads may be so
/// late that they look early.
fn earliest_agreed(angles: &[f64]) -> Option<f64> {
    let after = |angle: f64| angles.iter().map(move |other| nearest(*other - angle));
    let earliest = angles.iter().copied().filter(|&angle| {
        let before = after(angle).filter(|&after| after < 0.0).count();
        before <= angles.len() / LATE_AS_EARLY
            && after(angle).any(|after| after > 0.0 && after < NOISE_MAX)
    });
    earliest.max_by_key(|&angle| after(angle).filter(|&after| after > 0.0).count())
}

/// Returns the median of angles and a standard deviation. The deviation is computed from the median
/// of the distances to the median, because a host that is busy for a moment moves neither.
fn spread(angles: &mut [f64]) -> (f64, f64) {
    /// Half of all normal errors lie nearer than 1 / 1.4826 standard deviations.
    const DEVIATION: f64 = 1.4826;
    let median = |angles: &mut [f64]| {
        angles.sort_by(f64::total_cmp);
        angles.get(angles.len() / 2).copied().unwrap_or(0.0)
    };
    let middle = median(angles);
    let mut distances: Vec<f64> = angles.iter().map(|angle| (angle - middle).abs()).collect();
    (middle, DEVIATION * median(&mut distances))
}
