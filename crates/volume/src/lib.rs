//! Address maps and parity plans of disk arrays.
