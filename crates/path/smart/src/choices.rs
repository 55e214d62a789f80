//! What a disk could begin next.

use fullstroke_drive::queue::{ArmView, Nearest, Waiting};
use fullstroke_units::Duration;

/// What a command is, as far as the choice of the next one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// An XDWRITE: the first half of an update.
    Xdw,
    /// An XPWRITE: the second half, on the parity disk.
    Xpw,
    /// An ordinary read or write.
    Plain,
}

/// The segments of a disk's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(crate) total: u32,
    /// Those of the command that the arm serves, and of reads that are on their
    /// way to the host.
    pub(crate) working: u32,
    /// Those that hold the results of XDWs until their XPWs are done.
    pub(crate) results: u32,
}

impl Segments {
    pub(crate) fn free(&self) -> u32 {
        self.total - self.working - self.results
    }
}

impl Class {
    /// Segments that must be free before such a command begins. An XDW needs one
    /// for the old data and one for the new (section 3.1); what becomes of the
    /// others can be computed where the data arrive.
    pub const fn segments(self) -> u32 {
        match self {
            Class::Xdw => 2,
            Class::Xpw | Class::Plain => 1,
        }
    }
}

/// The commands that wait at a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    xdw: Nearest,
    xpw: Nearest,
    plain: Nearest,
}

impl Queues {
    pub(crate) fn insert(&mut self, class: Class, waiting: Waiting) {
        self.of_mut(class).insert(waiting);
    }

    pub(crate) fn take(&mut self, choice: Choice) -> Waiting {
        self.of_mut(choice.class).take(choice.index)
    }

    pub(crate) fn of(&self, class: Class) -> &Nearest {
        match class {
            Class::Xdw => &self.xdw,
            Class::Xpw => &self.xpw,
            Class::Plain => &self.plain,
        }
    }

    fn of_mut(&mut self, class: Class) -> &mut Nearest {
        match class {
            Class::Xdw => &mut self.xdw,
            Class::Xpw => &mut self.xpw,
            Class::Plain => &mut self.plain,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.xdw.is_empty() && self.xpw.is_empty() && self.plain.is_empty()
    }
}

/// The command that a disk begins next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it is.
    pub class: Class,
    /// Seek and rotation until it could transfer: the paper's service time.
    pub access: Duration,
    index: usize,
}

/// What a disk could begin next, as a discipline sees it. Commands for which
/// too few segments are free are not found.
#[derive(Clone, Copy)]
pub struct Choices<'a> {
    pub(crate) arm: ArmView<'a>,
    pub(crate) queues: &'a Queues,
    pub(crate) segments: Segments,
}

impl Choices<'_> {
    /// Commands of a class that wait, whether they could begin or not.
    pub fn waiting(&self, class: Class) -> usize {
        self.queues.of(class).len()
    }

    /// Segments of the buffer.
    pub fn segments(&self) -> u32 {
        self.segments.total
    }

    /// Segments that are free.
    pub fn free(&self) -> u32 {
        self.segments.free()
    }

    /// Segments that hold results for XPWs that have not finished: so many
    /// updates have been begun here and not ended.
    pub fn results(&self) -> u32 {
        self.segments.results
    }

    /// The time of a revolution.
    pub fn revolution(&self) -> Duration {
        self.arm.mechanics.spindle().revolution()
    }

    /// The command of a class with the shortest access time, if that is below
    /// `limit`.
    pub fn shortest(&self, class: Class, limit: Duration) -> Option<Choice> {
        if self.free() < class.segments() {
            return None;
        }
        let (access, index) = self.queues.of(class).find(&self.arm, limit)?;
        Some(Choice {
            class,
            access,
            index,
        })
    }

    /// The same among several classes; of equal ones the first counts.
    pub fn shortest_of(&self, classes: &[Class], limit: Duration) -> Option<Choice> {
        classes.iter().fold(None, |best: Option<Choice>, &class| {
            self.shortest(class, best.map_or(limit, |best| best.access))
                .or(best)
        })
    }

    /// The XPW with the shortest access time, unless another command is shorter
    /// by more than `delta`: then that one (section 3.2).
    pub fn preferring_xpw(&self, delta: Duration) -> Option<Choice> {
        let xpw = self.shortest(Class::Xpw, Duration::MAX);
        let limit = xpw.map_or(Duration::MAX, |xpw| xpw.access.saturating_sub(delta));
        self.shortest_of(&[Class::Plain, Class::Xdw], limit).or(xpw)
    }
}
