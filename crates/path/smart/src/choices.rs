//! The commands that a disk could begin next.

use fullstroke_drive::queue::{ArmView, Nearest, WaitingRequest};
use fullstroke_units::Duration;

/// Class of a command, for the choice of the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandClass {
    /// An XDWRITE (XDW): the first half of an update.
    Xdw,
    /// An XPWRITE (XPW): the second half of an update, on the parity disk.
    Xpw,
    /// An ordinary read or write.
    Plain,
}

/// The segments of a disk's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(crate) total: u32,
    /// Number of segments of the command in service, and of reads on their way to the host.
    pub(crate) working: u32,
    /// Number of segments with results of XDWs whose XPWs are not done.
    pub(crate) results: u32,
}

impl Segments {
    pub(crate) fn free(&self) -> u32 {
        self.total - self.working - self.results
    }
}

impl CommandClass {
    /// Number of free segments that a command needs to begin. An XDW needs one segment for the old
    /// data and one for the new (section 3.1). The other commands need one, because the exclusive
    /// or can be computed where the data arrive.
    pub const fn segments(self) -> u32 {
        match self {
            CommandClass::Xdw => 2,
            CommandClass::Xpw | CommandClass::Plain => 1,
        }
    }
}

/// The waiting commands of a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandQueues {
    xdw: Nearest,
    xpw: Nearest,
    plain: Nearest,
}

impl CommandQueues {
    pub(crate) fn insert(&mut self, class: CommandClass, waiting: WaitingRequest) {
        self.of_mut(class).insert(waiting);
    }

    pub(crate) fn take(&mut self, choice: NextCommand) -> WaitingRequest {
        self.of_mut(choice.class).take(choice.index)
    }

    pub(crate) fn of(&self, class: CommandClass) -> &Nearest {
        match class {
            CommandClass::Xdw => &self.xdw,
            CommandClass::Xpw => &self.xpw,
            CommandClass::Plain => &self.plain,
        }
    }

    fn of_mut(&mut self, class: CommandClass) -> &mut Nearest {
        match class {
            CommandClass::Xdw => &mut self.xdw,
            CommandClass::Xpw => &mut self.xpw,
            CommandClass::Plain => &mut self.plain,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.xdw.is_empty() && self.xpw.is_empty() && self.plain.is_empty()
    }
}

/// The command that a disk begins next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextCommand {
    /// Class of the command.
    pub class: CommandClass,
    /// Seek and rotation until the transfer could begin: the paper's service time.
    pub access: Duration,
    index: usize,
}

/// The commands that a discipline can choose from. A command without enough free segments is not
/// found.
#[derive(Clone, Copy)]
pub struct Choices<'a> {
    pub(crate) arm: ArmView<'a>,
    pub(crate) queues: &'a CommandQueues,
    pub(crate) segments: Segments,
}

impl Choices<'_> {
    /// Number of waiting commands of a class, startable or not.
    pub fn waiting(&self, class: CommandClass) -> usize {
        self.queues.of(class).len()
    }

    /// Number of segments in the buffer.
    pub fn segments(&self) -> u32 {
        self.segments.total
    }

    /// Number of free segments.
    pub fn free(&self) -> u32 {
        self.segments.free()
    }

    /// Number of segments with results of unfinished XPWs. The number equals the updates begun here
    /// and not yet finished.
    pub fn results(&self) -> u32 {
        self.segments.results
    }

    /// Time of one revolution.
    pub fn revolution(&self) -> Duration {
        self.arm.mechanics.spindle().revolution()
    }

    /// Returns the command of a class with the shortest access time, if the time is below `limit`.
    pub fn shortest(&self, class: CommandClass, limit: Duration) -> Option<NextCommand> {
        if self.free() < class.segments() {
            return None;
        }
        let (access, index) = self.queues.of(class).find(&self.arm, limit)?;
        Some(NextCommand {
            class,
            access,
            index,
        })
    }

    /// Returns the command with the shortest access time among several classes. At equal times, the
    /// first class in the list wins.
    pub fn shortest_of(&self, classes: &[CommandClass], limit: Duration) -> Option<NextCommand> {
        classes
            .iter()
            .fold(None, |best: Option<NextCommand>, &class| {
                // The limit is the best time so far, so a later class wins only if its time is
                // shorter.
                self.shortest(class, best.map_or(limit, |best| best.access))
                    .or(best)
            })
    }

    /// Returns the XPW with the shortest access time. If another command is shorter by more than
    /// `delta`, returns the other command (section 3.2).
    pub fn preferring_xpw(&self, delta: Duration) -> Option<NextCommand> {
        let xpw = self.shortest(CommandClass::Xpw, Duration::MAX);
        // If δ is longer than the access of the XPW, the limit is 0, and no other command is short
        // enough.
        let limit = xpw.map_or(Duration::MAX, |xpw| xpw.access.saturating_sub(delta));
        self.shortest_of(&[CommandClass::Plain, CommandClass::Xdw], limit)
            .or(xpw)
    }
}
