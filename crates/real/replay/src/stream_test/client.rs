//! The leaky bucket: received data flow in, and the player takes data out at the bit rate.

use crate::stream_test::ramp_state::{RampState, time_since};
use crate::stream_test::server::question;
use fullstroke_units::{Duration, Time};
use fullstroke_workload::{PlayedStream, Rules};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// One client, number `index` from 0.
pub(crate) struct StreamClient<'a> {
    pub(crate) index: usize,
    pub(crate) stream: PlayedStream,
    pub(crate) rules: &'a Rules,
    pub(crate) shared: &'a RampState,
    pub(crate) read_bytes: usize,
}

impl StreamClient<'_> {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// Plays until the load ends or no more data come.
    pub(crate) fn play(mut self, mut socket: TcpStream, began: Instant) {
        let now = || time_since(began);
        let mut bytes = vec![0; self.read_bytes];
        let slot = &self.shared.tallies[self.index];
        let with_tally = |change: &mut dyn FnMut(&mut _)| {
            if let Ok(mut tally) = slot.lock() {
                change(&mut tally);
            }
        };
        with_tally(&mut |tally| self.stream.start(now(), tally));
        while self.wait_for_room(now) {
            let (file, read) = self.stream.next_read(self.rules);
            let asked = socket.write_all(&question(file, read));
            if asked.and_then(|()| socket.read_exact(&mut bytes)).is_err() {
                return self.shared.broke_off();
            }
            let (came, end) = (now(), self.shared.end());
            let latest = self.stream.latest();
            with_tally(&mut |tally| {
                self.stream
                    .note_arrival(came, latest, end, self.rules, tally)
            });
        }
    }

    /// Sleeps until there is room for a read. Returns false if the load ends before.
    fn wait_for_room(&mut self, now: impl Fn() -> Time) -> bool {
        let due = self.stream.has_room(self.rules);
        loop {
            let (at, end) = (now(), self.shared.end());
            if at >= end || due >= end {
                return false;
            }
            if due <= at {
                return true;
            }
            // Short sleeps, because the end may be set during a sleep.
            let left = due.since(at).min(Duration::from_millis(50));
            std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
            // A longer sleep was cut short, and its end is no wake-up that was due.
            if left < Duration::from_millis(50) {
                self.shared.woke_late(now().saturating_since(due));
            }
        }
    }
}
