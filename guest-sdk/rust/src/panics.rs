use std::{panic, sync::Once};

/// Sends the message of a panic to stderr, which the host puts into the text of the failure.
pub(crate) fn report() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info| write(&format!("{info}\n")))));
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn write(text: &str) {
    eprint!("{text}");
}

/// The standard library of this target has no stderr, but `stile componentize` has one.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn write(text: &str) {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        fn fd_write(file: u32, parts: *const [usize; 2], count: usize, written: *mut usize) -> u32;
    }
    const STDERR: u32 = 2;
    let part = [text.as_ptr() as usize, text.len()];
    // SAFETY: the parts and the count live until the function returns, and it writes to nothing else.
    unsafe { fd_write(STDERR, &part, 1, &mut 0) };
}
