//! What opportunities say to clients, kept until somebody asks for it.

use crate::control_queue::ControlResponse;
use fullstroke_contract::{Extent, Signal};
use fullstroke_units::{Lbn, Sectors};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Signals that are kept for who asks late.
const KEPT: usize = 4096;
/// Those who wait at a time.
const LISTENERS_MAX: usize = 64;
/// Who waits in vain for so long is told that there was nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// PUSH or PULL, in sectors of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "signal", deny_unknown_fields)]
pub enum Said {
    /// Write back what is dirty: of these addresses, or any so many sectors.
    Pull {
        /// Where it begins; nowhere in particular without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<u64>,
        /// How much.
        sectors: u64,
    },
    /// This is worth having now.
    Push {
        /// Where it begins.
        start: u64,
        /// How much.
        sectors: u64,
    },
}

impl Said {
    /// A signal that is meant for clients.
    pub(crate) fn of(signal: Signal) -> Option<Said> {
        match signal {
            Signal::Pull { extent: Some(extent), .. } => {
                Some(Said::Pull { start: Some(extent.start.0), sectors: extent.sectors.0 })
            }
            Signal::Pull { extent: None, sectors } => Some(Said::Pull { start: None, sectors: sectors.0 }),
            Signal::Push(Extent { start: Lbn(start), sectors: Sectors(sectors) }) => {
                Some(Said::Push { start, sectors })
            }
            _ => None,
        }
    }
}

struct Listener {
    after: u64,
    asker: Sender<ControlResponse>,
    until: Instant,
}

/// The last signals of an export, by their numbers from 0, and who waits for more.
#[derive(Default)]
pub(crate) struct Signals {
    kept: VecDeque<Said>,
    /// The number of the next.
    next: u64,
    listeners: Vec<Listener>,
}

impl Signals {
    pub(crate) fn say(&mut self, said: Said) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(said);
        self.next += 1;
    }

    /// Has `asker` told all from number `after` on, as soon as there is one; from
    /// now on, without a number.
    pub(crate) fn listen(&mut self, after: Option<u64>, asker: Sender<ControlResponse>) {
        if self.listeners.len() == LISTENERS_MAX {
            let message = format!("{LISTENERS_MAX} listen to this export already");
            let _ = asker.send(ControlResponse::Refused { message });
            return;
        }
        let after = after.unwrap_or(self.next).min(self.next);
        self.listeners.push(Listener { after, asker, until: Instant::now() + PATIENCE });
    }

    /// Nothing is said any more: those who wait need not.
    pub(crate) fn end(&mut self) {
        self.listeners.clear();
    }

    /// Tells those who wait what has been said since, or that nothing was.
    pub(crate) fn tell(&mut self) {
        if self.listeners.is_empty() {
            return;
        }
        let now = Instant::now();
        let (next, kept) = (self.next, &self.kept);
        self.listeners.retain(|listener| {
            if listener.after == next && now < listener.until {
                return true;
            }
            let first = next - kept.len() as u64;
            let skipped = listener.after.saturating_sub(first) as usize;
            let answer = ControlResponse::Signals {
                next,
                missed: first.saturating_sub(listener.after),
                signals: kept.iter().skip(skipped).copied().collect(),
            };
            // Whoever asked may have gone.
            let _ = listener.asker.send(answer);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn pull(sectors: u64) -> Said {
        Said::Pull { start: None, sectors }
    }

    #[test]
    fn who_listens_hears_each_signal_once_and_how_many_were_missed() {
        let mut signals = Signals::default();
        signals.say(pull(1));
        let (sender, answers) = channel();
        signals.listen(None, sender.clone());
        signals.tell();
        assert!(answers.try_recv().is_err(), "nothing was said since");
        signals.say(pull(2));
        signals.tell();
        let heard = |next, missed, sectors: Vec<u64>| ControlResponse::Signals {
            next,
            missed,
            signals: sectors.into_iter().map(pull).collect(),
        };
        assert_eq!(answers.try_recv().unwrap(), heard(2, 0, vec![2]));
        for sectors in 0..KEPT as u64 + 3 {
            signals.say(pull(sectors));
        }
        signals.listen(Some(2), sender.clone());
        signals.tell();
        let next = KEPT as u64 + 5;
        assert_eq!(answers.try_recv().unwrap(), heard(next, 3, (3..KEPT as u64 + 3).collect()));
        // A number that nobody was told is the next.
        signals.listen(Some(u64::MAX), sender);
        signals.say(pull(7));
        signals.tell();
        assert_eq!(answers.try_recv().unwrap(), heard(next + 1, 0, vec![7]));
    }
}
