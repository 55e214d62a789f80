//! `fullstroke lzvs plot`: layouts beside each other, drawn.

use super::sweep::{Reads, Swept};
use crate::curves::{Area, Curve, panel};
use crate::output::{Failure, Output, write_whole};
use crate::outputs::{self, Kind, Target, read_for};
use clap::Args;
use fullstroke_lab::lzvs::{Rates, Seeks, SimulatedReads, rates, stream_seeks};
use fullstroke_stack::Overrides;
use fullstroke_units::Sectors;
use plotters::prelude::*;
use serde::Serialize;
use std::path::PathBuf;

/// Draw the volumes of stacks beside each other as SVG: completion time of large
/// reads by address, transfer rate by address as the drives' zones allow it, and
/// how far each drive's arm goes between the reads of streams. With --json, the
/// numbers behind it. The stacks' workloads do not count.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stack files.
    #[arg(required = true)]
    stacks: Vec<PathBuf>,

    /// Write to this file; to standard output unless said.
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reads: Reads,
}

/// One stack.
#[derive(Debug, Serialize)]
struct Drawn {
    #[serde(flatten)]
    swept: Swept,
    rates: Rates,
    seeks: Vec<Seeks>,
}

/// The load for the arms: Lloyd's fifty streams and 15,000 requests.
const STREAMS: u32 = 50;
const STREAM_READS: u32 = 15_000;
const STREAM_READ: Sectors = Sectors(128);
/// Addresses at which rates are worked out.
const RATE_POINTS: u32 = 600;

const PAGE: (u32, u32) = (1200, 900);
const UPPER_HEIGHT: u32 = 440;

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let target = Target::of("--output", &arguments.output, Kind::Figure);
    outputs::check(
        [target],
        &read_for(&arguments.stacks, &Overrides::default(), &[]),
    )?;
    let drawn = |path: &PathBuf| {
        let (stack, service) = arguments.reads.load(path)?;
        if service.graph.hides_drives() {
            let message = format!(
                "`{}`: the disks of an xor array do not show their zones",
                path.display()
            );
            return Err(Failure::Input(message));
        }
        let zones: Vec<_> = service
            .graph
            .drive_tracks()
            .map(|tracks| tracks.zone_rates())
            .collect();
        let mut shape = service.shape;
        let rates = rates(&mut shape, &zones, arguments.reads.sectors()?, RATE_POINTS);
        let service = stack.serve().map_err(Failure::input)?;
        let capacity = service.shape.capacity();
        let mut target = SimulatedReads::new(service.graph, capacity, stack.seed());
        let seeks = stream_seeks(
            &mut target,
            STREAMS,
            STREAM_READ,
            STREAM_READS,
            stack.seed(),
        );
        let seeks = seeks.map_err(Failure::input)?;
        let swept = arguments
            .reads
            .sweep(&stack, stack.serve().map_err(Failure::input)?)?;
        Ok(Drawn {
            swept,
            rates,
            seeks,
        })
    };
    let all = arguments
        .stacks
        .iter()
        .map(drawn)
        .collect::<Result<Vec<Drawn>, Failure>>()?;
    let svg =
        draw(&all).map_err(|error| Failure::Input(format!("cannot draw the plot: {error}")))?;
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

fn draw(all: &[Drawn]) -> Result<String, String> {
    let mut svg = String::new();
    let page = SVGBackend::with_string(&mut svg, PAGE).into_drawing_area();
    panels(&page, all).map_err(|error| error.to_string())?;
    page.present().map_err(|error| error.to_string())?;
    drop(page);
    Ok(svg)
}

fn panels(page: &Area<'_>, all: &[Drawn]) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    page.fill(&WHITE)?;
    let (upper, lower) = page.split_vertically(UPPER_HEIGHT);
    let (left, right) = upper.split_horizontally(PAGE.0 / 2);
    let times = all.iter().map(|drawn| Curve {
        name: drawn.swept.name.clone(),
        points: drawn
            .swept
            .sweep
            .points
            .iter()
            .map(|point| (point.percent, point.mean_ms))
            .collect(),
    });
    let read = all
        .first()
        .map_or(Sectors::ZERO, |drawn| drawn.swept.sweep.read_sectors)
        .bytes();
    let caption = format!("Completion time of {read} reads by address");
    panel(
        &left,
        &caption,
        ["address (% of the volume)", "completion time (ms)"],
        &times.collect::<Vec<_>>(),
    )?;
    let rates = all.iter().map(|drawn| {
        let points = &drawn.rates.points;
        let last = points.last().map_or(1, |point| point.start.0).max(1) as f64;
        let place = |point: &fullstroke_lab::lzvs::RateAt| {
            (100.0 * point.start.0 as f64 / last, point.mb_per_s)
        };
        Curve {
            name: drawn.swept.name.clone(),
            points: points.iter().map(place).collect(),
        }
    });
    let axes = ["address (% of the volume)", "rate (MB/s)"];
    panel(
        &right,
        "Transfer rate that the zones allow",
        axes,
        &rates.collect::<Vec<_>>(),
    )?;
    let seeks = all
        .iter()
        .flat_map(|drawn| drawn.seeks.iter().map(|seeks| seek_curve(drawn, seeks)));
    let caption = format!(
        "Moves of the arms under {STREAMS} sequential streams, 64 KiB a read, in random turns"
    );
    panel(
        &lower,
        &caption,
        ["distance (cylinders)", "% of moves up to it"],
        &seeks.collect::<Vec<_>>(),
    )
}

/// The share of moves that go no further, by distance.
fn seek_curve(drawn: &Drawn, seeks: &Seeks) -> Curve {
    let count = seeks.cylinders.len();
    let step = (count / 300).max(1);
    let place = |(index, &cylinders): (usize, &u32)| {
        (
            f64::from(cylinders),
            100.0 * (index + 1) as f64 / count as f64,
        )
    };
    Curve {
        name: format!(
            "{}, drive {}, mean {:.0}",
            drawn.swept.name, seeks.drive, seeks.mean_cylinders
        ),
        points: seeks
            .cylinders
            .iter()
            .enumerate()
            .step_by(step)
            .map(place)
            .collect(),
    }
}
