//! The drive of the library that is nearest to the members of an array.

use super::{Facts, library};
use crate::drives;
use fullstroke_units::order_by_key;

/// Part of the capacity that a rounded number may be too large: `zpool list` prints 14.6T for
/// 14.55 TiB.
const ROUNDING: f64 = 0.005;

/// Least length of a model number. Shorter words of a title, such as `15K.7`, are names of series.
const MODEL_LETTERS_MIN: usize = 6;

/// Returns the name of the drive whose model number stands in the names of `devices`, such as
/// `ata-ST16000NM001G-2KK103_ZL2`. Without such a number: the smallest drive that holds `bytes`, or
/// the largest drive if none does or `bytes` is unknown. A model number that is not in the library tells
/// the bytes, too (`bytes_of_model`). Shingled drives and drives with several
/// actuators are chosen by their model number alone, because their behaviour is special.
pub fn nearest(bytes: Option<u64>, devices: &[String]) -> String {
    let library = library();
    let named = |drive: &&Facts| {
        model_numbers(&drive.title).any(|number| {
            let has = |device: &String| device.to_ascii_uppercase().contains(&number);
            devices.iter().any(has)
        })
    };
    // The model number first: two drives of one capacity may differ by half in speed.
    if let Some(drive) = library.iter().find(named) {
        return drive.name.clone();
    }
    let mut plain: Vec<&Facts> = library
        .iter()
        .filter(|drive| !drives::is_special(&drive.name))
        .collect();
    // By size and then by name, so that of equal sizes the same drive is chosen each time.
    order_by_key(&mut plain, |drive| {
        (drive.capacity_bytes, drive.name.clone())
    });
    let bytes = bytes.or_else(|| devices.iter().find_map(|device| bytes_of_model(device)));
    let least = bytes.map_or(u64::MAX, |bytes| (bytes as f64 * (1.0 - ROUNDING)) as u64);
    let fitting = plain.iter().find(|drive| drive.capacity_bytes >= least);
    fitting
        .or(plain.last())
        .map(|drive| drive.name.clone())
        .unwrap_or_default()
}

/// Returns the capacity that a model number says: `ST8000VN004` of Seagate has gigabytes, `WD80EFAX` and
/// `WD101EFBX` of Western Digital have tenths of a terabyte, `WD5000AAKX` tenths of a gigabyte.
fn bytes_of_model(device: &str) -> Option<u64> {
    let device = device.to_ascii_uppercase();
    device
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .find_map(|word| {
            let (rest, maker) = match word.strip_prefix("ST") {
                Some(rest) => (rest, "ST"),
                None => (word.strip_prefix("WD")?, "WD"),
            };
            let length = rest.find(|letter: char| !letter.is_ascii_digit())?;
            let letters = rest[length..]
                .chars()
                .take_while(char::is_ascii_alphabetic)
                .count();
            let number: u64 = rest[..length].parse().ok()?;
            // A serial number has no run of letters behind its first digits.
            let unit = match (maker, length, letters) {
                // Seagate: gigabytes, from three digits (`ST500DM002`) to five (`ST16000NM001G`).
                ("ST", 3..=5, 2..) => 1_000_000_000,
                ("WD", 2..=3, 3..) => 100_000_000_000,
                ("WD", 4, 3..) => 100_000_000,
                _ => return None,
            };
            // `WD101` has 10 TB and `WD161` 16 TB: the last digit tells drives of one size apart.
            let number = if maker == "WD" && length == 3 {
                number / 10 * 10
            } else {
                number
            };
            Some(number * unit)
        })
}

/// Returns the model numbers in a title: long words of capital letters and digits.
fn model_numbers(title: &str) -> impl Iterator<Item = String> {
    let is_number = |word: &&str| {
        let has = |is: fn(&char) -> bool| word.chars().any(|letter| is(&letter));
        word.len() >= MODEL_LETTERS_MIN
            && has(char::is_ascii_digit)
            && has(char::is_ascii_uppercase)
            && !has(char::is_ascii_lowercase)
    };
    title
        .split([' ', ',', '(', ')', '-'])
        .filter(is_number)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_size(terabytes: f64) -> String {
        nearest(Some((terabytes * 1e12) as u64), &[])
    }

    #[test]
    fn a_drive_of_the_size_is_neither_shingled_nor_of_two_actuators() {
        assert_eq!(by_size(4.0), "wd-red-plus-4tb");
        assert_eq!(by_size(8.0), "seagate-ironwolf-8tb");
        // 14.6T of `zpool list`, of a drive of 14.55 TiB.
        assert_eq!(by_size(16.053), "seagate-exos-x16-16tb");
        assert_eq!(by_size(18.0), "wd-ultrastar-hc550-18tb");
        assert_eq!(by_size(99.0), nearest(None, &[]));
    }

    #[test]
    fn a_model_number_in_the_names_of_the_members_decides() {
        let devices = |name: &str| vec![format!("ata-{name}_1"), format!("ata-{name}_2")];
        let of = |name: &str| nearest(Some(1_000_000_000_000), &devices(name));
        assert_eq!(of("ST16000NM001G-2KK103"), "seagate-exos-x16-16tb");
        assert_eq!(of("WDC_WD80EFZZ-68BTXN0"), "wd-red-plus-8tb");
        assert_eq!(of("ST8000AS0002-1NA17Z"), "seagate-archive-8tb");
        assert_eq!(of("unknown"), "hitachi-7k1000c-1tb");
        assert_eq!(of("SAMSUNG_HD103UJ_S13P"), "samsung-f1-1tb");
    }

    #[test]
    fn a_model_number_tells_the_capacity() {
        for (device, terabytes) in [
            ("ata-WDC_WD80EFAX-68KNBN0_VAG0AAAA", Some(8.0)),
            ("WDC WD101EFBX-68B0AN0", Some(10.0)),
            ("wwn-WD161KFGX", Some(16.0)),
            ("WD5000AAKX-00ERMA0", Some(0.5)),
            ("ata-ST4000DM004-2CV104_ZFN0", Some(4.0)),
            ("ST12000VN0008-2YS101", Some(12.0)),
            ("ST500DM002", Some(0.5)),
            ("scsi-SATA_HGST_HUS72", None),
            ("ata-X_WD-WCC4E0123456", None),
            ("sda", None),
        ] {
            let bytes = bytes_of_model(device).map(|bytes| bytes as f64 / 1e12);
            assert_eq!(bytes, terabytes, "{device}");
        }
        let devices = ["ata-WDC_WD80EFAX-68KNBN0_VAG".to_owned()];
        assert_eq!(nearest(None, &devices), "seagate-ironwolf-8tb");
    }
}
