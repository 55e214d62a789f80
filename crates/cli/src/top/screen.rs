//! The terminal, and how it is given back.

use super::frame::{self, View};
use super::keys::{Key, Keys};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long it is waited for a key before news are looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// The whole terminal, until it is dropped; a panic gives it back as well.
pub(super) struct Screen {
    /// `None` only while it is dropped.
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
        // Half of it may have been done.
        let terminal = ratatui::try_init().inspect_err(|_| drop(ratatui::try_restore()))?;
        let keys = Keys::open().inspect_err(|_| drop(ratatui::try_restore()))?;
        Ok(Screen {
            terminal: Some(terminal),
            keys,
            over,
        })
    }

    /// Draws, and says how far it may be scrolled.
    pub(super) fn draw(&mut self, view: &View<'_>) -> io::Result<usize> {
        let terminal = self.terminal.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let drawn = terminal.draw(|frame| frame::draw(frame, view))?;
        Ok(frame::furthest(view, drawn.area.height))
    }

    /// What the user presses next, if it is soon.
    pub(super) fn next_key(&mut self) -> io::Result<Option<Key>> {
        self.keys.next(PATIENCE)
    }

    /// Whether somebody wants the program to end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing back; and ratatui 0.30 would say
        // so on it (`Terminal::drop`), which is a panic within a panic.
        if let Some(mut terminal) = self.terminal.take()
            && terminal.show_cursor().is_err()
        {
            std::mem::forget(terminal);
        }
        drop(ratatui::try_restore());
    }
}
