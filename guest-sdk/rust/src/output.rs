//! What a call writes to stdout and stderr, which the host puts into the binding of console, and into the text of a failure.

use std::{panic, sync::Once};

/// Writes the message of a panic to stderr, and what was written to stdout before.
pub(crate) fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            flush();
            error(&format!("{info}\n"));
        }))
    });
}

/// Writes what stdout holds of a line without an end.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) fn flush() {
    let _ = std::io::Write::flush(&mut std::io::stdout());
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn error(text: &str) {
    eprint!("{text}");
}

/// The standard library of this target has no stdout.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) fn flush() {}

/// It has no stderr either, but `stile componentize` has one.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn error(text: &str) {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        fn fd_write(file: u32, parts: *const [usize; 2], count: usize, written: *mut usize) -> u32;
    }
    const STDERR: u32 = 2;
    let part = [text.as_ptr() as usize, text.len()];
    // SAFETY: the parts and the count live until the function returns, and it writes to nothing else.
    unsafe { fd_write(STDERR, &part, 1, &mut 0) };
}
