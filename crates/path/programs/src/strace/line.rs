//! One line of a recording.

use super::argument::next_mark;
use fullstroke_contract::{Reason, reason};

/// A line about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessLine<'t> {
    /// Process of the line; strace names no process if there is only one.
    pub pid: Option<u32>,
    /// Time in nanoseconds; `clock` says since when.
    pub at: u64,
    pub clock: LineClock,
    pub event: TraceEvent<'t>,
}

/// Beginning of the time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineClock {
    /// 1970, with fractions of a second (`-ttt`).
    Epoch,
    /// Midnight, with fractions of a second (`-tt`).
    Day,
    /// Midnight, in whole seconds (`-t`).
    DaySeconds,
    /// The line before (`-r`).
    LineBefore,
    /// The line has no time: strace without `-t` and `-r`.
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceEvent<'t> {
    Call(CompletedCall<'t>),
    /// `name(arguments <unfinished ...>`
    Unfinished {
        name: &'t str,
        arguments: &'t str,
    },
    /// `<... name resumed>rest`
    Resumed {
        name: &'t str,
        rest: &'t str,
    },
    /// `+++ exited with 0 +++`, `+++ killed by SIGKILL +++`
    Exit,
    /// `--- SIGCHLD {... si_pid=8028, ...} ---`
    Child(u32),
    /// Another signal, a stop or a detach.
    Nothing,
}

/// A call with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompletedCall<'t> {
    pub name: &'t str,
    /// Text between the parentheses.
    pub arguments: &'t str,
    /// Return value; `None` for `?`: the call never returned, or it is restarted.
    pub value: Option<i64>,
    /// Name of the error, such as `ENOENT`, if the call failed.
    pub error: Option<&'t str>,
    /// Duration of the call in nanoseconds; `None` without `-T`.
    pub took: Option<u64>,
}

/// Separates absolute times from relative times: `-ttt` writes more seconds than this since 1970,
/// `-r` writes fewer.
const RELATIVE_SECONDS: u64 = 1_000_000;
/// Maximum time: later than the year 2090, there are no recordings.
const SECONDS_MAX: u64 = 3_800_000_000;

/// Reads a line. Returns `None` for a line about no process (`strace: Process 7 attached`).
///
/// # Errors
/// Names the text found and the text expected.
pub(super) fn line(text: &str) -> Result<Option<ProcessLine<'_>>, Reason> {
    let text = text.trim();
    // `-k` writes a stack below each call, in lines that begin with `>`.
    if text.is_empty()
        || text.starts_with("strace: ")
        || text.starts_with("> ")
        || is_of_summary(text)
    {
        return Ok(None);
    }
    let (pid, text) = process(text)?;
    let (at, clock, event) = match time(text) {
        Ok((at, clock, rest)) => (at, clock, event(rest)?),
        // Without a time the call stands first. Of other text, the error names the time.
        Err(wanted) => (0, LineClock::Missing, event(text).map_err(|_| wanted)?),
    };
    Ok(Some(ProcessLine {
        pid,
        at,
        clock,
        event,
    }))
}

/// Returns true for a line of the table of calls that `-C` writes at the end.
fn is_of_summary(text: &str) -> bool {
    if text.starts_with("% time ") || text.starts_with("------ ") {
        return true;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some((name, numbers)) = words.split_last() else {
        return false;
    };
    let is_number = |word: &&str| word.replace(',', ".").parse::<f64>().is_ok();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    numbers.len() >= 3 && numbers.iter().all(is_number) && name.chars().all(is_name)
}

/// Reads `[pid  8028] ` or `8028  ` before the time. With `-Y` the name of the program stands behind
/// the pid: `8028<make>`.
fn process(text: &str) -> Result<(Option<u32>, &str), Reason> {
    let number = |digits: &str| {
        let digits = digits.split('<').next().unwrap_or(digits);
        digits
            .trim()
            .parse()
            .map(Some)
            .map_err(|_| reason!("found `{}`; expected a pid", excerpt(digits)))
    };
    if let Some(rest) = text.strip_prefix("[pid ") {
        let (digits, rest) = rest.split_once(']').ok_or("found `[pid` without `]`")?;
        return Ok((number(digits)?, rest.trim_start()));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.as_bytes().get(digits) {
        Some(b' ' | b'\t') if digits > 0 => {
            Ok((number(&text[..digits])?, text[digits..].trim_start()))
        }
        Some(b'<') if digits > 0 => {
            let (_, rest) = text.split_once("> ").ok_or("found `<` without `> `")?;
            Ok((number(&text[..digits])?, rest.trim_start()))
        }
        _ => Ok((None, text)),
    }
}

fn time(text: &str) -> Result<(u64, LineClock, &str), Reason> {
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    let wanted = || {
        reason!(
            "found `{}`; expected a time, as `strace -f -ttt -T` writes it (-tt, -t and -r are read too)",
            excerpt(word)
        )
    };
    let (whole, nanos) = match word.split_once('.') {
        Some((whole, fraction)) => (whole, nanoseconds(fraction).ok_or_else(wanted)?),
        // Only `-t` writes times without fractions.
        None if word.contains(':') => (word, 0),
        None => return Err(wanted()),
    };
    let mut rest = rest.trim_start();
    // A relative time of `-r` in addition to `-ttt`.
    if let Some((_, behind)) = rest
        .strip_prefix("(+")
        .and_then(|rest| rest.split_once(')'))
    {
        rest = behind.trim_start();
    }
    if whole.contains(':') {
        let mut parts = whole
            .split(':')
            .map(|part| part.parse::<u64>().ok().filter(|&part| part < 100));
        let mut part = || parts.next().flatten().ok_or_else(wanted);
        let seconds = (part()? * 60 + part()?) * 60 + part()?;
        let clock = match word.contains('.') {
            true => LineClock::Day,
            false => LineClock::DaySeconds,
        };
        return Ok((seconds * 1_000_000_000 + nanos, clock, rest));
    }
    let seconds: u64 = whole.parse().map_err(|_| wanted())?;
    if seconds >= SECONDS_MAX {
        return Err(wanted());
    }
    let clock = match seconds < RELATIVE_SECONDS {
        true => LineClock::LineBefore,
        false => LineClock::Epoch,
    };
    Ok((seconds * 1_000_000_000 + nanos, clock, rest))
}

/// Reads up to nine digits after the decimal point.
fn nanoseconds(digits: &str) -> Option<u64> {
    if !(1..=9).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // `.1` means 100 ms: missing digits are zeroes at the end.
    let unit = 10u64.pow(9 - digits.len() as u32);
    Some(digits.parse::<u64>().ok()? * unit)
}

fn event(text: &str) -> Result<TraceEvent<'_>, Reason> {
    // An instruction pointer (`-i`) or a number (`-n`) before the name.
    let text = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => rest.trim_start(),
        None => text,
    };
    if let Some(rest) = text.strip_prefix("+++ ") {
        let over = rest.starts_with("exited") || rest.starts_with("killed");
        return Ok(if over {
            TraceEvent::Exit
        } else {
            TraceEvent::Nothing
        });
    }
    if let Some(rest) = text.strip_prefix("--- ") {
        return Ok(if rest.starts_with("SIGCHLD ") {
            child(rest)
        } else {
            TraceEvent::Nothing
        });
    }
    if let Some(rest) = text.strip_prefix("<... ") {
        let (name, rest) = rest
            .split_once(" resumed>")
            .ok_or_else(|| reason!("found `{}`; expected `<... NAME resumed>`", excerpt(text)))?;
        // The call goes on yet another time, with a later `resumed`.
        if rest.trim_end().ends_with("...>") {
            return Ok(TraceEvent::Nothing);
        }
        return Ok(TraceEvent::Resumed { name, rest });
    }
    let name = text
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count();
    if name == 0 || text.as_bytes().get(name) != Some(&b'(') {
        return Err(reason!(
            "found `{}`; expected a call, `NAME(...) = ...`",
            excerpt(text)
        ));
    }
    let (name, rest) = (&text[..name], &text[name + 1..]);
    for mark in ["<unfinished ...>", "<detached ...>"] {
        if let Some(arguments) = rest.strip_suffix(mark) {
            return Ok(TraceEvent::Unfinished { name, arguments });
        }
    }
    // A thread called exec and took over the pid of the leader. The line tells nothing of the call.
    if rest.ends_with(" ...>") && rest.contains("<pid changed to ") {
        return Ok(TraceEvent::Nothing);
    }
    ended(name, rest).map(TraceEvent::Call)
}

fn child(text: &str) -> TraceEvent<'_> {
    let digits = text.split_once("si_pid=").map_or("", |(_, rest)| rest);
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..end]
        .parse()
        .map_or(TraceEvent::Nothing, TraceEvent::Child)
}

/// Reads the text after `name(`.
///
/// # Errors
/// Names the text found and the text expected.
pub(super) fn ended<'t>(name: &'t str, text: &'t str) -> Result<CompletedCall<'t>, Reason> {
    let mut at = 0;
    let close = loop {
        match next_mark(text, at) {
            Some((index, b')')) => break index,
            Some((index, _)) => at = index + 1,
            None => {
                return Err(reason!(
                    "found no `)` behind `{name}(`; the line is cut off"
                ));
            }
        }
    };
    let arguments = &text[..close];
    let result = text[close + 1..].trim();
    let result = result.strip_prefix('=').map(str::trim).ok_or_else(|| {
        reason!(
            "found `{}` behind `{name}(...)`; expected `= RESULT`",
            excerpt(result)
        )
    })?;
    let (result, took) = duration(result);
    let (value, rest) = value(result).ok_or_else(|| {
        reason!(
            "found `{}` as the result of `{name}`; expected a number",
            excerpt(result)
        )
    })?;
    let error = rest
        .trim_start()
        .split([' ', '('])
        .next()
        .filter(|word| word.starts_with('E'));
    // A call without a result (`?`) has not ended and has no duration.
    let took = match value {
        None => took.or(Some(0)),
        Some(_) => took,
    };
    Ok(CompletedCall {
        name,
        arguments,
        value,
        error,
        took,
    })
}

/// Reads `<0.000123>` at the end.
fn duration(result: &str) -> (&str, Option<u64>) {
    let parts = result
        .strip_suffix('>')
        .and_then(|rest| rest.rsplit_once('<'));
    let took = parts.and_then(|(_, span)| {
        let (whole, fraction) = span.split_once('.')?;
        let seconds = whole
            .parse::<u64>()
            .ok()
            .filter(|&seconds| seconds < SECONDS_MAX)?;
        Some(seconds * 1_000_000_000 + nanoseconds(fraction)?)
    });
    match (parts, took) {
        (Some((rest, _)), Some(took)) => (rest.trim_end(), Some(took)),
        _ => (result, None),
    }
}

/// Reads the number at the beginning, and returns the text after it.
fn value(result: &str) -> Option<(Option<i64>, &str)> {
    if let Some(rest) = result.strip_prefix('?') {
        return Some((None, rest));
    }
    if let Some(rest) = result.strip_prefix("0x") {
        let end = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let value = u64::from_str_radix(&rest[..end], 16).ok()?;
        return Some((Some(value as i64), &rest[end..]));
    }
    let sign = usize::from(result.starts_with('-'));
    let end = sign
        + result[sign..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
    Some((Some(result[..end].parse().ok()?), &result[end..]))
}

/// Returns the beginning of a text, for messages.
pub(super) fn excerpt(text: &str) -> &str {
    const CHARACTERS: usize = 60;
    text.char_indices()
        .nth(CHARACTERS)
        .map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> CompletedCall<'_> {
        match line(text).unwrap().unwrap().event {
            TraceEvent::Call(ended) => ended,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_of_programs_stacks_and_the_table_of_calls_are_passed_over() {
        for text in [
            "1234<my cat>  1700000000.001 close(3) = 0 <0.00001>",
            "[pid  1234<cat>] 1700000000.001 close(3) = 0 <0.00001>",
        ] {
            let read = line(text).unwrap().unwrap();
            assert_eq!(read.pid, Some(1234), "{text}");
        }
        for text in [
            " > /usr/lib/libc.so.6(fsync+0x14) [0xf0]",
            "% time     seconds  usecs/call     calls    errors syscall",
            "------ ----------- ----------- --------- --------- ----------------",
            " 50.00    0.000100          10        10         2 read",
            "100.00    0.000200                    20           total",
        ] {
            assert_eq!(line(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn a_line_is_read_in_each_of_its_styles() {
        let body = "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3</a> <0.000008>";
        for (prefix, pid) in [
            ("8006  1795364131.190063 ", Some(8006)),
            ("[pid  8006] 1795364131.190063 ", Some(8006)),
            ("1795364131.190063 ", None),
            ("1795364131.190063 (+     0.000030) ", None),
            ("8006 1795364131.190063 [00007f2ceb45b000] ", Some(8006)),
        ] {
            let text = format!("{prefix}{body}");
            let line = line(&text).unwrap().unwrap();
            assert_eq!(
                (line.pid, line.at),
                (pid, 1_795_364_131_190_063_000),
                "{text}"
            );
            let ended = call(&text);
            assert_eq!((ended.value, ended.took), (Some(3), Some(8000)));
            assert_eq!(ended.arguments, "AT_FDCWD, \"/a\", O_RDONLY");
        }
        let of_day = line("8006 16:07:27.672463 sync() = 0 <0.5>")
            .unwrap()
            .unwrap();
        assert_eq!(of_day.clock, LineClock::Day);
        assert_eq!(
            of_day.at,
            (16 * 3600 + 7 * 60 + 27) * 1_000_000_000 + 672_463_000
        );
    }

    #[test]
    fn brackets_within_strings_paths_and_structures_end_no_call() {
        let text = "1795364131.1 write(1</tmp/a),b>, \"\\\")\\\\\"..., 20) = 20 <0.1>";
        assert_eq!(call(text).value, Some(20));
        let text =
            "1795364131.1 execve(\"/bin/ls\", [\"ls\", \"(\"], 0x7f /* 35 vars ) */) = 0 <0.1>";
        assert_eq!(call(text).name, "execve");
        let text = "1795364131.1 read(3<TCP:[127.0.0.1:80->127.0.0.1:9]>, \"\", 5) = -1 EAGAIN (Resource \
                    temporarily unavailable) <0.1>";
        assert_eq!(
            (call(text).value, call(text).error),
            (Some(-1), Some("EAGAIN"))
        );
        assert_eq!(call("1795364131.1 exit_group(0) = ?").value, None);
        assert_eq!(
            call("1795364131.1 pause() = ? ERESTARTNOHAND (To be) <0.1>").error,
            Some("ERESTARTNOHAND")
        );
    }

    #[test]
    fn what_is_no_call_is_told_apart() {
        let event = |text: &'static str| line(text).unwrap().map(|line| line.event);
        assert_eq!(event("strace: Process 8028 attached"), None);
        assert_eq!(
            event("7 1795364131.1 +++ exited with 0 +++"),
            Some(TraceEvent::Exit)
        );
        assert_eq!(
            event("7 1795364131.1 --- SIGCHLD {si_signo=SIGCHLD, si_pid=8028, si_uid=0} ---"),
            Some(TraceEvent::Child(8028))
        );
        assert_eq!(
            event("7 1795364131.1 wait4(-1,  <unfinished ...>"),
            Some(TraceEvent::Unfinished {
                name: "wait4",
                arguments: "-1,  "
            })
        );
        assert_eq!(
            event("7 1795364131.1 <... vfork resumed>) = 7997 <0.002798>"),
            Some(TraceEvent::Resumed {
                name: "vfork",
                rest: ") = 7997 <0.002798>"
            })
        );
    }

    #[test]
    fn less_exact_times_are_read() {
        for (text, at, clock) in [
            (
                "7 16:07:27 close(3) = 0 <0.1>",
                58_047_000_000_000,
                LineClock::DaySeconds,
            ),
            (
                "7 0.000012 close(3) = 0 <0.1>",
                12_000,
                LineClock::LineBefore,
            ),
            ("     0.000012 close(3) = 0", 12_000, LineClock::LineBefore),
            ("[pid     7] close(3) = 0 <0.1>", 0, LineClock::Missing),
        ] {
            let line = line(text).unwrap().unwrap();
            assert_eq!((line.at, line.clock), (at, clock), "{text}");
        }
        assert_eq!(call("7 1795364131.1 close(3) = 0").took, None);
    }

    #[test]
    fn errors_say_what_was_found_and_expected() {
        for (text, words) in [
            ("hello", "-ttt"),
            ("7 1795364131.1 close(3", "cut off"),
            ("7 1795364131.1 close(3) gives 0 <0.1>", "= RESULT"),
            ("7 1795364131.1 hello", "expected a call"),
        ] {
            let error = line(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
