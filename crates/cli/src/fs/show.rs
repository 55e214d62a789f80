//! `fullstroke fs show`: shows the extents and the fragmentation of files.

use super::draw;
use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Reason, reason};
use fullstroke_files::age::{self, Aged};
use fullstroke_files::fragmentation::{FileFragments, Fragmentation, laid_out};
use fullstroke_files::script::{Script, ScriptPlayer, ScriptTally};
use fullstroke_files::{
    AllocatorRegions, FileSystem, FileSystemSite, PAGE_BYTES, PAGE_SECTORS, Stripe, Usage, make,
};
use fullstroke_measure::table;
use fullstroke_stack::assigned;
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors, Seed, Time};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Create a file system, use it, and show the places and the fragmentation of its files.
///
/// docs/files.md describes the script operations: mkdir, create, append, write, truncate, open,
/// close, delete, rename, fsync, sync, repeat.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Kind of file system: raw, ext2, ext4 or xfs.
    kind: String,

    /// Size of the device.
    #[arg(long, value_name = "SIZE", default_value = "10GiB")]
    size: Bytes,

    /// Set a key of the file system, as in allocation=reservation (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, Value)>,

    /// Age the file system first, with the profile desktop or mail.
    #[arg(long, value_name = "PROFILE")]
    age: Option<String>,

    /// File with operations to run.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Path of the file to list and draw. Default: the most fragmented file.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,

    /// Stripe unit and number of data members of the device, as in 64KiBx4. For file systems that
    /// align to stripes.
    #[arg(long, value_name = "UNITxMEMBERS", value_parser = stripe)]
    stripe: Option<Stripe>,

    /// Seed of the kernel's random choices and of ageing.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke fs show ext4 --size 4GiB --age desktop
  fullstroke fs show ext2 --set allocation=reservation --script samples/files/growing.fs
  fullstroke fs show xfs --size 256MiB --stripe 64KiBx4 --age mail --json";

/// Maximum number of extents in the text output. `--json` has all.
const LISTED: usize = 40;

fn assignment(text: &str) -> Result<(String, Value), Reason> {
    let expected = || reason!("found `{text}`; expected KEY=VALUE, such as allocation=reservation");
    let (key, value) = text.split_once('=').ok_or_else(expected)?;
    let parsed = assigned(value);
    // A floating-point number stays text, because `kernel=2.6` is a name.
    let value = if parsed.is_f64() {
        Value::String(value.to_owned())
    } else {
        parsed
    };
    Ok((key.trim().to_owned(), value))
}

fn stripe(text: &str) -> Result<Stripe, Reason> {
    let expected = || reason!("found `{text}`; expected UNITxMEMBERS, such as 64KiBx4");
    let (unit, width) = text.rsplit_once('x').ok_or_else(expected)?;
    let bytes: Bytes = unit.parse().map_err(|_| expected())?;
    let unit = bytes
        .sectors()
        .filter(|unit| unit.0 > 0)
        .ok_or_else(expected)?;
    let width = width
        .parse()
        .ok()
        .filter(|&width| width > 0)
        .ok_or_else(expected)?;
    Ok(Stripe { unit, width })
}

/// Output of `fs show --json`.
#[derive(Debug, Serialize)]
struct FileSystemOutput<'a> {
    kind: &'a str,
    size: Bytes,
    seed: u64,
    usage: Usage,
    pages_set_aside: u64,
    regions: AllocatorRegions,
    #[serde(skip_serializing_if = "Option::is_none")]
    aged: Option<Aged>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<ScriptTally>,
    fragmentation: Fragmentation,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a FileFragments>,
    map: Vec<draw::Line>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let seed = Seed(arguments.seed);
    let capacity = Sectors(arguments.size.0 / SECTOR_BYTES);
    let keys: Keys = arguments.set.iter().cloned().collect();
    let site = FileSystemSite {
        capacity,
        seed,
        stripe: arguments.stripe,
        tracks: None,
    };
    let mut system = make(&arguments.kind, &keys, &site).map_err(CommandFailure::input)?;
    // ZFS has no fixed places: the map of a pool would be out of date after one write.
    if system.in_dataset(system.root()).is_some() {
        let message = format!(
            "{}: the files lie in a pool, which gives each record a new place at each write; expected another file system, or run a stack with such a pool",
            arguments.kind
        );
        return Err(CommandFailure::input(message));
    }
    let aged = match &arguments.age {
        Some(name) => {
            let profile = age::profile(name).map_err(CommandFailure::input)?;
            Some(
                age::age(&mut *system, profile, seed)
                    .map_err(|error| CommandFailure::input(format!("age: {error}")))?,
            )
        }
        None => None,
    };
    let script = arguments
        .script
        .as_deref()
        .map(|path| play(&mut *system, path))
        .transpose()?;
    // A `raw` file system has no folders to list.
    let files = if system.entries(system.root()).is_ok() {
        laid_out(&*system).map_err(CommandFailure::input)?
    } else {
        Vec::new()
    };
    let file = shown_file(arguments, &files)?;
    let shown = FileSystemOutput {
        kind: &arguments.kind,
        size: arguments.size,
        seed: arguments.seed,
        usage: system.usage(),
        pages_set_aside: system.set_aside(),
        regions: system.regions(),
        aged,
        script,
        fragmentation: Fragmentation::of(&files, system.regions().pages),
        file,
        map: draw::map(&*system, &files, file),
    };
    output.show(&shown, shown.text())
}

fn play(system: &mut dyn FileSystem, path: &Path) -> Result<ScriptTally, CommandFailure> {
    let at = |error: &dyn std::fmt::Display| {
        CommandFailure::input(format!("{}: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| at(&error))?;
    let script = Script::parse(&text).map_err(|error| at(&error))?;
    ScriptPlayer::new(system, Time::ZERO)
        .play_all(&script)
        .map_err(|error| at(&error))
}

/// Returns the requested file, else the most fragmented one.
fn shown_file<'a>(
    arguments: &Arguments,
    files: &'a [FileFragments],
) -> Result<Option<&'a FileFragments>, CommandFailure> {
    match &arguments.file {
        Some(path) => match files
            .iter()
            // Paths of the file system have no `/` at the beginning.
            .find(|file| file.path == path.trim_matches('/'))
        {
            Some(file) => Ok(Some(file)),
            None => Err(CommandFailure::input(format!(
                "--file: no file `{path}` has pages on the device"
            ))),
        },
        // `max_by_key` returns the last of equal files. Reversed, this is the first.
        None => Ok(files.iter().rev().max_by_key(|file| file.fragments.len())),
    }
}

impl FileSystemOutput<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.summary(&mut text);
        let _ = self.fragments(&mut text);
        let _ = self.extents(&mut text);
        let _ = self.picture(&mut text);
        // The output adds its own line end.
        text.truncate(text.trim_end().len());
        text
    }

    fn summary(&self, text: &mut String) -> std::fmt::Result {
        let size = |pages: u64| Bytes(pages * PAGE_BYTES);
        let Usage {
            pages,
            pages_free,
            inodes,
            inodes_free,
            ..
        } = self.usage;
        let used = 100.0 * (1.0 - pages_free as f64 / pages.max(1) as f64);
        writeln!(
            text,
            "{} on {}: {used:.1} % used, {} free",
            self.kind,
            self.size,
            size(pages_free)
        )?;
        let AllocatorRegions { pages, count, name } = self.regions;
        writeln!(
            text,
            "{count} {name}s of {}, {} of {inodes} inodes used",
            size(pages),
            inodes - inodes_free
        )?;
        if self.pages_set_aside > 0 {
            writeln!(text, "{} set aside for files", size(self.pages_set_aside))?;
        }
        if let Some(aged) = &self.aged {
            let Aged {
                created, deleted, ..
            } = aged;
            writeln!(
                text,
                "aged: {created} files created, {deleted} of them deleted again"
            )?;
        }
        if let Some(tally) = &self.script {
            let ScriptTally {
                operations,
                metadata_reads,
                metadata_changes,
                log_sectors,
                ..
            } = tally;
            writeln!(
                text,
                "script: {operations} operations, {} written; metadata: {metadata_reads} pages read, \
                 {metadata_changes} changed, {log_sectors} sectors logged",
                Bytes(tally.bytes_written)
            )?;
        }
        Ok(())
    }

    fn fragments(&self, text: &mut String) -> std::fmt::Result {
        let all = &self.fragmentation;
        if all.files == 0 {
            return Ok(());
        }
        writeln!(
            text,
            "\n{} files of {} pages: {:.2} extents per file, {:.2} % of pages follow the page before\n\
             data in {} of {} {}s, {:.1} % of it in the fullest; {:.2} {}s a file\n",
            all.files,
            all.pages,
            all.fragments_a_file(),
            100.0 * all.contiguity,
            all.regions_used,
            self.regions.count,
            self.regions.name,
            100.0 * all.fullest_share,
            all.regions_a_file,
            self.regions.name,
        )?;
        let mut table = table(["extents", "files"], &[]);
        for share in &all.distribution {
            let extents = if share.from == share.to {
                share.from.to_string()
            } else {
                format!("{}-{}", share.from, share.to)
            };
            table.add_row([extents, share.files.to_string()]);
        }
        writeln!(text, "{}", table.trim_fmt())
    }

    fn extents(&self, text: &mut String) -> std::fmt::Result {
        let Some(file) = self.file else { return Ok(()) };
        writeln!(text, "\n{}, {} extents:\n", file.path, file.fragments.len())?;
        let mut table = table(
            [
                "extent",
                "page",
                "device page",
                "sector",
                "pages",
                self.regions.name,
            ],
            &[],
        );
        for (at, fragment) in file.fragments.iter().take(LISTED).enumerate() {
            table.add_row([
                at.to_string(),
                format!("{}-{}", fragment.page, fragment.page + fragment.pages - 1),
                format!("{}-{}", fragment.block, fragment.block + fragment.pages - 1),
                (fragment.block * PAGE_SECTORS).to_string(),
                fragment.pages.to_string(),
                (fragment.block / self.regions.pages.max(1)).to_string(),
            ]);
        }
        writeln!(text, "{}", table.trim_fmt())?;
        // `checked_sub` is `None` below the limit, and `Some(0)` at the limit: nothing is left out.
        match file.fragments.len().checked_sub(LISTED) {
            Some(more @ 1..) => writeln!(text, "and {more} more; --json lists all"),
            _ => Ok(()),
        }
    }

    fn picture(&self, text: &mut String) -> std::fmt::Result {
        // A `raw` file system has no used pages to draw.
        if self.map.iter().all(|(_, cells)| cells.trim().is_empty()) {
            return Ok(());
        }
        let width = self
            .map
            .iter()
            .map(|(title, _)| title.len())
            .max()
            .unwrap_or(0);
        writeln!(
            text,
            "\nEach line a {}, or several: {}\n",
            self.regions.name,
            draw::LEGEND
        )?;
        self.map
            .iter()
            .try_for_each(|(title, cells)| writeln!(text, "{title:>width$} |{cells}|"))
    }
}
