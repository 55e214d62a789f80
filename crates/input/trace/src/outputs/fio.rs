//! fio's iolog, version 3.

use super::text::TextFile;
use super::{RecordWriter, TraceOutput};
use crate::{TraceError, TraceRecord};
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;
use std::collections::BTreeSet;
use std::path::Path;

pub(super) const OUTPUT: TraceOutput = TraceOutput {
    name: "fio",
    summary: "fio iolog version 3: times in us, one file `device<number>` per device",
    loses: "times are cut to 1 us; standbys and starts are left out; processes and the times of issue and completion are lost",
    endings: &[".fio", ".iolog"],
    create: |path| Ok(Box::new(Fio::create(path)?)),
};

const NANOS_PER_MICRO: u64 = 1_000;

struct Fio {
    file: TextFile,
    /// Devices whose file has been opened in the log.
    devices: BTreeSet<u32>,
    /// Latest time so far, in us.
    now: u64,
}

impl Fio {
    fn create(path: &Path) -> Result<Fio, TraceError> {
        let mut file = TextFile::create(path)?;
        file.line(format_args!("fio version 3 iolog"))?;
        Ok(Fio {
            file,
            devices: BTreeSet::new(),
            now: 0,
        })
    }
}

impl RecordWriter for Fio {
    fn write(&mut self, record: &TraceRecord) -> Result<bool, TraceError> {
        let action = match record.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "sync",
            Operation::Discard => "trim",
            Operation::Standby | Operation::Start | Operation::Answer => return Ok(false),
        };
        let (now, device) = (record.arrival.as_nanos() / NANOS_PER_MICRO, record.device);
        self.now = now;
        if self.devices.insert(device) {
            self.file.line(format_args!("{now} device{device} add"))?;
            self.file.line(format_args!("{now} device{device} open"))?;
        }
        let offset = u128::from(record.extent.start.0) * u128::from(SECTOR_BYTES);
        let length = u128::from(record.extent.sectors.0) * u128::from(SECTOR_BYTES);
        self.file.line(format_args!(
            "{now} device{device} {action} {offset} {length}"
        ))?;
        Ok(true)
    }

    fn finish(mut self: Box<Self>) -> Result<(), TraceError> {
        for device in &self.devices {
            self.file
                .line(format_args!("{} device{device} close", self.now))?;
        }
        self.file.finish()
    }
}
