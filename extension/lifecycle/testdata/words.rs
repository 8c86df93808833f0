// An extension in plain Rust, without a crate: it counts the words of its input.
use std::alloc::{alloc, Layout};

#[no_mangle]
extern "C" fn cabi_realloc(_: *mut u8, _: usize, align: usize, size: usize) -> *mut u8 {
    unsafe { alloc(Layout::from_size_align(size.max(1), align).unwrap()) }
}

fn kept<T>(value: T) -> *const T {
    Box::leak(Box::new(value))
}

#[repr(C)]
struct Text(*const u8, usize);

impl Text {
    fn of(text: &'static str) -> Text {
        Text(text.as_ptr(), text.len())
    }
}

#[repr(C)]
struct Definition(Text, Text, Text, [usize; 3]);

#[repr(C)]
struct Definitions(*const Definition, usize);

#[export_name = "stile:extension/tools@0.1.0#describe"]
extern "C" fn describe() -> *const Definitions {
    let schema = r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#;
    let count = Definition(Text::of("get"), Text::of("Counts words"), Text::of(schema), [0; 3]);
    kept(Definitions(kept(count), 1))
}

#[repr(C)]
struct Outcome(usize, Text);

#[export_name = "stile:extension/tools@0.1.0#call"]
extern "C" fn call(_tool: *const u8, _: usize, input: *mut u8, len: usize, _env: i32) -> *const Outcome {
    let input = unsafe { String::from_raw_parts(input, len, len) };
    if input.contains("panic") {
        panic!("as the input asks");
    }
    let words = input.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).count() - 1;
    let output: &'static str = Box::leak(format!("{{\"words\":{words}}}").into_boxed_str());
    kept(Outcome(0, Text::of(output)))
}
