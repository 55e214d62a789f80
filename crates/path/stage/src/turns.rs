//! The next host to ask for dirty pages.
//!
//! Hosts are asked in turn. A host that wrote less than requested has no more dirty pages, and is
//! skipped in the next round (*Pro-active storage systems*, 2012, section 5.5).

use fullstroke_contract::Port;
use fullstroke_units::Sectors;

/// Hosts in the order of their PULLs.
#[derive(Clone, Debug, Default)]
pub(crate) struct PullTurns {
    hosts: Vec<LastPull>,
    next: usize,
}

/// State of the last PULL to a host.
#[derive(Clone, Copy, Debug, Default)]
struct LastPull {
    /// Requested sectors not yet written by the host.
    unwritten: Sectors,
    /// True if the host was skipped since the PULL.
    skipped: bool,
}

impl PullTurns {
    /// Returns the next of `hosts` hosts, and records a PULL of `sectors` to the host.
    pub(crate) fn next(&mut self, hosts: usize, sectors: Sectors) -> Port {
        self.hosts.resize(hosts, LastPull::default());
        // If all hosts were skipped, all hosts are asked again.
        for _ in 0..hosts {
            let asked = &mut self.hosts[self.next];
            if asked.unwritten == Sectors::ZERO || asked.skipped {
                break;
            }
            asked.skipped = true;
            self.next = (self.next + 1) % hosts;
        }
        assert!(
            self.next < hosts,
            "it is the turn of host {}, of {hosts}",
            self.next
        );
        let host = self.next;
        self.hosts[host] = LastPull {
            unwritten: sectors,
            skipped: false,
        };
        self.next = (host + 1) % hosts;
        Port::of(host)
    }

    /// Records a write of a host.
    pub(crate) fn wrote(&mut self, host: Port, sectors: Sectors) {
        if let Some(asked) = self.hosts.get_mut(host.index()) {
            asked.unwritten = Sectors(asked.unwritten.0.saturating_sub(sectors.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The asked hosts in `turns` turns, with the given granules of dirty data per host.
    fn asked(mut dirty: Vec<u32>, turns: usize) -> Vec<usize> {
        let mut order = PullTurns::default();
        let turn = |_| {
            let host = order.next(dirty.len(), Sectors(8)).index();
            if dirty[host] > 0 {
                dirty[host] -= 1;
                order.wrote(Port::of(host), Sectors(8));
            }
            host
        };
        (0..turns).map(turn).collect()
    }

    #[test]
    fn hosts_take_turns() {
        assert_eq!(asked(vec![9, 9, 9], 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(asked(vec![9], 3), [0, 0, 0]);
    }

    #[test]
    fn who_has_nothing_is_passed_over_in_every_other_round() {
        assert_eq!(asked(vec![9, 0, 9], 8), [0, 1, 2, 0, 2, 0, 1, 2]);
    }

    #[test]
    fn where_none_has_anything_all_are_asked() {
        let mut order = asked(vec![0, 0], 4);
        order.sort_unstable();
        assert_eq!(order, [0, 0, 1, 1]);
    }
}
