//! The revolution, and the angle of any sector.
//!
//! A read ends a fixed time after its sector has passed under the head, however
//! long the arm took before. So the instant of completion modulo the revolution
//! *is* the sector's angle, but for a constant (Worthington et al. 1995; Wong
//! 2019). Reads that a buffer answers tell nothing: they are known by their
//! haste, and repeated when enough other reads have emptied it.

use crate::extract::ExtractError;
use crate::extract::machine::Probe;
use fullstroke_units::{Duration, Random, Seed};
use std::collections::{BTreeMap, VecDeque};

/// Reads that come back sooner were not waited for by a platter, if all of one
/// address do: faster than the fastest disk.
pub(crate) const HASTE_NS: u64 = 2_500_000;

/// The fastest and the slowest disk: 20,000 and 3,000 rpm.
const REVOLUTION_NS: (f64, f64) = (3.0e6, 20.0e6);

/// Reads of other addresses at most, to get one out of the buffer.
const EVICTIONS_MAX: u64 = 8192;

/// Sectors of a long read; it takes as long as a few short ones, and is worth it if
/// it saves so many times as many.
const LONG_READ: u64 = 8192;
const LONG_WORTH: u64 = 8;

/// Pairs of reads from which it is told whether a buffer answers the second.
const HIT_READS: u32 = 16;

/// The same from which it is told whether it has forgotten the first.
const FORGOTTEN_READS: u32 = 6;

/// Gaps between two reads of one address, from which the revolution is first
/// guessed.
const GAPS: usize = 41;

/// Lengths that are tried for it.
const GUESSES: usize = 40_000;

/// By how much of a revolution a gap is off that says nothing.
const SPOILT: f64 = 0.05;

/// Doublings of the gap between two reads of one address: the last is some ten
/// seconds.
const DOUBLINGS: u32 = 10;

/// Reads of one descent that may be noticed late, by more than a tenth of a
/// revolution.
const LATE_MAX: u32 = 4;

/// Reads of one address at the end, from which the noise is told.
const NOISE_READS: usize = 16;

/// The same where single reads are noticed late: of 16, one in several tells half of
/// the noise.
const LATE_NOISE_READS: usize = 128;

/// Standard errors of the mean by which angles of one address may go on turning.
const DRIFT_ERRORS: f64 = 4.0;

/// Reads of one descent, and descents at most.
const DESCENT_READS: u64 = 3 + DOUBLINGS as u64 + NOISE_READS as u64;
const DESCENTS: u32 = 12;

/// Noise, as a part of a revolution, above which no angle is trusted: a fifth of
/// the smallest change that counts.
pub const NOISE_MAX: f64 = 0.004;

/// Sectors of a track without addresses that are taken for holes in it.
pub(crate) const HOLES: f64 = 16.0;

/// Standard deviations of noise that an angle may be off.
const NOISE_WIDE: f64 = 7.0;

/// Noise below which a single read tells an angle.
const QUIET: f64 = 0.000_02;

/// Reads of one sector at least, where they are often noticed late, and at most.
const AGREE_READS_MIN: usize = 4;
const AGREE_READS_MAX: usize = 32;

/// Angles that are remembered.
const RECENT: usize = 4096;

/// Of so many reads one may be late by more than half a revolution.
const LATE_AS_EARLY: usize = 6;

/// Reads from which one is taken that is neither early nor late.
const MIDDLE_READS: usize = 5;

/// Descents that may be too noisy, before noise is reckoned with.
const NOISY_DESCENTS: u32 = 2;

/// What was found about rotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Rotation {
    /// One revolution.
    pub revolution_ns: f64,
    /// Standard deviation of the angle of one sector, in revolutions, but for single
    /// reads that were noticed late.
    pub noise: f64,
    /// A single read is noticed so late, so often, that an angle is where two reads
    /// agree.
    pub late: bool,
    /// Reads of other addresses that empty the buffer of one; 0 without one.
    pub evictions: u64,
    /// The same with long reads, where a few of them do.
    pub long_evictions: Option<u64>,
    /// What the buffer answers takes no longer; 0 without one.
    pub hit_ns: u64,
    /// It holds what lies before a sector that was read, too.
    pub whole_tracks: bool,
}

impl Rotation {
    /// Revolutions a minute.
    pub fn rpm(&self) -> f64 {
        assert!(
            self.revolution_ns > 0.0,
            "a revolution of {} ns was not measured",
            self.revolution_ns
        );
        60e9 / self.revolution_ns
    }

    /// Whether angles are so exact that none need be read twice.
    pub fn is_quiet(&self) -> bool {
        self.noise < QUIET
    }
}

/// How reads of ever lower neighbours went.
enum Descent {
    Measured,
    /// On one track, but noticed too irregularly.
    Noisy,
    /// Not on one track, or too many were noticed late.
    Broken,
}

/// Reads angles.
#[derive(Debug)]
pub struct Angles {
    probe: Probe,
    random: Random,
    rotation: Rotation,
    /// Reads that the buffer answered.
    hits: u64,
    recent: Recent,
}

/// The angles of sectors that were read lately: read again, the buffer would answer.
#[derive(Debug, Default)]
struct Recent {
    order: VecDeque<u64>,
    angles: BTreeMap<u64, f64>,
}

impl Recent {
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

/// What is left of `angle` within half a revolution either way.
pub fn nearest(angle: f64) -> f64 {
    angle - angle.round()
}

/// Whether a sector so far off a track's line is on it, if each turns by `width` and noise
/// by `rough`: holes put it ahead by a few whole sectors.
pub(crate) fn is_on_line(off: f64, width: f64, rough: f64) -> bool {
    let holes = (off / width).round();
    let whole = (off - holes * width).abs() < rough.max(width / 10.0);
    off.abs() < rough.max(width / 3.0) || (1.0..HOLES).contains(&holes) && whole
}

impl Angles {
    /// Measures the revolution.
    ///
    /// # Errors
    /// If reads do not wait for a platter, or too irregularly.
    pub async fn measure(probe: Probe, seed: Seed) -> Result<Angles, ExtractError> {
        let mut angles = Angles {
            probe,
            random: seed.stream("addresses"),
            rotation: Rotation::default(),
            hits: 0,
            recent: Recent::default(),
        };
        angles.probe.progress("rotation", 0, 1);
        angles.learn_buffer().await?;
        let mut noisy = 0;
        for _ in 0..DESCENTS {
            let lbn = DESCENT_READS
                + angles
                    .random
                    .below(angles.capacity().saturating_sub(DESCENT_READS).max(1));
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

    /// Measures the revolution by reads of ever lower neighbours, which no buffer
    /// has read ahead: each comes a sector less than whole revolutions later.
    async fn descend(&mut self, lbn: u64) -> Result<Descent, ExtractError> {
        let first = self.completion(lbn).await?;
        let once = self.completion(lbn - 1).await? - first;
        if !(REVOLUTION_NS.0 * 0.8..REVOLUTION_NS.1).contains(&once) {
            return Ok(Descent::Broken);
        }
        self.probe
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
            (revolution * (1.0 + middle / elapsed), noise);
        Ok(if self.rotation.noise <= NOISE_MAX {
            Descent::Measured
        } else {
            Descent::Noisy
        })
    }

    /// What was measured.
    pub fn rotation(&self) -> Rotation {
        self.rotation
    }

    /// By how much noise may put an angle off.
    pub(crate) fn rough(&self) -> f64 {
        NOISE_WIDE * self.rotation.noise
    }

    /// By how much an angle may be off that is where it is expected, if each sector turns by
    /// `width`.
    pub(crate) fn within(&self, width: f64) -> f64 {
        self.rough().max(width / 3.0)
    }

    /// The device.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Chance, for choosing addresses.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Reads that the buffer answered and that were repeated.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    fn capacity(&self) -> u64 {
        self.probe.capacity().0
    }

    /// The angle at which `lbn` ends, in revolutions modulo 1. Where reads are often
    /// noticed late, it is the earliest of several with which another agrees: lateness
    /// is never the same twice, and a platter always is.
    ///
    /// # Errors
    /// If the read fails, the buffer cannot be emptied, or no two agree.
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

    /// The angle of a read of `lbn` from the medium as it is noticed, late or not.
    ///
    /// # Errors
    /// As [`Angles::completion`].
    pub(crate) async fn single(&mut self, lbn: u64) -> Result<f64, ExtractError> {
        Ok((self.completion(lbn).await? / self.rotation.revolution_ns).fract())
    }

    /// The angle of one read.
    async fn of_one(&mut self, lbn: u64) -> Result<f64, ExtractError> {
        let angle = self.single(lbn).await?;
        self.recent.learn(lbn, angle);
        Ok(angle)
    }

    /// The same, where it is expected to be `expected`: a hasty read whose angle is
    /// that came from the medium by luck, and need not be repeated.
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
            // Known, and it would come from the buffer.
            return Ok(angle);
        }
        let answer = self.probe.read(lbn, 1).await?;
        let angle = (answer.completed.as_nanos() as f64 / self.rotation.revolution_ns).fract();
        let hit = answer.response_ns() <= self.rotation.hit_ns;
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

    /// When a read of `lbn` from the medium completed, in ns.
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

    /// Lets the buffer forget what it holds.
    ///
    /// # Errors
    /// If a read fails.
    pub async fn forget(&mut self) -> Result<(), ExtractError> {
        match self.rotation.long_evictions {
            Some(reads) => self.evict(reads, LONG_READ).await,
            None => self.evict(self.rotation.evictions, 1).await,
        }
    }

    /// Reads elsewhere, so that the buffer forgets.
    async fn evict(&mut self, reads: u64, sectors: u64) -> Result<(), ExtractError> {
        for _ in 0..reads {
            let lbn = self.random.below(self.capacity() - sectors + 1);
            self.probe.read(lbn, sectors).await?;
        }
        Ok(())
    }

    /// Whether a buffer answers what was just read, or what lies behind it, and how
    /// many other reads make it forget. A ring may have dropped what was delivered
    /// and hold what was read ahead.
    async fn learn_buffer(&mut self) -> Result<(), ExtractError> {
        let mut stride = None;
        for candidate in [-8i64, 0, 1, 8] {
            if let Some(slowest) = self.answers_at(candidate).await? {
                // A little above what was seen: what is repeated in vain costs
                // little.
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

    /// How many reads of so many sectors make the buffer forget, if `most` do.
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

    /// How long the buffer takes for what lies `stride` behind what was read, if it
    /// answers that: all such reads are hasty, whenever they come.
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

    /// The response to a read `stride` behind another, with `between` reads
    /// of `sectors` elsewhere between them.
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
        // Some are by chance: the sector came by at once.
        Ok(hasty < FORGOTTEN_READS / 2)
    }

    /// A revolution of which all gaps between reads of one address are multiples:
    /// the longest.
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
        // A host that is busy now and then spoils some gaps; how much does not count.
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
        // Halves and thirds of it fit as well; of twice as much half the gaps are multiples.
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

    /// Reads of one address ever further apart, and the noise.
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
        // Of differences, which drift with the revolution's error does not widen.
        let turned: f64 = steps.iter().sum();
        let (_, noise) = spread(&mut steps);
        self.rotation.noise = noise / f64::sqrt(2.0);
        if self.rotation.noise > NOISE_MAX {
            return Err(self.irregular(self.rotation.noise));
        }
        if turned.abs() > DRIFT_ERRORS * noise {
            // A doubling was taken for one revolution more or less.
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

    /// The same, once.
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

    /// Corrects the revolution by one more read of an address that was read at
    /// `first`, and says by how much of a revolution it was off.
    async fn settle(&mut self, first: f64, lbn: u64, pause: f64) -> Result<f64, ExtractError> {
        let since = self.middle(lbn, pause).await? - first;
        let revolutions = since / self.rotation.revolution_ns;
        let off = nearest(revolutions);
        // One that was noticed late is not believed.
        if revolutions >= 1.0 && off.abs() < 0.1 {
            self.rotation.revolution_ns = since / revolutions.round();
        }
        Ok(off)
    }

    /// When a read of `lbn` completed, `pause_ns` later; where reads are often noticed
    /// late, the one of a few that is neither early nor late.
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

/// The earliest of angles, if another is behind it by no more than noise. A few may
/// be so late that they look early.
fn earliest_agreed(angles: &[f64]) -> Option<f64> {
    let after = |angle: f64| angles.iter().map(move |other| nearest(*other - angle));
    let earliest = angles.iter().copied().filter(|&angle| {
        let before = after(angle).filter(|&after| after < 0.0).count();
        before <= angles.len() / LATE_AS_EARLY
            && after(angle).any(|after| after > 0.0 && after < NOISE_MAX)
    });
    earliest.max_by_key(|&angle| after(angle).filter(|&after| after > 0.0).count())
}

/// The median of angles, and a standard deviation from the median of their distances
/// to it: a host that is busy for a moment moves neither.
fn spread(angles: &mut [f64]) -> (f64, f64) {
    /// Of normal errors, half lie nearer than 1 / 1.4826 standard deviations.
    const DEVIATION: f64 = 1.4826;
    let median = |angles: &mut [f64]| {
        angles.sort_by(f64::total_cmp);
        angles.get(angles.len() / 2).copied().unwrap_or(0.0)
    };
    let middle = median(angles);
    let mut distances: Vec<f64> = angles.iter().map(|angle| (angle - middle).abs()).collect();
    (middle, DEVIATION * median(&mut distances))
}
