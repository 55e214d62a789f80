//! The tests of drives in one program, so that common code is compiled once.

mod by_depth;
mod current_drives;
mod data_sheets;
mod held_out_energy;
mod places;
mod published_figures;
mod shingled;
mod streams;
