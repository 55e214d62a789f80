//! Finds the drive of the library for a name from the user.
//!
//! Users write `x24`, `Exos X24` or `ST24000NM002H`. A name that fits exactly one drive means this
//! drive. A name that fits several drives is an error with a list of them, because a guess would
//! silently change results.

use fullstroke_contract::registry::nearest;
use std::path::Path;
use thiserror::Error;

/// A name that does not mean exactly one drive of the library.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum DriveNameError {
    #[error(
        "there is no such drive in the library{near}; `fullstroke drive list` shows all drives; the name of a drive file ends in .toml"
    )]
    None {
        /// Suggestion of the most similar name, or empty.
        near: String,
    },
    #[error("may mean several drives of the library; name one of: {names}")]
    Several { names: String },
}

/// Returns the name of the drive in `library` that `wanted` means. The entries of `library` are
/// names and titles. `wanted` is the exact name, or words that all occur in the name or in the
/// title.
///
/// # Errors
/// Lists the drives that fit, or suggests the most similar name.
pub(crate) fn resolve<'a>(
    wanted: &str,
    library: &[(&'a str, &str)],
) -> Result<&'a str, DriveNameError> {
    // First, because an exact name may also be the beginning of longer names.
    if let Some((name, _)) = library.iter().find(|(name, _)| *name == wanted) {
        return Ok(name);
    }
    let fits = |entry: &&(&str, &str)| fits(wanted, entry.0) || fits(wanted, entry.1);
    let meant: Vec<&str> = library.iter().filter(fits).map(|(name, _)| *name).collect();
    match meant.as_slice() {
        [name] => Ok(name),
        [] => {
            let names: Vec<&str> = library.iter().map(|(name, _)| *name).collect();
            Err(DriveNameError::None {
                near: nearest(wanted, &names),
            })
        }
        several => Err(DriveNameError::Several {
            names: several.join(", "),
        }),
    }
}

/// Returns true if each word of `wanted` starts a word of `text`. Also true if `text` contains
/// `wanted` after removal of all characters except letters and digits (`24tb` is `24 TB`).
fn fits(wanted: &str, text: &str) -> bool {
    let (sought, words) = (words(wanted), words(text));
    let begins = |sought: &String| words.iter().any(|word| word.starts_with(sought.as_str()));
    // A single letter or digit fits too many drives.
    let says_enough = sought.iter().map(String::len).sum::<usize>() >= 2;
    // The joined words find `wd40 efpx`, which divides a word of the name.
    says_enough && (sought.iter().all(begins) || words.concat().contains(&sought.concat()))
}

fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns the file and the block of a drive in a parameter file of DiskSim (`FILE#BLOCK`). Returns
/// `None` if the file is not of this kind.
pub(crate) fn disksim_name(name: &str) -> Option<(&str, Option<&str>)> {
    let (file, block) = match name.split_once('#') {
        Some((file, block)) => (file, Some(block)),
        None => (name, None),
    };
    let extension = Path::new(file).extension()?.to_str()?;
    ["parv", "diskspecs", "model"]
        .contains(&extension)
        .then_some((file, block))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &[(&str, &str)] = &[
        (
            "seagate-cheetah-9lp",
            "Seagate Cheetah 9LP ST39102LW 9.1 GB",
        ),
        (
            "seagate-cheetah-9lp-measured",
            "Seagate Cheetah 9LP ST39102LW 9.1 GB, as measured",
        ),
        (
            "seagate-exos-2x18-18tb",
            "Seagate Exos 2X18 18 TB, two actuators",
        ),
        (
            "seagate-exos-x24-24tb",
            "Seagate Exos X24 24 TB ST24000NM002H",
        ),
    ];

    #[test]
    fn a_name_is_itself_even_where_longer_names_begin_with_it() {
        assert_eq!(
            resolve("seagate-cheetah-9lp", LIBRARY),
            Ok("seagate-cheetah-9lp")
        );
    }

    #[test]
    fn words_in_any_order_and_model_numbers_are_understood() {
        for wanted in [
            "x24",
            "Exos X24",
            "X24 exos",
            "ST24000NM002H",
            "st24000",
            "24 TB",
            "24TB",
            "exos-x24",
        ] {
            assert_eq!(
                resolve(wanted, LIBRARY),
                Ok("seagate-exos-x24-24tb"),
                "{wanted}"
            );
        }
    }

    #[test]
    fn what_fits_several_drives_lists_them() {
        let message = resolve("exos", LIBRARY).unwrap_err().to_string();
        assert!(
            message.contains("seagate-exos-2x18-18tb, seagate-exos-x24-24tb"),
            "{message}"
        );
        assert!(
            resolve("9lp", LIBRARY)
                .unwrap_err()
                .to_string()
                .contains("several")
        );
    }

    #[test]
    fn what_fits_none_names_the_nearest() {
        let message = resolve("seagate-exos-x42-24tb", LIBRARY)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("did you mean `seagate-exos-x24-24tb`"),
            "{message}"
        );
        for nonsense in ["", "-", "9", "quantum bigfoot"] {
            assert!(
                resolve(nonsense, LIBRARY)
                    .unwrap_err()
                    .to_string()
                    .contains("no such drive"),
                "{nonsense}"
            );
        }
    }
}
