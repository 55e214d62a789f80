//! `fullstroke lzvs sweep`: shows the completion time by address.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_lab::lzvs::{SimulatedReads, Sweep, sweep};
use fullstroke_measure::table;
use fullstroke_stack::{Overrides, PreparedService, Stack};
use fullstroke_units::{Bytes, Sectors};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Read large blocks across the volume of each stack, one at a time, and show the completion time
/// by address. The stacks' workloads are ignored.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stack files. The others are compared with the first.
    #[arg(required = true)]
    stacks: Vec<PathBuf>,

    #[command(flatten)]
    reads: ReadArguments,
}

/// Options of the reads.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReadArguments {
    /// Size of each read.
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    read_size: Bytes,

    /// Number of addresses at equal distances.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    points: u32,

    /// Number of reads at each address.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    trials: u32,

    /// Set a key of every stack, as in volume.blocking=64KiB (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Sweep of one stack.
#[derive(Debug, Serialize)]
pub(crate) struct SweepOutput {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) sweep: Sweep,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let swept = |path: &PathBuf| {
        let (stack, service) = arguments.reads.load(path)?;
        arguments.reads.sweep(&stack, service)
    };
    let all = arguments
        .stacks
        .iter()
        .map(swept)
        .collect::<Result<Vec<_>, _>>()?;
    output.show(&all, text(&all))
}

impl ReadArguments {
    /// Loads a stack and builds its layers.
    pub(crate) fn load(&self, path: &Path) -> Result<(Stack, PreparedService), CommandFailure> {
        let overrides = Overrides {
            set: self.set.clone(),
            ..Overrides::default()
        };
        // As for clients, so that no workload of the file competes with the reads.
        let stack = Stack::load_for_clients(path, &overrides).map_err(CommandFailure::input)?;
        let service = stack.serve().map_err(CommandFailure::input)?;
        Ok((stack, service))
    }

    /// Returns the size of each read in whole sectors.
    pub(crate) fn sectors(&self) -> Result<Sectors, CommandFailure> {
        self.read_size
            .sectors()
            .filter(|sectors| sectors.0 > 0)
            .ok_or_else(|| {
                CommandFailure::Input(format!(
                    "--read-size {}: expected a positive multiple of 512",
                    self.read_size
                ))
            })
    }

    pub(crate) fn sweep(
        &self,
        stack: &Stack,
        service: PreparedService,
    ) -> Result<SweepOutput, CommandFailure> {
        let capacity = service.shape.capacity();
        let mut target = SimulatedReads::new(service.graph, capacity, stack.seed());
        let sweep = sweep(&mut target, self.sectors()?, self.points, self.trials)
            .map_err(CommandFailure::input)?;
        Ok(SweepOutput {
            name: stack.name().to_owned(),
            sweep,
        })
    }
}

/// Returns a table with a column per stack, as in Lloyd's figure 4.5.
fn text(all: &[SweepOutput]) -> String {
    let first = &all[0].sweep;
    let line = |label: String, value: &dyn Fn(&Sweep) -> String| {
        let cells: Vec<String> = all.iter().map(|swept| value(&swept.sweep)).collect();
        [label, cells.join("  ")]
    };
    let width = all
        .iter()
        .map(|swept| swept.name.len())
        .max()
        .unwrap_or(0)
        // Room for a value with its change in percent.
        .max(14);
    let padded = |text: String| format!("{text:>width$}");
    let heading: Vec<String> = all.iter().map(|swept| padded(swept.name.clone())).collect();
    let mut table = table(["address %", &heading.join("  ")], &[]);
    for (index, point) in first.points.iter().enumerate() {
        let cell = |sweep: &Sweep| padded(format!("{:.1}", sweep.points[index].mean_ms));
        table.add_row(line(format!("{:.0}", point.percent), &cell));
    }
    type Figure = (&'static str, fn(&Sweep) -> f64);
    let figures: [Figure; 3] = [
        ("mean ms", |it| it.mean_ms),
        ("std dev ms", |it| it.std_dev_ms),
        ("max ms", |it| it.max_ms),
    ];
    for (label, of) in figures {
        let cell = |sweep: &Sweep| {
            // Changes are relative to the first stack, which has none.
            let change = match std::ptr::eq(sweep, first) {
                true => String::new(),
                false => format!(" ({:+.1} %)", 100.0 * (of(sweep) / of(first) - 1.0)),
            };
            padded(format!("{:.1}{change}", of(sweep)))
        };
        table.add_row(line(label.to_owned(), &cell));
    }
    table.to_string()
}
