//! `fullstroke lzvs plan`: plans a volume of constant transfer rate over two drives.

use super::measure::{self, MeasureOptions, measure};
use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target};
use clap::Args;
use fullstroke_contract::ZoneRate;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Reason, reason};
use fullstroke_drive::DriveModel;
use fullstroke_lab::lzvs::{Offer, Pair, Survey, ZoneLine};
use fullstroke_measure::table;
use fullstroke_stack::drives;
use fullstroke_units::{Bytes, Sectors};
use fullstroke_volume::{
    Floor, LzvsConfig, LzvsGeoConfig, MemberZone, Ratio, VolumePart, lzvs_geo,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Plan a volume of constant transfer rate over two drives, and write its stack file. The plan is
/// compared with RAID 0 and with RAID 0 of the outer part of the drives.
///
/// By default, timed reads of the first drive give the ratio and the number of zones. The rates of
/// large sequential transfers follow from the drives' zones.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Drive: a name from `drive list`, or a drive file. Give the option twice for two different
    /// drives.
    #[arg(long = "drive", value_name = "DRIVE", required = true, num_args = 1)]
    drives: Vec<String>,

    /// Number of logical zones, which must be even, or `auto`.
    #[arg(long, value_name = "NUMBER", default_value = "auto")]
    zones: String,

    /// Ratio of outer to inner transfer rate, such as 800/370, or `auto`.
    #[arg(long, value_name = "RATIO", default_value = "auto")]
    ratio: String,

    /// Chunk size on the slower drive of each pair of zones.
    #[arg(long, value_name = "SIZE", default_value = "8KiB")]
    blocking: Bytes,

    /// Part of the volume with its floor in MB/s, as in 200GB@60 (may be repeated). The plan then
    /// follows the drives' real zones.
    #[arg(long = "floor", value_name = "SIZE@RATE", value_parser = floor)]
    floors: Vec<Floor>,

    /// Stack file to write.
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,

    #[command(flatten)]
    trials: MeasureOptions,
}

/// Output of `lzvs plan --json`.
#[derive(Debug, Serialize)]
struct PlannedVolume {
    drives: [String; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Survey>,
    layout: LzvsConfig,
    /// Sectors of the larger drive without a counterpart on the smaller one.
    unequal_sectors: Sectors,
    zones: Vec<ZoneLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<VolumePart>,
    offers: Vec<Offer>,
}

fn floor(text: &str) -> Result<Floor, Reason> {
    let expected = || reason!("found `{text}`; expected SIZE@RATE, such as 200GB@60");
    let (size, rate) = text.split_once('@').ok_or_else(expected)?;
    let floor_mb_per_s = rate
        .trim()
        // `60MB/s` is accepted too.
        .trim_end_matches("MB/s")
        .trim()
        .parse()
        .map_err(|_| expected())?;
    Ok(Floor {
        size: size.trim().parse().map_err(|_| expected())?,
        floor_mb_per_s,
    })
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let names = match &arguments.drives[..] {
        // One drive stands for a pair of equal drives.
        [one] => [one.clone(), one.clone()],
        [one, other] => [one.clone(), other.clone()],
        more => {
            return Err(CommandFailure::Input(format!(
                "--drive: found {}; expected one or two",
                more.len()
            )));
        }
    };
    outputs::check(
        [Target::of("--output", &arguments.output, OutputKind::Toml)],
        &names.clone().map(PathBuf::from),
    )?;
    let models = [
        drives::load(&names[0]).map_err(CommandFailure::input)?,
        drives::load(&names[1]).map_err(CommandFailure::input)?,
    ];
    let plan = PlannedVolume::new(arguments, names, &models)?;
    // Written before the text, because the stack file must not depend on a reader of standard
    // output.
    if let Some(path) = &arguments.output {
        write_whole(path, plan.stack(&arguments.floors))?;
    }
    output.show(&plan, plan.text())
}

/// Returns the zones and the ratio of the command line. `None` means "auto".
fn given(arguments: &Arguments) -> Result<(Option<u32>, Option<Ratio>), CommandFailure> {
    let given = |text: &str| (text != "auto").then(|| text.to_owned());
    let zones = given(&arguments.zones).map(|text| {
        text.parse().map_err(|_| {
            CommandFailure::Input(format!("--zones {text}: expected an even number, or auto"))
        })
    });
    let ratio = given(&arguments.ratio).map(|text| {
        text.parse::<Ratio>()
            .map_err(|error| CommandFailure::Input(format!("--ratio: {error}")))
    });
    Ok((zones.transpose()?, ratio.transpose()?))
}

fn member_zones(zones: &[ZoneRate]) -> Vec<MemberZone> {
    let zones = zones.iter().map(|zone| MemberZone {
        sectors: zone.sectors,
        bytes_per_s: zone.bytes_per_s,
    });
    zones.collect()
}

impl PlannedVolume {
    fn new(
        arguments: &Arguments,
        drives: [String; 2],
        models: &[DriveModel; 2],
    ) -> Result<PlannedVolume, CommandFailure> {
        let (zones, ratio) = given(arguments)?;
        let (measured, zones, ratio) = match (zones, ratio) {
            (Some(zones), Some(ratio)) => (None, zones, ratio),
            // One given value still needs the measurement of the other, and a survey finds both.
            (zones, ratio) => {
                let found = measure(&models[0], &arguments.trials)?;
                // The layout needs an even number of zones, at least 4.
                let measured_zones = found.zones.next_multiple_of(2).max(4);
                let (zones, ratio) = (
                    zones.unwrap_or(measured_zones),
                    ratio.unwrap_or(found.ratio),
                );
                (Some(found), zones, ratio)
            }
        };
        let layout = LzvsConfig {
            zones,
            ratio,
            blocking: arguments.blocking,
        };
        let pair = Pair {
            zones: [0, 1].map(|drive: usize| models[drive].tracks().zone_rates()),
        };
        let [a, b] = pair.members();
        let mut geo = LzvsGeoConfig {
            blocking: arguments.blocking,
            zones: Vec::new(),
            member_zones: pair.zones.iter().map(|zones| member_zones(zones)).collect(),
        };
        let of = |name: &str, keys: Keys| {
            pair.offer(name, &keys)
                .map(|(offer, _)| offer)
                .map_err(CommandFailure::input)
        };
        // Comes first, because the outer part for RAID 0 is chosen by this floor.
        let planned = of("lzvs", keys_of(&layout)?)?;
        let outer = pair
            .short_stroked(planned.floor_mb_per_s)
            .map_err(CommandFailure::input)?;
        let mut offers = vec![of("raid0", Keys::new())?];
        offers.extend(outer);
        offers.push(planned);
        offers.push(of("lzvs-geo", keys_of(&geo)?)?);
        // Set after the offers, which are compared without floors.
        geo.zones.clone_from(&arguments.floors);
        let parts = match geo.zones.is_empty() {
            true => Vec::new(),
            false => lzvs_geo::parts(&geo, &pair.members()).map_err(CommandFailure::input)?,
        };
        Ok(PlannedVolume {
            drives,
            zones: pair.zone_lines(&layout).map_err(CommandFailure::input)?,
            measured,
            layout,
            unequal_sectors: Sectors(a.0.abs_diff(b.0)),
            parts,
            offers,
        })
    }

    fn text(&self) -> String {
        let LzvsConfig {
            zones,
            ratio,
            blocking,
        } = &self.layout;
        let mut text = format!("{} and {}\n", self.drives[0], self.drives[1]);
        if let Some(found) = &self.measured {
            text += &format!(
                "measured on the first drive: {}\n",
                measure::text(found).replace('\n', "; ")
            );
        }
        text += &format!("planned: ratio {ratio}, {zones} zones, blocks of {blocking}\n");
        if self.unequal_sectors > Sectors::ZERO {
            let size = gb(self.unequal_sectors.bytes());
            text += &format!(
                "the drives differ: {size} GB of the larger have no counterpart, and are lost to raid0 and lzvs\n"
            );
        }
        text += &format!("\n{}\n\n{}", self.zone_table(), self.offer_table());
        let floor = |layout: &str| {
            self.offers
                .iter()
                .find(|offer| offer.layout == layout)
                .map(|offer| offer.floor_mb_per_s)
        };
        // A drive whose rates do not fall with the address (a flash device, or a disk with
        // scattered spares) gains nothing from the pairing.
        if floor("lzvs") <= floor("raid0") {
            text += "\n\nlzvs has no higher floor than raid0 here: the transfer rates of these drives do not fall from the first address to the last";
        }
        if !self.parts.is_empty() {
            let mut parts = table(["part", "first sector", "GB", "floor MB/s"], &[]);
            for (number, part) in self.parts.iter().enumerate() {
                parts.add_row([
                    number.to_string(),
                    part.start.0.to_string(),
                    gb(part.sectors.bytes()),
                    format!("{:.1}", part.floor_bytes_per_s as f64 / 1e6),
                ]);
            }
            text += &format!("\n\n{parts}");
        }
        text
    }

    /// Returns the table of zones with their counterparts.
    fn zone_table(&self) -> String {
        let mut lines = table(
            [
                "zone",
                "counterpart",
                "ratio",
                "ideal",
                "sectors",
                "of counterpart",
            ],
            &[],
        );
        for line in &self.zones {
            lines.add_row([
                line.zone.to_string(),
                (self.layout.zones - 1 - line.zone).to_string(),
                format!("{:.3}", line.ratio),
                format!("{:.3}", line.ideal_ratio),
                line.sectors.0.to_string(),
                line.counterpart_sectors.0.to_string(),
            ]);
        }
        lines.to_string()
    }

    /// Returns the table of the layouts' capacities and rates.
    fn offer_table(&self) -> String {
        let mut offers = table(
            [
                "layout",
                "capacity GB",
                "kept %",
                "floor MB/s",
                "mean",
                "top",
            ],
            &[0],
        );
        for offer in &self.offers {
            offers.add_row([
                offer.layout.clone(),
                gb(offer.capacity),
                format!("{:.2}", 100.0 * offer.kept),
                format!("{:.1}", offer.floor_mb_per_s),
                format!("{:.1}", offer.mean_mb_per_s),
                format!("{:.1}", offer.top_mb_per_s),
            ]);
        }
        offers.to_string()
    }

    /// Returns the text of the stack file.
    fn stack(&self, floors: &[Floor]) -> String {
        let LzvsConfig {
            zones,
            ratio,
            blocking,
        } = &self.layout;
        let mut text = format!(
            "title = {}\nseed = 1\n\n",
            json!(format!("{} and {}", self.drives[0], self.drives[1]))
        );
        text += "# Large random reads, one at a time: the load of the floor.\n\
                 [workload]\nkind = \"synthetic\"\nrequests = 1000\nsize = \"8MiB\"\n\
                 arrivals = { process = \"closed\", outstanding = 1 }\n\n[volume]\n";
        text += &match floors.is_empty() {
            // Several floors need `lzvs-geo`, because `lzvs` has one rate everywhere.
            true => format!(
                "layout = \"lzvs\"\nzones = {zones}\nratio = \"{ratio}\"\nblocking = \"{blocking}\"\n"
            ),
            false => format!("layout = \"lzvs-geo\"\nblocking = \"{blocking}\"\n"),
        };
        for name in &self.drives {
            text += &format!(
                "\n[[volume.members]]\ndrive = {}\n",
                json!(found_from(name))
            );
        }
        for Floor {
            size,
            floor_mb_per_s,
        } in floors
        {
            text += &format!(
                "\n[[volume.zones]]\nsize = {}\nfloor_mb_per_s = {floor_mb_per_s}\n",
                size.0
            );
        }
        text
    }
}

fn gb(size: Bytes) -> String {
    format!("{:.1}", size.0 as f64 / 1e9)
}

/// Returns a drive name that is valid in a stack file of any folder: a file has its absolute path.
fn found_from(name: &str) -> String {
    match Path::new(name).canonicalize() {
        Ok(whole) if whole.is_file() => whole.display().to_string(),
        _ => name.to_owned(),
    }
}

fn keys_of(config: &impl Serialize) -> Result<Keys, CommandFailure> {
    match serde_json::to_value(config).map_err(CommandFailure::input)? {
        Value::Object(keys) => Ok(keys),
        other => Err(CommandFailure::Input(format!(
            "{other} is not a table of keys"
        ))),
    }
}
