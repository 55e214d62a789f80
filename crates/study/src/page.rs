//! `RESULTS.md` of a folder of studies, and its figures.
//!
//! The page has one section for each study, between a comment that names the
//! study and its digest and the next such comment. What is in it follows from
//! the study and its results alone, so that it can be written again and
//! compared.

use crate::claims::{Judged, Verdict};
use crate::figure::Figure;
use crate::run_list::RunList;
use crate::store::Results;
use crate::study::{Study, Variant};
use crate::{StudyError, text};
use fullstroke_table::AtomicFile;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

const NAME: &str = "RESULTS.md";
const FIGURES: &str = "figures";
const MARK: &str = "<!-- study: ";

/// What stands in a folder of studies, or should.
#[derive(Clone, Debug, Default)]
struct Page {
    /// What stands before the first section.
    head: String,
    /// Sections by the ids of their studies.
    sections: BTreeMap<String, String>,
}

/// One study's section and figures, as its results have them.
struct Section {
    text: String,
    /// File names below the folder, and SVG.
    figures: Vec<(String, String)>,
}

/// Writes the pages of the folders that `studies` are in. A study without
/// results keeps the section that it has, if its file is still the same. Returns
/// the files that changed.
///
/// # Errors
/// A file that cannot be read or written.
pub fn write_pages(
    studies: &[Study],
    run_list: &RunList,
    results: &Results,
) -> Result<Vec<PathBuf>, StudyError> {
    let mut changed = Vec::new();
    for (folder, members) in folders(studies) {
        let mut page = Page::read(&folder)?;
        page.head = head(&folder);
        page.sections.retain(|id, _| {
            id.rsplit('/').next().is_some_and(|stem| folder.join(format!("{stem}.toml")).exists())
        });
        for (index, study) in members {
            let Some(section) = Section::new(index, study, run_list, results)? else {
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
        put(&folder.join(NAME), &page.text(), &mut changed)?;
    }
    Ok(changed)
}

/// What is not as it would be written now: a section whose study has changed
/// since, or that its results do not give.
///
/// # Errors
/// A file that cannot be read.
pub fn drifted(studies: &[Study], run_list: &RunList, results: &Results) -> Result<Vec<String>, StudyError> {
    let mut drifted = Vec::new();
    for (folder, members) in folders(studies) {
        let page = Page::read(&folder)?;
        let file = folder.join(NAME);
        for (index, study) in members {
            let mut tell = |what: &str| drifted.push(format!("{}: {what} {}", file.display(), study.id));
            if !page.is_of(study) {
                tell("there are no results of the study's file and stacks as they are now:");
                continue;
            }
            let Some(section) = Section::new(index, study, run_list, results)? else { continue };
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

/// The studies of each folder with their numbers among `studies`.
fn folders(studies: &[Study]) -> BTreeMap<PathBuf, Vec<(usize, &Study)>> {
    let mut folders: BTreeMap<PathBuf, Vec<(usize, &Study)>> = BTreeMap::new();
    for (index, study) in studies.iter().enumerate() {
        folders.entry(study.folder().to_owned()).or_default().push((index, study));
    }
    folders
}

impl Page {
    fn read(folder: &Path) -> Result<Page, StudyError> {
        let text = read(&folder.join(NAME))?.unwrap_or_default();
        let mut page = Page::default();
        let mut current: Option<String> = None;
        for line in text.split_inclusive('\n') {
            if let Some(id) = line.strip_prefix(MARK).and_then(|rest| rest.split(' ').next()) {
                current = Some(id.to_owned());
            }
            match &current {
                Some(id) => page.sections.entry(id.clone()).or_default().push_str(line),
                None => page.head.push_str(line),
            }
        }
        Ok(page)
    }

    fn text(&self) -> String {
        let sections: String = self.sections.values().map(String::as_str).collect();
        format!("{}{sections}", self.head)
    }

    /// Whether the section of a study was written for its file as it is.
    fn is_of(&self, study: &Study) -> bool {
        self.sections.get(&study.id).is_some_and(|section| section.starts_with(&mark(study)))
    }
}

impl Section {
    /// `None` if results are missing.
    fn new(
        index: usize,
        study: &Study,
        run_list: &RunList,
        results: &Results,
    ) -> Result<Option<Section>, StudyError> {
        let table = |variant: Variant| run_list.table(index, study, variant, results);
        if !study.variants().all(|variant| table(variant).is_complete()) {
            return Ok(None);
        }
        let own = table(None);
        let judged: Vec<Judged> = study.claims.iter().map(|claim| claim.judge(study, &own)).collect();
        let mut section = opening(study);
        if !judged.is_empty() {
            section.push_str("| claim | what | published | obtained | verdict |\n|---|---|---|---|---|\n");
            for claim in &judged {
                let cells = [&claim.id, &claim.says, &claim.published, &claim.shown, &verdict(claim)];
                section.push_str(&row(cells.map(String::as_str)));
            }
            section.push('\n');
        }
        changed(study, &judged, &table, &mut section);
        let mut figures = Vec::new();
        for number in 0..study.figures.len() {
            let Some(figure) = Figure::new(study, number, &own) else { return Ok(None) };
            let config = &study.config.figures[number];
            let stem = study.id.rsplit('/').next().unwrap_or_default();
            let name = format!("{FIGURES}/{stem}-{}.svg", config.id);
            let _ = write!(section, "![{}]({name})\n\n", config.title);
            numbers(&config.x, &figure, &mut section);
            figures.push((name, figure.draw()?));
        }
        Ok(Some(Section { text: section, figures }))
    }
}

fn head(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "# Results: {name}\n\n<!-- Written by `fullstroke study results --write {name}/`; a test holds it to the studies. -->\n\n\
         ± is half the width of the 95 % interval; verdicts are about the estimate. How to read it: [docs/studies.md](../../docs/studies.md).\n\n"
    )
}

fn mark(study: &Study) -> String {
    format!("{MARK}{} {} -->\n", study.id, study.digest)
}

fn opening(study: &Study) -> String {
    let config = &study.config;
    let mut text = format!("{}\n## {}\n\n{}\n\n", mark(study), config.title, config.question.trim());
    let (points, seeds) = (study.matrix.points().len(), config.replications);
    let _ = write!(text, "Source: {}. `{}`", config.source, study.id);
    if points > 0 {
        let count =
            |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let _ = write!(text, ": {}, {} each", count(points, "point"), count(seeds as usize, "seed"));
        if seeds == 1 {
            text.push_str("; intervals are those within a run");
        }
    }
    text.push_str(".\n\n");
    if let Some(notes) = &config.notes {
        let _ = write!(text, "{}\n\n", notes.trim());
    }
    text
}

fn not_run(study: &Study) -> String {
    let mut text = opening(study);
    text.push_str("Not run yet.\n\n");
    if !study.claims.is_empty() {
        text.push_str("| claim | what | published |\n|---|---|---|\n");
        for claim in &study.config.claims {
            let published = crate::axes::label(&claim.published);
            text.push_str(&row([&claim.id, &claim.says, &published]));
        }
        text.push('\n');
    }
    text
}

/// The claims that are looked at with one thing changed.
fn changed<'a>(
    study: &'a Study,
    judged: &[Judged],
    table: &dyn Fn(Variant) -> crate::StudyTable<'a>,
    section: &mut String,
) {
    if study.config.variants.is_empty() {
        return;
    }
    section.push_str(
        "With one thing changed:\n\n| changed | claim | what | published | as assumed | with the change | verdict then |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (number, variant) in study.config.variants.iter().enumerate() {
        for (claim, before) in study.claims.iter().zip(judged) {
            if variant.claims.contains(&before.id) {
                let after = claim.judge_changed(study, &table(Some(number)));
                section.push_str(&row([
                    &variant.title,
                    &before.id,
                    &before.says,
                    &before.published,
                    &before.shown,
                    &after.shown,
                    after.verdict.text(),
                ]));
            }
        }
    }
    section.push('\n');
}

fn verdict(claim: &Judged) -> String {
    let text = claim.verdict.text();
    match (&claim.why, claim.verdict) {
        (_, Verdict::Holds) => text.to_owned(),
        (Some(why), _) => format!("**{text}**: {why}"),
        (None, _) => format!("**{text}**"),
    }
}

/// The numbers of a figure.
fn numbers(x: &str, figure: &Figure, section: &mut String) {
    let names: Vec<&str> =
        figure.lines.iter().map(|line| if line.name.is_empty() { "value" } else { &line.name }).collect();
    let _ = writeln!(section, "| {x} | {} |\n|---{}|", names.join(" | "), "|---".repeat(names.len()));
    for (at, (_, tick)) in figure.ticks.iter().enumerate() {
        let cell = |point: Option<(f64, Option<f64>)>| match point {
            Some((value, Some(width))) if width > 0.0 => {
                format!("{} ± {}", text::significant(value, 3), text::significant(width, 2))
            }
            Some((value, _)) => text::significant(value, 3),
            None => String::new(),
        };
        let cells: Vec<String> = figure.lines.iter().map(|line| cell(line.points[at])).collect();
        let _ = writeln!(section, "| {tick} | {} |", cells.join(" | "));
    }
    section.push('\n');
}

/// A line of a table; what would end a cell is written otherwise.
fn row<const CELLS: usize>(cells: [&str; CELLS]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", cells.join(" | "))
}

fn read(path: &Path) -> Result<Option<String>, StudyError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StudyError::host("read", path, error)),
    }
}

/// Writes a file, if that changes it.
fn put(path: &Path, text: &str, changed: &mut Vec<PathBuf>) -> Result<(), StudyError> {
    if read(path)?.as_deref() == Some(text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| StudyError::host("make the folder", folder, error))?;
    }
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|error| StudyError::host("write", path, error))?;
    file.commit()?;
    changed.push(path.to_owned());
    Ok(())
}
