//! Arrays that work with fewer disks while little is asked of them: equations 8 to 10 of the
//! thesis's chapter 7.3, for PARAID (Weddle et al. 2007) and for its e-PARAID.
//!
//! In the low gear what the sleeping disks hold is read from copies on the others: in a reserve far
//! from the data (PARAID), or in buckets beside them (e-PARAID). A shift copies what was written to
//! the sleeping disks since the one before, taken as their part of all that was written.
//!
//! The text says in one place that a *high* utilisation shifts down, in two that a low one does;
//! the latter is meant. It gives neither thresholds nor the length of the moving average.

use crate::fingerprint::{Fingerprint, Totals, Window};
use crate::windowed::{Disk, Powers, Predicted, Sum, Work, elapsed_in_all_s};
use std::collections::VecDeque;
use thiserror::Error;

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

/// Utilisations by which gears cannot be shifted.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ThresholdError {
    /// A number is no share of the time.
    #[error("found {found}; expected a utilisation, a share of the time from 0 to 1")]
    NoShare {
        /// The number.
        found: f64,
    },
    /// Fewer disks that do the same work would be shifted up at once.
    #[error(
        "found a shift down below {down} and up above {up}: {active} of {disks} disks are at {after:.3} then, and \
         gears would be shifted to and fro; expected to shift down below {down_max:.3} at most"
    )]
    ToAndFro {
        /// The utilisation below which gears are shifted down.
        down: f64,
        /// The utilisation above which gears are shifted up.
        up: f64,
        /// Disks that work in the low gear.
        active: u32,
        /// All disks.
        disks: u32,
        /// The utilisation of the working disks behind a shift down.
        after: f64,
        /// The largest utilisation at which a shift down lasts.
        down_max: f64,
    },
}

impl Gears {
    /// Whether it can be shifted by these utilisations: shares of the time, `down` below `up` also when fewer
    /// disks do the same work.
    ///
    /// # Errors
    /// What was found and what is expected.
    pub fn thresholds(&self) -> Result<(), ThresholdError> {
        let Gears {
            disks,
            sleeping,
            down,
            up,
            ..
        } = *self;
        for share in [down, up] {
            if !(0.0..=1.0).contains(&share) {
                return Err(ThresholdError::NoShare { found: share });
            }
        }
        let active = disks.saturating_sub(sleeping).max(1);
        let after = down * f64::from(disks.max(active)) / f64::from(active);
        // A share that comes to `up` but for rounding is no less.
        if after < up * (1.0 - 1e-9) {
            return Ok(());
        }
        Err(ThresholdError::ToAndFro {
            down,
            up,
            active,
            disks,
            after,
            down_max: up * f64::from(active) / f64::from(disks.max(active)),
        })
    }
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shifted {
    /// Latency, utilisation, bandwidth, energy.
    pub predicted: Predicted,
    /// When the gear was shifted, in seconds since the trace began.
    pub shifts_s: Vec<f64>,
    /// Share of the windows in the low gear.
    pub low_share: f64,
}

/// `array` under the trace of a fingerprint, in the high gear first. `None` for gears that cannot
/// be: as many disks asleep as there are, no stripe unit, nothing to average over, thresholds that
/// [`Gears::thresholds`] refuses. `seeks` are those of
/// all its disks.
pub fn geared(
    fingerprint: &Fingerprint,
    seeks: &[f64],
    array: &Gears,
    disk: &Disk,
    powers: Option<&Powers>,
) -> Option<Shifted> {
    let usable = array.sleeping < array.disks && array.unit > 0 && array.averaged > 0;
    (usable && array.thresholds().is_ok()).then(|| {
        let mut run = Run::new(fingerprint, array, disk, powers);
        for ((window, totals), &seek) in fingerprint.busy.iter().zip(&fingerprint.totals).zip(seeks)
        {
            run.idle(totals.index - run.next);
            run.window(Some((window, totals, seek)));
        }
        run.shifted()
    })
}

/// A run through the windows. Nothing is done for windows between those in which something arrives or that
/// change the mean: a busy one is looked at when it comes, and when it is no longer among those averaged.
struct Run<'a> {
    fingerprint: &'a Fingerprint,
    array: &'a Gears,
    disk: &'a Disk,
    powers: Option<&'a Powers>,
    /// A seek to the reserve.
    far_s: f64,
    low: bool,
    /// Of the windows that are averaged, those that worked: number and utilisation; and their sum.
    recent: VecDeque<(u64, f64)>,
    recent_sum: f64,
    /// What was written to the sleeping disks since the last shift, in sectors.
    written: f64,
    /// The gear is shifted in the next window.
    marked: bool,
    sum: Sum,
    shifts_s: Vec<f64>,
    /// The number of the window that comes.
    next: u64,
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
            far_s: disk.seek_s(0.5, 1.0),
            low: false,
            recent: VecDeque::with_capacity(array.averaged as usize),
            recent_sum: 0.0,
            written: 0.0,
            marked: false,
            sum: Sum::of(fingerprint),
            shifts_s: Vec::new(),
            next: 0,
            low_windows: 0,
        }
    }

    fn active(&self) -> f64 {
        f64::from(self.array.disks - if self.low { self.array.sleeping } else { 0 })
    }

    /// So many windows in which nothing arrives.
    fn idle(&mut self, windows: u64) {
        let end = self.next + windows;
        while self.next < end {
            match self.until_mean_changes() {
                0 => self.window(None),
                alike => self.still(alike.min(end - self.next)),
            }
        }
    }

    /// How many windows from the next on find what the last one found, if nothing arrives.
    fn until_mean_changes(&self) -> u64 {
        let averaged = u64::from(self.array.averaged);
        if self.marked {
            return 0;
        }
        // There is no mean before so many windows.
        if self.next + 1 < averaged {
            return averaged - 1 - self.next;
        }
        if self.next + 1 == averaged {
            return 0;
        }
        self.recent.front().map_or(u64::MAX, |(first, _)| {
            (first + averaged).saturating_sub(self.next)
        })
    }

    /// So many windows without work or shift.
    fn still(&mut self, windows: u64) {
        self.next += windows;
        let time = windows as f64 * self.fingerprint.window_s;
        let asleep = f64::from(self.array.disks) - self.active();
        let watts = |powers: &Powers| self.active() * powers.rotating + asleep * powers.standby;
        self.sum.energy_j += self.powers.map_or(0.0, |powers| time * watts(powers));
        self.low_windows += if self.low { windows } else { 0 };
    }

    /// One window, with the shift that it may begin with.
    fn window(&mut self, window: Option<(&Window, &Totals, f64)>) {
        let updates = if std::mem::take(&mut self.marked) {
            self.shift()
        } else {
            0.0
        };
        let (elapsed, seeking) = match window {
            Some((window, totals, near)) => self.work(window, totals, near, updates),
            None if updates > 0.0 => {
                self.work(&Window::default(), &Totals::default(), 0.0, updates)
            }
            None => (0.0, 0.0),
        };
        let (window_s, active) = (self.fingerprint.window_s, self.active());
        if let Some((_, totals, _)) = window {
            self.sum.add(
                totals,
                Work {
                    elapsed,
                    seeking,
                    active,
                },
                window_s,
                self.powers,
            );
            let part = f64::from(self.array.sleeping) / f64::from(self.array.disks);
            self.written += totals.written * part;
        } else {
            let each =
                |powers| active * crate::windowed::energy_j(window_s, elapsed, seeking, powers);
            self.sum.energy_j += self.powers.map_or(0.0, each);
        }
        let asleep = f64::from(self.array.disks) - active;
        self.sum.energy_j += self
            .powers
            .map_or(0.0, |powers| window_s * asleep * powers.standby);
        self.low_windows += u64::from(self.low);
        self.mark(elapsed / window_s);
        self.next += 1;
    }

    /// Changes the gear; the sectors to copy.
    fn shift(&mut self) -> f64 {
        self.low = !self.low;
        self.shifts_s
            .push(self.next as f64 * self.fingerprint.window_s);
        std::mem::take(&mut self.written)
    }

    /// Equation 8, or 10 where the reserve is beside the data: how long a window's runs and its copying
    /// take, and how much of that are seeks.
    fn work(&self, window: &Window, totals: &Totals, near: f64, updates: f64) -> (f64, f64) {
        let array = self.array;
        // In stripe units: as many as the low gear has disks.
        let stripe = u64::from(array.disks - array.sleeping) * array.unit;
        let cut = self.low && totals.longest_run.max(totals.longest) > stripe;
        if updates == 0.0 && !cut {
            let elapsed = elapsed_in_all_s(
                totals.runs,
                totals.run_sectors,
                self.active(),
                near,
                self.disk,
            );
            return (elapsed, totals.runs * near);
        }
        let copies = (updates / stripe as f64).ceil();
        let seek = match array.reserve {
            Reserve::Beside => near,
            Reserve::Far => {
                let far = self.far_share(window, totals, copies, stripe);
                far * self.far_s + (1.0 - far) * near
            }
        };
        let runs = match cut {
            true => window
                .runs
                .iter()
                .map(|&(length, count)| (length.div_ceil(stripe) * count) as f64)
                .sum(),
            false => totals.runs,
        };
        let (count, sectors) = (runs + copies, totals.run_sectors + updates);
        (
            elapsed_in_all_s(count, sectors, self.active(), seek, self.disk),
            count * seek,
        )
    }

    /// The share of requests that go to the reserve: those longer than a stripe of the active disks
    /// in the low gear, and the copies of a shift; no more than all.
    fn far_share(&self, window: &Window, totals: &Totals, copies: f64, stripe: u64) -> f64 {
        let may_be = (self.low || copies > 0.0) && totals.longest > stripe;
        let remapped = if may_be { window.longer(stripe) } else { 0.0 };
        let foreground = totals.requests;
        let copied = match copies > 0.0 {
            true if foreground > 0.0 => copies / foreground,
            true => 1.0,
            false => 0.0,
        };
        (remapped + copied).min(1.0)
    }

    /// The last window's utilisation joins the mean, which may mark the next one for a shift.
    fn mark(&mut self, utilisation: f64) {
        let averaged = u64::from(self.array.averaged);
        while self
            .recent
            .front()
            .is_some_and(|(first, _)| first + averaged <= self.next)
        {
            self.recent_sum -= self.recent.pop_front().map_or(0.0, |(_, left)| left);
        }
        if utilisation > 0.0 {
            self.recent.push_back((self.next, utilisation));
            self.recent_sum += utilisation;
        }
        if self.next + 1 >= averaged {
            let mean = self.recent_sum / averaged as f64;
            self.marked = if self.low {
                mean > self.array.up
            } else {
                mean < self.array.down
            };
        }
    }

    /// With equation 9's joules for the starts: one in two shifts is up.
    fn shifted(mut self) -> Shifted {
        let starts = self.shifts_s.len() as f64 / 2.0 * f64::from(self.array.sleeping);
        self.sum.energy_j += self.powers.map_or(0.0, |powers| starts * powers.spin_up_j);
        let windows = self.fingerprint.windows.max(1) as f64;
        Shifted {
            predicted: self
                .sum
                .predicted(self.fingerprint, f64::INFINITY, self.powers.is_some()),
            shifts_s: self.shifts_s,
            low_share: self.low_windows as f64 / windows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windowed::seek_delays;
    use crate::windowed::tests::{DISK, POWERS, alone, fingerprint};

    const ARRAY: Gears = Gears {
        disks: 8,
        sleeping: 2,
        unit: 128,
        reserve: Reserve::Far,
        averaged: 3,
        down: 0.2,
        up: 0.6,
    };

    fn of_gears(trace: &Fingerprint, array: &Gears, powers: Option<&Powers>) -> Option<Shifted> {
        geared(
            trace,
            &seek_delays(trace, array.disks, &DISK),
            array,
            &DISK,
            powers,
        )
    }

    /// One request in each of so many windows, of so many sectors.
    fn steady(windows: u64, sectors: u64, write: bool) -> Fingerprint {
        let request = |index: u64| {
            (
                0.1 * index as f64 + 0.05,
                index * 7_919_000 % 700_000_000,
                sectors,
                write,
            )
        };
        fingerprint(&(0..windows).map(request).collect::<Vec<_>>())
    }

    fn never_down(reserve: Reserve) -> Gears {
        Gears {
            reserve,
            down: 0.0,
            ..ARRAY
        }
    }

    #[test]
    fn p_53_in_the_high_gear_without_a_shift_equation_eight_is_equation_five() {
        let trace = steady(50, 4000, true);
        let expected = alone(&trace, 8, Some(&POWERS), f64::INFINITY);
        for reserve in [Reserve::Far, Reserve::Beside] {
            let found = of_gears(&trace, &never_down(reserve), Some(&POWERS)).unwrap();
            assert_eq!((&found.shifts_s[..], found.low_share), (&[][..], 0.0));
            assert!((found.predicted.latency_s - expected.latency_s).abs() < 1e-12);
            assert!((found.predicted.energy_j.unwrap() - expected.energy_j.unwrap()).abs() < 1e-9);
        }
    }

    #[test]
    fn p_53_with_nothing_in_the_reserve_equation_ten_is_equation_eight() {
        // Requests shorter than a stripe, none of which writes: Δ is 0 in every window, in both gears.
        let short = steady(50, 64, false);
        let [far, beside] = [Reserve::Far, Reserve::Beside]
            .map(|reserve| of_gears(&short, &Gears { reserve, ..ARRAY }, Some(&POWERS)).unwrap());
        assert!(far.low_share > 0.5 && far.low_share < 1.0);
        assert_eq!(far, beside);
        // Else the way to a reserve that lies far away is longer.
        let long = steady(50, 1000, false);
        let [far, beside] = [Reserve::Far, Reserve::Beside].map(|reserve| {
            of_gears(&long, &Gears { reserve, ..ARRAY }, None)
                .unwrap()
                .predicted
        });
        assert!(
            far.window_latencies_s
                .iter()
                .zip(&beside.window_latencies_s)
                .all(|(far, beside)| far >= beside)
        );
        assert_ne!(far, beside);
    }

    #[test]
    fn where_nothing_goes_to_the_reserve_both_are_alike_and_else_far_takes_longer() {
        let latency = |trace: &Fingerprint, reserve| {
            let found = of_gears(trace, &Gears { reserve, ..ARRAY }, None).unwrap();
            assert_eq!(found.shifts_s.len(), 1);
            found.predicted.latency_s
        };
        // Requests shorter than a stripe, none of which writes: Δ is 0, and (10) is (8).
        let short = steady(50, 64, false);
        assert_eq!(
            latency(&short, Reserve::Far),
            latency(&short, Reserve::Beside)
        );
        let long = steady(50, 1000, false);
        assert!(latency(&long, Reserve::Far) > latency(&long, Reserve::Beside));
    }

    #[test]
    fn thresholds_that_are_no_shares_or_shift_to_and_fro_are_refused() {
        let trace = steady(5, 64, false);
        for (down, up) in [
            (0.6, 0.3),
            (0.3, 0.3),
            (0.5, 0.6),
            (f64::NAN, 0.5),
            (0.1, f64::NAN),
            (-0.1, 0.5),
            (0.1, 1.5),
        ] {
            let gears = Gears { down, up, ..ARRAY };
            assert!(
                gears
                    .thresholds()
                    .unwrap_err()
                    .to_string()
                    .starts_with("found "),
                "{down} {up}"
            );
            assert!(of_gears(&trace, &gears, None).is_none());
        }
        // Six of eight are a third busier.
        assert!(
            Gears {
                down: 0.44,
                up: 0.6,
                ..ARRAY
            }
            .thresholds()
            .is_ok()
        );
    }

    #[test]
    fn low_gear_cuts_runs_at_a_stripe_of_the_active_disks() {
        let gears = Gears {
            averaged: 1,
            down: 0.6,
            up: 1.0,
            reserve: Reserve::Beside,
            ..ARRAY
        };
        // 1600 sectors are two stripes of 6 x 128 and a rest, 768 are one; a shift comes before the second window.
        for (sectors, pieces) in [(1600, 3.0), (768, 1.0), (769, 2.0)] {
            let trace = fingerprint(&[(0.0, 0, 8, false), (0.15, 1 << 20, sectors, false)]);
            let found = of_gears(&trace, &gears, None)
                .unwrap()
                .predicted
                .window_latencies_s[1];
            let seek = seek_delays(&trace, 8, &DISK)[1];
            let expected =
                sectors as f64 / 6.0 / DISK.sequential + pieces * (seek + DISK.rotation_s);
            assert!(
                (found - expected).abs() < 1e-12,
                "{sectors}: {found} {expected}"
            );
        }
    }

    #[test]
    fn a_quiet_hour_sleeps_and_costs_what_equation_nine_says() {
        let trace = fingerprint(&[(0.0, 0, 8, false), (3600.0 - 0.05, 0, 8, false)]);
        let found = of_gears(&trace, &ARRAY, Some(&POWERS)).unwrap();
        // Three windows are averaged, and the next shifts.
        let high = 3.0;
        let low = 36_000.0 - high;
        assert!((found.shifts_s[0] - 0.3).abs() < 1e-12 && found.shifts_s.len() == 1);
        assert_eq!(found.low_share, low / 36_000.0);
        let idle = 0.1 * (high * 8.0 * 5.0 + low * (6.0 * 5.0 + 2.0 * 1.0));
        let start = 0.5 * 2.0 * 100.0;
        let first = 8.0 * (8.0 / 8.0 / 200_000.0 + 0.003) * 3.0;
        // The last one is back where the first ended: 8 sectors, which settles.
        let last = 6.0 * ((8.0 / 6.0 / 200_000.0 + 0.004) * 3.0 + 0.001 * 3.0);
        let energy = found.predicted.energy_j.unwrap();
        assert!(
            (energy - (idle + start + first + last)).abs() < 1e-6,
            "{energy}"
        );
    }

    #[test]
    fn a_shift_copies_what_was_written_to_the_disks_that_go_to_sleep() {
        let of = |write| {
            of_gears(&steady(50, 2000, write), &ARRAY, None)
                .unwrap()
                .predicted
        };
        let (read, written) = (of(false), of(true));
        // Three windows wrote 2000 sectors each, a quarter of them to two disks of eight.
        assert!(written.latency_s > read.latency_s);
        let more = (written.utilisation - read.utilisation) * 5.0;
        assert!(more > 1500.0 / 6.0 / DISK.sequential, "{more}");
    }

    #[test]
    fn load_that_rises_shifts_up_again() {
        let mut requests: Vec<_> = (0..50u64).map(|at| (at as f64, 0, 8, false)).collect();
        let burst = (0..2000u64).map(|at| {
            (
                50.0 + 0.004 * at as f64,
                at * 7_919_000 % 700_000_000,
                8,
                false,
            )
        });
        requests.extend(burst);
        let found = of_gears(&fingerprint(&requests), &ARRAY, None).unwrap();
        assert!(
            found.shifts_s.len() == 2 && (50.0..51.0).contains(&found.shifts_s[1]),
            "{:?}",
            found.shifts_s
        );
        assert!((0.8..0.9).contains(&found.low_share), "{}", found.low_share);
    }

    #[test]
    fn gears_that_cannot_be_are_refused() {
        let trace = steady(1, 8, false);
        for gears in [
            Gears {
                sleeping: 8,
                ..ARRAY
            },
            Gears { unit: 0, ..ARRAY },
            Gears {
                averaged: 0,
                ..ARRAY
            },
        ] {
            assert_eq!(of_gears(&trace, &gears, None), None);
        }
    }
}
