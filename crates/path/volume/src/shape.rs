//! The nesting of a volume, for code that stores bytes.

use crate::Layout;
use fullstroke_units::Sectors;

/// A drive, or a volume of members. A shape describes a stack without simulated time.
pub enum Shape {
    /// A drive with addresses `0..capacity`.
    Drive(Sectors),
    /// A volume.
    Volume {
        /// Address map of the volume.
        layout: Box<dyn Layout>,
        /// The members, in order.
        members: Vec<Shape>,
    },
}

impl Shape {
    /// Returns the capacity; the addresses are `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        match self {
            Shape::Drive(capacity) => *capacity,
            Shape::Volume { layout, .. } => layout.capacity(),
        }
    }

    /// Returns the address map, if the shape is a volume.
    pub fn layout_mut(&mut self) -> Option<&mut dyn Layout> {
        match self {
            Shape::Drive(_) => None,
            Shape::Volume { layout, .. } => Some(layout.as_mut()),
        }
    }
}
