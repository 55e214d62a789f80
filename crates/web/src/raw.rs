//! The functions that the page calls, and the functions of the page.
//!
//! 1. The page asks for room with `fullstroke_room(bytes)`, and writes a command there.
//! 2. `fullstroke_call()` carries the command out, and returns the length of the answer.
//! 3. The page reads the answer at `fullstroke_answer()`.
//!
//! `fullstroke_put(path_bytes)` takes the room as a path, followed by the contents of the file.
//! `fullstroke_begin()` comes first, once.
// The names of exports and the imported functions are unsafe attributes. No pointer is read here.
#![allow(unsafe_code)]

use crate::Session;
use std::cell::RefCell;

#[link(wasm_import_module = "fullstroke")]
unsafe extern "C" {
    /// Reports the number of finished requests of a run and the total number; -1 = unknown.
    safe fn progress(finished: f64, expected: f64);
    /// Reports the message of a panic, in the module's memory. The module ends afterwards.
    safe fn ended(message: *const u8, bytes: usize);
}

#[derive(Default)]
struct Module {
    session: Session,
    room: Vec<u8>,
    answer: String,
}

thread_local! {
    static MODULE: RefCell<Module> = RefCell::default();
}

/// Prepares the module: a panic reports its message to the page.
#[unsafe(no_mangle)]
extern "C" fn fullstroke_begin() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.to_string();
        ended(message.as_ptr(), message.len());
    }));
}

/// Returns the place of `bytes` bytes for the page to write.
#[unsafe(no_mangle)]
extern "C" fn fullstroke_room(bytes: usize) -> *mut u8 {
    MODULE.with_borrow_mut(|module| {
        // A large file must not stay beside its copy.
        module.room = Vec::new();
        module.room.resize(bytes, 0);
        module.room.as_mut_ptr()
    })
}

/// Puts a file. The room holds a path of `path_bytes` bytes and the contents.
#[unsafe(no_mangle)]
extern "C" fn fullstroke_put(path_bytes: usize) {
    MODULE.with_borrow_mut(|module| {
        let room = std::mem::take(&mut module.room);
        let (path, contents) = room.split_at(path_bytes.min(room.len()));
        let path = String::from_utf8_lossy(path);
        module.session.put(&path, contents);
    });
}

/// Carries out the command in the room. Returns the length of the answer in bytes.
#[unsafe(no_mangle)]
extern "C" fn fullstroke_call() -> usize {
    MODULE.with_borrow_mut(|module| {
        let room = std::mem::take(&mut module.room);
        let command = String::from_utf8_lossy(&room);
        let report = |finished: u64, expected: Option<u64>| {
            progress(finished as f64, expected.map_or(-1.0, |count| count as f64));
        };
        module.answer = module.session.call(&command, &report);
        module.answer.len()
    })
}

/// Returns the place of the answer.
#[unsafe(no_mangle)]
extern "C" fn fullstroke_answer() -> *const u8 {
    MODULE.with_borrow(|module| module.answer.as_ptr())
}
