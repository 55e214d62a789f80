//! Accesses of an operation to metadata, in order.
//!
//! Metadata are pages of the device ([`Object::DEVICE`](fullstroke_contract::Object)): page `n` is
//! the 8 sectors from sector `8 n`. The owner of the cache caches, writes back and evicts them like
//! other pages. The file system only reports the accessed pages.

/// Access to one page of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetaAccess {
    /// The page must be in memory before the operation can continue.
    Read(u64),
    /// The page was changed. It was read before, by this operation or because it always stays in
    /// memory.
    Dirty(u64),
    /// The page has just become metadata, and is written without a read.
    Fresh(u64),
    /// The page is no longer metadata, so a dirty copy need not be written.
    Forget(u64),
}

impl MetaAccess {
    /// Returns the page of the device.
    pub fn page(self) -> u64 {
        let (MetaAccess::Read(page)
        | MetaAccess::Dirty(page)
        | MetaAccess::Fresh(page)
        | MetaAccess::Forget(page)) = self;
        page
    }
}

/// Number of recent accesses that are searched before a change is reported again. The most metadata
/// of one allocation are bitmap, descriptor, superblock, indirect block and inode, each read and
/// changed.
const LATELY: usize = 12;

/// The accesses of one operation. The caller owns and reuses the list; operations only append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaAccesses {
    list: Vec<MetaAccess>,
    /// Changed inodes with their pages, for journals that log inodes one by one.
    inodes: Vec<(u32, u64)>,
    /// True if no caller reads the accesses. Only a journal learns of them then.
    unread: bool,
}

/// A place in the list, for the accesses from there on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    touches: usize,
    inodes: usize,
}

impl MetaAccesses {
    /// Makes an empty list.
    pub fn new() -> MetaAccesses {
        MetaAccesses::default()
    }
    /// Makes a list that records nothing, because no caller reads it (as when a file system is
    /// aged).
    pub(crate) fn unread() -> MetaAccesses {
        MetaAccesses {
            unread: true,
            ..MetaAccesses::default()
        }
    }
    pub(crate) fn are_unread(&self) -> bool {
        self.unread
    }
    /// Sets whether touches are left unrecorded. Returns the previous setting.
    pub(crate) fn set_unread(&mut self, unread: bool) -> bool {
        std::mem::replace(&mut self.unread, unread)
    }
    /// Returns the touches in order.
    pub fn list(&self) -> &[MetaAccess] {
        &self.list
    }
    /// Empties the list for the next operation.
    pub fn clear(&mut self) {
        self.list.clear();
        self.inodes.clear();
    }
    pub(crate) fn read(&mut self, page: u64) {
        self.push(MetaAccess::Read(page));
    }
    fn push(&mut self, touch: MetaAccess) {
        if !self.unread {
            self.list.push(touch);
        }
    }
    /// Records that a page is read and changed. A change that the operation recorded a moment ago
    /// is not repeated.
    pub(crate) fn change(&mut self, page: u64) {
        if self.unread {
            return;
        }
        let lately = self.list.iter().rev().take(LATELY);
        let known = lately
            .copied()
            .find(|touch| touch.page() == page && !matches!(touch, MetaAccess::Read(_)));
        if !matches!(known, Some(MetaAccess::Dirty(_) | MetaAccess::Fresh(_))) {
            self.list
                .extend([MetaAccess::Read(page), MetaAccess::Dirty(page)]);
        }
    }
    /// Records that the inode `number` on `page` is read and changed.
    pub(crate) fn change_inode(&mut self, number: u32, page: u64) {
        self.change(page);
        if !self.unread && self.inodes.last() != Some(&(number, page)) {
            self.inodes.push((number, page));
        }
    }
    /// Records that a page which always stays in memory is changed, as `change` does without the
    /// read.
    pub(crate) fn change_resident(&mut self, page: u64) {
        let mut lately = self.list.iter().rev().take(LATELY);
        if !lately.any(|&touch| matches!(touch, MetaAccess::Dirty(other) if other == page)) {
            self.push(MetaAccess::Dirty(page));
        }
    }

    pub(crate) fn fresh(&mut self, page: u64) {
        self.push(MetaAccess::Fresh(page));
    }
    pub(crate) fn forget(&mut self, page: u64) {
        self.push(MetaAccess::Forget(page));
    }
    /// Returns the touches and the changed inodes from `mark` on, for the journal.
    pub(crate) fn since(&self, mark: Mark) -> (&[MetaAccess], &[(u32, u64)]) {
        (
            self.list.get(mark.touches..).unwrap_or_default(),
            self.inodes.get(mark.inodes..).unwrap_or_default(),
        )
    }
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            touches: self.list.len(),
            inodes: self.inodes.len(),
        }
    }
}
