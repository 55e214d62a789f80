//! The drive of the library that is nearest to the members of an array.

use super::{Facts, library};
use crate::drives;

/// Part of the capacity that a rounded number may be too large: `zpool list` prints 14.6T for
/// 14.55 TiB.
const ROUNDING: f64 = 0.005;

/// Least length of a model number. Shorter words of a title, such as `15K.7`, are names of series.
const MODEL_LETTERS_MIN: usize = 6;

/// Returns the name of the drive whose model number stands in the names of `devices`, such as
/// `ata-ST16000NM001G-2KK103_ZL2`. Without such a number: the smallest drive that holds `bytes`, or
/// the largest drive if none does or `bytes` is unknown. Shingled drives and drives with several
/// actuators are chosen by their model number alone, because their behaviour is special.
pub fn nearest(bytes: Option<u64>, devices: &[String]) -> String {
    let library = library();
    let named = |drive: &&Facts| {
        model_numbers(&drive.title).any(|number| {
            let has = |device: &String| device.to_ascii_uppercase().contains(&number);
            devices.iter().any(has)
        })
    };
    if let Some(drive) = library.iter().find(named) {
        return drive.name.clone();
    }
    let mut plain: Vec<&Facts> = library
        .iter()
        .filter(|drive| !drives::is_special(&drive.name))
        .collect();
    // By size and then by name, so that of equal sizes the same drive is chosen each time.
    plain.sort_by_key(|drive| (drive.capacity_bytes, drive.name.clone()));
    let least = bytes.map_or(u64::MAX, |bytes| (bytes as f64 * (1.0 - ROUNDING)) as u64);
    let fitting = plain.iter().find(|drive| drive.capacity_bytes >= least);
    fitting
        .or(plain.last())
        .map(|drive| drive.name.clone())
        .unwrap_or_default()
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
}
