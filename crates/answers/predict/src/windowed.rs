//! Response times, bandwidth and energy of disks and striped arrays from a fingerprint: equations 1
//! to 7 of the thesis's chapter 7.3. They are used as printed, except where the text cannot be
//! meant.
//!
//! Two simplifications are deliberate. No backlog is carried from one window to the next. An array
//! is one server, so small requests on different disks do not overlap. Under load, the latencies
//! are therefore above those of a simulation. The purpose of the equations is a quick ranking of
//! layouts.

use crate::fingerprint::{Fingerprint, Totals, TraceWindow};
use fullstroke_drive::DriveModel;

/// Distance in cylinders below which a seek is only settling (section 7.3.2).
const SETTLES_WITHIN: f64 = 10.0;

/// Distance in cylinders from which the seek time grows linearly; below, it grows with the square
/// root. The text gives only "500-1200 cylinders".
const GROWS_FROM: f64 = 1200.0;

/// Parameters of a disk in the equations. Lengths are in sectors, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskParameters {
    /// Sequential bandwidth in sectors per second.
    pub sequential: f64,
    /// Mean rotational latency.
    pub rotation_s: f64,
    /// Settle time at the end of every seek.
    pub settle_s: f64,
    /// Time of the longest seek.
    pub full_stroke_s: f64,
    /// Number of cylinders.
    pub cylinders: f64,
    /// Number of sectors.
    pub sectors: f64,
}

/// Power of a disk in each mode of equation 4, in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Powers {
    /// Rotating without work.
    pub rotating: f64,
    /// Serving a request.
    pub operating: f64,
    /// Seeking.
    pub seeking: f64,
    /// Standby.
    pub standby: f64,
    /// Energy of a spin-up in joules.
    pub spin_up_j: f64,
}

/// Prediction for a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predicted {
    /// Mean latency of requests in seconds, including waiting.
    pub latency_s: f64,
    /// Mean latency of each busy window, in order.
    pub window_latencies_s: Vec<f64>,
    /// Busy share of the array's time; above 1 if the load exceeds the capacity.
    pub utilisation: f64,
    /// Sectors per second while the array works.
    pub bandwidth: f64,
    /// Energy of all disks in joules, if their power is known.
    pub energy_j: Option<f64>,
}

impl DiskParameters {
    /// Makes the parameters of a drive: the mean rate of a read of the whole drive, the shortest
    /// and the longest seek.
    pub fn of(model: &DriveModel) -> DiskParameters {
        let (mechanics, rpm) = (model.mechanics(), model.config().rpm);
        let geometry = mechanics.geometry();
        let sectors = geometry.capacity().0 as f64;
        let revolutions: f64 = geometry
            .zones()
            .map(|zone| zone.sectors.0 as f64 / zone.sectors_per_revolution)
            .sum();
        let cylinders = geometry.cylinders();
        let seek = |distance| mechanics.seek_table().time(distance).as_secs_f64();
        DiskParameters {
            sequential: sectors / (revolutions * 60.0 / rpm),
            rotation_s: 30.0 / rpm,
            settle_s: seek(1.min(cylinders - 1)),
            full_stroke_s: seek(cylinders - 1),
            cylinders: f64::from(cylinders),
            sectors,
        }
    }

    /// Returns the time of a seek over `distance` of the `span` sectors side by side on the
    /// members. Uses the three branches of Ruemmler and Wilkes, continuous at the last.
    pub fn seek_s(&self, distance: f64, span: f64) -> f64 {
        let cylinders = (distance / span.max(1.0)).min(1.0) * self.cylinders;
        let slope = (self.full_stroke_s - self.settle_s).max(0.0) / self.cylinders.max(1.0);
        let moving = match cylinders {
            near if near < SETTLES_WITHIN => 0.0,
            short if short < GROWS_FROM => slope * (GROWS_FROM * short).sqrt(),
            long => slope * long,
        };
        // The equation's curve is not the drive's own. Without the bound a long seek of a steep
        // curve would exceed the drive's longest one.
        self.settle_s + moving.min((self.full_stroke_s - self.settle_s).max(0.0))
    }
}

impl Powers {
    /// Returns the power of a drive, if its file has power figures. Operating is the power of a
    /// read.
    pub fn of(model: &DriveModel) -> Option<Powers> {
        let power = model.config().power?;
        Some(Powers {
            rotating: power.idle_a_w?,
            operating: power.read_w?,
            seeking: power.seek_w?,
            standby: power.standby_w?,
            spin_up_j: power.spin_up_j?,
        })
    }
}

/// Returns the mean seek time of the runs of each busy window, on an array of `disks` disks. This
/// is the fingerprint's `sd`, which depends only on the disk and serves all layouts. The value is 0
/// if a window has no distance.
pub fn seek_delays(fingerprint: &Fingerprint, disks: u32, disk: &DiskParameters) -> Vec<f64> {
    let span = f64::from(disks) * disk.sectors;
    let of = |window: &TraceWindow| {
        let sum: f64 = window
            .distances
            .iter()
            .map(|&distance| disk.seek_s(distance as f64, span))
            .sum();
        sum / window.distances.len().max(1) as f64
    };
    fingerprint.busy.iter().map(of).collect()
}

/// Equations 1, 5, 8 and 10: returns the time of `runs` (length and number) on `active` disks.
pub fn elapsed_s(
    runs: impl Iterator<Item = (f64, f64)>,
    active: f64,
    seek_s: f64,
    disk: &DiskParameters,
) -> f64 {
    let each = |length: f64| length / active / disk.sequential + seek_s + disk.rotation_s;
    runs.map(|(length, count)| count * each(length)).sum()
}

/// As [`elapsed_s`], from the number of runs and their total of sectors.
pub(crate) fn elapsed_in_all_s(
    runs: f64,
    sectors: f64,
    active: f64,
    seek_s: f64,
    disk: &DiskParameters,
) -> f64 {
    sectors / (active * disk.sequential) + runs * (seek_s + disk.rotation_s)
}

/// Equation 2 in closed form: returns the mean latency of `requests` that arrive evenly in a
/// window, `gap_s` apart, if each takes `service_s`.
pub fn latency_s(requests: f64, service_s: f64, gap_s: f64) -> f64 {
    service_s + (requests - 1.0).max(0.0) / 2.0 * (service_s - gap_s).max(0.0)
}

/// A window's term of equation 4: returns the energy in joules of one disk that rotates throughout,
/// works for `elapsed_s`, and seeks for `seek_s` of that time.
pub fn energy_j(window_s: f64, elapsed_s: f64, seek_s: f64, powers: &Powers) -> f64 {
    window_s * powers.rotating
        + seek_s * (powers.seeking - powers.operating)
        + elapsed_s * (powers.operating - powers.rotating)
}

/// Predicts a striped array of `disks` disks (1 is a single disk). The controller moves at most
/// `most` sectors per second. Equation 6 multiplies by the number of disks what equation 5 has
/// divided by this number. So the data in equation 6 are taken as the data of one disk. `seeks` are
/// the mean seek times for this number of disks.
pub fn striped(
    fingerprint: &Fingerprint,
    seeks: &[f64],
    disks: u32,
    disk: &DiskParameters,
    powers: Option<&Powers>,
    most: f64,
) -> Predicted {
    let active = f64::from(disks);
    let mut sum = Sum::of(fingerprint);
    for (window, &seek) in fingerprint.totals.iter().zip(seeks) {
        let elapsed = elapsed_in_all_s(window.runs, window.run_sectors, active, seek, disk);
        let work = ArrayWork {
            elapsed,
            seeking: seek * window.runs,
            active,
        };
        sum.add(window, work, fingerprint.window_s, powers);
    }
    let idle = (fingerprint.windows - fingerprint.totals.len() as u64) as f64;
    sum.energy_j += powers.map_or(0.0, |powers| {
        active * idle * fingerprint.window_s * powers.rotating
    });
    sum.predicted(fingerprint, most, powers.is_some())
}

/// Work of an array in a window.
pub(crate) struct ArrayWork {
    pub(crate) elapsed: f64,
    pub(crate) seeking: f64,
    pub(crate) active: f64,
}

/// Sums over the windows so far.
pub(crate) struct Sum {
    requests: f64,
    latency: f64,
    latencies: Vec<f64>,
    elapsed: f64,
    sectors: f64,
    pub(crate) energy_j: f64,
}

impl Sum {
    pub(crate) fn of(fingerprint: &Fingerprint) -> Sum {
        let latencies = Vec::with_capacity(fingerprint.busy.len());
        Sum {
            requests: 0.0,
            latency: 0.0,
            latencies,
            elapsed: 0.0,
            sectors: 0.0,
            energy_j: 0.0,
        }
    }

    pub(crate) fn add(
        &mut self,
        window: &Totals,
        work: ArrayWork,
        window_s: f64,
        powers: Option<&Powers>,
    ) {
        let count = window.requests;
        self.requests += count;
        let latency = latency_s(count, work.elapsed / count, window_s / count);
        self.latency += count * latency;
        self.latencies.push(latency);
        self.elapsed += work.elapsed;
        self.sectors += window.sectors;
        let each = powers.map_or(0.0, |powers| {
            energy_j(window_s, work.elapsed, work.seeking, powers)
        });
        self.energy_j += work.active * each;
    }

    pub(crate) fn predicted(
        self,
        fingerprint: &Fingerprint,
        most: f64,
        powered: bool,
    ) -> Predicted {
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Predicted {
            latency_s: ratio(self.latency, self.requests),
            window_latencies_s: self.latencies,
            utilisation: ratio(
                self.elapsed,
                fingerprint.windows as f64 * fingerprint.window_s,
            ),
            bandwidth: ratio(self.sectors, self.elapsed).min(most),
            energy_j: powered.then_some(self.energy_j),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fingerprint::{FingerprintBuilder, PredictArrival, WINDOW_S};
    use proptest::prelude::*;

    pub(crate) const DISK: DiskParameters = DiskParameters {
        sequential: 200_000.0,
        rotation_s: 0.003,
        settle_s: 0.001,
        full_stroke_s: 0.011,
        cylinders: 10_000.0,
        sectors: 1e8,
    };
    pub(crate) const POWERS: Powers = Powers {
        rotating: 5.0,
        operating: 8.0,
        seeking: 11.0,
        standby: 1.0,
        spin_up_j: 100.0,
    };

    /// Calls [`striped`] with the trace's own seeks.
    pub(crate) fn alone(
        trace: &Fingerprint,
        disks: u32,
        powers: Option<&Powers>,
        most: f64,
    ) -> Predicted {
        striped(
            trace,
            &seek_delays(trace, disks, &DISK),
            disks,
            &DISK,
            powers,
            most,
        )
    }

    pub(crate) fn fingerprint(requests: &[(f64, u64, u64, bool)]) -> Fingerprint {
        let mut gatherer = FingerprintBuilder::new(WINDOW_S).unwrap();
        for &(at_s, start, sectors, write) in requests {
            gatherer.add(PredictArrival {
                at_s,
                start,
                sectors,
                write,
            });
        }
        gatherer.finish()
    }

    #[test]
    fn a_seek_settles_then_grows_with_the_root_then_with_the_distance() {
        let at = |cylinders: f64| DISK.seek_s(cylinders, DISK.cylinders);
        assert_eq!((at(0.0), at(9.0)), (0.001, 0.001));
        assert!(
            (at(1199.999) - at(1200.0)).abs() < 1e-8,
            "both branches meet"
        );
        assert!(
            (at(300.0) - 0.001 - (at(1200.0 - 1e-9) - 0.001) / 2.0).abs() < 1e-9,
            "a quarter of the way"
        );
        assert!((at(5000.0) - 0.006).abs() < 1e-12 && (at(10_000.0) - 0.011).abs() < 1e-12);
        assert_eq!(at(1e9), at(10_000.0));
    }

    #[test]
    fn p_53_a_window_takes_what_equation_one_says_and_equation_five_with_one_disk_is_that() {
        let runs = [(8.0, 2.0), (12.0, 1.0), (32.0, 1.0)];
        let found = elapsed_s(runs.into_iter(), 1.0, 0.005, &DISK);
        assert!((found - (60.0 / 200_000.0 + 4.0 * 0.008)).abs() < 1e-15);
        // Equation 5: data striped over three disks move in a third of the time.
        let found = elapsed_s(runs.into_iter(), 3.0, 0.005, &DISK);
        assert!((found - (20.0 / 200_000.0 + 4.0 * 0.008)).abs() < 1e-15);
        // On a stripe of one disk, a whole trace takes the time of its windows by equation 1.
        let trace = fingerprint(&[
            (0.0, 0, 8, false),
            (0.01, 1000, 12, false),
            (0.02, 500, 8, true),
            (0.03, 3000, 32, false),
        ]);
        let seek = seek_delays(&trace, 1, &DISK)[0];
        let expected = elapsed_s(
            [(8.0, 2.0), (12.0, 1.0), (32.0, 1.0)].into_iter(),
            1.0,
            seek,
            &DISK,
        );
        let found = alone(&trace, 1, None, f64::INFINITY);
        assert!(
            (found.utilisation - expected / WINDOW_S).abs() < 1e-12,
            "{found:?} {expected}"
        );
    }

    #[test]
    fn p_53_a_window_costs_what_equation_four_says() {
        assert!((energy_j(0.1, 0.04, 0.02, &POWERS) - (0.5 + 0.06 + 0.12)).abs() < 1e-15);
        let trace = fingerprint(&[(0.0, 0, 8, false), (0.95, 1000, 8, false)]);
        let (idle, one) = (
            8.0 * 0.1 * 5.0,
            alone(&trace, 1, Some(&POWERS), f64::INFINITY),
        );
        let first = energy_j(0.1, 8.0 / 200_000.0 + 0.003, 0.0, &POWERS);
        let second = energy_j(0.1, 8.0 / 200_000.0 + 0.004, 0.001, &POWERS);
        assert!((one.energy_j.unwrap() - (idle + first + second)).abs() < 1e-12);
    }

    #[test]
    fn bandwidth_is_what_moved_while_it_moved_up_to_the_controllers() {
        let trace = fingerprint(&[(0.0, 0, 200_000, false)]);
        let of = |disks, most| alone(&trace, disks, None, most).bandwidth;
        assert!((of(1, f64::INFINITY) - 200_000.0 / 1.003).abs() < 1e-6);
        assert!((of(4, f64::INFINITY) - 200_000.0 / 0.253).abs() < 1e-6);
        assert_eq!(of(4, 500_000.0), 500_000.0);
        assert_eq!(alone(&fingerprint(&[]), 4, None, 1.0), Predicted::default());
    }

    proptest! {
        #[test]
        fn p_53_the_closed_form_of_equation_two_is_its_sum(
            requests in 1u32..300, service in 0.0f64..0.1, gap in 0.0f64..0.1,
        ) {
            let each = |i: f64| i * service - (i - 1.0) * service.min(gap);
            let sum: f64 = (1..=requests).map(|i| each(f64::from(i))).sum();
            let found = latency_s(f64::from(requests), service, gap);
            prop_assert!((found - sum / f64::from(requests)).abs() < 1e-9, "{} {}", found, sum);
        }
    }
}
