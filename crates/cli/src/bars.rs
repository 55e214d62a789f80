//! Progress on standard error: bars on a terminal, and elsewhere a line after each ten seconds.

use crate::output::CommandOutput;
use crate::slow::{Lines, line};
use fullstroke_units::one_line;
use indicatif::{
    HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use std::fmt::Write;
use std::io::{IsTerminal as _, stderr};
use std::time::Instant;

/// Progress bars, one per run.
#[derive(Debug)]
pub(crate) struct Bars {
    bars: Vec<ProgressBar>,
    /// Lines in place of bars, where standard error is no terminal.
    lines: Option<(Lines, Vec<String>, Instant)>,
}

impl Bars {
    /// Creates bars with these names. With `--json` the bars are hidden.
    pub(crate) fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
        output: &CommandOutput,
    ) -> Bars {
        let target = if output.json() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let all = MultiProgress::with_draw_target(target);
        let names: Vec<&str> = names.into_iter().collect();
        let width = names
            .iter()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or(0)
            // A longer name would leave no room for the bar on a line of 80 characters.
            .min(40);
        let bar = |name: &&str| {
            let bar = all.add(ProgressBar::no_length());
            // The number of requests is known only after the run has begun. A bar of unknown length
            // would stand at 0 %.
            bar.set_style(style(false));
            bar.set_prefix(format!("{:width$}", one_line(name)));
            bar
        };
        let lines = (!output.json() && !stderr().is_terminal()).then(|| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            (Lines::new(), names, Instant::now())
        });
        Bars {
            bars: names.iter().map(bar).collect(),
            lines,
        }
    }

    /// Sets the progress of run `index` to `finished` requests of `expected`, if known.
    pub(crate) fn advance(&self, index: usize, finished: u64, expected: Option<u64>) {
        let Some(bar) = self.bars.get(index) else {
            return;
        };
        if let Some((lines, names, began)) = &self.lines {
            lines.say(|| line(&names[index], finished, expected, began.elapsed()));
        }
        // A run learns its length late, and an extended run has another one. Then the spinner becomes
        // a bar, or the bar gets longer.
        if bar.length() != expected {
            if let Some(expected) = expected {
                bar.set_length(expected);
            }
            bar.set_style(style(expected.is_some()));
        }
        bar.set_position(finished);
    }

    /// Completes the bar of run `index`.
    pub(crate) fn finish(&self, index: usize) {
        if let Some(bar) = self.bars.get(index) {
            bar.finish();
        }
    }

    /// Removes all bars from the terminal.
    pub(crate) fn clear(&self) {
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn style(length_known: bool) -> ProgressStyle {
    let template = if length_known {
        "{prefix} {wide_bar} {human_pos}/{human_len} {rate}/s {eta}"
    } else {
        "{prefix} {spinner} {human_pos} requests {rate}/s"
    };
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        // A write error is ignored, because progress is not a result.
        let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", rate)
}
