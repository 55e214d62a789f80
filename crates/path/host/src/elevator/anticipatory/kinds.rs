//! Synchronous and asynchronous requests.

use crate::block::Queued;
use std::ops::{Index, IndexMut};

/// The two kinds of request: `REQ_ASYNC` and `REQ_SYNC` of `block/as-iosched.c`. A forced write is
/// synchronous there, because a process waits for the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Asynchronous,
    Synchronous,
}

impl RequestKind {
    pub(super) fn of(request: &Queued) -> RequestKind {
        if request.synchronous {
            RequestKind::Synchronous
        } else {
            RequestKind::Asynchronous
        }
    }

    pub(super) fn other(self) -> RequestKind {
        match self {
            RequestKind::Asynchronous => RequestKind::Synchronous,
            RequestKind::Synchronous => RequestKind::Asynchronous,
        }
    }
}

/// A value for each kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByKind<T> {
    pub(super) asynchronous: T,
    pub(super) synchronous: T,
}

impl<T> Index<RequestKind> for ByKind<T> {
    type Output = T;
    fn index(&self, kind: RequestKind) -> &T {
        match kind {
            RequestKind::Asynchronous => &self.asynchronous,
            RequestKind::Synchronous => &self.synchronous,
        }
    }
}

impl<T> IndexMut<RequestKind> for ByKind<T> {
    fn index_mut(&mut self, kind: RequestKind) -> &mut T {
        match kind {
            RequestKind::Asynchronous => &mut self.asynchronous,
            RequestKind::Synchronous => &mut self.synchronous,
        }
    }
}
