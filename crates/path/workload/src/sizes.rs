//! Request sizes.

use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Random, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The size of requests: one, or several with weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a size such as \"4KiB\", or a list of { size = ..., weight = ... }"
)]
pub enum SizeConfig {
    /// One size.
    Fixed(Bytes),
    /// Several sizes, drawn by weight.
    Weighted(Vec<WeightedSize>),
}

/// One of several sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// A multiple of 512 bytes.
    pub size: Bytes,
    /// Share of the size, relative to the sum of all weights.
    pub weight: f64,
}

/// Draws sizes.
#[derive(Clone, Debug)]
pub(crate) struct SizeDraws {
    /// Cumulative share and size, ascending by share; the last share is 1.
    cumulative: Vec<(f64, Sectors)>,
}

impl SizeDraws {
    pub(crate) fn new(config: &SizeConfig) -> Result<SizeDraws, ConfigError> {
        let weighted = match config {
            SizeConfig::Fixed(size) => vec![WeightedSize {
                size: *size,
                weight: 1.0,
            }],
            SizeConfig::Weighted(list) => list.clone(),
        };
        let total: f64 = weighted.iter().map(|entry| entry.weight).sum();
        if weighted
            .iter()
            .any(|entry| !(entry.weight.is_finite() && entry.weight >= 0.0))
            || total <= 0.0
            || total.is_nan()
        {
            return Err(ConfigError::new(
                "size",
                "expected weights of 0 or more, not all 0",
            ));
        }
        let mut sum = 0.0;
        let cumulative = weighted.iter().map(|entry| {
            sum += entry.weight / total;
            match entry.size.sectors() {
                Some(sectors) if sectors > Sectors::ZERO => Ok((sum, sectors)),
                _ => Err(ConfigError::new(
                    "size",
                    format!(
                        "found {}; expected a positive multiple of the sector, 512B",
                        entry.size
                    ),
                )),
            }
        });
        Ok(SizeDraws {
            cumulative: cumulative.collect::<Result<_, _>>()?,
        })
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> Sectors {
        if let [(_, only)] = self.cumulative[..] {
            return only;
        }
        debug_assert!(
            self.cumulative.is_sorted_by(|one, other| one.0 <= other.0),
            "shares are cumulative: {:?}",
            self.cumulative
        );
        let share = random.unit();
        // Rounding may leave the last cumulative share below 1, and a draw above it.
        let index = self
            .cumulative
            .partition_point(|&(cumulative, _)| cumulative <= share);
        self.cumulative[index.min(self.cumulative.len() - 1)].1
    }

    pub(crate) fn largest(&self) -> Sectors {
        self.cumulative
            .iter()
            .map(|&(_, size)| size)
            .max()
            .unwrap_or_default()
    }

    pub(crate) fn smallest(&self) -> Sectors {
        self.cumulative
            .iter()
            .map(|&(_, size)| size)
            .min()
            .unwrap_or_default()
    }
}
