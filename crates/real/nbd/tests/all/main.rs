//! Clients against the state machine, in one program, so that common code is compiled once.

mod client;
#[path = "../common/mod.rs"]
mod common;
mod handshake;
mod interoperation;
mod pieces;
mod requests;
