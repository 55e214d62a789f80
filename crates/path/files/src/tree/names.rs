//! Creation, removal and renaming.

use super::FileTree;
use crate::directory::PageTouch;
use crate::format::{DiskFormat, NewObject};
use crate::system::{Caller, ObjectKind, PAGE_BYTES};
use crate::{FileError, MetaAccesses};
use fullstroke_contract::Object;

/// Longest name in bytes (`EXT2_NAME_LEN`, `MAXNAMELEN` − 1).
const NAME_MAX: usize = 255;

fn check_name(name: &str) -> Result<(), FileError> {
    let bad = name.is_empty()
        || name.len() > NAME_MAX
        || name.contains('/')
        || name == "."
        || name == "..";
    if bad {
        Err(FileError::BadName(name.to_owned()))
    } else {
        Ok(())
    }
}

impl<F: DiskFormat> FileTree<F> {
    /// Returns the object called `name`. Reads the directory's pages on the way.
    pub(super) fn find(
        &mut self,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Option<Object>, FileError> {
        let mut touched = std::mem::take(&mut self.touched);
        let (_, inode) = self.parts(directory)?;
        let Some(names) = &mut inode.directory else {
            return Err(FileError::NotADirectory(directory.0.to_string()));
        };
        let found = match touches.are_unread() {
            true => names.look_up_unread(name),
            false => names.look_up(name, &mut touched),
        };
        self.hand_over(directory, touched, touches);
        Ok(found)
    }

    /// Translates touched pages of the directory to pages of the device, and reports them.
    fn hand_over(
        &mut self,
        directory: Object,
        mut touched: Vec<PageTouch>,
        touches: &mut MetaAccesses,
    ) {
        if let Some(inode) = self
            .inodes
            .get(&directory.0)
            .filter(|_| !touches.are_unread())
        {
            for touch in touched.drain(..) {
                let (PageTouch::Read(page) | PageTouch::Change(page) | PageTouch::Fresh(page)) =
                    touch;
                let Some(block) = inode.map.block(page) else {
                    continue;
                };
                match touch {
                    PageTouch::Read(_) => touches.read(block),
                    PageTouch::Change(_) => touches.change(block),
                    PageTouch::Fresh(_) => touches.fresh(block),
                }
            }
        }
        touched.clear();
        self.touched = touched;
    }

    /// Makes a file or a directory.
    pub(super) fn make(
        &mut self,
        caller: Caller,
        kind: ObjectKind,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        check_name(name)?;
        self.logged(caller, touches, |tree, touches| {
            match tree.find(directory, name, touches)? {
                Some(_) => Err(FileError::Exists(name.to_owned())),
                None => tree.make_new(caller, kind, directory, name, touches),
            }
        })
    }

    fn make_new(
        &mut self,
        caller: Caller,
        kind: ObjectKind,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        let parent = self
            .inodes
            .get(&directory.0)
            .ok_or_else(|| super::missing(directory))?;
        let wanted = NewObject {
            kind,
            parent: directory.0,
            parent_inode: parent,
            name,
        };
        let (number, extra) = self.format.new_inode(caller, &wanted, touches)?;
        self.adopt(number, kind, directory.0, extra);
        let made = Object(number);
        self.change_inode(made, touches);
        let named = match kind {
            ObjectKind::File => Ok(()),
            ObjectKind::Directory => self.first_page(caller, made, touches),
        };
        if let Err(error) =
            named.and_then(|()| self.add_name(caller, directory, name, made, touches))
        {
            // An inode without a name would keep its space, and no call could reach the inode.
            self.drop_inode(made, touches);
            return Err(error);
        }
        Ok(made)
    }

    /// Gives a new directory its first page, with both dots, if the format stores one from the
    /// beginning.
    fn first_page(
        &mut self,
        caller: Caller,
        directory: Object,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        // XFS keeps a small directory in the inode (short form), without a page.
        if matches!(self.format.style(), crate::directory::Style::Xfs { .. }) {
            return Ok(());
        }
        self.place_pages(caller, directory, 0, touches)?;
        self.touched.push(PageTouch::Fresh(0));
        let touched = std::mem::take(&mut self.touched);
        self.hand_over(directory, touched, touches);
        Ok(())
    }

    /// Gives a page of a directory its place.
    pub(super) fn place_pages(
        &mut self,
        caller: Caller,
        directory: Object,
        page: u64,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        // The other free pages are promised to delayed data.
        if self.format.free_pages() <= self.promised {
            return Err(self.no_space(1));
        }
        let (format, inode) = self.parts(directory)?;
        if inode.map.block(page).is_none() {
            format.place(caller, directory.0, inode, page..page + 1, touches)?;
        }
        inode.bytes = inode.bytes.max((page + 1) * PAGE_BYTES);
        Ok(())
    }

    fn add_name(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        object: Object,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let growth = match &self.inode(directory)?.directory {
            Some(names) => names.growth(name),
            None => return Err(FileError::NotADirectory(directory.0.to_string())),
        };
        // Before the name enters, because an error must leave the directory as it was.
        for page in growth {
            self.place_pages(caller, directory, page, touches)?;
        }
        let mut touched = std::mem::take(&mut self.touched);
        if let Some(names) = self.parts(directory)?.1.directory.as_mut() {
            names.insert(name, object, &mut touched);
        }
        self.hand_over(directory, touched, touches);
        self.change_inode(directory, touches);
        Ok(())
    }

    fn take_name(
        &mut self,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let mut touched = std::mem::take(&mut self.touched);
        if let Some(names) = self.parts(directory)?.1.directory.as_mut() {
            names.remove(name, &mut touched);
        }
        self.hand_over(directory, touched, touches);
        self.change_inode(directory, touches);
        Ok(())
    }

    pub(super) fn unlink(
        &mut self,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        let found = self
            .find(directory, name, touches)?
            .ok_or_else(|| FileError::NotFound(name.to_owned()))?;
        self.read_inode(found, touches);
        self.must_be_empty(found, name)?;
        self.take_name(directory, name, touches)?;
        self.drop_inode(found, touches);
        Ok(found)
    }

    fn must_be_empty(&self, object: Object, name: &str) -> Result<(), FileError> {
        match &self.inode(object)?.directory {
            Some(names) if !names.is_empty() => Err(FileError::NotEmpty(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// Frees the inode of an object, and all its pages.
    fn drop_inode(&mut self, object: Object, touches: &mut MetaAccesses) {
        let Some(mut inode) = self.inodes.remove(&object.0) else {
            return;
        };
        self.promised -= inode.delayed.total();
        inode.delayed = Default::default();
        self.format.walk(&inode, 0..inode.map.end(), touches);
        self.format.release(object.0, &mut inode, 0, touches);
        touches.change_inode(object.0, self.format.inode_page(object.0, &inode));
        self.format.free_inode(object.0, &inode, touches);
        if let Some(journal) = &mut self.journal {
            journal.forget(object);
        }
    }

    pub(super) fn move_name(
        &mut self,
        caller: Caller,
        (from, name): (Object, &str),
        (to, new_name): (Object, &str),
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        check_name(new_name)?;
        let moved = self
            .find(from, name, touches)?
            .ok_or_else(|| FileError::NotFound(name.to_owned()))?;
        let target = self.find(to, new_name, touches)?;
        // rename(2) of an object onto itself does nothing.
        if target == Some(moved) {
            return Ok(());
        }
        self.must_not_be_below(moved, to, name)?;
        // The new name comes first. If there is no room for it, the old name is still there.
        match target {
            None => self.add_name(caller, to, new_name, moved, touches)?,
            Some(target) => self.replace(moved, target, (to, new_name), touches)?,
        }
        self.take_name(from, name, touches)?;
        self.parts(moved)?.1.parent = to.0;
        self.change_inode(moved, touches);
        Ok(())
    }

    fn must_not_be_below(&self, moved: Object, to: Object, name: &str) -> Result<(), FileError> {
        let mut at = to;
        loop {
            if at == moved {
                return Err(FileError::IntoItself(name.to_owned()));
            }
            if at == Object(self.format.root()) {
                return Ok(());
            }
            at = Object(self.inode(at)?.parent);
        }
    }

    /// Gives the name of `target` to `moved`, and removes `target`.
    fn replace(
        &mut self,
        moved: Object,
        target: Object,
        (directory, name): (Object, &str),
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        match (self.inode(moved)?.kind, self.inode(target)?.kind) {
            (ObjectKind::File, ObjectKind::Directory) => {
                return Err(FileError::IsADirectory(name.to_owned()));
            }
            (ObjectKind::Directory, ObjectKind::File) => {
                return Err(FileError::NotADirectory(name.to_owned()));
            }
            _ => self.must_be_empty(target, name)?,
        }
        let mut touched = std::mem::take(&mut self.touched);
        if let Some(names) = self.parts(directory)?.1.directory.as_mut() {
            names.replace(name, moved, &mut touched);
        }
        self.hand_over(directory, touched, touches);
        self.drop_inode(target, touches);
        Ok(())
    }

    /// Makes a directory of a new file system, as `mkfs` does with `lost+found`, with the given
    /// number of pages.
    pub(crate) fn make_at_once(&mut self, name: &str, pages: u64) -> Result<(), FileError> {
        let root = Object(self.format.root());
        let mut touches = MetaAccesses::new();
        let made = self.make(
            Caller::default(),
            ObjectKind::Directory,
            root,
            name,
            &mut touches,
        )?;
        for page in 0..pages {
            self.place_pages(Caller::default(), made, page, &mut touches)?;
        }
        Ok(())
    }

    /// Makes the first page of the root of a new file system.
    pub(crate) fn make_root(&mut self) -> Result<(), FileError> {
        self.first_page(
            Caller::default(),
            Object(self.format.root()),
            &mut MetaAccesses::new(),
        )
    }
}
