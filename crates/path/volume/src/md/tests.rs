//! md's stripes against the member I/O of the running kernel.

mod bitmaps;
mod generations;
mod growth;
mod intent;
mod laboratory;
mod loads;
mod logs;
mod ppl;
mod rebuilds;
mod single;
mod storms;
