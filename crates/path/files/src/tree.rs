//! Names, lengths and delayed allocation: the parts that all formats with names share.
//!
//! A [`FileTree`] implements [`FileSystem`] with a [`DiskFormat`]. The tree knows the inode of each
//! name, and which pages of a file are written, delayed or holes. The format knows the places of
//! inodes and data, and the metadata that record these places.

mod data;
mod names;

use crate::directory::{Directory, PageTouch};
use crate::format::{DiskFormat, Inode, WriteEnd};
use crate::journal::Journal;
use crate::map::FileMap;
use crate::runs::DisjointRuns;
use crate::system::InodeChange;
use crate::system::{
    AllocatorRegions, Attributes, Caller, FileSystem, ObjectKind, PAGE_SECTORS, PageMapping,
    PagePlace, SyncPlan, Usage,
};
use crate::{FileError, MetaAccesses};
use fullstroke_contract::{DatasetObject, Object};
use fullstroke_units::{Bytes, Lbn, Time};
use std::collections::BTreeMap;
use std::ops::Range;

/// A file system with names.
#[derive(Debug)]
pub(crate) struct FileTree<F: DiskFormat> {
    format: F,
    inodes: BTreeMap<u32, Inode<F::Extra>>,
    /// Number of delayed pages of all files.
    promised: u64,
    journal: Option<Journal>,
    /// Pages of a directory that an operation touched. Kept to reuse the allocation.
    touched: Vec<PageTouch>,
}

impl<F: DiskFormat> FileTree<F> {
    /// Makes the file system. `root` is the format's state of the root inode.
    pub(crate) fn new(format: F, root: F::Extra, journal: Option<Journal>) -> FileTree<F> {
        let number = format.root();
        let mut tree = FileTree {
            format,
            inodes: BTreeMap::new(),
            promised: 0,
            journal,
            touched: Vec::new(),
        };
        // The root is its own parent, as on disk.
        tree.adopt(number, ObjectKind::Directory, number, root);
        tree
    }

    pub(crate) fn format_mut(&mut self) -> &mut F {
        &mut self.format
    }

    /// Sets the journal. From now on metadata is held back until the log contains it.
    pub(crate) fn set_journal(&mut self, journal: Journal) {
        self.journal = Some(journal);
    }

    /// Registers an inode allocated by the format.
    fn adopt(&mut self, number: u32, kind: ObjectKind, parent: u32, extra: F::Extra) {
        let directory =
            (kind == ObjectKind::Directory).then(|| Box::new(Directory::new(self.format.style())));
        let inode = Inode {
            kind,
            bytes: 0,
            map: FileMap::default(),
            delayed: DisjointRuns::default(),
            unwritten: DisjointRuns::default(),
            bytes_on_device: 0,
            directory,
            parent,
            open: kind == ObjectKind::File,
            extra,
        };
        let other = self.inodes.insert(number, inode);
        assert!(
            other.is_none(),
            "the inode {number} is made while it is in use"
        );
    }

    fn inode(&self, object: Object) -> Result<&Inode<F::Extra>, FileError> {
        self.inodes.get(&object.0).ok_or_else(|| missing(object))
    }

    /// Returns the format and the inode, both mutable.
    fn parts(&mut self, object: Object) -> Result<(&mut F, &mut Inode<F::Extra>), FileError> {
        let inode = self
            .inodes
            .get_mut(&object.0)
            .ok_or_else(|| missing(object))?;
        Ok((&mut self.format, inode))
    }

    fn file(&mut self, object: Object) -> Result<(&mut F, &mut Inode<F::Extra>), FileError> {
        let (format, inode) = self.parts(object)?;
        match inode.kind {
            ObjectKind::File => Ok((format, inode)),
            ObjectKind::Directory => Err(FileError::IsADirectory(object.0.to_string())),
        }
    }

    /// Reports that the page of the object's inode is read and changed.
    fn change_inode(&self, object: Object, touches: &mut MetaAccesses) {
        if let Some(inode) = self.inodes.get(&object.0) {
            touches.change_inode(object.0, self.format.inode_page(object.0, inode));
        }
    }

    fn read_inode(&self, object: Object, touches: &mut MetaAccesses) {
        if let Some(inode) = self.inodes.get(&object.0) {
            touches.read(self.format.inode_page(object.0, inode));
        }
    }

    /// Executes `change`, and adds the touched pages to the running transaction.
    fn logged<T>(
        &mut self,
        caller: Caller,
        touches: &mut MetaAccesses,
        change: impl FnOnce(&mut Self, &mut MetaAccesses) -> T,
    ) -> T {
        self.logged_as(caller, touches, InodeChange::Data, change)
    }

    /// Executes `change` as `logged` does. `kind` is the kind of the changes of inodes.
    fn logged_as<T>(
        &mut self,
        caller: Caller,
        touches: &mut MetaAccesses,
        kind: InodeChange,
        change: impl FnOnce(&mut Self, &mut MetaAccesses) -> T,
    ) -> T {
        let mark = touches.mark();
        if self.journal.is_none() {
            return change(self, touches);
        }
        // The journal needs the touches even if the caller does not.
        let unread = touches.set_unread(false);
        let changed = change(self, touches);
        touches.set_unread(unread);
        if let Some(journal) = &mut self.journal {
            let (pages, inodes) = touches.since(mark);
            journal.join(caller.now, pages, inodes, kind);
        }
        changed
    }

    fn no_space(&self, needed: u64) -> FileError {
        FileError::NoSpace {
            needed,
            free: self.format.free_pages().saturating_sub(self.promised),
        }
    }
}

/// Returns the error for an unknown object.
fn missing(object: Object) -> FileError {
    FileError::NotFound(format!("object {}", object.0))
}

impl<F: DiskFormat> FileSystem for FileTree<F> {
    fn root(&self) -> Object {
        Object(self.format.root())
    }

    fn usage(&self) -> Usage {
        Usage {
            pages_delayed: self.promised,
            ..self.format.usage()
        }
    }

    fn regions(&self) -> AllocatorRegions {
        self.format.regions()
    }

    fn attributes(&self, object: Object) -> Result<Attributes, FileError> {
        let inode = self.inode(object)?;
        let mut depth = 0;
        let mut at = object;
        while at != self.root() {
            at = Object(self.inode(at)?.parent);
            depth += 1;
            assert!(
                depth as usize <= self.inodes.len(),
                "the directories above object {} lead to no root",
                object.0
            );
        }
        Ok(Attributes {
            kind: inode.kind,
            bytes: Bytes(inode.bytes),
            pages: inode.map.pages(),
            depth,
        })
    }

    fn entries(&self, directory: Object) -> Result<Vec<(String, Object)>, FileError> {
        match &self.inode(directory)?.directory {
            Some(names) => Ok(names.list()),
            None => Err(FileError::NotADirectory(directory.0.to_string())),
        }
    }

    fn objects(&self) -> Vec<Object> {
        self.inodes.keys().map(|&number| Object(number)).collect()
    }

    fn extents(&self, object: Object, out: &mut Vec<PageMapping>) -> Result<(), FileError> {
        let inode = self.inode(object)?;
        // Delayed pages may lie behind the last page with a place.
        let end = inode
            .map
            .end()
            .max(inode.delayed.iter().last().map_or(0, |run| run.end));
        let from = out.len();
        map_range(inode, 0..end, out);
        // In place, because `out` may hold the extents of other files in front.
        let mut kept = from;
        for at in from..out.len() {
            if out[at].place != PagePlace::Hole {
                out[kept] = out[at];
                kept += 1;
            }
        }
        out.truncate(kept);
        Ok(())
    }

    fn piece_at(&self, object: Object, page: u64) -> Option<PageMapping> {
        let map = &self.inode(object).ok()?.map;
        let piece = map
            .pieces()
            .get(map.index_from(page))
            .filter(|piece| piece.page <= page)?;
        let within = page - piece.page;
        let place = PagePlace::Device(Lbn((piece.block + within) * PAGE_SECTORS));
        Some(PageMapping {
            page,
            pages: piece.pages - within,
            place,
        })
    }

    fn metadata(&self) -> Vec<Range<u64>> {
        let mut ranges = self.format.metadata();
        let mapping = self
            .inodes
            .values()
            .flat_map(|inode| self.format.mapping(inode));
        ranges.extend(mapping.map(|page| page..page + 1));
        ranges
    }

    fn change_places(&self, object: Object, pages: &[Range<u64>], touches: &mut MetaAccesses) {
        self.change_inode(object, touches);
        pages
            .iter()
            .for_each(|pages| self.format.change_free(pages.clone(), touches));
    }

    fn set_aside(&self) -> u64 {
        let own: u64 = self
            .inodes
            .iter()
            .map(|(&number, inode)| self.format.set_aside(number, inode))
            .sum();
        own + self.format.pooled()
    }

    fn look_up(
        &mut self,
        _caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        let found = self
            .find(directory, name, touches)?
            .ok_or_else(|| FileError::NotFound(name.to_owned()))?;
        self.read_inode(found, touches);
        Ok(found)
    }

    fn create(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        self.make(caller, ObjectKind::File, directory, name, touches)
    }

    fn make_directory(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        self.make(caller, ObjectKind::Directory, directory, name, touches)
    }

    fn remove(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        self.logged(caller, touches, |tree, touches| {
            tree.unlink(directory, name, touches)
        })
    }

    fn rename(
        &mut self,
        caller: Caller,
        from: (Object, &str),
        to: (Object, &str),
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.logged(caller, touches, |tree, touches| {
            tree.move_name(caller, from, to, touches)
        })
    }

    fn write(
        &mut self,
        caller: Caller,
        file: Object,
        offset: Bytes,
        length: Bytes,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        // With delayed allocation a write changes only the times. The length in the inode follows
        // with the place or at the end of the write-back.
        let kind = if self.format.delays() {
            InodeChange::Any
        } else {
            InodeChange::Data
        };
        self.logged_as(caller, touches, kind, |tree, touches| {
            tree.write_bytes(caller, file, offset.0, length.0, touches)
        })
    }

    fn accessed(&mut self, caller: Caller, object: Object, touches: &mut MetaAccesses) {
        self.logged_as(caller, touches, InodeChange::Any, |tree, touches| {
            tree.change_inode(object, touches);
        });
    }

    fn truncate(
        &mut self,
        caller: Caller,
        file: Object,
        bytes: Bytes,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.logged(caller, touches, |tree, touches| {
            tree.set_length(file, bytes.0, touches)
        })
    }

    fn close(
        &mut self,
        caller: Caller,
        file: Object,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.logged(caller, touches, |tree, touches| {
            let (format, inode) = tree.file(file)?;
            inode.open = false;
            if format.keeps_room(inode) {
                return Ok(());
            }
            // The promise of room behind the end is withdrawn, because the file does not grow
            // further.
            let delayed = inode.delayed.total();
            inode.delayed.remove(inode.pages()..u64::MAX);
            let given_up = delayed - inode.delayed.total();
            format.close(file.0, inode, touches);
            inode.unwritten.remove(inode.pages()..u64::MAX);
            assert!(
                given_up <= tree.promised,
                "{given_up} pages are given up, of {} promised",
                tree.promised
            );
            tree.promised -= given_up;
            Ok(())
        })
    }

    fn read_map(
        &mut self,
        _caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<PageMapping>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let inode = self.inode(file)?;
        if pages.is_empty() {
            return Ok(());
        }
        self.format.walk(inode, pages.clone(), touches);
        map_range(inode, pages, out);
        Ok(())
    }

    fn cluster(&self, file: Object, page: u64) -> Result<Range<u64>, FileError> {
        Ok(self.format.cluster(self.inode(file)?, page))
    }

    fn write_back(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<PageMapping>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.logged(caller, touches, |tree, touches| {
            tree.settle(caller, file, pages.clone(), touches)
        })?;
        map_range(self.inode(file)?, pages, out);
        Ok(())
    }

    fn written_back(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> bool {
        if !self.end_write(file, pages.clone()) {
            return false;
        }
        self.logged(caller, touches, |tree, touches| {
            tree.change_inode(file, touches);
            if let Ok(inode) = tree.inode(file)
                && let Some(leaf) = tree.format.leaf(inode, pages.start)
            {
                touches.change(leaf);
            }
        });
        true
    }

    fn make_unwritten(&mut self, file: Object) {
        if self.format.write_end() != WriteEnd::Nothing
            && let Ok((_, inode)) = self.parts(file)
        {
            for piece in inode.map.pieces() {
                inode.unwritten.insert(piece.page..piece.end());
            }
        }
    }

    fn in_dataset(&self, object: Object) -> Option<DatasetObject> {
        let kind = self
            .inodes
            .get(&object.0)
            .map_or(ObjectKind::File, |inode| inode.kind);
        self.format.in_dataset(object.0, kind)
    }

    fn holds_metadata(&self) -> bool {
        self.journal.is_some()
    }

    fn read_unit(&self, page: u64) -> Range<u64> {
        self.format.read_unit(page)
    }

    fn syncs_in_place(&self) -> bool {
        self.journal.as_ref().is_none_or(Journal::logs_pages)
    }

    fn fsync(
        &mut self,
        _caller: Caller,
        file: Object,
        plan: &mut SyncPlan,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let inode = self.inodes.get(&file.0).ok_or_else(|| missing(file))?;
        plan.data.push(file);
        match &mut self.journal {
            None => {
                // First the mapping blocks of the file, then its inode (`ext2_sync_file`:
                // `sync_mapping_buffers`, `ext2_sync_inode`).
                plan.in_place.extend(self.format.mapping(inode));
                let page = self.format.inode_page(file.0, inode);
                touches.read(page);
                plan.in_place.push(page);
            }
            Some(journal) => journal.commit(plan),
        }
        plan.data.dedup();
        Ok(())
    }

    fn transaction(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::number)
    }

    fn last_change(&self, object: Object, kind: InodeChange) -> Option<u64> {
        self.journal.as_ref()?.last_change(object.0, kind)
    }

    fn copies_pages(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::logs_pages)
    }

    fn pushes(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::pushes)
    }

    fn push(&mut self) -> bool {
        self.journal.as_mut().is_some_and(Journal::push)
    }

    fn write_pushed(&mut self, plan: &mut SyncPlan) {
        if let Some(journal) = &mut self.journal {
            journal.write_pushed(plan);
        }
    }

    fn flushes_after_others(&self) -> bool {
        self.journal
            .as_ref()
            .is_some_and(|journal| !journal.logs_pages())
    }

    fn next_commit(&self) -> Time {
        self.journal.as_ref().map_or(Time::NEVER, Journal::due)
    }

    fn commit(&mut self, _now: Time, plan: &mut SyncPlan) {
        if let Some(journal) = &mut self.journal {
            journal.commit(plan);
        }
    }
}

/// Appends the places of `range`: on the device, delayed, or hole.
fn map_range<X>(inode: &Inode<X>, range: Range<u64>, out: &mut Vec<PageMapping>) {
    let mut at = range.start;
    for piece in &inode.map.pieces()[inode.map.index_from(range.start)..] {
        if piece.page >= range.end {
            break;
        }
        let start = piece.page.max(at);
        unplaced(inode, at..start, out);
        let end = piece.end().min(range.end);
        debug_assert!(
            piece.page <= start && start < end,
            "pages {start} to {end} of {piece:?}"
        );
        let block = piece.block + (start - piece.page);
        out.push(PageMapping {
            page: start,
            pages: end - start,
            place: PagePlace::Device(Lbn(block * PAGE_SECTORS)),
        });
        at = end;
    }
    unplaced(inode, at..range.end, out);
}

/// Appends pages without a place: delayed pages and holes.
fn unplaced<X>(inode: &Inode<X>, range: Range<u64>, out: &mut Vec<PageMapping>) {
    let mut push = |range: Range<u64>, place| {
        if !range.is_empty() {
            out.push(PageMapping {
                page: range.start,
                pages: range.end - range.start,
                place,
            });
        }
    };
    let mut at = range.start;
    for run in inode.delayed.iter_from(range.start) {
        if run.start >= range.end {
            break;
        }
        push(at..run.start, PagePlace::Hole);
        at = run.end.min(range.end);
        push(run.start..at, PagePlace::Delayed);
    }
    push(at..range.end, PagePlace::Hole);
}
