//! Response times, intervals and where the time went.
