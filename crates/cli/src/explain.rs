//! `fullstroke explain`: probabilities from formulas, without a simulation.

use crate::output::{CommandFailure, CommandOutput};
use clap::{Args, Subcommand};
use fullstroke_predict::{idle_members, merge_chance};
use fullstroke_units::Bytes;
use serde::Serialize;
use std::fmt;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    IdleMembers(IdleMembers),
    MergeChance(MergeChance),
}

/// Calculate the probability that random requests leave a disk of an array idle.
#[derive(Debug, Args)]
pub(crate) struct IdleMembers {
    /// Number of requests in the array at once. Each request goes to one disk.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..=100_000))]
    requests: u32,

    /// Number of disks.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    disks: u32,
}

/// Calculate the probability that random requests have neighbours, which could be merged.
#[derive(Debug, Args)]
pub(crate) struct MergeChance {
    /// Number of waiting requests.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..=20_000))]
    requests: u32,

    /// Size of the address range, such as 100GiB.
    #[arg(long, value_name = "SIZE")]
    capacity: Bytes,

    /// Size of each request. Requests start at multiples of their size.
    #[arg(long, value_name = "SIZE", default_value = "16KiB")]
    size: Bytes,
}

/// Output of `explain idle-members --json`.
#[derive(Debug, Serialize)]
struct Idle {
    requests: u32,
    disks: u32,
    any_idle_probability: f64,
    mean_idle_disks: f64,
    idle_share: f64,
}

/// Output of `explain merge-chance --json`.
#[derive(Debug, Serialize)]
struct Merge {
    requests: u32,
    blocks: u64,
    any_adjacent_probability: f64,
    mean_adjacent_pairs: f64,
    probability_by_carrolls_formula: f64,
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::IdleMembers(arguments) => {
            let found = idle(arguments)?;
            output.show(&found, &found)
        }
        Command::MergeChance(arguments) => {
            let found = merge(arguments)?;
            output.show(&found, &found)
        }
    }
}

fn idle(arguments: &IdleMembers) -> Result<Idle, CommandFailure> {
    let IdleMembers { requests, disks } = *arguments;
    let found = idle_members(requests, disks)
        .ok_or_else(|| CommandFailure::input("--disks: found 0; expected at least 1"))?;
    Ok(Idle {
        requests,
        disks,
        any_idle_probability: found.any_idle,
        mean_idle_disks: found.mean_idle,
        idle_share: found.idle_share,
    })
}

fn merge(arguments: &MergeChance) -> Result<Merge, CommandFailure> {
    let MergeChance {
        requests,
        capacity,
        size,
    } = *arguments;
    // A size of 0 gives no blocks, and the error below names the sizes.
    let blocks = capacity.0.checked_div(size.0).unwrap_or(0);
    let found = merge_chance(requests, blocks).ok_or_else(|| {
        CommandFailure::input(format!(
            "--size {size}: expected more than 0 and no more than the capacity of {capacity}"
        ))
    })?;
    Ok(Merge {
        requests,
        blocks,
        any_adjacent_probability: found.any_adjacent,
        mean_adjacent_pairs: found.mean_pairs,
        probability_by_carrolls_formula: found.as_published,
    })
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} requests, each to one of {} disks at random:",
            self.requests, self.disks
        )?;
        writeln!(
            f,
            "  some disk is idle     {}",
            percent(self.any_idle_probability)
        )?;
        writeln!(f, "  disks idle on average {:.3}", self.mean_idle_disks)?;
        write!(f, "  bandwidth left unused {}", percent(self.idle_share))
    }
}

impl fmt::Display for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} requests, each to one of {} blocks at random:",
            self.requests, self.blocks
        )?;
        writeln!(
            f,
            "  some two are neighbours    {}",
            percent(self.any_adjacent_probability)
        )?;
        writeln!(
            f,
            "  pairs of neighbours        {:.6}",
            self.mean_adjacent_pairs
        )?;
        writeln!(
            f,
            "  Carroll's formula          {}",
            percent(self.probability_by_carrolls_formula)
        )?;
        write!(
            f,
            "  (the value for two requests to one block; a block has two neighbours)"
        )
    }
}

/// Formats a probability with four significant digits, such as `10.87 %`.
fn percent(probability: f64) -> String {
    let percent = 100.0 * probability;
    // The logarithm of 0 is no number of digits.
    let digits = if percent > 0.0 {
        (3.0 - percent.log10().floor()).clamp(0.0, 12.0)
    } else {
        0.0
    };
    format!("{percent:.*} %", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_keep_four_digits() {
        assert_eq!(percent(0.10866), "10.87 %");
        assert_eq!(percent(0.0078125), "0.7812 %");
        assert_eq!(percent(0.000080413), "0.008041 %");
        assert_eq!(
            (percent(1.0), percent(0.0)),
            ("100.0 %".to_owned(), "0 %".to_owned())
        );
    }
}
