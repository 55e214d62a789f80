//! The node of a file server, `[shared.server]`: hosts are clients that reach their files over a
//! network file protocol.
//!
//! | file | contents |
//! |---|---|
//! | `server/config.rs` | the keys |
//! | `server/nfs.rs`, `server/smb.rs` | the rules of a protocol, one file each |
//! | `server/network.rs` | time of messages on the wires |
//! | `server/threads.rs` | threads, and the times of next steps |
//! | `server/client.rs` | calls that wait for the window of their client; unstable data |
//!
//! A request of a client becomes calls of at most `rsize` or `wsize` bytes:
//!
//! 1. The call waits until the window of its client has room, and goes over the client's and the
//!    server's wire.
//! 2. At the server the call waits for a thread, in the order of the fairness rule. The thread works
//!    for the time of `cost`, and then waits for the file system below.
//! 3. The reply goes back over the wires. The request ends with its last reply.

mod client;
mod config;
mod network;
mod nfs;
mod rules;
mod smb;
#[cfg(test)]
mod tests;
mod threads;

use crate::cost::RequestCost;
use crate::fairness::Fairness;
use crate::regions::HostRegions;
use client::Client;
use config::{FlushRule, ServiceRules};
pub use config::{ServerKeys, ServerProtocol};
use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Gauge, LayerReadings, Node, NodeContext, Notice,
    Operation, Port, Request, RequestId, RequestStatus, Slots, Wake,
};
use fullstroke_units::{Sectors, Time};
use network::Network;
use threads::{PlannedSteps, ThreadPool};

/// A file server: one upper port for each client, one lower port.
///
/// - **Events in**: `submit`, `completed`, `noticed`, `wake`.
/// - **Effects out**: `issue`, `complete`, notice to its owners.
///
/// Clients cannot stop or start platters, and discarded data stays allocated: such requests end at
/// once.
pub struct FileServer {
    regions: HostRegions,
    rules: ServiceRules,
    network: Network,
    pool: ThreadPool,
    clients: Vec<Client>,
    requests: Slots<ClientRequest>,
    calls: Slots<Call>,
    agenda: PlannedSteps,
    statistics: ServerStatistics,
    idle_since: Time,
}

/// A request of a client.
#[derive(Clone, Copy, Debug)]
struct ClientRequest {
    port: Port,
    request: Request,
    submitted: Time,
    calls_left: u32,
    status: RequestStatus,
}

/// The place of a call on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStep {
    /// Waits for the window of the client, or travels to the server.
    Asked,
    /// Waits for a thread, or has the processor.
    Accepted,
    /// The file system below works.
    Below,
    /// The reply travels to the client.
    Answered,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    request: u32,
    client: usize,
    operation: Operation,
    extent: Extent,
    step: CallStep,
    /// Time of the arrival at the server.
    arrived: Time,
    /// Unstable writes that a COMMIT covers.
    covered: u64,
    answer: Completion,
}

/// Counts of calls.
#[derive(Clone, Copy, Debug, Default)]
struct ServerStatistics {
    reads: u64,
    writes: u64,
    commits: u64,
    waited_ms: f64,
    accepted: u64,
}

impl FileServer {
    /// Returns an idle server for the clients of `regions`.
    ///
    /// # Errors
    /// Returns the error of a key.
    pub fn new(
        regions: HostRegions,
        fairness: Box<dyn Fairness>,
        cost: Box<dyn RequestCost>,
        keys: &ServerKeys,
    ) -> Result<FileServer, fullstroke_contract::ConfigError> {
        let rules = keys.rules()?;
        let clients = regions.hosts();
        Ok(FileServer {
            network: Network::new(keys, clients),
            clients: (0..clients).map(|_| Client::new(rules.window)).collect(),
            pool: ThreadPool::new(fairness, cost, rules.threads_for(clients as u32)),
            regions,
            rules,
            requests: Slots::default(),
            calls: Slots::default(),
            agenda: PlannedSteps::default(),
            statistics: ServerStatistics::default(),
            idle_since: Time::ZERO,
        })
    }

    /// Carries out all steps that are due by `now`, each at its own time.
    fn catch_up(&mut self, now: Time, out: &mut Effects) {
        while let Some((at, call)) = self.agenda.take_due(now) {
            match self.calls[call].step {
                CallStep::Asked => self.accept(at, call, out),
                CallStep::Accepted => {
                    self.issue(at, call, out);
                    // A call without work below has left its thread already.
                    self.start_threads(at, out);
                }
                CallStep::Answered => self.finish(at, call, out),
                CallStep::Below => unreachable!("a call below ends with a completion"),
            }
        }
    }

    /// Divides a request into calls.
    fn begin(&mut self, now: Time, port: Port, request: Request, out: &mut Effects) {
        let client = port.index();
        let limit = match request.operation {
            Operation::Read => self.rules.rsize,
            Operation::Write => self.rules.wsize,
            _ => Sectors(u64::MAX),
        };
        let covered = self.clients[client].unstable();
        if request.operation == Operation::Flush
            && self.rules.flush == FlushRule::Commit
            && covered == 0
        {
            // All data of the client is stable. The client asks nothing (`nfs_commit_inode`).
            let done = Completion::at_once(request.id, now, RequestStatus::Done);
            return out.complete_to(port, done);
        }
        // A flush has no sectors, and is one call.
        let calls = request.extent.sectors.0.div_ceil(limit.0).max(1);
        let slot = self.requests.keep(ClientRequest {
            port,
            request,
            submitted: now,
            calls_left: calls as u32,
            status: RequestStatus::Done,
        });
        let mut rest = request.extent;
        for _ in 0..calls {
            let sectors = rest.sectors.min(limit);
            let extent = Extent { sectors, ..rest };
            rest = Extent {
                start: rest.start + sectors,
                sectors: rest.sectors - sectors,
            };
            let call = self.calls.keep(Call {
                request: slot,
                client,
                operation: request.operation,
                extent,
                step: CallStep::Asked,
                arrived: now,
                covered,
                answer: Completion::default(),
            });
            self.clients[client].wait(call);
        }
        self.send_calls(now, client);
    }

    /// Sends calls of a client as far as its window has room.
    fn send_calls(&mut self, now: Time, client: usize) {
        while let Some(call) = self.clients[client].first() {
            let Call {
                operation, extent, ..
            } = self.calls[call];
            let bytes = extent.sectors.bytes().0;
            if !self.clients[client].send(self.rules.charge(bytes)) {
                return;
            }
            let data = if operation == Operation::Write {
                bytes
            } else {
                0
            };
            let arrival = self.network.call(now, client, self.rules.header.0 + data);
            self.agenda.plan(arrival, call);
        }
    }

    /// Handles the arrival of a call at the server.
    fn accept(&mut self, now: Time, call: u32, out: &mut Effects) {
        let arrived = &mut self.calls[call];
        arrived.step = CallStep::Accepted;
        arrived.arrived = now;
        let (client, sectors) = (arrived.client, arrived.extent.sectors);
        match arrived.operation {
            Operation::Read => self.statistics.reads += 1,
            Operation::Write => self.statistics.writes += 1,
            _ => self.statistics.commits += 1,
        }
        self.pool.wait(client, call, sectors);
        self.start_threads(now, out);
    }

    /// Gives waiting calls to free threads.
    fn start_threads(&mut self, now: Time, out: &mut Effects) {
        while let Some((call, ready)) = self.pool.start(now) {
            self.statistics.accepted += 1;
            self.statistics.waited_ms += now.since(self.calls[call].arrived).as_millis_f64();
            if ready > now {
                self.agenda.plan(ready, call);
            } else {
                self.issue(now, call, out);
            }
        }
    }

    /// Passes a call to the file system below.
    fn issue(&mut self, now: Time, call: u32, out: &mut Effects) {
        self.calls[call].step = CallStep::Below;
        let Call {
            request,
            client,
            operation,
            extent,
            ..
        } = self.calls[call];
        let original = self.requests[request].request;
        let port = Port::of(client);
        if operation == Operation::Flush && self.rules.flush == FlushRule::Nothing {
            // The reply needs no work below.
            let done = Completion::at_once(RequestId(u64::from(call)), now, RequestStatus::Done);
            return self.reply(now, call, done);
        }
        let mut hints = original.hints;
        hints.force_unit_access &= self.rules.forces_writes;
        out.issue(
            0,
            Request {
                id: RequestId(u64::from(call)),
                operation,
                extent: self.regions.below(port, extent).unwrap_or_default(),
                hints,
                ..original
            },
        );
    }

    /// Sends the reply of a call.
    fn reply(&mut self, now: Time, call: u32, answer: Completion) {
        self.pool.end();
        let replied = &mut self.calls[call];
        replied.step = CallStep::Answered;
        replied.answer = answer;
        let reads = replied.operation == Operation::Read && answer.status == RequestStatus::Done;
        let data = if reads {
            replied.extent.sectors.bytes().0
        } else {
            0
        };
        let client = replied.client;
        let arrival = self.network.reply(now, client, self.rules.header.0 + data);
        self.agenda.plan(arrival, call);
    }

    /// Handles the arrival of a reply at the client.
    fn finish(&mut self, now: Time, call: u32, out: &mut Effects) {
        let Call {
            request: slot,
            client,
            operation,
            extent,
            covered,
            answer,
            ..
        } = self.calls.take(call);
        let charge = self.rules.charge(extent.sectors.bytes().0);
        let open = &mut self.requests[slot];
        // The request fails if one of its calls fails.
        open.status = open.status.max(answer.status);
        open.calls_left -= 1;
        let stable = open.request.hints.force_unit_access;
        let ends = open.calls_left == 0;
        let done = answer.status == RequestStatus::Done;
        let held = &mut self.clients[client];
        held.received(charge);
        match operation {
            Operation::Write if done && !stable => held.wrote(),
            Operation::Flush if done => held.committed(covered),
            _ => {}
        }
        if ends {
            let ClientRequest {
                port,
                request,
                submitted,
                status,
                ..
            } = self.requests.take(slot);
            let mut breakdown = answer.breakdown;
            // The parts must add up to the response time. Network, window and threads take the
            // time that the last call does not explain.
            let rest = now.since(submitted);
            breakdown.overhead += rest.saturating_sub(breakdown.response());
            out.complete_to(
                port,
                Completion {
                    id: request.id,
                    submitted,
                    finished: now,
                    status,
                    breakdown,
                },
            );
            if self.requests.is_empty() {
                self.idle_since = now;
            }
        }
        self.send_calls(now, client);
    }
}

impl Node for FileServer {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        // Earlier steps come first, because they may free a thread or the window that this request
        // needs.
        self.catch_up(now, cx.out);
        let known = matches!(
            request.operation,
            Operation::Read | Operation::Write | Operation::Flush
        );
        let status = match self.regions.below(from, request.extent) {
            // Clients send no discards and no commands for platters: the file stays as it is.
            _ if !known => Some(RequestStatus::Done),
            Some(_) => None,
            None => Some(RequestStatus::OutOfRange),
        };
        match status {
            Some(status) => {
                let completion = Completion::at_once(request.id, now, status);
                cx.out.complete_to(from, completion);
            }
            None => self.begin(now, from, request, cx.out),
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        self.catch_up(now, cx.out);
        self.reply(now, completion.id.0 as u32, completion);
        self.start_threads(now, cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.catch_up(now, cx.out);
        self.start_threads(now, cx.out);
    }

    fn next_wake(&self) -> Wake {
        self.agenda.next_at().into()
    }

    fn noticed(&mut self, _: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        self.pass_on(from, notice, cx.out);
    }

    fn owners(&self, _: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.regions.owners(extent, owner);
    }

    fn gauge(&self) -> Gauge {
        let held = self.requests.len() as u32;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let ServerStatistics {
            reads,
            writes,
            commits,
            waited_ms,
            accepted,
        } = self.statistics;
        let readings = [
            ("server_reads", reads as f64),
            ("server_writes", writes as f64),
            ("server_commits", commits as f64),
            ("server_wait_ms_mean", waited_ms / accepted.max(1) as f64),
            ("server_network_share", self.network.utilisation(now)),
        ];
        counters
            .layers
            .push(LayerReadings::new("file server", &readings));
    }
}
