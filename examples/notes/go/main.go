//go:build wasip1

// Searches and edits notes in a workspace, and posts a summary over http.
package main

import (
	"fmt"
	"strings"

	stile "github.com/stilehost/stile/guest-sdk/go"
)

type note struct {
	Title string `json:"title" pattern:"^[a-z0-9-]{1,64}$"`
	Text  string `json:"text"`
}

type search struct {
	Pattern string `json:"pattern"`
}

type edit struct {
	Title string `json:"title" pattern:"^[a-z0-9-]{1,64}$"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

type target struct {
	URL string `json:"url"`
}

type match struct {
	Title string `json:"title"`
	Line  uint32 `json:"line"`
	Text  string `json:"text"`
}

type posted struct {
	Status uint16 `json:"status"`
	Answer string `json:"answer"`
}

func init() {
	stile.Tool("add_note", "Add a line to the note of a title", addNote)
	stile.Tool("search_notes", "Find lines of notes by a regular expression", searchNotes, stile.Annotations{ReadOnly: true})
	stile.Tool("edit_note", "Replace a text that a note has exactly once", editNote)
	stile.Tool("post_summary", "Post the titles and sizes of all notes to a URL", postSummary)
}

func main() {}

func addNote(env *stile.Env, in note) (any, error) {
	notes, err := env.Workspace("notes")
	if err != nil {
		return nil, err
	}
	return map[string]string{"title": in.Title}, notes.Append(in.Title+".md", in.Text+"\n")
}

func searchNotes(env *stile.Env, in search) ([]match, error) {
	notes, err := env.Workspace("notes")
	if err != nil {
		return nil, err
	}
	found, err := notes.Grep(in.Pattern, stile.WorkspaceSearch{Include: []string{"*.md"}}, 100, nil)
	if err != nil {
		return nil, err
	}
	matches := []match{}
	for _, m := range found.Matches {
		matches = append(matches, match{strings.TrimSuffix(m.Path, ".md"), m.Line, m.Text})
	}
	return matches, nil
}

func editNote(env *stile.Env, in edit) (string, error) {
	notes, err := env.Workspace("notes")
	if err != nil {
		return "", err
	}
	if err := notes.Edit(in.Title+".md", []stile.WorkspaceReplacement{{Old: in.Old, New: in.New}}); err != nil {
		return "", err
	}
	return notes.Read(in.Title + ".md")
}

func postSummary(env *stile.Env, in target) (posted, error) {
	notes, err := env.Workspace("notes")
	if err != nil {
		return posted{}, err
	}
	site, err := env.HTTP("site")
	if err != nil {
		return posted{}, err
	}
	page, err := notes.List("", 1000, nil)
	if err != nil {
		return posted{}, err
	}
	var body strings.Builder
	for _, e := range page.Entries {
		fmt.Fprintf(&body, "%s: %d\n", strings.TrimSuffix(e.Name, ".md"), e.Status.Size)
	}
	status, answer, err := site.Send("POST", in.URL, body.String())
	return posted{status, answer}, err
}
