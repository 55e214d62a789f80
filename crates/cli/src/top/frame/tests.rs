//! Tests of screens on ratatui's test terminal.

use super::*;
use fullstroke_contract::{
    Draw, MemberStatistics, PowerState, PowerStatistics, Residency, Transition,
};
use fullstroke_live::{
    ComparingStatus, DriveState, DriveTotals, Health, LatenessSummary, Operations,
};
use fullstroke_units::{Duration, Sectors, Watts};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

fn drive(name: &str, head_share: f64) -> DriveStatus {
    DriveStatus {
        name: name.into(),
        state: DriveState::Alive,
        rebuilt_share: None,
        slowness: None,
        queue_length: 4,
        head_share,
        head_cylinder: 0,
        busy: true,
        totals: totals(100_000, 1000, 8000),
    }
}

fn totals(busy_ms: u64, ios: u64, sectors: u64) -> DriveTotals {
    DriveTotals::of(&MemberStatistics {
        reads: ios,
        sectors_read: Sectors(sectors),
        busy: Duration::from_millis(busy_ms),
        ..MemberStatistics::default()
    })
}

fn status(drives: Vec<DriveStatus>) -> ServerStatus {
    let export = ExportStatus {
        name: "demo".into(),
        layout: "raid5 of 5".into(),
        usable_bytes: 4_000_000_000_000,
        world_ns: 100_000_000_000,
        requests: 10,
        in_flight: 7,
        operations: Operations::default(),
        lateness: LatenessSummary {
            p99_us: 52.4,
            ..LatenessSummary::default()
        },
        scrubbed_share: None,
        health: Health::default(),
        drives,
    };
    ServerStatus {
        version: "1.2.3".into(),
        uptime_s: 3725.0,
        speed: Some(1.0),
        clients: 2,
        exports: vec![export],
    }
}

#[test]
fn what_is_compared_after_a_kill_has_a_line_until_it_is_done() {
    let mut status = status(vec![drive("0", 0.5)]);
    let shown = |status: &ServerStatus| rows(&screen(&view(status, status), 80, 24)).join("\n");
    assert!(!shown(&status).contains("comparing"));
    let comparing = ComparingStatus {
        left_bytes: 40 << 20,
        of_bytes: 64 << 20,
    };
    status.exports[0].health.comparing = Some(comparing);
    let shown = shown(&status);
    assert!(
        shown.contains("comparing redundancy after a kill: 37.5 %, 40 MiB left"),
        "{shown}"
    );
}

/// Returns a status that is two seconds of simulated time later, with `change` applied.
fn later(status: &ServerStatus, change: impl FnOnce(&mut ExportStatus)) -> ServerStatus {
    let mut later = status.clone();
    later.exports[0].world_ns += 2_000_000_000;
    change(&mut later.exports[0]);
    later
}

fn screen(view: &View<'_>, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    terminal.backend().buffer().clone()
}

fn rows(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect();
    buffer.content.chunks(width).map(row).collect()
}

fn view<'a>(before: &'a ServerStatus, now: &'a ServerStatus) -> View<'a> {
    View {
        before,
        now,
        trouble: None,
        scrolled: 0,
        look: TerminalAbilities::new(true, true),
    }
}

fn row_of<'a>(rows: &'a [String], beginning: &str) -> &'a str {
    rows.iter()
        .find(|row| row.starts_with(beginning))
        .unwrap_or_else(|| panic!("no {beginning}: {rows:#?}"))
}

/// Returns the column of the head in the first drive's row, and the columns of both ends of the
/// track.
fn head_column(share: f64) -> (usize, usize, usize) {
    let status = status(vec![drive("0", share)]);
    let rows = rows(&screen(&view(&status, &status), 80, 24));
    let row: Vec<char> = row_of(&rows, "0 ").chars().collect();
    let on_track = |sign: &char| ['─', '●'].contains(sign);
    let head = row.iter().position(|&sign| sign == '●').expect("a head");
    (
        head,
        row.iter().position(on_track).unwrap(),
        row.iter().rposition(on_track).unwrap(),
    )
}

#[test]
fn heads_move_from_the_outside_to_the_inside_of_the_platter() {
    let columns: Vec<(usize, usize, usize)> = (0..=100)
        .map(|percent| head_column(f64::from(percent) / 100.0))
        .collect();
    let (_, outside, inside) = columns[0];
    assert!(
        inside - outside >= 15,
        "a track of {} cells",
        inside - outside
    );
    assert_eq!((columns[0].0, columns[100].0), (outside, inside));
    assert!(
        columns.is_sorted_by_key(|&(head, _, _)| head),
        "{columns:?}"
    );
    let places: std::collections::BTreeSet<usize> =
        columns.iter().map(|&(head, _, _)| head).collect();
    assert_eq!(
        places.len(),
        inside - outside + 1,
        "the head stands on every cell in turn"
    );
    assert_eq!(head_column(7.0).0, inside, "nonsense stays on the platter");
}

#[test]
fn rates_are_those_between_the_two_looks() {
    let before = status(vec![drive("0", 0.0)]);
    let now = later(&before, |export| {
        export.operations.read = OperationStatus {
            requests: 500,
            bytes: 10_000_000,
            response_s: 3.0,
            ..OperationStatus::default()
        };
        export.drives[0].totals = totals(101_500, 1300, 58_000);
    });
    let rows = rows(&screen(&view(&before, &now), 80, 24));
    let words = |beginning| {
        row_of(&rows, beginning)
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words("read"), ["read", "250", "5.00", "6.00", "0"]);
    assert_eq!(words("write"), ["write", "0", "0", "-", "0"]);
    assert_eq!(words("0 ")[4..], ["75%", "150", "12.8", "alive"]);
}

#[test]
fn requests_that_failed_are_errors_and_in_no_rate() {
    let before = status(vec![drive("0", 0.0)]);
    let now = later(&before, |export| {
        export.operations.read = OperationStatus {
            requests: 500,
            errors: 400,
            bytes: 10_000_000,
            response_s: 3.0,
            ..OperationStatus::default()
        };
    });
    let rows = rows(&screen(&view(&before, &now), 80, 24));
    let words: Vec<&str> = row_of(&rows, "read").split_whitespace().collect();
    assert_eq!(words, ["read", "50.0", "5.00", "30.0", "400"]);
}

#[test]
fn the_first_look_has_no_rates() {
    let status = status(vec![drive("0", 0.0)]);
    let rows = rows(&screen(&view(&status, &status), 80, 24));
    let words = |beginning| {
        row_of(&rows, beginning)
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(words("read"), ["read", "-", "-", "-", "0"]);
    assert_eq!(words("0 ")[4..], ["-", "-", "-", "alive"]);
}

#[test]
fn drives_that_say_what_they_draw_have_their_watts_on_screen() {
    let before = status(vec![drive("0", 0.0), drive("1", 0.0)]);
    let shown = |before: &ServerStatus, now: &ServerStatus| {
        rows(&screen(&view(before, now), 80, 24)).join("\n")
    };
    assert!(!shown(&before, &later(&before, |_| {})).contains("drives draw"));
    let taken = |joules: f64| {
        let mut residency = Residency::default();
        residency.add(PowerState::IdleA, Duration::from_secs_f64(joules));
        let transition = Transition::default();
        let draw = Draw::new(|_| Watts(1.0), transition, transition);
        let power = Some(PowerStatistics::new(&draw, residency, 0, 0, 0));
        DriveTotals::of(&MemberStatistics {
            power,
            ..MemberStatistics::default()
        })
    };
    // Only the second drive reports energy: 15 J within two seconds.
    let before = later(&before, |export| export.drives[1].totals = taken(100.0));
    let now = later(&before, |export| export.drives[1].totals = taken(115.0));
    assert!(
        shown(&before, &now).contains("drives draw 7.50 W"),
        "{}",
        shown(&before, &now)
    );
    assert!(
        shown(&now, &now).contains("drives draw - W"),
        "{}",
        shown(&now, &now)
    );
}

#[test]
fn nothing_is_cut_at_eighty_columns() {
    let mut drives: Vec<DriveStatus> = (0..4)
        .map(|number| drive(&format!("1.{number}"), 0.5))
        .collect();
    drives[1].state = DriveState::Rebuilding;
    drives[1].rebuilt_share = Some(1.0);
    drives[2].state = DriveState::Failed;
    drives[3].queue_length = 99_999;
    let before = status(drives);
    let now = later(&before, |export| {
        export.in_flight = 123_456;
        export.world_ns += 8_000_000_000_000_000;
        export.lateness.p99_us = 59_999_999.0;
        let many = OperationStatus {
            requests: u64::MAX,
            bytes: u64::MAX,
            errors: 99_999_999_999,
            response_s: 1e15,
            buckets: Vec::new(),
        };
        export.operations = Operations {
            read: many.clone(),
            write: many.clone(),
            flush: many.clone(),
            discard: many,
        };
        export.drives.iter_mut().for_each(|drive| {
            drive.totals = totals(8_000_000_000, u64::MAX, u64::MAX);
        });
    });
    let rows = rows(&screen(&view(&before, &now), 80, 24));
    let ends = [
        ("fullstroke", "2 clients"),
        ("demo", "4.00 TB"),
        ("123456", "(p99)"),
        ("read", "99999999999"),
        ("discard", "99999999999"),
        ("drive", "state"),
        ("1.0", "alive"),
        ("1.1", "rebuilding 100%"),
        ("1.2", "failed"),
        ("q: ", "quit"),
    ];
    for (beginning, end) in ends {
        let row = row_of(&rows, beginning).trim_end();
        assert!(row.ends_with(end), "{row}");
    }
    for line in lines(&view(&before, &now), 80) {
        assert!(line.width() <= 80, "{line}");
    }
    // Neighbouring numbers have a space between them, and columns stand below their headings.
    let column = |beginning: &str, word: &str| {
        let row = row_of(&rows, beginning);
        row.find(word).map(|at| row[..at].chars().count())
    };
    assert_eq!(column("drive", "state"), column("1.1", "rebuilding"));
    assert!(row_of(&rows, "1.3").contains("99999  "));
}

#[test]
fn many_drives_are_scrolled_through() {
    let status = status(
        (0..100)
            .map(|number| drive(&number.to_string(), 0.5))
            .collect(),
    );
    let first = view(&status, &status);
    let top = rows(&screen(&first, 80, 24));
    assert!(
        top.iter().any(|row| row.starts_with("0 "))
            && !top.iter().any(|row| row.starts_with("99 "))
    );
    assert!(top[23].contains("below"), "{}", top[23]);
    let scrolled = View {
        scrolled: furthest(&first, 24),
        ..view(&status, &status)
    };
    let bottom = rows(&screen(&scrolled, 80, 24));
    assert!(
        bottom[22].starts_with("99 ") && bottom[23].contains(" 0 below"),
        "{bottom:#?}"
    );
    let beyond = View {
        scrolled: usize::MAX,
        ..view(&status, &status)
    };
    assert_eq!(rows(&screen(&beyond, 80, 24)), bottom);
}

#[test]
fn without_colours_nothing_is_coloured_and_ascii_is_enough() {
    let mut status = status(vec![drive("0", 0.3), drive("1", 0.9)]);
    status.exports[0].drives[1].state = DriveState::Failed;
    let plain = View {
        look: TerminalAbilities::new(false, false),
        ..view(&status, &status)
    };
    let buffer = screen(&plain, 80, 24);
    assert!(
        buffer
            .content
            .iter()
            .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
    assert!(
        rows(&buffer).iter().all(|row| row.is_ascii()),
        "{:#?}",
        rows(&buffer)
    );
    let coloured = screen(&view(&status, &status), 80, 24);
    assert!(coloured.content.iter().any(|cell| cell.fg == Color::Red));
}

#[test]
fn queues_grow_as_bars_and_one_request_shows() {
    let look = TerminalAbilities::new(true, true);
    let widths: Vec<usize> = (0..=40)
        .map(|requests| bar(look, requests).trim_end().chars().count())
        .collect();
    assert_eq!(
        (widths[0], widths[1], widths[32], widths[40]),
        (0, 1, BAR_CELLS, BAR_CELLS)
    );
    assert!(widths.is_sorted());
    assert_eq!(bar(TerminalAbilities::new(true, false), 16), "####    ");
}

#[test]
fn why_there_is_nothing_newer_is_said() {
    let status = status(vec![drive("0", 0.3)]);
    let view = View {
        trouble: Some("the server does not answer"),
        ..view(&status, &status)
    };
    assert!(rows(&screen(&view, 80, 24))[23].starts_with("the server does not answer"));
}

#[test]
fn any_size_of_terminal_is_drawn() {
    let status = status(
        (0..20)
            .map(|number| drive(&number.to_string(), 1.0))
            .collect(),
    );
    for width in [1, 2, 7, 20, 59, 61, 79, 81, 200, 500] {
        for height in [1, 2, 3, 10, 60] {
            screen(
                &View {
                    scrolled: 5,
                    ..view(&status, &status)
                },
                width,
                height,
            );
        }
    }
    let wide = rows(&screen(&view(&status, &status), 200, 30));
    assert!(row_of(&wide, "0 ").trim_end().ends_with("alive"));
}
