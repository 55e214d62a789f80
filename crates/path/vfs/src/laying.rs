//! Creation of files before programs begin.

use fullstroke_files::script::{ScriptPlayer, ScriptStep};
use fullstroke_files::{Caller, FileError, FileSystem, MetaAccesses, path};
use fullstroke_programs::InitialFile;
use fullstroke_units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Creates files in order, with the directories on their paths. A file of sufficient length stays.
pub(crate) fn lay_out(fs: &mut dyn FileSystem, files: &[InitialFile]) -> Result<(), FileError> {
    if fs.entries(fs.root()).is_err() {
        return lay_on_device(fs, files);
    }
    let steps = steps(fs, files);
    // A single player for all steps, because its final sync must know all pages without a place.
    let mut player = ScriptPlayer::new(fs, Time::ZERO);
    steps.iter().try_for_each(|step| player.play(step))?;
    player.play(&ScriptStep::Sync)?;
    drop(player);
    let reserved = reserved(files);
    for step in &steps {
        if let ScriptStep::Create(path, _) = step
            && reserved.contains(&**path)
        {
            let object = path::find(fs, Caller::default(), path, &mut MetaAccesses::new())?;
            fs.make_unwritten(object);
        }
    }
    Ok(())
}

/// Returns the paths of files that have places and no data.
fn reserved(files: &[InitialFile]) -> BTreeSet<&str> {
    let of = |unwritten| {
        let wanted = files.iter().filter(move |laid| laid.unwritten == unwritten);
        wanted.map(|laid| laid.path.trim_matches('/'))
    };
    let mut reserved: BTreeSet<&str> = of(true).collect();
    if !reserved.is_empty() {
        // One program may write what another only reserves.
        for path in of(false) {
            reserved.remove(path);
        }
    }
    reserved
}

/// Returns the steps for missing and for short files.
fn steps(fs: &mut dyn FileSystem, files: &[InitialFile]) -> Vec<ScriptStep> {
    let mut steps = Vec::new();
    let mut made: BTreeMap<String, u64> = BTreeMap::new();
    for laid in files {
        let path = laid.path.trim_matches('/');
        for (at, _) in path
            .match_indices('/')
            .chain(laid.bytes.is_none().then_some((path.len(), "")))
        {
            let directory = &path[..at];
            if !made.contains_key(directory) && length(fs, directory).is_none() {
                steps.push(ScriptStep::MakeDirectory(directory.to_owned()));
                made.insert(directory.to_owned(), 0);
            }
        }
        let Some(bytes) = laid.bytes.map(|bytes| bytes.0) else {
            continue;
        };
        match made.get(path).copied().or_else(|| length(fs, path)) {
            None => steps.push(ScriptStep::Create(path.to_owned(), bytes)),
            Some(there) if there < bytes => {
                steps.push(ScriptStep::Write(path.to_owned(), there, bytes - there))
            }
            Some(_) => continue,
        }
        made.insert(path.to_owned(), bytes);
    }
    steps
}

/// Checks the files for a device as the only file. Its length is fixed.
fn lay_on_device(fs: &dyn FileSystem, files: &[InitialFile]) -> Result<(), FileError> {
    let Some(first) = files.first() else {
        return Ok(());
    };
    if files.iter().any(|laid| laid.path != first.path) {
        return Err(FileError::OneFile("a second file"));
    }
    let there = fs.attributes(fs.root())?.bytes.0;
    match first.bytes {
        Some(bytes) if bytes.0 > there => {
            let pages = |bytes: u64| bytes / fullstroke_files::PAGE_BYTES;
            Err(FileError::TooLarge {
                pages: pages(bytes.0),
                limit: pages(there),
            })
        }
        _ => Ok(()),
    }
}

/// Returns the length of an object, if it exists.
fn length(fs: &mut dyn FileSystem, path: &str) -> Option<u64> {
    let at = path::find(fs, Caller::default(), path, &mut MetaAccesses::new()).ok()?;
    fs.attributes(at).ok().map(|attributes| attributes.bytes.0)
}
