//! Words and numbers in the outputs of mdadm and the kernel.

use crate::StackError;
use fullstroke_units::Bytes;

pub(super) fn fail(file: &str, line: usize, key: &str, message: String) -> StackError {
    StackError {
        file: file.to_owned(),
        line: Some(line),
        key: key.to_owned(),
        message,
    }
}

/// Returns a line without spaces at its ends and without marks of a quotation before it.
pub(super) fn unquoted(line: &str) -> &str {
    line.trim_start_matches(['>', '|', ' ', '\t']).trim_end()
}

/// Returns the layout of a level of md.
pub(super) fn layout_of(file: &str, line: usize, level: &str) -> Result<String, StackError> {
    match level {
        "raid0" | "raid1" | "raid4" | "raid5" | "raid6" | "raid10" => Ok(level.to_owned()),
        "linear" => Ok("jbod".to_owned()),
        other => Err(fail(
            file,
            line,
            "Raid Level",
            format!("found {other}; expected raid0, raid1, raid4, raid5, raid6, raid10 or linear"),
        )),
    }
}

/// Returns the rotation of a layout's name in `mdadm`.
pub(super) fn rotation_of(
    file: &str,
    line: usize,
    name: &str,
) -> Result<Option<String>, StackError> {
    match name {
        "left-symmetric" | "left-asymmetric" | "right-symmetric" | "right-asymmetric" => {
            Ok(Some(name.to_owned()))
        }
        other => Err(fail(
            file,
            line,
            "Layout",
            format!(
                "found {other}; expected left-symmetric, left-asymmetric, right-symmetric or right-asymmetric"
            ),
        )),
    }
}

/// Returns the number at the beginning of a text.
pub(super) fn number(file: &str, line: usize, key: &str, value: &str) -> Result<u64, StackError> {
    let digits = value.split_whitespace().next().unwrap_or_default();
    digits.parse().map_err(|_| {
        fail(
            file,
            line,
            key,
            format!("found {value:?}; expected a number"),
        )
    })
}

/// Returns the number of members in a text. md has at most 1,920 members (`MD_SB_DISKS` is 27,
/// superblocks of version 1 have room for 1,920).
pub(super) fn members_of(
    file: &str,
    line: usize,
    key: &str,
    value: &str,
) -> Result<u32, StackError> {
    const MOST: u64 = 1_920;
    match number(file, line, key, value)? {
        members @ 0..=MOST => Ok(members as u32),
        members => {
            let message = format!("found {members}; expected at most {MOST} members");
            Err(fail(file, line, key, message))
        }
    }
}

/// Returns the bytes of a size such as `2930134016 (2.73 TiB 3.00 TB)`. mdadm counts KiB or
/// sectors, by the version of the superblock. The number in brackets decides; without brackets
/// `unit` is the unit. Sizes that mdadm could not tell, such as `-1`, are `None`.
pub(super) fn size_of(value: &str, unit: u64) -> Option<u64> {
    let count: u64 = value.split_whitespace().next()?.parse().ok()?;
    let unit = match binary_size(value) {
        // The unit whose product lies nearer to the size in brackets, which is rounded to two
        // digits.
        Some(bytes) => [512, 1024]
            .into_iter()
            .min_by(|&one, &other| {
                let off = |unit: u64| (count as f64 * unit as f64 - bytes).abs();
                off(one).total_cmp(&off(other))
            })
            .unwrap_or(unit),
        None => unit,
    };
    count.checked_mul(unit)
}

/// Returns the bytes of the number in brackets, such as `(2.73 TiB 3.00 TB)`.
fn binary_size(value: &str) -> Option<f64> {
    let mut words = value.split_once('(')?.1.split_whitespace();
    let count: f64 = words.next()?.parse().ok()?;
    let power = match words.next()? {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        "PiB" => 50,
        _ => return None,
    };
    Some(count * (1_u64 << power) as f64)
}

/// Returns the bytes of a chunk such as `512K`.
pub(super) fn chunk_of(file: &str, line: usize, value: &str) -> Result<Bytes, StackError> {
    let value = value.trim();
    let (digits, unit) = match value.find(|letter: char| !letter.is_ascii_digit()) {
        Some(at) => value.split_at(at),
        None => (value, ""),
    };
    let factor = match unit.trim().chars().next() {
        None => Some(1),
        // mdadm's K and M are powers of 1024.
        Some('K' | 'k') => Some(1024),
        Some('M' | 'm') => Some(1024 * 1024),
        Some(_) => None,
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(count, factor)| count.checked_mul(factor));
    match bytes {
        Some(bytes) if bytes > 0 => Ok(Bytes(bytes)),
        _ => Err(fail(
            file,
            line,
            "Chunk Size",
            format!("found {value:?}; expected for example 512K"),
        )),
    }
}

/// Returns the places of members that a text such as `AA.A` or `UU_U` shows as missing.
pub(super) fn lost_letters(states: &str, members: u32) -> Vec<u32> {
    (0..members)
        .zip(states.chars())
        .filter(|(_, letter)| matches!(letter, '.' | '_'))
        .map(|(member, _)| member)
        .collect()
}

/// Returns the error of an array that changes its shape.
pub(super) fn reshapes(file: &str, line: usize) -> StackError {
    let message = "found an array that changes its shape; expected an array whose layout stays: a reshape is not simulated";
    fail(file, line, "reshape", message.to_owned())
}
