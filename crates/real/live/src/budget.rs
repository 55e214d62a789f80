//! Bounds the memory of the requests of all clients.

/// Largest sum of payloads and answers in transit, over all clients, in bytes.
const HELD_BYTES_MAX: u64 = 512 << 20;
/// Divisor of the free memory: the share of a client.
const SHARES: u64 = 8;
/// Divisor of the free memory for the first request of a client. The share is larger, so that long
/// requests have their turn while many other clients hold memory.
const FIRST_SHARES: u64 = 2;
/// Least room for the first request of a client, in bytes. Shares of the free memory shrink with
/// each client holding memory. After a hundred clients, nothing would be left for the next.
const FIRST_BYTES: u64 = 128 << 10;

/// The used part of the bound.
///
/// The share of each client is a part of the *free* memory (dynamic thresholds, Choudhury and Hahne
/// 1998, with which switches divide their buffers among ports). One client alone may take much;
/// each of many clients takes less. Even if many clients never read their answers, some memory is
/// left for the next client.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    held_bytes: u64,
}

impl Budget {
    /// Returns the largest payload of the next request of a client. `client_bytes` is the memory
    /// held by the client.
    #[inline]
    pub(crate) fn room(&self, client_bytes: u64) -> u64 {
        let free = HELD_BYTES_MAX.saturating_sub(self.held_bytes);
        if client_bytes == 0 {
            (free / FIRST_SHARES).max(FIRST_BYTES)
        } else {
            (free / SHARES).saturating_sub(client_bytes)
        }
    }

    /// Updates the sum after a client's memory has changed.
    #[inline]
    pub(crate) fn change(&mut self, before: u64, after: u64) {
        debug_assert!(
            before <= self.held_bytes,
            "more is given back than was taken"
        );
        // `before` is a part of the sum, so the difference does not fall below 0.
        self.held_bytes = self.held_bytes - before + after;
    }

    /// Returns true if memory should be freed rather than kept for later.
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
