//! md's stripes against the member I/O of the running kernel.

mod laboratory;
mod loads;
mod single;
