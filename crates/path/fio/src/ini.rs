//! Syntax of a job file: sections, settings, comments, variables, included files.
//!
//! Observed with fio 3.33: `;` and `#` begin a comment anywhere in a line. A setting before the
//! first section is an error. A `[global]` section applies to the following jobs, and several
//! `[global]` sections add up. A name that begins with `global` is `[global]`, too (`init.c`,
//! `__parse_jobs_ini`).

use crate::FioError;
use crate::surroundings::{IncludedFile, JobSurroundings};
use std::sync::Arc;

/// One `option=value`, or an option without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) option: String,
    /// Value of the option; `None` without `=`.
    pub(crate) value: Option<String>,
    pub(crate) line: usize,
    /// Name of a variable in the value that is not set. The value has nothing in its place, as in fio.
    pub(crate) unset: Option<String>,
    /// Included file that holds the line; `None` for the job file itself.
    pub(crate) file: Option<Arc<str>>,
}

/// A `[section]` that describes a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobSection {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Settings of the `[global]` sections above.
    pub(crate) inherited: Vec<Setting>,
    /// Settings of the section itself.
    pub(crate) own: Vec<Setting>,
}

/// Largest size in bytes. A larger file is not a job file.
const BYTES_MAX: usize = 1 << 20;
/// Largest depth of files that include files. A deeper chain includes itself.
const INCLUDES_MAX: usize = 16;
const GLOBAL: &str = "global";

/// Returns the jobs of `text`, in order. `${NAME}` in a value is replaced by the variable of that
/// name, or by nothing if the variable is not set.
pub(crate) fn sections(
    file: &str,
    text: &str,
    around: &JobSurroundings<'_>,
) -> Result<Vec<JobSection>, FioError> {
    let mut sections = Sections::default();
    sections.read(
        &SourceText {
            file,
            text,
            depth: 0,
        },
        around,
    )?;
    sections.jobs(file)
}

/// A text with settings: the job file, or an included file.
struct SourceText<'a> {
    file: &'a str,
    text: &'a str,
    /// Number of files that include one another down to this text.
    depth: usize,
}

impl SourceText<'_> {
    fn fail(&self, line: Option<usize>, option: &str, message: impl Into<String>) -> FioError {
        FioError {
            file: self.file.to_owned(),
            line,
            option: option.to_owned(),
            message: message.into(),
        }
    }
}

/// Sections read so far.
#[derive(Default)]
pub(crate) struct Sections {
    global: Vec<Setting>,
    jobs: Vec<JobSection>,
    /// True if the current section is `[global]`; `None` before the first section.
    in_global: Option<bool>,
}

impl Sections {
    /// Returns the jobs.
    pub(crate) fn jobs(self, file: &str) -> Result<Vec<JobSection>, FioError> {
        if self.jobs.is_empty() {
            return Err(FioError {
                file: file.to_owned(),
                line: None,
                option: String::new(),
                message: "there is no job; write a section [name] with rw=, bs= and size="
                    .to_owned(),
            });
        }
        Ok(self.jobs)
    }

    fn read(
        &mut self,
        source: &SourceText<'_>,
        around: &JobSurroundings<'_>,
    ) -> Result<(), FioError> {
        let bytes = source.text.len();
        if bytes > BYTES_MAX {
            let message = format!("found {bytes} bytes; a job file has at most {BYTES_MAX}");
            return Err(source.fail(None, "", message));
        }
        let included: Option<Arc<str>> = (source.depth > 0).then(|| source.file.into());
        for (index, raw) in source.text.lines().enumerate() {
            let line = index + 1;
            // fio ends a setting at `;` and at `#`.
            let content = raw.split([';', '#']).next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            if let Some(rest) = content.strip_prefix('[') {
                let name = rest.split_once(']').map(|(name, _)| name.trim());
                let Some(name) = name.filter(|name| !name.is_empty()) else {
                    let message = format!("found `{content}`; expected a section, [name]");
                    return Err(source.fail(Some(line), "", message));
                };
                if included.is_some() {
                    let message = format!(
                        "found `{content}`; an included file has settings and no sections, as in fio"
                    );
                    return Err(source.fail(Some(line), "", message));
                }
                self.begin(name, line);
                continue;
            }
            if let Some(name) = included_file(content) {
                self.include(source, line, name, around)?;
                continue;
            }
            let setting = Setting {
                file: included.clone(),
                ..setting(content, line, around)
            };
            self.add(setting).map_err(|setting| {
                // fio announces each job as `name: (g=0): rw=read, ...`.
                let message = if content.contains("(g=") {
                    "is a report of fio; expected the command or the job file that made the report"
                } else {
                    "stands before the first section; begin with [global] or [name of a job]"
                };
                source.fail(Some(line), &setting.option, message)
            })?;
        }
        Ok(())
    }

    /// Reads the settings of an included file into the current section.
    fn include(
        &mut self,
        source: &SourceText<'_>,
        line: usize,
        name: &str,
        around: &JobSurroundings<'_>,
    ) -> Result<(), FioError> {
        if name.is_empty() {
            let message = "there is no file; write include FILE";
            return Err(source.fail(Some(line), "include", message));
        }
        if source.depth >= INCLUDES_MAX {
            let message = format!(
                "`{name}` is file {} of a chain; expected at most {INCLUDES_MAX} files that include one another",
                INCLUDES_MAX + 1
            );
            return Err(source.fail(Some(line), "include", message));
        }
        let found = (around.include)(source.file, name)
            .map_err(|problem| source.fail(Some(line), "include", problem))?;
        self.read(
            &SourceText {
                file: &found.name,
                text: &found.text,
                depth: source.depth + 1,
            },
            around,
        )
    }

    /// Begins a section.
    pub(crate) fn begin(&mut self, name: &str, line: usize) {
        self.in_global = Some(name.starts_with(GLOBAL));
        if self.in_global == Some(false) {
            self.jobs.push(JobSection {
                name: name.to_owned(),
                line,
                inherited: self.global.clone(),
                own: Vec::new(),
            });
        }
    }

    /// Reads the sections of a job file.
    pub(crate) fn read_file(
        &mut self,
        file: &IncludedFile,
        around: &JobSurroundings<'_>,
    ) -> Result<(), FioError> {
        // Settings of a job file need a section of that file.
        self.in_global = None;
        let source = SourceText {
            file: &file.name,
            text: &file.text,
            depth: 0,
        };
        self.read(&source, around)
    }

    /// Adds a setting to the current section. Returns the setting as an error if there is no
    /// section.
    pub(crate) fn add(&mut self, setting: Setting) -> Result<(), Setting> {
        match (self.in_global, self.jobs.last_mut()) {
            (Some(true), _) => self.global.push(setting),
            (Some(false), Some(job)) => job.own.push(setting),
            _ => return Err(setting),
        }
        Ok(())
    }
}

/// Returns the file of an `include` line.
fn included_file(content: &str) -> Option<&str> {
    let rest = content.strip_prefix("include")?;
    let separated = rest.is_empty() || rest.starts_with([' ', '\t', '=']);
    separated.then(|| rest.trim_start_matches([' ', '\t', '=']))
}

/// Parses a line with a setting, and replaces the variables and keywords in its value.
pub(crate) fn setting(content: &str, line: usize, around: &JobSurroundings<'_>) -> Setting {
    let (option, raw) = match content.split_once('=') {
        Some((option, value)) => (option.trim(), Some(value.trim())),
        None => (content, None),
    };
    Setting {
        option: option.to_owned(),
        value: raw.map(|value| around.expand(value)),
        unset: raw
            .and_then(|value| around.unset(value))
            .map(ToOwned::to_owned),
        line,
        file: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn parse(text: &str) -> Result<Vec<JobSection>, FioError> {
        let environment: BTreeMap<String, String> = [("SIZE".to_owned(), "64m".to_owned())].into();
        let include = |_: &str, name: &str| match name {
            "more.fio" => Ok("bs=8k\ninclude deeper.fio\n"),
            "deeper.fio" => Ok("iodepth=4 ; a comment\n"),
            "itself.fio" => Ok("include itself.fio\n"),
            "section.fio" => Ok("bs=8k\n[b]\n"),
            other => Err(format!("no `{other}`")),
        };
        let include = |from: &str, name: &str| {
            include(from, name).map(|text| IncludedFile {
                name: name.to_owned(),
                text: text.to_owned(),
            })
        };
        sections(
            "a.fio",
            text,
            &JobSurroundings {
                include: &include,
                ..JobSurroundings::new(&environment)
            },
        )
    }

    fn own(section: &JobSection) -> Vec<(&str, Option<&str>)> {
        section
            .own
            .iter()
            .map(|setting| (setting.option.as_str(), setting.value.as_deref()))
            .collect()
    }

    #[test]
    fn a_global_section_applies_to_the_jobs_behind_it() {
        let jobs = parse("[a]\nsize=1m\n[global]\nbs=8k\n[b]\n[global]\nrw=read\n[c]\n").unwrap();
        let inherited: Vec<usize> = jobs.iter().map(|job| job.inherited.len()).collect();
        assert_eq!(inherited, [0, 1, 2]);
        assert_eq!(jobs[2].line, 8);
    }

    #[test]
    fn comments_and_spaces_are_left_out() {
        let jobs = parse("; x\n[a] ; y\n  size = 1m  # z\n\n norandommap\n").unwrap();
        assert_eq!(own(&jobs[0]), [("size", Some("1m")), ("norandommap", None)]);
    }

    #[test]
    fn variables_are_replaced_once() {
        let jobs = parse("[a]\nsize=${SIZE}\nname=x${NOTHING}y${SIZE\n").unwrap();
        assert_eq!(
            own(&jobs[0]),
            [("size", Some("64m")), ("name", Some("xy${SIZE"))]
        );
    }

    #[test]
    fn the_settings_of_an_included_file_stand_in_place_of_its_line() {
        let jobs = parse("[a]\nrw=read\ninclude more.fio\nsize=1m\n[b]\n").unwrap();
        let read = [
            ("rw", Some("read")),
            ("bs", Some("8k")),
            ("iodepth", Some("4")),
            ("size", Some("1m")),
        ];
        assert_eq!(own(&jobs[0]), read);
        let place = |setting: &Setting| (setting.file.as_deref().map(str::to_owned), setting.line);
        let places: Vec<(Option<String>, usize)> = jobs[0].own.iter().map(place).collect();
        assert_eq!(places[1], (Some("more.fio".to_owned()), 1));
        assert_eq!(places[2], (Some("deeper.fio".to_owned()), 1));
        assert_eq!(places[3], (None, 4));
        assert!(jobs[1].own.is_empty());
        let global = parse("[global]\ninclude more.fio\n[a]\n").unwrap();
        assert_eq!(global[0].inherited.len(), 2);
    }

    #[test]
    fn what_is_no_job_file_is_refused_at_its_line() {
        for (text, file, line) in [
            ("rw=read\n[a]\n", "a.fio", Some(1)),
            ("[a]\n[b\n", "a.fio", Some(2)),
            ("[global]\nbs=4k\n", "a.fio", None),
            ("[a]\ninclude none.fio\n", "a.fio", Some(2)),
            ("[a]\ninclude\n", "a.fio", Some(2)),
            ("[a]\ninclude section.fio\n", "section.fio", Some(2)),
            ("[a]\ninclude itself.fio\n", "itself.fio", Some(1)),
            ("[]\n", "a.fio", Some(1)),
            ("", "a.fio", None),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.file.as_str(), error.line), (file, line), "{text}");
        }
    }
}
