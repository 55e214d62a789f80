//! Conversion of a trace to another format.

use crate::outputs::{OUTPUTS, find_output, packing_stripped};
use crate::{TraceError, TraceOutput, TraceReader};
use serde::Serialize;
use std::path::Path;

/// Result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversion {
    /// Name of the output format.
    pub format: &'static str,
    /// Number of requests written.
    pub requests: u64,
    /// Number of requests that the output format cannot express.
    pub left_out: u64,
    /// Number of damaged rows skipped.
    pub skipped_rows: u64,
    /// Number of requests whose completion is left out, because it may belong to another request.
    pub doubtful: u64,
    /// Problems of the trace, one sentence each.
    pub notes: Vec<String>,
}

/// Returns the output format for `path`: the format called `name`, or else the format of the file's
/// extension. A packing extension such as `.gz` is ignored.
///
/// # Errors
/// Fails if there is no such format.
pub fn output_for(path: &Path, name: Option<&str>) -> Result<&'static TraceOutput, TraceError> {
    if let Some(name) = name {
        return find_output(name);
    }
    let file = path.to_string_lossy().to_ascii_lowercase();
    let plain = packing_stripped(&file);
    let fits = |output: &&&TraceOutput| output.endings.iter().any(|ending| plain.ends_with(ending));
    OUTPUTS.iter().find(fits).copied().ok_or_else(|| {
        let known: Vec<String> = OUTPUTS
            .iter()
            .map(|output| format!("{} ({})", output.endings.join(", "), output.name))
            .collect();
        let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
        TraceError::Option(format!(
            "the name of `{}` has no ending of a format: use one of {}, or name the format, one of {}",
            path.display(),
            known.join(", "),
            names.join(", ")
        ))
    })
}

/// Writes the remaining requests of `reader` to `path` in the format `output`. The file appears
/// whole, or not at all. Text is packed if the name of the file ends in `.gz`, `.zst` or `.xz`.
///
/// # Errors
/// Fails if the trace cannot be read to its end, if the file cannot be written, or if there is no
/// request to write.
pub fn convert(
    reader: &mut TraceReader,
    output: &TraceOutput,
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
            "`{}` has no data to write as {}: {reason}",
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
