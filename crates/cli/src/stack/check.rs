//! `fullstroke stack check`: checks stack files and shows their resulting properties.

use crate::options::Changes;
use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_lab::{VolumeReport, capacity};
use fullstroke_measure::table;
use fullstroke_stack::Stack;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Check stack files and show their resulting properties.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The stack files.
    #[arg(required = true)]
    stacks: Vec<PathBuf>,

    #[command(flatten)]
    changes: Changes,
}

/// Properties of a runnable stack.
#[derive(Debug, Serialize)]
struct StackCheck {
    file: String,
    name: String,
    title: String,
    #[serde(flatten)]
    volume: VolumeReport,
    seed: u64,
    config_digest: String,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let checked: Vec<StackCheck> = arguments
        .stacks
        .iter()
        .map(|file| check(file, &arguments.changes))
        .collect::<Result<_, _>>()?;
    let mut table = table(
        [
            "stack",
            "layout",
            "drives",
            "usable",
            "raw",
            "survives",
            "seed",
            "configuration",
        ],
        &[0, 1, 7],
    );
    for stack in &checked {
        table.add_row([
            stack.name.clone(),
            stack.volume.layout.clone(),
            stack.volume.drives.to_string(),
            capacity(stack.volume.usable_bytes),
            capacity(stack.volume.raw_bytes),
            stack.volume.failures_survived.to_string(),
            stack.seed.to_string(),
            stack.config_digest.clone(),
        ]);
    }
    let mut text = table.trim_fmt();
    text.push_str(&pools(&checked));
    output.show(&checked, text)
}

/// Returns the table of the pools' capacities as ZFS shows them; empty without pools.
fn pools(checked: &[StackCheck]) -> String {
    let mut table = table(
        [
            "pool",
            "zpool list SIZE",
            "zfs list USED+AVAIL",
            "slop",
            "data in records",
            "overhead of a record",
            "padding of it",
        ],
        &[0],
    );
    let mut any = false;
    for stack in checked {
        let Some(pool) = stack.volume.pool else {
            continue;
        };
        any = true;
        table.add_row([
            stack.name.clone(),
            binary(pool.size),
            binary(pool.available),
            binary(pool.slop),
            binary(pool.data),
            binary(pool.record_parity),
            binary(pool.record_padding),
        ]);
    }
    match any {
        true => format!("\n\n{}", table.trim_fmt()),
        false => String::new(),
    }
}

/// Returns a size as `zpool list` writes sizes: three digits and a binary unit.
fn binary(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    let units = ["B", "K", "M", "G", "T", "P", "E"];
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = match value {
        _ if value.fract() == 0.0 => 0,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", units[unit])
}

/// Builds the stack as a run would. So a trace that cannot be opened is an error, too.
fn check(file: &Path, changes: &Changes) -> Result<StackCheck, CommandFailure> {
    let stack = Stack::load(file, &changes.overrides()).map_err(CommandFailure::input)?;
    let run = stack.build().map_err(CommandFailure::input)?;
    Ok(StackCheck {
        file: file.display().to_string(),
        name: stack.name().to_owned(),
        title: stack.title().to_owned(),
        volume: VolumeReport::from(&run.summary),
        seed: stack.seed().0,
        config_digest: stack.digest().to_owned(),
    })
}
