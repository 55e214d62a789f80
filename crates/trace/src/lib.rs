//! Block traces: every format of the field, read as a stream.
