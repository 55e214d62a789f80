//! Where requests come from: synthetic patterns and processes.
