//! What ring, clock and device need: measured before a replay, as in section 6.5 of *Pro-active storage
//! systems*.

use crate::command::Action;
use crate::ring::Ring;
use crate::target::Target;
use fullstroke_units::Duration;
use std::io;
use std::time::Instant;

/// Reads by which the gap between issues is measured.
const READS: u32 = 64;
/// Sleeps by which it is measured how late the kernel wakes.
const SLEEPS: usize = 64;
const SLEEP: std::time::Duration = std::time::Duration::from_micros(200);
/// The replay spins at least so long before an instant, and no longer than the second: one that spins all
/// the time is taken off its processor for 50 ms a second, whatever its priority, as soon as others starve
/// there (the kernel's fair server, and `sched_rt_runtime_us` before it).
const SPIN_MIN: std::time::Duration = std::time::Duration::from_micros(20);
const SPIN_MAX: std::time::Duration = std::time::Duration::from_micros(200);

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The mean gap between two asynchronous reads that are issued one by one, as fast as can be.
    pub issue_gap: Duration,
    /// The replay sleeps until this before an instant, then spins: nine in ten times the kernel woke no
    /// later.
    pub spin: Duration,
}

impl Calibration {
    /// Measures; reads the first block of the target some times.
    pub(crate) fn measure(ring: &mut Ring, target: &Target) -> io::Result<Calibration> {
        let issue_gap = issue_gap(ring, target)?;
        let spin = oversleep(ring)?.clamp(SPIN_MIN, SPIN_MAX);
        Ok(Calibration { issue_gap, spin: Duration::from_nanos(spin.as_nanos() as u64) })
    }
}

fn issue_gap(ring: &mut Ring, target: &Target) -> io::Result<Duration> {
    let began = Instant::now();
    for _ in 0..READS {
        // The ring was just made, and has room for more.
        ring.push(Action::Read, 0, target.alignment_bytes, 0);
        ring.submit()?;
    }
    let took = began.elapsed();
    let mut completed = Vec::new();
    while completed.len() < READS as usize {
        ring.submit()?;
        ring.wait(std::time::Duration::from_secs(1))?;
        ring.reap(&mut completed);
    }
    if let Some(&(_, result)) = completed.iter().find(|(_, result)| *result < 0) {
        return Err(io::Error::from_raw_os_error(-result));
    }
    Ok(Duration::from_nanos(took.as_nanos() as u64 / u64::from(READS)))
}

/// Nine in ten wake-ups are no later.
fn oversleep(ring: &mut Ring) -> io::Result<std::time::Duration> {
    let mut late = [std::time::Duration::ZERO; SLEEPS];
    for late in &mut late {
        let began = Instant::now();
        ring.wait(SLEEP)?;
        *late = began.elapsed().saturating_sub(SLEEP);
    }
    late.sort_unstable();
    Ok(late[SLEEPS * 9 / 10])
}
