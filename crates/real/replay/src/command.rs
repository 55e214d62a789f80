//! A request of the trace as a command for the device.

use crate::WriteTreatment;
use crate::issued::{Action, IssuedCommand};
use crate::target::Target;
use fullstroke_contract::Operation;
use fullstroke_trace::TraceRecord;
use fullstroke_units::SECTOR_BYTES;

/// Treatment of a request of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayTreatment {
    Issue(IssuedCommand),
    LeaveOut,
    Forbid,
}

/// Returns the treatment of `record`, which lies within the target's capacity.
pub(crate) fn treatment(
    record: TraceRecord,
    writes: WriteTreatment,
    target: &Target,
) -> ReplayTreatment {
    let action = match (record.operation, writes) {
        (Operation::Read, _) => Action::Read,
        (Operation::Write, WriteTreatment::Overwrite) => Action::Write,
        (Operation::Write, WriteTreatment::AsReads) => Action::Read,
        (Operation::Discard, WriteTreatment::Overwrite) => Action::Discard,
        // A flush changes nothing. It belongs to the writes before it.
        (Operation::Flush, WriteTreatment::Overwrite | WriteTreatment::AsReads) => Action::Flush,
        (Operation::Write | Operation::Discard, WriteTreatment::Refuse) => {
            return ReplayTreatment::Forbid;
        }
        // Standby and start commands belong to a disk. No block device carries them out.
        _ => return ReplayTreatment::LeaveOut,
    };
    let (start, bytes) = aligned(&record, target);
    ReplayTreatment::Issue(IssuedCommand {
        action,
        start,
        bytes,
        record,
    })
}

/// Returns the record's bytes, widened to the alignment.
fn aligned(record: &TraceRecord, target: &Target) -> (u64, u64) {
    if record.operation.is_of_all() {
        return (0, 0);
    }
    let unit = target.alignment_bytes;
    let start = record.extent.start.0 * SECTOR_BYTES / unit * unit;
    let end = (record.extent.end().0 * SECTOR_BYTES).next_multiple_of(unit);
    (start, end - start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Extent;
    use fullstroke_units::{Sectors, Time};

    fn target(alignment_bytes: u64) -> Target {
        let file = std::fs::File::open("/dev/null").unwrap();
        Target {
            file,
            name: "target".into(),
            capacity: Sectors(1 << 20),
            alignment_bytes,
            claim: None,
        }
    }

    fn record(operation: Operation, start: u64, sectors: u64) -> TraceRecord {
        let extent = Extent::new(start, sectors);
        TraceRecord {
            arrival: Time::ZERO,
            operation,
            extent,
            device: 0,
            process: 0,
            issued: None,
            completed: None,
        }
    }

    fn issued(
        record: TraceRecord,
        writes: WriteTreatment,
        target: &Target,
    ) -> Option<IssuedCommand> {
        match treatment(record, writes, target) {
            ReplayTreatment::Issue(command) => Some(command),
            ReplayTreatment::LeaveOut | ReplayTreatment::Forbid => None,
        }
    }

    #[test]
    fn nothing_is_changed_without_the_word() {
        let target = target(512);
        for operation in [Operation::Write, Operation::Discard] {
            assert_eq!(
                treatment(record(operation, 8, 8), WriteTreatment::Refuse, &target),
                ReplayTreatment::Forbid
            );
            for writes in [WriteTreatment::Skip, WriteTreatment::AsReads] {
                let action =
                    issued(record(operation, 8, 8), writes, &target).map(|command| command.action);
                assert!(
                    action.is_none_or(|action| action == Action::Read),
                    "{operation:?} {writes:?}"
                );
            }
        }
        let written = issued(
            record(Operation::Write, 8, 8),
            WriteTreatment::Overwrite,
            &target,
        )
        .unwrap();
        assert_eq!(
            (written.action, written.start, written.bytes),
            (Action::Write, 4096, 4096)
        );
    }

    #[test]
    fn a_request_is_widened_to_the_devices_blocks() {
        let read = |start, sectors, alignment| {
            let command = issued(
                record(Operation::Read, start, sectors),
                WriteTreatment::Refuse,
                &target(alignment),
            )
            .unwrap();
            (command.start, command.bytes, command.is_widened())
        };
        assert_eq!(read(9, 3, 512), (4608, 1536, false));
        assert_eq!(read(9, 3, 4096), (4096, 4096, true));
        assert_eq!(read(7, 2, 4096), (0, 8192, true));
        assert_eq!(read(8, 8, 4096), (4096, 4096, false));
    }
}
