//! md's stripes against the member I/O of the running kernel.

mod generations;
mod intent;
mod laboratory;
mod loads;
mod ppl;
mod rebuilds;
mod single;
mod storms;
