//! Reads which drive a report of `smartctl` describes: the text of `-i`, `-a` or `-x`, or the JSON of
//! `-j`. `fit` makes a drive file of the same report; here the report only names the drive.

use crate::StackError;
use serde::Serialize;
use serde_json::Value;

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
}

impl ReportedDrive {
    /// Returns true if the text is a report of `smartctl`.
    pub fn recognise(text: &str) -> bool {
        is_json(text)
            || text
                .lines()
                .take(8)
                .any(|line| line.starts_with("smartctl "))
    }

    /// Reads the report. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// If the report has no capacity.
    pub fn read(file: &str, text: &str) -> Result<ReportedDrive, StackError> {
        let found = if is_json(text) {
            of_json(text)
        } else {
            Some(of_text(text))
        };
        found.filter(|drive| drive.bytes > 0).ok_or_else(|| {
            let message = "found a report of smartctl without a capacity; expected the output of `smartctl -a DEVICE` as root";
            StackError::whole(file, message)
        })
    }

    /// Returns the model of the library for a device of flash memory; `None` for a disk.
    pub fn flash(&self) -> Option<&'static str> {
        match (self.solid, self.nvme) {
            (false, _) => None,
            (true, true) => Some("nvme-tlc-1tb"),
            (true, false) => Some("samsung-870-evo-1tb"),
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

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"smartctl\"")
}

fn of_json(text: &str) -> Option<ReportedDrive> {
    let json: Value = serde_json::from_str(text).ok()?;
    let nvme = json.pointer("/device/protocol").and_then(Value::as_str) == Some("NVMe");
    let speed = json.get("rotation_rate").and_then(Value::as_u64);
    let name = ["model_name", "scsi_model_name"]
        .iter()
        .find_map(|key| json[*key].as_str());
    let bytes = ["/user_capacity/bytes", "/nvme_total_capacity"]
        .iter()
        .find_map(|key| json.pointer(key)?.as_u64());
    Some(ReportedDrive {
        model: name.unwrap_or("a drive").to_owned(),
        bytes: bytes?,
        solid: nvme || speed == Some(0),
        nvme,
    })
}

fn of_text(text: &str) -> ReportedDrive {
    let mut drive = ReportedDrive {
        model: "a drive".to_owned(),
        ..ReportedDrive::default()
    };
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "Device Model" | "Product" | "Model Number" => value.clone_into(&mut drive.model),
            // Thousands have separators of the user's language; the bracket repeats the capacity.
            "User Capacity" | "Total NVM Capacity" | "Namespace 1 Size/Capacity" => {
                let digits = value.split(['[', 'b']).next().unwrap_or_default();
                let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
                drive.bytes = digits.parse().unwrap_or(drive.bytes);
            }
            "Rotation Rate" => drive.solid |= value.starts_with("Solid State"),
            _ => {}
        }
        if key.trim() == "NVMe Version" || key.trim() == "Total NVM Capacity" {
            (drive.solid, drive.nvme) = (true, true);
        }
    }
    drive
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
        let error = ReportedDrive::read(
            "s.txt",
            "smartctl 7.2\nopen device failed: Permission denied\n",
        );
        assert!(error.is_err_and(|error| error.to_string().contains("as root")));
    }
}
