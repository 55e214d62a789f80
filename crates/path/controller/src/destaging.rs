//! How much is destaged: writes to the array on their way, and the watermarks.

use fullstroke_contract::Extent;

/// Destages on their way, and whether dirty data have passed the high watermark.
#[derive(Debug, Default)]
pub(crate) struct Destaging {
    inside: u32,
    /// True if destaging continues to the low watermark.
    pressed: bool,
}

impl Destaging {
    /// Number of destages on their way.
    pub(crate) fn inside(&self) -> u32 {
        self.inside
    }

    /// Begins a destage.
    pub(crate) fn begin(&mut self) {
        self.inside += 1;
    }

    /// Ends a destage after the array's answer.
    pub(crate) fn end(&mut self, extent: Extent) {
        assert!(
            self.inside > 0,
            "a destage of {extent:?} ends, and none is on its way"
        );
        self.inside -= 1;
    }

    /// Notes whether memory is above the high watermark or down to the low one. Returns true from
    /// the one to the other.
    pub(crate) fn is_pressed(&mut self, above_high: bool, at_low: bool) -> bool {
        if above_high {
            self.pressed = true;
        } else if at_low {
            self.pressed = false;
        }
        self.pressed
    }
}
