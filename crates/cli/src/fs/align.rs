//! `fullstroke fs align`: plans moves of files onto tracks, with costs and gains.

use crate::options::Changes;
use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target, read_for};
use clap::Args;
use fullstroke_files::aligner::{Alignment, MovedPages};
use fullstroke_files::script::Script;
use fullstroke_lab::{AlignmentInput, Gain, GainReads, MoveCost};
use fullstroke_measure::number;
use fullstroke_stack::Stack;
use fullstroke_units::Bytes;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Plan moves of a stack's files onto tracks, and calculate costs and gains.
///
/// The plan follows a defragmenter (Qian & Wang 2007, section 4.2): a file that fits on a track
/// moves onto one track, and a longer file starts at a track boundary. The files are those of the
/// stack's programs on the aged file system. The tracks are those of `tracks` in `[volume]`, or the
/// drive's own. Whole files, chosen at random, are read below the page cache. The moves run one
/// after the other.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The stack file.
    stack: PathBuf,

    #[command(flatten)]
    changes: Changes,

    /// File with operations to run first, as for `fs show`.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// File for the moves in their order, as one line of JSON per piece.
    #[arg(long, value_name = "FILE")]
    write_moves: Option<PathBuf>,

    /// Number of files read at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    readers: u32,

    /// Number of files per round.
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    files: u32,

    /// Number of rounds. Each round reads other files; confidence intervals are over rounds.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,

    /// Maximum size of a request.
    #[arg(long, value_name = "SIZE", default_value = "512KiB")]
    request: Bytes,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke fs align stack.toml --set host.files.age=desktop
  fullstroke fs align stack.toml --write-moves moves.jsonl --json";

/// Output of `fs align --json`.
#[derive(Debug, Serialize)]
struct Aligned {
    stack: String,
    seed: u64,
    was: Alignment,
    is: Alignment,
    programme: GainReads,
    cost: MoveCost,
    gain: Gain,
}

/// One line of `--write-moves`.
#[derive(Serialize)]
struct MoveLine<'a> {
    path: &'a str,
    #[serde(flatten)]
    piece: MovedPages,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let &Arguments {
        readers,
        files,
        rounds,
        request,
        ..
    } = arguments;
    let programme = GainReads {
        readers,
        files,
        rounds,
        request,
    };
    let overrides = arguments.changes.overrides();
    let mut inputs = read_for(std::slice::from_ref(&arguments.stack), &overrides, &[]);
    inputs.extend(arguments.script.clone());
    outputs::check(
        [Target::of(
            "--write-moves",
            &arguments.write_moves,
            OutputKind::Other,
        )],
        &inputs,
    )?;
    let stack = Stack::load(&arguments.stack, &overrides).map_err(CommandFailure::input)?;
    let script = arguments.script.as_deref().map(read).transpose()?;
    let mut found = AlignmentInput::new(&stack, script.as_ref()).map_err(CommandFailure::input)?;
    if let Some(path) = &arguments.write_moves {
        write_whole(path, &lines(&found)?)?;
    }
    // After the moves are written, because the two measurements take minutes and the moves do not
    // depend on them.
    let cost = found.cost(request).map_err(CommandFailure::input)?;
    let gain = found
        .gain(programme, &cost)
        .map_err(CommandFailure::input)?;
    let (was, is) = (found.moves().was, found.moves().is);
    let aligned = Aligned {
        stack: stack.name().to_owned(),
        seed: stack.seed().0,
        was,
        is,
        programme,
        cost,
        gain,
    };
    output.show(&aligned, aligned.text())
}

fn read(path: &Path) -> Result<Script, CommandFailure> {
    let at = |error: &dyn std::fmt::Display| {
        CommandFailure::input(format!("{}: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| at(&error))?;
    Script::parse(&text).map_err(|error| at(&error))
}

fn lines(found: &AlignmentInput<'_>) -> Result<String, CommandFailure> {
    let mut text = String::new();
    for one in &found.moves().moves {
        let path = &found.files()[one.file].path;
        for piece in one.pieces() {
            text +=
                &serde_json::to_string(&MoveLine { path, piece }).map_err(CommandFailure::input)?;
            text.push('\n');
        }
    }
    Ok(text)
}

impl Aligned {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.plan(&mut text);
        let _ = self.outcome(&mut text);
        text.truncate(text.trim_end().len());
        text
    }

    fn plan(&self, text: &mut String) -> std::fmt::Result {
        let Aligned { was, is, cost, .. } = self;
        let a_file = |visits: u64| visits as f64 / was.files as f64;
        writeln!(
            text,
            "{} of {} files lie on the minimum number of tracks; {:.2} tracks per file, {:.2} at best with the same start",
            was.aligned,
            was.files,
            a_file(was.visits),
            a_file(was.visits_least)
        )?;
        // Nothing follows about cost and gain, because no request would be made.
        if cost.files == 0 {
            return writeln!(text, "no file can be moved to a better place");
        }
        writeln!(
            text,
            "plan: {} files move, {}; then {} of {} do, {:.2} tracks a file",
            cost.files,
            cost.bytes,
            is.aligned,
            is.files,
            a_file(is.visits)
        )?;
        match is.files - is.aligned {
            0 => {}
            left => writeln!(
                text,
                "{left} files are not moved, because no free pages suit them"
            )?,
        }
        writeln!(
            text,
            "cost: {} read and written, and {} pages of metadata, in {} s without other load",
            cost.bytes,
            cost.metadata_pages,
            number(cost.seconds)
        )
    }

    fn outcome(&self, text: &mut String) -> std::fmt::Result {
        let Aligned {
            programme,
            gain,
            cost,
            ..
        } = self;
        if cost.files == 0 {
            return Ok(());
        }
        let within = |half_width: Option<f64>| {
            half_width.map_or(String::new(), |w| format!(" +-{}", number(w)))
        };
        writeln!(
            text,
            "gain: {} files, {} at once, {} times: {}{} ms a file before, {}{} ms afterwards",
            programme.files,
            programme.readers,
            programme.rounds,
            number(gain.before_ms),
            within(gain.before_half_width_ms),
            number(gain.after_ms),
            within(gain.after_half_width_ms)
        )?;
        let saved = &gain.saved_ms;
        // Without an interval, any difference may be chance.
        let half_width = saved.half_width.unwrap_or(f64::INFINITY);
        let (share, sure) = (
            100.0 * saved.value / gain.before_ms,
            saved.value.abs() > half_width,
        );
        let what = match (sure, saved.value > 0.0) {
            (false, _) => "which may be chance",
            (true, true) => "saved",
            (true, false) => "lost",
        };
        writeln!(
            text,
            "      {}{} ms a file (95 %), {:.1} %, {what}",
            number(saved.value.abs()),
            within(saved.half_width),
            share.abs()
        )?;
        match gain.pays_after_files {
            Some(files) => writeln!(text, "      the moves have paid after {files} files read"),
            None => writeln!(text, "      the moves do not pay"),
        }
    }
}
