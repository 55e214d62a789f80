//! Files that are there before programs begin.

use fullstroke_files::script::{Player, Step};
use fullstroke_files::{Caller, FileError, FileSystem, Touches};
use fullstroke_programs::Laid;
use fullstroke_units::Time;

/// Lays files out, in their order, and the directories on the way. What is there
/// already and long enough stays.
pub(crate) fn lay_out(fs: &mut dyn FileSystem, files: &[Laid]) -> Result<(), FileError> {
    if fs.entries(fs.root()).is_err() {
        return lay_on_device(fs, files);
    }
    for laid in files {
        let path = laid.path.trim_matches('/');
        let directories =
            if laid.bytes.is_some() { path.rsplit_once('/').map_or("", |(all, _)| all) } else { path };
        make_directories(fs, directories)?;
        let Some(bytes) = laid.bytes else { continue };
        let step = match length(fs, path) {
            None => Step::Create(path.to_owned(), bytes.0),
            Some(there) if there < bytes.0 => Step::Write(path.to_owned(), there, bytes.0 - there),
            Some(_) => continue,
        };
        Player::new(fs, Time::ZERO).play(&step)?;
    }
    Player::new(fs, Time::ZERO).play(&Step::Sync)
}

/// The device is the only file, and as long as it is.
fn lay_on_device(fs: &dyn FileSystem, files: &[Laid]) -> Result<(), FileError> {
    let Some(first) = files.first() else { return Ok(()) };
    if files.iter().any(|laid| laid.path != first.path) {
        return Err(FileError::OneFile("a second file"));
    }
    let there = fs.attributes(fs.root())?.bytes.0;
    match first.bytes {
        Some(bytes) if bytes.0 > there => {
            let pages = |bytes: u64| bytes / fullstroke_files::PAGE_BYTES;
            Err(FileError::TooLarge { pages: pages(bytes.0), limit: pages(there) })
        }
        _ => Ok(()),
    }
}

fn make_directories(fs: &mut dyn FileSystem, path: &str) -> Result<(), FileError> {
    let mut made = String::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if !made.is_empty() {
            made.push('/');
        }
        made.push_str(name);
        if length(fs, &made).is_none() {
            Player::new(fs, Time::ZERO).play(&Step::MakeDirectory(made.clone()))?;
        }
    }
    Ok(())
}

/// How long an object is, if it is there.
fn length(fs: &mut dyn FileSystem, path: &str) -> Option<u64> {
    let mut touches = Touches::new();
    let mut at = fs.root();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = fs.look_up(Caller::default(), at, name, &mut touches).ok()?;
    }
    fs.attributes(at).ok().map(|attributes| attributes.bytes.0)
}
