//! The memory that clients' requests take, bounded over all of them.

/// Payloads and answers on their way, over all clients.
const HELD_BYTES_MAX: u64 = 512 << 20;
/// A client may take one part in so many of what is free.
const SHARES: u64 = 8;
/// The first request of a client may take one part in so many, so that long
/// ones have their turn while many others hold something.
const FIRST_SHARES: u64 = 2;
/// What the first request of a client may take in any case: shares of what is
/// free shrink with the number of those who hold something, and a hundred of
/// them would leave nothing for who comes next.
const FIRST_BYTES: u64 = 128 << 10;

/// What is held of the bound.
///
/// The share of each is a part of what is *free* (dynamic thresholds, Choudhury
/// and Hahne 1998, by which switches divide their buffers among ports): one
/// client alone may take much, many take less each, and however many never read
/// their answers, there is something left for who comes next.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    held_bytes: u64,
}

impl Budget {
    /// What the next request may bring or fetch of a client that holds so much.
    #[inline]
    pub(crate) fn room(&self, client_bytes: u64) -> u64 {
        let free = HELD_BYTES_MAX.saturating_sub(self.held_bytes);
        if client_bytes == 0 {
            (free / FIRST_SHARES).max(FIRST_BYTES)
        } else {
            (free / SHARES).saturating_sub(client_bytes)
        }
    }

    /// What somebody held has changed.
    #[inline]
    pub(crate) fn change(&mut self, before: u64, after: u64) {
        debug_assert!(
            before <= self.held_bytes,
            "more is given back than was taken"
        );
        self.held_bytes = self.held_bytes - before + after;
    }

    /// Whether memory should rather be given back than be kept for later.
    pub(crate) fn is_tight(&self) -> bool {
        self.held_bytes > HELD_BYTES_MAX / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_hold_their_share_the_next_has_one_and_the_sum_is_bounded() {
        let mut budget = Budget::default();
        let mut shares = Vec::new();
        for _ in 0..4096 {
            let mut held = 0;
            while budget.room(held) >= 4096 {
                budget.change(held, held + 4096);
                held += 4096;
            }
            shares.push(held);
        }
        assert!(shares[0] >= 48 << 20, "{}", shares[0]);
        assert!(shares.iter().all(|&share| share > 0));
        assert!(shares.iter().sum::<u64>() <= HELD_BYTES_MAX + 4096 * FIRST_BYTES);
    }
}
