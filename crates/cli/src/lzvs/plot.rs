//! `fullstroke lzvs plot`: draws layouts side by side.

use super::sweep::{ReadArguments, SweepOutput};
use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target, read_for};
use clap::Args;
use fullstroke_lab::lzvs::{Seeks, SimulatedReads, VolumeRates, rates, stream_seeks};
use fullstroke_report::PlotError;
use fullstroke_report::plots::{VolumeDrawing, volumes};
use fullstroke_stack::Overrides;
use fullstroke_units::Sectors;
use serde::Serialize;
use std::path::PathBuf;

/// Draw the volumes of stacks side by side as SVG: the completion time of large reads by address,
/// the transfer rate by address, and the seek distance of each drive between the reads of streams.
/// --json prints the data of the figure. The stacks' workloads are ignored.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stack files.
    #[arg(required = true)]
    stacks: Vec<PathBuf>,

    /// SVG file to write. Default: standard output.
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reads: ReadArguments,
}

/// Data of one stack.
#[derive(Debug, Serialize)]
struct StackPlot {
    #[serde(flatten)]
    swept: SweepOutput,
    rates: VolumeRates,
    seeks: Vec<Seeks>,
}

/// Load for the seek distances: fifty streams and 15,000 requests, as in Lloyd 2002.
const STREAMS: u32 = 50;
const STREAM_READS: u32 = 15_000;
const STREAM_READ: Sectors = Sectors(128);
/// Number of addresses for the transfer rates.
const RATE_POINTS: u32 = 600;

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let target = Target::of("--output", &arguments.output, OutputKind::Figure);
    outputs::check(
        [target],
        &read_for(&arguments.stacks, &Overrides::default(), &[]),
    )?;
    let drawn = |path: &PathBuf| {
        let (stack, service) = arguments.reads.load(path)?;
        // An xor array is one node with its disks inside, so their transfer rates cannot be asked
        // from outside.
        if service.graph.hides_drives() {
            let message = format!(
                "`{}`: the zones of disks of an xor array are not visible",
                path.display()
            );
            return Err(CommandFailure::Input(message));
        }
        let zones: Vec<_> = service
            .graph
            .drive_tracks()
            .map(|tracks| tracks.zone_rates())
            .collect();
        let mut shape = service.shape;
        let rates = rates(&mut shape, &zones, arguments.reads.sectors()?, RATE_POINTS);
        // Each measurement gets new drives, because reads move the heads and fill the buffers.
        let service = stack.serve().map_err(CommandFailure::input)?;
        let capacity = service.shape.capacity();
        let mut target = SimulatedReads::new(service.graph, capacity, stack.seed());
        let seeks = stream_seeks(
            &mut target,
            STREAMS,
            STREAM_READ,
            STREAM_READS,
            stack.seed(),
        );
        let seeks = seeks.map_err(CommandFailure::input)?;
        // New drives again, for the same reason.
        let swept = arguments
            .reads
            .sweep(&stack, stack.serve().map_err(CommandFailure::input)?)?;
        Ok(StackPlot {
            swept,
            rates,
            seeks,
        })
    };
    let all = arguments
        .stacks
        .iter()
        .map(drawn)
        .collect::<Result<Vec<StackPlot>, CommandFailure>>()?;
    let svg = draw(&all).map_err(CommandFailure::input)?;
    match &arguments.output {
        Some(path) => write_whole(path, &svg)?,
        None if !output.json() => output.print(&svg)?,
        None => {}
    }
    if output.json() {
        output.show_json(&all)
    } else {
        Ok(())
    }
}

fn draw(all: &[StackPlot]) -> Result<String, PlotError> {
    let each: Vec<VolumeDrawing<'_>> = all
        .iter()
        .map(|drawn| VolumeDrawing {
            name: &drawn.swept.name,
            sweep: &drawn.swept.sweep,
            rates: &drawn.rates,
            seeks: &drawn.seeks,
        })
        .collect();
    let load = format!("{STREAMS} sequential streams, 64 KiB a read, in random turns");
    volumes(&each, &load)
}
