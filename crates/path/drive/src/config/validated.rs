//! Requests for which a drive was held against measurements.

use fullstroke_contract::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share by which a mean may exceed a limit. Means of a run end in the middle of a request.
const SLACK: f64 = 0.02;

/// Requests for which the drive was held against measurements of the disk. `run` says if the
/// requests of a drive lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidatedConfig {
    /// Sizes of the smallest and the largest request, in sectors of 512 bytes.
    pub sectors: (u32, u32),
    /// Smallest and largest number of requests in the drive.
    pub depths: (u32, u32),
}

impl ValidatedConfig {
    /// Checks that both ranges are in order.
    ///
    /// # Errors
    /// Names the key.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (key, (least, most)) in [("sectors", self.sectors), ("depths", self.depths)] {
            if least == 0 || least > most {
                let message = format!(
                    "found [{least}, {most}]; expected two numbers from 1 on, the smaller first"
                );
                return Err(ConfigError::new(key, message));
            }
        }
        Ok(())
    }

    /// Returns a sentence if requests of `sectors` sectors in the mean, with `depth` of them in the
    /// drive in the mean, lie outside. A depth below the range is inside, because a drive that
    /// waits behaves as at depth 1.
    pub fn left_by(&self, sectors: f64, depth: f64) -> Option<String> {
        let [least, most] = [self.sectors.0, self.sectors.1].map(f64::from);
        // Means of a run are rounded, so a run at the border is inside.
        let size = sectors < least * (1.0 - SLACK) || sectors > most * (1.0 + SLACK);
        let deep = depth > f64::from(self.depths.1) * (1.0 + SLACK);
        (size || deep).then(|| {
            format!(
                "measured with requests of {} sectors at {}; in this run {sectors:.0} sectors and depth {depth:.1} in the mean. \
                 Figures outside the measured range are extrapolated",
                range(self.sectors),
                match self.depths {
                    (1, 1) => "depth 1".to_owned(),
                    depths => format!("depths {}", range(depths)),
                }
            )
        })
    }
}

fn range((least, most): (u32, u32)) -> String {
    if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: ValidatedConfig = ValidatedConfig {
        sectors: (4, 44),
        depths: (1, 1),
    };

    #[test]
    fn requests_outside_are_named_with_both_ranges() {
        assert_eq!(SMALL.left_by(8.0, 0.4), None);
        let large = SMALL.left_by(2048.0, 1.0).unwrap();
        assert!(
            large.contains("4 to 44 sectors at depth 1") && large.contains("2048 sectors"),
            "{large}"
        );
        assert!(SMALL.left_by(8.0, 4.0).unwrap().contains("depth 4.0"));
        let deep = ValidatedConfig {
            depths: (1, 32),
            ..SMALL
        };
        assert_eq!(deep.left_by(8.0, 31.9), None);
    }

    #[test]
    fn ranges_in_the_wrong_order_are_refused_by_name() {
        let wrong = ValidatedConfig {
            depths: (8, 1),
            ..SMALL
        };
        assert_eq!(wrong.check().unwrap_err().key, "depths");
        let none = ValidatedConfig {
            sectors: (0, 8),
            ..SMALL
        };
        assert_eq!(none.check().unwrap_err().key, "sectors");
        assert!(SMALL.check().is_ok());
    }
}
