//! Folded parts of a page, and names for links.

use std::fmt::Write as _;

/// Writes a part that opens at a click. `title` is one line.
pub(super) fn fold(title: &str, inner: &str, text: &mut String) {
    // Without the empty lines, Markdown readers take the inner text for HTML and show tables as
    // plain text.
    let _ = write!(
        text,
        "<details>\n<summary>{title}</summary>\n\n{}\n\n</details>\n\n",
        inner.trim()
    );
}

/// Returns the name that sites of Markdown pages give a heading.
pub(super) fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter if letter.is_alphanumeric() => Some(letter),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_has_the_name_of_its_link() {
        assert_eq!(
            anchor("Deadline, and the batch counter (RAID-5)"),
            "deadline-and-the-batch-counter-raid-5"
        );
    }

    #[test]
    fn a_fold_has_empty_lines_around_its_text() {
        let mut text = String::new();
        fold("Two claims", "| a |\n|---|\n", &mut text);
        assert_eq!(
            text,
            "<details>\n<summary>Two claims</summary>\n\n| a |\n|---|\n\n</details>\n\n"
        );
    }
}
