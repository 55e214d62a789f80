//! The network between the clients and the server: a full-duplex wire for each client and one for
//! the server, with a switch between.

use super::config::ServerKeys;
use fullstroke_units::{Duration, Time};

/// Bytes on the wire for each byte of a TCP stream: an Ethernet frame of 1538 bytes (with preamble
/// and gap) carries 1448 bytes (IP, TCP and timestamps take 52 of 1500).
const FRAMING: f64 = 1538.0 / 1448.0;

/// One direction of a wire.
#[derive(Clone, Copy, Debug)]
struct Wire {
    free: Time,
    bytes_per_s: f64,
}

impl Wire {
    fn new(mb_per_s: f64) -> Wire {
        Wire {
            free: Time::ZERO,
            bytes_per_s: mb_per_s * 1e6 / FRAMING,
        }
    }

    fn time(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_s)
    }
}

/// All wires.
#[derive(Debug)]
pub(super) struct Network {
    latency: Duration,
    /// Wires from and to each client.
    from_clients: Vec<Wire>,
    to_clients: Vec<Wire>,
    into_server: Wire,
    from_server: Wire,
    /// Time in which the two wires of the server were busy.
    worked: Duration,
}

impl Network {
    pub(super) fn new(keys: &ServerKeys, clients: usize) -> Network {
        let client = Wire::new(keys.client_mb_per_s);
        let server = Wire::new(keys.server_mb_per_s);
        Network {
            latency: keys.latency,
            from_clients: vec![client; clients],
            to_clients: vec![client; clients],
            into_server: server,
            from_server: server,
            worked: Duration::ZERO,
        }
    }

    /// Sends a call of `bytes`. Returns its arrival at the server.
    pub(super) fn call(&mut self, now: Time, client: usize, bytes: u64) -> Time {
        self.worked += self.into_server.time(bytes);
        let first = &mut self.from_clients[client];
        pass(now, bytes, first, &mut self.into_server) + self.latency
    }

    /// Sends a reply of `bytes`. Returns its arrival at the client.
    pub(super) fn reply(&mut self, now: Time, client: usize, bytes: u64) -> Time {
        self.worked += self.from_server.time(bytes);
        let last = &mut self.to_clients[client];
        pass(now, bytes, &mut self.from_server, last) + self.latency
    }

    /// Returns the busy share of the server's wire, as the mean of both directions.
    pub(super) fn utilisation(&self, now: Time) -> f64 {
        let whole = now.since(Time::ZERO).as_secs_f64();
        if whole > 0.0 {
            // Two directions, each of which can be busy all the time.
            self.worked.as_secs_f64() / whole / 2.0
        } else {
            0.0
        }
    }
}

/// Passes a message over two wires. The frames of the message follow each other, so the second wire
/// begins with the first one and ends no earlier. Returns the end.
fn pass(now: Time, bytes: u64, first: &mut Wire, second: &mut Wire) -> Time {
    let start = now.max(first.free);
    first.free = start + first.time(bytes);
    let onwards = start.max(second.free);
    second.free = onwards + second.time(bytes);
    first.free.max(second.free)
}
