//! The reference page of the report: metrics and the columns of the request log.

use crate::{LOG_COLUMNS, Metric};
use std::fmt::Write as _;

/// Returns the page as Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Metrics and the request log\n\n<!-- Written by `make generate`; a test holds it to the code. -->\n\n\
         `run --json` has every number by its path; `compare --by`, and the claims of studies, take these. \
         `--list-metrics` prints them. A time alone (`response_ms`) means its mean; a reading alone is found among the layers: of several that have it amounts (`_mb`) are added up, of all else it is the mean; \
         `workloads.NAME.response_ms.p99` is that of one of several workloads. \
         Where programs run, `hosts.NAME.operations.fsync.latency_ms.p99` is that of a host's calls (`operations.fsync.latency_ms.p99` where there is one host), \
         and `hosts.NAME.programs.NAME.figures.transactions_per_s` what a program says of itself.\n\n\
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
        "\n## The request log\n\n`run --log FILE` writes one row a request, in order of completion: CSV if the name ends in `.csv` or `.csv.gz`, \
         else Parquet. The six parts from `queue_ns` to `transfer_ns` add up to `response_ns`; they are those of the member I/O that finished last. \
         The mean of `response_ms` is the report's.\n\n| column | type | meaning |\n|---|---|---|\n",
    );
    for column in LOG_COLUMNS {
        let kind = format!("{:?}", column.kind).to_lowercase();
        let _ = writeln!(page, "| `{}` | {kind} | {} |", column.name, column.meaning);
    }
    page
}
