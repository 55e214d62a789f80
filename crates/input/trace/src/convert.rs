//! Writing a trace in another format.

use crate::outputs::{OUTPUTS, find_output, packing_stripped};
use crate::{Output, TraceError, TraceReader};
use serde::Serialize;
use std::path::Path;

/// What became of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversion {
    /// The output's name.
    pub format: &'static str,
    /// Requests that were written.
    pub requests: u64,
    /// Requests that the output's format cannot express.
    pub left_out: u64,
    /// Damaged rows of the trace that were tolerated.
    pub skipped_rows: u64,
    /// Requests whose completion may be another request's, and is left out.
    pub doubtful: u64,
    /// What is wrong with the trace; a sentence each.
    pub notes: Vec<String>,
}

/// The output to write at `path`: the one called `name`, or else the one that
/// the file's name asks for (behind a packing's ending such as `.gz`).
///
/// # Errors
/// If there is none.
pub fn output_for(path: &Path, name: Option<&str>) -> Result<&'static Output, TraceError> {
    if let Some(name) = name {
        return find_output(name);
    }
    let file = path.to_string_lossy().to_ascii_lowercase();
    let plain = packing_stripped(&file);
    let fits = |output: &&&Output| output.endings.iter().any(|ending| plain.ends_with(ending));
    OUTPUTS.iter().find(fits).copied().ok_or_else(|| {
        let known: Vec<String> = OUTPUTS
            .iter()
            .map(|output| format!("{} ({})", output.endings.join(", "), output.name))
            .collect();
        let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
        TraceError::Option(format!(
            "the name of `{}` does not tell a format: let it end in one of {}, or say one of {}",
            path.display(),
            known.join(", "),
            names.join(", ")
        ))
    })
}

/// Writes what is left in `reader` as `output` at `path`. The file appears
/// whole, or not at all; text is packed if its name ends in `.gz`, `.zst` or
/// `.xz`.
///
/// # Errors
/// If the trace cannot be read to its end, the file cannot be written, or there
/// is no request to write.
pub fn convert(
    reader: &mut TraceReader,
    output: &Output,
    path: &Path,
) -> Result<Conversion, TraceError> {
    let mut writer = (output.create)(path)?;
    let (mut requests, mut left_out) = (0, 0);
    while let Some(record) = reader.next()? {
        if writer.write(&record)? {
            requests += 1;
        } else {
            left_out += 1;
        }
    }
    if requests == 0 {
        let reason = if left_out == 0 {
            "the options leave no request"
        } else {
            output.loses
        };
        let text = format!(
            "there is nothing of `{}` to write as {}: {reason}",
            reader.file(),
            output.name
        );
        return Err(TraceError::Option(text));
    }
    writer.finish()?;
    let (skipped_rows, doubtful) = (reader.skipped(), reader.doubtful());
    Ok(Conversion {
        format: output.name,
        requests,
        left_out,
        skipped_rows,
        doubtful,
        notes: reader.notes(),
    })
}
