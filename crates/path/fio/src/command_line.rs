//! Command lines of fio as job files: `fio --name=a --rw=randread --bs=4k`.
//!
//! A text with a command is read as a shell would read it: quotes, backslashes at line
//! ends, `sudo`, `docker run` and other commands in front of `fio`, prompts, variables, pipes and redirections behind. As in
//! fio, `--name` begins a job, and options in front of the first `--name` hold for all jobs
//! (`parse_cmd_line` in fio's `init.c`). One dash is as good as two (`getopt_long_only`).

use crate::ini::{Sections, Setting, setting};
use crate::job_set::IgnoredOption;
use crate::shell::{DASHES, Word, commands, is_call, is_fio, is_option};
use crate::surroundings::JobSurroundings;
use crate::{FioError, JobSet, options};
use fullstroke_units::order_by_key;
use std::collections::BTreeMap;

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
/// comment calls `fio`, or begins with an option. A script may have other commands in front, if the
/// text has no section.
pub(crate) fn is_command_line(text: &str) -> bool {
    let is_section = |line: &str| line.starts_with('[') && line.ends_with(']');
    let significant = |line: &&str| {
        // `# fio --name=x` is a command behind the prompt of a superuser.
        let prompt = line.strip_prefix('#').is_some_and(is_call);
        let comment = line.starts_with(['#', ';']) && !prompt;
        !line.is_empty() && !comment
    };
    let mut lines = text.lines().map(str::trim);
    let first = lines.clone().find(significant).unwrap_or_default();
    if !is_section(first) && (is_option(first) || calls_fio(first)) {
        return true;
    }
    // A here document may hold a job file, whose sections make the text no command line.
    !lines.any(is_section)
        && commands(text).is_ok_and(|commands| commands.iter().any(|words| call(words).is_some()))
}

/// Returns true if a word of the line is `fio`, and an argument follows.
fn calls_fio(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| !is_fio(word));
    // `fio = 3` is a setting of a job file, not a command.
    words.next().is_some() && words.next().is_some_and(|next| next != "=")
}

/// Commands that take `fio` as the name of a package or of a process.
const ABOUT_FIO: &[&str] = &[
    "install", "add", "upgrade", "killall", "pkill", "pgrep", "which",
];

/// Programs that run fio in a container.
const CONTAINERS: &[&str] = &["docker", "podman", "nerdctl", "kubectl", "oc"];

/// Returns the arguments of fio if the command calls fio: also in a container, over ssh, and by
/// another shell (`bash -c 'fio ...'`).
fn call(words: &[Word]) -> Option<Vec<Word>> {
    let is_program = |at: &usize| {
        // `-v /data:/fio` is a folder of a container, `--filename=/mnt/fio` a file.
        is_fio(&words[*at].0) && !words[*at].0.contains([':', '='])
            || is_windows_path(&words[*at].0)
    };
    let takes_option = |at: &usize| words.get(at + 1).is_some_and(|(next, _)| is_option(next));
    let programs = || (0..words.len()).filter(is_program);
    let has = |names: &[&str]| words.iter().any(|(word, _)| names.contains(&&word[..]));
    let takes_file = |at: &usize| !has(ABOUT_FIO) && at + 1 < words.len();
    // Options of a container may have the word, too: `docker run --name fio -v ...`.
    let found = match has(CONTAINERS) {
        true => programs()
            .rfind(takes_option)
            .or_else(|| programs().rfind(takes_file)),
        false => programs()
            .find(takes_option)
            .or_else(|| programs().find(takes_file)),
    };
    if let Some(at) = found {
        return Some(words[at + 1..].to_vec());
    }
    words
        .iter()
        .filter(|(word, _)| word.contains(char::is_whitespace))
        .find_map(|(word, line)| {
            let inner = commands(word).ok()?;
            // A word that stays whole, as one with a no-break space, would be asked for ever.
            let mut inner = inner.iter().filter(|words| words.len() > 1);
            let found = inner.find_map(|words| call(words))?;
            Some(
                found
                    .into_iter()
                    .map(|(word, at)| (word, at + line - 1))
                    .collect(),
            )
        })
}

/// Returns true for a path like `C:\fio\fio.exe`.
fn is_windows_path(word: &str) -> bool {
    word.ends_with("\\fio.exe")
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
            if !is_option(&word) {
                files.push((word, at));
                continue;
            }
            let option = word.trim_start_matches(DASHES);
            // A value may begin with one dash. Two dashes, or a long one, begin the next option.
            let next = || {
                words
                    .next_if(|(next, _)| !next.starts_with("--") && !next.starts_with(&DASHES[1..]))
            };
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
        let mut set = JobSet::of_sections(file, &jobs).map_err(with_shell_variable)?;
        for option in ignored {
            if !set.ignored.contains(&option) {
                set.ignored.push(option);
            }
        }
        order_by_key(&mut set.ignored, |option| option.name);
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
    let mut variables = Variables::default();
    let mut calls = Vec::new();
    for words in &commands {
        variables.read(words);
        calls.extend(call(words).map(|words| variables.expanded(words)));
    }
    if calls.is_empty() {
        // A text that begins with options is the rest of a command, without the word `fio`.
        return Ok(commands.into_iter().next().unwrap_or_default());
    }
    let only = calls.swap_remove(0);
    match calls.first().and_then(|second| second.first()) {
        None => Ok(only),
        Some((_, at)) => {
            let message = format!(
                "found {} commands of fio; give one at a time, or a job file with stonewall between the jobs",
                calls.len() + 1
            );
            Err(failed(file, *at, "", message))
        }
    }
}

/// Values of the variables that a script sets in front of the command.
#[derive(Default)]
struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    /// Reads `NAME=value` at the beginning of a command, also behind `export`.
    fn read(&mut self, words: &[Word]) {
        for (word, _) in words {
            match word.split_once('=') {
                Some((name, value)) if is_name(name) => {
                    let value = self.replaced(value);
                    self.values.insert(name.to_owned(), value);
                }
                _ if matches!(
                    &word[..],
                    "export" | "declare" | "local" | "readonly" | "env" | "sudo"
                ) => {}
                _ => break,
            }
        }
    }

    fn expanded(&self, words: Vec<Word>) -> Vec<Word> {
        words
            .into_iter()
            .map(|(word, at)| (self.replaced(&word), at))
            .collect()
    }

    /// Replaces `$NAME` and `${NAME}` for known names. fio has variables of its own (`$jobname`).
    fn replaced(&self, word: &str) -> String {
        // The number of processors: fio's keyword.
        let word = word.replace("$(nproc)", "$ncpus");
        let mut replaced = String::new();
        let mut rest = &word[..];
        while let Some(at) = rest.find('$') {
            replaced.push_str(&rest[..at]);
            let inside = rest[at + 1..].strip_prefix('{');
            let name = inside.unwrap_or(&rest[at + 1..]);
            let length = name
                .find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric())
                .unwrap_or(name.len());
            let length_with_signs = at + 1 + length + 2 * usize::from(inside.is_some());
            let closed = inside.is_none() || name[length..].starts_with('}');
            match self.values.get(&name[..length]).filter(|_| closed) {
                Some(value) => {
                    replaced.push_str(value);
                    rest = &rest[length_with_signs..];
                }
                None => {
                    replaced.push('$');
                    rest = &rest[at + 1..];
                }
            }
        }
        replaced + rest
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .chars()
            .all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
}

/// Says of an error about `$NAME` that the name is a variable of the shell.
fn with_shell_variable(mut error: FioError) -> FioError {
    if let Some(at) = error.message.find("found `$") {
        let name: String = error.message[at + "found `$".len()..]
            .chars()
            .take_while(|letter| *letter == '_' || letter.is_ascii_alphanumeric())
            .collect();
        if is_name(&name) {
            let hint = format!(
                "; `${name}` is a variable of the shell: put its value in its place, or a line {name}=VALUE in front"
            );
            error.message.push_str(&hint);
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::FioJob;
    use crate::surroundings::IncludedFile;
    use std::collections::BTreeMap;

    fn parse(text: &str) -> Result<JobSet, FioError> {
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
            "docker run --rm --name fio -v /mnt:/fio \\\n  -v /data:/data xridge/fio fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio",
            "kubectl exec -it pod -- fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio",
            "ssh root@nas 'fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio'",
            "docker run ubuntu bash -c \"apt install -y fio && fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio\"",
            "```bash\n$ fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio\n```\n",
            "`fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio`",
            "fio \u{2013}name=x \u{2013}rw=randread \u{2013}bs=\u{201c}4k\u{201d} \u{2014}iodepth=32 \u{2013}ioengine libaio",
            "fio --name=x --rw=randread \\ \n  --bs=4k --iodepth=32 --ioengine=libaio\n",
            "fio --name=x\n  --rw=randread\n  --bs=4k --iodepth=32 --ioengine=libaio\n",
            "fio.exe --name=x --rw=randread ^\r\n --bs=4k --iodepth=32 --ioengine=libaio --filename=\\\\.\\PhysicalDrive1\r\n",
            "C:\\fio\\fio.exe --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio",
            "\"C:\\Program Files\\fio\\fio.exe\" --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio",
            "#!/bin/bash\nset -e\n# don't run this twice\nexport BS=4k DEPTH=32\nsudo apt install fio\nDIR=/mnt\nmkdir -p $DIR\nfio --name=x --rw=randread --bs=$BS --iodepth=${DEPTH} --ioengine=libaio --directory=$DIR\n",
            "\u{feff}fio --name=x --rw=randread --bs=4k --iodepth=32 --ioengine=libaio --output=$(date +%F).json",
            "cat > job.fio <<EOF\n[x]\nrw=randread\nbs=4k\niodepth=32\nioengine=libaio\nEOF\nfio job.fio\n",
        ] {
            assert_eq!(jobs(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_with_a_no_break_space_is_looked_at_once() {
        for text in ["a\u{a0}b", "ssh host 'a\u{2003}b'", "x\u{3000}fio"] {
            assert!(!is_command_line(text), "{text}");
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
        let set =
            parse("N=2\nfio --name=x --numjobs=$N --iodepth=$(nproc) --size=$UNKNOWN").unwrap_err();
        assert!(set.message.contains("UNKNOWN=VALUE"), "{set}");
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
            (
                "for b in 4k 8k; do\nfio --name=x --bs=$b; done",
                Some(2),
                "bs",
            ),
            (
                "x: (g=0): rw=read, bs=(R) 4096B-4096B\nfio-3.28\n",
                Some(1),
                "x: (g",
            ),
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
