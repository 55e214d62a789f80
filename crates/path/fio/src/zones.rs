//! Zones of `zonemode=strided`: a job works in one zone, skips a part of the file, and goes on in the
//! next zone.
//!
//! The rules are those of `setup_strided_zone_mode` in fio's `io_u.c`, held to logs of fio 3.33.

use fullstroke_contract::{Reason, reason};

/// Options of the zones, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ZonesOfJob {
    /// True with `zonemode=strided`. Default: false.
    pub(crate) strided: bool,
    /// Amount of I/O in a zone (`zonesize`).
    pub(crate) size: Option<u64>,
    /// Length of a zone (`zonerange`). Default: `zonesize`.
    pub(crate) range: Option<u64>,
    /// Distance between two zones (`zoneskip`). Default: 0.
    pub(crate) skip: u64,
}

impl ZonesOfJob {
    /// Checks the options together. `smallest` is the smallest block of the job.
    ///
    /// # Errors
    /// The option that does not fit, with the reason.
    pub(crate) fn check(&self, smallest: u64) -> Result<(), (&'static str, Reason)> {
        let Some(size) = self.size else {
            return match self.strided {
                true => Err((
                    "zonemode",
                    "zonemode=strided needs zonesize=, as in fio".into(),
                )),
                false => Ok(()),
            };
        };
        if !self.strided {
            let message = "zonesize needs zonemode=strided; fio refuses zonesize alone, too";
            return Err(("zonesize", message.into()));
        }
        if size.min(self.range.unwrap_or(size)) < smallest {
            return Err((
                "zonesize",
                reason!("a zone is smaller than a block of {smallest} bytes"),
            ));
        }
        Ok(())
    }

    /// Returns the walk over the zones; `None` without zones.
    pub(crate) fn walk(&self) -> Option<ZoneWalk> {
        let size = self.size.filter(|_| self.strided)?;
        Some(ZoneWalk {
            size,
            range: self.range.unwrap_or(size),
            skip: self.skip,
            start: 0,
            done: 0,
        })
    }
}

/// Zone of the next block. Bytes count from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneWalk {
    size: u64,
    /// Length of a zone.
    pub(crate) range: u64,
    skip: u64,
    /// First byte of the current zone.
    pub(crate) start: u64,
    /// Amount of I/O in the current zone.
    done: u64,
}

impl ZoneWalk {
    /// Begins the next zone if the current zone has had its amount. Behind the end of a file of
    /// `length` bytes, the first zone begins again. Returns true if the blocks of the zone begin
    /// anew: in a new zone, and after each `range` bytes of one zone.
    pub(crate) fn turn(&mut self, length: u64) -> bool {
        if self.done >= self.size {
            self.done = 0;
            self.start = self
                .start
                .saturating_add(self.range)
                .saturating_add(self.skip);
            if self.start >= length {
                self.start = 0;
            }
            return true;
        }
        self.done > 0 && self.done.is_multiple_of(self.range)
    }

    /// Counts I/O in the current zone.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
    }

    /// Begins again at the first zone.
    pub(crate) fn restart(&mut self) {
        (self.start, self.done) = (0, 0);
    }
}
