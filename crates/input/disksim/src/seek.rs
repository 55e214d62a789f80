//! Seek curves: files of measured points, and formulas.

use crate::error::{ErrorKind, ImportError, ImportLoss};
use crate::fields::{BlockFields, FoundValue};
use crate::files::ReadFiles;
use fullstroke_drive::SeekConfig;
use std::path::Path;

/// Largest size of a seek file in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Start of the line with the number of points.
const HEADER: &str = "Seek distances measured:";
/// Largest distance up to which a formula is tabulated for each distance.
const DENSE: u32 = 4096;
/// Number of further points of a formula.
const SPARSE: u32 = 1024;

/// The keys of a mechanical model for seeks.
pub(crate) const KEYS: &[&str] = &[
    "Seek type",
    "Average seek time",
    "Constant seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Full seek curve",
    "First ten seek times",
    "HPL seek equation values",
];

/// Returns the seek curve of a mechanical model, for a disk with `cylinders` cylinders.
pub(crate) fn curve(
    files: &dyn ReadFiles,
    fields: &BlockFields<'_>,
    cylinders: u32,
    losses: &mut Vec<ImportLoss>,
) -> Result<SeekConfig, ImportError> {
    let kind = fields.required("Seek type")?;
    let milliseconds = |key: &str| fields.required(key)?.milliseconds();
    match kind.word()? {
        "extracted" => extracted(files, fields, cylinders, losses),
        "constant" => Ok(points(vec![(
            1,
            positive(fields, "Constant seek time", losses)?,
        )])),
        "linear" => {
            let one = positive(fields, "Single cylinder seek time", losses)?;
            let (average, full) = (
                milliseconds("Average seek time")?,
                milliseconds("Full strobe seek time")?,
            );
            Ok(points(linear(one, average, full, cylinders)))
        }
        "curve" => Ok(SeekConfig::Datasheet {
            track_to_track_ms: milliseconds("Single cylinder seek time")?,
            average_ms: milliseconds("Average seek time")?,
            full_stroke_ms: milliseconds("Full strobe seek time")?,
        }),
        "hpl" => {
            let form = Formula::read(&fields.required("HPL seek equation values")?)?;
            Ok(form.config(
                form.single.map(|ms| vec![ms]).unwrap_or_default(),
                cylinders,
            ))
        }
        "hplplus10" => {
            let form = Formula::read(&fields.required("HPL seek equation values")?)?;
            Ok(form.config(
                first_ten(&fields.required("First ten seek times")?)?,
                cylinders,
            ))
        }
        other => Err(kind.error(
            ErrorKind::WrongValue,
            format!("`{other}`"),
            "extracted, constant, linear, curve, hpl or hplplus10",
        )),
    }
}

/// Returns a curve through measured points.
fn points(points: Vec<(u32, f64)>) -> SeekConfig {
    SeekConfig::Points {
        points,
        falls_allowed: true,
    }
}

/// Returns a time above 0, because a seek takes time here. DiskSim allows 0.
fn positive(
    fields: &BlockFields<'_>,
    key: &str,
    losses: &mut Vec<ImportLoss>,
) -> Result<f64, ImportError> {
    let found = fields.required(key)?;
    let ms = found.milliseconds()?;
    if ms > 0.0 {
        return Ok(ms);
    }
    losses.push(ImportLoss::new(
        found.key,
        "a seek of 0 ms becomes one of 1 ns",
    ));
    // A seek table has positive times only, and 1 ns is the smallest time of the simulation.
    Ok(1e-6)
}

/// Returns straight lines through the three times. The average is the time for a third of the
/// cylinders.
fn linear(one: f64, average: f64, full: f64, cylinders: u32) -> Vec<(u32, f64)> {
    // The mean distance of two random cylinders is a third of all cylinders.
    let third = cylinders / 3 + 1;
    let mut points = vec![(1, one)];
    // A disk of few cylinders has no room for three different distances.
    if third > 1 && cylinders > third {
        points.extend([(third, average), (cylinders, full)]);
    }
    points
}

/// The equation of Ruemmler and Wilkes (IEEE Computer, 1994).
struct Formula {
    crossover: u32,
    short: (f64, f64),
    long: (f64, f64),
    /// Time of a seek over one cylinder, if it does not follow the equation.
    single: Option<f64>,
}

impl Formula {
    fn read(list: &FoundValue<'_>) -> Result<Formula, ImportError> {
        let values: Vec<FoundValue<'_>> = list.elements()?.collect();
        let [v1, v2, v3, v4, v5, v6] = values.as_slice() else {
            let found = format!("{} values", values.len());
            return Err(list.error(ErrorKind::WrongValue, found, "six"));
        };
        // -1 means that the equation also holds for one cylinder.
        let single = if v6.number()? == -1.0 {
            None
        } else {
            Some(v6.milliseconds()?)
        };
        Ok(Formula {
            crossover: v1.unsigned()?,
            short: (v2.milliseconds()?, v3.milliseconds()?),
            long: (v4.milliseconds()?, v5.milliseconds()?),
            single,
        })
    }

    fn milliseconds(&self, distance: u32) -> f64 {
        let d = f64::from(distance);
        if distance < self.crossover {
            self.short.0 + self.short.1 * d.sqrt()
        } else {
            self.long.0 + self.long.1 * d
        }
    }

    /// Returns the curve, with given times for the first distances.
    fn config(&self, first: Vec<f64>, cylinders: u32) -> SeekConfig {
        // Without measured times the equation holds for all distances, and the drive has a form for
        // it.
        if first.is_empty() {
            return SeekConfig::TwoPiece {
                a_ms: self.short.0,
                b_ms: self.short.1,
                c_ms: self.long.0,
                e_ms: self.long.1,
                crossover: self.crossover,
            };
        }
        let longest = cylinders.max(2) - 1;
        let mut table: Vec<(u32, f64)> = (1..).zip(first).collect();
        let behind = table.len() as u32 + 1;
        table.extend(
            self.distances(behind, longest)
                .map(|distance| (distance, self.milliseconds(distance))),
        );
        assert!(
            table.is_sorted_by(|one, next| one.0 < next.0),
            "each distance stands once in a seek table"
        );
        points(table)
    }

    /// Returns the distances for the table. Below the crossover these are all distances up to a
    /// limit, then samples. Behind the crossover, the two ends of the straight line are enough.
    fn distances(&self, from: u32, longest: u32) -> impl Iterator<Item = u32> {
        let curved = self.crossover.min(longest.saturating_add(1));
        // Short seeks are frequent and steep, so each distance has a point. Far seeks change little
        // from point to point.
        let dense = from..curved.min(DENSE);
        let step = (curved.saturating_sub(DENSE) / SPARSE).max(1);
        let sparse = (from.max(DENSE)..curved).step_by(step as usize);
        let mut ends: Vec<u32> = [curved.saturating_sub(1), curved, longest]
            .into_iter()
            .filter(|&distance| distance >= from && distance <= longest)
            .collect();
        let mut all: Vec<u32> = dense.chain(sparse).collect();
        all.append(&mut ends);
        all.sort_unstable();
        all.dedup();
        assert!(
            all.iter()
                .all(|distance| (from..=longest).contains(distance)),
            "distances from {from} to {longest} are tabulated: {all:?}"
        );
        all.into_iter()
    }
}

fn first_ten(list: &FoundValue<'_>) -> Result<Vec<f64>, ImportError> {
    let times = list
        .elements()?
        .map(|time| time.milliseconds())
        .collect::<Result<Vec<f64>, _>>()?;
    if times.len() != 10 {
        return Err(list.error(
            ErrorKind::WrongValue,
            format!("{} times", times.len()),
            "ten",
        ));
    }
    Ok(times)
}

/// Reads the points of a seek file. The path is relative to the file with the path.
fn extracted(
    files: &dyn ReadFiles,
    fields: &BlockFields<'_>,
    cylinders: u32,
    losses: &mut Vec<ImportLoss>,
) -> Result<SeekConfig, ImportError> {
    let found = fields.required("Full seek curve")?;
    let beside = fields
        .document
        .file(found.value.at)
        .parent()
        .unwrap_or(Path::new(""));
    let path = beside.join(found.word()?);
    let text = files.read(&path, MAX_BYTES).map_err(|error| {
        let found_text = format!("`{}`: {error}", path.display());
        found.error(
            ErrorKind::Unreadable,
            found_text,
            "a readable seek file of reasonable size",
        )
    })?;
    let mut table = seek_file(&path, &String::from_utf8_lossy(&text))?;
    extend(&mut table, cylinders, &found.key, losses);
    Ok(points(table))
}

/// Extends the curve beyond the last point along the last line, as DiskSim does.
fn extend(table: &mut Vec<(u32, f64)>, cylinders: u32, key: &str, losses: &mut Vec<ImportLoss>) {
    let longest = cylinders.max(2) - 1;
    let [.., (d0, ms0), (d1, ms1)] = table[..] else {
        return;
    };
    if d1 >= longest {
        return;
    }
    let slope = (ms1 - ms0) / f64::from(d1 - d0);
    let ms = ms1 + slope * f64::from(longest - d1);
    // A falling last line would lead below 0.
    if slope > 0.0 {
        table.push((longest, ms));
        let what = format!(
            "ends at {d1} cylinders; extended along its last line to {longest}, {ms:.3} ms"
        );
        losses.push(ImportLoss::new(key, what));
    }
}

/// Reads the points of a seek file. The first line has the number of points. Each further line has
/// one point, `cylinders, milliseconds`. Further numbers may follow (a standard deviation, a
/// longest time): DiskSim 4.0 reads two numbers and ignores the rest.
///
/// # Errors
/// Names the line of a malformed point, or of a point that does not follow the previous one. If the
/// number of points is wrong, names the first line.
pub fn seek_file(path: &Path, text: &str) -> Result<Vec<(u32, f64)>, ImportError> {
    let fail = |line: usize, found: String, expected: &str| ImportError {
        file: path.to_owned(),
        line: line as u32,
        key: String::new(),
        kind: ErrorKind::SeekFile,
        found,
        expected: expected.into(),
    };
    let mut announced: Option<(usize, usize)> = None;
    let mut points: Vec<(u32, f64)> = Vec::new();
    let mut last_line = 1;
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() {
            continue;
        }
        last_line = number;
        if let (Some(count), true, None) = (line.strip_prefix(HEADER), points.is_empty(), announced)
        {
            let count = count.trim().parse().map_err(|_| {
                fail(
                    number,
                    format!("`{}`", crate::grammar::shortened(line)),
                    "the number of points behind `:`",
                )
            })?;
            announced = Some((count, number));
            continue;
        }
        let point = point(line).ok_or_else(|| {
            let expected = "`cylinders, milliseconds`, both positive";
            fail(
                number,
                format!("`{}`", crate::grammar::shortened(line)),
                expected,
            )
        })?;
        if points.last().is_some_and(|last| last.0 >= point.0) {
            return Err(fail(
                number,
                format!("a distance of {}", point.0),
                "distances that rise from line to line",
            ));
        }
        points.push(point);
    }
    if let Some((count, line)) = announced.filter(|&(count, _)| count != points.len()) {
        let found = format!(
            "{count} points announced and {} there, the last in line {last_line}",
            points.len()
        );
        return Err(fail(
            line,
            found,
            "as many points as announced; mend the count or the points",
        ));
    }
    if points.is_empty() {
        return Err(fail(last_line, "no point".into(), "at least one"));
    }
    Ok(points)
}

/// Parses a distance and its time. Further numbers, such as a deviation and a longest time, may
/// follow.
fn point(line: &str) -> Option<(u32, f64)> {
    let mut parts = line.split(',').map(str::trim);
    let distance: u32 = parts.next()?.parse().ok()?;
    let ms: f64 = parts.next()?.parse().ok()?;
    let numbers = parts.all(|number| number.parse::<f64>().is_ok());
    (distance > 0 && ms.is_finite() && ms > 0.0 && numbers).then_some((distance, ms))
}
