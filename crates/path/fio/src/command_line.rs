//! Command lines of fio as job files: `fio --name=a --rw=randread --bs=4k`.
//!
//! A text that begins with a command is read as a shell would read it: quotes, backslashes at line
//! ends, `sudo` and other commands in front of `fio`, prompts, pipes and redirections behind. As in
//! fio, `--name` begins a job, and options in front of the first `--name` hold for all jobs
//! (`parse_cmd_line` in fio's `init.c`). One dash is as good as two (`getopt_long_only`).

use crate::ini::{Sections, Setting, setting};
use crate::job_set::IgnoredOption;
use crate::shell::{Word, commands};
use crate::surroundings::JobSurroundings;
use crate::{FioError, JobSet, options};

/// Options of the program, not of a job: name, whether a value follows, and the reason why the
/// option has no effect.
const GENERAL: &[(&str, bool, &str)] = &[
    ("output", true, OWN_OUTPUT),
    ("output-format", true, OWN_OUTPUT),
    ("minimal", false, OWN_OUTPUT),
    ("append-terse", false, OWN_OUTPUT),
    ("terse-version", true, OWN_OUTPUT),
    ("bandwidth-log", false, OWN_OUTPUT),
    ("latency-log", false, OWN_OUTPUT),
    ("eta", true, OWN_OUTPUT),
    ("eta-newline", true, OWN_OUTPUT),
    ("eta-interval", true, OWN_OUTPUT),
    ("status-interval", true, OWN_OUTPUT),
    ("debug", true, OWN_OUTPUT),
    ("idle-prof", true, OWN_OUTPUT),
    ("parse-only", false, "the jobs are simulated"),
    ("readonly", false, "nothing is written to a real disk"),
    (
        "warnings-fatal",
        false,
        "fullstroke refuses instead of warning",
    ),
    ("max-jobs", true, "4,096 clones are possible"),
    ("alloc-size", true, "memory is not reserved"),
    ("aux-path", true, OWN_OUTPUT),
    ("inflate-log", true, OWN_OUTPUT),
    ("daemonize", true, "the run stays in the foreground"),
    ("trigger-file", true, "no programs are run"),
    ("trigger-timeout", true, "no programs are run"),
    ("trigger", true, "no programs are run"),
    ("trigger-remote", true, "no programs are run"),
];
const OWN_OUTPUT: &str =
    "fullstroke has its own output; --output-format=fio-json prints fio's fields";

/// Options of the program that run no job here, with the reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "client",
        "jobs on other machines are not simulated; give the job file of one machine",
    ),
    ("server", "there is no job; give the job file of the client"),
    ("remote-config", "give the job file itself"),
    ("cmdhelp", "there is no job; docs/fio.md lists the options"),
    ("enghelp", "there is no job; docs/fio.md lists the options"),
    ("help", "there is no job; docs/fio.md lists the options"),
    ("version", "there is no job"),
    ("showcmd", "there is no job"),
    ("crctest", "there is no job"),
    ("cpuclock-test", "there is no job"),
    ("merge-blktrace-only", "there is no job"),
];

/// Options that stand alone (`FIO_OPT_STR_SET` in fio 3.33). A word behind one of these is no value.
const ALONE: &[&str] = &[
    "exitall",
    "exitall_on_error",
    "fixedbufs",
    "group_reporting",
    "hipri",
    "new_group",
    "nonvectored",
    "norandommap",
    "registerfiles",
    "sqthread_poll",
    "stonewall",
    "thread",
    "time_based",
    "uncached",
    "userspace_reap",
    "verify_only",
    "wait_for_previous",
];

/// Returns true if a text is a command line rather than a job file: its first line that is no
/// comment calls `fio`, or begins with an option.
pub(crate) fn is_command_line(text: &str) -> bool {
    let significant = |line: &&str| {
        let line = line.trim();
        // `# fio --name=x` is a command behind the prompt of a superuser.
        let prompt = line.strip_prefix('#').is_some_and(|rest| {
            let mut words = rest.split_whitespace().skip_while(|word| *word == "sudo");
            words.next().is_some_and(is_fio)
                && words.next().is_some_and(|next| next.starts_with('-'))
        });
        let comment = line.starts_with(['#', ';']) && !prompt;
        !line.is_empty() && !comment && !line.starts_with("#!")
    };
    text.lines().find(significant).is_some_and(|line| {
        let line = line.trim();
        let section = line.starts_with('[') && line.ends_with(']');
        let option = line.starts_with('-') && line.contains(|letter: char| letter.is_alphabetic());
        !section && (option || calls_fio(line))
    })
}

/// Returns true if a word of the line is `fio`, and an argument follows.
fn calls_fio(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| !is_fio(word));
    // `fio = 3` is a setting of a job file, not a command.
    words.next().is_some() && words.next().is_some_and(|next| next != "=")
}

fn is_fio(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == "fio" || name == "fio.exe"
}

impl JobSet {
    /// Parses a command line. `file` names the text in errors.
    pub(crate) fn parse_command_line(
        file: &str,
        text: &str,
        around: &JobSurroundings<'_>,
    ) -> Result<JobSet, FioError> {
        let words = words_of_fio(file, text)?;
        let mut line = CommandLine {
            file,
            around,
            sections: Sections::default(),
            section: None,
            ignored: Vec::new(),
        };
        // fio takes options in front of the first `--name` as global options.
        line.sections.begin("global", 0);
        let mut words = words.into_iter().peekable();
        let mut files = Vec::new();
        while let Some((word, at)) = words.next() {
            let option = word.trim_start_matches('-');
            if option.len() == word.len() || option.is_empty() {
                files.push((word, at));
                continue;
            }
            // A value may begin with one dash. Two dashes begin the next option.
            let next = || words.next_if(|(next, _)| !next.starts_with("--"));
            line.option(option, at, next)?;
        }
        // Options of the command line hold for the jobs of files also, so the files are read last.
        for (name, at) in files {
            line.job_file(&name, at)?;
        }
        let CommandLine {
            sections,
            section,
            ignored,
            ..
        } = line;
        let mut jobs = sections.jobs(file)?;
        if let Some(wanted) = section {
            jobs.retain(|job| wanted.split(',').any(|name| name == job.name));
            if jobs.is_empty() {
                let message = format!("found `{wanted}`; no job has this name");
                return Err(failed(file, 0, "section", message));
            }
        }
        let mut set = JobSet::of_sections(file, &jobs)?;
        for option in ignored {
            if !set.ignored.contains(&option) {
                set.ignored.push(option);
            }
        }
        set.ignored.sort_unstable_by_key(|option| option.name);
        Ok(set)
    }
}

/// A command line while it is read.
struct CommandLine<'a> {
    file: &'a str,
    around: &'a JobSurroundings<'a>,
    sections: Sections,
    /// Names that `--section` selects.
    section: Option<String>,
    ignored: Vec<IgnoredOption>,
}

impl CommandLine<'_> {
    /// Reads an option without its dashes. `next` takes the next word, if that is no option.
    fn option(
        &mut self,
        option: &str,
        at: usize,
        mut next: impl FnMut() -> Option<Word>,
    ) -> Result<(), FioError> {
        let (name, given) = option
            .split_once('=')
            .map_or((option, None), |(name, value)| {
                (name, Some(value.to_owned()))
            });
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(failed(self.file, at, name, *why));
        }
        let general = GENERAL.iter().find(|(general, ..)| *general == name);
        // As in fio, a word behind a switch is a job file.
        let takes_value = match general {
            Some((_, takes_value, _)) => *takes_value,
            None => !ALONE.contains(&name),
        };
        let value = if given.is_none() && takes_value {
            next().map(|(word, _)| word)
        } else {
            given
        };
        if let Some((name, _, why)) = general {
            self.ignored.push(IgnoredOption { name, why });
            return Ok(());
        }
        match (name, value) {
            ("section", Some(names)) => {
                let all = self.section.get_or_insert_default();
                if !all.is_empty() {
                    all.push(',');
                }
                all.push_str(&names);
            }
            ("name", Some(job)) => self.sections.begin(&job, at),
            (_, value) => {
                let line = match value {
                    Some(value) => format!("{name}={value}"),
                    None => name.to_owned(),
                };
                // A section always stands open here.
                drop(self.sections.add(Setting {
                    // People write `--time-based`, too.
                    option: known(name),
                    ..setting(&line, at, self.around)
                }));
            }
        }
        Ok(())
    }

    /// Reads the jobs of a job file.
    fn job_file(&mut self, name: &str, at: usize) -> Result<(), FioError> {
        let found = (self.around.include)(self.file, name)
            .map_err(|problem| failed(self.file, at, "", problem))?;
        self.sections.read_file(&found, self.around)
    }
}

/// Returns the option of this name, also if dashes stand for underscores.
fn known(name: &str) -> String {
    let spelled = name.replace('-', "_");
    if options::find(name).is_none() && options::find(&spelled).is_some() {
        spelled
    } else {
        name.to_owned()
    }
}

fn failed(file: &str, line: usize, option: &str, message: impl Into<String>) -> FioError {
    FioError {
        file: file.to_owned(),
        line: (line > 0).then_some(line),
        option: option.to_owned(),
        message: message.into(),
    }
}

/// Returns the arguments of the only command that calls fio.
fn words_of_fio(file: &str, text: &str) -> Result<Vec<Word>, FioError> {
    let commands = commands(text).map_err(|(at, message)| failed(file, at, "", message))?;
    let calls: Vec<&Vec<Word>> = commands
        .iter()
        .filter(|words| words.iter().any(|(word, _)| is_fio(word)))
        .collect();
    match calls[..] {
        // A text that begins with options is the rest of a command, without the word `fio`.
        [] => Ok(commands.into_iter().next().unwrap_or_default()),
        [only] => {
            let arguments = only.iter().skip_while(|(word, _)| !is_fio(word)).skip(1);
            Ok(arguments.cloned().collect())
        }
        [_, second, ..] => {
            let at = second.first().map_or(0, |(_, at)| *at);
            let message = format!(
                "found {} commands of fio; give one at a time, or a job file with stonewall between the jobs",
                calls.len()
            );
            Err(failed(file, at, "", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::FioJob;
    use crate::surroundings::IncludedFile;
    use std::collections::BTreeMap;

    fn parse(text: &str) -> Result<JobSet, FioError> {
        assert!(is_command_line(text), "{text}");
        let environment = BTreeMap::from([("D".to_owned(), "/dev/sdx".to_owned())]);
        let include = |_: &str, name: &str| match name {
            "job.fio" => Ok(IncludedFile {
                name: name.to_owned(),
                text: "[a]\nrw=read\n[b]\nrw=write\n".to_owned(),
            }),
            other => Err(format!("{other} cannot be read")),
        };
        let around = JobSurroundings {
            include: &include,
            ..JobSurroundings::new(&environment)
        };
        JobSet::parse_in("text", text, &around)
    }

    /// Returns each job as `name rw-letter block depth`.
    fn jobs(text: &str) -> Vec<(String, bool, Option<u64>, u32)> {
        let jobs = parse(text)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .jobs;
        jobs.iter()
            .map(|job: &FioJob| {
                (
                    job.name.clone(),
                    job.random,
                    job.single_size(),
                    job.effective_depth(),
                )
            })
            .collect()
    }

    #[test]
    fn pasted_command_lines_are_job_files() {
        let expected = [("x".to_owned(), true, Some(4096), 32)];
        for text in [
            "fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio",
            "sudo fio --name=x --rw=randread \\\n  --bs=4k --iodepth=32 \\\n --ioengine=libaio\n",
            "$ fio -name=x -rw=randread -bs=4k -iodepth=32 -ioengine=libaio",
            "[root@host ~]# fio --name x --rw randread --bs 4k --iodepth 32 --ioengine libaio",
            "# fio --name='x' --rw=\"randread\" --bs=4k --iodepth=32 --ioengine=libaio | tee out.txt",
            "#!/bin/sh\n# a test\nfio --rw=randread --bs=4k --iodepth=32 --ioengine=libaio --name=x 2>&1 >out.txt\n",
            "--rw=randread --bs=4k --iodepth=32 --ioengine=libaio --name=x",
            "ionice -c 2 /usr/local/bin/fio --direct=1 --time_based --runtime=5 --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio --output-format=json --output=o.json # end",
            "fio --time-based --group-reporting --runtime=5 --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio\r\n",
        ] {
            assert_eq!(jobs(text), expected, "{text}");
        }
    }

    #[test]
    fn options_before_the_first_name_hold_for_all_jobs() {
        let text = "fio --bs=8k --name=a --rw=randread --name=b --rw=write --bs=16k";
        assert_eq!(
            jobs(text),
            [
                ("a".to_owned(), true, Some(8192), 1),
                ("b".to_owned(), false, Some(16384), 1)
            ]
        );
        let set = parse("fio --runtime=3 --name=a --time_based --name=b --runtime=4").unwrap();
        let seconds: Vec<u64> = set
            .jobs
            .iter()
            .filter_map(|job| Some(job.runtime?.as_nanos() / 1_000_000_000))
            .collect();
        assert_eq!(seconds, [3, 4]);
    }

    #[test]
    fn job_files_on_a_command_line_are_read() {
        assert_eq!(jobs("fio job.fio --bs=64k").len(), 2);
        assert_eq!(jobs("fio --bs=64k job.fio")[1].2, Some(65536));
        assert_eq!(jobs("fio --section=b job.fio")[0].0, "b");
        assert_eq!(jobs("fio --group_reporting job.fio").len(), 2);
    }

    #[test]
    fn variables_of_the_shell_and_options_of_the_program_are_known() {
        let set = parse("fio --name=x --filename=${D} --minimal --eta=never --bs=4k").unwrap();
        assert_eq!(set.jobs[0].files.names, ["/dev/sdx"]);
        let names: Vec<&str> = set.ignored.iter().map(|option| option.name).collect();
        assert_eq!(names, ["eta", "filename", "minimal"]);
    }

    #[test]
    fn what_cannot_be_read_names_its_line_and_option() {
        for (text, line, option) in [
            ("fio --name=x \\\n --bss=4k", Some(2), "bss"),
            ("fio --name=x --rw=foo", Some(1), "rw"),
            ("fio --name=x\nfio --name=y", Some(2), ""),
            ("fio --name='x", Some(1), ""),
            ("fio --client=host job.fio", Some(1), "client"),
            ("fio none.fio --bs=4k", Some(1), ""),
            ("fio --section=c job.fio", None, "section"),
            ("fio --bs=4k --rw=read", None, ""),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(
                (error.line, &error.option[..]),
                (line, option),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn job_files_are_no_command_lines() {
        for text in [
            "[fio]\nrw=read\n",
            "; fio --name=x\n[a]\n",
            "# made by fio\n# fio made this\n[fio test]\nname=fio -x\n",
            "[global]\nbs=4k\n",
            "#!/usr/bin/env fio\n[a]\n",
            "",
        ] {
            assert!(!is_command_line(text), "{text}");
        }
    }
}
