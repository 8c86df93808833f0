use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stile::Input;

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    Metre,
    SquareMetre,
}

/// Plain parameters
#[stile::tool(name = "plain.parameters", read_only, idempotent)]
#[allow(clippy::too_many_arguments)]
fn plain(
    /// A word
    ///
    /// in small letters
    #[schemars(regex(pattern = "^[a-z]+$"), length(max = 5))]
    word: String,
    #[schemars(range(min = 1, max = 10))] mut count: u8,
    r#type: Unit,
    factor: Option<f64>,
    #[serde(default)] tags: Vec<String>,
    #[serde(rename = "in")] inside: bool,
) -> String {
    count += 1;
    let unit = match r#type {
        Unit::Metre => "m",
        Unit::SquareMetre => "m2",
    };
    format!("{word} {count} {unit} {factor:?} {tags:?} {inside}")
}

/// A point
#[derive(Deserialize, Serialize, JsonSchema)]
struct Point {
    /// from the left
    x: i32,
    y: i32,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Path {
    points: Vec<Point>,
    unit: Option<Unit>,
    next: Option<Box<Path>>,
}

/// The input as a struct that contains itself
#[stile::tool]
fn whole(Input(path): Input<Path>) -> Path {
    path
}

/// The input as any JSON object
#[stile::tool]
fn any(Input(object): Input<std::collections::BTreeMap<String, u32>>) -> u32 {
    object.values().sum()
}
