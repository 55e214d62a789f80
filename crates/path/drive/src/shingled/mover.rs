//! Moves of valid data from the oldest part of the log to its end.
//!
//! Each flush leaves a part of the log unused, and overwritten data are of no use. When the oldest
//! part of a full log is mostly of this kind, a move of the rest makes more room in a second than
//! the cleaning of a band for each extent. The choice is the choice of every log with segments
//! (Rosenblum & Ousterhout, "The Design and Implementation of a Log-Structured File System", SOSP
//! 1991, section 3.4: a segment with little valid data is cheap to clean).

use super::node::ShingledDrive;
use super::under_way::{InnerIo, LogMove, RECORD};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Time;

impl ShingledDrive {
    /// Begins a move at `now`, if a move gains enough. Returns false otherwise.
    pub(super) fn begins_move(&mut self, now: Time) -> bool {
        let (length, record) = (self.shingles.band, self.shingles.record.max(RECORD));
        if !self.shingles.moves || self.writing.is_some() {
            return false;
        }
        let Some((from, to, valid)) = self.map.oldest_part(length) else {
            return false;
        };
        let sectors: u64 = valid.iter().map(|extent| extent.sectors).sum();
        let gain = (to - from).saturating_sub(sectors + record);
        let rate = gain as f64 / (to - from + sectors + record) as f64;
        // A part without valid data would divide by zero.
        let space = (to - from) as f64 / sectors.max(1) as f64;
        if rate <= self.rate_of_cleaning(space) || self.map.free() < sectors + record {
            return false;
        }
        let mut ios = Vec::new();
        // The part is read as one stretch with its unused sectors, as the rate above assumes.
        self.map
            .on_medium_in_pieces(from, to - from, u64::MAX, &mut |start, sectors| {
                ios.push((Operation::Read, Extent::new(start, sectors)));
            });
        let place = self.map.reserve(sectors + record);
        let piece = self.shingles.piece;
        self.map
            .on_medium_in_pieces(place, sectors, piece, &mut |start, sectors| {
                ios.push((Operation::Write, Extent::new(start, sectors)));
            });
        let record_at = self.map.on_medium(place + sectors);
        // The record of the new places goes last, because until then only the old places hold all
        // data.
        ios.push((Operation::Write, Extent::new(record_at, RECORD.min(record))));
        ios.reverse();
        self.counts.moved_sectors += sectors;
        self.moving = Some(LogMove { valid, place, ios });
        self.move_step(now);
        true
    }

    /// Returns the room that the cleaning of the next band makes, for each transferred sector. Each
    /// cached sector takes `space` sectors of the log.
    fn rate_of_cleaning(&mut self, space: f64) -> f64 {
        let Some(band) = self.map.oldest_band() else {
            return f64::INFINITY;
        };
        let sectors = self.map.extent_of(band).1;
        let cached = self.map.cached_of(band);
        let cached: u64 = cached.iter().map(|extent| extent.sectors).sum();
        // A band that is cached as a whole is not read.
        let read = if cached < sectors { sectors } else { 0 };
        cached as f64 * space / (cached + read + sectors) as f64
    }

    /// Begins the next step of the move, or ends the move.
    pub(super) fn move_step(&mut self, now: Time) {
        let Some(moving) = &mut self.moving else {
            return;
        };
        if let Some((operation, extent)) = moving.ios.pop() {
            return self.issue(now, operation, extent, InnerIo::Move);
        }
        if let Some(LogMove { valid, place, .. }) = self.moving.take() {
            // Reads find the data at the old places until the new places are on the medium.
            self.map.moved(&valid, place);
            self.counts.moves += 1;
        }
    }
}
