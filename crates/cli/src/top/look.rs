//! Colours and signs, according to the terminal.

use fullstroke_live::DriveState;
use ratatui::style::{Color, Modifier, Style};
use std::env;

/// Characters of bars and arms.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarCharacters {
    /// Partial cells in growing order. The last one is a full cell.
    pub(super) bar: &'static [char],
    pub(super) track: char,
    pub(super) busy_head: char,
    pub(super) idle_head: char,
    pub(super) rule: char,
    pub(super) cut: char,
}

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct TerminalAbilities {
    colours: bool,
    pub(super) signs: BarCharacters,
}

const UNICODE: BarCharacters = BarCharacters {
    bar: &['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'],
    track: '─',
    busy_head: '●',
    idle_head: '○',
    rule: '─',
    cut: '…',
};

const ASCII: BarCharacters = BarCharacters {
    bar: &['#'],
    track: '-',
    busy_head: '@',
    idle_head: 'o',
    rule: '-',
    cut: '~',
};

impl TerminalAbilities {
    pub(super) fn new(colours: bool, unicode: bool) -> TerminalAbilities {
        TerminalAbilities {
            colours,
            signs: if unicode { UNICODE } else { ASCII },
        }
    }

    /// Reads the environment: `NO_COLOR` (no-color.org), and the character set of the locale.
    pub(super) fn of_environment() -> TerminalAbilities {
        let said = |name: &&str| env::var(name).is_ok_and(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find(said)
            .and_then(|name| env::var(name).ok());
        let locale = locale.unwrap_or_default().to_uppercase();
        let unicode = locale.contains("UTF-8") || locale.contains("UTF8");
        TerminalAbilities::new(
            !said(&"NO_COLOR") && env::var("TERM").as_deref() != Ok("dumb"),
            unicode,
        )
    }

    pub(super) fn title(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn quiet(&self) -> Style {
        self.colour(Color::DarkGray)
    }

    pub(super) fn bar(&self) -> Style {
        self.colour(Color::Cyan)
    }

    pub(super) fn head(&self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(super) fn warning(&self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of a drive's state.
    pub(super) fn state(&self, state: DriveState) -> Style {
        match state {
            DriveState::Alive => self.colour(Color::Green),
            DriveState::Rebuilding => self.colour(Color::Yellow),
            DriveState::Failed => self.warning(),
        }
    }

    fn colour(&self, colour: Color) -> Style {
        if self.colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }
}
