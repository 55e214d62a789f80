//! The objects of a file system above a pool, as the pool needs them at the start of a run.

use fullstroke_contract::DatasetStart;
use fullstroke_files::{FileSystem, ObjectKind};

/// Returns the objects at the start of a run. Files of `sparse` disks have a length and no data.
pub(crate) fn at_start(fs: &dyn FileSystem, sparse: bool) -> DatasetStart {
    let mut start = DatasetStart::default();
    for object in fs.objects() {
        let Ok(attributes) = fs.attributes(object) else {
            continue;
        };
        match attributes.kind {
            ObjectKind::Directory => start.directories.push((object, attributes.bytes.0)),
            ObjectKind::File if sparse => start.files.push((object, 0)),
            ObjectKind::File => start.files.push((object, attributes.bytes.0)),
        }
    }
    start
}
