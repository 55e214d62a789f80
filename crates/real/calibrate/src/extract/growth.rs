//! Tracks by reads of growing size, as in a first attempt (Qian & Wang, section 4.1). The reads
//! begin at a known start and grow by one sector each time, until the bandwidth falls.
//!
//! A fall is not always the end of a track. A host that splits requests makes falls at certain
//! *sizes*, wherever the read begins. So does a command that comes too late for its own first
//! sector. A boundary is at a certain *address*. So the reads grow from several starts, and falls
//! that move with the start are refused.

use crate::extract::ExtractError;
use crate::extract::machine::ExtractionAlgorithm;
use serde::Serialize;

/// Starts of the growing reads: 0 and 256 as in the document, and two more.
const STARTS: [u64; 4] = [0, 256, 100, 401];

/// Fraction by which the bandwidth falls at a cliff.
const FALL: f64 = 0.1;

/// Number of cliffs kept for each start: the steepest.
const CLIFFS: usize = 4;

/// Results of the reads from one start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthResult {
    /// First address of the reads.
    pub start: u64,
    /// The last sizes before the bandwidth falls, the steepest first.
    pub cliffs: Vec<u64>,
}

/// Returns the end of the first track by reads that grow to `sectors_max`.
///
/// # Errors
/// With all observations, if no cliff is at one address for every start.
pub async fn growth(probe: ExtractionAlgorithm, sectors_max: u64) -> Result<u64, ExtractError> {
    let mut all = Vec::new();
    for (index, &start) in STARTS.iter().enumerate() {
        let mut rates = Vec::with_capacity(sectors_max as usize);
        for sectors in 1..=sectors_max.min(probe.capacity().0.saturating_sub(start)) {
            probe.progress(
                "growing reads",
                index as u64 * sectors_max + sectors,
                4 * sectors_max,
            );
            let took = probe.read(start, sectors).await?.response_ns();
            rates.push(sectors as f64 / took.max(1) as f64);
        }
        all.push(GrowthResult {
            start,
            cliffs: cliffs(&rates),
        });
    }
    let everywhere = |address: &u64| {
        all.iter().all(|grown| {
            grown
                .cliffs
                .iter()
                .any(|sectors| grown.start + sectors == *address)
        })
    };
    let mut addresses = all[0].cliffs.iter().map(|sectors| all[0].start + sectors);
    addresses.find(everywhere).ok_or_else(|| {
        let seen: Vec<String> =
            all.iter().map(|grown| format!("from {}: after {:?} sectors", grown.start, grown.cliffs)).collect();
        let saw = format!(
            "bandwidth falls {}; that goes with the size of a read and not with its address, and is made by the \
             host or by a command that comes too late for its own beginning",
            seen.join("; ")
        );
        ExtractError::cannot_tell("where the first track ends", saw)
    })
}

/// Returns the sizes after which the bandwidth falls, the steepest first.
fn cliffs(rates: &[f64]) -> Vec<u64> {
    let mut falls: Vec<(f64, u64)> = (1..rates.len())
        .map(|size| (1.0 - rates[size] / rates[size - 1], size as u64))
        .filter(|(fall, _)| *fall > FALL)
        .collect();
    falls.sort_by(|a, b| b.0.total_cmp(&a.0));
    falls.truncate(CLIFFS);
    falls.into_iter().map(|(_, size)| size).collect()
}
