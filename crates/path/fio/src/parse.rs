//! Parser of a whole job file: its jobs, and the ignored options.

use crate::FioError;
use crate::command_line::is_command_line;
use crate::grammar;
use crate::ini::{JobSection, Setting, sections};
use crate::job::{Blocks, FioJob, IoDirection};
use crate::job_set::{IgnoredOption, JobSet};
use crate::option::{OptionEntry, OptionValue, Treatment, is_off};
use crate::options;
use crate::surroundings::JobSurroundings;
use crate::units::Amount;
use fullstroke_contract::Reason;
use fullstroke_units::SECTOR_BYTES;
use std::collections::BTreeMap;

/// Largest number of workers: the clones of all jobs.
const WORKERS_MAX: u64 = 4096;

impl JobSet {
    /// Parses the `text` of a job file called `file`. `environment` has the values of `${NAME}`.
    ///
    /// # Errors
    /// Returns the first line in error: an unknown option (with the nearest known name), an invalid
    /// value, or an option that would change the I/O in a way that is not simulated.
    pub fn parse(
        file: &str,
        text: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<JobSet, FioError> {
        JobSet::parse_in(file, text, &JobSurroundings::new(environment))
    }

    /// Parses the `text` of a job file called `file`, or a command line of fio. `around` has the variables, the keywords and
    /// the files to include.
    ///
    /// # Errors
    /// As [`parse`](JobSet::parse), and for an included file that cannot be read.
    pub fn parse_in(
        file: &str,
        text: &str,
        around: &JobSurroundings<'_>,
    ) -> Result<JobSet, FioError> {
        let text = crate::pasted::bare(text);
        if is_command_line(&text) {
            return JobSet::parse_command_line(file, &text, around);
        }
        JobSet::of_sections(file, &sections(file, &text, around)?)
    }

    /// Makes the jobs of the sections of `file`.
    pub(crate) fn of_sections(file: &str, sections: &[JobSection]) -> Result<JobSet, FioError> {
        let mut set = JobSet {
            file: file.to_owned(),
            jobs: Vec::new(),
            global: Vec::new(),
            ignored: Vec::new(),
            notes: Vec::new(),
            described: String::new(),
            off_volume: None,
            off_files: None,
        };
        for section in sections {
            let job = set.read_job(section)?;
            // Whether the jobs work on files is not known yet. The error counts only then.
            if set.off_files.is_none() {
                set.off_files = crate::files::check(&set, &job, section).err();
            }
            set.place(job)?;
        }
        set.note_devices();
        set.described = sections.iter().map(described).collect();
        if let Some(last) = sections.last() {
            set.global = last.inherited.iter().map(written).collect();
        }
        let workers: u64 = set.jobs.iter().map(|job| u64::from(job.clones)).sum();
        if workers > WORKERS_MAX {
            let found =
                format!("all jobs together have {workers} clones; expected at most {WORKERS_MAX}");
            return Err(set.error(None, "numjobs", found));
        }
        Ok(set)
    }

    /// Returns the options of the file that change nothing, in alphabetical order.
    pub fn ignored(&self) -> &[IgnoredOption] {
        &self.ignored
    }

    /// Returns every job with all settings and with replaced variables. Two files with the same
    /// meaning have the same description.
    pub fn description(&self) -> &str {
        &self.described
    }

    /// Returns the number of workers: the clones of all jobs.
    pub fn workers(&self) -> usize {
        self.jobs.iter().map(|job| job.clones as usize).sum()
    }

    pub(crate) fn error(
        &self,
        line: Option<usize>,
        option: &str,
        message: impl Into<String>,
    ) -> FioError {
        FioError {
            file: self.file.clone(),
            line: line.filter(|line| *line > 0),
            option: option.to_owned(),
            message: message.into(),
        }
    }

    /// Returns an error at a setting.
    pub(crate) fn error_at(&self, setting: &Setting, message: impl Into<String>) -> FioError {
        let file = setting.file.as_deref().unwrap_or(&self.file).to_owned();
        FioError {
            file,
            ..self.error(Some(setting.line), &setting.option, message)
        }
    }

    fn read_job(&mut self, section: &JobSection) -> Result<FioJob, FioError> {
        let mut job = FioJob::new(&section.name, section.line);
        let settings = || section.inherited.iter().chain(&section.own);
        let mut kb_base = 1024;
        // Read before all others, because values in front of the option depend on it, too.
        for setting in settings().filter(|setting| setting.option == "kb_base") {
            kb_base = grammar::kb_base(setting.value.as_deref().unwrap_or_default())
                .map_err(|problem| self.error_at(setting, problem))?;
        }
        for setting in settings() {
            self.read_setting(&mut job, setting, kb_base)?;
        }
        if job.is_in_pages() {
            let note = "blocks that are no multiple of 512 bytes reach the volume in whole pages of 4 KiB, as buffered I/O does";
            let note = format!("[{}]: {note}", job.name);
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        if job.fills {
            (job.size, job.file_size) = (None, None);
        }
        job.options = section.own.iter().map(written).collect();
        self.ignore_names(&job);
        self.check(&job, section)?;
        Ok(job)
    }

    fn read_setting(
        &mut self,
        job: &mut FioJob,
        setting: &Setting,
        kb_base: u64,
    ) -> Result<(), FioError> {
        let Setting { option, value, .. } = setting;
        let value = value.as_deref();
        let told = |set: &JobSet, problem: Reason| {
            let message = match &setting.unset {
                Some(name) => format!(
                    "the variable `{name}` is not set in the environment; set it, as in `{name}=VALUE fullstroke ...` ({problem})"
                ),
                None => problem.to_string(),
            };
            set.error_at(setting, message)
        };
        let Some(entry) = options::find(option) else {
            let near = options::nearest(option);
            let message = format!("fullstroke knows no such option of fio{near}");
            return Err(self.error_at(setting, message));
        };
        let given = OptionValue {
            text: value,
            kb_base,
        };
        match entry.treatment {
            Treatment::Simulated(read) => {
                read(job, given).map_err(|problem| told(self, problem))?;
            }
            Treatment::OnFiles(read, off) => {
                read(job, given).map_err(|problem| told(self, problem))?;
                if !off.is_empty() && !is_off(off, value) {
                    let message = "every job works on one volume here; the option needs jobs on files, with [host.files] in the stack";
                    let error = self.error_at(setting, message);
                    self.off_volume.get_or_insert(error);
                } else if off.is_empty() {
                    self.ignore(entry, option, "every job works on the volume");
                }
            }
            Treatment::Ignored => self.ignore(entry, option, entry.note),
            Treatment::Refused(off) if is_off(off, value) => {}
            Treatment::Refused(_) => {
                let message = format!("is not simulated, and would change the I/O: {}", entry.note);
                return Err(self.error_at(setting, message));
            }
        }
        for note in job.notes.drain(..) {
            let note = format!("{option}={}: {note}", value.unwrap_or_default());
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(())
    }

    fn ignore(&mut self, entry: &OptionEntry, option: &str, why: &'static str) {
        let name = entry.names.iter().copied().find(|name| *name == option);
        self.ignore_name(name.unwrap_or_default(), why);
    }

    fn ignore_name(&mut self, name: &'static str, why: &'static str) {
        let place = self
            .ignored
            .binary_search_by_key(&name, |ignored| ignored.name);
        if let Err(place) = place {
            self.ignored.insert(place, IgnoredOption { name, why });
        }
    }

    /// Ignores names without effect: a device's, because the volume takes its place, and the names
    /// of a job that works on the whole volume.
    fn ignore_names(&mut self, job: &FioJob) {
        let mut device = job
            .files
            .names
            .iter()
            .filter(|name| name.starts_with("/dev/"));
        if device.next().is_some() {
            self.ignore_name("filename", "the volume takes the place of the device");
        } else if !job.has_files() && !job.files.names.is_empty() {
            self.ignore_name(
                "filename",
                "the job has no size, and works on the whole volume",
            );
        }
        if !job.has_files() && !job.files.directories.is_empty() {
            self.ignore_name("directory", "the job works on the whole volume");
        }
    }

    /// Notes that several devices are one volume. Jobs on different disks would meet at the same
    /// addresses.
    fn note_devices(&mut self) {
        let mut devices: Vec<&str> = Vec::new();
        for name in self.jobs.iter().flat_map(|job| &job.files.names) {
            if name.starts_with("/dev/") && !devices.contains(&name.as_str()) {
                devices.push(name);
            }
        }
        if devices.len() < 2 {
            return;
        }
        let note = format!(
            "the {} devices {} are one volume here, so their I/O has the same addresses; offset= sets jobs apart, and a job file for each device simulates disks alone",
            devices.len(),
            devices.join(", ")
        );
        self.notes.push(note);
    }

    /// Appends a job, and sets the group, the stage and the awaited job.
    fn place(&mut self, mut job: FioJob) -> Result<(), FioError> {
        if let Some(last) = self.jobs.last() {
            // A stonewall begins a new group, as in fio's `add_job`.
            job.group = last.group + u32::from(job.stonewall || job.new_group);
            job.stage = last.stage + usize::from(job.stonewall);
        }
        job.place = self.jobs.len();
        if let Some(name) = &job.wait_for {
            let bearers: Vec<&FioJob> = self
                .jobs
                .iter()
                .filter(|other| other.name == *name)
                .collect();
            let [bearer] = bearers[..] else {
                let found = format!(
                    "found `{name}`; expected the name of one job above, and {} have it",
                    bearers.len()
                );
                return Err(self.error(Some(job.line), "wait_for", found));
            };
            job.waits_for = Some(bearer.place);
        }
        self.jobs.push(job);
        Ok(())
    }

    /// Checks rules that involve several options.
    fn check(&self, job: &FioJob, section: &JobSection) -> Result<(), FioError> {
        let fail = |options: &[&str], message: String| {
            let settings = section
                .own
                .iter()
                .rev()
                .chain(section.inherited.iter().rev());
            let mut found = settings.filter(|setting| options.contains(&setting.option.as_str()));
            match found.next() {
                Some(setting) => FioError {
                    option: options[0].to_owned(),
                    ..self.error_at(setting, message)
                },
                None => self.error(Some(section.line), options[0], message),
            }
        };
        let sectors = |bytes: u64, options: &[&str]| {
            if bytes.is_multiple_of(SECTOR_BYTES) {
                return Ok(());
            }
            let message = format!("found {bytes} bytes; expected a multiple of {SECTOR_BYTES}");
            Err(fail(options, message))
        };
        // Buffered I/O of any size reaches the volume in pages; the kernel refuses such direct I/O.
        for blocks in job.used_blocks().filter(|_| job.direct) {
            match blocks {
                Blocks::Range(low, high) => {
                    let options = ["bs", "blocksize", "bsrange", "blocksize_range"];
                    sectors(*low, &options)?;
                    sectors(*high, &options)?;
                }
                Blocks::Split(parts) => {
                    parts
                        .iter()
                        .try_for_each(|(bytes, _)| sectors(*bytes, &["bssplit"]))?;
                }
            }
        }
        sectors(job.zones.size.unwrap_or(0), &["zonesize"])?;
        sectors(job.zones.range.unwrap_or(0), &["zonerange"])?;
        sectors(job.zones.skip, &["zoneskip"])?;
        let smallest = job.used_blocks().map(Blocks::smallest).min().unwrap_or(0);
        job.zones
            .check(smallest)
            .map_err(|(option, message)| fail(&[option], message.to_string()))?;
        for direction in IoDirection::ALL
            .into_iter()
            .filter(|direction| job.work.goes(*direction))
        {
            if let Some(alignment) = job.alignment {
                sectors(alignment[direction as usize], &["blockalign", "ba"])?;
            }
        }
        if !job.random {
            sectors(job.modifier.unsigned_abs(), &["rw", "readwrite"])?;
        }
        for (amount, option) in [
            (job.offset, "offset"),
            (job.offset_increment, "offset_increment"),
        ] {
            if let Amount::Bytes(bytes) = amount {
                sectors(bytes, &[option])?;
            }
        }
        sectors(job.offset_align, &["offset_align"])?;
        if job.time_based && job.runtime.is_none() {
            let message = "the job never ends without `runtime`; set runtime=";
            return Err(fail(&["time_based"], message.to_owned()));
        }
        Ok(())
    }
}

fn described(section: &JobSection) -> String {
    let settings = section.inherited.iter().chain(&section.own).map(written);
    let lines: Vec<String> = settings
        .map(|(option, value)| format!("{option}={value}\n"))
        .collect();
    format!("[{}]\n{}", section.name, lines.concat())
}

fn written(setting: &Setting) -> (String, String) {
    (
        setting.option.clone(),
        setting.value.clone().unwrap_or_else(|| "1".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::OPTIONS;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<JobSet, FioError> {
        JobSet::parse("a.fio", text, &BTreeMap::new())
    }

    #[test]
    fn own_settings_win_over_global_ones() {
        let set = parse("[global]\nbs=4k\niodepth=8\n[a]\nbs=8k\n[b]\n").unwrap();
        let sizes: Vec<Option<u64>> = set.jobs.iter().map(FioJob::single_size).collect();
        assert_eq!(sizes, [Some(8192), Some(4096)]);
        assert_eq!(set.jobs[1].depth, 8);
    }

    #[test]
    fn groups_begin_at_stonewalls_and_new_groups() {
        let set =
            parse("[a]\nstonewall\n[b]\n[c]\nnew_group\n[d]\nstonewall=1\n[e]\nstonewall=0\n")
                .unwrap();
        let places: Vec<(u32, usize)> = set.jobs.iter().map(|job| (job.group, job.stage)).collect();
        assert_eq!(places, [(0, 0), (0, 0), (1, 0), (2, 1), (2, 1)]);
    }

    #[test]
    fn several_devices_are_noted_as_one_volume() {
        let notes = |text: &str| parse(text).unwrap().notes;
        for text in [
            "[a]\nfilename=/dev/sda:/dev/sdb\n",
            "[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\n",
        ] {
            let notes = notes(text);
            assert!(
                notes
                    .iter()
                    .any(|note| note.contains("the 2 devices /dev/sda, /dev/sdb are one volume")),
                "{text}: {notes:?}"
            );
        }
        let one = "[global]\nfilename=/dev/sda\n[a]\n[b]\noffset=1g\n";
        assert_eq!(notes(one), Vec::<String>::new());
    }

    #[test]
    fn ignored_options_are_named_once() {
        let set =
            parse("[global]\nfilename=/dev/x\ndirect=1\n[a]\nthread\ndirect=0\n[b]\n").unwrap();
        let names: Vec<&str> = set.ignored().iter().map(|ignored| ignored.name).collect();
        assert_eq!(names, ["filename", "thread"]);
    }

    #[test]
    fn what_cannot_be_used_is_refused_at_its_line_with_its_option() {
        for (text, line, option) in [
            ("[a]\ndirect=1\nbs=1000\n", 3, "bs"),
            ("[a]\nbss=4k\n", 2, "bss"),
            ("[a]\nrw=foo\n", 2, "rw"),
            ("[a]\nrw=READ\n", 2, "rw"),
            ("[a]\nverify=md5x\n", 2, "verify"),
            ("[a]\nzonemode=zbd\n", 2, "zonemode"),
            ("[a]\nzonemode=strided\n", 2, "zonemode"),
            ("[a]\nzonesize=1m\n", 2, "zonesize"),
            ("[a]\nzonemode=strided\nzonesize=1z\n", 3, "zonesize"),
            (
                "[a]\nbs=64k\nzonemode=strided\nzonesize=4k\n",
                4,
                "zonesize",
            ),
            ("[a]\nioengine=external:/x/y.o\n", 2, "ioengine"),
            ("[a]\nrw=${NEVER_SET}\n", 2, "rw"),
            ("[a]\nsize=1m\niodepth=0\n", 3, "iodepth"),
            ("[a]\nnumjobs=0\n", 2, "numjobs"),
            ("[a]\nrwmixread=101\n", 2, "rwmixread"),
            ("[a]\nprio=9\n", 2, "prio"),
            ("[a]\nprioclass=4\n", 2, "prioclass"),
            ("[a]\nioengine=net\n", 2, "ioengine"),
            ("[a]\ntime_based\n", 2, "time_based"),
            ("[a]\nwait_for=b\n[b]\n", 1, "wait_for"),
            ("[a]\ndirect=1\nbssplit=4k/50:100/50\n", 3, "bssplit"),
            ("[a]\nrw=read:100\n", 2, "rw"),
            ("[a]\nrunning\n", 2, "running"),
            ("[a]\nread_iolog=x\n", 2, "read_iolog"),
            ("[a]\nthinktime\n", 2, "thinktime"),
            ("[a]\ntime_based=yes\n", 2, "time_based"),
            ("[a]\nkb_base=1025\n", 2, "kb_base"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(
                (error.line, error.option.as_str()),
                (Some(line), option),
                "{text}: {error}"
            );
        }
        assert!(
            parse("[a]\nbs=4k\nrw=${NEVER_SET}\n")
                .unwrap_err()
                .message
                .contains("the variable `NEVER_SET` is not set")
        );
        assert!(
            parse("[a]\nio_depth=4\n")
                .unwrap_err()
                .to_string()
                .contains("did you mean `iodepth`?")
        );
        assert!(parse("[a]\nverify=0\nzonemode=none\n").is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_text_gives_jobs_or_an_error(text in "(\\[[a-z]{0,6}\\]?\n|[a-z_]{0,12}=?[-0-9a-z(){}$:/,.%^*+ ]{0,20}\n|\\PC{0,20}\n){0,12}") {
            if let Ok(set) = parse(&text) {
                prop_assert!(set.workers() > 0);
            }
        }

        #[test]
        fn any_value_of_any_option_is_read_or_refused(
            index in 0..OPTIONS.len(), value in "[-0-9a-z(){}$:/,.%^*+_ ]{0,24}",
        ) {
            let name = OPTIONS[index].names[0];
            if let Err(error) = parse(&format!("[a]\n{name}={value}\n")) {
                prop_assert!(!error.message.is_empty());
            }
        }
    }
}
