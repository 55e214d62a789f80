//! Surroundings of a job file: environment variables, keywords, and files to include.

use crate::expression;
use std::collections::BTreeMap;

/// An included file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncludedFile {
    /// Path of the file, for errors and for files that this file includes.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

/// Reader of included files: takes the including file and the name on its `include` line. The error
/// tells why the file cannot be read.
pub type Include<'a> = &'a dyn Fn(&str, &str) -> Result<IncludedFile, String>;

/// Surroundings of a job file.
#[derive(Clone, Copy)]
pub struct JobSurroundings<'a> {
    /// Values of `${NAME}`.
    pub environment: &'a BTreeMap<String, String>,
    /// Reader of included files.
    pub include: Include<'a>,
    /// Value of `$ncpus`. Default: 1.
    pub processors: u64,
    /// Value of `$mb_memory`, in MiB. Default: 1024.
    pub memory_mb: u64,
}

/// Value of `$pagesize`, in bytes: the page of the simulated page cache.
const PAGE_BYTES: u64 = 4096;

impl<'a> JobSurroundings<'a> {
    /// Returns surroundings with these variables and without further files.
    pub fn new(environment: &'a BTreeMap<String, String>) -> JobSurroundings<'a> {
        JobSurroundings {
            environment,
            include: &no_files,
            processors: 1,
            memory_mb: 1024,
        }
    }

    /// Replaces every `${NAME}` and every keyword in `value`. The content of a variable is not
    /// expanded again. A value with a keyword is calculated, as fio does with `bc`
    /// (`fio_keyword_replace` in fio's `options.c`).
    pub(crate) fn expand(&self, value: &str) -> String {
        let mut expanded = self.variables(value);
        let keywords = [
            ("$pagesize", PAGE_BYTES),
            ("$mb_memory", self.memory_mb),
            ("$ncpus", self.processors),
        ];
        let mut replaced = false;
        for (keyword, number) in keywords {
            if expanded.contains(keyword) {
                expanded = expanded.replace(keyword, &number.to_string());
                replaced = true;
            }
        }
        // fio calculates only where it has replaced a keyword. Elsewhere `4-8` is a range.
        if replaced && expanded.contains(['+', '-', '*', '/']) {
            let whole = |suffix: &str| suffix.is_empty().then_some(1);
            // A value that is no plain arithmetic stays, and the option's reader tells why.
            if let Ok(number) = expression::evaluate(&expanded, &whole) {
                return number.to_string();
            }
        }
        expanded
    }

    /// Returns the first `${NAME}` in `value` without a variable of that name.
    pub(crate) fn unset<'v>(&self, value: &'v str) -> Option<&'v str> {
        let mut rest = value;
        while let Some(at) = rest.find("${") {
            let length = rest[at + 2..].find('}')?;
            let name = &rest[at + 2..at + 2 + length];
            if !self.environment.contains_key(name) {
                return Some(name);
            }
            rest = &rest[at + 3 + length..];
        }
        None
    }

    fn variables(&self, value: &str) -> String {
        let mut expanded = String::with_capacity(value.len());
        let mut rest = value;
        while let Some(at) = rest.find("${") {
            let Some(length) = rest[at + 2..].find('}') else {
                break;
            };
            expanded.push_str(&rest[..at]);
            if let Some(found) = self.environment.get(&rest[at + 2..at + 2 + length]) {
                expanded.push_str(found);
            }
            rest = &rest[at + 3 + length..];
        }
        expanded.push_str(rest);
        expanded
    }
}

fn no_files(_: &str, name: &str) -> Result<IncludedFile, String> {
    Err(format!(
        "`{name}` cannot be read: this text stands alone; put the file's lines here"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_numbers_that_can_be_calculated_with() {
        let environment = BTreeMap::new();
        let around = JobSurroundings {
            processors: 4,
            memory_mb: 2000,
            ..JobSurroundings::new(&environment)
        };
        for (value, expanded) in [
            ("$pagesize", "4096"),
            ("2*$pagesize", "8192"),
            ("$ncpus*2+1", "9"),
            ("$mb_memorym", "2000m"),
            ("8*$mb_memory", "16000"),
            ("$pagesize,8k", "4096,8k"),
            ("4k-$pagesize*2", "4k-4096*2"),
            ("4+4", "4+4"),
            ("$jobname.$jobnum", "$jobname.$jobnum"),
        ] {
            assert_eq!(around.expand(value), expanded, "{value}");
        }
    }
}
