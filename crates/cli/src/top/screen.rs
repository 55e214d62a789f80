//! Setup and restoration of the terminal.

use super::frame::{self, View};
use super::keys::{Keys, TopKey};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Wait for a key before the next check for news.
const PATIENCE: Duration = Duration::from_millis(50);

/// The terminal in full-screen mode. Dropping the value or a panic restores the terminal.
pub(super) struct Screen {
    /// `None` only during `drop`.
    terminal: Option<DefaultTerminal>,
    keys: Keys,
    over: Arc<AtomicBool>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Screen> {
        let over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&over))?;
        }
        // A failed setup may be half done, so the terminal is restored.
        let terminal = ratatui::try_init().inspect_err(|_| drop(ratatui::try_restore()))?;
        let keys = Keys::open().inspect_err(|_| drop(ratatui::try_restore()))?;
        Ok(Screen {
            terminal: Some(terminal),
            keys,
            over,
        })
    }

    /// Draws the screen and returns the largest scroll position.
    pub(super) fn draw(&mut self, view: &View<'_>) -> io::Result<usize> {
        let terminal = self.terminal.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let drawn = terminal.draw(|frame| frame::draw(frame, view))?;
        Ok(frame::furthest(view, drawn.area.height))
    }

    /// Returns the next key, or `None` after [`PATIENCE`].
    pub(super) fn next_key(&mut self) -> io::Result<Option<TopKey>> {
        self.keys.next(PATIENCE)
    }

    /// True after SIGTERM or SIGHUP.
    pub(super) fn is_over(&self) -> bool {
        // The flag is read a few times a second, so the strongest ordering costs nothing.
        self.over.load(Ordering::SeqCst)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A closed terminal needs no restoration. ratatui 0.30 prints an error to it in
        // `Terminal::drop`; during a panic that would be a second panic.
        if let Some(mut terminal) = self.terminal.take()
            && terminal.show_cursor().is_err()
        {
            std::mem::forget(terminal);
        }
        drop(ratatui::try_restore());
    }
}
