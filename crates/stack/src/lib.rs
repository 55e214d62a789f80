//! Stack and drive files, and the stacks built from them.
