//! Imports the drives of a parameter file.

use crate::electronics::{BusTimes, Electronics};
use crate::error::{ErrorKind, ImportError, ImportLoss};
use crate::fields::BlockFields;
use crate::files::{FileSystem, ReadFiles};
use crate::grammar::{self, Content, Document, Item, Topology, TypeBlock};
use crate::layout::{ImportedLayout, LayoutDisk};
use crate::reading::Reading;
use crate::rules;
use crate::{g1, g4, seek};
use fullstroke_drive::{
    DriveConfig, ElectronicsConfig, Geometry, Published, QueueConfig, SeekDirection, ZeroLatency,
};
use fullstroke_units::Sectors;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const MODEL_KEYS: &[&str] = &[
    "Block count",
    "Number of data surfaces",
    "Number of cylinders",
    "Mechanical Model",
    "Layout Model",
];
const MECHANICS_KEYS: &[&str] = &[
    "Access time type",
    "Constant access time",
    "Add. write settling delay",
    "Head switch time",
    "Rotation speed (in rpms)",
    "Percent error in rpms",
];
/// Largest number of surfaces of a disk.
const MAX_SURFACES: i64 = 256;
/// Largest number of cylinders of a disk. The seek curve is a table with one entry per distance.
const MAX_CYLINDERS: i64 = 1 << 22;

/// A disk of a parameter file.
#[derive(Clone, Debug, Serialize)]
pub struct Imported {
    /// Name of the disk's block.
    pub name: String,
    /// Geometry, mechanics and queue.
    pub config: DriveConfig,
    /// Buffer, overheads, bus and scheduler, with the values of the file. Default values if the
    /// file describes mechanics only.
    pub electronics: Electronics,
    /// Properties that could not be imported exactly.
    pub losses: Vec<ImportLoss>,
}

/// Reads the disks of a `.parv`, `.diskspecs` or `.model` file: the disks that the file
/// instantiates, or all disks if it instantiates none. With a name in `options`, only the disk with
/// this block or component name. Unknown keys are losses or, in a strict import, errors.
///
/// # Errors
/// Names the file, line and key, the text found and the text expected.
pub fn import(path: &Path, options: &ImportOptions) -> Result<Vec<Imported>, ImportError> {
    import_from(&FileSystem, path, options)
}

/// The options of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportOptions {
    /// Name of the block or component of the only disk to import; `None` = all.
    pub name: Option<String>,
    /// True to treat unknown keys as errors.
    pub strict: bool,
    /// Interpretation of the numbers.
    pub reading: Reading,
}

/// Like [`import`], from any source of files.
///
/// # Errors
/// As for [`import`].
pub fn import_from(
    files: &dyn ReadFiles,
    path: &Path,
    options: &ImportOptions,
) -> Result<Vec<Imported>, ImportError> {
    let document = grammar::parse(files, path)?;
    let wanted = wanted(&document, path, options.name.as_deref())?;
    let import = Import {
        files,
        document: &document,
        strict: options.strict,
        reading: options.reading,
    };
    wanted
        .into_iter()
        .map(|(block, instance)| import.disk(&block, instance.as_deref()))
        .collect()
}

/// Parses a parameter file and all included files.
///
/// # Errors
/// If the text does not follow the grammar, or if a file cannot be read.
pub fn document(files: &dyn ReadFiles, path: &Path) -> Result<Document, ImportError> {
    grammar::parse(files, path)
}

/// Blocks of disks, each with the name of a component made from the block.
type Wanted = Vec<(Arc<TypeBlock>, Option<String>)>;

fn wanted(document: &Document, path: &Path, name: Option<&str>) -> Result<Wanted, ImportError> {
    let mut instances: BTreeMap<&str, &[String]> = BTreeMap::new();
    for item in &document.items {
        if let Item::Instantiate { names, of, .. } = item {
            // One disk stands for all instances of a block, because the instances are equal.
            instances.entry(of).or_insert(names);
        }
    }
    let mut disks: Wanted = Vec::new();
    for kind in ["disksim_disk", "dm_disk"] {
        let blocks = document.items.iter().filter_map(|item| match item {
            Item::Block(block) if block.kind == kind => Some(block),
            _ => None,
        });
        let mut seen = BTreeSet::new();
        // A second definition of a name has no effect, so only the first block counts.
        let named = blocks.filter(|block| seen.insert(block.name.clone()));
        disks.extend(named.map(|block| {
            let own = block
                .name
                .as_deref()
                .and_then(|name| instances.get(name))
                .and_then(|names| names.first());
            (Arc::clone(block), own.cloned())
        }));
        // Blocks of models count only if there are no blocks of disks.
        if !disks.is_empty() {
            break;
        }
    }
    let all: Vec<String> = disks
        .iter()
        .filter_map(|(block, _)| block.name.clone())
        .collect();
    if let Some(name) = name {
        let is_called = |block: &TypeBlock| {
            let own = block.name.as_deref().unwrap_or_default();
            own == name
                || instances
                    .get(own)
                    .is_some_and(|names| names.iter().any(|instance| instance == name))
        };
        disks.retain(|(block, _)| is_called(block));
    } else if disks.iter().any(|(_, instance)| instance.is_some()) {
        // A block that nothing instantiates is a leftover of a copied file.
        disks.retain(|(_, instance)| instance.is_some());
    }
    if disks.is_empty() {
        let found = match name {
            Some(name) => format!("no disk called `{}`", grammar::shortened(name)),
            None => "no disk".to_owned(),
        };
        let expected = match all.is_empty() {
            true => "a block of type disksim_disk or dm_disk".to_owned(),
            false => format!("one of {}", all.join(", ")),
        };
        return Err(ImportError::whole(ErrorKind::NoDisk, path, found, expected));
    }
    Ok(disks)
}

struct Import<'a> {
    files: &'a dyn ReadFiles,
    document: &'a Document,
    strict: bool,
    reading: Reading,
}

impl Import<'_> {
    fn disk(&self, block: &TypeBlock, instance: Option<&str>) -> Result<Imported, ImportError> {
        let mut losses: Vec<ImportLoss> = self
            .document
            .notes
            .iter()
            .map(|(at, note)| {
                ImportLoss::new(
                    "",
                    format!("{}:{}: {note}", file_name(self.document.file(*at)), at.line),
                )
            })
            .collect();
        let fields = BlockFields::new(self.document, block, "");
        let name = block.name.clone().unwrap_or_default();
        let (electronics, mut config) = if block.kind == "dm_disk" {
            losses.push(ImportLoss::new(
                "",
                "the file describes mechanics only: no buffer, no overheads",
            ));
            (
                Electronics::default(),
                self.model(&fields, &name, &mut losses)?,
            )
        } else {
            let mut electronics = Electronics::read(&fields, self.strict, &mut losses)?;
            electronics.bus = self.bus(instance, &mut losses)?;
            let model = fields.required("Model")?;
            let prefix = format!("{}.", model.key);
            let model = BlockFields::new(self.document, model.block()?, &prefix);
            let mut config = self.model(&model, &name, &mut losses)?;
            queue(&electronics, &mut config, &mut losses);
            rules::apply(&electronics, &mut config, &self.reading);
            (electronics, config)
        };
        config
            .sources
            .insert("capacity_sectors".into(), config.sources["zones"].clone());
        Ok(Imported {
            name,
            config,
            electronics,
            losses,
        })
    }

    fn model(
        &self,
        fields: &BlockFields<'_>,
        name: &str,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<DriveConfig, ImportError> {
        fields.only(MODEL_KEYS, self.strict, losses)?;
        let announced = fields
            .required("Number of cylinders")?
            .within(1, MAX_CYLINDERS)? as u32;
        let disk = LayoutDisk {
            surfaces: fields
                .required("Number of data surfaces")?
                .within(1, MAX_SURFACES)? as u32,
            // Some layouts use the cylinder behind the last announced one; the disk grows with them
            // below.
            cylinders: announced + 1,
            blocks: fields.required("Block count")?.amount()?,
        };
        let found = fields.required("Layout Model")?;
        let prefix = format!("{}.", found.key);
        let block = found.block()?;
        let layout_fields = BlockFields::new(self.document, block, &prefix);
        let mut layout = match block.kind.as_str() {
            "dm_layout_g1" => g1::read(&layout_fields, disk, self.strict, losses)?,
            "dm_layout_g4" => g4::read(&layout_fields, disk, self.strict, losses)?,
            "dm_layout_g2" => {
                let expected =
                    "dm_layout_g1 or dm_layout_g4; a g2 layout names a map of every extent instead";
                return Err(found.error(
                    ErrorKind::Unsupported,
                    "a layout of type `dm_layout_g2`",
                    expected,
                ));
            }
            other => {
                let found_text = format!("a layout of type `{other}`");
                return Err(found.error(
                    ErrorKind::WrongValue,
                    found_text,
                    "dm_layout_g1 or dm_layout_g4",
                ));
            }
        };
        let disk = LayoutDisk {
            cylinders: layout.cylinders(announced, losses),
            ..disk
        };
        // After the cylinders are known: a cut zone may end before the last announced cylinder, and
        // the arm still reaches there.
        layout.cut(disk.blocks, losses);
        let mechanics = fields.required("Mechanical Model")?;
        let prefix = format!("{}.", mechanics.key);
        let mechanics_fields = BlockFields::new(self.document, mechanics.block()?, &prefix);
        let config = self.mechanics(&mechanics_fields, disk, &layout, name, losses)?;
        self.check(&config, &layout, fields)?;
        Ok(config)
    }

    fn mechanics(
        &self,
        fields: &BlockFields<'_>,
        disk: LayoutDisk,
        layout: &ImportedLayout,
        name: &str,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<DriveConfig, ImportError> {
        if fields.block.kind != "dm_mech_g1" {
            let found = format!("mechanics of type `{}`", fields.block.kind);
            return Err(fields.error(
                ErrorKind::WrongValue,
                fields.block.at,
                "",
                found,
                "dm_mech_g1",
            ));
        }
        let known: Vec<&str> = MECHANICS_KEYS.iter().chain(seek::KEYS).copied().collect();
        fields.only(&known, self.strict, losses)?;
        access_time(fields, losses)?;
        let seek = seek::curve(self.files, fields, disk.cylinders, losses)?;
        let settle = fields.required("Add. write settling delay")?;
        let write_settle_ms = settle.number()?;
        let rpm = rotation_speed(fields, losses)?;
        let sources = self.sources(fields, layout);
        Ok(DriveConfig {
            title: name.to_owned(),
            capacity_sectors: Sectors(layout.lbns()),
            // DiskSim has blocks of 512 bytes only.
            physical_sector: 512,
            logical_sector: 512,
            rpm,
            surfaces: disk.surfaces,
            actuators: 1,
            order: layout.order,
            band_tracks: 32,
            band_start: SeekDirection::Inward,
            zones: layout
                .zones
                .iter()
                .map(|zone| zone.config.clone())
                .collect(),
            seek,
            head_switch_ms: fields.required("Head switch time")?.milliseconds()?,
            write_settle_ms,
            turn_round_ms: 0.0,
            zero_latency: ZeroLatency::All(false),
            command_overhead_ms: 0.0,
            queued_overhead_ms: 0.0,
            electronics: ElectronicsConfig::default(),
            buffer: None,
            queue: QueueConfig {
                depth: 1,
                discipline: "fcfs".into(),
                ..QueueConfig::default()
            },
            power: None,
            spin_down: None,
            faults: None,
            freeblock: None,
            limits: None,
            shingled: None,
            zoned: None,
            flash: None,
            published: Published::default(),
            validated: None,
            sources,
        })
    }

    /// Returns the source file of each number.
    fn sources(
        &self,
        fields: &BlockFields<'_>,
        layout: &ImportedLayout,
    ) -> BTreeMap<String, String> {
        let source = |at| {
            format!(
                "DiskSim parameter file {}",
                file_name(self.document.file(at))
            )
        };
        let mechanics = source(fields.block.at);
        let zones = layout
            .zones
            .first()
            .map_or_else(|| mechanics.clone(), |zone| source(zone.at));
        let mut sources = BTreeMap::from([("zones".to_owned(), zones)]);
        for key in [
            "rpm",
            "surfaces",
            "seek",
            "head_switch_ms",
            "write_settle_ms",
        ] {
            sources.insert(key.to_owned(), mechanics.clone());
        }
        // A file of mechanics alone has no queue, and a drive file needs a source of each part.
        let queue = "assumed: one command at a time; the file has no queue";
        sources.insert("queue".to_owned(), queue.to_owned());
        sources
    }

    /// Checks the layout with the drive's own geometry. An error is reported at the place of the
    /// zone.
    fn check(
        &self,
        config: &DriveConfig,
        layout: &ImportedLayout,
        fields: &BlockFields<'_>,
    ) -> Result<(), ImportError> {
        let Err(error) = Geometry::new(config) else {
            return Ok(());
        };
        // The geometry names a zone by number. The line of the zone helps the user more.
        let zone = error
            .key
            .strip_prefix("zones[")
            .and_then(|rest| rest.split(']').next()?.parse().ok());
        let at = zone
            .and_then(|zone: usize| layout.zones.get(zone))
            .map_or(fields.block.at, |zone| zone.at);
        let expected =
            "a layout in which each address has one place and each place at most one address";
        Err(fields.error(
            ErrorKind::Layout,
            at,
            &format!("Layout Model.{}", error.key),
            error.message,
            expected,
        ))
    }

    /// Reads the bus of a component, and adds the losses.
    fn bus(
        &self,
        instance: Option<&str>,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<Option<BusTimes>, ImportError> {
        let place = instance.and_then(|instance| {
            self.document.items.iter().find_map(|item| match item {
                Item::Topology(topology) => above(topology, instance, Attachment::default()),
                _ => None,
            })
        });
        let block = |component: &str| {
            let of = self.document.items.iter().find_map(|item| match item {
                Item::Instantiate { names, of, .. }
                    if names.iter().any(|name| name == component) =>
                {
                    Some(of)
                }
                _ => None,
            })?;
            self.document.named.get(of)
        };
        let Some((bus, place)) = place.and_then(|place| Some((place.bus?, place))) else {
            let what = "the file puts the disk on no bus: a sector takes `Bulk sector transfer time` alone; the .parv \
                        file of a disk describes its bus";
            losses.push(ImportLoss::new("", what));
            return Ok(None);
        };
        // The topology may name a component without an `instantiate`; the bus is then unknown.
        let Some(block_of_bus) = block(&bus.name) else {
            return Ok(None);
        };
        let prefix = format!("{}.", block_of_bus.name.as_deref().unwrap_or_default());
        let mut found = BusTimes::read(
            &BlockFields::new(self.document, block_of_bus, &prefix),
            losses,
        )?;
        if let Some(controller) = place.controller.and_then(block) {
            let fields = BlockFields::new(self.document, controller, "");
            if let Some(time) = fields.optional("Bulk sector transfer time") {
                found.controller_sector_ms = time.number()?.max(0.0);
            }
        }
        found.disks = disks_below(bus);
        if found.disks > 1 {
            let what = format!(
                "{} disks share the bus; here each drive has its own. A stack of them shares it by the table `[link]` \
                 with kind = \"scsi\"; then the drive's bus_read_ms_per_sector and bus_write_ms_per_sector are 0",
                found.disks
            );
            losses.push(ImportLoss::new(bus.name.clone(), what));
        }
        Ok(Some(found))
    }
}

/// The bus and the controller above a component.
#[derive(Clone, Copy, Default)]
struct Attachment<'t> {
    bus: Option<&'t Topology>,
    controller: Option<&'t str>,
}

/// Returns the nearest bus and controller above a component.
fn above<'t>(
    topology: &'t Topology,
    instance: &str,
    mut so_far: Attachment<'t>,
) -> Option<Attachment<'t>> {
    if topology.name == instance {
        return Some(so_far);
    }
    match topology.kind.as_str() {
        "disksim_bus" => so_far.bus = Some(topology),
        "disksim_ctlr" => so_far.controller = Some(&topology.name),
        _ => {}
    }
    topology
        .below
        .iter()
        .find_map(|value| match &value.content {
            Content::Topology(below) => above(below, instance, so_far),
            _ => None,
        })
}

/// Returns the revolutions per minute. A speed error is dropped with a loss.
fn rotation_speed(
    fields: &BlockFields<'_>,
    losses: &mut Vec<ImportLoss>,
) -> Result<f64, ImportError> {
    let speed = fields.required("Rotation speed (in rpms)")?;
    let rpm = speed.number()?;
    if !(rpm > 0.0 && rpm <= 1e6) {
        return Err(speed.error(
            ErrorKind::WrongValue,
            rpm.to_string(),
            "revolutions a minute, above 0",
        ));
    }
    let error = fields.required("Percent error in rpms")?;
    if error.number()? != 0.0 {
        losses.push(ImportLoss::new(
            &error.key,
            format!("{} % dropped: the speed is constant", error.number()?),
        ));
    }
    Ok(rpm)
}

/// Returns the number of disks on a bus, without those behind another bus.
fn disks_below(bus: &Topology) -> u32 {
    let disks = bus.below.iter().map(|value| match &value.content {
        Content::Topology(below) if below.kind == "disksim_bus" => 0,
        Content::Topology(below) => disks_below(below) + u32::from(below.kind == "disksim_disk"),
        _ => 0,
    });
    disks.sum()
}

fn access_time(fields: &BlockFields<'_>, losses: &mut Vec<ImportLoss>) -> Result<(), ImportError> {
    let kind = fields.required("Access time type")?;
    match kind.word()? {
        "trackSwitchPlusRotation" => Ok(()),
        simpler @ ("constant" | "averageRotation") => {
            let what = format!("{simpler}: seek and rotation are modelled in full instead");
            losses.push(ImportLoss::new(kind.key, what));
            Ok(())
        }
        other => Err(kind.error(
            ErrorKind::WrongValue,
            format!("`{other}`"),
            "trackSwitchPlusRotation, averageRotation or constant",
        )),
    }
}

/// Sets depth and discipline of the queue inside the drive.
fn queue(electronics: &Electronics, config: &mut DriveConfig, losses: &mut Vec<ImportLoss>) {
    let disk = &electronics.disk;
    config.queue.depth = u32::try_from(disk.queue_length).unwrap_or(1).max(1);
    if config.queue.depth == 1 {
        return;
    }
    let policy = electronics.scheduler.policy;
    // Numbers of DiskSim 4.0's manual, "Scheduling policy": 2 to 4 go by address, 5 to 7 by
    // cylinder, 8 and 10 by positioning time.
    let (discipline, exact) = match policy {
        1 => ("fcfs", true),
        2 | 5 => ("look", true),
        3 | 6 => ("c-look", true),
        4 | 7 => ("sstf", true),
        8 | 10 => ("satf", true),
        _ => ("satf", false),
    };
    config.queue.discipline = discipline.into();
    if !exact {
        losses.push(ImportLoss::new(
            "Scheduler.Scheduling policy",
            format!("{policy} becomes satf"),
        ));
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
