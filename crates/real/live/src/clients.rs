//! The table of connected clients.

use crate::client::ConnectedClient;
use crate::ticket::ClientId;
use std::io;

/// A place for a client.
#[derive(Default)]
struct ClientPlace {
    /// Number of earlier clients in this place.
    generation: u32,
    client: Option<ConnectedClient>,
}

/// The connected clients, each in a place.
pub(crate) struct ClientTable {
    places: Vec<ClientPlace>,
    free: Vec<u32>,
    connected: u64,
    /// Largest number of clients.
    most: u64,
    /// Number of the latest client.
    latest: u32,
    /// Clients with output to send, or with a recent change.
    touched: Vec<u32>,
    /// Clients with decrypted but unread data.
    unread: Vec<u32>,
}

impl ClientTable {
    /// Returns an empty table for at most `most` clients.
    pub(crate) fn new(most: u64) -> ClientTable {
        ClientTable {
            places: Vec::new(),
            free: Vec::new(),
            connected: 0,
            most,
            latest: 0,
            touched: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Returns the number of connected clients.
    pub(crate) fn connected(&self) -> u64 {
        self.connected
    }

    /// True if there is no room for another client.
    pub(crate) fn is_full(&self) -> bool {
        self.connected >= self.most
    }

    /// Returns all places, with or without a client.
    pub(crate) fn places(&self) -> std::ops::Range<u32> {
        0..self.places.len() as u32
    }

    /// Returns all clients.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ConnectedClient> {
        self.places.iter().filter_map(|place| place.client.as_ref())
    }

    /// Returns the client in a place.
    pub(crate) fn at(&self, place: u32) -> Option<&ConnectedClient> {
        self.places.get(place as usize)?.client.as_ref()
    }

    /// Returns the client in a place, to be changed.
    pub(crate) fn at_mut(&mut self, place: u32) -> Option<&mut ConnectedClient> {
        self.places.get_mut(place as usize)?.client.as_mut()
    }

    /// Returns the client with this id; `None` after the client has left.
    pub(crate) fn get(&mut self, id: ClientId) -> Option<&mut ConnectedClient> {
        self.at_mut(id.place).filter(|client| client.id == id)
    }

    /// True if the client with this id is connected.
    pub(crate) fn holds(&self, id: ClientId) -> bool {
        self.at(id.place).is_some_and(|client| client.id == id)
    }

    /// Adds the client that `connect` returns for an id. Without a client the place stays free.
    pub(crate) fn add(&mut self, connect: impl FnOnce(ClientId) -> io::Result<ConnectedClient>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(ClientPlace::default());
            self.places.len() as u32 - 1
        });
        // 0 means an unknown process in the layers, so the number skips 0 when it wraps.
        self.latest = self.latest.wrapping_add(1).max(1);
        let own = &mut self.places[place as usize];
        let id = ClientId {
            place,
            generation: own.generation,
            number: self.latest,
        };
        match connect(id) {
            Ok(client) => {
                assert!(
                    own.client.is_none() && client.id == id,
                    "place {place} has two clients"
                );
                own.client = Some(client);
                self.connected += 1;
                // A connection begins with a greeting.
                self.touched.push(place);
            }
            Err(_) => self.free.push(place),
        }
    }

    /// Removes the client in a place.
    pub(crate) fn remove(&mut self, place: u32) -> Option<ConnectedClient> {
        let own = self.places.get_mut(place as usize)?;
        let client = own.client.take()?;
        // An event of the old connection that is still in the poll's list then finds another key.
        own.generation = own.generation.wrapping_add(1);
        assert!(self.connected > 0, "more clients leave than have come");
        self.connected -= 1;
        self.free.push(place);
        Some(client)
    }

    /// Marks a client with output to send, or with room for more.
    pub(crate) fn touch(&mut self, id: ClientId) {
        if let Some(client) = self.get(id)
            && !client.unsent
        {
            client.unsent = true;
            self.touched.push(id.place);
        }
    }

    /// Marks all clients.
    pub(crate) fn touch_all(&mut self) {
        let clients = self.places.iter().filter_map(|place| place.client.as_ref());
        let unmarked = clients.filter(|client| !client.unsent);
        self.touched.extend(unmarked.map(|client| client.id.place));
    }

    /// Takes the latest marked place.
    pub(crate) fn next_touched(&mut self) -> Option<u32> {
        self.touched.pop()
    }

    /// Notes that the client in a place has decrypted but unread data.
    pub(crate) fn note_unread(&mut self, place: u32) {
        self.unread.push(place);
    }

    /// True if a client has decrypted but unread data.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Takes the places of clients with decrypted but unread data.
    pub(crate) fn take_unread(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.unread)
    }
}
