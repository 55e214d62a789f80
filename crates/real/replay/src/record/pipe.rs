//! The events as they come, in the format of the kernel's block tracer.

use super::error::{ReaderCounts, RecordError};
use super::instance::Instance;
use crate::clock::outside;
use fullstroke_units::Duration;
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration as Outside, Instant};

/// Number of bytes per read.
const READ_BYTES: usize = 64 << 10;
/// Pause between reads while no events come.
const LOOK: Outside = Outside::from_millis(10);
/// Interval between measurements of the buffer's fill.
const MEASURE: Outside = Outside::from_millis(100);
/// Longest time for reading the rest of the events after the end.
const EMPTYING: Outside = Outside::from_secs(10);

/// Number of lines held back, so that an arrival can be removed again. Fewer are held back while no
/// events come.
const HELD: usize = 512;

/// Events of an instance, translated line by line. The stream ends when the time is over or `stop`
/// is true, and all events in the buffer have been read.
pub(super) struct Pipe {
    // Field order: the file must be closed before its instance is removed.
    file: File,
    instance: Instance,
    began: Instant,
    until: Option<Instant>,
    stop: Arc<AtomicBool>,
    /// Time when the instance stopped taking events.
    ended: Option<Instant>,
    measured: Instant,
    raw: Vec<u8>,
    /// Beginning of a line whose end has not come.
    part: Vec<u8>,
    held: VecDeque<RequestLine>,
    ready: Vec<u8>,
    taken: usize,
    counts: Arc<Mutex<ReaderCounts>>,
}

impl Pipe {
    pub(super) fn open(
        instance: Instance,
        duration: Option<Duration>,
        stop: Arc<AtomicBool>,
        counts: Arc<Mutex<ReaderCounts>>,
    ) -> Result<Pipe, RecordError> {
        let path = instance.pipe();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path);
        let file = opened.map_err(|source| RecordError::Pipe { path, source })?;
        let now = Instant::now();
        Ok(Pipe {
            file,
            instance,
            began: now,
            until: duration.map(|duration| now + outside(duration)),
            stop,
            ended: None,
            measured: now,
            raw: vec![0; READ_BYTES],
            part: Vec::new(),
            held: VecDeque::with_capacity(HELD + 1),
            ready: Vec::new(),
            taken: 0,
            counts,
        })
    }

    /// Checks the clock and the stop flag, and measures the buffer's fill.
    fn look_around(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let is_over =
            // Relaxed: the flag carries no data.
            self.until.is_some_and(|until| now >= until) || self.stop.load(Ordering::Relaxed);
        if is_over && self.ended.is_none() {
            self.instance.end().map_err(io::Error::other)?;
            self.ended = Some(now);
            self.measure();
        } else if now.duration_since(self.measured) >= MEASURE {
            self.measured = now;
            self.measure();
        }
        Ok(())
    }

    fn measure(&self) {
        let fill = self.instance.fill();
        let Ok(mut counts) = self.counts.lock() else {
            return;
        };
        counts.high_water_bytes = counts.high_water_bytes.max(fill.bytes_max);
        counts.lost = fill.lost;
        counts.seconds = self
            .ended
            .unwrap_or_else(Instant::now)
            .duration_since(self.began)
            .as_secs_f64();
    }

    /// Reads until there is a line. Returns `false` if nothing more comes.
    fn fill(&mut self) -> io::Result<bool> {
        self.ready.clear();
        self.taken = 0;
        while self.ready.is_empty() {
            self.look_around()?;
            match self.file.read(&mut self.raw) {
                Ok(0) => {}
                Ok(length) => {
                    self.take_lines(length);
                    continue;
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
            self.release(0);
            if !self.ready.is_empty() {
                break;
            }
            if let Some(ended) = self.ended
                && (self.instance.fill().entries == 0 || ended.elapsed() > EMPTYING)
            {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
        Ok(true)
    }

    fn take_lines(&mut self, length: usize) {
        self.part.extend_from_slice(&self.raw[..length]);
        let whole = self
            .part
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.part.drain(..whole).collect();
        let mut events = 0;
        for line in lines.split(|byte| *byte == b'\n') {
            let Some(event) = translated(&String::from_utf8_lossy(line)) else {
                continue;
            };
            events += 1;
            take(&mut self.held, event);
            self.release(HELD);
        }
        if let Ok(mut counts) = self.counts.lock() {
            counts.events += events;
        }
    }

    /// Passes on lines until at most `held` lines are held back.
    fn release(&mut self, held: usize) {
        while self.held.len() > held
            && let Some(event) = self.held.pop_front()
        {
            self.ready.extend_from_slice(event.line.as_bytes());
            self.ready.push(b'\n');
        }
    }
}

/// Adds an event to the lines held back. A rejection removes its arrival instead. A caller that
/// must not wait (io_uring tries this first) is told to try again. The rejected request never took
/// place.
fn take(held: &mut VecDeque<RequestLine>, event: RequestLine) {
    if !event.is_rejection {
        return held.push_back(event);
    }
    let is_arrival = |one: &RequestLine| {
        one.action == 'Q' && (one.process, &one.extent) == (event.process, &event.extent)
    };
    if let Some(arrival) = held.iter().rposition(is_arrival) {
        held.remove(arrival);
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ready.len() && !self.fill()? {
            return Ok(0);
        }
        let length = buffer.len().min(self.ready.len() - self.taken);
        buffer[..length].copy_from_slice(&self.ready[self.taken..][..length]);
        self.taken += length;
        Ok(length)
    }
}

/// A line about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RequestLine {
    action: char,
    process: u32,
    /// `sector + sectors`.
    extent: String,
    /// True for a completion that rejects the request.
    is_rejection: bool,
    line: String,
}

/// Translates an event into the classic form of the kernel's block tracer, `major,minor cpu seconds
/// process action rwbs sector + sectors`:
///
/// ```text
///  dd-6815  [001] ..... 89621.109310: block_rq_issue: 7,2 RS 65536 () 0 + 128 be,0,4 [dd]
/// 7,2 1 89621.109310 6815 D RS 0 + 128
/// ```
///
/// Returns `None` for a line that is no event of a request.
fn translated(line: &str) -> Option<RequestLine> {
    let (head, event) = line.split_once(": block_")?;
    let (name, request) = event.split_once(": ")?;
    let action = match name {
        "bio_queue" => 'Q',
        "rq_requeue" => 'R',
        "rq_issue" => 'D',
        "rq_complete" | "bio_complete" => 'C',
        _ => return None,
    };
    let time = head.rsplit(' ').next()?;
    let (task, rest) = head.rsplit_once('[')?;
    let processor: u32 = rest.split(']').next()?.parse().ok()?;
    // The name of a task may hold any character; the number comes last. `<...>-1` is a task whose
    // name is forgotten.
    let process: u32 = task.trim_end().rsplit('-').next()?.parse().ok()?;
    let words: Vec<&str> = request.split_whitespace().collect();
    let (device, flags) = (words.first()?, words.get(1)?);
    let plus = words.iter().position(|word| *word == "+")?;
    let extent = format!(
        "{} + {}",
        // The words before `+` are the start, behind it the length; a flush has neither.
        words.get(plus.checked_sub(1)?)?,
        words.get(plus + 1)?
    );
    // -11 is EAGAIN, with which the kernel ends bios that must not wait.
    let is_rejection = name == "bio_complete" && words.last() == Some(&"[-11]");
    let line = format!("{device} {processor} {time} {process} {action} {flags} {extent}");
    Some(RequestLine {
        action,
        process,
        extent,
        is_rejection,
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_trace::{TraceOptions, TraceReader};

    const LINES: &str = "\
              dd-6815    [001] ..... 89621.109300: block_bio_queue: 7,2 RS 0 + 128 [dd]
              dd-6815    [001] ..... 89621.109310: block_rq_issue: 7,2 RS 65536 () 0 + 128 be,0,4 [dd]
CPU:1 [LOST 12 EVENTS]
 lto [x]-y z-6812    [000] ..s.. 89621.109629: block_rq_complete: 7,2 RS () 0 + 128 be,0,4 [0]
           <...>-77      [000] ..... 89621.114285: block_bio_queue: 7,2 FWS 0 + 0 [jbd2]
           <...>-77      [000] ..... 89621.114286: block_plug: [jbd2]
              dd-6815    [001] ..... 89621.115000: block_bio_complete: 7,2 WS 256 + 8 [0]
";

    #[test]
    fn events_are_said_in_the_block_tracers_words() {
        let lines: Vec<String> = LINES
            .lines()
            .filter_map(translated)
            .map(|event| event.line)
            .collect();
        let expected = [
            "7,2 1 89621.109300 6815 Q RS 0 + 128",
            "7,2 1 89621.109310 6815 D RS 0 + 128",
            "7,2 0 89621.109629 6812 C RS 0 + 128",
            "7,2 0 89621.114285 77 Q FWS 0 + 0",
            "7,2 1 89621.115000 6815 C WS 256 + 8",
        ];
        assert_eq!(lines, expected);
        let text = lines.join("\n").into_bytes();
        let bytes = Box::new(io::Cursor::new(text));
        let mut reader =
            TraceReader::open_read("events", bytes, &TraceOptions::for_format("blkparse")).unwrap();
        let first = reader.next().unwrap().unwrap();
        assert_eq!((first.process, first.extent.sectors.0), (6815, 128));
        assert_eq!(first.service().unwrap(), Duration::from_micros(319));
        assert_eq!(first.response().unwrap(), Duration::from_micros(329));
    }

    #[test]
    fn a_request_that_was_told_to_come_again_came_once() {
        let line = |number: u32, name: &str, extent: &str, end: &str| {
            format!(" fio-{number} [000] ..... 1.{number:06}: block_{name}: 7,2 R {extent} {end}")
        };
        let mut held = VecDeque::new();
        for event in [
            line(1, "bio_queue", "8 + 8", "[fio]"),
            line(2, "bio_queue", "8 + 8", "[fio]"),
            line(2, "bio_complete", "8 + 8", "[-11]"),
            line(2, "bio_queue", "8 + 8", "[fio]"),
            line(1, "bio_complete", "8 + 8", "[0]"),
        ] {
            take(&mut held, translated(&event).unwrap());
        }
        let left: Vec<(char, u32)> = held
            .iter()
            .map(|event| (event.action, event.process))
            .collect();
        assert_eq!(left, [('Q', 1), ('Q', 2), ('C', 1)]);
    }
}
