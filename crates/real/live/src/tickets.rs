//! The table of requests in flight.

use crate::ticket::Ticket;

/// Requests in flight, each in a place. The place is the request's number in the layers.
#[derive(Debug, Default)]
pub(crate) struct TicketTable {
    places: Vec<Option<Ticket>>,
    free: Vec<u32>,
    /// Sum of the requests' payloads.
    bytes: u64,
}

impl TicketTable {
    /// Returns the sum of the requests' payloads in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the ticket in a place.
    pub(crate) fn get(&self, place: u32) -> Option<&Ticket> {
        self.places.get(place as usize)?.as_ref()
    }

    /// Returns the ticket in a place, to be changed. The request must stay the same.
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut Ticket> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Returns all tickets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.places.iter().flatten()
    }

    /// Puts a ticket into a free place. Returns the place.
    pub(crate) fn keep(&mut self, ticket: Ticket) -> u32 {
        self.bytes += ticket.request.payload_bytes();
        if let Some(place) = self.free.pop() {
            let before = self.places[place as usize].replace(ticket);
            assert!(before.is_none(), "place {place} is free and has a ticket");
            return place;
        }
        self.places.push(Some(ticket));
        self.places.len() as u32 - 1
    }

    /// Takes the ticket from its place.
    pub(crate) fn take(&mut self, place: u32) -> Option<Ticket> {
        let ticket = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        let bytes = ticket.request.payload_bytes();
        assert!(
            bytes <= self.bytes,
            "a ticket of {bytes} bytes leaves a table of {} bytes",
            self.bytes
        );
        self.bytes -= bytes;
        Some(ticket)
    }
}
