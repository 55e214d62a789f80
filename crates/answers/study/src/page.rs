//! `RESULTS.md` of a folder of studies, and its figures.
//!
//! The page begins with the headlines of the source and the cause of each result. A table of verdicts by
//! study and a matrix of the settings that reverse verdicts follow. Claims, numbers of figures, variants and
//! notes are folded.
//!
//! The page has one section for each study. A section begins with a comment that names the study
//! and its digest, and ends before the next such comment. The text depends only on the study and
//! its results. The page can therefore be written again and compared.

mod choices;
mod folds;
mod section;
mod summary;
mod table;
mod verdicts;

use crate::StudyError;
use crate::held_out::HeldOut;
use crate::run_list::RunList;
use crate::store::Results;
use crate::study::{Study, find};
use fullstroke_table::AtomicFile;
use section::{MARK, StudySection, mark, not_run};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

pub use section::Draw;

const NAME: &str = "RESULTS.md";

/// Page of a folder of studies.
#[derive(Clone, Debug, Default)]
struct FolderPage {
    /// Text before the first section.
    head: String,
    /// Sections by the ids of their studies.
    sections: BTreeMap<String, String>,
}

/// Writes the pages of the folders of `studies`. A study without results keeps its existing section
/// if the study file is unchanged. Returns the changed files.
///
/// # Errors
/// A file that cannot be read or written.
pub fn write_pages(
    studies: &[Study],
    run_list: &RunList,
    results: &Results,
    draw: Draw<'_>,
) -> Result<Vec<PathBuf>, StudyError> {
    let mut changed = Vec::new();
    for (folder, members) in folders(studies) {
        let mut page = FolderPage::read(&folder)?;
        let held_out = HeldOut::read(&folder)?;
        page.sections.retain(|id, _| {
            id.rsplit('/')
                .next()
                .is_some_and(|stem| folder.join(format!("{stem}.toml")).exists())
        });
        for (index, study) in members {
            let Some(section) =
                StudySection::new(index, study, run_list, results, held_out.of(study), draw)?
            else {
                if !page.is_of(study) {
                    page.sections.insert(study.id.clone(), not_run(study));
                }
                continue;
            };
            page.sections.insert(study.id.clone(), section.text);
            for (name, svg) in section.figures {
                put(&folder.join(name), &svg, &mut changed)?;
            }
        }
        let all = all_of(&folder)?;
        page.head = summary::head(&folder, &page.sections, &all, &held_out);
        put(&folder.join(NAME), &page.text(&all), &mut changed)?;
    }
    Ok(changed)
}

/// Returns a message for every part of a page that would be written differently now: a section of a
/// study that has changed since, or a section that differs from its results.
///
/// # Errors
/// An unreadable file.
pub fn outdated_parts(
    studies: &[Study],
    run_list: &RunList,
    results: &Results,
    draw: Draw<'_>,
) -> Result<Vec<String>, StudyError> {
    let mut drifted = Vec::new();
    for (folder, members) in folders(studies) {
        let page = FolderPage::read(&folder)?;
        let held_out = HeldOut::read(&folder)?;
        let file = folder.join(NAME);
        if page.head != summary::head(&folder, &page.sections, &all_of(&folder)?, &held_out) {
            drifted.push(format!(
                "{}: its sections and studies give another summary",
                file.display()
            ));
        }
        for (index, study) in members {
            let mut tell =
                |what: &str| drifted.push(format!("{}: {what} {}", file.display(), study.id));
            if !page.is_of(study) {
                tell("there are no results of the study's file and stacks as they are now:");
                continue;
            }
            let Some(section) =
                StudySection::new(index, study, run_list, results, held_out.of(study), draw)?
            else {
                continue;
            };
            if page.sections.get(&study.id) != Some(&section.text) {
                tell("the results give another text for");
            }
            for (name, svg) in section.figures {
                if read(&folder.join(&name))?.as_deref() != Some(svg.as_str()) {
                    tell(&format!("the results give another {name} for"));
                }
            }
        }
    }
    Ok(drifted)
}

/// Returns the studies of each folder, with their indices in `studies`.
fn folders(studies: &[Study]) -> BTreeMap<PathBuf, Vec<(usize, &Study)>> {
    let mut folders: BTreeMap<PathBuf, Vec<(usize, &Study)>> = BTreeMap::new();
    for (index, study) in studies.iter().enumerate() {
        folders
            .entry(study.folder().to_owned())
            .or_default()
            .push((index, study));
    }
    folders
}

impl FolderPage {
    fn read(folder: &Path) -> Result<FolderPage, StudyError> {
        let text = read(&folder.join(NAME))?.unwrap_or_default();
        let mut page = FolderPage::default();
        let mut current: Option<String> = None;
        for line in text.split_inclusive('\n') {
            if let Some(id) = line
                .strip_prefix(MARK)
                .and_then(|rest| rest.split(' ').next())
            {
                current = Some(id.to_owned());
            }
            match &current {
                Some(id) => page.sections.entry(id.clone()).or_default().push_str(line),
                None => page.head.push_str(line),
            }
        }
        Ok(page)
    }

    /// Returns the page with its sections in the order of `studies`.
    fn text(&self, studies: &[Study]) -> String {
        let order = |id: &str| {
            let study = studies.iter().find(|study| study.id == id);
            study
                .and_then(|study| study.config.order)
                // Studies without an order come last.
                .unwrap_or(u32::MAX)
        };
        let mut ids: Vec<&String> = self.sections.keys().collect();
        // The sections are sorted by id before. A stable sort keeps this order among equal numbers,
        // so that the page does not depend on the order of the runs.
        ids.sort_by_key(|id| order(id));
        let sections: String = ids
            .into_iter()
            .map(|id| self.sections[id].as_str())
            .collect();
        format!("{}{sections}", self.head)
    }

    /// Returns true if the section of a study was written for the current study file.
    fn is_of(&self, study: &Study) -> bool {
        self.sections
            .get(&study.id)
            .is_some_and(|section| section.starts_with(&mark(study)))
    }
}

/// Returns all studies of a folder, also unchosen ones.
fn all_of(folder: &Path) -> Result<Vec<Study>, StudyError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut all = find(
        folder.parent().unwrap_or(Path::new("")),
        &[format!("{name}/")],
    )?;
    all.sort_by_key(|study| study.config.order.unwrap_or(u32::MAX));
    Ok(all)
}

fn read(path: &Path) -> Result<Option<String>, StudyError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StudyError::host("read", path, error)),
    }
}

/// Writes a file if the contents change.
fn put(path: &Path, text: &str, changed: &mut Vec<PathBuf>) -> Result<(), StudyError> {
    if read(path)?.as_deref() == Some(text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| StudyError::host("make the folder", folder, error))?;
    }
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes())
        .map_err(|error| StudyError::host("write", path, error))?;
    file.commit()?;
    changed.push(path.to_owned());
    Ok(())
}
