//! How many members of an array work.

/// The gear of an array whose members stop while little is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Gear {
    /// All of them.
    #[default]
    High,
    /// All of them, until the soft state is up to date.
    Falling,
    /// The transient ones stand.
    Low,
    /// All of them, until the transient ones are up to date.
    Rising,
}

impl Gear {
    /// Whether transient data is read from the soft state.
    pub fn reads_soft(self) -> bool {
        matches!(self, Gear::Low | Gear::Rising)
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Gear::High => "high",
            Gear::Falling => "falling",
            Gear::Low => "low",
            Gear::Rising => "rising",
        }
    }
}
