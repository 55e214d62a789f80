//! `fullstroke drive list`: the library.

use super::facts::Facts;
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_lab::capacity;
use fullstroke_measure::table;
use fullstroke_stack::drives;

/// List the drives of the library.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn execute(_: &Arguments, output: &Output) -> Result<(), Failure> {
    let facts = |name: &&str| drives::load(name).map(|model| Facts::new(name, &model));
    let drives: Vec<Facts> =
        drives::names().iter().map(facts).collect::<Result<_, _>>().map_err(Failure::input)?;
    let mut table =
        table(["name", "capacity", "rpm", "outer MB/s", "inner MB/s", "average seek ms", "title"], &[0, 6]);
    for drive in &drives {
        table.add_row([
            drive.name.clone(),
            capacity(drive.capacity_bytes),
            drive.rpm.to_string(),
            format!("{:.1}", drive.outer_mb_per_s),
            format!("{:.1}", drive.inner_mb_per_s),
            format!("{:.2}", drive.average_seek_ms),
            drive.title.clone(),
        ]);
    }
    output.show(&drives, table.trim_fmt())
}
