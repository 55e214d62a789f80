//! Candidates run side by side and ranked.
