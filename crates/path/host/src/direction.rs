//! The two directions. A host counts and queues the requests of each direction separately.

use std::ops::{Index, IndexMut};

/// Direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device: reads.
    Read,
    /// To the device: writes, discards and flushes.
    Write,
}

impl Direction {
    /// Returns [`Direction::Write`] if `writes`, otherwise [`Direction::Read`].
    pub(crate) fn of_writes(writes: bool) -> Direction {
        if writes {
            Direction::Write
        } else {
            Direction::Read
        }
    }
}

/// A value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByDirection<T> {
    pub(crate) read: T,
    pub(crate) write: T,
}

impl<T> ByDirection<T> {
    /// Applies `change` to each value.
    pub(crate) fn map<U>(&self, change: impl Fn(&T) -> U) -> ByDirection<U> {
        ByDirection {
            read: change(&self.read),
            write: change(&self.write),
        }
    }
}

impl<T> Index<Direction> for ByDirection<T> {
    type Output = T;
    #[inline]
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

impl<T> IndexMut<Direction> for ByDirection<T> {
    #[inline]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
        }
    }
}
