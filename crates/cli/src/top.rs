//! `fullstroke top`: shows a running server on the terminal.
//!
//! | file | contents |
//! |---|---|
//! | `top/frame.rs` | the screen of two looks at the server |
//! | `top/rates.rs` | rates between two looks |
//! | `top/history.rs` | recent looks |
//! | `top/question.rs`, `top/asker.rs` | one question; thread that polls the server |
//! | `top/look.rs` | colours and signs |
//! | `top/keys.rs` | keys from the terminal |
//! | `top/screen.rs` | setup and restoration of the terminal |

mod asker;
mod frame;
mod history;
mod keys;
mod look;
mod question;
mod rates;
mod screen;

use crate::ctl::control_path;
use crate::output::{CommandFailure, CommandOutput};
use asker::AnswerReceiver;
use clap::Args;
use frame::View;
use fullstroke_live::ServerStatus;
use fullstroke_units::Duration;
use history::History;
use keys::TopKey;
use look::TerminalAbilities;
use question::{NoStatus, look_at};
use screen::Screen;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

/// Watch a running server: rates, queues and arms.
///
/// Rates are per second of simulated time, over the last second; `-` before the second look.
/// Failed requests count only as errors. An arm at the left is at the outside of the platter. Keys:
/// q quits, up and down scroll.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Control socket of the server, or its client socket if the control socket is beside it
    /// (SOCKET.control).
    socket: PathBuf,

    /// Time between two looks.
    #[arg(long, value_name = "TIME", default_value = "250ms")]
    interval: Duration,
}

const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);

/// Action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Quit,
    Up(usize),
    Down(usize),
    Nothing,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let socket = &arguments.socket;
    if output.json() || !io::stdout().is_terminal() {
        return Err(CommandFailure::input(format!(
            "top needs a terminal as standard output, and has no JSON; use `fullstroke ctl {} status --json`",
            socket.display()
        )));
    }
    if arguments.interval < SHORTEST_INTERVAL {
        let (found, least) = (arguments.interval, SHORTEST_INTERVAL);
        return Err(CommandFailure::input(format!(
            "--interval: found {found}; expected at least {least}"
        )));
    }
    let path = control_path(socket);
    // Before the screen is taken over, so that the error of a missing server stays on the terminal.
    let first = look_at(&path).map_err(CommandFailure::input)?;
    let asker = AnswerReceiver::start(
        path,
        std::time::Duration::from_nanos(arguments.interval.as_nanos()),
    );
    let broken = |error| CommandFailure::Input(format!("cannot draw on the terminal: {error}"));
    let mut screen = Screen::open().map_err(broken)?;
    watch(
        &mut screen,
        &asker,
        first,
        TerminalAbilities::of_environment(),
    )
    .map_err(broken)
}

/// State of the display: recent looks and the scroll position.
struct Watching {
    history: History,
    /// Reason of the last failed look. `None` after a successful one.
    trouble: Option<String>,
    scrolled: usize,
    look: TerminalAbilities,
}

/// Updates the display until a key or a signal ends the program.
fn watch(
    screen: &mut Screen,
    asker: &AnswerReceiver,
    first: ServerStatus,
    look: TerminalAbilities,
) -> io::Result<()> {
    let mut watching = Watching {
        history: History::new(first),
        trouble: None,
        scrolled: 0,
        look,
    };
    let mut furthest = screen.draw(&watching.view())?;
    while !screen.is_over() {
        let key = screen.next_key()?;
        match key.map_or(Wish::Nothing, wish) {
            Wish::Quit => return Ok(()),
            Wish::Up(lines) => {
                // The list may have become shorter since the last key.
                watching.scrolled = watching.scrolled.min(furthest).saturating_sub(lines)
            }
            Wish::Down(lines) => watching.scrolled = (watching.scrolled + lines).min(furthest),
            Wish::Nothing => {}
        }
        let news = asker.newest_answer();
        // Without a key and without news the screen is right already, and a slow connection need
        // not carry it again.
        if key.is_some() || news.is_some() {
            watching.hear(news);
            furthest = screen.draw(&watching.view())?;
        }
    }
    Ok(())
}

impl Watching {
    fn hear(&mut self, news: Option<Result<ServerStatus, NoStatus>>) {
        match news {
            Some(Ok(status)) => {
                self.history.push(status);
                self.trouble = None;
            }
            Some(Err(error)) => self.trouble = Some(error.to_string()),
            None => {}
        }
    }

    fn view(&self) -> View<'_> {
        View {
            before: self.history.before(),
            now: self.history.now(),
            trouble: self.trouble.as_deref(),
            scrolled: self.scrolled,
            look: self.look,
        }
    }
}

fn wish(key: TopKey) -> Wish {
    match key {
        TopKey::Character(b'q') | TopKey::Escape | TopKey::ControlC => Wish::Quit,
        TopKey::Up | TopKey::Character(b'k') => Wish::Up(1),
        TopKey::Down | TopKey::Character(b'j') => Wish::Down(1),
        TopKey::PageUp => Wish::Up(10),
        TopKey::PageDown => Wish::Down(10),
        TopKey::Home => Wish::Up(usize::MAX),
        // Half of the maximum is below any list of drives, and `scrolled + lines` cannot overflow.
        TopKey::End => Wish::Down(usize::MAX / 2),
        TopKey::Character(_) => Wish::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_quit() {
        assert_eq!(wish(TopKey::Character(b'q')), Wish::Quit);
        assert_eq!(wish(TopKey::Escape), Wish::Quit);
        assert_eq!(wish(TopKey::ControlC), Wish::Quit);
        assert_eq!(wish(TopKey::Character(b'c')), Wish::Nothing);
    }
}
