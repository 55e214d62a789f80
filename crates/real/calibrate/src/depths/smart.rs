//! A report of `smartctl` (`-a` or `-x`).

use super::DepthsError;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Figures of a report of `smartctl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SmartReport {
    /// File of the report.
    pub file: String,
    /// Model of the drive.
    pub model: Option<String>,
    /// Capacity in bytes.
    pub bytes: Option<u64>,
    /// Revolutions a minute.
    pub rpm: Option<f64>,
    /// Size of a logical sector in bytes.
    pub logical_sector: Option<u32>,
    /// Size of a physical sector in bytes.
    pub physical_sector: Option<u32>,
    /// Minutes that the maker gives for reading the whole surface: the recommended polling time of
    /// the extended self-test.
    pub surface_minutes: Option<f64>,
    /// Spin-up time in ms: raw value of attribute 3.
    pub spin_up_ms: Option<f64>,
}

/// Reads a report.
///
/// # Errors
/// Fails if the file cannot be read or has none of the figures.
pub fn read_smart(path: &Path) -> Result<SmartReport, DepthsError> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| DepthsError::Io {
        file: file.clone(),
        source,
    })?;
    let report = of(&file, &text);
    if report.bytes.is_none() && report.rpm.is_none() {
        return Err(DepthsError::row(
            &file,
            "the report",
            "neither `User Capacity` nor `Rotation Rate`",
            "the text of `smartctl -x DEVICE`",
        ));
    }
    Ok(report)
}

/// Returns the first whole number of a text, without thousands separators.
fn number(text: &str) -> Option<u64> {
    let digits: String = text
        .chars()
        .skip_while(|letter| !letter.is_ascii_digit())
        .take_while(|letter| letter.is_ascii_digit() || [',', '.', '\'', ' '].contains(letter))
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

fn of(file: &str, text: &str) -> SmartReport {
    let mut report = SmartReport {
        file: file.to_owned(),
        ..SmartReport::default()
    };
    let mut extended = false;
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        match key.trim() {
            "Device Model" | "Product" => report.model = Some(value.to_owned()),
            "User Capacity" => report.bytes = value.split("bytes").next().and_then(number),
            "Rotation Rate" => {
                report.rpm = value
                    .split("rpm")
                    .next()
                    .and_then(number)
                    .map(|rpm| rpm as f64)
            }
            "Sector Sizes" => {
                let (logical, physical) = value.split_once(',').unwrap_or((value, value));
                report.logical_sector = number(logical).map(|bytes| bytes as u32);
                report.physical_sector = number(physical).map(|bytes| bytes as u32);
            }
            "Sector Size" => {
                report.logical_sector = number(value).map(|bytes| bytes as u32);
                report.physical_sector = report.logical_sector;
            }
            "Extended self-test routine" => extended = true,
            "recommended polling time" if extended => {
                report.surface_minutes = number(value).map(|minutes| minutes as f64);
                extended = false;
            }
            _ => {}
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [id, "Spin_Up_Time", .., raw] = words.as_slice()
            && *id == "3"
        {
            report.spin_up_ms = raw
                .parse()
                .ok()
                .filter(|&ms: &f64| (100.0..120_000.0).contains(&ms));
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_report_are_found() {
        let text = "\
Device Model:     WDC WD40EFPX-68C6CN0
User Capacity:    4,000,787,030,016 bytes [4.00 TB]
Sector Sizes:     512 bytes logical, 4096 bytes physical
Rotation Rate:    5400 rpm
Short self-test routine
recommended polling time:        (   2) minutes.
Extended self-test routine
recommended polling time:        ( 443) minutes.
  3 Spin_Up_Time            0x0027   212   212   021    Pre-fail  Always       -       2708
";
        let report = of("r.txt", text);
        assert_eq!(report.bytes, Some(4_000_787_030_016));
        assert_eq!(report.rpm, Some(5400.0));
        assert_eq!(
            (report.logical_sector, report.physical_sector),
            (Some(512), Some(4096))
        );
        assert_eq!(report.surface_minutes, Some(443.0));
        assert_eq!(report.spin_up_ms, Some(2708.0));
    }
}
