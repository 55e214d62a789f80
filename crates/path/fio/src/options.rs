//! Look-up of options by name, and the reference page of all options.

use crate::option::{OptionEntry, Treatment};
use crate::table::OPTIONS;
use std::fmt::Write as _;

/// Returns the option called `name`.
pub(crate) fn find(name: &str) -> Option<&'static OptionEntry> {
    OPTIONS.iter().find(|entry| entry.names.contains(&name))
}

/// Returns ` (did you mean ...?)` if a known name is near `name`, else an empty text.
pub(crate) fn nearest(name: &str) -> String {
    OPTIONS
        .iter()
        .flat_map(|entry| entry.names)
        .map(|known| (strsim::damerau_levenshtein(name, known), *known))
        .min()
        .filter(|(distance, known)| *distance <= (known.len().max(name.len()) / 3).max(1))
        .map(|(_, known)| format!(" (did you mean `{known}`?)"))
        .unwrap_or_default()
}

/// Returns the reference page of job files, as Markdown.
pub fn reference() -> String {
    let mut page = String::from(include_str!("reference.md"));
    let mut table = |title: &str, text: &str, wanted: fn(&Treatment) -> bool| {
        let _ = write!(
            page,
            "\n## {title}\n\n{text}\n\n| option | meaning |\n|---|---|\n"
        );
        for entry in OPTIONS.iter().filter(|entry| wanted(&entry.treatment)) {
            let names: Vec<String> = entry.names.iter().map(|name| format!("`{name}`")).collect();
            let off = match entry.treatment {
                Treatment::OnFiles(_, off @ [_, ..]) => {
                    format!(" (allowed on a volume: {})", off.join(", "))
                }
                Treatment::Refused(off @ [_, ..]) => format!(" (allowed: {})", off.join(", ")),
                _ => String::new(),
            };
            let files = entry.files.map_or(String::new(), |files| {
                format!("; on files: {}", files.expected())
            });
            let _ = writeln!(
                page,
                "| {} | {}{off}{files} |",
                names.join(", "),
                entry.note
            );
        }
    };
    table(
        "Simulated",
        "An option of this table has the same effect as in fio. The words behind `on files:` hold for jobs on files. There, only the values behind `expected` are accepted.",
        |it| matches!(it, Treatment::Simulated(_)),
    );
    table(
        "Files",
        "In a job on files, an option of this table has the same effect as in fio. In a job on a volume, the option has no effect.",
        |it| matches!(it, Treatment::OnFiles(..)),
    );
    table(
        "Ignored",
        "An option of this table does not change the I/O of a volume. The second column gives the reason. The words behind `on files:` hold for jobs on files. A run lists the ignored options of its job file.",
        |it| matches!(it, Treatment::Ignored),
    );
    table(
        "Refused",
        "An option of this table would change the I/O. Therefore a job with the option is refused. The second column gives a reason or a replacement. The values behind `allowed` switch the option off, and are accepted.",
        |it| matches!(it, Treatment::Refused(_)),
    );
    page.push('\n');
    page.push_str(include_str!("examples.md"));
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_option_stands_twice() {
        let names: Vec<&str> = OPTIONS
            .iter()
            .flat_map(|entry| entry.names)
            .copied()
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn what_files_take_is_on_the_page() {
        let page = reference();
        for files in OPTIONS.iter().filter_map(|entry| entry.files) {
            assert!(page.contains(&files.expected()), "{files:?}");
        }
    }

    #[test]
    fn the_reference_names_every_option() {
        let page = reference();
        for name in OPTIONS.iter().flat_map(|entry| entry.names) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
