//! How a volume is nested, for whoever keeps its bytes.

use crate::Layout;
use fullstroke_units::Sectors;

/// A drive, or a volume of members: what a stack describes, without the layers
/// that time it.
pub enum Shape {
    /// A drive with addresses `0..capacity`.
    Drive(Sectors),
    /// A volume.
    Volume {
        /// How its addresses lie on its members.
        layout: Box<dyn Layout>,
        /// The members, in order.
        members: Vec<Shape>,
    },
}

impl Shape {
    /// Addresses `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        match self {
            Shape::Drive(capacity) => *capacity,
            Shape::Volume { layout, .. } => layout.capacity(),
        }
    }

    /// How its addresses lie on its members, if it is a volume.
    pub fn layout_mut(&mut self) -> Option<&mut dyn Layout> {
        match self {
            Shape::Drive(_) => None,
            Shape::Volume { layout, .. } => Some(layout.as_mut()),
        }
    }
}
