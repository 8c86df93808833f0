//! Writes the bindings of the SDK, `src/bindings.rs`, from the WIT.

use std::{fs, path::Path};

use anyhow::{ensure, Context, Result};
use wit_bindgen_core::{wit_parser::Resolve, Files};
use wit_bindgen_rust::Opts;

/// The SDK has a text of its own for errors of capabilities.
const DISPLAY: &str = r#"impl ::core::fmt::Display for Error {
fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
write!(f, "{:?}", self)
}
}
"#;

fn main() -> Result<()> {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = bindings(&sdk.join("../../wit"))?;
    fs::write(sdk.join("src/bindings.rs"), text).context("write the bindings")
}

fn bindings(wit: &Path) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit)?;
    let world = resolve.select_world(&[package], Some("with-everything"))?;
    let mut files = Files::default();
    Opts {
        generate_all: true,
        ..Opts::default()
    }
    .build()
    .generate(&resolve, world, &mut files)?;
    let (_, text) = files.iter().next().context("no file was generated")?;
    // A third of the text is white space at the beginning of lines.
    let lines: Vec<_> = std::str::from_utf8(text)?
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let text = lines.join("\n") + "\n";
    let (before, after) = text
        .split_once(DISPLAY)
        .context("the error of capabilities has no text")?;
    ensure!(
        before.ends_with("}\n}\n}\n"),
        "the text is not where it was expected"
    );
    Ok(before.to_string() + after)
}
