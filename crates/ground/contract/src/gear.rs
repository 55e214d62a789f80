//! The number of active members of an array with gears.

/// The gear of an array whose members stop under low load (PARAID, Weddle and others 2007).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Gear {
    /// All members work.
    #[default]
    High,
    /// All members work until the soft state is up to date. The array shifts down.
    Falling,
    /// The transient members are in standby.
    Low,
    /// All members work until the transient members are up to date. The array shifts up.
    Rising,
}

impl Gear {
    /// Returns true if reads of transient members' data go to the soft state.
    pub fn reads_soft(self) -> bool {
        matches!(self, Gear::Low | Gear::Rising)
    }

    /// Returns the name of the gear for people.
    pub fn name(self) -> &'static str {
        match self {
            Gear::High => "high",
            Gear::Falling => "falling",
            Gear::Low => "low",
            Gear::Rising => "rising",
        }
    }
}
