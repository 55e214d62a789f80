//! Names of layouts in other systems, with the layout of the same meaning.
//!
//! A suggestion by spelling would be dangerous here: `raidz2` is one letter away from `raid0` with
//! its digit changed, but survives two failed drives, and `raid0` none.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{PolicyEntry, find};

/// Names of other systems, in lower case and without `-`, `_`, `+` and spaces, each with its
/// meaning and the spelling in a stack file. Sources: `md(4)`, `zpoolconcepts(7)`, `lvmraid(7)`,
/// and the RAID levels of SNIA's Disk Data Format 2.0.
const OTHER_NAMES: &[(&[&str], &str)] = &[
    (
        &["raidz", "raidz1", "draid", "draid1", "raid3"],
        "one failed drive is survived, as by `raid5`",
    ),
    (
        &["raidz2", "draid2", "raiddp"],
        "two failed drives are survived, as by `raid6`",
    ),
    (
        &["raidz3", "draid3", "raidtp"],
        "three failed drives are survived; no layout here does that for any three drives, `raid6` survives two",
    ),
    (
        &["raid50"],
        "one failed drive in each part is survived: layout = \"raid0\" over [[volume.members]] with layout = \"raid5\"",
    ),
    (
        &["raid60"],
        "two failed drives in each part are survived: layout = \"raid0\" over [[volume.members]] with layout = \"raid6\"",
    ),
    (
        &["raid01", "raid1e"],
        "one failed drive is survived, as by `raid10`",
    ),
    (
        &["mirror", "mirrors", "mirroring"],
        "`raid1` keeps a copy on every drive and survives the failure of all drives but one; `raid10` survives one failed drive",
    ),
    (
        &["stripe", "striped", "striping"],
        "`raid0`, which survives no failed drive",
    ),
    (
        &["linear", "concat", "span", "spanned", "single"],
        "`jbod`, which survives no failed drive",
    ),
];

/// Returns the layout called `name` of `registry`. The name is a value of the key `layout`.
///
/// # Errors
/// There is no such layout. A name of another system comes with the number of failed drives that it
/// survives, and with the layout of the same meaning.
pub fn find_layout<'a, F>(
    registry: &'a [PolicyEntry<F>],
    name: &str,
) -> Result<&'a PolicyEntry<F>, ConfigError> {
    find("layout", registry, "layout", name).map_err(|error| match meaning(name) {
        None => error,
        Some(meaning) => {
            let known: Vec<&str> = registry.iter().map(|entry| entry.name).collect();
            let known = known.join(", ");
            let message = format!("there is no layout `{name}` here ({meaning}); known: {known}");
            ConfigError::new("layout", message)
        }
    })
}

fn meaning(name: &str) -> Option<&'static str> {
    let plain: String = name
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .collect::<String>()
        .to_lowercase();
    let found = OTHER_NAMES
        .iter()
        .find(|(names, _)| names.contains(&plain.as_str()));
    found.map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::REGISTRY;

    fn refused(name: &str) -> String {
        find_layout(REGISTRY, name).err().unwrap().to_string()
    }

    #[test]
    fn a_name_of_another_system_names_the_failures_that_it_survives() {
        for (name, parts) in [
            ("raidz", ["one failed", "`raid5`"]),
            ("RAID-Z2", ["two failed", "`raid6`"]),
            ("raidz3", ["three failed", "`raid6` survives two"]),
            ("raid60", ["two failed", "\"raid6\""]),
            ("raid50", ["one failed", "\"raid5\""]),
            ("mirror", ["`raid1`", "`raid10`"]),
        ] {
            let message = refused(name);
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }

    #[test]
    fn an_unknown_level_gets_no_suggestion() {
        for name in ["raid7", "raid55", "raid61"] {
            let message = refused(name);
            assert!(!message.contains("did you mean"), "{message}");
        }
        assert!(refused("raid-6").contains("did you mean `raid6`"));
    }

    #[test]
    fn no_layout_has_a_name_of_another_system() {
        for entry in REGISTRY {
            assert_eq!(meaning(entry.name), None);
        }
    }
}
