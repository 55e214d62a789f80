//! Arrays that work with fewer disks while little is asked of them: equations 8 to 10 of the
//! thesis's chapter 7.3, for PARAID (Weddle et al. 2007) and for its e-PARAID.
//!
//! In the low gear what the sleeping disks hold is read from copies on the others: in a reserve far
//! from the data (PARAID), or in buckets beside them (e-PARAID). A shift copies what was written to
//! the sleeping disks since the one before, taken as their part of all that was written.
//!
//! The text says in one place that a *high* utilisation shifts down, in two that a low one does;
//! the latter is meant. It gives neither thresholds nor the length of the moving average.

use crate::fingerprint::{Fingerprint, Window};
use crate::windowed::{Disk, Powers, Predicted, Sum, Work, elapsed_s};
use std::collections::VecDeque;

/// An array with two gears.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gears {
    /// Disks.
    pub disks: u32,
    /// Of those, how many sleep in the low gear: fewer than all.
    pub sleeping: u32,
    /// The stripe unit in sectors.
    pub unit: u64,
    /// Where the copies lie.
    pub reserve: Reserve,
    /// Windows over which utilisation is averaged; at least one.
    pub averaged: u32,
    /// A mean utilisation below shifts down.
    pub down: f64,
    /// One above shifts up.
    pub up: f64,
}

/// Where an active disk holds what the sleeping ones do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// Half of the longest seek away: PARAID.
    Far,
    /// In the midst of its own data: e-PARAID.
    Beside,
}

/// What such an array comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shifted {
    /// Latency, utilisation, bandwidth, energy.
    pub predicted: Predicted,
    /// How often the gear was shifted.
    pub shifts: u64,
    /// Share of the windows in the low gear.
    pub low_share: f64,
}

/// `array` under the trace of a fingerprint, in the high gear first. `None` for gears that cannot
/// be: as many disks asleep as there are, no stripe unit, nothing to average over. `seeks` are those of
/// all its disks.
pub fn geared(
    fingerprint: &Fingerprint,
    seeks: &[f64],
    array: &Gears,
    disk: &Disk,
    powers: Option<&Powers>,
) -> Option<Shifted> {
    let usable = array.sleeping < array.disks && array.unit > 0 && array.averaged > 0;
    usable.then(|| {
        let mut run = Run::new(fingerprint, array, disk, powers);
        let mut next = 0;
        for (window, &seek) in fingerprint.busy.iter().zip(seeks) {
            run.idle(window.index - next);
            run.window(Some((window, seek)));
            next = window.index + 1;
        }
        run.shifted()
    })
}

/// A run through the windows.
struct Run<'a> {
    fingerprint: &'a Fingerprint,
    array: &'a Gears,
    disk: &'a Disk,
    powers: Option<&'a Powers>,
    low: bool,
    /// The last windows' utilisation, and its sum.
    recent: VecDeque<f64>,
    recent_sum: f64,
    /// What was written to the sleeping disks since the last shift, in sectors.
    written: f64,
    /// The gear is shifted in the next window.
    marked: bool,
    sum: Sum,
    shifts: u64,
    low_windows: u64,
}

impl<'a> Run<'a> {
    fn new(
        fingerprint: &'a Fingerprint,
        array: &'a Gears,
        disk: &'a Disk,
        powers: Option<&'a Powers>,
    ) -> Run<'a> {
        Run {
            fingerprint,
            array,
            disk,
            powers,
            low: false,
            recent: VecDeque::with_capacity(array.averaged as usize),
            recent_sum: 0.0,
            written: 0.0,
            marked: false,
            sum: Sum::default(),
            shifts: 0,
            low_windows: 0,
        }
    }

    fn active(&self) -> f64 {
        f64::from(self.array.disks - if self.low { self.array.sleeping } else { 0 })
    }

    /// Windows in which nothing arrives. Behind as many as are averaged, and a shift, all are alike.
    fn idle(&mut self, windows: u64) {
        let settled = u64::from(self.array.averaged) + 1;
        (0..windows.min(settled)).for_each(|_| self.window(None));
        self.still(windows.saturating_sub(settled));
    }

    /// So many windows without work or shift.
    fn still(&mut self, windows: u64) {
        let time = windows as f64 * self.fingerprint.window_s;
        let asleep = f64::from(self.array.disks) - self.active();
        let watts = |powers: &Powers| self.active() * powers.rotating + asleep * powers.standby;
        self.sum.energy_j += self.powers.map_or(0.0, |powers| time * watts(powers));
        self.low_windows += if self.low { windows } else { 0 };
    }

    /// One window, with the shift that it may begin with.
    fn window(&mut self, window: Option<(&Window, f64)>) {
        let updates = if std::mem::take(&mut self.marked) { self.shift() } else { 0.0 };
        let nothing = Window::default();
        let (foreground, near) = window.unwrap_or((&nothing, 0.0));
        // Most windows are empty, and cost next to nothing.
        let works = window.is_some() || updates > 0.0;
        let (elapsed, seeking) = if works { self.work(foreground, near, updates) } else { (0.0, 0.0) };
        let (window_s, active) = (self.fingerprint.window_s, self.active());
        if window.is_some() {
            self.sum.add(foreground, Work { elapsed, seeking, active }, window_s, self.powers);
        } else {
            let each = |powers| active * crate::windowed::energy_j(window_s, elapsed, seeking, powers);
            self.sum.energy_j += self.powers.map_or(0.0, each);
        }
        let asleep = f64::from(self.array.disks) - active;
        self.sum.energy_j += self.powers.map_or(0.0, |powers| window_s * asleep * powers.standby);
        self.low_windows += u64::from(self.low);
        let part = f64::from(self.array.sleeping) / f64::from(self.array.disks);
        self.written += foreground.written as f64 * part;
        self.mark(elapsed / window_s);
    }

    /// Changes the gear; the sectors to copy.
    fn shift(&mut self) -> f64 {
        self.low = !self.low;
        self.shifts += 1;
        std::mem::take(&mut self.written)
    }

    /// Equation 8, or 10 where the reserve is beside the data: how long a window's runs and its copying
    /// take, and how much of that are seeks.
    fn work(&self, window: &Window, near: f64, updates: f64) -> (f64, f64) {
        let array = self.array;
        // In stripe units: as many as the low gear has disks.
        let cap = (u64::from(array.disks - array.sleeping) * array.unit) as f64;
        let copies = (updates / cap).ceil();
        let seek = match array.reserve {
            Reserve::Beside => near,
            Reserve::Far => {
                let far = self.far_share(window, copies, cap);
                far * self.disk.seek_s(0.5, 1.0) + (1.0 - far) * near
            }
        };
        let cut = if self.low { cap } else { f64::INFINITY };
        let runs = window.runs.iter().flat_map(|&(length, count)| pieces(length as f64, count as f64, cut));
        let copied = (copies > 0.0).then(|| (updates / copies, copies));
        let all = runs.chain(copied);
        let count: f64 = all.clone().map(|(_, count)| count).sum();
        (elapsed_s(all, self.active(), seek, self.disk), count * seek)
    }

    /// The share of requests that go to the reserve: those longer than a stripe of the active disks
    /// in the low gear, and the copies of a shift; no more than all.
    fn far_share(&self, window: &Window, copies: f64, stripe: f64) -> f64 {
        let remapped = if self.low || copies > 0.0 { window.longer(stripe as u64) } else { 0.0 };
        let foreground = window.count() as f64;
        let copied = if foreground > 0.0 { copies / foreground } else { f64::from(u8::from(copies > 0.0)) };
        (remapped + copied).min(1.0)
    }

    fn mark(&mut self, utilisation: f64) {
        let averaged = self.array.averaged as usize;
        if self.recent.len() == averaged {
            self.recent_sum -= self.recent.pop_front().unwrap_or(0.0);
        }
        self.recent.push_back(utilisation);
        self.recent_sum += utilisation;
        if self.recent.len() < averaged {
            return;
        }
        let mean = self.recent_sum / averaged as f64;
        self.marked = if self.low { mean > self.array.up } else { mean < self.array.down };
    }

    /// With equation 9's joules for the starts: one in two shifts is up.
    fn shifted(mut self) -> Shifted {
        let starts = self.shifts as f64 / 2.0 * f64::from(self.array.sleeping);
        self.sum.energy_j += self.powers.map_or(0.0, |powers| starts * powers.spin_up_j);
        let windows = self.fingerprint.windows.max(1) as f64;
        Shifted {
            predicted: self.sum.predicted(self.fingerprint, f64::INFINITY, self.powers.is_some()),
            shifts: self.shifts,
            low_share: self.low_windows as f64 / windows,
        }
    }
}

/// Runs of `length`, cut where they are longer than `cap`.
fn pieces(length: f64, count: f64, cap: f64) -> impl Iterator<Item = (f64, f64)> + Clone {
    let whole = if cap.is_finite() { (length / cap).floor() } else { 0.0 };
    let rest = if whole > 0.0 { length - whole * cap } else { length };
    [(cap, whole * count), (rest, count)].into_iter().filter(|&(length, count)| length > 0.0 && count > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windowed::seek_delays;
    use crate::windowed::tests::{DISK, POWERS, alone, fingerprint};

    const ARRAY: Gears =
        Gears { disks: 8, sleeping: 2, unit: 128, reserve: Reserve::Far, averaged: 3, down: 0.2, up: 0.6 };

    fn of_gears(trace: &Fingerprint, array: &Gears, powers: Option<&Powers>) -> Option<Shifted> {
        geared(trace, &seek_delays(trace, array.disks, &DISK), array, &DISK, powers)
    }

    /// One request in each of so many windows, of so many sectors.
    fn steady(windows: u64, sectors: u64, write: bool) -> Fingerprint {
        let request =
            |index: u64| (0.1 * index as f64 + 0.05, index * 7_919_000 % 700_000_000, sectors, write);
        fingerprint(&(0..windows).map(request).collect::<Vec<_>>())
    }

    fn never_down(reserve: Reserve) -> Gears {
        Gears { reserve, down: -1.0, ..ARRAY }
    }

    #[test]
    fn in_the_high_gear_without_a_shift_equation_eight_is_equation_five() {
        let trace = steady(50, 4000, true);
        let expected = alone(&trace, 8, Some(&POWERS), f64::INFINITY);
        for reserve in [Reserve::Far, Reserve::Beside] {
            let found = of_gears(&trace, &never_down(reserve), Some(&POWERS)).unwrap();
            assert_eq!((found.shifts, found.low_share), (0, 0.0));
            assert!((found.predicted.latency_s - expected.latency_s).abs() < 1e-12);
            assert!((found.predicted.energy_j.unwrap() - expected.energy_j.unwrap()).abs() < 1e-9);
        }
    }

    #[test]
    fn where_nothing_goes_to_the_reserve_both_are_alike_and_else_far_takes_longer() {
        let latency = |trace: &Fingerprint, reserve| {
            let found = of_gears(trace, &Gears { reserve, ..ARRAY }, None).unwrap();
            assert_eq!(found.shifts, 1);
            found.predicted.latency_s
        };
        // Requests shorter than a stripe, none of which writes: Δ is 0, and (10) is (8).
        let short = steady(50, 64, false);
        assert_eq!(latency(&short, Reserve::Far), latency(&short, Reserve::Beside));
        let long = steady(50, 1000, false);
        assert!(latency(&long, Reserve::Far) > latency(&long, Reserve::Beside));
    }

    #[test]
    fn low_gear_cuts_runs_at_a_stripe_of_the_active_disks() {
        let cut: Vec<_> = pieces(1600.0, 2.0, 768.0).collect();
        assert_eq!(cut, [(768.0, 4.0), (64.0, 2.0)]);
        assert_eq!(pieces(768.0, 1.0, 768.0).collect::<Vec<_>>(), [(768.0, 1.0)]);
        assert_eq!(pieces(1600.0, 2.0, f64::INFINITY).collect::<Vec<_>>(), [(1600.0, 2.0)]);
    }

    #[test]
    fn a_quiet_hour_sleeps_and_costs_what_equation_nine_says() {
        let trace = fingerprint(&[(0.0, 0, 8, false), (3600.0 - 0.05, 0, 8, false)]);
        let found = of_gears(&trace, &ARRAY, Some(&POWERS)).unwrap();
        // Three windows are averaged, and the next shifts.
        let high = 3.0;
        let low = 36_000.0 - high;
        assert_eq!((found.shifts, found.low_share), (1, low / 36_000.0));
        let idle = 0.1 * (high * 8.0 * 5.0 + low * (6.0 * 5.0 + 2.0 * 1.0));
        let start = 0.5 * 2.0 * 100.0;
        let first = 8.0 * (8.0 / 8.0 / 200_000.0 + 0.003) * 3.0;
        // The last one is back where the first ended: 8 sectors, which settles.
        let last = 6.0 * ((8.0 / 6.0 / 200_000.0 + 0.004) * 3.0 + 0.001 * 3.0);
        let energy = found.predicted.energy_j.unwrap();
        assert!((energy - (idle + start + first + last)).abs() < 1e-6, "{energy}");
    }

    #[test]
    fn a_shift_copies_what_was_written_to_the_disks_that_go_to_sleep() {
        let of = |write| of_gears(&steady(50, 2000, write), &ARRAY, None).unwrap().predicted;
        let (read, written) = (of(false), of(true));
        // Three windows wrote 2000 sectors each, a quarter of them to two disks of eight.
        assert!(written.latency_s > read.latency_s);
        let more = (written.utilisation - read.utilisation) * 5.0;
        assert!(more > 1500.0 / 6.0 / DISK.sequential, "{more}");
    }

    #[test]
    fn load_that_rises_shifts_up_again() {
        let mut requests: Vec<_> = (0..50u64).map(|at| (at as f64, 0, 8, false)).collect();
        let burst = (0..2000u64).map(|at| (50.0 + 0.004 * at as f64, at * 7_919_000 % 700_000_000, 8, false));
        requests.extend(burst);
        let found = of_gears(&fingerprint(&requests), &ARRAY, None).unwrap();
        assert_eq!(found.shifts, 2);
        assert!((0.8..0.9).contains(&found.low_share), "{}", found.low_share);
    }

    #[test]
    fn gears_that_cannot_be_are_refused() {
        let trace = steady(1, 8, false);
        for gears in
            [Gears { sleeping: 8, ..ARRAY }, Gears { unit: 0, ..ARRAY }, Gears { averaged: 0, ..ARRAY }]
        {
            assert_eq!(of_gears(&trace, &gears, None), None);
        }
    }
}
