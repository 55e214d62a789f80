//! Progress of long runs as lines, where standard error is no terminal.

use crate::output::print_error;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between two lines, and the time without a line at the begin of a command.
const PERIOD: Duration = Duration::from_secs(10);

/// Lines of progress, at most one in ten seconds. A log of a batch job then shows that the job is
/// alive, and a short command prints nothing.
#[derive(Debug)]
pub(crate) struct Lines {
    began: Instant,
    /// Time of the next line.
    due: Mutex<Instant>,
}

impl Lines {
    pub(crate) fn new() -> Lines {
        let began = Instant::now();
        Lines {
            began,
            due: Mutex::new(began + PERIOD),
        }
    }

    /// Prints the line of `what` if a line is due.
    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        let now = Instant::now();
        if now < self.began + PERIOD || is_off() {
            return;
        }
        // Another thread prints a line at this moment, or has just printed one.
        let Ok(mut due) = self.due.try_lock() else {
            return;
        };
        if now < *due {
            return;
        }
        *due = now + PERIOD;
        let seconds = now.duration_since(self.began).as_secs();
        print_error(&format!("{} ({seconds} s)", what()));
    }
}

/// True if the user wants no progress: `FULLSTROKE_PROGRESS=none`.
fn is_off() -> bool {
    std::env::var_os("FULLSTROKE_PROGRESS").is_some_and(|value| value == "none")
}

/// Returns the progress of a run: the finished requests, their share, and the time that is left if
/// the rest is as slow.
pub(crate) fn line(name: &str, finished: u64, expected: Option<u64>, elapsed: Duration) -> String {
    let Some(expected) = expected.filter(|expected| *expected > 0) else {
        return format!("{name}: {finished} requests");
    };
    let share = finished as f64 / expected as f64;
    let left = match share > 0.0 && share <= 1.0 {
        true => format!(
            ", about {:.0} s left",
            elapsed.as_secs_f64() * (1.0 / share - 1.0)
        ),
        false => String::new(),
    };
    format!(
        "{name}: {finished} of {expected} requests, {:.0} %{left}",
        100.0 * share
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_share_and_the_time_that_is_left() {
        let elapsed = Duration::from_secs(30);
        assert_eq!(
            line("raid5", 250, Some(1000), elapsed),
            "raid5: 250 of 1000 requests, 25 %, about 90 s left"
        );
        assert_eq!(line("raid5", 250, None, elapsed), "raid5: 250 requests");
        assert_eq!(
            line("raid5", 0, Some(10), elapsed),
            "raid5: 0 of 10 requests, 0 %"
        );
    }

    #[test]
    fn a_short_command_prints_no_line() {
        let mut lines = Lines::new();
        lines.say(|| unreachable!("ten seconds have not passed"));
        lines.began = Instant::now().checked_sub(2 * PERIOD).unwrap();
        *lines.due.lock().unwrap() = Instant::now();
        let mut said = false;
        lines.say(|| {
            said = true;
            "test".to_owned()
        });
        assert!(said);
        lines.say(|| unreachable!("the next line is due in ten seconds"));
    }
}
