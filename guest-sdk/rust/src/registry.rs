//! The tools of the crate, which `#[stile::tool]` submits.

use std::ops::Deref;

use schemars::{generate::SchemaSettings, JsonSchema};
use serde::{de::DeserializeOwned, Serialize};

use crate::bindings::exports::stile::extension::tools;
use crate::{error::failure, Annotations, Definition, Env};

/// What a call of a tool ends with: JSON, or a failure.
pub type Outcome = Result<String, tools::Error>;

/// A tool of the crate.
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    pub annotations: Annotations,
    pub schema: fn() -> String,
    pub run: fn(&Env, &str) -> Outcome,
}

inventory::collect!(Tool);

/// The whole input of a tool as one type. See [`tool`](macro@crate::tool).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use stile::Input;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Shape {
///     /// in metres
///     width: f64,
///     height: f64,
/// }
///
/// /// Area of a shape
/// #[stile::tool]
/// fn area(Input(shape): Input<Shape>) -> f64 {
///     shape.width * shape.height
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Input<T>(pub T);

impl<T> Deref for Input<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The tools of the crate as the host sees them, sorted by name. Tests can look at the schemas.
pub fn definitions() -> Vec<Definition> {
    let mut list: Vec<_> = inventory::iter::<Tool>
        .into_iter()
        .map(|t| Definition {
            name: t.name.into(),
            description: t.description.into(),
            input_schema: (t.schema)(),
            output_schema: None,
            annotations: t.annotations,
        })
        .collect();
    list.sort_by(|a, b| a.name.cmp(&b.name));
    list
}

pub(crate) fn call(name: String, input: &str, env: &Env) -> Outcome {
    match inventory::iter::<Tool>.into_iter().find(|t| t.name == name) {
        Some(tool) => (tool.run)(env, input),
        None => Err(tools::Error::UnknownTool(name)),
    }
}

/// The schema of a tool's input.
pub fn schema<T: JsonSchema>() -> String {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title"); // the name of a type says nothing to who calls the tool
    schema.as_value().to_string()
}

/// Reads an input that the host has checked against the schema.
pub fn parse<T: DeserializeOwned>(input: &str) -> Result<T, tools::Error> {
    serde_json::from_str(input).map_err(|e| {
        tools::Error::InvalidInput(vec![tools::Problem {
            path: String::new(),
            message: e.to_string(),
        }])
    })
}

/// The outcome of a tool that cannot fail.
pub fn value<T: Serialize>(value: T) -> Outcome {
    serde_json::to_string(&value).map_err(|e| failure(&e.into()))
}

/// The outcome of a tool that returns a `Result`.
pub fn result<T: Serialize, E: Fails>(result: Result<T, E>) -> Outcome {
    result.map_err(|e| failure(&e.into())).and_then(value)
}

/// An error that a tool may return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    note = "return a stile::Result: `?` makes its error of every std::error::Error"
)]
pub trait Fails: Into<anyhow::Error> {}

impl<E: Into<anyhow::Error>> Fails for E {}

/// What the host calls.
pub(crate) struct Extension;

impl tools::Guest for Extension {
    fn describe() -> Vec<Definition> {
        crate::output::report_panics();
        definitions()
    }

    fn call(tool: String, input: String, env: Env) -> Outcome {
        crate::output::report_panics();
        let outcome = call(tool, &input, &env);
        crate::output::flush();
        outcome
    }
}

#[cfg(target_family = "wasm")]
crate::bindings::export!(Extension with_types_in crate::bindings);
