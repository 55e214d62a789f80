//! The virtual clock that drives a stack.
