//! A tool whose code knows nothing of Stile: files.rs uses the standard library, and web.rs the crate `wasi`.

mod files;
mod web;

wit_bindgen::generate!({ world: "extension", path: "../../../../wit", generate_all });

use exports::stile::extension::tools::{Annotations, Definition, Env, Error, Failure, Guest};

struct Files;

export!(Files);

impl Guest for Files {
    fn describe() -> Vec<Definition> {
        ["files", "read", "write", "list", "get"]
            .map(|name| Definition {
                name: name.into(),
                description: name.into(),
                input_schema: "{}".into(),
                output_schema: None,
                annotations: Annotations { read_only: false, destructive: true, idempotent: false, open_world: true },
            })
            .into()
    }

    /// The input is a JSON text without escapes: a path or a URL.
    fn call(tool: String, input: String, _: Env) -> Result<String, Error> {
        let text = input.trim_matches('"');
        let done = match tool.as_str() {
            "files" => files::all(text),
            "read" => files::read(text),
            "write" => files::write(text),
            "list" => files::list(text),
            "get" => web::get(text),
            _ => return Err(Error::UnknownTool(tool)),
        };
        match done {
            Ok(text) => Ok(format!("{text:?}")),
            Err(e) => Err(Error::Failed(Failure { name: "Error".into(), message: e.to_string(), stack: String::new() })),
        }
    }
}
