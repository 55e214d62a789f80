//! What people copy together with a job: a byte order mark, the fences of Markdown, and the command
//! that writes a job file.

use std::borrow::Cow;

/// Returns the job file or the command line in a text that was copied from a page or a script. Lines
/// keep their numbers.
pub(crate) fn bare(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(file) = here_document(text) {
        return Cow::Owned(file);
    }
    let whole = text.trim();
    let quoted = whole
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    if let Some(inside) = quoted.filter(|inside| !inside.contains('`')) {
        return Cow::Borrowed(inside);
    }
    let is_fence = |line: &str| {
        let line = line.trim_start();
        line.starts_with("```") || line.starts_with("~~~")
    };
    if !text.lines().any(is_fence) {
        return Cow::Borrowed(text);
    }
    let kept = text
        .lines()
        .map(|line| if is_fence(line) { "" } else { line });
    Cow::Owned(kept.flat_map(|line| [line, "\n"]).collect())
}

/// Returns the job file in `cat > job.fio <<EOF`, with empty lines in place of the lines in front.
fn here_document(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let (begin, end) = lines.iter().enumerate().find_map(|(at, line)| {
        let (_, behind) = line.split_once("<<")?;
        let word = behind.trim_start_matches('-').split_whitespace().next()?;
        let word = word.trim_matches(['\'', '"', '\\']);
        let is_word = word.starts_with(|first: char| first.is_ascii_alphabetic());
        let length = lines[at + 1..]
            .iter()
            .position(|line| line.trim() == word)?;
        is_word.then_some((at + 1, at + 1 + length))
    })?;
    let is_section = |line: &&str| line.trim_start().starts_with('[');
    if !lines[begin..end].iter().any(is_section) {
        return None;
    }
    let blank = "\n".repeat(begin);
    Some(
        lines[begin..end]
            .iter()
            .flat_map(|line| [*line, "\n"])
            .fold(blank, |text, part| text + part),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_around_a_job_are_left_out_and_lines_keep_their_numbers() {
        for (text, found) in [
            ("\u{feff}[a]\nrw=read\n", "[a]\nrw=read\n"),
            ("```ini\n[a]\n```\n", "\n[a]\n\n"),
            ("`fio --name=a`\n", "fio --name=a"),
            (
                "cat > a.fio <<'EOF'\n[a]\nrw=read\nEOF\nfio a.fio\n",
                "\n[a]\nrw=read\n",
            ),
            (
                "fio --name=a <<EOF\nno sections\nEOF\n",
                "fio --name=a <<EOF\nno sections\nEOF\n",
            ),
            ("[a]\nbs=4k\n", "[a]\nbs=4k\n"),
        ] {
            assert_eq!(bare(text), found, "{text}");
        }
    }
}
