//! Measures issuer, clock and device before a replay, as in section 6.5 of *Pro-active storage
//! systems*.

use crate::issued::Action;
use crate::issuer::Issuer;
use crate::piece_answer::PieceAnswer;
use crate::target::Target;
use fullstroke_units::Duration;
use std::io;
use std::time::Instant;

/// Number of reads to measure the gap between issues.
const READS: u32 = 64;
/// Number of sleeps to measure the delay of the kernel's wake-ups.
const SLEEPS: usize = 64;
const SLEEP: std::time::Duration = std::time::Duration::from_micros(200);
/// Least and longest time for which the replay spins before an instant. A real-time thread that
/// spins all the time is taken off its processor for 50 ms a second as soon as other threads starve
/// there. The kernel's fair server does this, and `sched_rt_runtime_us` did before.
const SPIN_MIN: std::time::Duration = std::time::Duration::from_micros(20);
const SPIN_MAX: std::time::Duration = std::time::Duration::from_micros(200);

/// Result of the calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// Mean gap between two reads issued one by one at full speed. With a ring or a pool the reads
    /// are asynchronous. With threads that wait, each read returns before the next.
    pub issue_gap: Duration,
    /// Time before an instant at which the replay stops sleeping and spins. In nine of ten cases
    /// the kernel woke no later.
    pub spin: Duration,
    /// Median time from handing a request to a thread until the thread issues the request; 0 with a
    /// ring, and for threads that take requests themselves.
    pub hand_over: Duration,
}

impl Calibration {
    /// Measures with some reads of the first block of the target.
    pub(crate) fn measure(issuer: &mut Issuer, target: &Target) -> io::Result<Calibration> {
        let issue_gap = issue_gap(issuer, target)?;
        let spin = spin(|span| issuer.wait(span))?;
        let hand_over = Duration::from_nanos(hand_over(issuer, target)?.as_nanos() as u64);
        Ok(Calibration {
            issue_gap,
            spin,
            hand_over,
        })
    }
}

/// Measures for threads that wait for their calls. `reads` reads the first block and returns the
/// result of the call.
pub(crate) fn of_calls(read: impl Fn() -> i32) -> io::Result<Calibration> {
    let began = Instant::now();
    for _ in 0..READS {
        let result = read();
        if result < 0 {
            return Err(io::Error::from_raw_os_error(-result));
        }
    }
    let issue_gap = Duration::from_nanos(began.elapsed().as_nanos() as u64 / u64::from(READS));
    let asleep = |span| {
        std::thread::sleep(span);
        Ok(())
    };
    Ok(Calibration {
        issue_gap,
        spin: spin(asleep)?,
        hand_over: Duration::ZERO,
    })
}

fn issue_gap(issuer: &mut Issuer, target: &Target) -> io::Result<Duration> {
    let began = Instant::now();
    for _ in 0..READS {
        // Nothing else is outstanding, so there is room for this entry.
        issuer.push(Action::Read, 0, target.alignment_bytes, 0);
        issuer.submit()?;
    }
    let took = began.elapsed();
    complete(issuer, READS, &mut Vec::new())?;
    Ok(Duration::from_nanos(
        took.as_nanos() as u64 / u64::from(READS),
    ))
}

/// Waits for `reads` reads. All answers are added to `answers`.
fn complete(issuer: &mut Issuer, reads: u32, answers: &mut Vec<PieceAnswer>) -> io::Result<()> {
    let (mut left, mut failed) = (reads, None);
    while left > 0 {
        issuer.submit()?;
        issuer.wait(std::time::Duration::from_secs(1))?;
        let seen = answers.len();
        issuer.reap(answers);
        for answer in &answers[seen..] {
            if let PieceAnswer::Done { result, .. } = *answer {
                left -= 1;
                failed = failed.or((result < 0).then_some(-result));
            }
        }
    }
    failed.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
}

/// Returns the median time until a thread begins; 0 with a ring, because a ring wakes no thread.
fn hand_over(issuer: &mut Issuer, target: &Target) -> io::Result<std::time::Duration> {
    if let Issuer::Ring(_) = issuer {
        return Ok(std::time::Duration::ZERO);
    }
    let mut spans = Vec::new();
    for _ in 0..READS {
        let mut answers = Vec::new();
        let given = Instant::now();
        issuer.push(Action::Read, 0, target.alignment_bytes, 0);
        complete(issuer, 1, &mut answers)?;
        // The first answer of a read tells when the kernel had it.
        spans.extend(answers.iter().filter_map(|answer| match answer {
            PieceAnswer::Begun { at, .. } => Some(at.saturating_duration_since(given)),
            PieceAnswer::Done { .. } => None,
        }));
    }
    // The median, because a few reads are interrupted by other work of the host.
    spans.sort_unstable();
    Ok(spans.get(spans.len() / 2).copied().unwrap_or_default())
}

/// Returns the delay of a wake-up that nine in ten do not exceed.
fn spin(mut sleep: impl FnMut(std::time::Duration) -> io::Result<()>) -> io::Result<Duration> {
    let mut late = [std::time::Duration::ZERO; SLEEPS];
    for late in &mut late {
        let began = Instant::now();
        sleep(SLEEP)?;
        *late = began.elapsed().saturating_sub(SLEEP);
    }
    late.sort_unstable();
    // The 90th percentile of 64 sleeps: longer spinning would cost processor time for one wake-up
    // in ten.
    let spin = late[SLEEPS * 9 / 10].clamp(SPIN_MIN, SPIN_MAX);
    Ok(Duration::from_nanos(spin.as_nanos() as u64))
}
