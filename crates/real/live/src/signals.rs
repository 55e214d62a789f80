//! Signals of opportunities to clients, kept until a client asks.
//!
//! Clients with a name are hosts. Dirty data without an address are requested from one host at a
//! time, in turn, as in a simulation (*Pro-active storage systems*, 2012, section 5.5). A write
//! does not show if it answers a signal. So a host reports the number of written sectors with the
//! next question. A host that wrote less than requested is passed over in the next round.

use crate::control_queue::ControlResponse;
use crate::signal_extent::SignalExtent;
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Number of signals kept for late clients.
const KEPT: usize = 4096;
/// Largest number of waiting clients.
const LISTENERS_MAX: usize = 64;
/// Time after which a waiting client is told that there was no signal.
const PATIENCE: Duration = Duration::from_secs(10);
/// Silence after which a host counts as absent.
const AWAY: Duration = Duration::from_secs(15);

struct Listener {
    after: u64,
    host: Option<u64>,
    asker: Sender<ControlResponse>,
    until: Instant,
}

/// A client with a name.
struct NamedClient {
    id: u64,
    name: String,
    /// Time of the last question.
    asked: Instant,
    /// Sectors without an address requested by the last answer.
    pulled: u64,
    /// True if the host wrote less, and has not been passed over since.
    lacked: bool,
}

/// A signal, with its host if meant for one.
#[derive(Clone, Copy)]
struct ReceivedSignal {
    said: SignalExtent,
    host: Option<u64>,
}

impl ReceivedSignal {
    fn is_for(&self, host: Option<u64>) -> bool {
        self.host.is_none() || host.is_none() || self.host == host
    }
}

/// The last signals of an export, by their numbers from 0, and the waiting clients.
#[derive(Default)]
pub(crate) struct Signals {
    kept: VecDeque<ReceivedSignal>,
    /// Number of the next signal.
    next: u64,
    listeners: Vec<Listener>,
    /// Hosts in the order of their turns.
    hosts: VecDeque<NamedClient>,
    next_host: u64,
}

impl Signals {
    pub(crate) fn say(&mut self, said: SignalExtent) {
        let any = matches!(said, SignalExtent::Pull { start: None, .. });
        let host = if any {
            self.whose_turn(Instant::now())
        } else {
            None
        };
        // A late client learns the number of dropped signals from the numbers.
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(ReceivedSignal { said, host });
        self.next += 1;
    }

    /// Returns the next of the present hosts. If each host was passed over, the turn begins anew.
    fn whose_turn(&mut self, now: Instant) -> Option<u64> {
        // A host that left would otherwise have its turn for ever, and nobody would write.
        self.hosts
            .retain(|host| now.saturating_duration_since(host.asked) < AWAY);
        for _ in 0..=self.hosts.len() {
            self.hosts.rotate_left(usize::from(!self.hosts.is_empty()));
            let host = self.hosts.back_mut()?;
            if !std::mem::take(&mut host.lacked) {
                return Some(host.id);
            }
        }
        None
    }

    /// Returns the number of the host of this name, and records its presence and its written
    /// sectors.
    fn host(&mut self, name: String, wrote: Option<u64>) -> u64 {
        let asked = Instant::now();
        if let Some(host) = self.hosts.iter_mut().find(|host| host.name == name) {
            host.asked = asked;
            let pulled = std::mem::take(&mut host.pulled);
            host.lacked |= wrote.is_some_and(|wrote| wrote < pulled);
            return host.id;
        }
        self.next_host += 1;
        self.hosts.push_back(NamedClient {
            id: self.next_host,
            name,
            asked,
            pulled: 0,
            lacked: false,
        });
        self.next_host
    }

    /// Registers `asker` for the signals from number `after` on, as soon as there is one. Without a
    /// number, only new signals count. Without a name, the signals of all hosts count. A host may
    /// also report the sectors written for the last answer.
    pub(crate) fn listen(
        &mut self,
        after: Option<u64>,
        host: Option<(String, Option<u64>)>,
        asker: Sender<ControlResponse>,
    ) {
        if self.listeners.len() == LISTENERS_MAX {
            let message = format!("{LISTENERS_MAX} listen to this export already");
            let _ = asker.send(ControlResponse::Refused { message });
            return;
        }
        // A number beyond the next signal comes from an earlier server with more signals.
        let after = after.unwrap_or(self.next).min(self.next);
        let host = host.map(|(name, wrote)| self.host(name, wrote));
        self.listeners.push(Listener {
            after,
            host,
            asker,
            until: Instant::now() + PATIENCE,
        });
    }

    /// Ends the signals, and releases the waiting clients.
    pub(crate) fn end(&mut self) {
        self.listeners.clear();
    }

    /// Sends the waiting clients their new signals, or the message that there were none.
    pub(crate) fn notify_clients(&mut self) {
        if self.listeners.is_empty() {
            return;
        }
        let now = Instant::now();
        let (next, kept, hosts) = (self.next, &self.kept, &mut self.hosts);
        let first = next - kept.len() as u64;
        self.listeners.retain_mut(|listener| {
            let new = || {
                kept.iter()
                    .skip(listener.after.saturating_sub(first) as usize)
            };
            let missed = first.saturating_sub(listener.after);
            let is_for = |one: &&ReceivedSignal| one.is_for(listener.host);
            if missed == 0 && !new().any(|one| is_for(&one)) && now < listener.until {
                // The signals seen so far were for other hosts, and need not be looked at again.
                listener.after = next;
                return true;
            }
            let signals: Vec<SignalExtent> = new().filter(is_for).map(|one| one.said).collect();
            if let Some(host) = hosts.iter_mut().find(|host| Some(host.id) == listener.host) {
                host.pulled = signals.iter().map(SignalExtent::of_any).sum();
            }
            // The asker may have left.
            let _ = listener.asker.send(ControlResponse::Signals {
                next,
                missed,
                signals,
            });
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn pull(sectors: u64) -> SignalExtent {
        SignalExtent::Pull {
            start: None,
            sectors,
        }
    }

    #[test]
    fn who_listens_hears_each_signal_once_and_how_many_were_missed() {
        let mut signals = Signals::default();
        signals.say(pull(1));
        let (sender, answers) = channel();
        signals.listen(None, None, sender.clone());
        signals.notify_clients();
        assert!(answers.try_recv().is_err(), "nothing was said since");
        signals.say(pull(2));
        signals.notify_clients();
        let heard = |next, missed, sectors: Vec<u64>| ControlResponse::Signals {
            next,
            missed,
            signals: sectors.into_iter().map(pull).collect(),
        };
        assert_eq!(answers.try_recv().unwrap(), heard(2, 0, vec![2]));
        for sectors in 0..KEPT as u64 + 3 {
            signals.say(pull(sectors));
        }
        signals.listen(Some(2), None, sender.clone());
        signals.notify_clients();
        let next = KEPT as u64 + 5;
        assert_eq!(
            answers.try_recv().unwrap(),
            heard(next, 3, (3..KEPT as u64 + 3).collect())
        );
        // A number beyond the last signal means the next signal.
        signals.listen(Some(u64::MAX), None, sender);
        signals.say(pull(7));
        signals.notify_clients();
        assert_eq!(answers.try_recv().unwrap(), heard(next + 1, 0, vec![7]));
    }

    #[test]
    fn of_hosts_with_names_one_is_asked_at_a_time_and_all_hear_what_has_an_address() {
        let mut signals = Signals::default();
        let (sender, answers) = channel();
        let ask = |signals: &mut Signals, host: Option<&str>, after: u64| {
            signals.listen(
                Some(after),
                host.map(|name| (name.to_owned(), None)),
                sender.clone(),
            );
            signals.notify_clients();
            answers.try_recv().ok().map(|answer| match answer {
                ControlResponse::Signals {
                    signals, missed: 0, ..
                } => signals,
                other => panic!("{other:?}"),
            })
        };
        for host in ["one", "two", "three"] {
            assert_eq!(
                ask(&mut signals, Some(host), 0),
                None,
                "nothing was said yet"
            );
        }
        signals.end();
        for sectors in 1..=4 {
            signals.say(pull(sectors));
        }
        let push = SignalExtent::Push {
            start: 8,
            sectors: 8,
        };
        signals.say(push);
        assert_eq!(
            ask(&mut signals, Some("one"), 0),
            Some(vec![pull(1), pull(4), push])
        );
        assert_eq!(ask(&mut signals, Some("two"), 0), Some(vec![pull(2), push]));
        assert_eq!(
            ask(&mut signals, Some("three"), 0),
            Some(vec![pull(3), push])
        );
        assert_eq!(ask(&mut signals, None, 3), Some(vec![pull(4), push]));
        // An absent host is not asked.
        let away = Instant::now().checked_sub(AWAY).unwrap();
        signals
            .hosts
            .iter_mut()
            .filter(|host| host.name != "three")
            .for_each(|host| host.asked = away);
        for sectors in 5..=6 {
            signals.say(pull(sectors));
        }
        assert_eq!(
            ask(&mut signals, Some("three"), 5),
            Some(vec![pull(5), pull(6)])
        );
        // A signal for another host does not wake this one.
        assert_eq!(ask(&mut signals, Some("one"), 7), None);
        signals.say(pull(7));
        signals.notify_clients();
        assert!(answers.try_recv().is_err(), "it was for three");
        signals.say(pull(8));
        signals.notify_clients();
        assert!(
            matches!(answers.try_recv(), Ok(ControlResponse::Signals { signals, .. }) if signals == [pull(8)])
        );
    }

    #[test]
    fn who_has_written_less_than_asked_is_passed_over_once() {
        let mut signals = Signals::default();
        let (sender, answers) = channel();
        let asked = |signals: &mut Signals, after: u64, host: &str, wrote: Option<u64>| {
            signals.listen(Some(after), Some((host.to_owned(), wrote)), sender.clone());
            signals.notify_clients();
            match answers.try_recv() {
                Ok(ControlResponse::Signals { signals, .. }) => {
                    signals.iter().map(SignalExtent::of_any).sum()
                }
                _ => 0,
            }
        };
        for host in ["full", "empty", "silent"] {
            asked(&mut signals, 0, host, None);
        }
        signals.end();
        let mut sums = [0; 3];
        let mut wrote = [None; 3];
        for round in 0..120 {
            signals.say(pull(8));
            for (index, host) in ["full", "empty", "silent"].into_iter().enumerate() {
                let got: u64 = asked(&mut signals, round, host, wrote[index]);
                sums[index] += got / 8;
                // The first host writes all requested data, the second nothing, and the third does
                // not report.
                wrote[index] = [Some(got), Some(0), None][index];
                signals.end();
            }
        }
        // Full and silent in each round, empty in every other: two fifths, and one.
        assert_eq!(sums, [48, 24, 48]);
        // If no host has dirty data, one is asked nevertheless.
        for host in ["full", "empty", "silent"] {
            signals
                .hosts
                .iter_mut()
                .find(|one| one.name == host)
                .unwrap()
                .lacked = true;
        }
        assert!(signals.whose_turn(Instant::now()).is_some());
    }
}
