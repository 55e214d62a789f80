//! The choice of a zone for reclaim (drivers/md/dm-zoned-reclaim.c).

use super::map::NONE;
use super::node::DmZoned;
use super::progress::{ReclaimKind, ReclaimState, ZoneCopy};
use fullstroke_contract::NodeContext;
use fullstroke_units::Time;

impl DmZoned {
    /// True if no request came for a while (`dmz_target_idle`).
    fn is_idle(&self, now: Time) -> bool {
        now >= self
            .last_request
            .saturating_add(self.map.format.config.idle)
    }

    /// True if reclaim has to run (`dmz_should_reclaim`). The upper mark of the kernel, 50 % of free
    /// random zones, never decides: the lower mark is below.
    fn should_reclaim(&self, now: Time) -> bool {
        let idle = self.is_idle(now) && self.map.free_random() < self.map.random_zones();
        idle || self.map.free_percentage() <= self.map.format.config.low
    }

    /// Begins reclaim soon if reclaim has to run (`dmz_schedule_reclaim`).
    pub(super) fn schedule_reclaim(&mut self, now: Time) {
        if self.reclaim.rests() && self.should_reclaim(now) {
            self.reclaim.work_at = now;
        }
    }

    /// Begins the reclaim of a zone, if it is time (`dmz_reclaim_work`). Returns true if a zone was
    /// found.
    pub(super) fn begin_reclaim(&mut self, now: Time, cx: &mut NodeContext<'_>) -> bool {
        if !self.reclaim.rests() || self.reclaim.work_at > now || self.metadata.flush.is_some() {
            return false;
        }
        let config = &self.map.format.config;
        let (idle, low, most) = (config.idle, config.low, config.throttle);
        if !self.should_reclaim(now) {
            let nothing = self.map.free_random() == self.map.random_zones();
            self.reclaim.work_at = match nothing {
                true => Time::NEVER,
                false => now + idle,
            };
            return false;
        }
        let free = self.map.free_percentage();
        // Nobody waits on an idle drive, and with hardly a free zone writes wait anyway, so reclaim
        // takes the whole drive (`dmz_reclaim_work`).
        self.reclaim.throttle.percent = match self.is_idle(now) || free < low / 2 {
            true => 100,
            false => most.min(100 - free / 2),
        };
        // Without a zone, the end of a request brings the next look.
        self.reclaim.work_at = Time::NEVER;
        match self.choose() {
            Some(zone) => self.start(zone, cx),
            None => false,
        }
    }

    /// True if no request is in flight to a data zone.
    fn may_reclaim(&self, zone: u32) -> bool {
        let state = self.map.zone(zone);
        state.active == 0 && !state.in_reclaim
    }

    /// Returns the data zone of a mapped random zone.
    fn data_of(&self, random: u32) -> u32 {
        let state = self.map.zone(random);
        match state.is_buffer {
            true => state.partner,
            false => random,
        }
    }

    /// Chooses a data zone (`dmz_get_zone_for_reclaim`): the oldest random data zone, otherwise the
    /// buffered zone with the most valid blocks. If even the reserved zones are in use, the oldest
    /// buffered sequential zone.
    fn choose(&self) -> Option<u32> {
        if self.map.reserve_is_used() {
            let mut zones = self.map.sequential_by_age();
            let found =
                zones.find(|&zone| self.map.zone(zone).partner != NONE && self.may_reclaim(zone));
            if found.is_some() {
                return found;
            }
        }
        let mut heaviest: Option<u32> = None;
        for random in self.map.random_by_age() {
            let data = self.data_of(random);
            if data != random {
                let weight = |zone: u32| self.map.zone(zone).valid.weight();
                if heaviest.is_none_or(|zone| weight(zone) < weight(data)) {
                    heaviest = Some(data);
                }
            } else if self.may_reclaim(data) {
                return Some(data);
            }
        }
        heaviest.filter(|&zone| self.may_reclaim(zone)).or_else(|| {
            let mut zones = self.map.random_by_age().map(|zone| self.data_of(zone));
            zones.find(|&zone| self.may_reclaim(zone))
        })
    }

    /// Begins to reclaim a data zone (`dmz_do_reclaim`). Returns false if no zone is free for the
    /// data.
    fn start(&mut self, zone: u32, cx: &mut NodeContext<'_>) -> bool {
        let all = self.map.format.blocks;
        let state = self.map.zone(zone);
        let copy = if self.map.format.is_random(zone) {
            // Without valid blocks there is nothing to copy, so the zone is free at once
            // (`dmz_reclaim_empty`).
            if state.valid.weight() == 0 {
                self.map.unmap(zone);
                self.free(zone, cx);
                self.counts.reclaimed_zones += 1;
                self.reclaim.state = ReclaimState::Flushing;
                self.begin_flush(cx);
                return true;
            }
            let Some(target) = self.map.take_for_reclaim() else {
                return false;
            };
            ZoneCopy::new(ReclaimKind::Random, zone, target, all)
        } else {
            let buffer = state.partner;
            let first = self.map.zone(buffer).valid.next_run(0, all);
            // If all blocks of the buffer lie behind the write pointer, they can be appended to the
            // data zone. Otherwise both zones are merged into the buffer (`dmz_do_reclaim`).
            match first.is_none_or(|(first, _)| first >= state.pointer) {
                true => ZoneCopy::new(ReclaimKind::Buffer, buffer, zone, all),
                false => ZoneCopy::new(ReclaimKind::Sequential, zone, buffer, state.pointer),
            }
        };
        self.map.zone_mut(zone).in_reclaim = true;
        self.reclaim.state = ReclaimState::Copying(copy);
        true
    }

    /// Changes the map after the copy of a zone. Returns true if there was such a copy.
    pub(super) fn finish_reclaim(&mut self, _: Time, cx: &mut NodeContext<'_>) -> bool {
        if !matches!(self.reclaim.state, ReclaimState::Copied(_)) {
            return false;
        }
        let state = std::mem::replace(&mut self.reclaim.state, ReclaimState::Flushing);
        let ReclaimState::Copied(copy) = state else {
            return false;
        };
        let (source, target) = (copy.source, copy.target);
        self.map.copy_valid(source, target);
        // The source gives its blocks up only after the target has them, so that no block is
        // without a valid copy.
        let all = self.map.format.blocks;
        self.map.invalidate(source, 0, all);
        match copy.kind {
            ReclaimKind::Buffer => {
                self.map.unmap(source);
                self.map.zone_mut(target).in_reclaim = false;
            }
            ReclaimKind::Sequential => {
                let chunk = self.map.zone(source).chunk;
                self.map.unmap(target);
                self.map.unmap(source);
                self.map.map(target, chunk);
            }
            ReclaimKind::Random => {
                let chunk = self.map.zone(source).chunk;
                self.map.unmap(source);
                self.map.map(target, chunk);
            }
        }
        self.free(source, cx);
        self.counts.reclaimed_zones += 1;
        self.begin_flush(cx);
        true
    }

    /// Ends a reclaim without a change of the map.
    pub(super) fn abandon(&mut self, now: Time, copy: &ZoneCopy, cx: &mut NodeContext<'_>) {
        self.reclaim.state = ReclaimState::Resting;
        match copy.kind {
            ReclaimKind::Random => {
                self.map.zone_mut(copy.source).in_reclaim = false;
                self.free(copy.target, cx);
            }
            ReclaimKind::Sequential => self.map.zone_mut(copy.source).in_reclaim = false,
            ReclaimKind::Buffer => self.map.zone_mut(copy.target).in_reclaim = false,
        }
        match copy.failed {
            // The drive may be in trouble: the next look waits for the idle time.
            true => self.reclaim.work_at = now + self.map.format.config.idle,
            false => self.counts.interrupted += 1,
        }
    }
}
