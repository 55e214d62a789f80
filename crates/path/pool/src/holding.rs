//! The settings of a pool that holds files in place of a volume.

use crate::config::PoolSettings;
use crate::files::records_of_all;
use fullstroke_contract::{ConfigError, DatasetStart};
use fullstroke_units::Bytes;

impl PoolSettings {
    /// Returns the settings for a file system in place of the volume. `start` has the
    /// objects at the start of a run.
    ///
    /// # Errors
    /// Names a key that has no meaning for files, or the size of the dataset if the files are too
    /// large.
    pub fn holding(self, start: DatasetStart) -> Result<PoolSettings, ConfigError> {
        let fail = |key: &str, message: String| Err(ConfigError::new(key, message));
        if self.caches > 0 {
            let message = format!(
                "found {}; the cache on flash devices holds records of one size, and files have smaller ones. Remove this key",
                self.caches
            );
            return fail("caches", message);
        }
        if self.memory.processor.is_some() {
            let message = "the processor's time is known for records of one size, and files have smaller ones. Remove this key, or use copy_mb_per_s of [host.files]";
            return fail("processor", message.to_owned());
        }
        let records = records_of_all(&start.files, self.record);
        if records * self.record > self.volsize {
            let message = format!(
                "the files of the programs need {} in records of {}, and the dataset has {}",
                Bytes(records * self.record),
                Bytes(self.record),
                Bytes(self.volsize)
            );
            return fail("volsize", message);
        }
        if self.scan.scrub && records == 0 {
            let message = "found true, and no program has files at the start of the run; a scrub reads the data of the start";
            return fail("scrub", message.to_owned());
        }
        Ok(PoolSettings {
            volsize: records.max(1) * self.record,
            files: Some(start),
            ..self
        })
    }

    /// Refuses keys that need files, for a pool with a volume.
    ///
    /// # Errors
    /// Names the key.
    pub fn check_volume(&self) -> Result<(), ConfigError> {
        if self.small_blocks == 0 {
            return Ok(());
        }
        let message = format!(
            "found {}; a volume has blocks of one size, and ZFS before 2.4 keeps them off the special vdev. Give [host.files] kind = \"zfs\", or remove this key",
            Bytes(self.small_blocks)
        );
        Err(ConfigError::new("special_small_blocks", message))
    }
}
