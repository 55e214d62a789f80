//! `fullstroke drive list`: the library.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_lab::capacity;
use fullstroke_measure::{number, table};
use fullstroke_stack::facts;

/// List the drives of the library.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn execute(_: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let drives = facts::library();
    // The list leaves out titles with model numbers, because a line has only 80 characters.
    // `--json` and `drive show` have the titles.
    let mut table = table(
        [
            "name",
            "capacity",
            "rpm",
            "MB/s, outer and inner",
            "seek ms",
        ],
        &[0],
    );
    for drive in &drives {
        table.add_row([
            drive.name.clone(),
            capacity(drive.capacity_bytes),
            drive.rpm.to_string(),
            format!(
                "{} {}",
                number(drive.outer_mb_per_s),
                number(drive.inner_mb_per_s)
            ),
            number(drive.average_seek_ms),
        ]);
    }
    output.show(&drives, table.trim_fmt())
}
