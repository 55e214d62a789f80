//! Syntax of a job file: sections, settings, comments, variables.
//!
//! Observed with fio 3.33: `;` and `#` begin a comment anywhere in a line. A setting before the
//! first section is an error. A `[global]` section applies to the following jobs, and several
//! `[global]` sections add up.

use crate::FioError;
use std::collections::BTreeMap;

/// One `option=value`, or an option without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) option: String,
    /// Value of the option; `None` without `=`.
    pub(crate) value: Option<String>,
    pub(crate) line: usize,
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
const GLOBAL: &str = "global";

/// Returns the jobs of `text`, in order. `${NAME}` in a value is replaced by the variable of that
/// name, or by nothing if the variable is not set.
pub(crate) fn sections(
    file: &str,
    text: &str,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<JobSection>, FioError> {
    let fail = |line: Option<usize>, option: &str, message: String| FioError {
        file: file.to_owned(),
        line,
        option: option.to_owned(),
        message,
    };
    if text.len() > BYTES_MAX {
        return Err(fail(
            None,
            "",
            format!(
                "found {} bytes; a job file has at most {BYTES_MAX}",
                text.len()
            ),
        ));
    }
    let mut sections = Sections::default();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let content = raw.split([';', '#']).next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            let name = rest.split_once(']').map(|(name, _)| name.trim());
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                let message = format!("found `{content}`; expected a section, [name]");
                return Err(fail(Some(line), "", message));
            };
            sections.begin(name, line);
            continue;
        }
        let setting = setting(content, line, environment);
        if setting.option == "include" || setting.option.starts_with("include ") {
            let message = "other files are not read; put their lines here".to_owned();
            return Err(fail(Some(line), "include", message));
        }
        sections.add(setting).map_err(|setting| {
            let message = "stands before the first section; begin with [global] or [name of a job]";
            fail(Some(line), &setting.option, message.to_owned())
        })?;
    }
    if sections.jobs.is_empty() {
        let message = "there is no job; write a section [name] with rw=, bs= and size=";
        return Err(fail(None, "", message.to_owned()));
    }
    Ok(sections.jobs)
}

/// Sections read so far.
#[derive(Default)]
struct Sections {
    global: Vec<Setting>,
    jobs: Vec<JobSection>,
    /// True if the current section is `[global]`; `None` before the first section.
    in_global: Option<bool>,
}

impl Sections {
    fn begin(&mut self, name: &str, line: usize) {
        self.in_global = Some(name == GLOBAL);
        if name != GLOBAL {
            self.jobs.push(JobSection {
                name: name.to_owned(),
                line,
                inherited: self.global.clone(),
                own: Vec::new(),
            });
        }
    }

    /// Adds a setting to the current section. Returns the setting as an error if there is no
    /// section.
    fn add(&mut self, setting: Setting) -> Result<(), Setting> {
        match (self.in_global, self.jobs.last_mut()) {
            (Some(true), _) => self.global.push(setting),
            (Some(false), Some(job)) => job.own.push(setting),
            _ => return Err(setting),
        }
        Ok(())
    }
}

/// Parses a line with a setting, and replaces the variables in its value.
fn setting(content: &str, line: usize, environment: &BTreeMap<String, String>) -> Setting {
    let (option, value) = match content.split_once('=') {
        Some((option, value)) => (option.trim(), Some(expand(value.trim(), environment))),
        None => (content, None),
    };
    Setting {
        option: option.to_owned(),
        value,
        line,
    }
}

/// Replaces every `${NAME}` in `value`. The content of a variable is not expanded again.
fn expand(value: &str, environment: &BTreeMap<String, String>) -> String {
    let mut expanded = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        let Some(length) = rest[at + 2..].find('}') else {
            break;
        };
        expanded.push_str(&rest[..at]);
        if let Some(found) = environment.get(&rest[at + 2..at + 2 + length]) {
            expanded.push_str(found);
        }
        rest = &rest[at + 3 + length..];
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<JobSection>, FioError> {
        let environment = [("SIZE".to_owned(), "64m".to_owned())].into();
        sections("a.fio", text, &environment)
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
    fn what_is_no_job_file_is_refused_at_its_line() {
        for (text, line) in [
            ("rw=read\n[a]\n", Some(1)),
            ("[a]\n[b\n", Some(2)),
            ("[global]\nbs=4k\n", None),
            ("[a]\ninclude other.fio\n", Some(2)),
            ("[]\n", Some(1)),
            ("", None),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
