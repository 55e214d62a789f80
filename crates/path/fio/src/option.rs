//! One option of a job file: how its value is read, and what becomes of the option.

use crate::job::Job;
use fullstroke_contract::Reason;

/// The value of a setting, and what is needed to read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    /// `None` where the option stands alone.
    pub(crate) text: Option<&'a str>,
    pub(crate) kb_base: u64,
}

/// Writes a value into the job; the error says what was found and expected.
pub(crate) type Read = fn(&mut Job, Value<'_>) -> Result<(), Reason>;

/// What becomes of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// It does what it does in fio.
    Simulated(Read),
    /// It does what it does in fio, on files. A volume's jobs have no use for it, and
    /// where values are given here it would change their I/O: they take only those.
    OnFiles(Read, &'static [&'static str]),
    /// It does not change the I/O that a volume sees.
    Ignored,
    /// It would change the I/O; only the values that switch it off are taken.
    Refused(&'static [&'static str]),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionEntry {
    /// The name, and behind it its other names.
    pub(crate) names: &'static [&'static str],
    pub(crate) treatment: Treatment,
    /// What it means here, or why it is ignored or refused.
    pub(crate) note: &'static str,
    /// What jobs on files take of it, where that is not all.
    pub(crate) files: Option<OnFiles>,
}

/// What jobs on files take of an option that means something else to a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnFiles {
    /// The values that are taken.
    pub(crate) taken: &'static [&'static str],
    /// Why no other is.
    pub(crate) why: &'static str,
}

impl OnFiles {
    /// For people: `files stay; expected 0`.
    pub(crate) fn expected(self) -> String {
        match self.taken {
            [] => format!("{}; leave it out", self.why),
            [only] => format!("{}; expected {only}", self.why),
            several => format!("{}; expected one of {}", self.why, several.join(", ")),
        }
    }
}

impl OptionEntry {
    /// The same, of which jobs on files take these values alone.
    pub(crate) const fn on_files(
        self,
        taken: &'static [&'static str],
        why: &'static str,
    ) -> OptionEntry {
        OptionEntry {
            files: Some(OnFiles { taken, why }),
            ..self
        }
    }
}
