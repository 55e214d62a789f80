//! The terminal, and how it is given back.

use super::frame::{self, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long it is waited for a key before news are looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// The whole terminal, until it is dropped; a panic gives it back as well.
pub(super) struct Screen {
    terminal: DefaultTerminal,
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
        Ok(Screen { terminal, over })
    }

    /// Draws, and says how far it may be scrolled.
    pub(super) fn draw(&mut self, view: &View<'_>) -> io::Result<usize> {
        let drawn = self.terminal.draw(|frame| frame::draw(frame, view))?;
        Ok(frame::furthest(view, drawn.area.height))
    }

    /// What the user does next, if it is soon.
    pub(super) fn next_event(&self) -> io::Result<Option<Event>> {
        match event::poll(PATIENCE) {
            Ok(true) => event::read().map(Some),
            Ok(false) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether somebody wants the program to end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing back.
        drop(ratatui::try_restore());
    }
}
