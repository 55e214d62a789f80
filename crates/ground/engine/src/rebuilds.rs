//! Progress and speed of rebuilds, from the notices of volumes.

use fullstroke_contract::{Notice, Signal};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};

/// Length of a span. The recent speed is the mean over the current span and the span before.
const SPAN: Duration = Duration::from_nanos(5_000_000_000);

/// The latest rebuild of each member that was ever rebuilt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilds {
    all: Vec<Rebuild>,
}

/// The rebuild of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuild {
    /// Path of the member: the member indices from the top.
    pub path: Vec<usize>,
    /// Start of the rebuild: time and filled part.
    pub began: RebuildMark,
    /// Latest known state.
    pub latest: RebuildMark,
    /// End of the addresses to fill.
    pub used: Sectors,
    /// True if all addresses are filled.
    pub whole: bool,
    /// State at the start of the current span and at the start of the span before.
    spans: [RebuildMark; 2],
}

/// The state of a rebuild at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildMark {
    /// Time.
    pub at: Time,
    /// Addresses of the member below this were filled.
    pub done: Sectors,
}

impl Rebuilds {
    /// Records the start of a rebuild: the member at `path` is to be filled from `done` up to
    /// `used`.
    pub fn begin(&mut self, now: Time, path: &[usize], done: Sectors, used: Sectors) {
        let mark = RebuildMark { at: now, done };
        // A member has one record. A second rebuild of the same member replaces the first.
        self.forget(path);
        let (path, spans) = (path.to_vec(), [mark; 2]);
        self.all.push(Rebuild {
            path,
            began: mark,
            latest: mark,
            used,
            whole: false,
            spans,
        });
    }

    /// Removes the record of the member at `path`.
    pub fn forget(&mut self, path: &[usize]) {
        self.all.retain(|rebuild| rebuild.path != path);
    }

    /// Evaluates a notice from the volume at `path`.
    pub fn note_notice(&mut self, path: &[usize], notice: &Notice) {
        let Signal::Rebuilt {
            member,
            done,
            used,
            whole,
        } = notice.signal
        else {
            return;
        };
        let now = notice.at;
        let path = [path, &[member as usize]].concat();
        let goes_on = |rebuild: &Rebuild| {
            rebuild.path == path && rebuild.latest.done <= done && !rebuild.whole
        };
        if !self.all.iter().any(goes_on) {
            // No recorded rebuild continues with this notice, so a new rebuild starts here.
            self.begin(now, &path, Sectors::ZERO, used);
        }
        let found = self.all.iter_mut().find(|rebuild| rebuild.path == path);
        if let Some(rebuild) = found {
            assert!(
                done <= used,
                "the volume says that {done} of {used} are filled"
            );
            rebuild.advance(RebuildMark { at: now, done });
            (rebuild.used, rebuild.whole) = (used, whole);
        }
    }

    /// Returns all rebuilds in the order of their starts.
    pub fn all(&self) -> &[Rebuild] {
        &self.all
    }
}

impl Rebuild {
    fn advance(&mut self, latest: RebuildMark) {
        assert!(
            self.latest.at <= latest.at && self.latest.done <= latest.done,
            "a rebuild goes back: from {:?} to {latest:?}",
            self.latest
        );
        self.latest = latest;
        if latest.at.since(self.spans[0].at) >= SPAN {
            // Two marks are kept. The older one lies between one and two spans back, so the speed
            // never rests on a few notices alone.
            self.spans = [latest, self.spans[0]];
        }
    }

    /// Returns the mean speed since the start in bytes per second; `None` if no time has passed.
    pub fn speed(&self) -> Option<Bytes> {
        between(self.began, self.latest)
    }

    /// Returns the recent speed in bytes per second.
    pub fn recent_speed(&self) -> Option<Bytes> {
        between(self.spans[1], self.latest)
    }

    /// Returns the remaining time at the recent speed; `None` without a speed.
    pub fn left(&self) -> Option<Duration> {
        let speed = self.recent_speed().filter(|speed| speed.0 > 0)?;
        // In 128 bits, because bytes times nanoseconds exceed 64 bits from 18 GB on.
        let rest =
            u128::from(self.used.0.saturating_sub(self.latest.done.0)) * u128::from(SECTOR_BYTES);
        let nanoseconds = rest * 1_000_000_000 / u128::from(speed.0);
        Some(Duration::from_nanos(
            // A rebuild that hardly moves would need longer than 64 bits of nanoseconds can tell.
            u64::try_from(nanoseconds).unwrap_or(u64::MAX),
        ))
    }
}

fn between(from: RebuildMark, to: RebuildMark) -> Option<Bytes> {
    let nanoseconds = u128::from(to.at.since(from.at).as_nanos());
    let bytes = u128::from(to.done.0.saturating_sub(from.done.0)) * u128::from(SECTOR_BYTES);
    let speed = (bytes * 1_000_000_000).checked_div(nanoseconds)?;
    Some(Bytes(u64::try_from(speed).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rebuilt(at: Time, done: u64, used: u64) -> Notice {
        let signal = Signal::Rebuilt {
            member: 2,
            done: Sectors(done),
            used: Sectors(used),
            whole: done == used,
        };
        Notice::of_instant(signal, at)
    }

    fn seconds(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn speed_and_rest_follow_from_what_the_volume_says() {
        let mut rebuilds = Rebuilds::default();
        rebuilds.begin(seconds(10), &[1, 2], Sectors::ZERO, Sectors(100_000));
        for second in 1..=20 {
            // A hundred sectors per second at first, a thousand later.
            let done = if second <= 10 {
                second * 100
            } else {
                1000 + (second - 10) * 1000
            };
            rebuilds.note_notice(&[1], &rebuilt(seconds(10 + second), done, 100_000));
        }
        let [rebuild] = rebuilds.all() else {
            panic!("{rebuilds:?}")
        };
        assert_eq!(rebuild.path, [1, 2]);
        assert_eq!(rebuild.speed(), Some(Bytes(11_000 * 512 / 20)));
        assert_eq!(rebuild.recent_speed(), Some(Bytes(1000 * 512)));
        assert_eq!(rebuild.left().map(|left| left.as_secs_f64()), Some(89.0));
        assert!(!rebuild.whole);
    }

    #[test]
    fn a_rebuild_that_begins_again_is_another() {
        let mut rebuilds = Rebuilds::default();
        rebuilds.note_notice(&[], &rebuilt(seconds(1), 50, 100));
        rebuilds.note_notice(&[], &rebuilt(seconds(2), 100, 100));
        assert!(rebuilds.all()[0].whole);
        rebuilds.note_notice(&[], &rebuilt(seconds(5), 10, 100));
        assert_eq!(rebuilds.all().len(), 1);
        assert_eq!(
            rebuilds.all()[0].latest,
            RebuildMark {
                at: seconds(5),
                done: Sectors(10)
            }
        );
        assert_eq!(rebuilds.all()[0].speed(), None, "no time has passed");
    }
}
