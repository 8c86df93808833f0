//! Searches and edits notes in a workspace, and posts a summary over http.

use serde::Serialize;
use stile::{workspace, Env};

#[derive(Serialize)]
struct Added {
    title: String,
}

/// Add a line to the note of a title
#[stile::tool]
fn add_note(
    env: &Env,
    #[schemars(regex(pattern = "^[a-z0-9-]{1,64}$"))] title: String,
    text: String,
) -> stile::Result<Added> {
    let notes = env.workspace("notes")?;
    notes.append(&format!("{title}.md"), &format!("{text}\n"))?;
    Ok(Added { title })
}

#[derive(Serialize)]
struct Match {
    title: String,
    line: u32,
    text: String,
}

/// Find lines of notes by a regular expression
#[stile::tool(read_only)]
fn search_notes(env: &Env, pattern: String) -> stile::Result<Vec<Match>> {
    let search = workspace::Search {
        include: vec!["*.md".into()],
        ..Default::default()
    };
    let found = env.workspace("notes")?.grep(&pattern, &search, 100, None)?;
    Ok(found
        .matches
        .into_iter()
        .map(|m| Match {
            title: title(&m.path),
            line: m.line,
            text: m.text,
        })
        .collect())
}

/// Replace a text that a note has exactly once
#[stile::tool]
fn edit_note(
    env: &Env,
    #[schemars(regex(pattern = "^[a-z0-9-]{1,64}$"))] title: String,
    old: String,
    new: String,
) -> stile::Result<String> {
    let notes = env.workspace("notes")?;
    let file = format!("{title}.md");
    notes.edit(&file, &[workspace::Replacement { old, new }])?;
    Ok(notes.read(&file)?)
}

#[derive(Serialize)]
struct Posted {
    status: u16,
    answer: String,
}

/// Post the titles and sizes of all notes to a URL
#[stile::tool]
fn post_summary(env: &Env, url: String) -> stile::Result<Posted> {
    let page = env.workspace("notes")?.list("", 1000, None)?;
    let body: String = page
        .entries
        .iter()
        .map(|e| format!("{}: {}\n", title(&e.name), e.status.size))
        .collect();
    let response = env.http("site")?.send("POST", &url, &body)?;
    Ok(Posted {
        status: response.status,
        answer: response.text,
    })
}

fn title(path: &str) -> String {
    path.trim_end_matches(".md").into()
}
