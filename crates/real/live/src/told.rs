//! What the user and the clients were told of a store.

/// Faults of a store that are told once.
#[derive(Debug)]
pub(crate) struct Told {
    /// True if the user was told that the store has stopped.
    stop: bool,
    /// True if a flush has reported the store's loss of data, or the store was opened in this
    /// state.
    loss: bool,
}

impl Told {
    /// Returns the state after an opening, whose report has told a loss of data.
    pub(crate) fn since_opening(lost: bool) -> Told {
        Told {
            stop: false,
            loss: lost,
        }
    }

    /// True for the first call: the user is to be told that the store has stopped.
    pub(crate) fn stop(&mut self) -> bool {
        !std::mem::replace(&mut self.stop, true)
    }

    /// True if data are `lost`, and this was not told since they were there. The state follows the
    /// store, so that a second loss after a repair is told again.
    pub(crate) fn loss(&mut self, lost: bool) -> bool {
        let told = std::mem::replace(&mut self.loss, lost);
        lost && !told
    }
}
