//! The reference page of the report: metrics and the columns of the request log.

use crate::{LOG_COLUMNS, Metric};
use std::fmt::Write as _;

/// Returns the page as Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Metrics and the request log\n\n<!-- Written by `make generate`; a test holds the page to the code. -->\n\n\
         `run --json` has every number under its path. `compare --by` and the claims of studies use the same paths. `--list-metrics` prints the paths. A time without a suffix (`response_ms`) is the mean. A reading without a layer is searched in all layers: amounts (`_mb`) are added, other readings are averaged. `workloads.NAME.response_ms.p99` belongs to one of several workloads. With programs, `hosts.NAME.operations.fsync.latency_ms.p99` belongs to the calls of a host (`operations.fsync.latency_ms.p99` with one host), and `hosts.NAME.programs.NAME.figures.transactions_per_s` is a figure that the program itself reports.\n\n\
         | metric | unit | better | meaning |\n|---|---|---|---|\n",
    );
    for metric in Metric::all() {
        let better = if metric.more_is_better() {
            "more"
        } else {
            "less"
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {better} | {} |",
            metric.name(),
            metric.unit(),
            metric.meaning()
        );
    }
    page.push_str(
        "\n## The request log\n\n`run --log FILE` writes one row per request, in order of completion: CSV if the name ends in `.csv` or `.csv.gz`, otherwise Parquet. The six parts from `queue_ns` to `transfer_ns` add up to `response_ns`; they belong to the member I/O that finished last. The mean of `response_ms` equals that of the report.\n\n| column | type | meaning |\n|---|---|---|\n",
    );
    for column in LOG_COLUMNS {
        let kind = format!("{:?}", column.kind).to_lowercase();
        let _ = writeln!(page, "| `{}` | {kind} | {} |", column.name, column.meaning);
    }
    page
}
