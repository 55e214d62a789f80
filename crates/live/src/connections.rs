//! The server's clients: they come, are heard, are answered, and leave.

use crate::client::{Client, Fate};
use crate::poll::{Interest, Ready};
use crate::server::{FIRST_LISTENER, Server, client_key};
use crate::world::{ClientId, Ticket};
use fullstroke_nbd::{Command, Connection, Event};
use std::io;
use std::sync::Arc;

/// Connections at a time; more are closed at once.
const CLIENTS_MAX: usize = 4096;
/// Reads from one client before it is the others' turn.
const TURNS: usize = 16;

impl Server {
    pub(crate) fn send_to(&mut self, place: u32) {
        // Answers, and room in the socket, may let it take what it had received.
        self.begin_all(place);
        let Some(client) = &mut self.clients[place as usize] else { return };
        let sent = client.send();
        self.begin_all(place);
        let reads = self.reading && self.stopping.is_none();
        let Some(client) = &mut self.clients[place as usize] else { return };
        if self.stopping.is_some() {
            client.end_input();
        }
        let settled = sent.and_then(|()| client.settle(&self.poll, reads));
        if settled.is_err() || client.fate() == Fate::Ends {
            self.close(place);
        }
    }

    pub(crate) fn accept(&mut self, index: usize) {
        loop {
            let Some(listener) = self.listeners.get(index) else { return };
            match listener.accept() {
                Ok(stream) if self.clients_now < CLIENTS_MAX as u64 => {
                    let place = self.free.pop().unwrap_or_else(|| {
                        self.clients.push(None);
                        self.generations.push(0);
                        self.clients.len() as u32 - 1
                    });
                    self.clients_so_far = self.clients_so_far.wrapping_add(1).max(1);
                    let generation = self.generations[place as usize];
                    let id = ClientId { place, generation, number: self.clients_so_far };
                    let connection = Connection::new(Arc::clone(&self.exports));
                    match Client::new(id, client_key(id), stream, connection, &self.poll) {
                        Ok(client) => {
                            self.clients[place as usize] = Some(client);
                            self.clients_now += 1;
                            // It begins with a greeting.
                            self.touched.push(place);
                        }
                        Err(_) => self.free.push(place),
                    }
                }
                Ok(_refused) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // No descriptor is free: nobody is accepted until a client leaves.
                Err(_) => return self.listen(false),
            }
        }
    }

    /// Whether listeners are heard from now on.
    fn listen(&mut self, readable: bool) {
        self.accepting = readable;
        for (key, listener) in (FIRST_LISTENER..).zip(&self.listeners) {
            let _ = self.poll.modify(listener, key, Interest { readable, writable: false });
        }
    }

    /// A client's socket is ready.
    pub(crate) fn hear(&mut self, event: Ready) {
        let place = event.key as u32;
        // It may have been told before the client left, and another came.
        let Some(client) = self.clients.get(place as usize).and_then(Option::as_ref) else { return };
        if client_key(client.id) != event.key {
            return;
        }
        if event.broken {
            return self.close(place);
        }
        if event.readable {
            self.take_in(place);
        }
        if let Some(client) = &self.clients[place as usize] {
            self.touch(client.id);
        }
    }

    /// Reads what a client has sent, and begins what it asks for.
    fn take_in(&mut self, place: u32) {
        for _ in 0..TURNS {
            let Some(client) = &mut self.clients[place as usize] else { return };
            let Ok(more) = client.receive() else { return self.close(place) };
            self.begin_all(place);
            if !more {
                break;
            }
        }
        if let Some(client) = &self.clients[place as usize] {
            self.touch(client.id);
        }
    }

    /// Begins all that the client's input asks for. If it broke the protocol,
    /// what was answered before is sent, and then it is closed.
    fn begin_all(&mut self, place: u32) {
        while self.stopping.is_none()
            && let Some(client) = &mut self.clients[place as usize]
            && let Ok(Some(event)) = client.next_event()
        {
            self.begin(place, event);
        }
    }

    fn begin(&mut self, place: u32, event: Event) {
        let Some(client) = &mut self.clients[place as usize] else { return };
        match event {
            Event::Opened { export } => client.export = Some(export),
            Event::Disconnect => {}
            Event::Request { request, payload } => {
                let Some(world) = client.export else { return };
                if let Some(code) = self.worlds[world].refuses(&request) {
                    return client.connection.reply_error(
                        &request,
                        code,
                        "zeroing is no faster than writing",
                    );
                }
                if request.command == Command::BlockStatus {
                    let extents = self.worlds[world].allocation(&request);
                    return client.connection.reply_status(&request, extents);
                }
                self.payload_bytes += payload.len() as u64;
                let ticket = Ticket { client: client.id, request, payload };
                let now = self.now(world);
                self.worlds[world].submit(now, ticket);
            }
        }
    }

    pub(crate) fn close(&mut self, place: u32) {
        let Some(client) = self.clients[place as usize].take() else { return };
        client.leave(&self.poll);
        self.generations[place as usize] = self.generations[place as usize].wrapping_add(1);
        self.free.push(place);
        self.clients_now -= 1;
        if !self.accepting {
            self.listen(true);
        }
    }
}
