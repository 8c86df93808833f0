// Searches and edits notes in a workspace, and posts a summary over http.
#include "stile.h"

static stile_string file_of(stile_string title) { return stile_concat(title, stile_text(".md")); }

static stile_string title_of(stile_string file) {
  if (stile_ends_with(file, stile_text(".md"))) file.len -= 3;
  return file;
}

static stile_string text_of(stile_json input, const char *name) { return stile_get_string(input, name, stile_text("")); }

static stile_result add_note(stile_env env, stile_json input) {
  stile_error error;
  stile_workspace_directory notes;
  stile_buffer out = {0};
  stile_string title = text_of(input, "title"), line = stile_concat(text_of(input, "text"), stile_text("\n"));
  if (!stile_env_workspace(env, stile_text("notes"), &notes, &error)) return stile_refused(error);
  if (!stile_workspace_directory_append(notes, file_of(title), line, &error)) return stile_refused(error);
  stile_begin(&out, '{');
  stile_put_name(&out, "title"), stile_put_string(&out, title);
  stile_end(&out, '}');
  return stile_return(out);
}

static stile_result search_notes(stile_env env, stile_json input) {
  stile_error error;
  stile_workspace_directory notes;
  stile_workspace_matches found;
  stile_buffer out = {0};
  stile_workspace_search where = {.include = STILE_LIST(stile_list_string, stile_text("*.md"))};
  if (!stile_env_workspace(env, stile_text("notes"), &notes, &error)) return stile_refused(error);
  if (!stile_workspace_directory_grep(notes, text_of(input, "pattern"), &where, 100, NULL, &found, &error)) return stile_refused(error);
  stile_begin(&out, '[');
  for (size_t k = 0; k < found.matches.len; k++) {
    stile_workspace_match *m = &found.matches.data[k];
    stile_begin(&out, '{');
    stile_put_name(&out, "title"), stile_put_string(&out, title_of(m->path));
    stile_put_name(&out, "line"), stile_put_int(&out, m->line);
    stile_put_name(&out, "text"), stile_put_string(&out, m->text);
    stile_end(&out, '}');
  }
  stile_end(&out, ']');
  return stile_return(out);
}

static stile_result edit_note(stile_env env, stile_json input) {
  stile_error error;
  stile_workspace_directory notes;
  stile_string file = file_of(text_of(input, "title")), text;
  stile_buffer out = {0};
  stile_workspace_replacement edit = {.old = text_of(input, "old"), .new = text_of(input, "new")};
  if (!stile_env_workspace(env, stile_text("notes"), &notes, &error)) return stile_refused(error);
  if (!stile_workspace_directory_edit(notes, file, STILE_LIST(stile_list_workspace_replacement, edit), &error)) return stile_refused(error);
  if (!stile_workspace_directory_read(notes, file, &text, &error)) return stile_refused(error);
  stile_put_string(&out, text);
  return stile_return(out);
}

static stile_result post_summary(stile_env env, stile_json input) {
  stile_error error;
  stile_workspace_directory notes;
  stile_http_client site;
  stile_workspace_page page;
  stile_buffer body = {0}, out = {0};
  stile_string answer;
  uint16_t status;
  if (!stile_env_workspace(env, stile_text("notes"), &notes, &error)) return stile_refused(error);
  if (!stile_env_http(env, stile_text("site"), &site, &error)) return stile_refused(error);
  if (!stile_workspace_directory_list(notes, stile_text(""), 1000, NULL, &page, &error)) return stile_refused(error);
  for (size_t k = 0; k < page.entries.len; k++) {
    stile_workspace_entry *e = &page.entries.data[k];
    stile_add(&body, title_of(e->name)), stile_add(&body, stile_text(": "));
    stile_add_int(&body, (int64_t)e->status.size), stile_add(&body, stile_text("\n"));
  }
  if (!stile_http_send(site, stile_text("POST"), text_of(input, "url"), stile_built(body), &status, &answer, &error)) return stile_refused(error);
  stile_begin(&out, '{');
  stile_put_name(&out, "status"), stile_put_int(&out, status);
  stile_put_name(&out, "answer"), stile_put_string(&out, answer);
  stile_end(&out, '}');
  return stile_return(out);
}

const stile_tool stile_tools[] = {
  {.name = "add_note", .description = "Add a line to the note of a title", .run = add_note,
   .input = STILE_JSON({
     "type": "object", "required": ["title", "text"], "additionalProperties": false,
     "properties": {"title": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}, "text": {"type": "string"}}
   })},
  {.name = "search_notes", .description = "Find lines of notes by a regular expression", .run = search_notes, .annotations = {.read_only = true},
   .input = STILE_JSON({"type": "object", "required": ["pattern"], "additionalProperties": false, "properties": {"pattern": {"type": "string"}}})},
  {.name = "edit_note", .description = "Replace a text that a note has exactly once", .run = edit_note,
   .input = STILE_JSON({
     "type": "object", "required": ["title", "old", "new"], "additionalProperties": false,
     "properties": {"title": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}, "old": {"type": "string"}, "new": {"type": "string"}}
   })},
  {.name = "post_summary", .description = "Post the titles and sizes of all notes to a URL", .run = post_summary,
   .input = STILE_JSON({"type": "object", "required": ["url"], "additionalProperties": false, "properties": {"url": {"type": "string"}}})},
  {0},
};
