"""Searches and edits notes in a workspace, and posts a summary over http."""

import json
import traceback

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools
from wit_world.imports import http, types, workspace

TITLE = {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}
TEXT = {"type": "string"}
MAX_BODY = 8 << 20


def add_note(env, title, text):
    workspace.get(env, "notes").append(f"{title}.md", f"{text}\n")
    return {"title": title}


def search_notes(env, pattern):
    where = workspace.Search(include=["*.md"], exclude=[], context=0)
    found = workspace.get(env, "notes").grep(pattern, where, 100, None)
    return [{"title": m.path.removesuffix(".md"), "line": m.line, "text": m.text} for m in found.matches]


def edit_note(env, title, old, new):
    notes = workspace.get(env, "notes")
    notes.edit(f"{title}.md", [workspace.Replacement(old, new)])
    return notes.read(f"{title}.md")


def post_summary(env, url):
    page = workspace.get(env, "notes").list("", 1000, None)
    body = "".join(f"{e.name.removesuffix('.md')}: {e.status.size}\n" for e in page.entries)
    request = http.Request("POST", url, [], http.Content_Text(body), http.Redirect.FOLLOW, None)
    exchange = http.get(env, "site").start(request)
    exchange.subscribe(http.Stage_Whole()).block()
    return {"status": exchange.head().status, "answer": exchange.text(MAX_BODY)}


# The function, its description, its input, and whether it only reads.
TOOLS = {
    "add_note": (add_note, "Add a line to the note of a title", {"title": TITLE, "text": TEXT}, False),
    "search_notes": (search_notes, "Find lines of notes by a regular expression", {"pattern": TEXT}, True),
    "edit_note": (edit_note, "Replace a text that a note has exactly once", {"title": TITLE, "old": TEXT, "new": TEXT}, False),
    "post_summary": (post_summary, "Post the titles and sizes of all notes to a URL", {"url": TEXT}, False),
}


def schema(properties):
    return json.dumps({"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False})


class Tools(exports.Tools):
    def describe(self):
        return [
            tools.Definition(name, description, schema(properties), None, tools.Annotations(reads, False, False, False))
            for name, (_, description, properties, reads) in TOOLS.items()
        ]

    def call(self, tool, input, env):
        if tool not in TOOLS:
            raise Err(tools.Error_UnknownTool(tool))
        try:
            return json.dumps(TOOLS[tool][0](env, **json.loads(input)))
        except Err as e:  # of a capability: a denial stays one
            if isinstance(e.value, types.Error_Denied):
                raise Err(tools.Error_Denied(e.value.value))
            kind = type(e.value).__name__.removeprefix("Error_").lower()
            raise Err(tools.Error_Failed(tools.Failure("CapabilityError", f"{kind}: {getattr(e.value, 'value', '')}", "")))
        except Exception as e:
            raise Err(tools.Error_Failed(tools.Failure(type(e).__name__, str(e), traceback.format_exc())))
