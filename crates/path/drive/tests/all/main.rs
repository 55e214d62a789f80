//! The tests of drives in one program: what is in common is compiled once.

mod current_drives;
mod data_sheets;
mod held_out_energy;
mod places;
mod published_figures;
