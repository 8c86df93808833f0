//! Extensions of Stile in Rust. A tool is a function:
//!
//! ```
//! use stile::Env;
//!
//! /// Add a line to the note of a title
//! #[stile::tool]
//! fn add_note(env: &Env, title: String, text: String) -> stile::Result<()> {
//!     let notes = env.workspace("notes")?;
//!     notes.append(&format!("{title}.md"), &format!("{text}\n"))?;
//!     Ok(())
//! }
//! ```
//!
//! The crate is a `cdylib`. Built for `wasm32-wasip2`, it is a component. `stile componentize` makes one of what is built for
//! `wasm32-wasip1` and `wasm32-unknown-unknown`. A tool reaches only what the bindings of its call give, such as
//! `env.workspace("notes")`. [`tool`](macro@tool) says what a tool may look like.

extern crate self as stile;

#[allow(rustdoc::bare_urls, rustdoc::invalid_html_tags)] // texts of the WIT
#[rustfmt::skip]
#[cfg_attr(not(target_family = "wasm"), allow(unused_imports))]
mod bindings;
mod env;
mod error;
mod handles;
mod output;
mod registry;
#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Makes a tool of a function, in any module of the crate.
///
/// - Its doc comment is the description that a model reads. Its name is the name of the function, or `name = "..."`.
/// - `env: &Env` comes first, if the tool needs a binding.
/// - Further parameters are the fields of the input. Their doc comments are descriptions. An `Option` need not be given, nor a
///   parameter with `#[serde(default)]`. `#[schemars(...)]` gives limits: `length(max = 200)`, `range(min = 1)`,
///   `regex(pattern = "^[a-z]+$")`. The host refuses input that does not fit, and fields without a parameter.
/// - A single [`Input<T>`] takes the whole input instead, as a type with serde's `Deserialize` and schemars' `JsonSchema`.
/// - It returns a value that serde can serialize, or a `Result` of one. [`Result`] takes every error with `?`.
/// - `read_only`, `destructive`, `idempotent` and `open_world` are hints for who calls the tool.
///
/// ```
/// # use stile::Env;
/// /// Find lines of notes
/// #[stile::tool(read_only)]
/// fn search_notes(
///     env: &Env,
///     /// A regular expression (RE2)
///     pattern: String,
///     #[schemars(range(min = 1, max = 1000))] limit: Option<u32>,
/// ) -> stile::Result<Vec<String>> {
///     let found = env.workspace("notes")?.grep(&pattern, &Default::default(), limit.unwrap_or(100), None)?;
///     Ok(found.matches.into_iter().map(|m| m.text).collect())
/// }
/// ```
///
/// A tool is not async, because a call waits only for handles:
///
/// ```compile_fail
/// /// Wait
/// #[stile::tool]
/// async fn wait() {}
/// ```
pub use stile_macros::tool;

pub use anyhow;
pub use bindings::exports::stile::extension::tools::{Annotations, Definition};
pub use bindings::stile::capability::env::Env;
pub use bindings::stile::capability::types::{Denial, Error};
pub use bindings::stile::capability::{
    blob, browser, clock, code, console, http, kv, poll, random, sandbox, tools, workspace,
};
pub use handles::Response;
pub use registry::{definitions, Input};

/// The result of a tool. `?` makes an [`anyhow::Error`] of every error. An [`Error`] of a capability stays what it is: a denial ends
/// the call as denied. [`anyhow::bail!`] fails with a text.
pub type Result<T, E = anyhow::Error> = std::result::Result<T, E>;

#[doc(hidden)]
pub mod __private {
    pub use super::registry::{parse, result, schema, value, Outcome, Tool};
    pub use inventory;
    pub use schemars;
    pub use serde;
}
