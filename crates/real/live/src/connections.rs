//! The server's clients: accept, read, answer, disconnect.

use crate::client::ConnectedClient;
use crate::poll::{Interest, ReadyDescriptor};
use crate::server::{ConfiguredServer, FIRST_LISTENER, client_key};
use crate::ticket::Ticket;
use fullstroke_nbd::{Connection, ConnectionEvent, RequestCommand};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Largest number of reads from one client before the other clients' turn.
const READS_MAX: usize = 16;
/// Largest number of requests begun for one client before the turn of the next client in the queue.
const QUANTUM: usize = 4;
/// Largest number of accepted clients before other events are handled.
const ACCEPTS_MAX: usize = 64;
/// Largest number of clients whose buffers are kept for later.
const FEW: u64 = 32;
/// Time for a client to open an export.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a stalled client is disconnected, if the client has ended its input. If memory
/// is short, the limit holds for any stalled client.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

impl ConfiguredServer {
    pub(crate) fn send_to(&mut self, place: u32) {
        // New answers, and room in the socket, may let the client's received requests begin.
        self.begin_all(place);
        let Some(client) = self.clients.at_mut(place) else {
            return;
        };
        let sent = client.send();
        // Sent bytes may have made room for answers, and with that for requests that waited.
        self.begin_all(place);
        let reads = !self.ending.has_begun();
        let Some(client) = self.clients.at_mut(place) else {
            return;
        };
        if self.ending.has_begun() {
            client.end_input();
        }
        let settled = sent.and_then(|()| client.settle(&self.poll, reads));
        if settled.is_err() || client.is_over() {
            return self.close(place);
        }
        if client.has_unread() {
            self.clients.note_unread(place);
        }
        self.account(place);
    }

    pub(crate) fn accept(&mut self, index: usize) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = self.listening.listeners().get(index) else {
                return;
            };
            match listener.accept() {
                Ok(stream)
                    if self.listening.admission().admits(&stream) && self.has_room_for_one() =>
                {
                    let connection = self.connection();
                    self.clients.add(|id| {
                        ConnectedClient::new(id, client_key(id), stream, connection, &self.poll)
                    });
                }
                Ok(_refused) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client left between its connection and the accept.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // No descriptor or memory is free. Some may be free later.
                Err(_) => return self.listen(false),
            }
        }
    }

    fn connection(&self) -> Connection {
        let mut connection = Connection::new(Arc::clone(&self.exports));
        if let Some(encryption) = self.listening.admission().encryption() {
            connection.set_encryption(encryption);
        }
        connection
    }

    /// Returns true if there is room for another client. If necessary, the client with the longest
    /// handshake is disconnected, because the intentions of the client may be bad.
    fn has_room_for_one(&mut self) -> bool {
        if self.clients.is_full() {
            let clients = self.clients.iter();
            let oldest = clients
                .filter_map(|client| Some((client.handshaking()?, client.id.place)))
                .max();
            if let Some((_, place)) = oldest {
                self.close(place);
            }
        }
        !self.clients.is_full()
    }

    /// Disconnects clients that open no export, or take no answers.
    pub(crate) fn close_idle_clients(&mut self) {
        let is_tight = self.budget.is_tight();
        for place in self.clients.places() {
            let Some(client) = self.clients.at(place) else {
                continue;
            };
            let dawdles = client
                .handshaking()
                .is_some_and(|time| time >= HANDSHAKE_TIMEOUT);
            let stalls =
                client.stalled() >= STALL_TIMEOUT && (is_tight || client.input_has_ended());
            if dawdles || stalls {
                self.close(place);
            }
        }
    }

    /// Enables or disables the listeners.
    pub(crate) fn listen(&mut self, readable: bool) {
        self.listening.set_readable(readable);
        for (key, listener) in (FIRST_LISTENER..).zip(self.listening.listeners()) {
            let _ = self.poll.modify(
                listener,
                key,
                Interest {
                    readable,
                    writable: false,
                },
            );
        }
    }

    /// Handles a client's socket that is ready.
    pub(crate) fn client_ready(&mut self, event: ReadyDescriptor) {
        let place = event.key as u32;
        // The event may be older than the client in this place.
        let Some(client) = self.clients.at(place) else {
            return;
        };
        if client_key(client.id) != event.key {
            return;
        }
        if event.broken {
            return self.close(place);
        }
        if event.readable {
            self.take_in(place);
        }
        if let Some(id) = self.clients.at(place).map(|client| client.id) {
            self.clients.touch(id);
        }
    }

    /// Continues with decrypted but unread data, because no socket reports them.
    pub(crate) fn take_unread(&mut self) {
        for place in self.clients.take_unread() {
            self.take_in(place);
        }
    }

    /// Reads the input of a client, and begins its requests.
    fn take_in(&mut self, place: u32) {
        for _ in 0..READS_MAX {
            let Some(client) = self.clients.at_mut(place) else {
                return;
            };
            let Ok(more) = client.receive() else {
                return self.close(place);
            };
            self.begin_all(place);
            let waits = self.clients.at(place).is_none_or(|client| client.is_queued);
            if !more || waits {
                break;
            }
        }
        if let Some(id) = self.clients.at(place).map(|client| client.id) {
            self.clients.touch(id);
        }
    }

    /// Begins all requests in the client's input, unless other clients are queued before. If the
    /// client broke the protocol, earlier answers are sent, and then the client is disconnected.
    fn begin_all(&mut self, place: u32) {
        let Some(client) = self.clients.at(place) else {
            return;
        };
        match client.export {
            _ if client.is_queued || self.ending.has_begun() => {}
            // A client without a request must not be queued, because queued clients are not read.
            Some(world)
                if !self.worlds[world].queued.is_empty() && !client.connection.has_request() => {}
            Some(world) if !self.worlds[world].queued.is_empty() => {
                self.enqueue(place);
                // The clients before may wait for more memory than this client needs.
                self.may_admit = true;
            }
            _ => self.begin_some(place, usize::MAX),
        }
    }

    /// Begins at most `most` requests of a client. If there are more, the client enters the queue.
    fn begin_some(&mut self, place: u32, most: usize) {
        for _ in 0..most {
            let Some(client) = self.clients.at_mut(place) else {
                return;
            };
            if client
                .export
                .is_some_and(|world| !self.worlds[world].has_place())
            {
                return self.enqueue(place);
            }
            // The budget is brought up to date before the room is computed from it.
            let held = client.held_bytes();
            self.budget.change(client.counted_bytes, held);
            client.counted_bytes = held;
            client.connection.set_room(self.budget.room(held));
            match client.next_event() {
                Ok(Some(event)) => self.begin(place, event),
                Ok(None) if client.connection.lacks_room() => return self.enqueue(place),
                Ok(None) | Err(_) => return,
            }
        }
        self.enqueue(place);
    }

    fn enqueue(&mut self, place: u32) {
        let Some(client) = self.clients.at_mut(place) else {
            return;
        };
        if let Some(world) = client.export
            && !client.is_queued
        {
            client.is_queued = true;
            self.worlds[world].queued.push_back(client.id);
        }
    }

    /// Begins requests of queued clients, some of each, as far as there is room.
    pub(crate) fn admit_queued(&mut self) {
        if !std::mem::take(&mut self.may_admit) || self.ending.has_begun() {
            return;
        }
        for index in 0..self.worlds.len() {
            for _ in 0..self.worlds[index].queued.len() {
                let world = &mut self.worlds[index];
                if !world.has_place() {
                    // An order of arrival: each queued client has one turn in a round.
                    break;
                }
                let Some(id) = world.queued.pop_front() else {
                    break;
                };
                let Some(client) = self.clients.get(id) else {
                    continue;
                };
                client.is_queued = false;
                let before = world.machine.submitted();
                self.begin_some(id.place, QUANTUM);
                // A stack in which a request began may have room for more.
                self.may_admit |= self.worlds[index].machine.submitted() > before
                    && !self.worlds[index].queued.is_empty();
                self.clients.touch(id);
            }
        }
    }

    /// Counts the bytes held by a client. Frees the client's spare buffers if memory is short or
    /// clients are many.
    fn account(&mut self, place: u32) {
        let connected = self.clients.connected();
        let Some(client) = self.clients.at_mut(place) else {
            return;
        };
        let held = client.held_bytes();
        self.may_admit |= held < client.counted_bytes && !self.nobody_is_queued();
        let Some(client) = self.clients.at_mut(place) else {
            return;
        };
        self.budget.change(client.counted_bytes, held);
        client.counted_bytes = held;
        if held == 0 && (connected > FEW || self.budget.is_tight()) {
            client.connection.shrink();
        }
    }

    fn nobody_is_queued(&self) -> bool {
        self.worlds.iter().all(|world| world.queued.is_empty())
    }

    fn begin(&mut self, place: u32, event: ConnectionEvent) {
        let Some(client) = self.clients.at_mut(place) else {
            return;
        };
        match event {
            ConnectionEvent::Opened { export } => client.export = Some(export),
            ConnectionEvent::Disconnect => {}
            ConnectionEvent::StartTls => {
                let config = self.listening.admission().tls_config();
                if config.is_none_or(|config| client.start_tls(config).is_err()) {
                    self.close(place);
                }
            }
            ConnectionEvent::Request { request, payload } => {
                let Some(world) = client.export else { return };
                if let Some(code) = self.worlds[world].refuses(&request) {
                    return client.connection.reply_error(
                        &request,
                        code,
                        "zeroing is no faster than writing",
                    );
                }
                if request.command == RequestCommand::BlockStatus {
                    let extents = self.worlds[world].allocation(&request);
                    return client.connection.reply_status(&request, extents);
                }
                let ticket = Ticket::new(client.id, request, payload);
                let now = self.now(world);
                self.worlds[world].submit(now, ticket);
            }
        }
    }

    pub(crate) fn close(&mut self, place: u32) {
        let Some(client) = self.clients.remove(place) else {
            return;
        };
        // Requests in flight are finished, and their answers are dropped. Queued requests of the
        // client are dropped.
        self.budget.change(client.counted_bytes, 0);
        if client.is_queued
            && let Some(world) = client.export
        {
            // The queue would otherwise grow with each client that comes and goes.
            self.worlds[world].queued.retain(|&id| id != client.id);
        }
        // Freed memory may let the next queued client begin.
        self.may_admit = true;
        client.leave(&self.poll);
        if self.listening.again_at().is_some() {
            self.listen(true);
        }
    }
}
