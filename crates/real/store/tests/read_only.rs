//! Arrays on files that are only read.

use fullstroke_store::{
    Allowances, Array, Design, Device, FileDevice, JournalPolicy, OpenPurpose, RequestScratch,
    assemble, assemble_with, create,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn devices(paths: &[PathBuf], purpose: OpenPurpose) -> Vec<Arc<dyn Device>> {
    let open = |path: &PathBuf| FileDevice::open(path, purpose).unwrap().shared().unwrap();
    paths.iter().map(open).collect()
}

fn members(folder: &Path) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = (0..3)
        .map(|member| folder.join(format!("{member}")))
        .collect();
    for path in &paths {
        let file = std::fs::File::create(path).unwrap();
        file.set_len(4 << 20).unwrap();
    }
    let design = Design {
        name: "vol".into(),
        layout: "raid5".into(),
        keys: [("chunk".to_owned(), serde_json::json!("16KiB"))]
            .into_iter()
            .collect(),
        journal: JournalPolicy::Partial,
        spares: 0,
        force: false,
        sparse: false,
        member_bytes: None,
        region_bytes: None,
        measured: Vec::new(),
    };
    create(&design, &devices(&paths, OpenPurpose::Own)).unwrap();
    paths
}

fn content(array: &Array) -> Vec<u8> {
    let mut bytes = vec![0; array.capacity().bytes().0 as usize];
    let mut worker = RequestScratch::new();
    array.read(&mut worker, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn files_that_are_only_read_stay_as_they_are_and_nobody_else_writes_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let paths = members(folder.path());
    let (array, _) = assemble(&devices(&paths, OpenPurpose::Own), false).unwrap();
    let mut worker = RequestScratch::new();
    let written: Vec<u8> = (0..600_000_u32).map(|at| (at / 512) as u8).collect();
    array.write(&mut worker, 5 * 512, &written).unwrap();
    array.flush().unwrap();
    let expected = content(&array);
    // Not stopped: regions are marked, and journals hold records.
    drop(array);
    let before: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    for missing in [None, Some(0), Some(2)] {
        let mut present = paths.clone();
        missing.map(|slot| present.remove(slot));
        let allowances = Allowances {
            degraded: missing.is_some(),
            read_only: true,
            ..Allowances::default()
        };
        let read = devices(&present, OpenPurpose::Read);
        let (array, report) = assemble_with(&read, &allowances).unwrap();
        assert!(array.is_read_only() && !report.clean, "{missing:?}");
        assert!(content(&array) == expected, "{missing:?}");
        let refused = array.write(&mut worker, 0, &[1; 512]).unwrap_err();
        assert!(refused.to_string().contains("--read-only"), "{refused}");
        let refused = FileDevice::open(&present[0], OpenPurpose::Own).unwrap_err();
        assert!(refused.to_string().contains("in use"), "{refused}");
        let beside = devices(&present, OpenPurpose::Read);
        let (beside, _) = assemble_with(&beside, &allowances).unwrap();
        assert!(content(&beside) == expected, "{missing:?}: two readers");
        beside.stop().unwrap();
        array.stop().unwrap();
        drop((array, beside, read));
        let after = paths.iter().map(|path| std::fs::read(path).unwrap());
        assert!(
            after.eq(before.clone()),
            "{missing:?}: a member has changed"
        );
    }
    let (array, _) = assemble(&devices(&paths, OpenPurpose::Own), false).unwrap();
    assert!(content(&array) == expected);
    assert_eq!(array.status().state, "whole");
}
