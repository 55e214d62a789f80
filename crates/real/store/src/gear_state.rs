//! Facts about an array's gears, and the state of its shifts.

use fullstroke_contract::Extent;
use fullstroke_units::{SECTOR_BYTES, Sectors};
use fullstroke_volume::{GearedRows, Layout, ShiftRules};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Size of a step of a shift: 2 MiB. Requests wait during a step.
const COPIED_AT_ONCE: Sectors = Sectors((2 << 20) / SECTOR_BYTES);

/// Fixed properties of gears.
#[derive(Clone, Debug)]
pub(crate) struct GearFacts {
    /// Slots of the members that stand in the low gear.
    pub(crate) transient: Range<usize>,
    /// Rows to change together; `None` without parity.
    pub(crate) rows: Option<GearedRows>,
    pub(crate) rules: ShiftRules,
}

impl GearFacts {
    pub(crate) fn of(layout: &mut dyn Layout) -> Option<GearFacts> {
        let gears = layout.gears()?;
        Some(GearFacts {
            transient: gears.transient(),
            rows: gears.rows(),
            rules: gears.rules(),
        })
    }

    /// Returns the two members whose journals have the changes of a group.
    pub(crate) fn journals(&self, rows: GearedRows, part: Extent) -> [usize; 2] {
        let (group, turning) = (rows.group(part), self.transient.start as u64);
        assert!(turning > 1, "two journals need two turning members");
        [group, group + 1].map(|number| (number % turning) as usize)
    }
}

/// State of an array's shifts.
#[derive(Debug)]
pub(crate) struct ShiftState {
    /// True while members stand in the low gear, and nothing is written to them.
    resting: AtomicBool,
    step: Sectors,
    /// Reason why a shift cannot continue.
    trouble: Mutex<Option<String>>,
    /// Place of the latest failed read of a shift; a second failure there fails the member.
    unread: Mutex<Option<(usize, u64)>>,
}

impl Default for ShiftState {
    fn default() -> ShiftState {
        ShiftState {
            resting: AtomicBool::new(false),
            step: COPIED_AT_ONCE,
            trouble: Mutex::default(),
            unread: Mutex::default(),
        }
    }
}

impl ShiftState {
    /// True while members stand in the low gear, and nothing is written to them.
    pub(crate) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::SeqCst)
    }

    /// Notes whether members stand.
    pub(crate) fn set_resting(&self, resting: bool) {
        self.resting.store(resting, Ordering::SeqCst);
    }

    /// Size of a step of a shift.
    pub(crate) fn step(&self) -> Sectors {
        self.step
    }

    /// Sets a smaller step, so that a test interrupts a shift in more places.
    #[cfg(test)]
    pub(crate) fn set_step(&mut self, step: Sectors) {
        self.step = step;
    }

    /// Notes the result of a step.
    pub(crate) fn note_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Reason why a shift cannot continue.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Place of the latest failed read of a shift.
    pub(crate) fn unread(&self) -> MutexGuard<'_, Option<(usize, u64)>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
