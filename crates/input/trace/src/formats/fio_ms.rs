//! fio's I/O logs of version 3 with times in ms, as written by early versions.
//!
//! Nothing in a log distinguishes ms from us, so this format is never recognised. It must be given
//! by name. The length of the run shows the unit, because the last time is the length of the run.

use super::fio::{IoLog, TimeSource, version_3};
use super::{Confidence, Format, PlaceUnit};
use crate::fault::TraceFault;
use crate::input::Input;
use crate::row::{LineRows, Parser};

pub(super) const FORMAT: Format = Format {
    name: "fio-ms",
    summary: "fio iolog version 3 with times in ms, of early fio 3 (give --format, because fio has the same columns)",
    columns: "time (ms), file, action, offset (bytes), length (bytes); else as fio",
    counted: PlaceUnit::Lines,
    detect: |_| Confidence::No,
    open,
};

const MILLISECOND_NS: u64 = 1_000_000;

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    version_3(input)?;
    Ok(Box::new(LineRows(IoLog::new(TimeSource::Times {
        unit_ns: MILLISECOND_NS,
    }))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TracePlace;
    use crate::formats::TraceHead;
    use crate::formats::blktrace::testing::rows_of;
    use crate::row::TraceRow;
    use fullstroke_contract::Operation;

    const TEXT: &[u8] =
        b"fio version 3 iolog\n7 /dev/sda add\n15 /dev/sda write 0 4096\n16 /dev/sda rite 0 1\n";

    #[test]
    fn times_are_milliseconds() {
        let rows = rows_of(&FORMAT, &TEXT[..60]).unwrap();
        assert_eq!(
            rows,
            [TraceRow {
                place: 3,
                ..TraceRow::new(15_000_000, Operation::Write, 0, 8)
            }]
        );
    }

    #[test]
    fn it_has_to_be_said_by_name() {
        assert_eq!(
            (FORMAT.detect)(&TraceHead {
                name: "fio-ms",
                bytes: TEXT
            }),
            Confidence::No
        );
    }

    #[test]
    fn damage_is_named_and_version_2_is_refused() {
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, TEXT) else {
            panic!("no fault")
        };
        assert_eq!(
            problem.place,
            TracePlace::Line {
                line: 4,
                column: 13
            }
        );
        assert!(matches!(
            rows_of(&FORMAT, b"fio version 2 iolog\na read 0 512\n"),
            Err(TraceFault::Broken(_))
        ));
    }
}
