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
struct DriveCheck {
    drive: String,
    #[serde(flatten)]
    check: Check,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let names = match arguments.drives.as_slice() {
        // Rotating drives only: flash devices have no mechanics that a data sheet could contradict.
        [] => drives::names().into_iter().map(str::to_owned).collect(),
        named => named.to_vec(),
    };
    let mut checked = Vec::new();
    for name in &names {
        let model = drives::load_unchecked(name).map_err(CommandFailure::input)?;
        checked.extend(checks(&model).into_iter().map(|check| DriveCheck {
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

/// Returns a sentence, then every check of a single drive, or a line for each of several drives and
/// their failed checks.
fn render(checked: &[DriveCheck]) -> String {
    let failed = checked.iter().filter(|one| !one.check.passed).count();
    let mut drives: Vec<&str> = checked.iter().map(|one| one.drive.as_str()).collect();
    // The checks of one drive are adjacent, so `dedup` needs no sorting.
    drives.dedup();
    let of = match drives.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("{} drives", several.len()),
    };
    let head = match failed {
        0 => format!("All {} checks of {of} hold.", checked.len()),
        failed => format!("{failed} of {} checks of {of} FAILED.", checked.len()),
    };
    let mut parts = vec![head];
    if drives.len() > 1 {
        let mut table = table(["drive", "checks", "failed"], &[0]);
        for drive in &drives {
            let own = || checked.iter().filter(|one| one.drive == *drive);
            let failed = own().filter(|one| !one.check.passed).count();
            table.add_row([
                (*drive).to_owned(),
                own().count().to_string(),
                failed.to_string(),
            ]);
        }
        parts.push(table.trim_fmt());
    }
    for drive in &drives {
        let own = checked.iter().filter(|one| one.drive == *drive);
        // Of several drives only the failed checks, because the library has hundreds of checks.
        let shown: Vec<&Check> = own
            .map(|one| &one.check)
            .filter(|check| drives.len() == 1 || !check.passed)
            .collect();
        if !shown.is_empty() {
            parts.push(checks_of(drive, &shown));
        }
    }
    parts.join("\n\n")
}

/// Returns the table of the checks of one drive. A failed check names the key to mend.
fn checks_of(drive: &str, checks: &[&Check]) -> String {
    let mut table = table([drive, "found", "expected", ""], &[0, 1, 2, 3]);
    let mut keys = String::new();
    for check in checks {
        let outcome = if check.passed { "ok" } else { "FAILED" };
        table.add_row([check.name, &check.found, &check.expected, outcome]);
        if !check.passed {
            keys += &format!("\nFAILED: {}: mend the key `{}`.", check.name, check.key);
        }
    }
    format!("{}{keys}", table.trim_fmt())
}
