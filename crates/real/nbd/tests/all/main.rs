//! Clients against the state machine: one program, so that what is in common is compiled once.

mod client;
#[path = "../common/mod.rs"]
mod common;
mod handshake;
mod interoperation;
mod pieces;
mod requests;
