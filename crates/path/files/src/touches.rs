//! What an operation did to metadata, in order.
//!
//! Metadata are pages of the device ([`Object::DEVICE`](fullstroke_contract::Object)):
//! page `n` is the 8 sectors from sector `8 n`. They are cached, written back and
//! evicted like others, by whoever has the cache; the file system only says which.

/// One page of metadata, and what happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Touch {
    /// It must be in memory for the operation to go on.
    Read(u64),
    /// It was changed. It was read before, by this operation or because it always
    /// stays in memory.
    Dirty(u64),
    /// It became metadata just now and is written without having been read.
    Fresh(u64),
    /// It is no metadata any more: a dirty copy need not be written.
    Forget(u64),
}

impl Touch {
    /// The page of the device.
    pub fn page(self) -> u64 {
        let (Touch::Read(page) | Touch::Dirty(page) | Touch::Fresh(page) | Touch::Forget(page)) =
            self;
        page
    }
}

/// How far back a change is looked for before it is told again: bitmap, descriptor,
/// superblock, indirect block and inode, each read and changed.
const LATELY: usize = 12;

/// The touches of one operation. The caller owns and reuses it; operations only
/// append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    list: Vec<Touch>,
    /// Whether nobody will look: only a journal is told then.
    unread: bool,
}

impl Touches {
    /// None yet.
    pub fn new() -> Touches {
        Touches::default()
    }
    /// Of operations whose touches nobody will look at, as when a file system is aged.
    pub(crate) fn unread() -> Touches {
        Touches {
            unread: true,
            ..Touches::default()
        }
    }
    pub(crate) fn are_unread(&self) -> bool {
        self.unread
    }
    /// Whether nobody will look from now on; answers what it was.
    pub(crate) fn set_unread(&mut self, unread: bool) -> bool {
        std::mem::replace(&mut self.unread, unread)
    }
    /// In order.
    pub fn list(&self) -> &[Touch] {
        &self.list
    }
    /// For the next operation.
    pub fn clear(&mut self) {
        self.list.clear();
    }
    pub(crate) fn read(&mut self, page: u64) {
        self.push(Touch::Read(page));
    }
    fn push(&mut self, touch: Touch) {
        if !self.unread {
            self.list.push(touch);
        }
    }
    /// Read and changed. What an operation changed a moment ago is not told again.
    pub(crate) fn change(&mut self, page: u64) {
        if self.unread {
            return;
        }
        let lately = self.list.iter().rev().take(LATELY);
        let known = lately
            .copied()
            .find(|touch| touch.page() == page && !matches!(touch, Touch::Read(_)));
        if !matches!(known, Some(Touch::Dirty(_) | Touch::Fresh(_))) {
            self.list.extend([Touch::Read(page), Touch::Dirty(page)]);
        }
    }
    pub(crate) fn fresh(&mut self, page: u64) {
        self.push(Touch::Fresh(page));
    }
    pub(crate) fn forget(&mut self, page: u64) {
        self.push(Touch::Forget(page));
    }
    /// Those from `mark` on; for what an operation adds to a journal.
    pub(crate) fn since(&self, mark: usize) -> &[Touch] {
        self.list.get(mark..).unwrap_or_default()
    }
    pub(crate) fn mark(&self) -> usize {
        self.list.len()
    }
}
