use std::{mem::ManuallyDrop, num::ParseIntError};

use anyhow::{anyhow, Context};

use crate::bindings::exports::stile::extension::tools::{self, Guest, Problem};
use crate::{definitions, error::failure, registry, Denial, Env, Error};

/// Half of a number
#[stile::tool(read_only)]
fn half(
    /// An even number
    number: u32,
) -> Result<u32, Odd> {
    if number % 2 == 0 {
        Ok(number / 2)
    } else {
        Err(Odd(format!("{number} is odd")))
    }
}

#[derive(Debug)]
struct Odd(String);

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Odd {}

/// A list of a value that JSON does not have
#[stile::tool(name = "a-map")]
fn map() -> std::collections::HashMap<Vec<u8>, u8> {
    [(vec![1], 1)].into()
}

fn denial() -> Denial {
    Denial {
        binding: "notes".into(),
        operation: "read /x".into(),
        reason: "it is not allowed".into(),
        remedy: "allow it".into(),
    }
}

#[test]
fn tools_are_found() {
    let list = definitions();
    let names: Vec<_> = list.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["a-map", "half"]);
    assert_eq!(list[1].description, "Half of a number");
    assert!(list[1].annotations.read_only && !list[0].annotations.read_only);
    let schema: serde_json::Value = serde_json::from_str(&list[1].input_schema).unwrap();
    let want = serde_json::json!({
        "type": "object", "additionalProperties": false, "required": ["number"],
        "properties": {"number": {"type": "integer", "format": "uint32", "minimum": 0, "description": "An even number"}},
    });
    assert_eq!(schema, want);
}

#[test]
fn calls() {
    let call = |name: &str, input: &str| {
        // SAFETY: nothing calls the host with the handle, or drops it.
        let env = ManuallyDrop::new(unsafe { Env::from_handle(1) });
        registry::call(name.into(), input, &env)
    };
    assert_eq!(call("half", r#"{"number": 8}"#).unwrap(), "4");
    match call("half", r#"{"number": 7}"#) {
        Err(tools::Error::Failed(f)) => {
            assert_eq!((f.name.as_str(), f.message.as_str()), ("Error", "7 is odd"));
        }
        other => panic!("{other:?}"),
    }
    match call("half", r#"{"number": "7"}"#) {
        Err(tools::Error::InvalidInput(problems)) => match &problems[..] {
            [Problem { path, message }] => {
                assert_eq!(path, "");
                assert!(message.contains("expected u32"), "{message}");
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    match call("a-map", "{}") {
        Err(tools::Error::Failed(f)) => assert!(f.message.contains("key"), "{}", f.message),
        other => panic!("{other:?}"),
    }
    match call("nothing", "{}") {
        Err(tools::Error::UnknownTool(name)) => assert_eq!(name, "nothing"),
        other => panic!("{other:?}"),
    }
    assert_eq!(registry::Extension::describe().len(), 2);
}

/// A denial stays one below any context, and other errors keep their texts.
#[test]
fn failures() {
    for error in [
        anyhow!(Error::Denied(denial())),
        anyhow!(Error::Denied(denial())).context("read"),
        Err::<(), _>(Error::Denied(denial()))
            .context("read")
            .context("begin")
            .unwrap_err(),
    ] {
        match failure(&error) {
            tools::Error::Denied(d) => assert_eq!(d.remedy, "allow it"),
            other => panic!("{other:?}"),
        }
    }
    let number: ParseIntError = "x".parse::<u8>().unwrap_err();
    for (error, name, message) in [
        (
            anyhow!(number).context("read"),
            "Error",
            "read: invalid digit found in string",
        ),
        (anyhow!("text {}", 1), "Error", "text 1"),
        (
            anyhow!(Error::TooLarge(5)).context("read"),
            "CapabilityError",
            "read: too large: the limit is 5 bytes",
        ),
        (anyhow!(Error::Expired), "CapabilityError", "expired"),
    ] {
        match failure(&error) {
            tools::Error::Failed(f) => {
                assert_eq!((f.name.as_str(), f.message.as_str()), (name, message));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        Error::Denied(denial()).to_string(),
        "read /x: denied: it is not allowed"
    );
}
