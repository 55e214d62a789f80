//! `fullstroke drive check`: checks drive descriptions for consistency.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_drive::{Check, checks};
use fullstroke_measure::table;
use fullstroke_stack::drives;
use serde::Serialize;

/// Check that drive descriptions are consistent, agree with the vendor's published figures, and
/// name a source for every number. Exit status 1 if a check fails.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Names from `drive list`, or drive files. Default: the whole library.
    drives: Vec<String>,
}

/// Result of one check of one drive.
#[derive(Debug, Serialize)]
struct Checked {
    drive: String,
    #[serde(flatten)]
    check: Check,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let names = match arguments.drives.as_slice() {
        [] => drives::names().into_iter().map(str::to_owned).collect(),
        named => named.to_vec(),
    };
    let mut checked = Vec::new();
    for name in &names {
        let model = drives::load_unchecked(name).map_err(CommandFailure::input)?;
        checked.extend(checks(&model).into_iter().map(|check| Checked {
            drive: name.clone(),
            check,
        }));
    }
    output.show(&checked, render(&checked))?;
    let failed = checked.iter().any(|checked| !checked.check.passed);
    if failed {
        Err(CommandFailure::Checks)
    } else {
        Ok(())
    }
}

fn render(checked: &[Checked]) -> String {
    let mut table = table(
        ["drive", "check", "key", "found", "expected", ""],
        &[0, 1, 2, 3, 4, 5],
    );
    for Checked { drive, check } in checked {
        let outcome = if check.passed { "ok" } else { "FAILED" };
        table.add_row([
            drive,
            check.name,
            &check.key,
            &check.found,
            &check.expected,
            outcome,
        ]);
    }
    table.trim_fmt()
}
