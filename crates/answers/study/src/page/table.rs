//! Lines of tables, and numbers with nouns.

/// Returns a line of a table. Ends of a cell in the text are escaped.
pub(super) fn row<const CELLS: usize>(cells: [&str; CELLS]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", cells.join(" | "))
}

/// Returns a number with its noun: `1 claim`, `2 claims`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns the verb for a number of claims: `1 holds`, `2 hold`.
pub(super) fn holding(number: usize) -> String {
    format!("{number} {}", if number == 1 { "holds" } else { "hold" })
}
