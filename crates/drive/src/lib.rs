//! A disk drive: geometry, arm, platter and in-drive queue.
