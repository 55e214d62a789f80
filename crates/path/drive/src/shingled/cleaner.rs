//! Cleaning: a band is read, and written with its cached data.

use super::node::ShingledDrive;
use super::under_way::{BandCleaning, InnerIo, MediumWrite};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Time;

impl ShingledDrive {
    /// True if `band` is being cleaned.
    pub(super) fn cleans(&self, band: u64) -> bool {
        (self.cleaning.as_ref()).is_some_and(|cleaning| cleaning.band == band)
    }

    /// Begins to clean the band of the oldest cached data, if a band is to be cleaned at `now`.
    pub(super) fn clean_on(&mut self, now: Time) {
        if self.cleaning.is_some() || self.moving.is_some() {
            return;
        }
        if self.starved.is_none() && self.cleaning_due() > now {
            return;
        }
        // While a write waits, the cheaper way to make room goes first.
        if self.starved.is_some() && self.begins_move(now) {
            return;
        }
        let Some(band) = self.map.oldest_band() else {
            return self.nothing_to_clean(now);
        };
        let (start, sectors) = self.map.extent_of(band);
        // Cleaning would read the older cached data now, and write them over the newer ones later.
        if let Some(MediumWrite::Band { start: other, .. }) = self.writing
            && other / self.shingles.band == band
        {
            return;
        }
        let cached = self.map.cached_of(band);
        let covered: u64 = cached.iter().map(|extent| extent.sectors).sum();
        let mut reads: Vec<Extent> = Vec::new();
        for extent in &cached {
            let place = self.map.on_medium(extent.place);
            match reads.last_mut() {
                Some(last) if last.end().0 == place => last.sectors.0 += extent.sectors,
                _ => reads.push(Extent::new(place, extent.sectors)),
            }
        }
        reads.reverse();
        // The write of a band needs the old sectors too, unless the cache has every sector of the
        // band.
        if covered < sectors {
            reads.push(Extent::new(start, sectors));
        }
        self.cleaning = Some(BandCleaning {
            band,
            cached,
            reads,
            writes: false,
        });
        self.clean_step(now);
    }

    /// Begins the next step of cleaning.
    fn clean_step(&mut self, now: Time) {
        let Some(cleaning) = &mut self.cleaning else {
            return;
        };
        if let Some(extent) = cleaning.reads.pop() {
            return self.issue(now, Operation::Read, extent, InnerIo::Clean);
        }
        cleaning.writes = true;
        let (start, sectors) = self.map.extent_of(cleaning.band);
        let extent = Extent::new(start, sectors);
        self.issue(now, Operation::Write, extent, InnerIo::Clean);
    }

    /// Takes note that a step ended at `now`.
    pub(super) fn cleaned_step(&mut self, now: Time) {
        match self.cleaning.take_if(|cleaning| cleaning.writes) {
            None => self.clean_step(now),
            Some(cleaning) => {
                self.map.came_home(&cleaning.cached);
                self.counts.bands += 1;
                self.counts.band_sectors += self.map.extent_of(cleaning.band).1;
            }
        }
    }

    /// A write waits for room, and no band has cached data: only records fill the cache.
    fn nothing_to_clean(&mut self, now: Time) {
        self.map.release();
        if self.starved.is_some() && self.writing.is_none() {
            self.write_on(now);
        }
    }

    /// Time at which idle time is used for cleaning. [`Time::NEVER`] if nothing is to be cleaned.
    pub(super) fn cleaning_due(&self) -> Time {
        let rests = self.cleaning.is_none() && self.moving.is_none() && self.writing.is_none();
        if !(self.is_idle() && rests && self.has_work()) {
            return Time::NEVER;
        }
        self.idle_from() + self.shingles.idle
    }

    /// True if idle time would be used for cleaning.
    fn has_work(&self) -> bool {
        self.map.extents() > 0 && self.map.used() > self.shingles.clean_above
    }

    /// True if nothing is being cleaned, and neither idle time nor a waiting write begins cleaning.
    pub(super) fn is_clean(&self) -> bool {
        let rests = self.cleaning.is_none() && self.moving.is_none() && self.starved.is_none();
        rests && !self.has_work()
    }
}
