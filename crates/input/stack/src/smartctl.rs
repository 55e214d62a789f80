//! Reads which drive a report of `smartctl` describes: the text of `-i`, `-a` or `-x`, or the JSON of
//! `-j`. `fit` makes a drive file of the same report, and takes the drive from here.

use crate::StackError;
use crate::facts::{NVME_FLASH, SATA_FLASH, Wanted, nearest_to};
use serde::Serialize;
use serde_json::Value;

/// Number of lines at the beginning of a text in which a report begins, behind a prompt.
const HEAD: usize = 8;

/// Heading of the lines that describe the drive.
const SECTION: &str = "=== START OF INFORMATION SECTION";

/// Drive that a report of `smartctl` describes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportedDrive {
    /// Model of the drive.
    pub model: String,
    /// Capacity in bytes.
    pub bytes: u64,
    /// True for a device of flash memory.
    pub solid: bool,
    /// True for an NVMe device.
    pub nvme: bool,
    /// Revolutions per minute, if the report says.
    pub rpm: Option<f64>,
    /// True if the report says that the drive manages shingled tracks.
    pub shingled: bool,
}

impl ReportedDrive {
    /// Returns true if the text is a report of `smartctl`.
    pub fn recognise(text: &str) -> bool {
        is_json(text)
            || text
                .lines()
                .take(HEAD)
                .any(|line| line.starts_with("smartctl ") || line.starts_with(SECTION))
    }

    /// Reads the report. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// If the report has no capacity.
    pub fn read(file: &str, text: &str) -> Result<ReportedDrive, StackError> {
        let found = if is_json(text) {
            // A damaged report becomes an empty one, and the missing capacity is the error.
            let json = serde_json::from_str(text).unwrap_or_default();
            SmartIdentity::of_json(&json)
        } else {
            one_drive(file, text)?;
            SmartIdentity::of_text(text)
        };
        let Some(bytes) = found.bytes.filter(|&bytes| bytes > 0) else {
            let message = "found a report of smartctl without a capacity; expected the output of `smartctl -a DEVICE` as root";
            return Err(StackError::whole(file, message));
        };
        Ok(ReportedDrive {
            model: found.model.unwrap_or_else(|| "a drive".to_owned()),
            bytes,
            solid: found.solid,
            nvme: found.nvme,
            rpm: found.rpm,
            shingled: found.shingled,
        })
    }

    /// Returns the name of the disk of the library that is nearest to the reported disk.
    pub fn nearest(&self) -> String {
        nearest_to(&Wanted {
            bytes: Some(self.bytes),
            devices: std::slice::from_ref(&self.model),
            rpm: self.rpm,
            shingled: self.shingled,
        })
    }

    /// Returns the model of the library for a device of flash memory; `None` for a disk.
    pub fn flash(&self) -> Option<&'static str> {
        match (self.solid, self.nvme) {
            (false, _) => None,
            (true, true) => Some(NVME_FLASH),
            (true, false) => Some(SATA_FLASH),
        }
    }

    /// Returns the stack file of one drive.
    pub fn to_stack(&self, drive: &str) -> String {
        format!(
            "title = {:?}\nseed = 1\n\n\
             # Replace the workload by your own load, or give --trace or --fio.\n\
             [workload]\nkind = \"synthetic\"\nrequests = 10000\nsize = \"4KiB\"\nread_share = 0.7\n\
             arrivals = {{ process = \"closed\", outstanding = 4 }}\n\n[volume]\nlayout = \"jbod\"\n\
             # The drive of the library that is nearest to {} of {:.2} TB. `fullstroke fit --smart FILE`\n\
             # makes a drive file of the report.\ndrive = {drive:?}\ndrives = 1\n",
            format!("{}, one drive", self.model),
            self.model,
            self.bytes as f64 / 1e12,
        )
    }
}

/// Checks that a text has the report of one drive, or of equal drives.
///
/// # Errors
/// If the text has reports of drives of several models.
fn one_drive(file: &str, text: &str) -> Result<(), StackError> {
    let mut models: Vec<&str> = Vec::new();
    for line in text.lines() {
        let model = line.split_once(':').filter(|(key, _)| is_model(key.trim()));
        if let Some((_, model)) = model
            && !models.contains(&model.trim())
        {
            models.push(model.trim());
        }
    }
    if models.len() < 2 {
        return Ok(());
    }
    let message = format!(
        "found the reports of {}; expected the report of one drive",
        models.join(" and ")
    );
    Err(StackError::whole(file, message))
}

/// Returns true for the key of a model in a report in words.
fn is_model(key: &str) -> bool {
    matches!(key, "Device Model" | "Product" | "Model Number")
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"smartctl\"")
}

/// The drive of a report, as far as the report names the drive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SmartIdentity {
    /// Model of the drive.
    pub model: Option<String>,
    /// Capacity in bytes.
    pub bytes: Option<u64>,
    /// True for a device of flash memory. A disk whose report names no speed is not one.
    pub solid: bool,
    /// True for an NVMe device.
    pub nvme: bool,
    /// Revolutions per minute of a disk.
    pub rpm: Option<f64>,
    /// True if the disk manages shingled tracks.
    pub shingled: bool,
}

impl SmartIdentity {
    /// Reads a report in JSON (smartmontools 7, `--json`).
    pub fn of_json(json: &Value) -> SmartIdentity {
        let nvme = json.pointer("/device/protocol").and_then(Value::as_str) == Some("NVMe");
        let speed = json.get("rotation_rate").and_then(Value::as_u64);
        let names = ["/model_name", "/scsi_model_name"];
        let name = names.iter().find_map(|key| json.pointer(key)?.as_str());
        let sizes = ["/user_capacity/bytes", "/nvme_total_capacity"];
        let rpm = speed.filter(|&speed| speed > 0).map(|speed| speed as f64);
        let family = json.get("model_family").and_then(Value::as_str);
        let trims = json.pointer("/trim/supported") == Some(&Value::Bool(true));
        SmartIdentity {
            model: name.map(str::to_owned),
            bytes: sizes.iter().find_map(|key| json.pointer(key)?.as_u64()),
            // smartctl writes a speed of 0 for a solid state device.
            solid: nvme || speed == Some(0),
            nvme,
            rpm,
            shingled: family.is_some_and(is_shingled_family) || (trims && rpm.is_some()),
        }
    }

    /// Reads a report in words.
    pub fn of_text(text: &str) -> SmartIdentity {
        let mut found = SmartIdentity::default();
        let mut trims = false;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            match key {
                key if is_model(key) => found.model = Some(value.to_owned()),
                // The bracket behind the number repeats the capacity.
                "User Capacity" | "Total NVM Capacity" | "Namespace 1 Size/Capacity" => {
                    let bytes = value.split("bytes").next().and_then(smart_number);
                    found.bytes = bytes.or(found.bytes);
                }
                "Rotation Rate" => {
                    found.solid |= value.starts_with("Solid State");
                    found.rpm = value
                        .strip_suffix("rpm")
                        .and_then(|rpm| rpm.trim().parse().ok());
                }
                "Model Family" => found.shingled |= is_shingled_family(value),
                "Zoned Device" => found.shingled |= value.starts_with("Device managed"),
                "TRIM Command" => trims = value.starts_with("Available"),
                _ => {}
            }
            // The lines of NVMe: https://www.smartmontools.org, nvmeprint.cpp.
            if matches!(key, "NVMe Version" | "Total NVM Capacity") {
                (found.solid, found.nvme) = (true, true);
            }
        }
        // A disk takes TRIM only if the disk moves data from its shingled tracks.
        found.shingled |= trims && found.rpm.is_some() && !found.solid;
        found
    }
}

/// Returns true for a family of smartmontools' database such as `Western Digital Red (SMR)`.
fn is_shingled_family(family: &str) -> bool {
    family.contains("SMR")
}

/// Separators of thousands in the languages that smartctl is run in.
const SEPARATORS: [char; 7] = [',', '.', '\'', '’', ' ', '\u{a0}', '\u{202f}'];

/// Returns the first whole number of a text of `smartctl`, without thousands separators.
pub fn smart_number(text: &str) -> Option<u64> {
    let digits: String = text
        .chars()
        .skip_while(|letter| !letter.is_ascii_digit())
        .take_while(|letter| letter.is_ascii_digit() || SEPARATORS.contains(letter))
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_of_each_kind_of_drive_are_read() {
        let ata = "smartctl 7.2\nDevice Model:     ST8000VN004-2M2101\nUser Capacity:    8,001,563,222,016 bytes [8.00 TB]\nRotation Rate:    7200 rpm\n";
        let sas = "smartctl 7.3\nVendor:               SEAGATE\nProduct:              ST16000NM004J\nUser Capacity:        16.000.900.661.248 bytes [16.0 TB]\n";
        let ssd = "smartctl 7.3\nDevice Model:     Samsung SSD 870 EVO 1TB\nUser Capacity:    1,000,204,886,016 bytes [1.00 TB]\nRotation Rate:    Solid State Device\n";
        let nvme = "smartctl 7.3\nModel Number:                       Samsung SSD 980 PRO 1TB\nTotal NVM Capacity:                 1,000,204,886,016 [1.00 TB]\nNVMe Version:                       1.3\n";
        let json = "{\"smartctl\":{},\"model_name\":\"WDC WD80EFAX-68KNBN0\",\"user_capacity\":{\"bytes\":8001563222016},\"rotation_rate\":5400}";
        for (text, model, terabytes, flash) in [
            (ata, "ST8000VN004-2M2101", 8.0, None),
            (sas, "ST16000NM004J", 16.0, None),
            (
                ssd,
                "Samsung SSD 870 EVO 1TB",
                1.0,
                Some("samsung-870-evo-1tb"),
            ),
            (nvme, "Samsung SSD 980 PRO 1TB", 1.0, Some("nvme-tlc-1tb")),
            (json, "WDC WD80EFAX-68KNBN0", 8.0, None),
        ] {
            assert!(ReportedDrive::recognise(text), "{text}");
            let drive = ReportedDrive::read("s.txt", text).unwrap();
            assert_eq!((&drive.model[..], drive.flash()), (model, flash));
            assert!(
                (drive.bytes as f64 / 1e12 - terabytes).abs() < 0.01,
                "{drive:?}"
            );
        }
        let sas = "=== START OF INFORMATION SECTION ===\nProduct: ST1200MM0088\nUser Capacity: 1,200,243,695,616 bytes [1.20 TB]\nRotation Rate: 10500 rpm\n";
        let shingled = "=== START OF INFORMATION SECTION ===\nDevice Model: X\nUser Capacity: 8,001,563,222,016 bytes [8.00 TB]\nRotation Rate: 5425 rpm\n";
        for (text, more, nearest) in [
            (sas, "", "seagate-exos-10e2400-2.4tb"),
            (shingled, "", "wd-red-plus-8tb"),
            (shingled, "TRIM Command: Available\n", "seagate-archive-8tb"),
            (shingled, "TRIM Command: Unavailable\n", "wd-red-plus-8tb"),
            (
                shingled,
                "Zoned Device: Device managed zones\n",
                "seagate-archive-8tb",
            ),
            (
                shingled,
                "Model Family: Western Digital Red (SMR)\n",
                "seagate-archive-8tb",
            ),
        ] {
            let text = format!("{text}{more}");
            assert!(ReportedDrive::recognise(&text));
            let drive = ReportedDrive::read("s.txt", &text).unwrap();
            assert_eq!(drive.nearest(), nearest, "{text}");
        }
        let json = "{\"smartctl\":{},\"model_name\":\"X\",\"user_capacity\":{\"bytes\":8001563222016},\"rotation_rate\":5425,\"trim\":{\"supported\":true}}";
        let drive = ReportedDrive::read("s.txt", json).unwrap();
        assert_eq!(drive.nearest(), "seagate-archive-8tb");
        let error = ReportedDrive::read("s.txt", &format!("{sas}{shingled}")).unwrap_err();
        assert!(error.to_string().contains("ST1200MM0088 and X"), "{error}");
        let error = ReportedDrive::read(
            "s.txt",
            "smartctl 7.2\nopen device failed: Permission denied\n",
        );
        assert!(error.is_err_and(|error| error.to_string().contains("as root")));
    }
}
