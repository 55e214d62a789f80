//! Verdicts on claims under other seeds and under other free choices.
//!
//! The record stands in `held-out.json` beside the studies, so that the page shows the fragile
//! verdicts without repeating the runs. A record belongs to one state of the study. If more than
//! the prose of the study changes, the record is invalid.

use crate::record::{StudyRecord, VerdictFlip};
use crate::run_list::RunList;
use crate::store::Results;
use crate::study::Study;
use crate::variation::{Extent, Variation};
use crate::verdict::{ClaimVerdict, JudgedClaim};
use crate::{StudyError, VERSION};
use fullstroke_table::AtomicFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

const NAME: &str = "held-out.json";

/// Records of a folder's studies, by id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeldOut {
    studies: BTreeMap<String, StudyRecord>,
}

impl HeldOut {
    /// Reads the records of a folder; empty if there is no file.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn read(folder: &Path) -> Result<HeldOut, StudyError> {
        let path = folder.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(HeldOut::default()),
            Err(error) => return Err(StudyError::host("read", &path, error)),
        };
        serde_json::from_str(&text).map_err(|error| StudyError::HeldOut {
            file: path,
            problem: error.to_string(),
        })
    }

    /// Returns the record of a study if the record belongs to the current state of the study.
    pub fn of(&self, study: &Study) -> Option<&StudyRecord> {
        self.studies
            .get(&study.id)
            .filter(|record| record.substance == study.substance)
    }

    /// Adds each record to the records of its folder. Returns the files.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn keep(records: Vec<(&Study, StudyRecord)>) -> Result<Vec<PathBuf>, StudyError> {
        let mut folders: BTreeMap<PathBuf, HeldOut> = BTreeMap::new();
        for (study, record) in records {
            let folder = study.folder().to_owned();
            if !folders.contains_key(&folder) {
                let known = HeldOut::read(&folder)?;
                folders.insert(folder.clone(), known);
            }
            let known = folders.entry(folder.clone()).or_default();
            known.studies.insert(study.id.clone(), record);
            // A removed or renamed study leaves its record behind.
            known.studies.retain(|id, _| {
                id.rsplit('/')
                    .next()
                    .is_some_and(|stem| folder.join(format!("{stem}.toml")).exists())
            });
        }
        let mut written = Vec::new();
        for (folder, known) in folders {
            let path = folder.join(NAME);
            // Cannot fail: the keys are texts, and there are no values that JSON lacks.
            let text = serde_json::to_string_pretty(&known).unwrap_or_default() + "\n";
            let mut file = AtomicFile::create(&path)?;
            file.write_all(text.as_bytes())
                .map_err(|error| StudyError::host("write", &path, error))?;
            file.commit()?;
            written.push(path);
        }
        Ok(written)
    }
}

impl StudyRecord {
    /// Judges a study's claims with its own settings and with all settings of `extent`; `None` if
    /// runs are missing.
    pub fn new(
        index: usize,
        study: &Study,
        extent: &Extent,
        run_list: &RunList,
        results: &Results,
    ) -> Option<StudyRecord> {
        let judge = |variation: Variation| -> Vec<JudgedClaim> {
            let table = run_list.table(index, study, variation, results);
            study
                .claims
                .iter()
                .map(|claim| claim.judge_plainly(study, &table))
                .collect()
        };
        let base = judge(Variation::Base);
        let mut record = StudyRecord {
            substance: study.substance.clone(),
            version: VERSION.to_owned(),
            ..StudyRecord::default()
        };
        for variation in study.held_out(extent) {
            let with = study.describe(variation, extent.replications);
            for ((claim, before), after) in study.claims.iter().zip(&base).zip(judge(variation)) {
                if before.verdict == ClaimVerdict::NotRun || after.verdict == ClaimVerdict::NotRun {
                    return None;
                }
                if run_list.touches(index, variation, claim) {
                    record.compare(&with, before, after);
                }
            }
            record.tried.push(with);
        }
        Some(record)
    }

    /// Adds the verdict on a claim in a setting, if the setting reverses the verdict or leaves the
    /// claim undecided.
    fn compare(&mut self, with: &str, before: &JudgedClaim, after: JudgedClaim) {
        let id = before.id.clone();
        if after.verdict == ClaimVerdict::Undecided {
            if before.verdict != ClaimVerdict::Undecided {
                self.undecided.entry(id).or_default().push(with.to_owned());
            }
        } else if before.estimate_holds != after.estimate_holds {
            self.flips.entry(id).or_default().push(VerdictFlip {
                with: with.to_owned(),
                holds: after.estimate_holds,
                obtained: after.shown,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_setting_that_decides_reverses_a_verdict() {
        use ClaimVerdict::{DoesNotHold, Holds, Undecided};
        for (before, after, flips, undecided) in [
            ((Holds, true), (DoesNotHold, false), 1, 0),
            ((DoesNotHold, false), (Holds, true), 1, 0),
            ((Holds, true), (Holds, true), 0, 0),
            // The interval holds both answers, on whichever side the estimate lies.
            ((Holds, true), (Undecided, false), 0, 1),
            ((Holds, true), (Undecided, true), 0, 1),
            ((Undecided, true), (Undecided, false), 0, 0),
        ] {
            let mut record = StudyRecord::default();
            record.compare(
                "seeds 6 to 7",
                &JudgedClaim::of_test(before.0, before.1),
                JudgedClaim::of_test(after.0, after.1),
            );
            let count = |found: Option<usize>| found.unwrap_or(0);
            let found = (
                count(record.flips.get("T-1").map(Vec::len)),
                count(record.undecided.get("T-1").map(Vec::len)),
            );
            assert_eq!(found, (flips, undecided), "{before:?} {after:?}");
        }
    }
}
