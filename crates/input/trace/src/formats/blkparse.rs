//! Text of blkparse. The kernel's own blk tracer writes the same text. Lines of `blkparse -f` have
//! their fields in another order (`places.rs`).

mod places;

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::events::processors::Processors;
use crate::events::stream::EventStream;
use crate::events::{Action, KernelEvent, device_number, operation_of_flags};
use crate::fault::TraceFault;
use crate::fields::{LineFields, Parsed};
use crate::input::Input;
use crate::row::{Parser, TraceRow};
use places::{FieldPlaces, is_note};

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    summary: "blkparse text, also with a format of its own (-f), and the kernel's blk tracer (trace_pipe, classic or not): Linux block layer events",
    columns: "major,minor (the device: major << 20 | minor), cpu, sequence, time (s), process, action, rwbs, \
              first sector + sectors, [process name]. A request arrives with its Q event (I or D where the trace \
              has none), is issued with D and complete with C. Other events, messages and the summary are ignored",
    counted: PlaceUnit::Lines,
    detect,
    open: |input| {
        let head = TraceHead {
            name: "",
            bytes: input.peek(HEAD_BYTES)?,
        };
        // The usual order keeps the processor and the sequence number, which show lost events.
        // Places know neither, so they are the last resort.
        let places = match counted_events(&head) {
            0 => FieldPlaces::of(&head),
            _ => None,
        };
        Ok(Box::new(BlkParse {
            places,
            ..BlkParse::default()
        }))
    },
};

/// Number of bytes that tell the order of the fields.
const HEAD_BYTES: usize = 16 * 1024;

#[derive(Default)]
struct BlkParse {
    stream: EventStream,
    processors: Processors,
    /// True if the summary behind the events has begun.
    summary: bool,
    finished: bool,
    /// Places of the fields, if `blkparse -f` has put them into another order.
    places: Option<FieldPlaces>,
}

/// Number of events among the first lines that makes the format certain.
const EVENTS_SURE: usize = 1;

fn detect(head: &TraceHead<'_>) -> Confidence {
    if counted_events(head) >= EVENTS_SURE || FieldPlaces::of(head).is_some() {
        Confidence::Likely
    } else {
        Confidence::No
    }
}

/// Returns the number of events in blkparse's own order among the first lines.
fn counted_events(head: &TraceHead<'_>) -> usize {
    let events = |line: &&[u8]| event(line).is_ok_and(|line| line.event.is_some());
    head.lines().take(256).filter(events).count()
}

impl Parser for BlkParse {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        // `rows` may hold rows already.
        let end = rows.len().saturating_add(limit);
        while rows.len() < end {
            let number = input.line_number() + 1;
            let Some(line) = input.line()? else {
                if !self.finished {
                    self.stream.finish(rows);
                    self.finished = true;
                }
                return Ok(false);
            };
            if self.passes_over(line) {
                continue;
            }
            let parsed = match &self.places {
                Some(places) => places.event(line).map(|event| BlkparseLine {
                    processor: 0,
                    source: None,
                    event,
                }),
                None => event(line),
            };
            match parsed {
                Ok(line) => {
                    if let Some((device, processor, sequence)) = line.source {
                        self.processors.record_event(device, processor, sequence);
                    }
                    if let Some(event) = line.event {
                        self.stream.push(
                            line.processor,
                            KernelEvent {
                                place: number,
                                ..event
                            },
                            rows,
                        );
                    }
                }
                Err(mismatch) => return Err(TraceFault::in_line(number, *mismatch)),
            }
        }
        Ok(true)
    }

    fn is_of_events(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.processors.notes(None, self.stream.matcher());
        notes.extend(self.places.as_ref().map(FieldPlaces::note));
        for note in self.stream.notes() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }
}

impl BlkParse {
    /// Returns true if `line` is not an event: empty, a comment, a note of lost events, or a part
    /// of the summary.
    fn passes_over(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii();
        let summary = [
            &b"CPU"[..],
            b"Total",
            b"Reads Queued",
            b"Throughput",
            b"Events (",
            b"Skips:",
        ];
        self.summary |=
            // The kernel writes `CPU:0 [LOST 12 EVENTS]` (`print_trace_line`) between events.
            summary.iter().any(|word| line.starts_with(word)) && !line.starts_with(b"CPU:");
        // Events of a second run may follow the summary, and begin with a number.
        is_note(line) || (self.summary && !matches!(line.first(), Some(b'0'..=b'9')))
    }
}

/// Content of a line.
#[derive(Debug)]
struct BlkparseLine {
    processor: u32,
    /// Device, processor and sequence number, if the event has all three.
    source: Option<(u32, u32, u64)>,
    /// The event; `None` if it does not concern requests.
    event: Option<KernelEvent>,
}

/// Parses the event on `line`.
fn event(line: &[u8]) -> Parsed<BlkparseLine> {
    let mut fields = LineFields::new(line);
    fields.spaces();
    if matches!(fields.peek(), Some(b'0'..=b'9')) && fields.clone().word().contains(&b',') {
        return classic(&mut fields);
    }
    let processor = super::ftrace::processor_of(line);
    Ok(BlkparseLine {
        processor,
        source: None,
        event: traced(&mut fields)?,
    })
}

/// Parses `major,minor cpu [sequence] time process action ...`. blkparse numbers the events; the
/// kernel's own tracer does not.
fn classic(fields: &mut LineFields<'_>) -> Parsed<BlkparseLine> {
    let device = device(fields)?;
    fields.spaces();
    let processor = fields.small("a processor number")?;
    fields.spaces();
    let mut sequence = 0;
    if !fields.clone().word().contains(&b'.') {
        sequence = fields.integer("a sequence number")?;
        fields.spaces();
    }
    let time = fields.decimal(9, "a time in seconds")?;
    fields.spaces();
    let process = fields.small("a process number")?;
    // Messages have no number.
    let source = (sequence > 0).then_some((device, processor, sequence));
    Ok(BlkparseLine {
        processor,
        source,
        event: request(fields, device, time, process)?,
    })
}

/// Parses the tracer's other form: `task-process [cpu] flags time: major,minor action ...`
fn traced(fields: &mut LineFields<'_>) -> Parsed<Option<KernelEvent>> {
    let begin = fields.clone();
    let Some(cpu) = memchr::memmem::find(fields.rest(), b" [") else {
        return Err(begin
            .mismatch("an event: `major,minor cpu [sequence] seconds process action rwbs ...`"));
    };
    let task = fields.rest()[..cpu].trim_ascii();
    // A task's name may contain dashes, so the number stands behind the last one.
    let process = task.rsplit(|&byte| byte == b'-').next().unwrap_or_default();
    let process = LineFields::new(process)
        .small("a process number")
        .unwrap_or(0);
    fields.skip(cpu);
    fields.until(b']');
    // The time may be preceded by one word of flags.
    let mut time = fields.clone();
    while !time.is_end() && !time.clone().word().ends_with(b":") {
        time.word();
    }
    time.spaces();
    let now = time.decimal(9, "a time in seconds and `:`")?;
    time.byte(b':')?;
    time.spaces();
    let device = device(&mut time)?;
    let event = request(&mut time, device, now, process);
    *fields = time;
    event
}

fn device(fields: &mut LineFields<'_>) -> Parsed<u32> {
    let before = fields.clone();
    let major = fields.integer("a device's `major,minor`")?;
    fields.byte(b',')?;
    let minor = fields.integer("a device's minor number")?;
    device_number(major, minor)
        .ok_or_else(|| before.mismatch("a major number below 4096 and a minor below 2^20"))
}

/// Parses `action rwbs sector + sectors ...`
fn request(
    fields: &mut LineFields<'_>,
    device: u32,
    time: u64,
    process: u32,
) -> Parsed<Option<KernelEvent>> {
    let before = fields.clone();
    let action = match fields.word() {
        b"Q" => Action::Queue,
        b"I" => Action::Insert,
        b"D" => Action::Issue,
        b"R" => Action::Requeue,
        b"C" => Action::Complete,
        b"" => return Err(before.mismatch("an action such as Q, D or C")),
        // Merges and splits are visible in the extents of D and C; see `events`.
        _ => return Ok(None),
    };
    let flags = fields.word();
    fields.spaces();
    // A completed SCSI command has no extent, nor has a flush in older kernels.
    let (start, sectors) = if matches!(fields.peek(), Some(b'0'..=b'9')) {
        extent(fields)?
    } else {
        (0, 0)
    };
    let Some(operation) = operation_of_flags(flags, sectors) else {
        return Ok(None);
    };
    Ok(Some(KernelEvent {
        action,
        time,
        device,
        process,
        operation,
        start,
        sectors,
        place: 0,
    }))
}

/// Parses `sector + sectors`, or a sector alone.
fn extent(fields: &mut LineFields<'_>) -> Parsed<(u64, u64)> {
    let start = fields.integer("a sector number")?;
    fields.spaces();
    if fields.peek() != Some(b'+') {
        return Ok((start, 0));
    }
    fields.skip(1);
    fields.spaces();
    Ok((start, fields.integer("a number of sectors")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Operation;

    #[test]
    fn completions_alone_are_requests_that_arrive_when_they_end() {
        let text = b"Input file sda.blktrace.0 added\n\
              8,0    1        1     0.010000000     0  C   R 100 + 8 [0]\n\
              8,0    1        2     0.020000000     0  C  WS 200 + 16 [0]\n";
        let rows = crate::formats::blktrace::testing::rows_of(&FORMAT, text).unwrap();
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.arrival, row.start, row.sectors, row.completed))
            .collect();
        assert_eq!(
            told,
            [(10_000_000, 100, 8, None), (20_000_000, 200, 16, None)]
        );
    }

    #[test]
    fn blkparse_and_both_forms_of_the_kernel_tracer_are_understood() {
        let line = b"  8,16   3        4     0.000011950  3645  Q   R 4938888 + 256 [java]";
        let first = event(line).unwrap().event.unwrap();
        assert_eq!(
            (first.time, first.process, first.start, first.sectors),
            (11_950, 3645, 4_938_888, 256)
        );
        assert_eq!(first.device, 8 << 20 | 16);
        let line = b"  7,0    1  2434.906746663 17409  Q  RM 74056 + 8 [bash]";
        let unnumbered = event(line).unwrap().event.unwrap();
        assert_eq!(
            (unnumbered.time, unnumbered.process),
            (2_434_906_746_663, 17409)
        );
        assert_eq!((unnumbered.start, unnumbered.sectors), (74_056, 8));
        let line =
            b"     kworker/u8:1-77      [002] d..1   512.000001: 8,16   Q WS 64 + 8 [kworker/u8:1]";
        let second = event(line).unwrap().event.unwrap();
        assert_eq!((second.time, second.process), (512_000_001_000, 77));
        assert_eq!((second.operation, second.start), (Operation::Write, 64));
    }

    #[test]
    fn plugs_messages_and_commands_are_no_requests() {
        for line in [
            &b"  8,16   3        4     0.000011950  3645  U   N [java] 1"[..],
            b"  8,16   3        0     0.000011950     0  m   N cfq workload slice:100",
            b"  8,16   3        4     0.000011950  3645  C   N 0 [0]",
            b"  8,16   3        4     0.000011950  3645  A   R 64 + 8 <- (8,1) 0",
        ] {
            assert!(event(line).unwrap().event.is_none());
        }
    }
}
