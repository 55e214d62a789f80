//! A trace as columns for other libraries, through the Arrow C stream interface (Arrow columnar
//! format, "The Arrow PyCapsule Interface").

use crate::refused;
use arrow_array::builder::{StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use fullstroke_trace::{TraceRecord, TraceReader};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Number of requests per batch.
const BATCH: usize = 65_536;

/// A whole trace in memory.
#[pyclass(frozen)]
pub(crate) struct Trace {
    batches: Vec<RecordBatch>,
    #[pyo3(get)]
    format: &'static str,
    #[pyo3(get)]
    rows: usize,
}

impl Trace {
    pub(crate) fn read(reader: &mut TraceReader) -> PyResult<Trace> {
        let (mut batches, mut rows) = (Vec::new(), 0);
        let mut records = Vec::with_capacity(BATCH);
        // An empty trace still needs one batch, because the batch carries the schema.
        loop {
            records.clear();
            let read = reader.next_batch(&mut records, BATCH).map_err(refused)?;
            if read > 0 || batches.is_empty() {
                batches.push(columns(&records)?);
            }
            rows += read;
            if read == 0 {
                return Ok(Trace {
                    batches,
                    format: reader.format().name,
                    rows,
                });
            }
        }
    }
}

/// Converts records to columns. Times are in ns since the first request; addresses and lengths are
/// in sectors of 512 bytes.
fn columns(records: &[TraceRecord]) -> PyResult<RecordBatch> {
    let mut operation = StringDictionaryBuilder::<Int8Type>::new();
    let mut numbers: [UInt64Builder; 5] = Default::default();
    let mut ids: [UInt32Builder; 2] = Default::default();
    for record in records {
        operation.append(record.operation.name()).map_err(refused)?;
        let [arrival, start, sectors, issued, completed] = &mut numbers;
        arrival.append_value(record.arrival.as_nanos());
        start.append_value(record.extent.start.0);
        sectors.append_value(record.extent.sectors.0);
        issued.append_option(record.issued.map(|time| time.as_nanos()));
        completed.append_option(record.completed.map(|time| time.as_nanos()));
        let [device, process] = &mut ids;
        device.append_value(record.device);
        process.append_option((record.process > 0).then_some(record.process));
    }
    let [arrival, start, sectors, issued, completed] =
        numbers.map(|mut column| Arc::new(column.finish()) as ArrayRef);
    let [device, process] = ids.map(|mut column| Arc::new(column.finish()) as ArrayRef);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("arrival_ns", arrival, false),
        ("operation", Arc::new(operation.finish()) as ArrayRef, false),
        ("start", start, false),
        ("sectors", sectors, false),
        ("device", device, false),
        ("process", process, true),
        ("issued_ns", issued, true),
        ("completed_ns", completed, true),
    ]);
    batch.map_err(refused)
}

#[pymethods]
impl Trace {
    fn __len__(&self) -> usize {
        self.rows
    }

    fn __repr__(&self) -> String {
        format!("Trace({} requests, {})", self.rows, self.format)
    }

    /// Returns the stream. `requested_schema` is ignored, because the columns have a single schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.batches[0].schema();
        let batches = self.batches.clone().into_iter().map(Ok);
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
