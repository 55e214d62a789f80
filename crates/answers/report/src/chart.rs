//! The charts, one per file. Each chart takes parts of an answer and writes a figure.

mod abscissa;
mod bars;
mod differences;
mod drives;
mod heat;
mod lines;
mod percentiles;
mod sensitivity;
mod stacked;

pub(crate) use bars::{Bar, bars};
pub(crate) use differences::differences;
pub(crate) use drives::{offsets, queues};
pub(crate) use heat::{heat, heat_map};
pub(crate) use lines::{Graph, GraphLine, GraphPoint, line_chart, lines};
pub(crate) use percentiles::percentiles;
pub(crate) use sensitivity::sensitivity;
pub(crate) use stacked::{power_states, time_parts};
