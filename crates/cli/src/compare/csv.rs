//! A ranking as CSV (RFC 4180), with all digits.

use fullstroke_lab::{Ranked, Ranking};

/// Returns the candidates in the order of the first ranking, one line each. Each metric has its
/// value, its interval and the difference to the best; empty cells are unknown values.
pub(super) fn ranking(first: &Ranking, others: &[Ranking]) -> String {
    let rankings: Vec<&Ranking> = std::iter::once(first).chain(others).collect();
    let keys: Vec<&str> = first
        .candidates
        .first()
        .map(|one| one.varied.keys().collect())
        .unwrap_or_default();
    let mut header: Vec<String> = ["rank", "name"].map(str::to_owned).to_vec();
    header.extend(keys.iter().map(|key| (*key).to_owned()));
    for ranking in &rankings {
        let by = &ranking.by;
        header.extend(
            [
                "",
                "_ci95_half_width",
                "_difference",
                "_difference_half_width",
                "_significance",
            ]
            .map(|end| format!("{by}{end}")),
        );
    }
    let volume = [
        "complete",
        "carries",
        "layout",
        "drives",
        "usable_bytes",
        "failures_survived",
    ];
    header.extend(volume.map(str::to_owned));
    let mut lines = vec![line(&header)];
    for one in &first.candidates {
        let mut cells = vec![one.rank.to_string(), one.name.clone()];
        cells.extend(
            keys.iter()
                .map(|key| one.varied.get(key).unwrap_or_default().to_owned()),
        );
        for ranking in &rankings {
            cells.extend(values(ranking, one));
        }
        cells.extend([
            one.complete.to_string(),
            one.carries.to_string(),
            one.volume.layout.clone(),
            one.volume.drives.to_string(),
            one.volume.usable_bytes.to_string(),
            one.volume.failures_survived.to_string(),
        ]);
        lines.push(line(&cells));
    }
    lines.concat()
}

/// Returns the values of a candidate in one ranking.
fn values(ranking: &Ranking, of: &Ranked) -> [String; 5] {
    let found = ranking
        .candidates
        .iter()
        // By name and setting, because the candidates of another metric stand in another order.
        .find(|one| one.name == of.name && one.varied == of.varied);
    let Some(one) = found else {
        return Default::default();
    };
    let difference = one.difference_to_best.as_ref();
    [
        cell(Some(one.value)),
        cell(one.ci95_half_width),
        cell(difference.map(|difference| difference.value)),
        cell(difference.and_then(|difference| difference.half_width)),
        difference.map_or_else(String::new, |one| one.significance.name().to_owned()),
    ]
}

/// Returns a number with all digits; empty if unknown.
fn cell(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or_else(String::new, |value| value.to_string())
}

/// Returns a line of cells. A cell with a comma, a quote or a line break is quoted.
fn line(cells: &[String]) -> String {
    let quoted = cells
        .iter()
        .map(|cell| match cell.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let cells = ["a", "b,c", "d \"e\""].map(str::to_owned);
        assert_eq!(line(&cells), "a,\"b,c\",\"d \"\"e\"\"\"\n");
    }
}
