//! `fullstroke trace convert`: converts a trace to another format.

use crate::options::Selection;
use crate::output::{CommandFailure, CommandOutput};
use crate::outputs::{self, OutputKind, Target};
use clap::Args;
use fullstroke_trace::{Conversion, OUTPUTS, TraceReader, convert, output_for};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Convert a trace to another format. The file appears whole or not at all.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace: plain, gzip, zstd or xz.
    input: PathBuf,

    /// File to write. Compressed if the name ends in .gz or .zst.
    output: PathBuf,

    /// Format of the output. Default: by the file's ending.
    #[arg(long, value_name = "NAME", help = output_help())]
    to_format: Option<String>,

    #[command(flatten)]
    selection: Selection,
}

fn output_help() -> String {
    let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
    format!(
        "Format of the output: {}; default: by the file's ending",
        names.join(", ")
    )
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let target = Target::to("the output", &arguments.output, OutputKind::Other);
    outputs::check([Some(target)], std::slice::from_ref(&arguments.input))?;
    let written = output_for(&arguments.output, arguments.to_format.as_deref())
        .map_err(CommandFailure::input)?;
    let mut reader = TraceReader::open(&arguments.input, &arguments.selection.options())
        .map_err(CommandFailure::input)?;
    let conversion =
        convert(&mut reader, written, &arguments.output).map_err(CommandFailure::input)?;
    let Conversion {
        format,
        requests,
        left_out,
        skipped_rows,
        doubtful,
        notes,
    } = &conversion;
    let mut text = format!(
        "{}: {requests} requests as {format}",
        arguments.output.display()
    );
    if *left_out > 0 {
        let _ = write!(text, "; {left_out} left out, which {format} cannot express");
    }
    if *skipped_rows > 0 {
        let _ = write!(text, "; {skipped_rows} damaged rows skipped");
    }
    if *doubtful > 0 {
        let _ = write!(text, "; {doubtful} doubtful completions left out");
    }
    for note in notes {
        let _ = write!(text, "\nnote: {note}");
    }
    output.show(&conversion, text)
}
