//! The device itself as a file system with one file. Page `n` of the file is page `n` of the
//! device.

use crate::system::{
    AllocatorRegions, Attributes, Caller, FileSystem, ObjectKind, PAGE_BYTES, PAGE_SECTORS,
    PageMapping, PagePlace, SyncPlan, Usage,
};
use crate::{FileError, FileSystemSite, MetaAccesses};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Object};
use fullstroke_units::{Bytes, Lbn};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;

/// One-line summary for the registry.
pub(crate) const SUMMARY: &str = "the device as the only file: no names, no metadata";

/// The keys of raw; there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

pub(crate) fn build(
    keys: &Keys,
    site: &FileSystemSite,
) -> Result<Box<dyn FileSystem>, ConfigError> {
    let Config {} = read(keys)?;
    site.refuse_tracks("raw")?;
    if site.pages() == 0 {
        return Err(site.too_small(&FileError::NoSpace { needed: 1, free: 0 }));
    }
    Ok(Box::new(Raw {
        pages: site.pages(),
    }))
}

/// The only file is [`Object::DEVICE`], so that the cache holds each page of the device once.
#[derive(Debug)]
struct Raw {
    pages: u64,
}

impl Raw {
    fn check(&self, object: Object) -> Result<(), FileError> {
        match object {
            Object::DEVICE => Ok(()),
            other => Err(FileError::NotFound(format!("object {}", other.0))),
        }
    }

    fn check_end(&self, pages: u64) -> Result<(), FileError> {
        if pages > self.pages {
            Err(FileError::TooLarge {
                pages,
                limit: self.pages,
            })
        } else {
            Ok(())
        }
    }

    fn map(&self, pages: Range<u64>, out: &mut Vec<PageMapping>) {
        let on_device = pages.start..pages.end.min(self.pages);
        if !on_device.is_empty() {
            out.push(PageMapping {
                page: on_device.start,
                pages: on_device.end - on_device.start,
                place: PagePlace::Device(Lbn(on_device.start * PAGE_SECTORS)),
            });
        }
    }
}

impl FileSystem for Raw {
    fn root(&self) -> Object {
        Object::DEVICE
    }
    fn usage(&self) -> Usage {
        Usage {
            pages: self.pages,
            ..Usage::default()
        }
    }
    fn regions(&self) -> AllocatorRegions {
        AllocatorRegions {
            pages: self.pages,
            count: 1,
            name: "device",
        }
    }
    fn attributes(&self, object: Object) -> Result<Attributes, FileError> {
        self.check(object)?;
        let bytes = Bytes(self.pages * PAGE_BYTES);
        Ok(Attributes {
            kind: ObjectKind::File,
            bytes,
            pages: self.pages,
            depth: 0,
        })
    }
    fn entries(&self, _directory: Object) -> Result<Vec<(String, Object)>, FileError> {
        Err(FileError::OneFile("listing names"))
    }
    fn objects(&self) -> Vec<Object> {
        vec![Object::DEVICE]
    }
    fn extents(&self, object: Object, out: &mut Vec<PageMapping>) -> Result<(), FileError> {
        self.check(object)?;
        self.map(0..self.pages, out);
        Ok(())
    }
    fn piece_at(&self, object: Object, page: u64) -> Option<PageMapping> {
        self.check(object).ok()?;
        let place = PagePlace::Device(Lbn(page * PAGE_SECTORS));
        (page < self.pages).then(|| PageMapping {
            page,
            pages: self.pages - page,
            place,
        })
    }
    fn metadata(&self) -> Vec<Range<u64>> {
        Vec::new()
    }
    fn change_places(&self, _: Object, _: &[Range<u64>], _: &mut MetaAccesses) {}
    fn set_aside(&self) -> u64 {
        0
    }
    fn look_up(
        &mut self,
        _: Caller,
        _: Object,
        _: &str,
        _: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        Err(FileError::OneFile("looking a name up"))
    }
    fn create(
        &mut self,
        _: Caller,
        _: Object,
        _: &str,
        _: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        Err(FileError::OneFile("creating a file"))
    }
    fn make_directory(
        &mut self,
        _: Caller,
        _: Object,
        _: &str,
        _: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        Err(FileError::OneFile("making a directory"))
    }
    fn remove(
        &mut self,
        _: Caller,
        _: Object,
        _: &str,
        _: &mut MetaAccesses,
    ) -> Result<Object, FileError> {
        Err(FileError::OneFile("removing a file"))
    }
    fn rename(
        &mut self,
        _: Caller,
        _: (Object, &str),
        _: (Object, &str),
        _: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        Err(FileError::OneFile("renaming a file"))
    }
    fn write(
        &mut self,
        _caller: Caller,
        file: Object,
        offset: Bytes,
        length: Bytes,
        _touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.check(file)?;
        self.check_end(offset.0.saturating_add(length.0).div_ceil(PAGE_BYTES))
    }
    fn truncate(
        &mut self,
        _: Caller,
        _: Object,
        _: Bytes,
        _: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        Err(FileError::OneFile("cutting a file"))
    }
    fn close(
        &mut self,
        _caller: Caller,
        file: Object,
        _touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.check(file)
    }
    fn read_map(
        &mut self,
        _caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<PageMapping>,
        _touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.check(file)?;
        self.map(pages, out);
        Ok(())
    }
    fn cluster(&self, file: Object, page: u64) -> Result<Range<u64>, FileError> {
        // `blkdev_writepage` writes page by page.
        self.check(file).map(|()| page..page + 1)
    }
    fn write_back(
        &mut self,
        _caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<PageMapping>,
        _touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.check(file)?;
        self.map(pages, out);
        Ok(())
    }
    fn fsync(
        &mut self,
        _caller: Caller,
        file: Object,
        plan: &mut SyncPlan,
        _touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        self.check(file)?;
        plan.data.push(file);
        Ok(())
    }
}
