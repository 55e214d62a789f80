//! Finds members that are slower than the other members by the times of their I/O.
//!
//! Hao et al. ("The Tail at Store", FAST 2016, section 3) compare each disk with the median of its
//! RAID group, and count a disk as slow from twice the median on. [`PeerWatch`] makes the same
//! comparison in windows of time:
//!
//! 1. The mean time of an I/O of each member is taken over a window. A member with few I/Os in the
//!    window does not take part.
//! 2. A member is beyond the limit if its mean is at least `factor` times the median of the other
//!    members' means. Means below [`PeerConfig::least_mean`] never are: memory answers there, and no
//!    disk.
//! 3. A member that is beyond the limit in `windows` windows in a row is slow. A slow member that is
//!    within the limit in as many windows in a row is no longer slow.
//!
//! A watch has no clock. The caller brings the time, and the totals of each member.

use fullstroke_units::{Duration, Time};

/// Settings of a [`PeerWatch`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeerConfig {
    /// Multiple of the median of the other members from which on a member is beyond the limit.
    /// Default 2, as in the field study.
    pub factor: f64,
    /// Length of a window. Default 10 s.
    pub window: Duration,
    /// Number of windows in a row that decide. Default 3.
    pub windows: u32,
    /// Least number of I/Os of a member in a window. Default 8.
    pub least_ios: u64,
    /// Least mean time of a member beyond the limit. Default 1 ms: a read of a disk's medium takes
    /// longer.
    pub least_mean: Duration,
}

impl Default for PeerConfig {
    fn default() -> PeerConfig {
        PeerConfig {
            factor: 2.0,
            window: Duration::from_secs(10),
            windows: 3,
            least_ios: 8,
            least_mean: Duration::from_millis(1),
        }
    }
}

/// I/Os of a member since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoTotals {
    /// Number of I/Os.
    pub ios: u64,
    /// Sum of their times.
    pub time: Duration,
}

/// A change of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeerChange {
    /// Index of the member.
    pub member: usize,
    /// True if the member is slow now; false if it is no longer slow.
    pub is_slow: bool,
    /// Mean time of the member in the last window.
    pub mean: Duration,
    /// Median of the other members' means.
    pub median: Duration,
}

impl PeerChange {
    /// Returns the mean as a multiple of the median.
    pub fn factor(&self) -> f64 {
        self.mean.as_secs_f64() / self.median.as_secs_f64()
    }

    /// Returns the change in words, to follow the name of the member.
    pub fn words(&self) -> String {
        let (mean, median) = (self.mean.as_millis_f64(), self.median.as_millis_f64());
        match self.is_slow {
            true => format!(
                "is slow: an I/O takes {mean:.1} ms in the mean, {:.1} times the median of the other members ({median:.1} ms)",
                self.factor()
            ),
            false => format!(
                "is no longer slow: an I/O takes {mean:.1} ms in the mean, and {median:.1} ms with the other members"
            ),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WatchedPeer {
    /// Totals at the beginning of the window.
    before: IoTotals,
    /// Mean of the last window, in ns. `None` for too few I/Os.
    mean: Option<u64>,
    /// Windows in a row that speak against the present state.
    against: u32,
    /// Multiple of the median in the last window with enough I/Os, if the member is slow.
    slow: Option<f64>,
}

/// Compares members over windows of time, and finds the slow members.
///
/// - **Events in**: [`look`](PeerWatch::look).
/// - **Getters**: [`due`](PeerWatch::due), [`slowness`](PeerWatch::slowness).
#[derive(Clone, Debug)]
pub struct PeerWatch {
    config: PeerConfig,
    members: Vec<WatchedPeer>,
    due: Time,
    /// Means of the other members; empty between calls.
    others: Vec<u64>,
}

impl PeerWatch {
    /// Returns a watch over so many members, which begins at `now`.
    pub fn new(members: usize, config: PeerConfig, now: Time) -> PeerWatch {
        PeerWatch {
            config,
            members: vec![WatchedPeer::default(); members],
            due: now.saturating_add(config.window),
            others: Vec::with_capacity(members),
        }
    }

    /// Returns the end of the window.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Returns the multiple of the median if the member is slow.
    pub fn slowness(&self, member: usize) -> Option<f64> {
        self.members.get(member).and_then(|peer| peer.slow)
    }

    /// Ends the window if the window is over at `now`. `totals` are the totals of each member;
    /// `None` for a member that does not take part. Calls `tell` for each change.
    pub fn look(
        &mut self,
        now: Time,
        totals: impl Iterator<Item = Option<IoTotals>>,
        tell: &mut dyn FnMut(PeerChange),
    ) {
        if now < self.due {
            return;
        }
        self.due = now.saturating_add(self.config.window);
        for (peer, totals) in self.members.iter_mut().zip(totals) {
            let Some(totals) = totals else {
                // A member that comes back has a history of its own.
                *peer = WatchedPeer::default();
                continue;
            };
            // A member behind another device may begin anew.
            let ios = totals.ios.saturating_sub(peer.before.ios);
            let time = totals.time.saturating_sub(peer.before.time);
            let known = peer.before != IoTotals::default();
            peer.before = totals;
            let enough = ios >= self.config.least_ios.max(1) && (known || ios == totals.ios);
            peer.mean = enough.then(|| time.as_nanos() / ios);
        }
        for member in 0..self.members.len() {
            if let Some(change) = self.judge(member) {
                tell(change);
            }
        }
    }

    /// Compares a member with the others. Returns the change, if there is one.
    fn judge(&mut self, member: usize) -> Option<PeerChange> {
        let mean = self.members[member].mean?;
        self.others.clear();
        let others = self.members.iter().enumerate();
        self.others.extend(
            others
                .filter(|(other, _)| *other != member)
                .filter_map(|(_, peer)| peer.mean),
        );
        if self.others.is_empty() {
            return None;
        }
        let middle = self.others.len() / 2;
        let (_, median, _) = self.others.select_nth_unstable(middle);
        let median = (*median).max(1);
        let factor = mean as f64 / median as f64;
        let beyond = factor >= self.config.factor && mean >= self.config.least_mean.as_nanos();
        let peer = &mut self.members[member];
        let is_slow = peer.slow.is_some();
        if beyond == is_slow {
            peer.against = 0;
            if is_slow {
                peer.slow = Some(factor);
            }
            return None;
        }
        peer.against += 1;
        if peer.against < self.config.windows {
            return None;
        }
        peer.against = 0;
        peer.slow = beyond.then_some(factor);
        Some(PeerChange {
            member,
            is_slow: beyond,
            mean: Duration::from_nanos(mean),
            median: Duration::from_nanos(median),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group whose members take these times in ms, window by window.
    struct Group {
        watch: PeerWatch,
        totals: Vec<IoTotals>,
        now: Time,
    }

    impl Group {
        fn new(members: usize) -> Group {
            Group {
                watch: PeerWatch::new(members, PeerConfig::default(), Time::ZERO),
                totals: vec![IoTotals::default(); members],
                now: Time::ZERO,
            }
        }

        fn window(&mut self, ios: u64, ms: &[f64]) -> Vec<PeerChange> {
            self.now += PeerConfig::default().window;
            for (totals, ms) in self.totals.iter_mut().zip(ms) {
                totals.ios += ios;
                totals.time += Duration::from_millis_f64(*ms * ios as f64);
            }
            let mut changes = Vec::new();
            let totals = self.totals.iter().copied().map(Some);
            self.watch
                .look(self.now, totals, &mut |change| changes.push(change));
            changes
        }
    }

    const SLOW: [f64; 4] = [6.0, 7.0, 30.0, 6.0];
    const ALIKE: [f64; 4] = [6.0, 7.0, 6.0, 6.0];

    #[test]
    fn a_member_is_slow_after_three_windows_in_a_row_and_usual_again_after_three() {
        let mut group = Group::new(4);
        assert!(group.window(100, &SLOW).is_empty());
        assert!(group.window(100, &ALIKE).is_empty());
        assert!(group.window(100, &SLOW).is_empty());
        assert!(group.window(100, &SLOW).is_empty());
        let changes = group.window(100, &SLOW);
        assert_eq!(changes.len(), 1);
        assert!(changes[0].is_slow && changes[0].member == 2);
        assert!((changes[0].factor() - 5.0).abs() < 1e-6, "{changes:?}");
        assert_eq!(group.watch.slowness(2), Some(5.0));
        assert_eq!(group.watch.slowness(1), None);
        // Windows without enough I/Os say nothing.
        assert!(group.window(100, &ALIKE).is_empty());
        assert!(group.window(3, &SLOW).is_empty());
        assert!(group.window(100, &ALIKE).is_empty());
        let changes = group.window(100, &ALIKE);
        assert!(!changes[0].is_slow, "{changes:?}");
        assert_eq!(group.watch.slowness(2), None);
    }

    #[test]
    fn one_of_two_mirrors_is_found_and_answers_from_memory_are_not() {
        let mut group = Group::new(2);
        let changes: Vec<PeerChange> = (0..3)
            .flat_map(|_| group.window(50, &[15.0, 6.0]))
            .collect();
        assert_eq!(changes.len(), 1);
        assert!(
            changes[0]
                .words()
                .starts_with("is slow: an I/O takes 15.0 ms")
        );
        let mut group = Group::new(2);
        assert!((0..9).all(|_| group.window(50, &[0.2, 0.02]).is_empty()));
    }

    #[test]
    fn nothing_is_compared_before_the_window_ends_or_with_a_member_that_is_left_out() {
        let mut watch = PeerWatch::new(2, PeerConfig::default(), Time::ZERO);
        let totals = |ms: u64| {
            Some(IoTotals {
                ios: 100,
                time: Duration::from_millis(100 * ms),
            })
        };
        let mut changes = 0;
        watch.look(
            Time::ZERO,
            [totals(1), totals(100)].into_iter(),
            &mut |_| changes += 1,
        );
        for window in 1..20 {
            let now = Time::ZERO + Duration::from_secs(10 * window);
            watch.look(now, [totals(1), None].into_iter(), &mut |_| changes += 1);
        }
        assert_eq!(changes, 0);
    }
}
