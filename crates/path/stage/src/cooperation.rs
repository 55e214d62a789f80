//! Co-operative caching that hosts need not know of (client-oblivious): data read or written by one
//! host serve another host from the first host's memory (*Pro-active storage systems*, 2012,
//! section 2.4.1).
//!
//! The stage logs the last host of each page. For a read of another host's pages, the stage asks
//! the logged host ([`Signal::Ask`](fullstroke_contract::Signal::Ask)). The host answers whether
//! its page cache holds all pages clean. If so, the host sends the pages. Otherwise, or without an
//! answer, the read goes to the array, later by the time of the question and its answer
//! (`latency`).
//!
//! Guarantee: no host receives data older than a write completed before the arrival of the read. A
//! write therefore removes its pages from the log at arrival. A request that ran beside a write of
//! the same pages is not logged at its end.

use fullstroke_contract::{ConfigError, Extent, LayerReadings, Operation, Port, Request};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// The unit of the log and of page caches.
const PAGE_BYTES: u64 = 4096;
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// The keys of `cooperation` in `[shared]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CooperationKeys {
    /// Size of the log of data that hosts have read or written, in whole pages of 4 KiB. The oldest
    /// entry is removed first. Default: "1GiB"; 0 asks no host.
    #[serde(default = "gibibyte")]
    pub log: Bytes,
    /// Time between a question and the answer. Default: "200us".
    #[serde(default = "there_and_back")]
    pub latency: Duration,
    /// Sending rate of a host, one read after the other, in 10^6 bytes a second. Default: 110.
    #[serde(default = "gigabit_ethernet")]
    pub mb_per_s: f64,
}

fn gibibyte() -> Bytes {
    Bytes(1 << 30)
}

fn there_and_back() -> Duration {
    Duration::from_micros(200)
}

fn gigabit_ethernet() -> f64 {
    110.0
}

impl CooperationKeys {
    /// Checks the keys.
    ///
    /// # Errors
    /// An impossible rate.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let rate = self.mb_per_s;
        if rate.is_finite() && rate > 0.0 {
            return Ok(());
        }
        let message = format!("found {rate}; expected 10^6 bytes a second, more than 0");
        Err(ConfigError::new("mb_per_s", message))
    }
}

/// Questions in progress and the log.
#[derive(Debug)]
pub(crate) struct Cooperation {
    keys: CooperationKeys,
    log: HolderLog,
    /// Requests in the stage or below.
    inside: Vec<OpenRequest>,
    asked: Vec<AskedRead>,
    hosts: Vec<HostState>,
    counts: CooperationCounts,
}

#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    slot: u32,
    pages: (u64, u64),
    changes: bool,
    /// True if the pages of the request changed during the request, or if the request changes the
    /// pages and ran beside another request.
    spoilt: bool,
}

/// A read waiting for the answer of a host.
#[derive(Clone, Copy, Debug)]
struct AskedRead {
    slot: u32,
    holder: Port,
    extent: Extent,
    /// Time and contents of the answer.
    due: Time,
    answer: Option<bool>,
}

/// State of a host.
#[derive(Clone, Copy, Debug, Default)]
struct HostState {
    /// End of the host's present transmission.
    sends_until: Time,
    /// True if the host has once not answered; such a host is not asked again.
    deaf: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct CooperationCounts {
    reads: u64,
    asked: u64,
    served: u64,
    served_sectors: Sectors,
    refused: u64,
    silent: u64,
}

/// Continuation of a read after the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadContinuation {
    pub(crate) slot: u32,
    /// Time of the continuation.
    pub(crate) at: Time,
    /// True if the host has sent the data.
    pub(crate) served: bool,
}

impl Cooperation {
    /// An empty log for `hosts` hosts.
    pub(crate) fn new(keys: CooperationKeys, hosts: usize) -> Cooperation {
        Cooperation {
            log: HolderLog::new(keys.log.0 / PAGE_BYTES),
            keys,
            inside: Vec::new(),
            asked: Vec::new(),
            hosts: vec![HostState::default(); hosts],
            counts: CooperationCounts::default(),
        }
    }

    /// Records an arrived request. `request.extent` is in addresses of the array.
    pub(crate) fn note_arrival(&mut self, slot: u32, request: &Request) {
        let changes = matches!(request.operation, Operation::Write | Operation::Discard);
        if !changes && request.operation != Operation::Read {
            return;
        }
        let touched = pages_of(request.extent);
        let mut spoilt = false;
        for other in &mut self.inside {
            let meet = other.pages.0 < touched.end && touched.start < other.pages.1;
            if meet && (changes || other.changes) {
                (other.spoilt, spoilt) = (true, true);
            }
        }
        if changes {
            // The copies of other hosts are old now. The end of the write enters the writer as
            // holder (`ended`).
            self.log.forget(touched.clone());
        }
        debug_assert!(
            self.inside.iter().all(|other| other.slot != slot),
            "the request of slot {slot} comes twice"
        );
        self.inside.push(OpenRequest {
            slot,
            pages: (touched.start, touched.end),
            changes,
            spoilt,
        });
    }

    /// Returns the host to ask for a read of `from`. The read goes down now and then waits for the
    /// answer.
    pub(crate) fn ask(
        &mut self,
        now: Time,
        slot: u32,
        from: Port,
        request: &Request,
    ) -> Option<Port> {
        // A verification must read the medium, and a copy in a host says nothing about the medium.
        if request.operation != Operation::Read || request.hints.verify {
            return None;
        }
        self.counts.reads += 1;
        let holder = self.log.holder(pages_of(request.extent))?;
        if holder == from || self.hosts[holder.index()].deaf {
            return None;
        }
        self.counts.asked += 1;
        debug_assert!(
            self.asked.iter().all(|asked| asked.slot != slot),
            "the read of slot {slot} waits for a host already"
        );
        let due = now + self.keys.latency;
        self.asked.push(AskedRead {
            slot,
            holder,
            extent: request.extent,
            due,
            answer: None,
        });
        Some(holder)
    }

    /// Records the answer of a host. The host holds and sends all of `extent`. An empty extent
    /// means "no": the host does not hold the data at the start of the extent.
    pub(crate) fn answered(&mut self, now: Time, holder: Port, extent: Extent) {
        let open = |asked: &&mut AskedRead| {
            asked.holder == holder && asked.extent.start == extent.start && asked.answer.is_none()
        };
        let Some(asked) = self.asked.iter_mut().find(open) else {
            return;
        };
        let held = extent.sectors > Sectors::ZERO;
        asked.answer = Some(held);
        if held {
            let host = &mut self.hosts[holder.index()];
            let megabytes = extent.sectors.bytes().0 as f64 / 1e6;
            let sent = Duration::from_secs_f64(megabytes / self.keys.mb_per_s);
            // Several hosts with very slow links, such as one byte a year, may end after every run.
            // The addition is therefore capped.
            host.sends_until = host.sends_until.max(now).capped_add(sent);
            asked.due = host.sends_until + self.keys.latency;
            assert!(
                host.sends_until >= now,
                "a host that answers at {now:?} has sent all by {:?}",
                host.sends_until
            );
        }
    }

    /// Returns when the first waiting read continues.
    pub(crate) fn next_due(&self) -> Time {
        self.asked
            .iter()
            .map(|asked| asked.due)
            .min()
            .unwrap_or(Time::NEVER)
    }

    /// Removes the first read with a continuation by `now`.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<ReadContinuation> {
        let first = (0..self.asked.len()).min_by_key(|&index| self.asked[index].due)?;
        if self.asked[first].due > now {
            return None;
        }
        let AskedRead {
            slot,
            holder,
            extent,
            due,
            answer,
        } = self.asked.remove(first);
        let served = answer == Some(true);
        match answer {
            Some(true) => {
                self.counts.served += 1;
                self.counts.served_sectors += extent.sectors;
            }
            Some(false) => self.counts.refused += 1,
            None => {
                self.counts.silent += 1;
                self.hosts[holder.index()].deaf = true;
            }
        }
        Some(ReadContinuation {
            slot,
            at: due,
            served,
        })
    }

    /// Records the end of a request of `from`. The memory of the host now holds the data.
    pub(crate) fn ended(&mut self, slot: u32, from: Port, request: &Request, done: bool) {
        let Some(place) = self.inside.iter().position(|inside| inside.slot == slot) else {
            return;
        };
        let OpenRequest { spoilt, .. } = self.inside.swap_remove(place);
        // A direct transfer bypasses the cache of the host, so the host holds nothing afterwards.
        if done && !spoilt && request.operation.transfers() && !request.hints.direct {
            self.log.note(pages_of(request.extent), from);
        }
    }

    pub(crate) fn readings(&self) -> LayerReadings {
        let CooperationCounts {
            reads,
            asked,
            served,
            served_sectors,
            refused,
            silent,
        } = self.counts;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        LayerReadings::new(
            "co-operative caching",
            &[
                ("cooperation_asked", asked as f64),
                ("cooperation_served", served as f64),
                (
                    "cooperation_served_mb",
                    served_sectors.bytes().0 as f64 / 1e6,
                ),
                ("cooperation_served_share", share(served, reads)),
                ("cooperation_refused", refused as f64),
                ("cooperation_silent", silent as f64),
            ],
        )
    }
}

/// Pages with any sector of an extent.
fn pages_of(extent: Extent) -> Range<u64> {
    extent.start.0 / PAGE_SECTORS..extent.end().0.div_ceil(PAGE_SECTORS)
}

/// The last host of each page, for a bounded number of pages.
#[derive(Debug)]
struct HolderLog {
    pages_max: u64,
    holders: HashMap<u64, LogEntry>,
    /// Entries in the order of writing, including entries rewritten or removed since then.
    order: VecDeque<(u64, u64)>,
    entries: u64,
}

#[derive(Clone, Copy, Debug)]
struct LogEntry {
    holder: Port,
    number: u64,
}

impl HolderLog {
    fn new(pages_max: u64) -> HolderLog {
        HolderLog {
            pages_max,
            holders: HashMap::new(),
            order: VecDeque::new(),
            entries: 0,
        }
    }

    fn note(&mut self, pages: Range<u64>, holder: Port) {
        if self.pages_max == 0 {
            return;
        }
        for page in pages {
            self.entries += 1;
            self.holders.insert(
                page,
                LogEntry {
                    holder,
                    number: self.entries,
                },
            );
            self.order.push_back((page, self.entries));
            debug_assert!(
                self.order.len() as u64 <= self.pages_max + 1,
                "{} entries are kept, of {}",
                self.order.len(),
                self.pages_max
            );
            // The oldest entry goes. If the page was noted again since, the newer entry stays.
            if self.order.len() as u64 > self.pages_max
                && let Some((page, number)) = self.order.pop_front()
                && self
                    .holders
                    .get(&page)
                    .is_some_and(|entry| entry.number == number)
            {
                self.holders.remove(&page);
            }
        }
    }

    fn forget(&mut self, pages: Range<u64>) {
        // A discard can cover the whole array.
        if pages.end - pages.start > self.order.len() as u64 {
            for (page, _) in self.order.iter().filter(|(page, _)| pages.contains(page)) {
                self.holders.remove(page);
            }
            return;
        }
        for page in pages {
            self.holders.remove(&page);
        }
    }

    /// Returns the last host of all these pages, if the last host is the same for all pages.
    fn holder(&self, mut pages: Range<u64>) -> Option<Port> {
        let first = self.holders.get(&pages.next()?)?.holder;
        pages
            .all(|page| {
                self.holders
                    .get(&page)
                    .is_some_and(|entry| entry.holder == first)
            })
            .then_some(first)
    }
}
