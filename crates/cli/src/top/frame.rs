//! Draws two looks at a server as a screen.

use super::look::TerminalAbilities;
use super::rates::TimeSpan;
use fullstroke_lab::capacity;
use fullstroke_live::{DriveStatus, ExportStatus, OperationStatus, ServerStatus, VolumeState};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::{Line, Span as Piece, Text};

/// Data of the screen.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) before: &'a ServerStatus,
    pub(super) now: &'a ServerStatus,
    /// Reason of the last failed look, if any.
    pub(super) trouble: Option<&'a str>,
    /// Number of lines above the visible part.
    pub(super) scrolled: usize,
    pub(super) look: TerminalAbilities,
}

const NAME_WIDTH: usize = 6;
const BAR_CELLS: usize = 8;
/// Queue length of a full bar. SATA disks queue 32 commands (NCQ).
const BAR_REQUESTS: f64 = 32.0;
/// Width of a drive's row without the track.
const DRIVE_WIDTH: usize = NAME_WIDTH + 1 + BAR_CELLS + 5 + 2 + 2 + 5 + 7 + 7 + 1 + 16;
const TRACK_CELLS_MIN: usize = 8;

/// Draws a title, as many lines as fit, and a footer.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let [title, body, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let lines = lines(view, usize::from(body.width));
    let first = view.scrolled.min(last_scroll(lines.len(), body.height));
    let below = lines.len().saturating_sub(first + usize::from(body.height));
    let shown: Vec<Line<'_>> = lines
        .into_iter()
        .skip(first)
        .take(usize::from(body.height))
        .collect();
    frame.render_widget(title_line(view), title);
    frame.render_widget(Text::from(shown), body);
    frame.render_widget(footer_line(view, first, below), footer);
}

/// Returns the largest scroll position for a body of this height.
fn last_scroll(lines: usize, height: u16) -> usize {
    lines.saturating_sub(usize::from(height))
}

/// Returns the largest scroll position for a screen of this height.
pub(super) fn furthest(view: &View<'_>, height: u16) -> usize {
    // Title and footer take two lines. The width of 80 does not change the number of lines.
    last_scroll(lines(view, 80).len(), height.saturating_sub(2))
}

fn title_line(view: &View<'_>) -> Line<'static> {
    let ServerStatus {
        version,
        uptime_s,
        clients,
        speed,
        ..
    } = view.now;
    let speed = speed.map_or("no delay".to_owned(), |speed| format!("{speed}x"));
    let up = *uptime_s as u64;
    let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
    Line::styled(
        format!(
            "fullstroke {version}  up {hours}:{minutes:02}:{seconds:02}  speed {speed}  {clients} clients"
        ),
        view.look.title(),
    )
}

fn footer_line(view: &View<'_>, above: usize, below: usize) -> Line<'static> {
    if let Some(trouble) = view.trouble {
        return Line::styled(trouble.to_owned(), view.look.warning());
    }
    let scroll = match (above, below) {
        (0, 0) => String::new(),
        (above, below) => format!("  up, down: scroll ({above} lines above, {below} below)"),
    };
    Line::styled(format!("q: quit{scroll}"), view.look.quiet())
}

fn lines(view: &View<'_>, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (index, now) in view.now.exports.iter().enumerate() {
        // Without an earlier look no time has passed, and the rates are unknown.
        let before = view.before.exports.get(index).unwrap_or(now);
        export(view.look, before, now, width, &mut lines);
    }
    lines
}

fn export(
    look: TerminalAbilities,
    before: &ExportStatus,
    now: &ExportStatus,
    width: usize,
    lines: &mut Vec<Line<'static>>,
) {
    let span = TimeSpan::between(before, now);
    lines.push(Line::styled(
        look.signs.rule.to_string().repeat(width),
        look.quiet(),
    ));
    let size = capacity(now.usable_bytes);
    let title = format!("{}: {}, {size}", now.name, now.layout);
    lines.push(Line::styled(cut(&title, width, look), look.title()));
    // A healthy volume needs no line.
    if now.health.state != VolumeState::Whole || now.health.data_lost {
        lines.push(Line::styled(
            cut(&now.health.words(), width, look),
            look.warning(),
        ));
    }
    for rebuild in &now.health.rebuilds {
        lines.push(Line::from(cut(
            &format!("rebuilding {}", rebuild.words()),
            width,
            look,
        )));
    }
    for geared in &now.health.gears {
        lines.push(Line::from(cut(&geared.words(), width, look)));
    }
    if let Some(comparing) = now.health.comparing {
        lines.push(Line::from(cut(&comparing.words(), width, look)));
    }
    lines.push(Line::from(format!(
        "{} in flight, {} simulated s, answers late by {} us (p99)",
        now.in_flight,
        now.world_ns / 1_000_000_000,
        brief(now.lateness.p99_us)
    )));
    if let Some(watts) = span.watts(&before.drives, &now.drives) {
        lines.push(Line::from(format!("drives draw {} W", brief(watts))));
    }
    operations(look, span, before, now, lines);
    drives(look, span, before, now, width, lines);
}

fn operations(
    look: TerminalAbilities,
    span: TimeSpan,
    before: &ExportStatus,
    now: &ExportStatus,
    lines: &mut Vec<Line<'static>>,
) {
    lines.push(Line::styled(
        format!(
            "{:<8}{:>12}{:>12}{:>12}{:>12}",
            "", "I/O per s", "MB/s", "mean ms", "errors"
        ),
        look.quiet(),
    ));
    let (earlier, operations) = (&before.operations, &now.operations);
    let rows = [
        ("read", &earlier.read, &operations.read, true),
        ("write", &earlier.write, &operations.write, true),
        ("flush", &earlier.flush, &operations.flush, false),
        ("discard", &earlier.discard, &operations.discard, false),
    ];
    for (name, before, now, always) in rows {
        if always || now.requests > 0 {
            lines.push(operation(name, span, before, now));
        }
    }
}

fn operation(
    name: &str,
    span: TimeSpan,
    before: &OperationStatus,
    now: &OperationStatus,
) -> Line<'static> {
    let rates = span.operation(before, now);
    let response = rates.response_ms.map_or("-".to_owned(), brief);
    Line::from(format!(
        "{name:<8}{:>12}{:>12}{response:>12}{:>12}",
        brief(rates.requests_per_s),
        brief(rates.mb_per_s),
        now.errors
    ))
}

fn drives(
    look: TerminalAbilities,
    span: TimeSpan,
    before: &ExportStatus,
    now: &ExportStatus,
    width: usize,
    lines: &mut Vec<Line<'static>>,
) {
    // A narrow terminal cuts the row at the right rather than losing the track.
    let track = width.saturating_sub(DRIVE_WIDTH).max(TRACK_CELLS_MIN);
    let bar = BAR_CELLS + 5;
    let platter = if track < 14 { "out" } else { "outside" };
    let inside = track - platter.len();
    lines.push(Line::styled(
        format!(
            "{:<NAME_WIDTH$} {:<bar$}  {platter}{:>inside$}  {:>5}{:>7}{:>7} {:<16}",
            "drive",
            "queue",
            if track < 14 { "in" } else { "inside" },
            "busy",
            "I/O /s",
            "MB/s",
            "state"
        ),
        look.quiet(),
    ));
    for (index, drive) in now.drives.iter().enumerate() {
        let before = before.drives.get(index).unwrap_or(drive);
        lines.push(row(look, span, before, drive, track));
    }
}

fn row(
    look: TerminalAbilities,
    span: TimeSpan,
    before: &DriveStatus,
    now: &DriveStatus,
    track: usize,
) -> Line<'static> {
    let rates = span.drive(before, now);
    let name = cut(&now.name, NAME_WIDTH, look);
    let (left, head, right) = arm(look, now, track);
    let numbers = format!(
        "  {:>5}{:>7}{:>7} ",
        percent(rates.busy_share),
        brief(rates.ios_per_s),
        brief(rates.mb_per_s)
    );
    Line::from(vec![
        Piece::raw(format!("{name:<NAME_WIDTH$} ")),
        Piece::styled(bar(look, now.queue_length), look.bar()),
        Piece::raw(format!("{:>5}  ", now.queue_length)),
        Piece::styled(left, look.quiet()),
        Piece::styled(head, look.head()),
        Piece::styled(right, look.quiet()),
        Piece::raw(numbers),
        Piece::styled(state(now), look.state(now.state)),
    ])
}

/// Draws the queue as a bar of [`BAR_CELLS`] cells.
fn bar(look: TerminalAbilities, requests: u32) -> String {
    let signs = look.signs.bar;
    let parts_max = BAR_CELLS * signs.len();
    let share = (f64::from(requests) / BAR_REQUESTS).min(1.0);
    // Rounding up makes a single request visible.
    let parts = (share * parts_max as f64).ceil() as usize;
    let mut bar: String =
        std::iter::repeat_n(signs[signs.len() - 1], parts / signs.len()).collect();
    // 0 parts have no partly filled cell.
    if let Some(part) = (parts % signs.len()).checked_sub(1) {
        bar.push(signs[part]);
    }
    format!("{bar:<BAR_CELLS$}")
}

/// Returns the platter from outside to inside in three parts: left of the arm, the arm, right of
/// the arm.
fn arm(look: TerminalAbilities, drive: &DriveStatus, track: usize) -> (String, String, String) {
    let signs = look.signs;
    let last = track.saturating_sub(1);
    // A server of another version may report any share.
    let at = ((drive.head_share.clamp(0.0, 1.0) * last as f64).round() as usize).min(last);
    let platter = |cells: usize| signs.track.to_string().repeat(cells);
    let head = if drive.busy {
        signs.busy_head
    } else {
        signs.idle_head
    };
    (platter(at), head.to_string(), platter(last - at))
}

fn state(drive: &DriveStatus) -> String {
    match drive.rebuilt_share {
        // Rounded down, so that 100 % means complete.
        Some(share) => format!("{} {:.0}%", drive.state.name(), (100.0 * share).floor()),
        None => drive.state.name().to_owned(),
    }
}

/// Formats a share as whole percent; `-` for NaN.
fn percent(share: f64) -> String {
    if share.is_nan() {
        "-".to_owned()
    } else {
        format!("{:.0}%", 100.0 * share)
    }
}

/// Cuts `text` to at most `width` characters.
fn cut(text: &str, width: usize, look: TerminalAbilities) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    // A width of 0 has no room for the sign either.
    kept.chain((width > 0).then_some(look.signs.cut)).collect()
}

/// Formats a non-negative number in at most six characters; `-` for NaN.
fn brief(value: f64) -> String {
    match value {
        // NaN fails all comparisons below and would reach the last arm.
        value if value.is_nan() => "-".to_owned(),
        0.0 => "0".to_owned(),
        // The limits are half a digit below powers of ten, because rounding would add a digit.
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value if value < 99_999.5 => format!("{value:.0}"),
        value if value < 9_999.5e3 => format!("{:.0}k", value / 1e3),
        value if value < 9_999.5e6 => format!("{:.0}M", value / 1e6),
        value => format!("{:.0}G", value / 1e9),
    }
}

#[cfg(test)]
mod tests;
