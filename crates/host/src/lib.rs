//! The host between workload and volume: its dispatch queue.
