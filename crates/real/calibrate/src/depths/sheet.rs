//! The data sheet, and the report of `smartctl` beside it.

use super::{DepthRow, DepthsError, SmartReport};
use fullstroke_drive::presets::DriveClass;
use fullstroke_drive::{DataSheet, DriveConfig, sectors_of};
use fullstroke_units::{Bytes, Sectors, parse_bytes};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// Largest relative difference between two sources of one figure.
const APART_MAX: f64 = 0.01;
/// Largest relative difference between the rates and the minutes for the whole surface.
const RATES_APART_MAX: f64 = 0.1;
/// Largest relative difference between the capacity and the tracks times their mean length. The
/// sustained rate is up to a fifth below the rate of a track, because of skews.
const TRACKS_APART_MAX: f64 = 0.25;
/// Ratio of the inner rate to the outer rate: 229 of 500 sectors a track on a Toshiba X300 (Wong
/// 2019).
const INNER_SHARE: f64 = 0.458;
/// Least ratio of the inner rate to the outer rate of a drive.
const INNER_SHARE_MIN: f64 = 0.25;
/// Least size in bytes of a request whose rate counts as the rate of the medium.
const SEQUENTIAL_MIN: u64 = 64 << 10;

/// Figures of a data sheet, as a TOML file has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sheet {
    /// Name of the drive for people.
    pub title: Option<String>,
    /// Capacity as sold: `8T` is 8 x 10^12 bytes.
    pub capacity: Option<String>,
    /// Revolutions a minute.
    pub rpm: Option<f64>,
    /// Sustained rate at the outer edge, MB/s.
    pub outer: Option<f64>,
    /// Rate at the inner edge, MB/s.
    pub inner: Option<f64>,
    /// Average seek in ms.
    pub seek: Option<f64>,
    /// Recording surfaces.
    pub surfaces: Option<u32>,
    /// Tracks on one surface. Held against capacity, rates and surfaces.
    pub tracks: Option<u32>,
    /// Size of the buffer, as in `64MiB`.
    pub cache: Option<String>,
    /// Class: desktop, laptop, nearline or sas.
    pub class: Option<String>,
}

/// Reads a data sheet from a TOML file.
///
/// # Errors
/// Names the file and the invalid key.
pub fn read_sheet(path: &Path) -> Result<Sheet, DepthsError> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| DepthsError::Io {
        file: file.clone(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| {
        let keys = "title, capacity, rpm, outer, inner, seek, surfaces, tracks, cache, class";
        DepthsError::row(
            &file,
            "the sheet",
            error.to_string(),
            format!("a table with {keys}"),
        )
    })
}

/// A figure and its source.
struct SheetFigure {
    value: f64,
    source: String,
}

/// Returns the one figure of two sources. `None` if no source has the figure.
fn one(
    key: &'static str,
    sheet: Option<f64>,
    smart: Option<f64>,
    file: Option<&str>,
) -> Result<Option<SheetFigure>, DepthsError> {
    let report = file.unwrap_or_default();
    match (sheet, smart) {
        (Some(one), Some(other)) if (one / other - 1.0).abs() > APART_MAX => {
            Err(DepthsError::Contradiction {
                key,
                one: format!("the sheet says {one}"),
                other: format!("`{report}` says {other}"),
            })
        }
        (_, Some(value)) => Ok(Some(SheetFigure {
            value,
            source: format!("{report} (smartctl)"),
        })),
        (Some(value), None) => Ok(Some(SheetFigure {
            value,
            source: "data sheet, given".to_owned(),
        })),
        (None, None) => Ok(None),
    }
}

fn bytes(key: &'static str, text: &str) -> Result<u64, DepthsError> {
    let decimal = text
        .trim()
        .ends_with(|letter: char| "KMGTkmgt".contains(letter));
    let full = if decimal {
        format!("{}B", text.trim())
    } else {
        text.to_owned()
    };
    parse_bytes(&full).map_err(|error| {
        DepthsError::row("sheet", key, error.to_string(), "a size as in 8T or 64MiB")
    })
}

/// Returns the description of the drive before any fit, with the source of each figure.
pub(super) fn described(
    sheet: &Sheet,
    smart: Option<&SmartReport>,
    rows: &[DepthRow],
) -> Result<DriveConfig, DepthsError> {
    let file = smart.map(|smart| smart.file.as_str());
    let sold = sheet
        .capacity
        .as_deref()
        .map(|text| bytes("capacity", text))
        .transpose()?;
    let told = smart.and_then(|smart| smart.bytes);
    let capacity = one(
        "capacity",
        sold.map(|b| b as f64),
        told.map(|b| b as f64),
        file,
    )?;
    let rpm = one("rpm", sheet.rpm, smart.and_then(|smart| smart.rpm), file)?;
    let missing = |what: &str| {
        DepthsError::Grid(format!(
            "no {what}: expected `{what}` in --sheet, or a report of smartctl with --smart"
        ))
    };
    let capacity = capacity.ok_or_else(|| missing("capacity"))?;
    let rpm = rpm.ok_or_else(|| missing("rpm"))?;
    let sectors = match told {
        // A report has the exact number of bytes; a capacity as sold is rounded.
        Some(exact) => Sectors(exact / 512),
        None => sectors_of(Bytes(sold.unwrap_or_default())),
    };
    let rates = EdgeRates::new(sheet, smart, rows, sectors)?;
    let class = sheet
        .class
        .as_deref()
        .map(str::parse::<DriveClass>)
        .transpose()
        .map_err(|error| DepthsError::row("sheet", "class", error, "a class of drives"))?;
    let buffer = sheet
        .cache
        .as_deref()
        .map(|text| bytes("cache", text))
        .transpose()?;
    let model = smart.and_then(|smart| smart.model.clone());
    let surfaces = surfaces(sheet, &rates, rpm.value, sectors)?;
    let sheet = DataSheet {
        title: sheet
            .title
            .clone()
            .or(model)
            .unwrap_or_else(|| "own drive".to_owned()),
        capacity: sectors,
        rpm: rpm.value,
        outer_mb_per_s: rates.outer,
        inner_mb_per_s: rates.inner,
        average_seek_ms: sheet.seek,
        surfaces,
        buffer: buffer.map(Bytes),
        class,
    };
    let mut config = sheet.drive().map_err(DepthsError::Sheet)?;
    // Rates that were derived are no published figures.
    if !rates.published {
        config.published = Default::default();
    }
    config.published.average_seek_ms = None;
    let mut source = |key: &str, text: String| config.sources.insert(key.to_owned(), text);
    source("capacity_sectors", capacity.source);
    source("rpm", rpm.source);
    source("zones", format!("{}. {}", rates.source, config_zones()));
    if let Some(physical) = smart.and_then(|smart| smart.physical_sector) {
        config.physical_sector = physical;
    }
    if let Some(logical) = smart.and_then(|smart| smart.logical_sector) {
        config.logical_sector = logical;
    }
    Ok(config)
}

/// Returns the surfaces of the sheet, or the number that tracks and rates give.
fn surfaces(
    sheet: &Sheet,
    rates: &EdgeRates,
    rpm: f64,
    capacity: Sectors,
) -> Result<Option<u32>, DepthsError> {
    let Some(tracks) = sheet.tracks else {
        return Ok(sheet.surfaces);
    };
    let inner = rates.inner.unwrap_or(rates.outer * INNER_SHARE);
    // A head reads one track in a revolution, so rate times revolution is the length of a track.
    let of_a_track = (rates.outer + inner) / 2.0 * 1e6 * 60.0 / rpm;
    let of_a_surface = of_a_track * f64::from(tracks);
    let wanted = capacity.bytes().0 as f64;
    let number = sheet
        .surfaces
        .map_or((wanted / of_a_surface).round().max(1.0), f64::from);
    let held = number * of_a_surface;
    // NaN, if tracks or speed are 0, is a contradiction too.
    if (held / wanted - 1.0).abs() < TRACKS_APART_MAX {
        return Ok(Some(number as u32));
    }
    Err(DepthsError::Contradiction {
        key: "capacity",
        one: format!("the drive has {:.0} GB", wanted / 1e9),
        other: format!(
            "{tracks} tracks on {} of {:.0} kB in the mean ({:.0} to {inner:.0} MB/s at {rpm:.0} rpm) hold {:.0} GB",
            match number as u32 {
                1 => "1 surface".to_owned(),
                several => format!("{several} surfaces"),
            },
            of_a_track / 1e3,
            rates.outer,
            held / 1e9
        ),
    })
}

fn config_zones() -> &'static str {
    "assumed: 24 zones of equal width, track lengths linear between the rates; by surface up to 4 % longer or \
     shorter; skews of 1/16 revolution, 3/16 where the head changes"
}

/// Rates at both edges.
struct EdgeRates {
    outer: f64,
    inner: Option<f64>,
    source: String,
    published: bool,
}

impl EdgeRates {
    fn new(
        sheet: &Sheet,
        smart: Option<&SmartReport>,
        rows: &[DepthRow],
        sectors: Sectors,
    ) -> Result<EdgeRates, DepthsError> {
        let minutes = smart.and_then(|smart| smart.surface_minutes);
        let mean = minutes.map(|minutes| sectors.bytes().0 as f64 / minutes / 60.0 / 1e6);
        match (sheet.outer, mean) {
            (Some(outer), None) => Ok(EdgeRates {
                outer,
                inner: sheet.inner,
                source: "rates: data sheet, given; an inner rate that is not given is assumed"
                    .to_owned(),
                published: true,
            }),
            (Some(outer), Some(mean)) => between(outer, sheet.inner, mean, minutes),
            (None, Some(mean)) => Ok(EdgeRates {
                // The mean of both edges is the measured mean, and the inner edge has the usual
                // share of the outer.
                outer: 2.0 * mean / (1.0 + INNER_SHARE),
                inner: None,
                source: format!(
                    "fitted: rates so that the whole surface takes the maker's {:.0} minutes (extended self-test, \
                     smartctl), inside {INNER_SHARE} of outside (assumed)",
                    minutes.unwrap_or_default()
                ),
                published: false,
            }),
            (None, None) => from_rows(rows),
        }
    }
}

/// Returns the inner rate that the minutes for the whole surface leave.
fn between(
    outer: f64,
    inner: Option<f64>,
    mean: f64,
    minutes: Option<f64>,
) -> Result<EdgeRates, DepthsError> {
    let minutes = minutes.unwrap_or_default();
    let contradiction = |other: String| DepthsError::Contradiction {
        key: "outer",
        one: format!("the sheet gives {outer} MB/s outside"),
        other: format!(
            "the whole surface in {minutes} minutes is {mean:.1} MB/s in the mean, {other}"
        ),
    };
    // The platter takes equal time for each track, and track lengths are linear between the edges,
    // so the mean rate is half of the sum.
    let left = 2.0 * mean - outer;
    if let Some(inner) = inner {
        let apart = ((outer + inner) / 2.0 / mean - 1.0).abs();
        if apart > RATES_APART_MAX {
            return Err(contradiction(format!(
                "and the sheet gives {inner} MB/s inside"
            )));
        }
    } else if !(INNER_SHARE_MIN * outer..outer).contains(&left) {
        return Err(contradiction(format!("which leaves {left:.1} MB/s inside")));
    }
    Ok(EdgeRates {
        outer,
        inner: inner.or(Some(left)),
        source: format!(
            "rates: outside the data sheet's; inside fitted so that the whole surface takes the maker's \
             {minutes:.0} minutes (extended self-test, smartctl)"
        ),
        published: false,
    })
}

/// Returns the rate of the fastest sequential read.
fn from_rows(rows: &[DepthRow]) -> Result<EdgeRates, DepthsError> {
    let rate = |row: &DepthRow| row.per_s * row.bytes as f64 / 1e6;
    let fastest = rows
        .iter()
        .filter(|row| row.rw == "read" && row.bytes >= SEQUENTIAL_MIN)
        .max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let Some(row) = fastest else {
        return Err(DepthsError::Grid(
            "no rate of the medium: expected `outer` in --sheet, minutes of the extended self-test in --smart, or \
             a sequential read (rw=read, bs of 64k or more) in --fio"
                .to_owned(),
        ));
    };
    Ok(EdgeRates {
        outer: rate(row),
        inner: None,
        source: format!(
            "fitted: {:.1} MB/s outside, the sequential read of {}; inside {INNER_SHARE} of it (assumed)",
            rate(row),
            row.source
        ),
        published: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smart(minutes: Option<f64>) -> SmartReport {
        SmartReport {
            file: "smart.txt".into(),
            bytes: Some(8_001_563_222_016),
            rpm: Some(7200.0),
            surface_minutes: minutes,
            ..SmartReport::default()
        }
    }

    fn sheet() -> Sheet {
        Sheet {
            outer: Some(210.0),
            ..Sheet::default()
        }
    }

    fn refused(sheet: &Sheet, minutes: Option<f64>) -> String {
        described(sheet, Some(&smart(minutes)), &[])
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_minutes_give_the_inner_rate() {
        let config = described(&sheet(), Some(&smart(Some(723.0))), &[]).unwrap();
        assert_eq!(config.capacity_sectors.0, 15_628_053_168);
        assert!(config.sources["zones"].contains("723 minutes"));
    }

    #[test]
    fn contradictions_name_both_figures() {
        let error = refused(
            &Sheet {
                rpm: Some(5400.0),
                ..sheet()
            },
            None,
        );
        assert!(error.contains("5400") && error.contains("7200"), "{error}");
        let error = refused(
            &Sheet {
                capacity: Some("4T".into()),
                ..sheet()
            },
            None,
        );
        assert!(error.starts_with("capacity"), "{error}");
        // 8 TB in 300 minutes are 444 MB/s.
        let error = refused(&sheet(), Some(300.0));
        assert!(error.contains("210") && error.contains("444"), "{error}");
    }

    #[test]
    fn tracks_and_rates_that_do_not_hold_the_capacity_are_refused() {
        // 153 MB/s in the mean at 7,200 rpm are 1.28 MB a track, 383 GB on 300,000 tracks.
        let tracks = |tracks, surfaces| Sheet {
            tracks: Some(tracks),
            surfaces,
            ..sheet()
        };
        let error = refused(&tracks(300_000, Some(8)), None);
        assert!(
            error.starts_with("capacity")
                && error.contains("8002 GB")
                && error.contains("300000 tracks on 8 surfaces")
                && error.contains("3062 GB"),
            "{error}"
        );
        assert!(refused(&tracks(0, Some(8)), None).contains("0 tracks"));
        let config = described(&tracks(450_000, None), Some(&smart(None)), &[]).unwrap();
        assert_eq!(config.surfaces, 14);
    }

    #[test]
    fn missing_figures_are_named() {
        let error = described(&sheet(), None, &[]).unwrap_err().to_string();
        assert!(error.contains("no capacity"), "{error}");
        let error = refused(&Sheet::default(), None);
        assert!(error.contains("no rate of the medium"), "{error}");
    }
}
