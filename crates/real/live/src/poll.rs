//! Waiting for sockets, with a time limit in nanoseconds.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Events to wait for on one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl Interest {
    pub(crate) const READ: Interest = Interest {
        readable: true,
        writable: false,
    };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN | EventFlags::RDHUP, self.readable);
        flags.set(EventFlags::OUT, self.writable);
        flags
    }
}

/// A ready descriptor, with the key given when it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadyDescriptor {
    pub(crate) key: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// True if both sides are closed, or the socket failed.
    pub(crate) broken: bool,
}

/// Watches descriptors.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// Largest number of events per call; more events wait for the next call.
const EVENTS: usize = 256;

impl Poll {
    pub(crate) fn new() -> io::Result<Poll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poll {
            epoll,
            events: Vec::with_capacity(EVENTS),
        })
    }

    pub(crate) fn add(
        &self,
        descriptor: impl AsFd,
        key: u64,
        interest: Interest,
    ) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            descriptor,
            EventData::new_u64(key),
            interest.flags(),
        )?)
    }

    pub(crate) fn modify(
        &self,
        descriptor: impl AsFd,
        key: u64,
        interest: Interest,
    ) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            descriptor,
            EventData::new_u64(key),
            interest.flags(),
        )?)
    }

    pub(crate) fn remove(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, descriptor)?)
    }

    /// Waits until a descriptor is ready, at most `limit`. Adds the ready descriptors to `ready`.
    pub(crate) fn wait(
        &mut self,
        limit: Duration,
        ready: &mut Vec<ReadyDescriptor>,
    ) -> io::Result<()> {
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            Some(&limit),
        ) {
            Ok(_) => {}
            // A signal came. The caller looks at its state and waits again.
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        ready.extend(self.events.iter().map(|event| {
            let flags = event.flags;
            ReadyDescriptor {
                key: event.data.u64(),
                readable: flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: flags.contains(EventFlags::OUT),
                broken: flags.intersects(EventFlags::HUP | EventFlags::ERR),
            }
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_transport::socket::Waker;
    use std::time::Instant;

    #[test]
    fn a_waker_wakes_the_poll_until_it_is_cleared() {
        let (mut poll, waker) = (Poll::new().unwrap(), Waker::new().unwrap());
        poll.add(&waker, 7, Interest::READ).unwrap();
        let mut ready = Vec::new();
        waker.wake();
        poll.wait(Duration::from_secs(10), &mut ready).unwrap();
        assert_eq!((ready.len(), ready[0].key, ready[0].readable), (1, 7, true));
        waker.clear();
        ready.clear();
        poll.wait(Duration::ZERO, &mut ready).unwrap();
        assert!(ready.is_empty());
    }

    #[test]
    fn a_wait_is_not_shorter_than_its_limit() {
        let mut poll = Poll::new().unwrap();
        let began = Instant::now();
        poll.wait(Duration::from_micros(300), &mut Vec::new())
            .unwrap();
        assert!(began.elapsed() >= Duration::from_micros(300));
    }
}
