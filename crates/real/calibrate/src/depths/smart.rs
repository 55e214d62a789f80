//! A report of `smartctl` (`-a` or `-x`), as text or as JSON (`-j`).

use super::DepthsError;
use fullstroke_stack::{SmartIdentity, smart_number as number};
use serde::Serialize;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Times to spin up in ms that a disk may have. Some makers put other units into attribute 3.
const SPIN_UP_MS: Range<f64> = 1000.0..120_000.0;
/// Polling time of a drive that gives none (ATA-8 ACS, SMART READ DATA, bytes 373 to 376).
const POLLING_UNKNOWN: u64 = 0xffff;

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
    /// the extended self-test, or the duration of the long self-test of a SAS drive.
    pub surface_minutes: Option<f64>,
    /// Spin-up time in ms: raw value of attribute 3.
    pub spin_up_ms: Option<f64>,
    /// True for a device of flash memory. A disk whose report names no speed is not one.
    pub solid: bool,
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
    let report = match text.trim_start().starts_with('{') {
        true => of_json(&file, &text)?,
        false => of(&file, &text),
    };
    if report.rpm.is_none() && report.solid {
        return Err(DepthsError::row(
            &file,
            "Rotation Rate",
            "a solid state device",
            "a disk that rotates; a stack takes a flash device of the library (`fullstroke drive list`)",
        ));
    }
    if report.bytes.is_none() && report.rpm.is_none() {
        return Err(DepthsError::row(
            &file,
            "the report",
            "neither `User Capacity` nor `Rotation Rate`",
            "the text of `smartctl -x DEVICE`, or its JSON (-j)",
        ));
    }
    Ok(report)
}

/// Reads a report in JSON (smartmontools 7, `--json`).
fn of_json(file: &str, text: &str) -> Result<SmartReport, DepthsError> {
    let json: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        DepthsError::row(
            file,
            "the report",
            error.to_string(),
            "the JSON of `smartctl -x -j DEVICE`",
        )
    })?;
    let at = |pointer: &str| json.pointer(pointer);
    let whole = |pointer: &str| at(pointer).and_then(serde_json::Value::as_u64);
    let identity = SmartIdentity::of_json(&json);
    let attributes = at("/ata_smart_attributes/table").and_then(serde_json::Value::as_array);
    let spin_up = attributes
        .into_iter()
        .flatten()
        .find(|attribute| attribute["id"] == 3);
    // Only the lower 16 bits are the time; drives put other figures above.
    let spin_up_ms = spin_up
        .and_then(|attribute| attribute["raw"]["value"].as_u64())
        .map(|raw| (raw & 0xffff) as f64)
        .filter(|ms| SPIN_UP_MS.contains(ms));
    let minutes = whole("/ata_smart_data/self_test/polling_minutes/extended")
        .filter(|&minutes| minutes != POLLING_UNKNOWN)
        .map(|minutes| minutes as f64);
    let seconds = whole("/scsi_extended_self_test_seconds").map(|seconds| seconds as f64);
    Ok(SmartReport {
        file: file.to_owned(),
        model: identity.model,
        bytes: identity.bytes,
        rpm: whole("/rotation_rate")
            .filter(|rpm| *rpm > 0)
            .map(|rpm| rpm as f64),
        logical_sector: whole("/logical_block_size").map(|bytes| bytes as u32),
        physical_sector: whole("/physical_block_size").map(|bytes| bytes as u32),
        surface_minutes: minutes.or(seconds.map(|seconds| seconds / 60.0)),
        spin_up_ms,
        solid: identity.solid,
    })
}

fn of(file: &str, text: &str) -> SmartReport {
    let identity = SmartIdentity::of_text(text);
    let mut report = SmartReport {
        file: file.to_owned(),
        model: identity.model,
        bytes: identity.bytes,
        solid: identity.solid,
        ..SmartReport::default()
    };
    let mut extended = false;
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        match key.trim() {
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
            "Logical block size" => {
                report.logical_sector = number(value).map(|bytes| bytes as u32);
                report.physical_sector = report.physical_sector.or(report.logical_sector);
            }
            "Physical block size" => {
                report.physical_sector = number(value).map(|bytes| bytes as u32);
            }
            "Long (extended) Self-test duration" => {
                // `13740 seconds [229.0 minutes]`, or `1110 minutes [18.5 hours]`.
                let unit = value.split_whitespace().nth(1).unwrap_or_default();
                let of_minute = match unit.trim_end_matches('s') {
                    "minute" => 1.0,
                    "hour" => 1.0 / 60.0,
                    _ => 60.0,
                };
                let digits = value.split_whitespace().next().and_then(number);
                report.surface_minutes = digits.map(|count| count as f64 / of_minute);
            }
            "Sector Size" => {
                report.logical_sector = number(value).map(|bytes| bytes as u32);
                report.physical_sector = report.logical_sector;
            }
            "Extended self-test routine" => extended = true,
            "recommended polling time" if extended => {
                report.surface_minutes = number(value)
                    .filter(|&minutes| minutes != POLLING_UNKNOWN)
                    .map(|minutes| minutes as f64);
                extended = false;
            }
            _ => {}
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [id, "Spin_Up_Time", .., raw] = words.as_slice()
            && *id == "3"
        {
            report.spin_up_ms = raw.parse().ok().filter(|ms: &f64| SPIN_UP_MS.contains(ms));
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_in_json_has_the_same_figures() {
        let text = r#"{"model_name": "WDC WD40EFPX", "user_capacity": {"blocks": 7814037168, "bytes": 4000787030016},
            "logical_block_size": 512, "physical_block_size": 4096, "rotation_rate": 5400,
            "ata_smart_data": {"self_test": {"polling_minutes": {"short": 2, "extended": 443}}},
            "ata_smart_attributes": {"table": [{"id": 3, "name": "Spin_Up_Time", "raw": {"value": 4300, "string": "4300"}}]}}"#;
        let report = of_json("x", text).unwrap();
        assert_eq!(
            (report.bytes, report.rpm),
            (Some(4_000_787_030_016), Some(5400.0))
        );
        assert_eq!(
            (report.surface_minutes, report.spin_up_ms),
            (Some(443.0), Some(4300.0))
        );
        assert_eq!(report.physical_sector, Some(4096));
        assert!(of_json("x", "{").is_err());
    }

    #[test]
    fn a_report_of_a_sas_drive_has_the_same_figures() {
        let text = "\
Vendor:               SEAGATE
Product:              ST2400MM0129
User Capacity:        2\u{202f}400\u{202f}476\u{202f}553\u{202f}216 bytes [2.40 TB]
Logical block size:   512 bytes
Physical block size:  4096 bytes
Rotation Rate:        10500 rpm
Long (extended) Self-test duration: 13740 seconds [229.0 minutes]
";
        let report = of("r.txt", text);
        assert_eq!(
            (report.bytes, report.rpm),
            (Some(2_400_476_553_216), Some(10_500.0))
        );
        assert_eq!(
            (report.logical_sector, report.physical_sector),
            (Some(512), Some(4096))
        );
        assert_eq!(report.surface_minutes, Some(229.0));
        let text = "Long (extended) Self-test duration: 1110 minutes [18.5 hours]\n";
        assert_eq!(of("r.txt", text).surface_minutes, Some(1110.0));
    }

    #[test]
    fn flash_devices_are_told_apart_in_each_form() {
        let ssd = r#"{"model_name":"a","user_capacity":{"bytes":1000204886016},"rotation_rate":0}"#;
        assert!(of_json("x", ssd).unwrap().solid);
        let nvme = r#"{"device":{"protocol":"NVMe"},"user_capacity":{"bytes":1000204886016}}"#;
        assert!(of_json("x", nvme).unwrap().solid);
        let text = "Model Number: Samsung SSD 980 PRO 1TB\nTotal NVM Capacity: 1,000,204,886,016 [1.00 TB]\n";
        assert!(of("r.txt", text).solid);
        assert!(of("r.txt", "Rotation Rate:    Solid State Device\n").solid);
        assert!(!of("r.txt", "User Capacity:    2,000,398,934,016 bytes\n").solid);
    }

    #[test]
    fn a_polling_time_of_65535_is_none() {
        let text = "Extended self-test routine\nrecommended polling time: (65535) minutes.\n";
        assert_eq!(of("r.txt", text).surface_minutes, None);
    }

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
