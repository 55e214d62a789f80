//! Cost of a request besides arm and platters: command overheads and the bus.

use crate::config::{ElectronicsConfig, OverheadConfig, WriteDisconnectConfig, milliseconds};
use fullstroke_contract::ConfigError;
use fullstroke_units::{Duration, Sectors};

/// [`ElectronicsConfig`] in the drive's own units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Electronics {
    bus_read: Duration,
    bus_write: Duration,
    /// Number of sectors at these times, and the time of each further sector.
    bulk: Option<(u64, Duration)>,
    read_hit: Overhead,
    read_miss: Overhead,
    read_in_place: Overhead,
    write_hit: Overhead,
    write_miss: Overhead,
    pub(crate) read_completion: Duration,
    pub(crate) write_completion: Duration,
    pub(crate) data_preparation: Duration,
    pub(crate) read_watermark: f64,
    pub(crate) write_watermark: f64,
    pub(crate) watermark_of_segment: bool,
    pub(crate) partial_hits_wait: bool,
    pub(crate) write_reselect: Duration,
    write_disconnect: Option<(Duration, Duration)>,
    pub(crate) read_reselect: Duration,
    near_write_hits: bool,
    pub(crate) write_underruns: bool,
    pub(crate) shared_link: bool,
    pub(crate) write_data_early: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Overhead {
    after_read: Duration,
    after_write: Duration,
}

/// Kind of the previous request; a read before the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PreviousKind {
    #[default]
    Read,
    Write,
}

impl Overhead {
    fn new(key: &str, config: OverheadConfig) -> Result<Overhead, ConfigError> {
        Ok(Overhead {
            after_read: milliseconds(&format!("{key}.after_read_ms"), config.after_read_ms)?,
            after_write: milliseconds(&format!("{key}.after_write_ms"), config.after_write_ms)?,
        })
    }

    fn after(&self, before: PreviousKind) -> Duration {
        match before {
            PreviousKind::Read => self.after_read,
            PreviousKind::Write => self.after_write,
        }
    }

    fn mean(&self) -> Duration {
        (self.after_read + self.after_write) / 2
    }
}

impl Electronics {
    pub(crate) fn new(
        config: &ElectronicsConfig,
        command: Duration,
    ) -> Result<Electronics, ConfigError> {
        let ms = milliseconds;
        let marks = [
            ("read_watermark", config.read_watermark),
            ("write_watermark", config.write_watermark),
        ];
        if let Some((key, mark)) = marks
            .into_iter()
            .find(|(_, mark)| !(0.0..=1.0).contains(mark))
        {
            return Err(ConfigError::new(
                key,
                format!("found {mark}; expected 0 to 1"),
            ));
        }
        let hit = match config.hit_overhead_ms {
            Some(overhead) => ms("hit_overhead_ms", overhead)?,
            None => command,
        };
        let overhead = |key: &str, config: OverheadConfig, command: Duration| {
            let Overhead {
                after_read,
                after_write,
            } = Overhead::new(key, config)?;
            Ok(Overhead {
                after_read: after_read + command,
                after_write: after_write + command,
            })
        };
        let disconnect = |config: WriteDisconnectConfig| {
            Ok((
                ms("write_disconnect.seek_ms", config.seek_ms)? + command,
                ms("write_disconnect.data_ms", config.data_ms)? + command,
            ))
        };
        Ok(Electronics {
            bus_read: ms("bus_read_ms_per_sector", config.bus_read_ms_per_sector)?,
            bus_write: ms("bus_write_ms_per_sector", config.bus_write_ms_per_sector)?,
            bulk: bulk(config)?,
            read_hit: overhead("read_hit", config.read_hit, hit)?,
            read_miss: overhead("read_miss", config.read_miss, command)?,
            read_in_place: overhead(
                "read_in_place",
                config.read_in_place.unwrap_or(config.read_miss),
                command,
            )?,
            write_hit: overhead("write_hit", config.write_hit, hit)?,
            write_miss: overhead("write_miss", config.write_miss, command)?,
            read_completion: ms("read_completion_ms", config.read_completion_ms)?,
            write_completion: ms("write_completion_ms", config.write_completion_ms)?,
            data_preparation: ms("data_preparation_ms", config.data_preparation_ms)?,
            read_watermark: config.read_watermark,
            write_watermark: config.write_watermark,
            watermark_of_segment: config.watermark_of_segment,
            partial_hits_wait: config.partial_hits_wait,
            write_reselect: ms("write_reselect_ms", config.write_reselect_ms)?,
            write_disconnect: config.write_disconnect.map(disconnect).transpose()?,
            read_reselect: ms("read_reselect_ms", config.read_reselect_ms)?,
            near_write_hits: config.near_write_hits,
            write_underruns: config.write_underruns,
            shared_link: config.shared_link,
            write_data_early: config.write_data_early,
        })
    }

    /// Returns the mean bus time of a sector in a read of `sectors`.
    pub(crate) fn read_each(&self, sectors: Sectors) -> Duration {
        self.each(self.bus_read, sectors)
    }

    /// Returns the mean bus time of a sector in a write of `sectors`.
    pub(crate) fn write_each(&self, sectors: Sectors) -> Duration {
        self.each(self.bus_write, sectors)
    }

    fn each(&self, each: Duration, sectors: Sectors) -> Duration {
        match self.bulk {
            Some((measured, further)) if sectors.0 > measured => {
                (each * measured + further * (sectors.0 - measured)) / sectors.0
            }
            _ => each,
        }
    }

    /// Returns the overhead before a read from the buffer.
    pub(crate) fn read_hit(&self, before: PreviousKind) -> Duration {
        self.read_hit.after(before)
    }

    /// Returns the overhead before a read from the medium. `in_place` is true if the heads stand on
    /// the track.
    pub(crate) fn read_miss(&self, before: PreviousKind, in_place: bool) -> Duration {
        if in_place {
            self.read_in_place.after(before)
        } else {
            self.read_miss.after(before)
        }
    }

    /// Returns the overhead before a write into the buffer. `near` is true if the write lies near
    /// the last request.
    pub(crate) fn write_hit(&self, before: PreviousKind, near: bool) -> Duration {
        match (before, near) {
            _ if !self.near_write_hits => self.write_hit.after(before),
            (PreviousKind::Write, true) => self.write_hit.after_write,
            (PreviousKind::Read, true) => self.write_hit.mean(),
            (_, false) => self.write_hit.after_read,
        }
    }

    /// Returns the overheads before a write to the medium: until the arm moves, and until the data
    /// are sent.
    pub(crate) fn write_miss(&self, before: PreviousKind) -> (Duration, Duration) {
        match (self.write_disconnect, before) {
            (Some((seek, data)), _) => (seek, data + self.data_preparation),
            (None, before) => {
                let overhead = self.write_miss.after(before);
                (overhead, overhead + self.data_preparation)
            }
        }
    }
}

/// Reads the number of sectors at the measured bus times, and the time of each further sector.
fn bulk(config: &ElectronicsConfig) -> Result<Option<(u64, Duration)>, ConfigError> {
    let further = milliseconds("bus_bulk_ms_per_sector", config.bus_bulk_ms_per_sector)?;
    match config.bus_measured_sectors {
        Some(measured) => Ok(Some((u64::from(measured), further))),
        None if further > Duration::ZERO => Err(ConfigError::new(
            "bus_measured_sectors",
            "missing; expected a number of sectors beside bus_bulk_ms_per_sector",
        )),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_request_costs_the_measured_time_and_the_bulk_time() {
        let config = ElectronicsConfig {
            bus_read_ms_per_sector: 0.1,
            bus_measured_sectors: Some(8),
            bus_bulk_ms_per_sector: 0.01,
            ..ElectronicsConfig::default()
        };
        let electronics = Electronics::new(&config, Duration::ZERO).unwrap();
        let total =
            |sectors| electronics.read_each(Sectors(sectors)).as_millis_f64() * sectors as f64;
        assert!((total(8) - 0.8).abs() < 1e-3);
        assert!((total(108) - 1.8).abs() < 1e-3, "{}", total(108));
    }

    #[test]
    fn a_bulk_time_without_a_number_of_sectors_is_refused() {
        let config = ElectronicsConfig {
            bus_bulk_ms_per_sector: 0.01,
            ..ElectronicsConfig::default()
        };
        let error = Electronics::new(&config, Duration::ZERO).unwrap_err();
        assert_eq!(error.key, "bus_measured_sectors");
    }
}
