//! Recent looks at a server: the newest, and an older one for comparison.

use fullstroke_live::ServerStatus;
use std::collections::VecDeque;

/// Minimum time over which rates are calculated. Shorter intervals give unreadable, jumping
/// numbers.
const WINDOW_S: f64 = 1.0;

/// Looks at one server. There is always at least one.
#[derive(Clone, Debug)]
pub(super) struct History {
    before: VecDeque<ServerStatus>,
    now: ServerStatus,
}

impl History {
    pub(super) fn new(first: ServerStatus) -> History {
        History {
            before: VecDeque::new(),
            now: first,
        }
    }

    /// Adds a look.
    pub(super) fn push(&mut self, now: ServerStatus) {
        let last = std::mem::replace(&mut self.now, now);
        if last.uptime_s > self.now.uptime_s || !same_exports(&last, &self.now) {
            // The uptime fell or the exports differ, so another server has taken this one's place.
            return self.before.clear();
        }
        self.before.push_back(last);
        while self.before.len() > 1 && self.now.uptime_s - self.before[1].uptime_s >= WINDOW_S {
            self.before.pop_front();
        }
    }

    /// Returns the newest look.
    pub(super) fn now(&self) -> &ServerStatus {
        &self.now
    }

    /// Returns a look that is about [`WINDOW_S`] older than the newest one, or the newest itself if
    /// there is no other.
    pub(super) fn before(&self) -> &ServerStatus {
        self.before.front().unwrap_or(&self.now)
    }
}

fn same_exports(one: &ServerStatus, other: &ServerStatus) -> bool {
    let shape = |status: &ServerStatus| -> Vec<(String, usize)> {
        status
            .exports
            .iter()
            .map(|export| (export.name.clone(), export.drives.len()))
            .collect()
    };
    shape(one) == shape(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uptime_s: f64) -> ServerStatus {
        ServerStatus {
            version: String::new(),
            uptime_s,
            speed: None,
            clients: 0,
            exports: Vec::new(),
        }
    }

    #[test]
    fn the_older_look_is_at_least_a_window_old_once_there_is_one() {
        let mut history = History::new(status(0.0));
        assert_eq!(history.before(), history.now());
        for step in 1..100 {
            history.push(status(f64::from(step) * 0.25));
            let age_s = history.now().uptime_s - history.before().uptime_s;
            assert_eq!(age_s, WINDOW_S.min(f64::from(step) * 0.25), "step {step}");
        }
        history.push(status(200.0));
        assert_eq!(history.before().uptime_s, 24.75);
    }

    #[test]
    fn another_server_begins_anew() {
        let mut history = History::new(status(50.0));
        history.push(status(50.25));
        history.push(status(1.0));
        assert_eq!(history.before(), history.now());
    }
}
