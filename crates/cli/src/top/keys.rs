//! Reads keys from the terminal, and detects that the terminal has gone.
//!
//! crossterm 0.29 reads forever after a read of 0 bytes or an error
//! (`UnixInternalEventSource::try_read`). A closed terminal gives exactly that. So this file reads
//! the few keys of `top` itself.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// Number of bytes per read.
const PIECE_BYTES: usize = 256;
/// First byte of an escape sequence, which stands for one key.
const ESCAPE: u8 = 0x1b;
/// Byte that a raw terminal sends for Ctrl-C.
const CONTROL_C: u8 = 0x03;

/// Key with a meaning in `top`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopKey {
    /// ASCII character.
    Character(u8),
    ControlC,
    Escape,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

/// Source of keys: standard input if it is a terminal, else `/dev/tty`. crossterm chooses the same
/// terminal and has set it to raw mode.
pub(super) struct Keys {
    terminal: OwnedFd,
    waiting: VecDeque<TopKey>,
}

impl Keys {
    pub(super) fn open() -> io::Result<Keys> {
        let input = io::stdin();
        let terminal = if rustix::termios::isatty(&input) {
            input.as_fd().try_clone_to_owned()?
        } else {
            OpenOptions::new().read(true).open("/dev/tty")?.into()
        };
        Ok(Keys {
            terminal,
            waiting: VecDeque::new(),
        })
    }

    /// Returns the next key, or `None` after `patience`.
    ///
    /// # Errors
    /// The terminal is gone, or the host reports an error.
    pub(super) fn next(&mut self, patience: Duration) -> io::Result<Option<TopKey>> {
        if self.waiting.is_empty() && self.is_readable(patience)? {
            let mut bytes = [0; PIECE_BYTES];
            match rustix::io::read(&self.terminal, &mut bytes) {
                // A terminal that hung up gives end of file or EIO (Linux `n_tty`).
                Ok(0) | Err(Errno::IO) => return Err(gone()),
                Ok(count) => self.waiting.extend(parse(&bytes[..count])),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.waiting.pop_front())
    }

    fn is_readable(&self, patience: Duration) -> io::Result<bool> {
        let mut waiting = [PollFd::new(&self.terminal, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: patience.subsec_nanos().into(),
        };
        match poll(&mut waiting, Some(&limit)) {
            // A signal interrupted the wait. The caller checks for signals.
            Ok(0) | Err(Errno::INTR) => Ok(false),
            // The terminal is closed, so earlier keys no longer matter.
            Ok(_)
                if waiting[0]
                    .revents()
                    .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) =>
            {
                Err(gone())
            }
            Ok(_) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "standard input was closed")
}

/// Converts bytes to keys. Known sequences are those of xterm and of the Linux console; others are
/// skipped.
fn parse(mut bytes: &[u8]) -> Vec<TopKey> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        keys.extend(match (*first, rest) {
            (ESCAPE, [b'[' | b'O', sequence @ ..]) => {
                let length = sequence
                    .iter()
                    // Final bytes of a control sequence (ECMA-48, section 5.4).
                    .position(|byte| (0x40..=0x7e).contains(byte));
                let Some(length) = length else { return keys };
                bytes = &sequence[length + 1..];
                named(&sequence[..=length])
            }
            (ESCAPE, _) => Some(TopKey::Escape),
            (CONTROL_C, _) => Some(TopKey::ControlC),
            (byte, _) => byte.is_ascii_graphic().then_some(TopKey::Character(byte)),
        });
    }
    keys
}

/// Returns the key of a sequence after its introducer (xterm's "PC-Style Function Keys").
fn named(sequence: &[u8]) -> Option<TopKey> {
    Some(match sequence {
        b"A" => TopKey::Up,
        b"B" => TopKey::Down,
        b"H" | b"1~" | b"7~" => TopKey::Home,
        b"F" | b"4~" | b"8~" => TopKey::End,
        b"5~" => TopKey::PageUp,
        b"6~" => TopKey::PageDown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_of_terminals_are_keys_and_others_are_skipped() {
        assert_eq!(
            parse(b"q\x1b[A\x1bOB\x1b[5~\x1b[1;5C\x1b[H\x1b[4~k\x03"),
            [
                TopKey::Character(b'q'),
                TopKey::Up,
                TopKey::Down,
                TopKey::PageUp,
                TopKey::Home,
                TopKey::End,
                TopKey::Character(b'k'),
                TopKey::ControlC
            ]
        );
        assert_eq!(parse(b"\x1b"), [TopKey::Escape]);
        assert_eq!(parse(b"\x1b\x1b"), [TopKey::Escape, TopKey::Escape]);
        assert_eq!(parse("\u{e4}\r\n\x1b[".as_bytes()), []);
    }
}
