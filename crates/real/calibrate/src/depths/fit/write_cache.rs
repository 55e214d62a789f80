//! The write cache, fitted to random writes a second.

use super::Fit;
use crate::depths::DepthsError;
use fullstroke_drive::DriveConfig;

/// Numbers of segments with written data, before the search between two of them.
const WRITE_SEGMENTS: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Ratio of the random writes at the deepest to those at depth 1 from which the write cache is off.
const CACHED_RATIO_MAX: f64 = 1.3;

impl Fit {
    /// Fits the number of write segments to the random writes a second.
    pub(super) fn write_cache(&mut self) -> Result<(), DepthsError> {
        let (Some(first), Some(last)) = (
            self.writes.values().next().cloned(),
            self.writes.values().next_back().cloned(),
        ) else {
            let source = format!(
                "{} (no random writes were given)",
                self.config.sources["buffer"]
            );
            self.note("buffer", false, source);
            return Ok(());
        };
        if last.per_s > first.per_s * CACHED_RATIO_MAX {
            if let Some(buffer) = &mut self.config.buffer {
                buffer.write_back = false;
            }
            self.note(
                "buffer",
                true,
                format!(
                    "fitted: the write cache is off, because random writes grow from {:.0} to {:.0} a second with depth",
                    first.per_s, last.per_s
                ),
            );
            return Ok(());
        }
        let wanted =
            self.writes.values().map(|row| row.per_s).sum::<f64>() / self.writes.len() as f64;
        let mut best = (f64::INFINITY, self.config.clone(), 0.0);
        let mut tries = |segments| -> Result<f64, DepthsError> {
            let config = self.cached(segments);
            let found = self.times(&config, true, 1)?.per_s;
            let distance = (found / wanted).ln().abs();
            if distance < best.0 {
                best = (distance, config, found);
            }
            Ok(found)
        };
        // More cached writes leave the arm a better choice, so the rate rises with the segments.
        let (mut below, mut above) = (0, None);
        for segments in WRITE_SEGMENTS {
            if tries(segments)? >= wanted {
                above = Some(segments);
                break;
            }
            below = segments;
        }
        while let Some(upper) = above.filter(|&upper| below > 0 && upper > below * 17 / 16 + 1) {
            let middle = below.midpoint(upper);
            if tries(middle)? >= wanted {
                above = Some(middle);
            } else {
                below = middle;
            }
        }
        self.config = best.1;
        let mut source = format!(
            "fitted: write_segments and destage, to {wanted:.0} random writes a second at depths {} to {}. assumed: \
             size and all other rules, as drives of the class",
            first.depth, last.depth
        );
        if best.2 > wanted * 1.1 {
            // Each write costs more than the arm's way: the model has one key for such a time.
            self.config.write_settle_ms += 1000.0 / wanted - 1000.0 / best.2;
            source += "; the rest in write_settle_ms";
            let writes = format!("fitted: {wanted:.0} random writes a second");
            self.note("write_settle_ms", true, writes);
        }
        self.note("buffer", true, source);
        Ok(())
    }

    fn cached(&self, segments: u32) -> DriveConfig {
        let mut config = self.config.clone();
        let queue = &config.queue;
        let margins = ["margin_ms", "margin_far_ms"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), queue.keys.get(key)?.clone())))
            .collect::<Vec<_>>();
        if let Some(buffer) = &mut config.buffer {
            buffer.write_segments = segments.min(buffer.segments);
            buffer.write_back = true;
            if queue.discipline == "firmware" {
                buffer.destage_discipline = Some("firmware".into());
                buffer.destage = margins.into_iter().collect();
            }
        }
        config
    }
}
