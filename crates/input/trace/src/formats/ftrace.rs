//! Events of the kernel's block layer as text: tracefs (`trace`, `trace_pipe`), `trace-cmd report` and
//! `perf script`.
//!
//! A line names the event: `task-pid [cpu] flags seconds: block_rq_issue: 8,0 R 4096 () 2048 + 8 [dd]`.
//! Linux 6.10 and later print the I/O priority behind the sectors (`be,0,6`), which is ignored. The
//! events become requests as those of blktrace do (`events.rs`). `block_bio_complete` is left out,
//! because a completed driver request says the same. `block_io_start` (Linux 6.3 and later) stands for
//! an insert event in a trace with none of the events above; `block_io_done` comes when the request has
//! no length any more (`__blk_mq_end_request`, block/blk-mq.c), so that no completion is known then.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::events::stream::EventStream;
use crate::events::{Action, KernelEvent, device_number, operation_of_flags};
use crate::fault::TraceFault;
use crate::fields::{LineFields, Parsed};
use crate::input::Input;
use crate::row::{Parser, TraceRow};
use std::collections::BTreeMap;

pub(super) const FORMAT: Format = Format {
    name: "ftrace",
    summary: "events block_rq_* and block_bio_queue of tracefs, trace-cmd report and perf script",
    columns: "task, process, [cpu], time (s), event, major,minor (the device: major << 20 | minor), rwbs, [bytes], \
              (command), first sector + sectors. A request arrives with block_bio_queue (block_rq_insert or \
              block_rq_issue where the trace has none), is issued with block_rq_issue and complete with \
              block_rq_complete. Other events are left out",
    counted: PlaceUnit::Lines,
    detect,
    open: |input| {
        let head = TraceHead {
            name: "",
            bytes: input.peek(HEAD_BYTES)?,
        };
        Ok(Box::new(Ftrace {
            names: Names::of(&head).unwrap_or_default(),
            ..Ftrace::default()
        }))
    },
};

/// Number of bytes that tell which events the trace has.
const HEAD_BYTES: usize = 64 * 1024;
/// Number of lines that are examined to recognise the format.
const LINES_DETECTED: usize = 1024;
/// Beginning of the names of events of the block layer.
const BLOCK: &[u8] = b"block_";

/// Events that become requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Names {
    /// `block_rq_*` and `block_bio_queue`.
    #[default]
    Requests,
    /// `block_io_start` alone.
    Starts,
}

impl Names {
    /// Returns the kind of the events among the first lines; `None` if there is no event.
    fn of(head: &TraceHead<'_>) -> Option<Names> {
        let has = |names: Names| {
            let mut lines = head.lines().take(LINES_DETECTED);
            lines.any(|line| matches!(event(line, names), Ok(Some(_))))
        };
        [Names::Requests, Names::Starts]
            .into_iter()
            .find(|names| has(*names))
    }

    fn action(self, name: &[u8]) -> Option<Action> {
        match (self, name) {
            (Names::Requests, b"block_bio_queue") => Some(Action::Queue),
            (Names::Requests, b"block_rq_insert") | (Names::Starts, b"block_io_start") => {
                Some(Action::Insert)
            }
            (Names::Requests, b"block_rq_issue") => Some(Action::Issue),
            (Names::Requests, b"block_rq_requeue") => Some(Action::Requeue),
            (Names::Requests, b"block_rq_complete") => Some(Action::Complete),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Ftrace {
    names: Names,
    stream: EventStream,
    inserted: Inserted,
    finished: bool,
    /// Number of lines that say that events were lost.
    lost: u64,
}

/// Largest number of waiting requests that are remembered.
const INSERTED_MAX: usize = 1 << 16;

/// Requests that were inserted into a scheduler and not issued yet. Without a scheduler (`none`) the
/// kernel issues most requests at once, without an insert event (`blk_mq_try_issue_directly`,
/// block/blk-mq.c, Linux 6.6). The arrival of a request without an insert is the time of the issue.
#[derive(Default)]
struct Inserted {
    /// End of each extent by device and start. A flush starts at the largest sector.
    extents: BTreeMap<(u32, u64), u64>,
}

impl Inserted {
    /// Records the event. Returns true for the issue of a request without an insert event.
    fn lacks(&mut self, event: &KernelEvent) -> bool {
        let (start, end) = match event.sectors {
            0 => (u64::MAX - 1, u64::MAX),
            sectors => (event.start, event.start.saturating_add(sectors)),
        };
        match event.action {
            Action::Insert => {
                if self.extents.len() == INSERTED_MAX {
                    self.extents.clear();
                }
                self.extents.insert((event.device, start), end);
                false
            }
            Action::Issue => {
                // Requests merge while they wait, so an issue may cover several inserted extents.
                let covered: Vec<(u32, u64)> = self
                    .extents
                    .range((event.device, 0)..(event.device, end))
                    .rev()
                    // Extents that begin before the request belong to it only if they reach into
                    // it.
                    .take_while(|&(&(_, other), &until)| other >= start || until > start)
                    .map(|(&key, _)| key)
                    .collect();
                for key in &covered {
                    self.extents.remove(key);
                }
                covered.is_empty()
            }
            Action::Queue | Action::Requeue | Action::Complete => false,
        }
    }
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    match Names::of(head) {
        Some(_) => Confidence::Certain,
        None => Confidence::No,
    }
}

impl Parser for Ftrace {
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
            match event(line, self.names) {
                Ok(Some(event)) => {
                    let event = KernelEvent {
                        place: number,
                        ..event
                    };
                    let processor = processor_of(line);
                    if self.inserted.lacks(&event) {
                        let insert = KernelEvent {
                            action: Action::Insert,
                            ..event
                        };
                        self.stream.push(processor, insert, rows);
                    }
                    self.stream.push(processor, event, rows);
                }
                Ok(None) => {
                    // `CPU:2 [LOST 57 EVENTS]` of tracefs, `[57 EVENTS DROPPED]` of trace-cmd.
                    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
                    self.lost +=
                        u64::from(has(b"LOST") && has(b"EVENTS") || has(b"EVENTS DROPPED"));
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
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(format!(
                "{} lines say that events were lost; use a larger buffer (buffer_size_kb, trace-cmd record -b)",
                self.lost
            ));
        }
        if self.names == Names::Starts {
            notes.push(
                "the trace has block_io_start alone, so response times are unknown; record block_rq_issue and \
                 block_rq_complete, too"
                    .to_owned(),
            );
        }
        notes.extend(self.stream.notes());
        notes
    }
}

/// Parses the event on `line`; `None` for a line without an event of the block layer.
fn event(line: &[u8], names: Names) -> Parsed<Option<KernelEvent>> {
    let Some((action, name, rest)) = named(line, names) else {
        return Ok(None);
    };
    // The word before the name of the event is the time, with a colon.
    let before = line[..name].trim_ascii_end();
    let before = before.strip_suffix(b":").unwrap_or(before);
    let from = before
        .iter()
        .rposition(|byte| matches!(byte, b' ' | b'\t'))
        .map_or(0, |at| at + 1);
    let mut fields = LineFields::new(line);
    fields.skip(from);
    let begin = fields.clone();
    let time = fields.decimal(9, "a time in seconds")?;
    if fields.peek() != Some(b':') {
        return Err(begin.mismatch("a time in seconds and `:`"));
    }
    let process = process_of(&line[..from]);
    let mut fields = LineFields::new(line);
    fields.skip(rest);
    fields.spaces();
    request(&mut fields, action, time, process)
}

/// Returns the action of the event on `line`, the place of its name, and the place behind the name;
/// `None` if the line has no such event.
fn named(line: &[u8], names: Names) -> Option<(Action, usize, usize)> {
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&line[from..], BLOCK) {
        let mut name = from + found;
        let length = memchr::memchr(b':', &line[name..])?;
        let action = names.action(&line[name..name + length]);
        let rest = name + length + 1;
        if let Some(action) = action {
            // perf writes the name of the subsystem in front: `block:block_rq_issue:`.
            if line[..name].ends_with(b"block:") {
                name -= b"block:".len();
            }
            return Some((action, name, rest));
        }
        from = name + BLOCK.len();
    }
    None
}

/// Returns the processor in `[003]`; 0 if there is none.
pub(super) fn processor_of(line: &[u8]) -> u32 {
    let open = memchr::memmem::find(line, b" [").map_or(line.len(), |at| at + 2);
    let digits = line[open..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let text = std::str::from_utf8(&line[open..open + digits]).unwrap_or_default();
    text.parse().unwrap_or(0)
}

/// Returns the process in `task-pid [cpu] flags` or `task pid [cpu]`; 0 if there is none.
fn process_of(head: &[u8]) -> u32 {
    let task = match memchr::memchr(b'[', head) {
        Some(cpu) => &head[..cpu],
        None => head,
    };
    let task = task.trim_ascii_end();
    // tracefs may print the group of threads in parentheses behind the process.
    let task = match task.ends_with(b")") {
        true => memchr::memrchr(b'(', task).map_or(task, |at| task[..at].trim_ascii_end()),
        false => task,
    };
    let digits = task
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let text = std::str::from_utf8(&task[task.len() - digits..]).unwrap_or_default();
    text.parse().unwrap_or(0)
}

/// Parses `major,minor rwbs [bytes] (command) sector + sectors ...`
fn request(
    fields: &mut LineFields<'_>,
    action: Action,
    time: u64,
    process: u32,
) -> Parsed<Option<KernelEvent>> {
    let before = fields.clone();
    let major = fields.integer("a device's `major,minor`")?;
    fields.byte(b',')?;
    let minor = fields.integer("a device's minor number")?;
    let device = device_number(major, minor)
        .ok_or_else(|| before.mismatch("a major number below 4096 and a minor below 2^20"))?;
    let flags = fields.word();
    fields.spaces();
    // `block_bio_queue` has the sector next. `block_rq_*` has a command in parentheses before the sector,
    // which is often empty, and most of them have the bytes before the command. The name of the task at the
    // end of the line may have parentheses, too.
    let is_number = fields.peek().is_some_and(|byte| byte.is_ascii_digit());
    let number = match is_number {
        true => Some(fields.integer("a sector number")?),
        false => None,
    };
    fields.spaces();
    let start = match (fields.peek(), number) {
        (Some(b'('), _) => {
            fields.until(b')');
            fields.byte(b')')?;
            fields.spaces();
            fields.integer("a sector number")?
        }
        (_, Some(number)) => number,
        (_, None) => fields.integer("a sector number")?,
    };
    fields.separator(b'+')?;
    let sectors = fields.integer("a number of sectors")?;
    let Some(operation) = operation_of_flags(flags, sectors) else {
        return Ok(None);
    };
    Ok(Some(KernelEvent {
        action,
        time,
        device,
        process,
        operation,
        // A flush has no extent; kernels print sector -1.
        start: if sectors == 0 { 0 } else { start },
        sectors,
        place: 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blktrace::testing::rows_of;
    use fullstroke_contract::Operation;

    #[test]
    fn the_three_tools_print_the_same_events() {
        for line in [
            &b"           dd-1234    [001] d..1.  1234.567890: block_rq_issue: 8,16 WS 4096 () 2048 + 8 [dd]"[..],
            b"           dd-1234    ( 1234) [001] .... 1234.567890: block_rq_issue: 8,16 WS 4096 () 2048 + 8 be,0,4 [dd]",
            b"              dd-1234  [001]  1234.567890: block_rq_issue:       8,16 WS 4096 () 2048 + 8 [dd]",
            b"dd  1234 [001]  1234.567890: block:block_rq_issue: 8,16 WS 4096 () 2048 + 8 [dd]",
            b"Web Content  1234 [001]  1234.567890:        block:block_rq_issue: 8,16 WS 4096 (2a 00 00) 2048 + 8 [dd]",
        ] {
            let found = event(line, Names::Requests).unwrap().unwrap();
            let text = line.escape_ascii();
            assert_eq!((found.action, found.time), (Action::Issue, 1_234_567_890_000), "{text}");
            assert_eq!((found.process, found.device), (1234, 8 << 20 | 16), "{text}");
            assert_eq!((found.start, found.sectors), (2048, 8), "{text}");
        }
    }

    #[test]
    fn parentheses_in_the_name_of_a_task_are_no_command() {
        let line =
            b"(sd-pam)-81 [001] d..1. 7.5: block_bio_queue: 8,0 WS 2048 + 8 [(sd-pam) 9 + 9]";
        let found = event(line, Names::Requests).unwrap().unwrap();
        assert_eq!((found.start, found.sectors, found.process), (2048, 8, 81));
        let line = b"(a)-81 [001] d..1. 7.5: block_rq_complete: 8,0 WS () 2048 + 8 [(a)]";
        let found = event(line, Names::Requests).unwrap().unwrap();
        assert_eq!((found.start, found.sectors), (2048, 8));
    }

    #[test]
    fn a_request_runs_from_its_first_event_to_its_completion() {
        let text = b"# tracer: nop\n#\n\
            dd-7 [000] .... 10.000000: block_rq_insert: 8,0 R 4096 () 64 + 8 [dd]\n\
            dd-7 [000] .... 10.000100: block_rq_issue: 8,0 R 4096 () 64 + 8 [dd]\n\
            kworker/0:1H-9 [000] .... 10.000200: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/0:1H]\n\
            <idle>-0 [000] ..s. 10.004000: block_rq_complete: 8,0 R () 64 + 8 [0]\n\
            <idle>-0 [000] ..s. 10.005000: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]\n";
        let rows = rows_of(&FORMAT, text).unwrap();
        let read = rows
            .iter()
            .find(|row| row.operation == Operation::Read)
            .unwrap();
        assert_eq!(
            (read.arrival, read.issued, read.completed),
            (10_000_000_000, Some(10_000_100_000), Some(10_004_000_000))
        );
        assert_eq!(read.process, 7);
    }

    #[test]
    fn a_request_that_was_issued_without_an_insert_arrives_with_its_issue() {
        let text = b"fio 7 [003] 10.0: block:block_rq_insert: 259,0 W 4096 () 8 + 8 [fio]\n\
            fio 7 [003] 10.1: block:block_rq_issue: 259,0 W 4096 () 8 + 8 [fio]\n\
            fio 7 [003] 10.2: block:block_rq_issue: 259,0 R 4096 () 80 + 8 [fio]\n\
            swapper 0 [003] 10.3: block:block_rq_complete: 259,0 W () 8 + 8 [0]\n\
            swapper 0 [003] 10.4: block:block_rq_complete: 259,0 R () 80 + 8 [0]\n";
        let rows = rows_of(&FORMAT, text).unwrap();
        let times: Vec<(u64, Option<u64>)> = rows
            .iter()
            .map(|row| (row.arrival, row.completed))
            .collect();
        assert_eq!(
            times,
            [
                (10_000_000_000, Some(10_300_000_000)),
                (10_200_000_000, Some(10_400_000_000))
            ]
        );
    }

    #[test]
    fn starts_alone_are_requests_that_arrive_and_starts_beside_requests_are_not_counted_twice() {
        let start = "fio-7 [003] d..1. 10.0: block_io_start: 8,0 R 4096 () 64 + 8 be,0,4 [fio]\n";
        let done = "fio-0 [003] ..s1. 10.3: block_io_done: 8,0 R 0 () 72 + 0 be,0,4 [swapper/3]\n";
        let issue = "fio-7 [003] d..1. 10.1: block_rq_issue: 8,0 R 4096 () 64 + 8 be,0,4 [fio]\n";
        for text in [format!("{start}{done}"), format!("{start}{issue}{done}")] {
            let rows = rows_of(&FORMAT, text.as_bytes()).unwrap();
            assert_eq!(
                (rows.len(), rows[0].start, rows[0].sectors),
                (1, 64, 8),
                "{text}"
            );
            assert_eq!(rows[0].completed, None, "{text}");
        }
    }

    #[test]
    fn a_damaged_event_is_named_by_its_column() {
        let text = b"dd-7 [000] .... 10.0: block_rq_issue: 8,0 R 4096 () x + 8 [dd]\n";
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, text) else {
            panic!("no fault")
        };
        assert_eq!(
            problem.place,
            crate::TracePlace::Line {
                line: 1,
                column: 53
            }
        );
    }

    #[test]
    fn other_lines_are_no_events() {
        for line in [
            &b"version = 7"[..],
            b"cpus=8",
            b"  dd-7 [000] .... 10.0: sched_switch: prev_comm=dd",
            b"  dd-7 [000] .... 10.0: block_bio_complete: 8,0 R 64 + 8 [0]",
            b"",
        ] {
            assert!(event(line, Names::Requests).unwrap().is_none());
        }
    }
}
