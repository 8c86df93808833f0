//! Searches and edits notes in a workspace, and posts a summary over http.

wit_bindgen::generate!({ world: "with-everything", path: "../../../wit", generate_all });

use exports::stile::extension::tools::{Annotations, Definition, Env, Error, Failure, Guest};
use serde_json::{json, Value};
use stile::capability::{http, types, workspace};

struct Notes;

export!(Notes);

impl Guest for Notes {
    fn describe() -> Vec<Definition> {
        let (title, text) = (
            json!({"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}),
            json!({"type": "string"}),
        );
        vec![
            tool(
                "add_note",
                "Add a line to the note of a title",
                json!({"title": title, "text": text}),
                false,
            ),
            tool(
                "search_notes",
                "Find lines of notes by a regular expression",
                json!({"pattern": text}),
                true,
            ),
            tool(
                "edit_note",
                "Replace a text that a note has exactly once",
                json!({"title": title, "old": text, "new": text}),
                false,
            ),
            tool(
                "post_summary",
                "Post the titles and sizes of all notes to a URL",
                json!({"url": text}),
                false,
            ),
        ]
    }

    fn call(tool: String, input: String, env: Env) -> Result<String, Error> {
        let input: Value = serde_json::from_str(&input).map_err(failed)?;
        let field = |name: &str| input[name].as_str().unwrap_or_default(); // the host has checked the input against the schema
        let notes = workspace::get(&env, "notes").map_err(refused)?;
        let output = match tool.as_str() {
            "add_note" => add_note(&notes, field("title"), field("text")),
            "search_notes" => search_notes(&notes, field("pattern")),
            "edit_note" => edit_note(&notes, field("title"), field("old"), field("new")),
            "post_summary" => {
                http::get(&env, "site").and_then(|site| post_summary(&notes, &site, field("url")))
            }
            _ => return Err(Error::UnknownTool(tool)),
        };
        output.map(|v| v.to_string()).map_err(refused)
    }
}

fn tool(name: &str, description: &str, fields: Value, read_only: bool) -> Definition {
    let required: Vec<_> = fields
        .as_object()
        .into_iter()
        .flat_map(|f| f.keys())
        .collect();
    Definition {
        name: name.into(),
        description: description.into(),
        input_schema: json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false}).to_string(),
        output_schema: None,
        annotations: Annotations { read_only, destructive: false, idempotent: false, open_world: false },
    }
}

fn failed(message: impl ToString) -> Error {
    Error::Failed(Failure {
        name: "Error".into(),
        message: message.to_string(),
        stack: String::new(),
    })
}

// A denial stays one, so that the host says which binding would allow the call.
fn refused(error: types::Error) -> Error {
    match error {
        types::Error::Denied(denial) => Error::Denied(denial),
        types::Error::NotFound(what) => failed(format!("not found: {what}")),
        types::Error::Invalid(what) => failed(format!("invalid: {what}")),
        other => failed(other),
    }
}

fn add_note(notes: &workspace::Directory, title: &str, text: &str) -> Result<Value, types::Error> {
    notes.append(&format!("{title}.md"), &format!("{text}\n"))?;
    Ok(json!({"title": title}))
}

fn search_notes(notes: &workspace::Directory, pattern: &str) -> Result<Value, types::Error> {
    let search = workspace::Search {
        include: vec!["*.md".into()],
        exclude: vec![],
        context: 0,
    };
    let found = notes.grep(pattern, &search, 100, None)?;
    Ok(found
        .matches
        .iter()
        .map(|m| json!({"title": m.path.trim_end_matches(".md"), "line": m.line, "text": m.text}))
        .collect())
}

fn edit_note(
    notes: &workspace::Directory,
    title: &str,
    old: &str,
    new: &str,
) -> Result<Value, types::Error> {
    let file = format!("{title}.md");
    notes.edit(
        &file,
        &[workspace::Replacement {
            old: old.into(),
            new: new.into(),
        }],
    )?;
    Ok(json!(notes.read(&file)?))
}

fn post_summary(
    notes: &workspace::Directory,
    site: &http::Client,
    url: &str,
) -> Result<Value, types::Error> {
    let page = notes.list("", 1000, None)?;
    let body = page
        .entries
        .iter()
        .map(|e| format!("{}: {}\n", e.name.trim_end_matches(".md"), e.status.size))
        .collect();
    let exchange = site.start(http::Request {
        method: "POST".into(),
        url: url.into(),
        headers: vec![],
        content: http::Content::Text(body),
        redirect: http::Redirect::Follow,
        timeout: None,
    })?;
    exchange.subscribe(http::Stage::Whole).block();
    Ok(json!({"status": exchange.head()?.status, "answer": exchange.text(8 << 20)?}))
}
