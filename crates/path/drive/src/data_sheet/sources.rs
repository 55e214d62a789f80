//! Where each number of a fitted description comes from.

use super::{AVERAGE_SEEK_MS, DataSheet, FULL_STROKE, INNER_SHARE};
use std::collections::BTreeMap;

/// The `[sources]` of the description of `sheet`.
#[expect(clippy::too_many_lines, reason = "a table: a source for each number")]
pub(super) fn of(sheet: &DataSheet) -> BTreeMap<String, String> {
    let inner = match sheet.inner_mb_per_s {
        Some(inner) => format!("{inner} MB/s inside (given)"),
        None => {
            format!("{INNER_SHARE} of the outer rate inside (assumed: Toshiba X300, Wong 2019)")
        }
    };
    let seek = match sheet.average_seek_ms {
        Some(average) => format!("average {average} ms: given. fitted"),
        None => {
            format!("assumed: average {AVERAGE_SEEK_MS} ms, as the Exos X24 was fitted. fitted")
        }
    };
    let surfaces = match sheet.surfaces {
        Some(_) => "given".to_owned(),
        None => "fitted: tracks of this length lie as close as on the measured drives of Wong 2019"
            .to_owned(),
    };
    let buffer = if sheet.buffer.is_some() {
        "size: given. assumed"
    } else {
        "assumed: 64 MiB"
    };
    [
        (
            "capacity_sectors",
            "given; a whole number of GB as drives of that size report it (IDEMA LBA1-03)".to_owned(),
        ),
        ("rpm", "given".to_owned()),
        ("surfaces", surfaces),
        (
            "order",
            "assumed: bands on each surface in turn, as on a Hitachi 7K1000.C and a Toshiba X300 (H. Wong, \
             Discovering Hard Disk Physical Geometry through Microbenchmarking, 2019). fitted: their length"
                .to_owned(),
        ),
        (
            "zones",
            format!(
                "fitted: 24 zones of equal width, track lengths linear from {} MB/s outside (given) to {inner}; \
                 by surface up to 4 % longer or shorter, which is made up; skews of 1/16 revolution, 3/16 where \
                 the head changes (Wong 2019: 1/16 on a Toshiba X300, more at a change of head)",
                sheet.outer_mb_per_s
            ),
        ),
        (
            "seek",
            match sheet.class().floor() {
                Some(floor) => format!(
                    "{seek}: one track in 0.6 of the skew between neighbours, short seeks {floor} of the average \
                     and the rest with the root of the distance, as on measured disks of the class"
                ),
                None => format!(
                    "{seek}: one track in 0.6 of the skew between neighbours, full stroke {FULL_STROKE} times the \
                     average (Seagate Constellation.2 manual)"
                ),
            },
        ),
        ("head_switch_ms", "fitted: as the skew between neighbours, for heads stand tens of tracks apart".to_owned()),
        ("write_settle_ms", "fitted: so that a write to the next track keeps within the skew".to_owned()),
        ("zero_latency", "assumed".to_owned()),
        ("command_overhead_ms", "assumed: as Deskstar 120GXP specification, figure 4".to_owned()),
        (
            "electronics",
            "assumed: SATA at 6 Gb/s, 600 MB/s behind its 8b/10b code; a hit in 30 us, Ultrastar 146Z10 \
             specification, section 4.5.1"
                .to_owned(),
        ),
        (
            "buffer",
            format!(
                "{buffer}: the write cache as drives of the class ({}); the arm stays 2 MB with a stream",
                sheet.class().source()
            ),
        ),
        ("queue", sheet.class().source()),
        ("published", "given, to hold the fitted numbers against".to_owned()),
    ]
    .map(|(key, source)| (key.to_owned(), source))
    .into()
}
