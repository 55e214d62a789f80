//! The drive of the library that is nearest to the members of an array.

use super::{Facts, library};
use crate::drives;
use fullstroke_units::order_by_key;

/// Part of the capacity that a rounded number may be too large: `zpool list` prints 14.6T for
/// 14.55 TiB.
const ROUNDING: f64 = 0.005;

/// Least length of a model number. Shorter words of a title, such as `15K.7`, are names of series.
const MODEL_LETTERS_MIN: usize = 6;

/// Model numbers of drives that manage shingled tracks themselves, without the makers' suffixes. A
/// shingled drive has the capacities and the speed of other drives, so only the number tells.
/// Sources: Western Digital, "WD Red NAS Drives", 23 April 2020; Seagate, "CMR and SMR hard drives";
/// Toshiba, "Consumer HDD: list of SMR drives", 28 April 2020.
const SHINGLED: [&str; 32] = [
    "WD20EFAX",
    "WD30EFAX",
    "WD40EFAX",
    "WD60EFAX",
    "WD20EZAZ",
    "WD60EZAZ",
    "WD10SPZX",
    "WD20SPZX",
    "WD10SPSX",
    "ST2000DM005",
    "ST2000DM008",
    "ST3000DM007",
    "ST4000DM004",
    "ST5000DM000",
    "ST6000DM003",
    "ST8000DM004",
    "ST500LM030",
    "ST1000LM048",
    "ST2000LM015",
    "ST4000LM024",
    "ST5000LM000",
    "ST5000AS0011",
    "ST6000AS0002",
    "ST8000AS0002",
    "HDWD240",
    "HDWD260",
    "HDWL110",
    "HDWL120",
    "DT02ABA400",
    "DT02ABA600",
    "MQ04ABF100",
    "MQ04UBF100",
];

/// Parts of the names of flash devices. `MZ7` begins the model numbers of Samsung.
const FLASH: [&str; 3] = ["NVME", "SSD", "MZ7"];

/// The device of the library for flash devices behind NVMe, and behind SATA or SAS.
pub(crate) const NVME_FLASH: &str = "nvme-tlc-1tb";
pub(crate) const SATA_FLASH: &str = "samsung-870-evo-1tb";

/// Speeds of one class differ by at most this part: 5,400 and 5,980 revolutions per minute are both
/// called 5,400.
const SPEED_CLASS: f64 = 0.12;

/// Facts about a drive whose nearest drive of the library is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Bytes of the drive.
    pub bytes: Option<u64>,
    /// Names of devices, which may hold a model number.
    pub devices: &'a [String],
    /// Revolutions per minute.
    pub rpm: Option<f64>,
    /// True if a report says that the drive manages shingled tracks.
    pub shingled: bool,
}

/// Returns true for a name of a flash device, such as `nvme0n1p1` or `ata-Samsung_SSD_870_EVO`.
fn is_flash(device: &str) -> bool {
    let name = device.to_ascii_uppercase();
    FLASH.iter().any(|part| name.contains(part))
}

/// Returns a note if some of the named devices are flash devices and others are not.
pub fn mixed_with_flash(devices: &[String]) -> Option<String> {
    let named = || {
        devices
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
    };
    let flash: Vec<String> = named()
        .filter(|(_, name)| is_flash(name))
        .map(|(member, _)| member.to_string())
        .collect();
    let is_mixed = !flash.is_empty() && flash.len() < named().count();
    is_mixed.then(|| {
        format!(
            "By their names, members {} are flash devices and others are disks; list them in [[volume.members]].",
            flash.join(", ")
        )
    })
}

/// Returns the name of the drive whose model number stands in the names of `devices`. See
/// [`nearest_to`].
pub fn nearest(bytes: Option<u64>, devices: &[String]) -> String {
    nearest_to(&Wanted {
        bytes,
        devices,
        ..Wanted::default()
    })
}

/// Returns the name of the drive whose model number stands in the names of the devices, such as
/// `ata-ST16000NM001G-2KK103_ZL2`. Without such a number: the smallest drive of the speed that holds
/// the bytes, or the largest drive if none does or the bytes are unknown. A model number that is not in
/// the library tells the bytes, too (`bytes_of_model`). A shingled drive is chosen for shingled drives
/// alone, and drives with several actuators by their model number alone, because their behaviour is
/// special.
pub fn nearest_to(wanted: &Wanted) -> String {
    let Wanted {
        bytes,
        devices,
        rpm,
        shingled,
    } = *wanted;
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
    let given = || devices.iter().filter(|name| !name.is_empty());
    if given().count() > 0 && given().all(|name| is_flash(name)) {
        let is_nvme = given().any(|name| name.to_ascii_uppercase().contains("NVME"));
        return if is_nvme { NVME_FLASH } else { SATA_FLASH }.to_owned();
    }
    let shingled = shingled || devices.iter().any(|device| is_shingled(device));
    let suits = |drive: &&Facts| match shingled {
        true => drives::is_shingled(&drive.name),
        false => !drives::is_special(&drive.name),
    };
    let mut plain: Vec<&Facts> = library.iter().filter(suits).collect();
    // By size and then by name, so that of equal sizes the same drive is chosen each time.
    order_by_key(&mut plain, |drive| {
        (drive.capacity_bytes, drive.name.clone())
    });
    let bytes = bytes.or_else(|| devices.iter().find_map(|device| bytes_of_model(device)));
    let least = bytes.map_or(u64::MAX, |bytes| (bytes as f64 * (1.0 - ROUNDING)) as u64);
    let fits = |drive: &&&Facts| drive.capacity_bytes >= least;
    // Each speed has drives of its own: a disk of 10,500 rpm answers sooner than one of 7,200.
    let turns_as_fast =
        |drive: &&&Facts| rpm.is_some_and(|rpm| (drive.rpm / rpm - 1.0).abs() <= SPEED_CLASS);
    let of_speed = plain.iter().filter(turns_as_fast).find(fits);
    of_speed
        .or(plain.iter().find(fits))
        .or(plain.last())
        .map(|drive| drive.name.clone())
        .unwrap_or_default()
}

/// Returns true for a name with the model number of a shingled drive.
fn is_shingled(device: &str) -> bool {
    let name = device.to_ascii_uppercase();
    SHINGLED.iter().any(|number| name.contains(number))
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
    fn a_shingled_drive_has_a_shingled_drive_of_the_library() {
        for (device, expected) in [
            ("ata-WDC_WD40EFAX-68JH4N1_WD-WX1", "nas-shingled-4tb"),
            ("ST2000DM008-2FR102", "nas-shingled-4tb"),
            ("ata-ST8000DM004-2CX188_WCT0", "seagate-archive-8tb"),
            ("TOSHIBA HDWD260", "seagate-archive-8tb"),
            // The same capacities without shingled tracks.
            ("ata-WDC_WD40EFRX-68N32N0_WD-WCC", "wd-red-plus-4tb"),
            ("ST8000VN004-2M2101", "seagate-ironwolf-8tb"),
        ] {
            let bytes = if device.contains("HDWD260") {
                Some(6_001_175_126_016)
            } else {
                None
            };
            assert_eq!(nearest(bytes, &[device.to_owned()]), expected, "{device}");
        }
    }

    #[test]
    fn flash_devices_are_no_disks() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            (
                nearest(Some(4_000_000_000_000), &names),
                mixed_with_flash(&names).is_some(),
            )
        };
        assert_eq!(
            of(&["/dev/nvme0n1p1", "", "/dev/nvme1n1p1"]),
            (NVME_FLASH.to_owned(), false)
        );
        assert_eq!(
            of(&["ata-Samsung_SSD_870_EVO_4TB_S6"]),
            (SATA_FLASH.to_owned(), false)
        );
        assert_eq!(
            of(&["/dev/nvme0n1p1", "/dev/sda1"]),
            ("wd-red-plus-4tb".to_owned(), true)
        );
        assert_eq!(of(&["", ""]), ("wd-red-plus-4tb".to_owned(), false));
    }

    #[test]
    fn a_drive_of_the_speed_comes_first() {
        let of = |terabytes: f64, rpm: f64| {
            nearest_to(&Wanted {
                bytes: Some((terabytes * 1e12) as u64),
                rpm: Some(rpm),
                ..Wanted::default()
            })
        };
        assert_eq!(of(1.2, 10_500.0), "seagate-exos-10e2400-2.4tb");
        assert_eq!(of(0.3, 15_000.0), "seagate-cheetah-15k7-450gb");
        assert_eq!(of(8.0, 5_400.0), "wd-red-plus-8tb");
        assert_eq!(of(8.0, 7_200.0), "seagate-ironwolf-8tb");
        // No drive of the speed holds the bytes.
        assert_eq!(of(0.9, 15_000.0), by_size(0.9));
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
