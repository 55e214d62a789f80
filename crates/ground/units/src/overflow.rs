//! The panic of a calculation that leaves its range.
//!
//! A simulator with wrapped numbers would continue with wrong results. Therefore every operator of
//! this crate checks its result, also in release builds. Values from a user's input are checked
//! earlier, or use methods with the behaviour in the name (`checked_add`, `saturating_add`, ...).

/// Panics with both operands, at the line of the caller. The function is not inlined, so an
/// operator costs its caller one jump that is not taken.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn stop(what: &str, left: u64, operation: &str, right: u64, unit: &str) -> ! {
    let space = if unit.is_empty() { "" } else { " " };
    panic!("{what} is out of range: {left} {operation} {right}{space}{unit}")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Returns the panic message of `calculation`; empty if there is no panic.
    pub(crate) fn message<T>(calculation: impl FnOnce() -> T) -> String {
        match catch_unwind(AssertUnwindSafe(calculation)) {
            Ok(_) => String::new(),
            Err(payload) => *payload
                .downcast::<String>()
                .expect("a panic with a message"),
        }
    }

    #[test]
    fn the_panic_names_the_line_that_calculated() {
        use std::sync::{Arc, Mutex};
        let line = Arc::new(Mutex::new((String::new(), 0)));
        let seen = Arc::clone(&line);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if let Some(place) = info.location()
                && info
                    .payload_as_str()
                    .is_some_and(|text| text.contains("- 4242 ns"))
            {
                *seen.lock().unwrap() = (place.file().to_owned(), place.line());
            }
        }));
        let here = line!() + 1;
        let stopped = message(|| crate::Duration::ZERO - crate::Duration::from_nanos(4242));
        std::panic::set_hook(before);
        assert!(!stopped.is_empty());
        assert_eq!(*line.lock().unwrap(), (file!().to_owned(), here));
    }
}
