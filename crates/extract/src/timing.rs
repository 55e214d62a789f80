//! Tracks by rotational timing.
//!
//! On a track, angle goes on evenly with the address; where a track ends, it
//! jumps by the skew (Worthington et al. 1995; DIXtrac's interrogative part,
//! Schindler & Ganger 1999; Wong 2019). So a track's end is the first address
//! whose angle is off the line, which a search by halves finds.
//!
//! - The first track is searched whole: the line is drawn out by doubling, and the
//!   end found by halving.
//! - Each further track is predicted (`pattern.rs`) and confirmed by two reads: the
//!   last sector must be on the line, the first of the next track off it. If not,
//!   the search widens around the prediction.
//! - Where tracks repeat, whole periods are skipped, ever more of them: the boundary
//!   at the far end and its angle must be as predicted. If not, half as many.
//!
//! What is compared is skew, a twentieth of a revolution or more; so this stands
//! noise of a few hundredths of that. Holes of a few sectors (slips) shift the
//! line by less, and do not count as an end.

use crate::ExtractError;
use crate::angles::{Angles, nearest};
use crate::machine::Probe;
use crate::pattern::{FoundTrack, History};
use fullstroke_tracks::{Boundaries, Builder, TRACK_SECTORS_MAX};
use fullstroke_units::{Lbn, Sectors, Seed};
use std::collections::VecDeque;

/// By how much an angle is off the line, at least, before skews are known.
const OFF_LINE: f64 = 0.02;

/// The angle of a sector at most.
const FIRST_SECTOR_MAX: f64 = 0.13;

/// Of the usual jump between tracks, what counts as off the line.
const OFF_PART: f64 = 0.4;

/// Sectors around a predicted end that are searched before the whole track is.
const NEAR: u64 = 64;

/// Sectors of a track without addresses that are taken for holes in it.
const HOLES: f64 = 16.0;

/// Standard deviations of noise that an angle on the line may be off.
const NOISE_WIDE: f64 = 5.0;

/// Times that a track's line is drawn anew at most.
const LINES_MAX: u32 = 16;

/// Sectors from the beginning of a line within which a hole makes it rough.
const NEARBY: u64 = 4;

/// First sectors of a track that may live elsewhere.
const REMAPPED_MAX: u64 = 4;

/// Sectors of a track from which nothing is learned.
const SHORT: u64 = 8;

/// Jumps of which the usual one is taken.
const JUMPS: usize = 15;

/// Tracks that must repeat before any are skipped.
const REPEATED_MIN: u32 = 8;

/// How an extraction by timing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pace {
    /// Each track is confirmed.
    Every,
    /// Tracks that repeat are skipped, and taken to be as those before.
    #[default]
    Jumping,
}

/// What timing found.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The tracks.
    pub table: Boundaries,
    /// Stretches of tracks that repeat, in the order of addresses.
    pub stretches: Vec<Stretch>,
    /// Tracks confirmed where they were predicted.
    pub predicted: u64,
    /// Reads that those took.
    pub predicted_reads: u64,
    /// Tracks that had to be searched.
    pub searched: u64,
    /// Tracks that were skipped.
    pub skipped: u64,
    /// Reads that the buffer answered, and that were repeated.
    pub hits: u64,
}

/// A zone as it was found.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct FoundZone {
    /// Its first address.
    pub first: u64,
    /// Sectors of its longest tracks.
    pub sectors_per_track: f64,
}

impl Timed {
    /// The zones: where the longest tracks become shorter or longer. Where surfaces
    /// differ and take turns by bands, a beginning may be some bands off.
    pub fn zones(&self) -> Vec<FoundZone> {
        let mut zones: Vec<FoundZone> = Vec::new();
        // Of the zone in hand: behind its last longest track.
        let mut behind = 0;
        let mut window: VecDeque<(u64, u64)> = VecDeque::new();
        for track in self.table.tracks_from(Lbn(0)) {
            window.push_back((track.start.0, track.sectors.0));
            if window.len() > ZONE_TRACKS_MIN {
                window.pop_front();
            }
            let longest = zones.last().map_or(0.0, |zone| zone.sectors_per_track);
            let length = track.sectors.0 as f64;
            let like = (length - longest).abs() <= SAME_ZONE * longest;
            if like {
                behind = track.end().0;
                continue;
            }
            let longer = length > longest;
            let over = window.len() == ZONE_TRACKS_MIN && window[0].0 >= behind;
            if !zones.is_empty() && !over && !longer {
                continue;
            }
            let first = if longer { track.start.0 } else { behind };
            let sectors =
                window.iter().filter(|(start, _)| *start >= first).map(|(_, sectors)| *sectors).max();
            let sectors_per_track = sectors.unwrap_or(track.sectors.0) as f64;
            zones.push(FoundZone { first, sectors_per_track });
            behind = track.end().0;
        }
        zones
    }
}

/// Lengths that differ by less are of one zone.
const SAME_ZONE: f64 = 0.0025;

/// Tracks of a zone at least.
const ZONE_TRACKS_MIN: usize = 192;

/// Tracks that repeat, or one.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The first address.
    pub first: u64,
    /// The angle at which it ends.
    pub angle: f64,
    /// The tracks of one period.
    pub period: Vec<FoundTrack>,
    /// How often.
    pub times: u64,
}

/// Finds the tracks of a device.
///
/// # Errors
/// If timing does not tell.
pub async fn timing(probe: Probe, seed: Seed, pace: Pace) -> Result<Timed, ExtractError> {
    let angles = Angles::measure(probe, seed).await?;
    tracks(angles, pace).await.map(|(timed, _)| timed)
}

/// The same, of a device whose revolution is known.
///
/// # Errors
/// If timing does not tell.
pub async fn tracks(angles: Angles, pace: Pace) -> Result<(Timed, Angles), ExtractError> {
    let capacity = angles.probe().capacity().0;
    let mut walk = Walk {
        angles,
        capacity,
        builder: Builder::default(),
        history: History::default(),
        unlike: 0,
        turn: (0, 0.0),
        jumps: Vec::new(),
        stretches: Vec::new(),
        skipped: 0,
        first: 0,
        at: 0.0,
        counts: Counts::default(),
    };
    walk.at = walk.angles.of(0).await?;
    let mut leap = Leap::default();
    while walk.first < capacity {
        walk.angles.probe().progress("tracks", walk.first, capacity);
        let leapt = pace == Pace::Jumping && walk.leap(&mut leap).await?;
        if !leapt {
            walk.one().await?;
            leap.walked();
        }
    }
    let Counts { predicted, predicted_reads, searched, skipped } = walk.counts;
    let timed = Timed {
        table: walk.builder.finish("rotational timing")?,
        stretches: walk.stretches,
        predicted,
        predicted_reads,
        searched,
        skipped,
        hits: walk.angles.hits(),
    };
    Ok((timed, walk.angles))
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    predicted: u64,
    predicted_reads: u64,
    searched: u64,
    skipped: u64,
}

/// Goes through the tracks of a device.
struct Walk {
    angles: Angles,
    capacity: u64,
    builder: Builder,
    history: History,
    /// Sectors of the last track that was a little unlike the others.
    unlike: u64,
    /// The sectors of a period, and by how much the angle turns over it.
    turn: (u64, f64),
    /// The last jumps of the angle between tracks.
    jumps: Vec<f64>,
    stretches: Vec<Stretch>,
    /// First sectors of the track in hand that are not on its line.
    skipped: u64,
    /// Where the track in hand begins, and its angle.
    first: u64,
    at: f64,
    counts: Counts,
}

/// How many periods are skipped next.
#[derive(Clone, Copy, Debug)]
struct Leap {
    periods: u64,
    /// Before this address lies a track unlike the others.
    irregular: Option<u64>,
    /// Tracks to walk before the next leap.
    hold: usize,
}

impl Default for Leap {
    fn default() -> Leap {
        Leap { periods: 1, irregular: None, hold: 0 }
    }
}

impl Leap {
    fn walked(&mut self) {
        self.hold = self.hold.saturating_sub(1);
    }

    fn succeeded(&mut self) {
        if self.irregular.is_some() {
            self.halve(1);
        } else {
            self.periods *= 2;
        }
    }

    fn failed(&mut self, end: u64, period: usize) {
        self.irregular = Some(end);
        self.halve(period);
    }

    fn halve(&mut self, hold: usize) {
        self.periods /= 2;
        if self.periods == 0 {
            *self = Leap { hold, ..Leap::default() };
        }
    }
}

impl Walk {
    /// Confirms or finds the track in hand.
    async fn one(&mut self) -> Result<(), ExtractError> {
        let reads = self.angles.probe().effort().reads;
        let predicted = self.history.next();
        let near = match predicted {
            Some(predicted) => self.near(predicted).await?,
            None => None,
        };
        let Some((track, predicted)) = near else {
            self.counts.searched += 1;
            return self.whole().await;
        };
        self.counts.predicted += 1;
        self.counts.predicted_reads += self.angles.probe().effort().reads - reads;
        self.take(track, Some(predicted)).await
    }

    /// The end of the track in hand, if it is where `track` has it.
    async fn exactly(&mut self, track: FoundTrack) -> Result<Option<End>, ExtractError> {
        let FoundTrack { sectors, width, .. } = track;
        if sectors >= self.capacity - self.first {
            return Ok(None);
        }
        let last = self.look_once(sectors - 1, width).await?;
        if last.off.abs() > self.rough().max(width / 5.0) {
            return Ok(None);
        }
        let next = self.look_once(sectors, width).await?;
        let end = End { lbn: self.first + sectors, next: next.angle, width };
        Ok((next.off.abs() > self.off_line()).then_some(end))
    }

    /// The track in hand is this, and goes into the table.
    async fn take(&mut self, end: End, predicted: Option<FoundTrack>) -> Result<(), ExtractError> {
        let sectors = end.lbn - self.first;
        self.builder.push(Sectors(sectors))?;
        let step = nearest(end.next - self.at).rem_euclid(1.0);
        // A few sectors at the end of a zone are no line.
        let width = match predicted.or_else(|| self.history.next()) {
            Some(usual) if sectors < SHORT => usual.width,
            _ => end.width,
        };
        let found = FoundTrack { sectors, width, step };
        if end.lbn < self.capacity {
            self.jump(nearest(end.next - self.at - sectors as f64 * end.width));
        }
        if sectors >= SHORT {
            self.remember(found, predicted);
        }
        self.stretch(self.first, &[found], 1);
        (self.first, self.at) = (end.lbn, end.next);
        Ok(())
    }

    /// A track with a hole is followed by tracks as the others are; but the second
    /// that is unlike the others in the same way is a kind of its own.
    fn remember(&mut self, found: FoundTrack, predicted: Option<FoundTrack>) {
        let kept = match predicted {
            Some(usual)
                if found.sectors != usual.sectors && found.sectors.abs_diff(usual.sectors) <= NEAR =>
            {
                let again = self.unlike == found.sectors;
                self.unlike = found.sectors;
                if again { found } else { usual }
            }
            _ => found,
        };
        self.history.push(kept);
    }

    fn jump(&mut self, jump: f64) {
        if self.jumps.len() == JUMPS {
            self.jumps.remove(0);
        }
        self.jumps.push(jump.abs());
    }

    fn stretch(&mut self, first: u64, period: &[FoundTrack], times: u64) {
        if let Some(last) = self.stretches.last_mut()
            && last.period.len() == period.len()
            && last.period.iter().zip(period).all(|(a, b)| a.sectors == b.sectors)
        {
            last.times += times;
            return;
        }
        let angle = self.at;
        self.stretches.push(Stretch { first, angle, period: period.to_vec(), times });
    }

    /// By how much an angle is off the line where another track has begun.
    fn off_line(&self) -> f64 {
        if self.jumps.len() < 3 {
            return OFF_LINE;
        }
        let mut jumps = self.jumps.clone();
        jumps.sort_by(f64::total_cmp);
        (jumps[jumps.len() / 2] * OFF_PART).max(OFF_LINE)
    }

    /// Reads the sector at `offset` and holds it against the line of the track in
    /// hand. One that is not where it was expected is read twice: the first may
    /// have been noticed late, or heads that need not wait for a sector's beginning
    /// have landed in it.
    async fn look(&mut self, offset: u64, width: f64, expected: bool) -> Result<Seen, ExtractError> {
        let seen = self.look_once(offset, width).await?;
        if seen.on == expected {
            return Ok(seen);
        }
        self.look_once(offset, width).await
    }

    async fn look_once(&mut self, offset: u64, width: f64) -> Result<Seen, ExtractError> {
        let expected = self.at + offset as f64 * width;
        let within = self.rough().max(width / 3.0);
        let angle = self.angles.of_expected(self.first + offset, expected, within).await?;
        let off = nearest(angle - expected);
        Ok(Seen { angle, off, on: self.is_on(offset, width, off) })
    }

    /// Whether the sector at `offset` is on the track in hand, being so far off its
    /// line: holes put it ahead by a few whole sectors, noise either way; and a
    /// track is no more than one revolution.
    fn is_on(&self, offset: u64, width: f64, off: f64) -> bool {
        let rough = self.rough();
        let limit = self.off_line();
        let within = offset.saturating_sub(self.skipped) as f64 * width < 1.0 - width / 2.0 + rough
            && off.abs() < limit;
        let holes = (off / width).round();
        let whole = (off - holes * width).abs() < rough.max(width / 10.0);
        within && (off.abs() < rough.max(width / 3.0) || (1.0..HOLES).contains(&holes) && whole)
    }

    /// Whether sectors in front of the one at `offset`, which is on the line but for
    /// holes, are so, too: another zone's track may cross the line by chance.
    async fn line_holds(&mut self, offset: u64, width: f64, off: f64) -> Result<bool, ExtractError> {
        if off.abs() < self.rough().max(width / 3.0) {
            return Ok(true);
        }
        for part in [offset / 3, offset * 2 / 3] {
            if !self.look(part, width, true).await?.on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The angle of a sector, corrected by what one at `offset` is off: but not if
    /// that is for holes.
    fn corrected(&self, width: f64, offset: u64, off: f64) -> f64 {
        let holes = off.abs() > self.rough().max(width / 3.0);
        if holes || offset == 0 { width } else { width + off / offset as f64 }
    }

    /// By how much noise may put an angle off.
    fn rough(&self) -> f64 {
        NOISE_WIDE * self.angles.rotation().noise
    }

    /// Whether angles are so exact that none need be read twice.
    fn quiet(&self) -> bool {
        self.angles.rotation().noise < OFF_LINE / 1000.0
    }

    /// The end of the track in hand, if it is about where it is predicted, or where
    /// another likely track has it; and which that was.
    async fn near(&mut self, predicted: FoundTrack) -> Result<Option<(End, FoundTrack)>, ExtractError> {
        if let Some(end) = self.as_predicted(predicted).await? {
            return Ok(Some((end, predicted)));
        }
        for other in self.history.others(&predicted) {
            if let Some(end) = self.exactly(other).await? {
                return Ok(Some((end, other)));
            }
        }
        Ok(self.before(predicted).await?.map(|end| (end, predicted)))
    }

    /// The end of the track in hand, if it is where it is predicted or a little
    /// behind.
    async fn as_predicted(&mut self, predicted: FoundTrack) -> Result<Option<End>, ExtractError> {
        let FoundTrack { sectors, width, .. } = predicted;
        let left = self.capacity - self.first;
        if sectors > left {
            return Ok(None);
        }
        let last = self.look(sectors - 1, width, true).await?;
        if last.on && self.line_holds(sectors - 1, width, last.off).await? {
            let width = self.corrected(width, sectors - 1, last.off);
            return self.end_behind(sectors - 1, last.angle, width, &predicted).await;
        }
        Ok(None)
    }

    /// The end of the track in hand, if it is a little before where it is predicted.
    async fn before(&mut self, predicted: FoundTrack) -> Result<Option<End>, ExtractError> {
        let FoundTrack { sectors, width, .. } = predicted;
        if sectors > self.capacity - self.first {
            return Ok(None);
        }
        let mut step = 1;
        let mut off = sectors - 1;
        while step <= NEAR && step < off {
            let offset = sectors - 1 - step;
            let seen = self.look(offset, width, true).await?;
            if seen.on && self.line_holds(offset, width, seen.off).await? {
                let width = self.corrected(width, offset, seen.off);
                return Ok(self.between(offset, seen.angle, off, width).await?.jump());
            }
            off = offset;
            step *= 2;
        }
        Ok(None)
    }

    /// The end of the track in hand, of which the sector at `on` is, at `angle`.
    async fn end_behind(
        &mut self,
        on: u64,
        angle: f64,
        width: f64,
        predicted: &FoundTrack,
    ) -> Result<Option<End>, ExtractError> {
        let left = self.capacity - self.first;
        let (mut low, mut low_angle) = (on, angle);
        let mut step = 1;
        while step <= NEAR {
            let offset = on + step;
            if offset >= left {
                return self.last_track(low, low_angle, width).await;
            }
            let seen = match step {
                1 => self.look_behind(offset, width, predicted).await?,
                _ => self.look(offset, width, false).await?,
            };
            if !seen.on {
                let angle = self.settled(offset, seen.angle, predicted).await?;
                let between = self.between_seen(low, low_angle, offset, Some(angle), width).await?;
                return Ok(between.jump());
            }
            (low, low_angle) = (offset, seen.angle);
            step *= 2;
        }
        Ok(None)
    }

    /// Reads the sector at `offset`, which should be the next track's first.
    async fn look_behind(
        &mut self,
        offset: u64,
        width: f64,
        predicted: &FoundTrack,
    ) -> Result<Seen, ExtractError> {
        let (expected, within) = (self.at + predicted.step, self.rough().max(width / 3.0));
        let angle = self.angles.of_expected(self.first + offset, expected, within).await?;
        let off = nearest(angle - self.at - offset as f64 * width);
        if self.is_on(offset, width, off) {
            return self.look_once(offset, width).await;
        }
        Ok(Seen { angle, off, on: false })
    }

    /// The angle of the next track's first sector, which is at `offset`: read again
    /// if it is a little, but not quite, where it is predicted.
    async fn settled(
        &mut self,
        offset: u64,
        angle: f64,
        predicted: &FoundTrack,
    ) -> Result<f64, ExtractError> {
        let off = nearest(angle - self.at - predicted.step).abs();
        let width = predicted.width;
        if off < self.rough().max(width / 20.0) || off > self.rough().max(1.5 * width) {
            return Ok(angle);
        }
        self.angles.of(self.first + offset).await
    }

    /// The last track, of which the sector at `on` is: it reaches to the capacity
    /// if the last address is on it.
    async fn last_track(&mut self, on: u64, angle: f64, width: f64) -> Result<Option<End>, ExtractError> {
        let last = self.capacity - self.first - 1;
        if on == last || self.look(last, width, true).await?.on {
            let next = self.at + (last + 1) as f64 * width;
            return Ok(Some(End { lbn: self.capacity, next: next.fract(), width }));
        }
        Ok(self.between(on, angle, last, width).await?.jump())
    }

    async fn between(
        &mut self,
        low: u64,
        angle: f64,
        high: u64,
        width: f64,
    ) -> Result<Between, ExtractError> {
        self.between_seen(low, angle, high, None, width).await
    }

    /// The end of the track between a sector on it and one that is not, with their
    /// angles.
    async fn between_seen(
        &mut self,
        mut low: u64,
        mut low_angle: f64,
        mut high: u64,
        mut high_angle: Option<f64>,
        width: f64,
    ) -> Result<Between, ExtractError> {
        while high - low > 1 {
            let middle = low.midpoint(high);
            let seen = self.look(middle, width, true).await?;
            if seen.on {
                (low, low_angle) = (middle, seen.angle);
            } else {
                (high, high_angle) = (middle, Some(seen.angle));
            }
        }
        let next = match high_angle {
            Some(angle) => angle,
            None => self.angles.of(self.first + high).await?,
        };
        let end = End { lbn: self.first + high, next, width };
        // Where a track is one whole revolution, the next may begin without a jump.
        let full = (high as f64 * width - 1.0).abs() < 1.5 * width;
        if !full && nearest(next - low_angle - width).abs() < 1.5 * width {
            return Ok(Between::NoJump(end));
        }
        Ok(Between::Jump(end))
    }

    /// Searches the track in hand whole. Its first sector may live elsewhere: then
    /// its line begins with the next.
    async fn whole(&mut self) -> Result<(), ExtractError> {
        // It may itself have been misread.
        self.at = self.angles.of(self.first).await?;
        let (at, usual) = (self.at, self.history.next().map_or(0.0, |usual| usual.width));
        let mut shortest = None;
        for skipped in 0..REMAPPED_MAX.min(self.capacity - self.first) {
            if skipped > 0 {
                let angle = self.angles.of(self.first + skipped).await?;
                self.at = (angle - skipped as f64 * usual).rem_euclid(1.0);
            }
            self.skipped = skipped;
            let end = self.drawn(skipped).await?;
            self.skipped = 0;
            let sectors = end.lbn - self.first;
            if sectors < SHORT + skipped && end.lbn < self.capacity {
                shortest.get_or_insert(end);
                continue;
            }
            if sectors as f64 * end.width < 1.0 + end.width / 2.0 {
                return self.take(end, None).await;
            }
            // More than a revolution: what came before the line was a track.
            break;
        }
        self.at = at;
        match shortest {
            Some(end) => self.take(end, None).await,
            None => Err(self.no_boundary(0)),
        }
    }

    /// The end of the track in hand, whose line is drawn out by doubling from the
    /// sector at `start`.
    async fn drawn(&mut self, start: u64) -> Result<End, ExtractError> {
        let left = self.capacity - self.first;
        let usual = self.history.next().map_or(0.0, |usual| usual.width);
        let before = start as f64 * usual;
        let mut line = Line { on: start, turned: before, angle: self.at + before };
        for _ in 0..LINES_MAX {
            let next = self.draw_out(&mut line).await?;
            let width = line.width();
            if next >= left {
                return Ok(End { lbn: self.capacity, next: (self.at + left as f64 * width).fract(), width });
            }
            let end = match self.between(line.on, line.angle, next, width).await? {
                Between::Jump(end) => return Ok(end),
                Between::NoJump(end) => end,
            };
            // What was taken for holes may have been the end.
            if let Some(end) = self.first_off(line, end.lbn - self.first).await? {
                return Ok(end);
            }
            // The line was too rough. It goes on from what was off it, unless that
            // is on no line at all.
            let on = end.lbn - self.first;
            let expected = width * on as f64;
            let turned = expected + nearest(end.next - self.at - expected);
            line = Line { on, turned, angle: end.next };
            if expected >= 1.0 || line.width() < width * 0.8 || line.width() > width * 1.25 {
                return Ok(end);
            }
        }
        Err(self.no_boundary(line.on))
    }

    /// The first sector behind the end of a line that is off it by as much as a
    /// hole, up to the one at `high`, if angles are exact enough to see that.
    async fn first_off(&mut self, line: Line, mut high: u64) -> Result<Option<End>, ExtractError> {
        let (width, mut low, mut low_angle) = (line.width(), line.on, line.angle);
        if self.rough() > width / 3.0 {
            return Ok(None);
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            let seen = self.look(middle, width, true).await?;
            if seen.off.abs() < width / 3.0 { (low, low_angle) = (middle, seen.angle) } else { high = middle }
        }
        let next = self.angles.of(self.first + high).await?;
        let jumps = nearest(next - low_angle - width).abs() > 1.5 * width;
        Ok(jumps.then_some(End { lbn: self.first + high, next, width }))
    }

    /// Draws the line out to where it ends, at most twice as far at a time: says
    /// which sector is no more on it.
    async fn draw_out(&mut self, line: &mut Line) -> Result<u64, ExtractError> {
        let left = self.capacity - self.first;
        loop {
            let next = (2 * line.on).min(left - 1).max(line.on + 1);
            if next >= left {
                return Ok(next);
            }
            if line.on > TRACK_SECTORS_MAX {
                return Err(self.no_boundary(line.on));
            }
            let angle = self.angles.of(self.first + next).await?;
            let before = self.history.next().map_or(0.0, |before| before.width);
            let width = if line.on == 0 { before } else { line.width() };
            let expected = width * next as f64;
            let off = nearest(angle - self.at - expected);
            if !self.draws_on(next, width, off) {
                // Twice, as elsewhere.
                let angle = self.angles.of(self.first + next).await?;
                let off = nearest(angle - self.at - expected);
                if !self.draws_on(next, width, off) {
                    return Ok(next);
                }
                *line = Line { on: next, turned: expected + off, angle };
                continue;
            }
            *line = Line { on: next, turned: expected + off, angle };
        }
    }

    /// Whether a line goes on to the sector at `offset`. Holes near its beginning
    /// make it rough either way.
    fn draws_on(&self, offset: u64, width: f64, off: f64) -> bool {
        if offset > 1 && width < 1.0 / TRACK_SECTORS_MAX as f64 {
            return false;
        }
        if width == 0.0 {
            // Of the very first sector nothing is known but that it is no track.
            return off.abs() < FIRST_SECTOR_MAX;
        }
        let near = offset <= NEARBY && off.abs() < self.off_line().min(HOLES * width + self.rough());
        near || self.is_on(offset, width, off)
    }

    fn no_boundary(&self, sectors: u64) -> ExtractError {
        let saw = format!(
            "the angle goes on evenly over {sectors} sectors from {} on: tracks are not skewed, or the device is \
             no disk",
            self.first
        );
        ExtractError::cannot_tell("where tracks end", saw)
    }

    /// Skips periods, if tracks repeat; says whether.
    async fn leap(&mut self, leap: &mut Leap) -> Result<bool, ExtractError> {
        let Some((period, matched)) = self.history.period() else { return Ok(false) };
        if leap.hold > 0 || matched < REPEATED_MIN.max(2 * period as u32) {
            return Ok(false);
        }
        let tracks = self.history.last(period).to_vec();
        let sectors: u64 = tracks.iter().map(|track| track.sectors).sum();
        let mut end = self.first + sectors * leap.periods;
        while end >= self.capacity && leap.periods > 1 {
            leap.halve(period);
            end = self.first + sectors * leap.periods;
        }
        if end >= self.capacity {
            return Ok(false);
        }
        let turn = self.turn_of(sectors, &tracks) * leap.periods as f64;
        let Some(at) = self.lands(end, self.at + turn, &tracks[period - 1], &tracks[0]).await? else {
            leap.failed(end, period);
            return Ok(false);
        };
        if !self.unlike_between(&tracks, leap.periods / 2 * sectors).await? {
            leap.failed(end, period);
            return Ok(false);
        }
        let runs: Vec<(Sectors, u64)> = tracks.iter().map(|track| (Sectors(track.sectors), 1)).collect();
        self.builder.push_pattern(&runs, leap.periods)?;
        self.counts.skipped += leap.periods * period as u64;
        self.stretch(self.first, &tracks, leap.periods);
        self.history.repeat(&tracks, leap.periods);
        // Over more periods it is known the better.
        self.turn = (sectors, (turn + nearest(at - self.at - turn)) / leap.periods as f64);
        (self.first, self.at) = (end, at);
        leap.succeeded();
        Ok(true)
    }

    /// Whether the shortest track of a period ends where it should in the one
    /// `ahead`. A hole and what makes up for it would be skipped otherwise.
    async fn unlike_between(&mut self, tracks: &[FoundTrack], ahead: u64) -> Result<bool, ExtractError> {
        let shortest = (0..tracks.len()).min_by_key(|&index| tracks[index].sectors).unwrap_or(0);
        if tracks.iter().all(|track| track.sectors == tracks[shortest].sectors) {
            return Ok(true);
        }
        let before: u64 = tracks[..=shortest].iter().map(|track| track.sectors).sum();
        let end = self.first + ahead + before;
        let track = tracks[shortest];
        let last = self.angles.of(end - 1).await?;
        let next = self.angles.of(end).await?;
        let back = (track.sectors - 1) as f64 * track.width - track.step;
        Ok(nearest(last - next - back).abs() < self.off_line() / 2.0)
    }

    /// By how much the angle turns over a period.
    fn turn_of(&self, sectors: u64, tracks: &[FoundTrack]) -> f64 {
        let steps: f64 = tracks.iter().map(|track| track.step).sum();
        let (of, turn) = self.turn;
        // Both know it modulo whole revolutions only.
        if of == sectors && nearest(turn - steps).abs() < OFF_LINE { turn } else { steps }
    }

    /// The angle at `end`, if it is about `at`, the last track before it is as `last`
    /// and the one behind it as `first`.
    async fn lands(
        &mut self,
        end: u64,
        at: f64,
        last: &FoundTrack,
        first: &FoundTrack,
    ) -> Result<Option<f64>, ExtractError> {
        let limit = self.off_line() / 2.0;
        let tries = if self.quiet() { 1 } else { 2 };
        let back = (last.sectors - 1) as f64 * last.width - last.step;
        let within = self.rough().max(last.width / 3.0);
        for _ in 0..tries {
            let before = self.angles.of_expected(end - 1, at + back, within).await?;
            let next = self.angles.of_expected(end, at, within).await?;
            if nearest(next - at).abs() >= limit || nearest(before - next - back).abs() >= limit {
                continue;
            }
            // By chance another zone's track may end here, but it is not as long.
            let behind = (end + first.sectors - 1).min(self.capacity - 1);
            let over = (behind - end) as f64 * first.width;
            let angle = self.angles.of_expected(behind, next + over, within).await?;
            if nearest(angle - next - over).abs() < limit {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }
}

/// Where a track ends.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The first address of the next.
    lbn: u64,
    /// Its angle.
    next: f64,
    /// The angle of a sector of the track.
    width: f64,
}

/// What lies between a sector on a track and one off its line.
#[derive(Clone, Copy, Debug)]
enum Between {
    /// The angle jumps: the track ends.
    Jump(End),
    /// It does not; this is the first sector off the line.
    NoJump(End),
}

impl Between {
    fn jump(self) -> Option<End> {
        match self {
            Between::Jump(end) => Some(end),
            Between::NoJump(_) => None,
        }
    }
}

/// The line of a track, to one of its sectors.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// That sector's offset.
    on: u64,
    /// The angle from the track's first sector to it.
    turned: f64,
    /// Its angle.
    angle: f64,
}

impl Line {
    /// The angle of a sector.
    fn width(&self) -> f64 {
        if self.on == 0 { 0.0 } else { self.turned / self.on as f64 }
    }
}

/// A sector held against the line of a track.
#[derive(Clone, Copy, Debug)]
struct Seen {
    angle: f64,
    /// By how much it is off the line.
    off: f64,
    /// Whether it is on the track.
    on: bool,
}
