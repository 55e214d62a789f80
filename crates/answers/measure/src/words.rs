//! Sentences about breakdown and counts. Every sentence contains the numbers that prove it.

use crate::Report;
use fullstroke_counters::Counter;

/// Least share of the response time that deserves a sentence.
const WORTH_WORDS: f64 = 0.3;

/// Writes over just-read sectors wait for a further revolution if their rotational latency is at
/// least this multiple of that of other writes.
const COMES_ROUND: f64 = 1.2;

/// Returns a sentence about the largest part of the response time, if counts explain it.
pub fn parity_in_words(report: &Report) -> Option<String> {
    let share = report.times.time_ms.parity / report.times.response_ms.mean;
    let pre_reads = report
        .reading("volume_pre_reads_per_write")
        .filter(|reads| *reads > 0.0)?;
    (share >= WORTH_WORDS).then(|| {
            let mut words = format!(
                "parity: {:.0} % of the time passes before a request's last member I/O is issued: each write first \
                 reads {pre_reads:.1} blocks on average",
                100.0 * share
            );
            let row_wait = report.reading("volume_row_wait_ms_mean").unwrap_or(0.0);
            if row_wait >= WORTH_WORDS * report.times.time_ms.parity {
                words.push_str(&format!(", and waits {row_wait:.1} ms for other writes of its row"));
            }
            if let Some(comes_round) = comes_round(report) {
                words.push_str(&format!("; {comes_round}"));
            }
            words + "."
        })
}

/// Returns a sentence if writes wait until just-read sectors come round again.
pub fn comes_round(report: &Report) -> Option<String> {
    let share = report.reading("volume_rewrite_share")?;
    let rotation = report.reading("volume_rewrite_rotation_ms_mean")?;
    let elsewhere = report.reading("volume_other_write_rotation_ms_mean");
    // Without other writes, the comparison uses all I/O of the drives.
    let all = report
        .array
        .members
        .iter()
        .map(|member| member.value(Counter::ROTATION))
        .sum::<f64>()
        / report.array.members.len() as f64;
    let waits = share >= WORTH_WORDS && rotation > COMES_ROUND * elsewhere.unwrap_or(all);
    waits.then(|| {
            let others = elsewhere.map_or_else(String::new, |other| format!(" ({other:.1} ms elsewhere)"));
            format!(
                "{:.0} % of the writes that follow overwrite what the same head has just read, and wait {rotation:.1} ms \
                 on average until it comes round{others}",
                100.0 * share
            )
        })
}
